/* snowflake-shard move, the steps before the switch: the source is written to all the time. */

#include <algorithm>
#include <set>
#include <thread>

#include "dump.h"
#include "move.h"
#include "output.h"

namespace
{

constexpr auto kPoll = std::chrono::milliseconds(100);

/* Keys and replica identities, by which the apply worker finds rows: pairs of a catalogue and an
 * object. All other indexes, foreign keys and triggers are made when the rows are there. */
std::set<std::pair<std::uint32_t, std::uint32_t>> find_keys(Move& move)
{
    const Result rows = move.source.query(R"(
        SELECT tableoid, oid FROM pg_constraint
        WHERE connamespace = $1::regnamespace AND contype IN ('p', 'u', 'x')
        UNION ALL
        SELECT c.tableoid, c.oid FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid
        WHERE relnamespace = $1::regnamespace AND indisreplident)",
                                          {move.shard.quoted});
    std::set<std::pair<std::uint32_t, std::uint32_t>> keys;
    for (int i = 0; i < rows.rows(); i++)
        keys.emplace(rows.number(i, 0), rows.number(i, 1));
    return keys;
}

/* The statements behind the copy, or before it. */
std::string post_data(Move& move, const Archive& archive, bool is_for_copy)
{
    const auto keys = find_keys(move);
    std::vector<Archive::Item> items;
    for (const Archive::Item& item : archive.items(Archive::Section::post_data))
        if ((keys.count({item.catalog, item.object}) > 0) == is_for_copy)
            items.push_back(item);
    return archive.sql(items);
}

bool has_slot(Move& move)
{
    return move.source
               .query("SELECT FROM pg_replication_slots WHERE slot_name = $1 AND "
                      "wal_status <> 'lost'",
                      {move.slot})
               .rows() > 0;
}

void require_slot(Move& move)
{
    if (!has_slot(move))
        throw Failure("slot " + move.slot +
                      " is gone, or max_slot_wal_keep_size is too small and " +
                      "it has lost WAL that was not replicated yet. Start anew: --abort");
}

/* A worker that fails tries again for ever, and says why in the log of its server alone. */
void wait_until(Move& move, const std::function<bool()>& is_done)
{
    std::int64_t failures = -1;
    for (;; std::this_thread::sleep_for(kPoll)) {
        stop_if_interrupted();
        require_slot(move);
        if (is_done())
            return;
        const Result count = move.target.query(R"(
            SELECT coalesce(sum(apply_error_count + sync_error_count), 0)
            FROM pg_stat_subscription_stats WHERE subname = $1)",
                                               {move.name});
        if (failures >= 0 && count.number(0, 0) > failures)
            warn("replication has failed " + count.text(0, 0) + " times; the log of " +
                 move.target.server() + " says why. It is tried again.");
        failures = count.number(0, 0);
    }
}

/* Megabytes of the tables that are copied. */
std::size_t megabytes(Connection& connection, const Shard& shard)
{
    const Result size = connection.query(R"(
        SELECT coalesce(sum(pg_relation_size(oid)), 0)::bigint >> 20
        FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r')",
                                         {shard.quoted});
    return static_cast<std::size_t>(size.number(0, 0));
}

} // namespace

std::string subscription_sql(Move& move, const std::string& options)
{
    std::string dsn = move.options.source;
    if (dsn.empty()) {
        const std::string password = move.source.password();
        dsn = dsn_setting("host", move.source.host()) + " " +
              dsn_setting("port", move.source.port()) + " " +
              dsn_setting("dbname", move.source.database()) + " " +
              dsn_setting("user", move.source.user()) +
              (password.empty() ? "" : " " + dsn_setting("password", password));
    }
    /* From 16 on the rows are else written by the table's owner, who may have no right on the
     * schema. */
    const bool may_be_owner = move.target.version() >= 160000;
    return move.sql("CREATE SUBSCRIPTION @move@ CONNECTION ") + move.target.literal(dsn) +
           move.sql(" PUBLICATION @move@ WITH (create_slot = false, ") + options +
           (may_be_owner ? ", run_as_owner = true)" : ")");
}

void prepare_source(Move& move)
{
    if (!move.source_state()) {
        warn("source: publication and slot");
        std::string tables = move.name + ".marker";
        for (const std::string& table : tables_of(move.source, move.shard))
            tables += ", " + table;
        move.source.run("BEGIN;" + move.sql(kMoveSchema));
        move.source.query(move.sql("INSERT INTO @move@.state VALUES "
                                   "(gen_random_uuid(), $1, $2, 'prepared', true)"),
                          {move.shard.schema, move.target.server()});
        move.source.run(move.sql("CREATE PUBLICATION @move@ FOR TABLE ") + tables + "; COMMIT");
    }
    /* What is written between the first slot and another would never come. */
    if (move.target_state())
        require_slot(move);
    else if (!has_slot(move))
        /* It waits for the transactions that are running in the whole cluster. */
        move.source.query("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", {move.slot});
}

void prepare_target(Move& move)
{
    if (move.target_state())
        return;
    warn("target: definition and subscription");
    const Archive archive(move.source, move.shard.schema, true);
    const std::string definition = archive.sql(archive.items(Archive::Section::pre_data));
    const std::string keys = post_data(move, archive, true);
    move.target.run("BEGIN ISOLATION LEVEL READ COMMITTED");
    move.target.query("SELECT snowflake_internal.claim_shard($1::integer, $2)",
                      {std::to_string(move.shard.number), move.shard.schema});
    move.target.run(definition + keys + move.sql(kMoveSchema));
    move.target.query(move.sql("INSERT INTO @move@.state VALUES ($1::uuid, $2, $3, 'copying', "
                               "false)"),
                      {move.source_state()->id, move.shard.schema, move.source.server()});
    /* The apply worker is a replica, which this does not stop. */
    move.target.query(move.sql("SELECT @move@.close('', $1, $2)"),
                      {move.title() + ", is not open here yet",
                       "It is being moved from " + move.source.server() + "."});
    move.target.run(subscription_sql(move, "slot_name = '" + move.slot + "'") + "; COMMIT");
}

void await_copy(Move& move)
{
    warn("target: rows");
    const std::size_t total = megabytes(move.source, move.shard);
    Progress progress("copy (MB)", total);
    wait_until(move, [&] {
        progress.reach(std::min(total, megabytes(move.target, move.shard)));
        const Result left = move.target.query(R"(
            SELECT FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid = srsubid
            WHERE subname = $1 AND srsubstate <> 'r')",
                                              {move.name});
        return left.rows() == 0;
    });
}

void finish_definition(Move& move)
{
    if (move.target_state()->step != "copying")
        return;
    warn("target: indexes, foreign keys, triggers");
    const Archive archive(move.source, move.shard.schema, true);
    /* It also fills the materialized views. */
    std::string sql = "BEGIN;" + post_data(move, archive, false);
    for (const std::string& table : tables_of(move.target, move.shard, "rp"))
        sql += "ANALYZE " + table + ";";
    move.target.run(sql + move.sql("UPDATE @move@.state SET step = 'ready'; COMMIT"));
}

void await_lag(Move& move)
{
    warn("target: waiting until it has caught up");
    wait_until(move, [&] {
        const Result lag = move.source.query(R"(
            SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)
            FROM pg_replication_slots WHERE slot_name = $1)",
                                             {move.slot});
        return lag.rows() > 0 &&
               lag.number(0, 0) <= static_cast<std::int64_t>(move.options.max_lag);
    });
}

void drop_subscription(Move& move)
{
    const Result subscription = move.target.query(R"(
        SELECT FROM pg_subscription WHERE subname = $1
        AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database()))",
                                                  {move.name});
    if (subscription.rows() > 0)
        /* Without its slot's name, because the source drops the slot. */
        move.target.run(move.sql(R"(
            BEGIN;
            ALTER SUBSCRIPTION @move@ DISABLE;
            ALTER SUBSCRIPTION @move@ SET (slot_name = NONE);
            DROP SUBSCRIPTION @move@;
            COMMIT)"));
}

/* A walsender notices late that its subscriber is dead, and holds the slot. */
void drop_slot_and_publication(Move& move)
{
    const auto deadline = move.deadline();
    for (;; std::this_thread::sleep_for(kPoll)) {
        try {
            move.source.query(R"(
                SELECT pg_terminate_backend(active_pid)
                FROM pg_replication_slots WHERE slot_name = $1 AND active)",
                              {move.slot});
            move.source.query(R"(
                SELECT pg_drop_replication_slot(slot_name)
                FROM pg_replication_slots WHERE slot_name = $1)",
                              {move.slot});
            break;
        } catch (const ServerError&) {
            if (Clock::now() > deadline)
                throw;
        }
    }
    move.source.run("DROP PUBLICATION IF EXISTS " + move.name);
}
