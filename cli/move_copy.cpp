/* snowflake-shard move, the steps before the switch: the source is written to all the time. */

#include "dump.h"
#include "move.h"
#include "move_sql.h"
#include "output.h"

namespace
{

constexpr auto kPoll = std::chrono::milliseconds(100);

/* pg_dump's entries that the apply worker needs to find rows: keys and replica identities. All
 * other indexes, foreign keys and triggers are made when the rows are there. */
bool is_needed_for_copy(const Entry& entry)
{
    return entry.type == "CONSTRAINT" || entry.sql.find(" REPLICA IDENTITY ") != std::string::npos;
}

Entries post_data(Move& move, bool is_for_copy)
{
    Entries entries;
    for (const Entry& entry : dump_section(move.source, move.shard.schema, "post-data"))
        if (is_needed_for_copy(entry) == is_for_copy)
            entries.push_back(entry);
    return entries;
}

bool has_slot(Move& move)
{
    return move.source
               .query("SELECT FROM pg_catalog.pg_replication_slots WHERE slot_name = $1",
                      {move.slot})
               .rows() > 0;
}

/* A worker that fails tries again for ever, and says why in the log of its server alone. */
class FailureWatch
{
public:
    explicit FailureWatch(Move& move) : move_(move), errors_(count()) {}

    void look()
    {
        if (Clock::now() < next_)
            return;
        next_ = Clock::now() + std::chrono::seconds(5);
        const std::int64_t errors = count();
        if (errors > errors_)
            warn("replication failed " + count_of(static_cast<std::size_t>(errors), "time") +
                 "; the log of " + move_.target.server() + " says why. It is tried again.");
        errors_ = errors;
        const Result lost = move_.source.query("SELECT FROM pg_catalog.pg_replication_slots WHERE "
                                               "slot_name = $1 AND wal_status = 'lost'",
                                               {move_.slot});
        if (lost.rows() > 0)
            throw Failure("slot " + move_.slot + " has lost WAL that was not replicated yet: " +
                          "max_slot_wal_keep_size is too small. Start anew: --abort");
    }

private:
    std::int64_t count()
    {
        return move_.target
            .query("SELECT coalesce(pg_catalog.sum(apply_error_count + sync_error_count), 0) FROM "
                   "pg_catalog.pg_stat_subscription_stats WHERE subname = $1",
                   {move_.name})
            .number(0, 0);
    }

    Move& move_;
    std::int64_t errors_;
    Clock::time_point next_;
};

/* Megabytes of the tables that are copied. */
std::size_t megabytes(Connection& connection, const Shard& shard)
{
    const Result size = connection.query(
        "SELECT coalesce(pg_catalog.sum(pg_catalog.pg_relation_size(c.oid)), 0)::bigint >> 20 FROM "
        "pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE n.nspname = $1 AND c.relkind = 'r'",
        {shard.schema});
    return static_cast<std::size_t>(size.number(0, 0));
}

std::string state_row(Move& move, const std::string& id, const Connection& other,
                      const std::string& step, const std::string& is_open)
{
    return "INSERT INTO " + move.name + ".state VALUES (" + id + ", " +
           move.source.literal(move.shard.schema) + ", " + move.source.literal(other.server()) +
           ", '" + step + "', " + is_open + ");";
}

} // namespace

std::string source_dsn(Move& move)
{
    if (!move.options.source.empty())
        return move.options.source;
    const std::string password = move.source.password();
    return dsn_setting("host", move.source.host()) + " " + dsn_setting("port", move.source.port()) +
           " " + dsn_setting("dbname", move.source.database()) + " " +
           dsn_setting("user", move.source.user()) +
           (password.empty() ? "" : " " + dsn_setting("password", password));
}

void prepare_source(Move& move)
{
    if (!move.source_state()) {
        warn("source: publication and slot");
        const Result tables = move.source.query(
            "SELECT coalesce(pg_catalog.string_agg(', ' || c.oid::regclass, '' ORDER BY c.oid), '')"
            " FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = "
            "c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'",
            {move.shard.schema});
        move.source.run(
            "BEGIN;" + move_schema_sql(move.name) +
            state_row(move, "pg_catalog.gen_random_uuid()", move.target, "prepared", "true") +
            "CREATE PUBLICATION " + move.name + " FOR TABLE " + move.name + ".marker" +
            tables.text(0, 0) + ";COMMIT");
    }
    if (has_slot(move))
        return;
    /* What is written between the first slot and another would never come. */
    if (move.target_state())
        throw Failure("slot " + move.slot + " is gone: start anew, --abort");
    /* It waits for the transactions that are running in the whole cluster. */
    move.source.query("SELECT pg_catalog.pg_create_logical_replication_slot($1, 'pgoutput')",
                      {move.slot});
}

void prepare_target(Move& move)
{
    if (move.target_state())
        return;
    warn("target: definition and subscription");
    const Entries definition = dump_section(move.source, move.shard.schema, "pre-data");
    const Entries keys = post_data(move, true);
    const std::string problem = "shard " + std::to_string(move.shard.number) + ", schema " +
                                move.shard.schema + ", is not open here yet";
    move.target.run("BEGIN ISOLATION LEVEL READ COMMITTED;" + std::string(kDumpSettings) +
                    ";SELECT snowflake_internal.claim_shard(" + std::to_string(move.shard.number) +
                    ", " + move.target.literal(move.shard.schema) + ");" + sql_of(definition) +
                    sql_of(keys) + move_schema_sql(move.name) +
                    state_row(move, move.target.literal(move.source_state()->id), move.source,
                              "copying", "false") +
                    /* The apply worker is a replica, which this does not stop. */
                    "SELECT " + move.name + ".close('', " + move.target.literal(problem) + ", " +
                    move.target.literal("It is being moved from " + move.source.server() + ".") +
                    "); CREATE SUBSCRIPTION " + move.name + " CONNECTION " +
                    move.target.literal(source_dsn(move)) + " PUBLICATION " + move.name +
                    " WITH (create_slot = false, slot_name = '" + move.slot + "'); COMMIT");
}

void await_copy(Move& move)
{
    warn("target: rows");
    const std::size_t total = megabytes(move.source, move.shard);
    Progress progress("copy (MB)", total);
    FailureWatch watch(move);
    for (;; std::this_thread::sleep_for(kPoll)) {
        stop_if_interrupted();
        watch.look();
        const Result left = move.target.query(
            "SELECT FROM pg_catalog.pg_subscription_rel AS r JOIN pg_catalog.pg_subscription AS s "
            "ON s.oid = r.srsubid WHERE s.subname = $1 AND r.srsubstate <> 'r'",
            {move.name});
        if (left.rows() == 0)
            return;
        progress.reach(std::min(total, megabytes(move.target, move.shard)));
    }
}

void finish_definition(Move& move)
{
    if (move.target_state()->step != "copying")
        return;
    warn("target: indexes, foreign keys, triggers");
    const Result tables = move.target.query(
        "SELECT coalesce(pg_catalog.string_agg(pg_catalog.format('ANALYZE %s;', c.oid::regclass), "
        "'' ORDER BY c.oid), '') FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n "
        "ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind IN ('r', 'p')",
        {move.shard.schema});
    /* pg_dump's post-data also fills the materialized views. */
    move.target.run("BEGIN;" + std::string(kDumpSettings) + ";" + sql_of(post_data(move, false)) +
                    tables.text(0, 0) + "UPDATE " + move.name +
                    ".state SET step = 'ready'; COMMIT");
}

void await_lag(Move& move)
{
    warn("target: waiting until it has caught up");
    FailureWatch watch(move);
    for (;; std::this_thread::sleep_for(kPoll)) {
        stop_if_interrupted();
        watch.look();
        const Result lag = move.source.query(
            "SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), "
            "confirmed_flush_lsn) <= $2::numeric FROM pg_catalog.pg_replication_slots WHERE "
            "slot_name = $1",
            {move.slot, std::to_string(move.options.max_lag)});
        if (lag.rows() == 0)
            throw Failure("slot " + move.slot + " is gone: start anew, --abort");
        if (lag.flag(0, 0))
            return;
    }
}

void drop_subscription(Move& move)
{
    if (move.target
            .query("SELECT FROM pg_catalog.pg_subscription WHERE subname = $1 AND subdbid = "
                   "(SELECT oid FROM pg_catalog.pg_database WHERE datname = "
                   "pg_catalog.current_database())",
                   {move.name})
            .rows() > 0)
        /* Without its slot's name, because the source drops the slot. */
        move.target.run("BEGIN; ALTER SUBSCRIPTION " + move.name + " DISABLE; ALTER SUBSCRIPTION " +
                        move.name + " SET (slot_name = NONE); DROP SUBSCRIPTION " + move.name +
                        "; COMMIT");
}

void drop_slot_and_publication(Move& move)
{
    const auto deadline = move.deadline();
    while (has_slot(move)) {
        /* A walsender notices late that its subscriber is dead, and holds the slot. */
        move.source.query("SELECT pg_catalog.pg_terminate_backend(active_pid) FROM "
                          "pg_catalog.pg_replication_slots WHERE slot_name = $1 AND active",
                          {move.slot});
        try {
            move.source.query("SELECT pg_catalog.pg_drop_replication_slot($1)", {move.slot});
        } catch (const ServerError&) {
            if (Clock::now() > deadline)
                throw;
            std::this_thread::sleep_for(kPoll);
        }
    }
    move.source.run("DROP PUBLICATION IF EXISTS " + move.name);
}
