#include "split/state.h"

#include <algorithm>
#include <array>

#include "move/moving.h"
#include "postgres/trust.h"

namespace
{

/* In the order of SplitStep. */
constexpr std::array<const char*, 5> kSteps = {"prepared", "closed", "sealed", "promoting",
                                               "split"};

SplitStep parse_step(const std::string& text)
{
    const auto* const found = std::find(kSteps.begin(), kSteps.end(), text);
    if (found != kSteps.end())
        return static_cast<SplitStep>(found - kSteps.begin());
    throw Failure("the split is at step \"" + text +
                  "\", which this snowflake-shard does not know");
}

} // namespace

std::string text_of(SplitStep step)
{
    return kSteps.at(static_cast<std::size_t>(step));
}

/* A schema of that name can be planted, with a view or an index that runs its owner's code when it
 * is read. So all of it must belong to trusted roles. The first query reads catalogs only.
 *
 * is_home: the standby has the row with home by the WAL, but not the slot. While it is in recovery
 * it counts as home, because nobody can write there. home is NULL while no shard is closed, and
 * again at the end. */
std::optional<SplitState> read_split(Connection& connection)
{
    const Result table = connection.query(R"(
        SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND c.relname = 'state' AND c.relkind = 'r' AND n.oid NOT IN ()" +
                                              untrusted_schemas("'^snowflake_split$'") + ")",
                                          {kSplitSchema});
    if (table.rows() == 0)
        return {};
    const Result row = connection.query(R"(
        SELECT id, old_server, new_server, step, is_new, seal, standby_start,
               pg_is_in_recovery() OR home IS NULL OR EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = home)
        FROM snowflake_split.state)");
    if (row.rows() == 0)
        return {};
    return SplitState{row.text(0, 0), row.text(0, 1), row.text(0, 2), parse_step(row.text(0, 3)),
                      row.flag(0, 4), row.flag(0, 7), row.text(0, 5), row.text(0, 6)};
}

SplitState require_split(Connection& connection)
{
    if (const auto state = read_split(connection))
        return *state;
    require_trusted_schema(connection, kSplitSchema);
    throw Failure("the record of the split, schema " + kSplitSchema + ", is gone from " +
                  connection.server());
}

std::vector<SplitShard> read_split_shards(Connection& connection)
{
    const Result rows = connection.query("SELECT shard, schema_name, quote_ident(schema_name), "
                                         "leaves FROM snowflake_split.shards ORDER BY 1");
    std::vector<SplitShard> shards;
    for (int i = 0; i < rows.rows(); i++)
        shards.push_back({static_cast<int>(rows.number(i, 0)), rows.text(i, 1), rows.text(i, 2),
                          rows.flag(i, 3)});
    return shards;
}

/* A promoted standby has the state of the old server until it is opened, and lacks its slot: all
 * shards are closed there. list and map ask this, so that each shard is shown once. */
bool is_closed(const SplitState& state, const SplitShard& shard)
{
    if (state.step == SplitStep::prepared)
        return false;
    if (state.step == SplitStep::split)
        return shard.leaves != state.is_new;
    return shard.leaves || !state.is_home;
}

/* On a promoted standby that is not open yet no shard is moving: the old server shows it. */
std::vector<ShardInSplit> read_shards_in_split(Connection& connection)
{
    std::vector<ShardInSplit> shards;
    if (const auto state = read_split(connection))
        for (const SplitShard& shard : read_split_shards(connection))
            shards.push_back({shard, is_closed(*state, shard),
                              shard.leaves && state->is_under_way() && state->is_home});
    return shards;
}

std::string command_of(const SplitState& state)
{
    return "snowflake-shard split --from " + shell_quoted(uri_of(state.old_server)) +
           " --standby " + shell_quoted(uri_of(state.new_server));
}
