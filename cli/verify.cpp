/* snowflake-shard verify: what is wrong on each server, and shards that are open on two.
 *
 * An ID carries its shard. So the same ID on two servers is of a shard that is open on both, or of
 * a wrong shard on one of them: it is found without a comparison of the servers' IDs. */

#include <iostream>
#include <map>

#include "catalog.h"
#include "copy.h"
#include "output.h"
#include "verbs.h"

namespace
{

struct Report {
    std::string server;
    std::vector<Shard> shards;
    /* The hint is the statement or command that mends it. */
    Table findings = {{"finding", "server", "object", "problem", "hint"}, {}};
};

/* Rows of a table that are looked at, where not all are. */
constexpr int kSample = 10000;

/* The columns whose DEFAULT makes IDs of a shard; names are as SQL writes them. */
Result read_columns(Connection& connection)
{
    return connection.query(R"(
        SELECT k.shard, c.oid::regclass, quote_ident(a.attname), c.oid, a.attname
        FROM snowflake_internal.calls() AS k
        JOIN pg_class AS c ON k.classid = 'pg_class'::regclass AND c.oid = k.objid
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.objsubid
        JOIN pg_type AS t ON t.oid = a.atttypid
        WHERE 'bigint'::regtype IN (t.oid, t.typbasetype) AND c.relkind IN ('r', 'p') AND NOT c.relispartition
          AND (c.relnamespace, k.shard) IN (SELECT quote_ident(schema_name)::regnamespace, shard FROM ()" +
                            open_shards_sql(connection) + R"() AS open)
        ORDER BY c.oid::regclass::text, 3)");
}

/* IDs of other shards in the column of a table, its children and its partitions. A query of these
 * tables would run code of their owners while it is planned, so other_ids() reads each of them. */
Result count_other_ids(Connection& connection, const std::string& shard, const std::string& table,
                       const std::string& column, int sample)
{
    return connection.query(R"(
        WITH RECURSIVE tables (tbl) AS (
            SELECT $2::oid
            UNION
            SELECT i.inhrelid FROM pg_inherits AS i JOIN tables ON i.inhparent = tbl)
        SELECT coalesce(sum(o.count), 0), min(o.smallest)
        FROM tables
        JOIN pg_class AS c ON c.oid = tbl AND c.relkind = 'r' AND c.relpersistence <> 't'
        JOIN pg_attribute AS a ON a.attrelid = tbl AND a.attname = $3
        CROSS JOIN LATERAL snowflake_internal.other_ids(tbl, a.attnum, $1::integer, $4::integer) AS o)",
                            {shard, table, column, std::to_string(sample)});
}

void check_ids(Connection& connection, bool is_full, Progress& progress, Report& report)
{
    const Result columns = read_columns(connection);
    progress.expect(static_cast<std::size_t>(columns.rows()));
    for (int i = 0; i < columns.rows(); i++, progress.step()) {
        const std::string shard = columns.text(i, 0);
        const std::string table = columns.text(i, 1);
        const std::string column = columns.text(i, 2);
        const Result ids = count_other_ids(connection, shard, columns.text(i, 3),
                                           columns.text(i, 4), is_full ? 0 : kSample);
        const auto count = static_cast<std::size_t>(ids.number(0, 0));
        if (count > 0)
            report.findings.rows.push_back({"id", report.server, table + "." + column,
                                            count_of(count, "ID") + " not of shard " + shard +
                                                ", the smallest is " + ids.text(0, 1),
                                            "SELECT * FROM " + table + " WHERE (" + column +
                                                " >> 10) & 8191 <> " + shard + ";"});
    }
}

/* host:port/database as a connection string. A host is the folder of a socket, too. */
std::string uri_of(const std::string& server)
{
    const std::size_t host_end = server.rfind('/');
    std::string uri = "postgresql://";
    for (const char c : server.substr(0, host_end))
        uri += c == '/' ? "%2F" : std::string(1, c);
    return uri + server.substr(host_end);
}

/* A shard that has left with its move at the end is no leftover: it waits for --drop-source. */
void find_moves(Connection& connection, Report& report)
{
    for (const MoveState& move : read_moves(connection)) {
        const bool is_source = move.step == "prepared" || move.step == "fenced";
        const std::string from = is_source ? report.server : move.other;
        const std::string to = is_source ? move.other : report.server;
        if (move.step != "moved")
            report.findings.rows.push_back(
                {"leftover", report.server, "schema snowflake_move_" + std::to_string(move.shard),
                 "a move was interrupted, or is running now: " + move.step,
                 "snowflake-shard move " + move.schema + " --from " + uri_of(from) + " --to " +
                     uri_of(to) + " --resume, or --abort"});
    }
}

Result find_leftovers(Connection& connection)
{
    return connection.query(R"(
        WITH of_moves (kind, name, hint) AS (
            SELECT 'publication', pubname, 'DROP PUBLICATION %I;'
            FROM pg_publication
            UNION ALL
            SELECT 'subscription', subname, 'ALTER SUBSCRIPTION %1$I DISABLE; '
                   'ALTER SUBSCRIPTION %1$I SET (slot_name = NONE); DROP SUBSCRIPTION %1$I;'
            FROM pg_subscription
            WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
            UNION ALL
            SELECT 'slot', slot_name, 'SELECT pg_drop_replication_slot(%L);'
            FROM pg_replication_slots
            WHERE database = current_database())
        SELECT 'leftover', $1::text, format('%s %s', kind, name), 'it is of a move that is not there any more',
               format(hint, name)
        FROM of_moves
        WHERE name ~ '^snowflake_move_[0-9]+(_|$)'
          AND substring(name, '^snowflake_move_[0-9]+') NOT IN (SELECT nspname FROM pg_namespace)
        UNION ALL
        SELECT 'leftover', $1, format('schema %s', nspname), 'a clone was killed, or is running now',
               format('DROP SCHEMA %I CASCADE;', nspname)
        FROM pg_namespace
        WHERE nspname ~ $2)",
                            {connection.server(), kCopyPattern});
}

Report verify_server(Connection& connection, bool is_full, Progress& progress)
{
    /* Rows that a policy hides are an error here, not left out. */
    connection.run("SET row_security = off; SET default_transaction_read_only = on");
    Report report = {connection.server(), read_shards(connection)};
    report.findings.add(connection.query("SELECT 'check', $1::text, object, problem, hint FROM " +
                                             extension_schema(connection) +
                                             ".snowflake_check() WHERE severity = 'error'",
                                         {report.server}));
    check_ids(connection, is_full, progress, report);
    report.findings.add(find_leftovers(connection));
    find_moves(connection, report);
    return report;
}

/* Two schemas of one server are found by snowflake_check(). */
void find_shards_twice(std::vector<Report>& reports)
{
    std::map<int, std::pair<std::string, Shard>> places;
    for (Report& report : reports)
        for (const Shard& shard : report.shards) {
            const auto place = places.insert({shard.number, {report.server, shard}}).first;
            const auto& [server, first] = place->second;
            if (server != report.server)
                report.findings.rows.push_back(
                    {"shard", report.server, "shard " + std::to_string(shard.number),
                     "it is open as schema " + shard.schema + " here and as schema " +
                         first.schema + " at " + server,
                     "Both can make the same IDs. Keep the one that clients write to, add the "
                     "rows that only the other has, and drop the other: DROP SCHEMA " +
                         shard.quoted + " CASCADE; here, or DROP SCHEMA " + first.quoted +
                         " CASCADE; at " + server});
        }
}

} // namespace

int verify_shards(const Options& options)
{
    std::vector<Report> reports;
    {
        Progress progress("verify (columns)");
        reports = on_all_servers(options.dsns, [&](Connection& connection) {
            return verify_server(connection, options.full, progress);
        });
    }
    find_shards_twice(reports);
    std::size_t shards = 0;
    Table all = {reports[0].findings.columns, {}};
    for (const Report& report : reports) {
        shards += report.shards.size();
        all.rows.insert(all.rows.end(), report.findings.rows.begin(), report.findings.rows.end());
    }
    if (options.json) {
        print(all, Format::json);
    } else {
        for (const auto& row : all.rows) {
            std::cout << text_of(row[1]) << ": " << text_of(row[2]) << ": " << text_of(row[3])
                      << "\n    HINT:  " << text_of(row[4]) << "\n";
        }
        std::cout << count_of(shards, "shard") << " on " << count_of(reports.size(), "server")
                  << ", " << count_of(all.rows.size(), "finding") << "\n";
    }
    return all.rows.empty() ? kDone : kFound;
}
