#include "move/state.h"

#include "move/replication.h"
#include "postgres/trust.h"
#include "sql/sql.h"

std::optional<MoveState> read_state(Connection& connection, const Move& move)
{
    auto state = read_move(connection, move.name);
    if (state && numbers_of(state->shards) != numbers_of(move.shards))
        throw Failure("schema " + move.name + " on " + connection.server() + " is of a move of " +
                      title_of(state->shards));
    return state;
}

namespace
{

/* The record is not there. */
[[noreturn]] void tell_gone(Connection& connection, const Move& move)
{
    require_trusted_schema(connection, move.name);
    throw Failure("the record of the move, schema " + move.name + ", is gone from " +
                  connection.server());
}

program::Record record_of(const std::optional<MoveState>& state)
{
    if (!state)
        return {};
    return {state->step, !state->marker.empty(), state->is_reversible, state->is_reverse,
            state->is_held};
}

} // namespace

MoveState require_state(Connection& connection, const Move& move)
{
    if (const auto state = read_state(connection, move))
        return *state;
    tell_gone(connection, move);
}

const std::optional<MoveState>& Standing::source() const
{
    if (!source_)
        source_.emplace(read_state(servers_.source, move_));
    return *source_;
}

const std::optional<MoveState>& Standing::target() const
{
    if (!target_)
        target_.emplace(read_state(servers_.target, move_));
    return *target_;
}

const MoveState& Standing::required_source() const
{
    if (!source())
        tell_gone(servers_.source, move_);
    return *source();
}

const MoveState& Standing::required_target() const
{
    if (!target())
        tell_gone(servers_.target, move_);
    return *target();
}

Phase Standing::phase() const
{
    const std::optional<MoveState>& of_source = source();
    return phase_of(of_source, target());
}

program::Record Standing::source_record() const
{
    return record_of(source());
}

program::Record Standing::target_record() const
{
    return record_of(target());
}

bool Standing::has_slot() const
{
    return ::has_slot(servers_.source, move_.slot);
}

bool Standing::has_back_slot() const
{
    return ::has_slot(servers_.target, move_.back_slot);
}

bool Standing::has_follower() const
{
    return find_subscription(servers_.source, opposite(move_)).is_there;
}

void make_state(Connection& connection, const Move& move, const std::string& id,
                const Address& other, Step step)
{
    connection.run(move.sql(move_record_sql));
    connection.query(move.sql("INSERT INTO @move@.state VALUES "
                              "(coalesce(NULLIF($1, '')::uuid, gen_random_uuid()), $2, $3)"),
                     {id, other.text(), text_of(step)});
    std::string rows;
    for (const Shard& shard : move.shards)
        rows += (rows.empty() ? "(" : ", (") + std::to_string(shard.number) + ", " +
                connection.literal(shard.schema) + ")";
    connection.run(move.sql("INSERT INTO @move@.shards VALUES ") + rows);
}

void write_step(Connection& connection, const Move& move, Step step, const std::string& marker)
{
    connection.query(move.sql("UPDATE @move@.state SET step = $1, marker = NULLIF($2, '')::uuid, "
                              "at = pg_current_wal_insert_lsn(), closed_at = CASE WHEN $1 = "
                              "'fenced' AND step <> 'fenced' THEN clock_timestamp() ELSE "
                              "closed_at END"),
                     {text_of(step), marker});
}

Clock::duration time_since_closing(Connection& source, const Move& move)
{
    const Result age = source.query(move.sql("SELECT (EXTRACT(epoch FROM clock_timestamp() - "
                                             "closed_at) * 1000)::bigint FROM @move@.state"));
    return std::chrono::milliseconds(age.number(0, 0));
}

void make_reversible(Connection& source, const Move& move)
{
    source.run(move.sql("UPDATE @move@.state SET is_reversible = true"));
}

void make_held(Connection& source, const Move& move)
{
    source.run(move.sql("UPDATE @move@.state SET is_held = true"));
}

std::set<std::string> read_compared(Connection& source, const Move& move)
{
    const auto names = texts_of(source.query(move.sql("SELECT name FROM @move@.compared")));
    return {names.begin(), names.end()};
}

void add_compared(Connection& source, const Move& move, const std::vector<std::string>& tables)
{
    std::string rows;
    for (const std::string& table : tables)
        rows += (rows.empty() ? "(" : ", (") + source.literal(table) + ")";
    if (!rows.empty())
        source.run(move.sql("INSERT INTO @move@.compared VALUES ") + rows);
}

void write_compared(Connection& connection, const Move& move, bool is_held)
{
    connection.run(move.sql("BEGIN; DELETE FROM @move@.compared; UPDATE @move@.state "
                            "SET compared_at = now(), is_held = ") +
                   (is_held ? "true; COMMIT" : "false; COMMIT"));
}

void forget_compared(Connection& source, const Move& move)
{
    source.run(move.sql("BEGIN; UPDATE @move@.state SET compared_at = NULL WHERE compared_at IS "
                        "NOT NULL; DELETE FROM @move@.compared; COMMIT"));
}

void forget_compared_tables(Connection& source, const Move& move)
{
    source.run(move.sql("DELETE FROM @move@.compared"));
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
                          "is_equal = $2::boolean"),
                 {text_of(Step::moved), is_equal ? "true" : "false"});
}

/* No marker: the next fence sends its own. */
void write_reverse(Connection& connection, const Move& move, Step step)
{
    connection.query(move.sql("UPDATE @move@.state SET step = $1, marker = NULL, "
                              "is_reversible = false, is_reverse = true, is_held = false"),
                     {text_of(step)});
}
