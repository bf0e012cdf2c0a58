/* snowflake-shard verify: what is wrong on each server, and shards that are open on two.
 *
 * An ID carries its shard. So the same ID on two servers is of a shard that is open on both, or of
 * a wrong shard on one of them: it is found without a comparison of the servers' IDs. */

#include <iostream>
#include <map>

#include "catalog.h"
#include "output.h"
#include "verbs.h"

namespace
{

struct Finding {
    std::string kind; /* check, id, leftover, shard */
    std::string server;
    std::string object;
    std::string problem;
    std::string hint; /* the statement or command that mends it */
};

struct ServerReport {
    std::string server;
    std::vector<Shard> shards;
    std::vector<Finding> findings;

    void add(const std::string& kind, const std::string& object, const std::string& problem,
             const std::string& hint)
    {
        findings.push_back({kind, server, object, problem, hint});
    }
    /* Rows of object, problem and hint. */
    void add(const std::string& kind, const Result& found)
    {
        for (int i = 0; i < found.rows(); i++)
            add(kind, found.text(i, 0), found.text(i, 1), found.text(i, 2));
    }
};

/* The columns whose DEFAULT makes IDs of a shard; names are as SQL writes them. */
Result read_columns(Connection& connection)
{
    return connection.query(R"(
        SELECT n.nspname, k.shard, c.oid::regclass, quote_ident(a.attname), least(100, 1e6 / greatest(c.reltuples, 1)),
               EXISTS (SELECT FROM pg_index AS i
                       WHERE i.indrelid = c.oid AND i.indkey[0] = a.attnum AND i.indisvalid AND i.indpred IS NULL
                         AND pg_index_column_has_property(i.indexrelid, 1, 'orderable'))
        FROM snowflake_internal.calls() AS k
        JOIN pg_class AS c ON k.classid = 'pg_class'::regclass AND c.oid = k.objid
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.objsubid
        JOIN pg_type AS t ON t.oid = a.atttypid
        WHERE 'bigint'::regtype IN (t.oid, t.typbasetype) AND k.shard IS NOT NULL
          AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_temp_'
        ORDER BY 1, 2, 3, 4)");
}

/* The IDs to look at: all of them, or a sample of about 10,000 and both ends of the index. Numbers
 * below 2^53 are no IDs of this scheme: an attached table keeps the keys that it had. */
std::string ids_of(const std::string& table, const std::string& column, const std::string& percent,
                   bool has_index, bool is_full)
{
    const std::string select = "SELECT " + column + "::bigint AS id FROM " + table;
    const std::string judged = " WHERE " + column + " >= 1::bigint << 53";
    if (is_full)
        return select + judged;
    std::string ids =
        "(" + select + " TABLESAMPLE SYSTEM (" + percent + ")" + judged + " LIMIT 20000)";
    if (has_index)
        for (const char* direction : {"", " DESC"})
            ids += " UNION ALL (" + select + judged + " ORDER BY " + column + direction +
                   " LIMIT 100)";
    return ids;
}

void check_ids(Connection& connection, bool is_full, Progress& progress, ServerReport& report)
{
    const std::set<std::string> closed = closed_schemas(connection);
    const Result columns = read_columns(connection);
    progress.expect(static_cast<std::size_t>(columns.rows()));
    for (int i = 0; i < columns.rows(); i++, progress.step()) {
        if (closed.count(columns.text(i, 0)) > 0)
            continue;
        const std::string shard = columns.text(i, 1);
        const std::string table = columns.text(i, 2);
        const std::string column = columns.text(i, 3);
        const Result ids = connection.query(
            "SELECT count(DISTINCT id), min(id) FROM (" +
            ids_of(table, column, columns.text(i, 4), columns.flag(i, 5), is_full) +
            ") AS ids WHERE (id >> 10) & 8191 <> " + shard);
        const auto count = static_cast<std::size_t>(ids.number(0, 0));
        if (count > 0)
            report.add("id", table + "." + column,
                       count_of(count, "ID") + " not of shard " + shard + ", the smallest is " +
                           ids.text(0, 1),
                       "SELECT * FROM " + table + " WHERE (" + column + " >> 10) & 8191 <> " +
                           shard + ";");
    }
}

/* A shard that has left with its move at the end is no leftover: it waits for --drop-source. */
void find_moves(Connection& connection, ServerReport& report)
{
    for (const MoveState& move : read_moves(connection)) {
        const bool is_source = move.step == "prepared" || move.step == "fenced";
        const std::string from = is_source ? report.server : move.other;
        const std::string to = is_source ? move.other : report.server;
        if (move.step != "moved")
            report.add("leftover", "schema snowflake_move_" + std::to_string(move.shard),
                       "a move was interrupted, or is running now: " + move.step,
                       "snowflake-shard move " + move.schema + " --from " + from + " --to " + to +
                           " --resume, or --abort");
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
        SELECT format('%s %s', kind, name), 'it is of a move that is not there any more', format(hint, name)
        FROM of_moves
        WHERE name ~ '^snowflake_move_[0-9]+(_|$)'
          AND substring(name, '^snowflake_move_[0-9]+') NOT IN (SELECT nspname FROM pg_namespace)
        UNION ALL
        SELECT format('schema %s', nspname), 'a clone was killed, or is running now', format('DROP SCHEMA %I CASCADE;', nspname)
        FROM pg_namespace
        WHERE nspname = 'snowflake_clone_scratch')");
}

ServerReport verify_server(Connection& connection, bool is_full, Progress& progress)
{
    /* Rows that a policy hides are an error here, not left out. */
    connection.run("SET row_security = off; SET default_transaction_read_only = on");
    ServerReport report = {connection.server(), read_shards(connection), {}};
    report.add("check", connection.query("SELECT object, problem, hint FROM " +
                                         extension_schema(connection) +
                                         ".snowflake_check() WHERE severity = 'error'"));
    check_ids(connection, is_full, progress, report);
    report.add("leftover", find_leftovers(connection));
    find_moves(connection, report);
    return report;
}

/* Two schemas of one server are found by snowflake_check(). */
void find_shards_twice(std::vector<ServerReport>& reports)
{
    std::map<int, std::pair<std::string, Shard>> places;
    for (ServerReport& report : reports)
        for (const Shard& shard : report.shards) {
            const auto place = places.insert({shard.number, {report.server, shard}}).first;
            const auto& [server, first] = place->second;
            if (server != report.server)
                report.add("shard", "shard " + std::to_string(shard.number),
                           "it is open as schema " + shard.schema + " here and as schema " +
                               first.schema + " at " + server,
                           "Both can make the same IDs. Keep the one that clients write to, add "
                           "the rows that only the other has, and drop the other: DROP SCHEMA " +
                               shard.quoted + " CASCADE; here, or DROP SCHEMA " + first.quoted +
                               " CASCADE; at " + server);
        }
}

std::vector<ServerReport> read_servers(const Options& options)
{
    Progress progress("verify (columns)");
    return on_all_servers(options.dsns, [&](Connection& connection, std::size_t) {
        return verify_server(connection, options.full, progress);
    });
}

} // namespace

int verify_shards(const Options& options)
{
    std::vector<ServerReport> reports = read_servers(options);
    find_shards_twice(reports);

    std::size_t shards = 0;
    Table table = {{"finding", "server", "object", "problem", "hint"}, {}};
    for (const ServerReport& report : reports) {
        shards += report.shards.size();
        for (const Finding& each : report.findings) {
            table.rows.push_back({each.kind, each.server, each.object, each.problem, each.hint});
            if (!options.json)
                std::cout << each.server << ": " << each.object << ": " << each.problem
                          << "\n    HINT:  " << each.hint << "\n";
        }
    }
    if (options.json)
        print(table, Format::json);
    else
        std::cout << count_of(shards, "shard") << " on " << count_of(reports.size(), "server")
                  << ", " << count_of(table.rows.size(), "finding") << "\n";
    return table.rows.empty() ? kDone : kFound;
}
