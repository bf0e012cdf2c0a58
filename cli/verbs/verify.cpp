/* snowflake-shard verify: problems of each server, and shard numbers that two servers use.
 *
 * An ID carries its shard. So the same ID on two servers is of a shard that is open on both, or of
 * a wrong shard on one of them: it is found without a comparison of the servers' IDs. */

#include <map>

#include "base/output.h"
#include "base/table.h"
#include "fleet/catalog.h"
#include "fleet/findings.h"
#include "fleet/locked.h"
#include "postgres/citus.h"
#include "postgres/extension.h"
#include "postgres/servers.h"
#include "postgres/sql_text.h"
#include "postgres/values.h"
#include "verbs/catalog_findings.h"
#include "verbs/copies.h"
#include "verbs/verbs.h"

namespace
{

struct Report {
    std::string server;
    std::vector<Shard> shards;
    std::vector<int> settings; /* of snowflake.shard, if they make IDs here */
    Locked locked{};           /* shards whose IDs were not all looked at */
    /* The hint is the statement or command that mends it, or that shows the facts to decide by. */
    Table findings = {{"finding", "server", "object", "problem", "hint"}, {}};
};

/* Rows of a table that are looked at, where not all are. So the time of verify depends on the
 * number of tables more than on their size. The newest IDs are at an end of the index, which is
 * read beside the sample. */
constexpr int kSample = 10000;

/* The columns whose DEFAULT makes IDs of a shard; names are as SQL writes them. Only tables of open
 * shards, with a DEFAULT of the shard of their own schema. A column of a domain over bigint is one,
 * too, also of a domain over such a domain. Partitions are left out, because count_other_ids()
 * reads them with their parent. */
Result read_columns(Connection& connection)
{
    return connection.query(R"(
        WITH RECURSIVE bigints (typ) AS (
            SELECT 'bigint'::regtype::oid
            UNION ALL
            SELECT t.oid FROM pg_type AS t JOIN bigints ON t.typbasetype = typ)
        SELECT k.shard, c.oid::regclass, quote_ident(a.attname), c.oid, a.attname, n.oid, n.nspname
        FROM snowflake_internal.calls() AS k
        JOIN pg_class AS c ON k.classid = 'pg_class'::regclass AND c.oid = k.objid
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.objsubid
        JOIN bigints ON typ = a.atttypid
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
          AND (n.nspname, k.shard) IN (SELECT schema_name, shard FROM ()" +
                            open_shards_sql(connection) + R"() AS open)
        ORDER BY c.oid::regclass::text, 3)");
}

/* IDs of other shards in the column of a table, its children and its partitions. A query of these
 * tables would run code of their owners while it is planned, so other_ids() reads each of them.
 * Those of a subscription are left out: the rows may have been made at the other side. With
 * publish_via_partition_root the subscription has the parent alone, so nothing below such a table
 * is read, either. The column is looked up by its name, because a child may have it at another
 * attnum. Partitioned and foreign tables have no rows here, and temporary ones may be of another
 * session: other_ids() raises an error for these. MATERIALIZED, because the planner could call it
 * before it joins pg_class. UNION, because a table may have several parents. */
Result count_other_ids(Connection& connection, const std::string& shard, const std::string& table,
                       const std::string& column, int sample)
{
    return connection.query(R"(
        WITH RECURSIVE tables (tbl) AS (
            SELECT $2::oid
            UNION
            SELECT i.inhrelid FROM pg_inherits AS i JOIN tables ON i.inhparent = tbl
            WHERE NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid = tbl)),
        readable AS MATERIALIZED (
            SELECT tbl, a.attnum
            FROM tables
            JOIN pg_class AS c ON c.oid = tbl AND c.relkind = 'r' AND c.relpersistence <> 't'
            JOIN pg_attribute AS a ON a.attrelid = tbl AND a.attname = $3
            WHERE NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid = tbl))
        SELECT coalesce(sum(o.count), 0), min(o.smallest)
        FROM readable CROSS JOIN LATERAL snowflake_internal.other_ids(tbl, attnum, $1::integer, $4::integer) AS o)",
                            {shard, table, column, std::to_string(sample)});
}

/* After one wait for a lock: a shard may have any number of tables. */
void leave_out(Connection& connection, const std::string& schema, const Shard& shard,
               Report& report)
{
    const std::string holder = find_locked(connection)[schema];
    report.locked[schema] = holder;
    warn(report.server + ": " + shard.title() + ": its IDs are not all looked at, because it is " +
         (holder.empty() ? "locked" : holder));
}

void check_ids(Connection& connection, bool is_full, Progress& progress, Report& report)
{
    const Result columns = read_columns(connection);
    progress.expect(static_cast<std::size_t>(columns.rows()));
    for (int i = 0; i < columns.rows(); i++, progress.step()) {
        const std::string shard = columns.text(i, 0);
        const std::string table = columns.text(i, 1);
        const std::string column = columns.text(i, 2);
        if (report.locked.count(columns.text(i, 5)) > 0)
            continue;
        Result ids(nullptr);
        try {
            ids = count_other_ids(connection, shard, columns.text(i, 3), columns.text(i, 4),
                                  is_full ? 0 : kSample);
        } catch (const ServerError& error) {
            if (error.sqlstate != kLockTimeout)
                throw;
            leave_out(connection, columns.text(i, 5),
                      Shard{static_cast<int>(columns.number(i, 0)), columns.text(i, 6)}, report);
            continue;
        }
        const auto count = static_cast<std::size_t>(ids.number(0, 0));
        if (count > 0)
            report.findings.rows.push_back({"id", report.server, table + "." + column,
                                            count_of(count, "ID") + " not of shard " + shard +
                                                ", the smallest is " + ids.text(0, 1),
                                            "SELECT * FROM " + table + " WHERE (" + column +
                                                " >> 10) & 8191 <> " + shard + ";"});
    }
}

/* The values of snowflake.shard, that of the session and those of roles, where snowflake_next_id()
 * without arguments is called by an object or was called: then it has drawn from its sequence.
 * Without that condition a server that only has the setting, as from a common configuration file,
 * would be a finding. shard_settings() returns NULL for a value that is no shard. */
std::vector<int> read_settings(Connection& connection)
{
    const Result rows = connection.query(R"(
        SELECT DISTINCT shard
        FROM snowflake_internal.shard_settings() CROSS JOIN snowflake_internal.id_seq() AS seq
        WHERE shard IS NOT NULL
          AND ((snowflake_internal.stored_value(seq)).is_called
               OR EXISTS (SELECT FROM snowflake_internal.calls() AS k
                          WHERE k.shard IS NULL AND k.seq = seq.seq)))");
    std::vector<int> settings;
    for (int i = 0; i < rows.rows(); i++)
        settings.push_back(static_cast<int>(rows.number(i, 0)));
    return settings;
}

Report verify_server(Connection& connection, bool is_full, Progress& progress)
{
    /* Rows that a policy hides are an error here, not left out. Read-only transactions, so that no
     * function that is called on the way can write. */
    connection.run("SET row_security = off; SET default_transaction_read_only = on; " +
                   lock_timeout_sql("10s", false));
    warn_of_citus(connection);
    const std::vector<Shard> shards = read_shards(connection);
    Report report = {connection.address().text(), shards, read_settings(connection)};
    add_rows(report.findings,
             connection.query("SELECT 'check', $1::text, " + as_utf8_sql("object") + ", " +
                                  as_utf8_sql("problem") + ", " + as_utf8_sql("hint") +
                                  " FROM snowflake_internal.findings()",
                              {report.server}));
    check_ids(connection, is_full, progress, report);
    add_rows(report.findings, find_invalid_indexes(connection));
    add_rows(report.findings, find_disabled_keys(connection));
    add_rows(report.findings, find_leftovers(connection));
    for (const MoveFinding& found : find_moves(connection))
        report.findings.rows.push_back(
            {found.kind, report.server, found.object, found.problem, found.hint});
    return report;
}

/* A number is in use on a server: "schema insta5" or "the setting snowflake.shard". */
struct Place {
    std::string server;
    std::string maker;
};

/* Two makers on one server are found by snowflake_check(), with the objects. A number that three
 * servers have is a finding on the second and on the third, each with the first. */
void find_number_twice(std::map<int, Place>& places, Report& report, int number,
                       const std::string& maker, const std::string& hint)
{
    const Place& first = places.insert({number, {report.server, maker}}).first->second;
    if (first.server != report.server)
        report.findings.rows.push_back(
            {"shard", report.server, "shard " + std::to_string(number),
             "it is open as " + maker + " here and as " + first.maker + " at " + first.server,
             "Both can make the same IDs. " + hint});
}

void find_numbers_twice(std::vector<Report>& reports)
{
    std::map<int, Place> places;
    for (Report& report : reports) {
        for (const Shard& shard : report.shards)
            find_number_twice(
                places, report, shard.number, "schema " + shard.schema,
                "SELECT * FROM snowflake_sequences WHERE shard = " + std::to_string(shard.number) +
                    "; shows on each server when it made its last ID. Let clients write to one, "
                    "and add to it the rows that only the other has.");
        for (const int setting : report.settings)
            find_number_twice(
                places, report, setting, "the setting snowflake.shard",
                "SELECT * FROM pg_file_settings WHERE name = 'snowflake.shard'; TABLE "
                "pg_db_role_setting; show where it is set. Give each a number of its own: ALTER "
                "SYSTEM SET snowflake.shard = n; on each server, or ALTER DATABASE for databases "
                "of one server.");
    }
}

} // namespace

int verify_shards(const VerifyOptions& options)
{
    ServerSet servers(options.dsns, Access::reads, options.keep_going);
    std::vector<Report> reports;
    {
        /* In a block of its own: its line on the terminal is erased before findings are printed. */
        Progress progress("verify (columns)");
        reports = servers.on_all([&](Connection& connection) {
            return verify_server(connection, options.full, progress);
        });
    }
    /* After all servers, because it compares them. A server that has failed is not in the reports,
     * and the exit code is 3 then. */
    find_numbers_twice(reports);
    ComparedCopies copies;
    if (options.rows)
        copies = compare_copies(servers);
    std::size_t shards = 0;
    bool is_all = copies.is_all;
    Table all = {reports[0].findings.columns, {}};
    for (const Report& report : reports) {
        shards += report.shards.size();
        is_all = is_all && report.locked.empty();
        all.rows.insert(all.rows.end(), report.findings.rows.begin(), report.findings.rows.end());
    }
    for (const auto& [server, found] : copies.findings)
        all.rows.push_back({found.kind, server, found.object, found.problem, found.hint});
    print_findings(all, options.json,
                   count_of(shards, "shard") + " on " + count_of(reports.size(), "server"));
    return servers.exit_code(!is_all ? kFailed : all.rows.empty() ? kDone : kFound);
}
