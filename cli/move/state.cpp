#include "move/state.h"

#include "base/quoting.h"
#include "fleet/in_transit.h"
#include "postgres/identity.h"
#include "postgres/trust.h"

std::optional<MoveState> read_state(Connection& connection, const Move& move)
{
    const auto state = read_move(connection, move.name);
    if (state && numbers_of(state->shards) != numbers_of(move.shards))
        throw Failure("schema " + move.name + " on " + connection.server() + " is of a move of " +
                      title_of(state->shards));
    return state;
}

MoveState require_state(Connection& connection, const Move& move)
{
    if (const auto state = read_state(connection, move))
        return *state;
    require_trusted_schema(connection, move.name);
    throw Failure("the record of the move, schema " + move.name + ", is gone from " +
                  connection.server());
}

void make_state(Connection& connection, const Move& move, const std::string& id,
                const Address& other, Step step)
{
    /* verify, list and map may be run by any role. */
    connection.run(move.sql(R"(
        CREATE SCHEMA @move@;
        CREATE TABLE @move@.state (
            id uuid PRIMARY KEY,
            other text NOT NULL,
            step text NOT NULL,
            marker uuid,
            is_reversible boolean NOT NULL DEFAULT false,
            is_way_back boolean NOT NULL DEFAULT false,
            -- Positions of the WAL, for those who decode it. Of this server: when the shard was closed or opened here last. Of the other
            -- one: when it was opened there.
            at pg_lsn,
            other_at pg_lsn);
        CREATE TABLE @move@.shards (number integer PRIMARY KEY, schema_name name NOT NULL UNIQUE);
        GRANT USAGE ON SCHEMA @move@ TO PUBLIC;
        GRANT SELECT ON @move@.state, @move@.shards TO PUBLIC)"));
    connection.query(move.sql("INSERT INTO @move@.state VALUES "
                              "(coalesce(NULLIF($1, '')::uuid, gen_random_uuid()), $2, $3)"),
                     {id, other.text(), text_of(step)});
    std::string rows;
    for (const Shard& shard : move.shards)
        rows += (rows.empty() ? "(" : ", (") + std::to_string(shard.number) + ", " +
                connection.literal(shard.schema) + ")";
    connection.run(move.sql("INSERT INTO @move@.shards VALUES ") + rows);
}

void claim_shards(Connection& target, const Move& move)
{
    for (const Shard& shard : move.shards)
        target.query("SELECT snowflake_internal.claim_shard($1::integer, $2)",
                     {std::to_string(shard.number), shard.schema});
}

void write_step(Connection& connection, const Move& move, Step step, const std::string& marker)
{
    connection.query(move.sql("UPDATE @move@.state SET step = $1, marker = NULLIF($2, '')::uuid"),
                     {text_of(step), marker});
}

void make_reversible(Connection& source, const Move& move)
{
    source.run(move.sql("UPDATE @move@.state SET is_reversible = true"));
}

std::string write_positions(Servers& servers, const Move& move)
{
    const std::string sql = move.sql("SELECT at FROM @move@.state");
    const std::string closed = servers.source.query(sql).text(0, 0);
    const std::string opened = servers.target.query(sql).text(0, 0);
    if (closed.empty() || opened.empty())
        return "";
    servers.source.query(move.sql("UPDATE @move@.state SET other_at = $1"), {opened});
    return std::string("changes of the ") + (move.is_one() ? "shard" : "shards") + ": on " +
           servers.source.server() + " before " + closed + ", on " + servers.target.server() +
           " from " + opened + " on";
}

void write_moved(Connection& source, const Move& move, bool is_equal)
{
    source.query(move.sql("UPDATE @move@.state SET step = $1, marker = NULL, "
                          "is_way_back = is_way_back AND $2::boolean"),
                 {text_of(Step::moved), is_equal ? "true" : "false"});
}

/* No marker: the next fence sends its own. */
void write_reverse(Connection& connection, const Move& move, Step step)
{
    connection.query(move.sql("UPDATE @move@.state SET step = $1, marker = NULL, "
                              "is_reversible = false, is_way_back = true"),
                     {text_of(step)});
}

bool Standing::has_begun() const
{
    /* At the step moved the target is the old source of an earlier move, which is done. */
    if (!source)
        return target && target->step != Step::moved;
    /* finish() writes this step before it removes the state of the target. */
    if (source->step == Step::moved)
        return target.has_value();
    /* Reverse replication is the end of a move, until an undo changes the step of the target. */
    return !is_followed() || (target && target->step != Step::prepared);
}

bool Standing::leads_back() const
{
    return source && source->step == Step::prepared && source->is_way_back &&
           is_at(target, Step::ready) && target->is_way_back && source->id == target->id;
}

/* An opened target says that the move cannot be aborted. Else the side that moves away tells it:
 * the other one keeps the step of reverse replication while that is being undone. */
bool Standing::is_told_by_source() const
{
    if (!source || is_at(target, Step::open))
        return false;
    return !target || is_at(source, Step::open) || source->is_of_source();
}

void Standing::require_same_servers(Servers& servers, const Move& move) const
{
    /* The IDs, too: the same two servers may have made several moves of the shard. */
    const bool is_one_move = !source || !target || source->id == target->id;
    const auto require = [&](const std::optional<MoveState>& state, bool is_source,
                             const Connection& here, Connection& other) {
        if (state && (!is_one_move || state->is_of_source() != is_source ||
                      !is_address_of(state->other, other)))
            throw Failure(
                "schema " + move.name + " on " + here.server() +
                " is of another move, with server " + visible(state->other.text()) + "\nHINT:  " +
                next_commands(in_transit(*state, here.address().uri(), state->other.uri())));
    };
    require(source, true, servers.source, servers.target);
    require(target, false, servers.target, servers.source);
    /* A lost target may have opened the shard and taken writes: neither going on nor going back is
     * safe. */
    if (is_at(source, Step::fenced) && !target)
        throw Failure("the source is fenced, and schema " + move.name + " is not on " +
                      servers.target.server() +
                      ", so it is not known whether the shard is open there");
}
