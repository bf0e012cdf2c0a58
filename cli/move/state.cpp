#include "move/state.h"

#include <algorithm>
#include <array>

#include "postgres/trust.h"

namespace
{

/* In the order of Step. */
constexpr std::array<const char*, 6> kSteps = {"prepared", "fenced", "moved",
                                               "copying",  "ready",  "open"};

Step parse_step(const std::string& text)
{
    const auto* const found = std::find(kSteps.begin(), kSteps.end(), text);
    if (found != kSteps.end())
        return static_cast<Step>(found - kSteps.begin());
    throw Failure("a move is at step \"" + text + "\", which this snowflake-shard does not know");
}

} // namespace

std::string text_of(Step step)
{
    return kSteps.at(static_cast<std::size_t>(step));
}

bool MoveState::is_standing_way_back() const
{
    return is_way_back && (step == Step::prepared || step == Step::ready);
}

bool MoveState::is_of_source() const
{
    return step == Step::prepared || step == Step::fenced || step == Step::moved;
}

bool MoveState::is_open() const
{
    return step == Step::prepared || step == Step::open;
}

/* A schema of that name can be planted, with a view or an index that runs its owner's code when it
 * is read, and statements in undo that reopen() runs. So all of it must belong to trusted roles. */
std::vector<MoveState> read_moves(Connection& connection)
{
    const std::string pattern = "'^snowflake_move_[0-9]{1,4}$'";
    const Result tables =
        connection.query(R"(
        SELECT string_agg(format('SELECT %s, schema_name, id, other, step, marker, is_reversible, is_way_back '
                                 'FROM %I.state',
                                 substring(n.nspname, '[0-9]+$'), n.nspname), ' UNION ALL ')
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relname = 'state' AND c.relkind = 'r' AND n.nspname ~ )" +
                         pattern + " AND n.oid NOT IN (" + untrusted_schemas(pattern) + ")");
    std::vector<MoveState> moves;
    if (tables.is_null(0, 0))
        return moves;
    const Result states = connection.query(tables.text(0, 0) + " ORDER BY 1");
    for (int i = 0; i < states.rows(); i++)
        moves.push_back({static_cast<int>(states.number(i, 0)), states.text(i, 1),
                         states.text(i, 2), states.text(i, 3), parse_step(states.text(i, 4)),
                         states.text(i, 5), states.flag(i, 6), states.flag(i, 7)});
    return moves;
}

std::optional<MoveState> read_state(Connection& connection, const Move& move)
{
    for (const MoveState& state : read_moves(connection))
        if (state.shard == move.shard.number)
            return state;
    return {};
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
                const std::string& other, Step step)
{
    /* verify, list and map may be run by any role. */
    connection.run(move.sql(R"(
        CREATE SCHEMA @move@;
        CREATE TABLE @move@.state (
            id uuid NOT NULL,
            schema_name name NOT NULL,
            other text NOT NULL,
            step text NOT NULL,
            marker uuid,
            is_reversible boolean NOT NULL DEFAULT false,
            is_way_back boolean NOT NULL DEFAULT false);
        GRANT USAGE ON SCHEMA @move@ TO PUBLIC;
        GRANT SELECT ON @move@.state TO PUBLIC)"));
    connection.query(move.sql("INSERT INTO @move@.state VALUES "
                              "(coalesce(NULLIF($1, '')::uuid, gen_random_uuid()), $2, $3, $4)"),
                     {id, move.shard.schema, other, text_of(step)});
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

/* No marker: the next fence sends its own. */
void write_way_back(Connection& connection, const Move& move, Step step)
{
    connection.query(move.sql("UPDATE @move@.state SET step = $1, marker = NULL, "
                              "is_reversible = false, is_way_back = true"),
                     {text_of(step)});
}
