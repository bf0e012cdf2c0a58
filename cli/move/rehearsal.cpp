#include "move/rehearsal.h"

#include <algorithm>

#include "base/output.h"
#include "move/command.h"
#include "move/replication.h"
#include "postgres/drop_schemas.h"

namespace
{

/* A larger set is rehearsed with so many of each: a DROP SCHEMA locks all of them at once. */
constexpr std::int64_t kMost = 500;

/* A move of its own, with a slot and a subscription of its own. The names begin with that of the
 * move, so that verify finds them after a kill. */
Move rehearsal_of(Servers& servers, const Move& move)
{
    Shard shard = move.shards.front();
    shard.schema = shard.quoted = move.name + "_rehearsed";
    const std::string name = move.name + "_rehearsal";
    return {{shard}, name, name_slot(servers.source, name), name_slot(servers.target, name), false};
}

struct Objects {
    std::int64_t tables;
    std::int64_t sequences;

    bool operator==(const Objects& other) const
    {
        return tables == other.tables && sequences == other.sequences;
    }

    std::string text() const
    {
        return count_of(static_cast<std::size_t>(tables), "table") + " and " +
               count_of(static_cast<std::size_t>(sequences), "sequence");
    }
};

Objects count_objects(Connection& source, const Move& move)
{
    const Result count = source.query(R"(
        SELECT count(*) FILTER (WHERE relkind IN ('r', 'p')), count(*) FILTER (WHERE relkind = 'S')
        FROM pg_class WHERE relnamespace = ANY ($1::regnamespace[]))",
                                      {move.schemas()});
    return {count.number(0, 0), count.number(0, 1)};
}

void make_objects(Connection& source, const std::string& schema, const Objects& count)
{
    std::string sql = "CREATE SCHEMA " + schema + ";";
    for (std::int64_t i = 0; i < count.tables; i++)
        sql += "CREATE TABLE " + schema + ".t" + std::to_string(i) + " (id bigint PRIMARY KEY);";
    for (std::int64_t i = 0; i < count.sequences; i++)
        sql += "CREATE SEQUENCE " + schema + ".s" + std::to_string(i) + ";";
    source.run("BEGIN;" + sql + "COMMIT");
}

/* Schemas of another role that have the names are not ours. */
void drop_objects(Connection& connection, const Move& rehearsal)
{
    const Result found =
        connection.query("SELECT quote_ident(nspname) FROM pg_namespace "
                         "WHERE nspname IN ($1, $2) AND pg_get_userbyid(nspowner) = current_user",
                         {rehearsal.name, rehearsal.shards.front().schema});
    for (const std::string& schema : texts_of(found))
        drop_schemas(connection, {schema});
}

void remove(Servers& servers, const Move& rehearsal, Clock::time_point deadline)
{
    drop_subscription(servers.target, rehearsal, deadline);
    drop_slot_of(servers.source, rehearsal, deadline);
    drop_publication(servers.source, rehearsal);
    drop_objects(servers.target, rehearsal);
    drop_objects(servers.source, rehearsal);
}

/* Returns milliseconds. Takes the steps of a move by its own functions. No router is led. */
std::int64_t cut_over_objects(Servers& servers, const Move& rehearsal, const std::string& publisher,
                              const CutoverOptions& options, const Objects& count)
{
    make_objects(servers.source, rehearsal.shards.front().schema, count);
    prepare_source(servers, rehearsal, Routing(), false, false);
    Laps laps;
    copy_shards(servers, rehearsal, publisher, nullptr, 1, 1, laps);
    Cutover cutover(Routing(), "the rehearsal is", options, "");
    await_lag(servers, rehearsal, cutover.limits.max_lag);
    Connection snapshot(servers.target.dsn_of_server());
    const std::int64_t ms = cut_over(servers, rehearsal, snapshot, cutover);
    snapshot.run("COMMIT");
    return ms;
}

/* The pause, or why it could not be rehearsed. The set itself is held all the same. */
void rehearse_pause(Servers& servers, const Move& move, const std::string& publisher,
                    const CutoverOptions& options, Laps& laps)
{
    const Prefix prefix("rehearsal of " + short_title_of(move.shards) + ": ");
    const Limits limits(options);
    const Objects all = count_objects(servers.source, move);
    const Objects count = {std::min(all.tables, kMost), std::min(all.sequences, kMost)};
    const Move rehearsal = rehearsal_of(servers, move);
    std::string problem;
    try {
        remove(servers, rehearsal, limits.deadline());
        const std::int64_t ms = cut_over_objects(servers, rehearsal, publisher, options, count);
        laps.note({"expected pause",
                   ms,
                   {},
                   "measured with " + count.text() + (count == all ? "" : " of " + all.text()) +
                       "; PgBouncer and running transactions can add to it"});
    } catch (const Failure& error) {
        problem = first_line(error.what());
    }
    remove(servers, rehearsal, limits.deadline());
    if (!problem.empty())
        laps.note({"expected pause", {}, {}, "not measured: " + problem});
}

} // namespace

void Laps::add_to(Table& table, const Shards& shards) const
{
    const auto number = [](const std::optional<std::int64_t>& value) {
        return value ? Value(*value) : Value();
    };
    for (const Lap& lap : laps_)
        table.rows.push_back({format_shards(numbers_of(shards)), lap.item, number(lap.ms),
                              number(lap.bytes), text_or_null(lap.text)});
}

Table table_of_laps()
{
    return {{"shards", "item", "ms", "bytes", "text"}, {}};
}

void rehearse(Servers& servers, const Move& move, const std::string& publisher,
              const CutoverOptions& options, Laps& laps)
{
    rehearse_pause(servers, move, publisher, options, laps);
    const Result slot = servers.source.query(R"(
        SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint,
               pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint
        FROM pg_replication_slots WHERE slot_name = $1)",
                                             {move.slot});
    if (slot.rows() == 0)
        return;
    laps.note({"WAL kept", {}, slot.number(0, 0), "on " + servers.source.server()});
    laps.note({"behind", {}, slot.number(0, 1), servers.target.server()});
}

void remove_rehearsal(Servers& servers, const Move& move, Clock::time_point deadline)
{
    remove(servers, rehearsal_of(servers, move), deadline);
}
