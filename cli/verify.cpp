/* snowflake-shard verify: no shard twice, every ID its schema's shard, every sequence above its
 * IDs, no ID on two servers. */

#include <iostream>
#include <map>

#include "catalog.h"
#include "output.h"
#include "verbs.h"

namespace
{

struct Finding {
    std::string kind; /* shard, id, sequence, leftover */
    std::string server;
    std::string object;
    std::string problem;
    std::string hint; /* the statement or command that mends it */
};

/* A bigint column whose DEFAULT makes IDs of a shard. Names are as SQL writes them. */
struct IdColumn {
    std::string shard;
    std::string schema;
    std::string table; /* with its schema */
    std::string column;
    std::string sequence; /* empty: not a constant */
    std::string epoch_ms;
    bool has_index; /* whose first column it is */
    double rows;    /* estimate */
};

struct ServerReport {
    std::string server;
    std::vector<Shard> shards;
    std::vector<IdColumn> columns;
    std::vector<Finding> findings;
};

std::vector<IdColumn> read_columns(Connection& connection)
{
    const Result rows = connection.query(
        "SELECT k.shard, quote_ident(n.nspname), c.oid::regclass, quote_ident(a.attname), k.seq, "
        "k.epoch_ms, "
        "EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indkey[0] = a.attnum "
        "AND i.indisvalid AND i.indpred IS NULL), greatest(c.reltuples, 0), n.nspname "
        "FROM " +
        extension_schema(connection) +
        ".snowflake_columns AS k "
        "JOIN pg_namespace AS n ON n.nspname = k.schema_name "
        "JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = k.table_name "
        "JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = k.column_name "
        "JOIN pg_type AS t ON t.oid = a.atttypid "
        "WHERE 'bigint'::regtype IN (t.oid, t.typbasetype) AND k.shard IS NOT NULL "
        "AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_temp_' ORDER "
        "BY 1, 2, 3, 4");
    const std::set<std::string> closed = closed_schemas(connection);
    std::vector<IdColumn> columns;
    for (int i = 0; i < rows.rows(); i++)
        if (closed.count(rows.text(i, 8)) == 0)
            columns.push_back({rows.text(i, 0), rows.text(i, 1), rows.text(i, 2), rows.text(i, 3),
                               rows.text(i, 4), rows.text(i, 5), rows.flag(i, 6),
                               std::stod(rows.text(i, 7))});
    return columns;
}

/* The IDs to look at: all of them, or a sample of about 10,000 and both ends of the index. */
std::string id_source(const IdColumn& column, bool is_full)
{
    constexpr double kSample = 10000;
    std::string select = "SELECT " + column.column + "::bigint AS id FROM " + column.table;
    if (is_full)
        return select;
    const double percent = column.rows <= kSample ? 100 : 100 * kSample / column.rows;
    const std::string sample =
        "(" + select + " TABLESAMPLE SYSTEM (" + std::to_string(percent) + ") LIMIT 20000)";
    const std::string order = " ORDER BY " + column.column;
    return !column.has_index
               ? sample
               : sample + " UNION ALL (" + select + order + " LIMIT 100) UNION ALL (" + select +
                     order + " DESC NULLS LAST LIMIT 100)";
}

/* Numbers below 2^53 are no IDs of this scheme: an attached table keeps the keys that it had. */
void check_column(Connection& connection, const IdColumn& column, bool is_full,
                  ServerReport& report)
{
    const std::string object = column.table + "." + column.column;
    const Result ids = connection.query(
        "SELECT count(DISTINCT id) FILTER (WHERE shard <> $1::integer), min(id) FILTER (WHERE "
        "shard <> $1::integer), "
        "max(id) FILTER (WHERE shard = $1::integer) FROM (SELECT id, (id >> 10) & 8191 AS shard "
        "FROM (" +
            id_source(column, is_full) + ") AS s WHERE id >= 1::bigint << 53) AS ids",
        {column.shard});
    if (ids.number(0, 0) > 0)
        report.findings.push_back({"id", report.server, object,
                                   count_of(static_cast<std::size_t>(ids.number(0, 0)), "ID") +
                                       " not of shard " + column.shard + ", the smallest is " +
                                       ids.text(0, 1),
                                   "SELECT * FROM " + column.table + " WHERE (" + column.column +
                                       " >> 10) & 8191 <> " + column.shard + ";"});
    if (column.sequence.empty() || column.epoch_ms.empty() || ids.is_null(0, 2))
        return;
    /* A position below 2^53, or an ID that setval() stored. Read after the IDs: a session that
     * draws meanwhile only moves it up. */
    const std::string largest = ids.text(0, 2);
    const Result sequence = connection.query(
        "SELECT coalesce(value < CASE WHEN value >= 1::bigint << 53 THEN $1::bigint "
        "ELSE (($1::bigint >> 23) + $2::bigint) << 10 | ($1::bigint & 1023) END, true) "
        "FROM pg_sequence_last_value($3::regclass) AS s (value)",
        {largest, column.epoch_ms, column.sequence});
    if (sequence.flag(0, 0))
        report.findings.push_back({"sequence", report.server, column.sequence,
                                   "it is below " + largest + ", an ID of " + object,
                                   "SELECT snowflake_advance(" +
                                       connection.literal(column.sequence) + ", " + largest + ", " +
                                       column.epoch_ms + ");"});
}

void find_leftovers(Connection& connection, ServerReport& report)
{
    const std::string schema = "snowflake_clone_scratch";
    if (connection.query("SELECT FROM pg_namespace WHERE nspname = $1", {schema}).rows() > 0)
        report.findings.push_back({"leftover", report.server, "schema " + schema,
                                   "a clone was killed, or is running now",
                                   "DROP SCHEMA " + schema + " CASCADE;"});
}

/* A shard that has left with its move at the end is no leftover: it waits for --drop-source. */
void find_moves(Connection& connection, ServerReport& report)
{
    const auto options = [](const std::string& from, const std::string& to) {
        return " --from " + from + " --to " + to;
    };
    std::string known = "{-1";
    for (const MoveState& move : read_moves(connection))
        if (move.step != "moved") {
            known += "," + std::to_string(move.shard);
            const bool is_source = move.step == "prepared" || move.step == "fenced";
            const std::string servers =
                is_source ? options(report.server, move.other) : options(move.other, report.server);
            report.findings.push_back(
                {"leftover", report.server, "schema snowflake_move_" + std::to_string(move.shard),
                 "a move was interrupted, or is running now: " + move.step,
                 "snowflake-shard move " + move.schema + servers + " --resume, or --abort"});
        }
    const Result rows = connection.query(
        "WITH found AS (SELECT 'publication ' AS kind, pubname AS name, 'DROP PUBLICATION %1$I;' "
        "AS hint FROM pg_publication UNION ALL SELECT 'subscription ', subname, 'ALTER "
        "SUBSCRIPTION %1$I DISABLE; ALTER SUBSCRIPTION %1$I SET (slot_name = NONE); DROP "
        "SUBSCRIPTION %1$I;' FROM pg_subscription AS s JOIN pg_database AS d ON d.oid = s.subdbid "
        "WHERE d.datname = current_database() UNION ALL SELECT 'slot ', slot_name, 'SELECT "
        "pg_drop_replication_slot(%1$L);' FROM pg_replication_slots WHERE database = "
        "current_database()) SELECT kind || name, format(hint, name) FROM found WHERE name ~ "
        "'^snowflake_move_[0-9]+(_|$)' AND (regexp_match(name, '[0-9]+'))[1]::integer <> ALL "
        "($1::integer[])",
        {known + "}"});
    for (int i = 0; i < rows.rows(); i++)
        report.findings.push_back({"leftover", report.server, rows.text(i, 0),
                                   "it is of a move that is not there any more", rows.text(i, 1)});
}

/* IDs and sequences of one server, and what a clone that was killed has left there. */
ServerReport verify_server(Connection& connection, bool is_full, Progress& progress)
{
    /* Rows that a policy hides are an error here, not left out. */
    connection.run("SET row_security = off; SET default_transaction_read_only = on");
    ServerReport report = {
        connection.server(), read_shards(connection), read_columns(connection), {}};
    find_leftovers(connection, report);
    find_moves(connection, report);
    progress.expect(report.columns.size());
    for (const IdColumn& column : report.columns) {
        check_column(connection, column, is_full, report);
        progress.step();
    }
    return report;
}

struct Place {
    std::size_t server;
    Shard shard;
};

/* How many IDs of a column are on another server, too. They are compared from the largest down, a
 * batch at a time; without --full the first batch is all. */
std::size_t count_common(Connection& here, const IdColumn& a, Connection& there, const IdColumn& b,
                         bool is_full)
{
    constexpr int kBatch = 10000;
    std::size_t common = 0;
    std::string below = "9223372036854775807";
    for (bool is_more = true; is_more;) {
        const Result batch = here.query("SELECT min(id), array_agg(id), count(*) FROM (SELECT " +
                                            a.column + " AS id FROM " + a.table + " WHERE " +
                                            a.column + " < $1::bigint ORDER BY 1 DESC LIMIT " +
                                            std::to_string(kBatch) + ") AS s",
                                        {below});
        if (batch.is_null(0, 0))
            break;
        const Result found = there.query("SELECT count(*) FROM " + b.table + " WHERE " + b.column +
                                             " = ANY ($1::bigint[])",
                                         {batch.text(0, 1)});
        common += static_cast<std::size_t>(found.number(0, 0));
        below = batch.text(0, 0);
        is_more = is_full && batch.number(0, 2) == kBatch;
    }
    return common;
}

/* The tables that a shard has on two servers. */
void compare_places(const Options& options, const std::vector<ServerReport>& reports,
                    const Place& a, const Place& b, std::vector<Finding>& findings)
{
    Connection here(options.dsns[a.server]);
    Connection there(options.dsns[b.server]);
    for (const IdColumn& column : reports[a.server].columns)
        for (const IdColumn& other : reports[b.server].columns) {
            const bool is_same = column.schema == a.shard.quoted &&
                                 other.schema == b.shard.quoted && column.column == other.column &&
                                 column.table.substr(column.schema.size()) ==
                                     other.table.substr(other.schema.size());
            const std::size_t common =
                is_same ? count_common(here, column, there, other, options.full) : 0;
            if (common > 0)
                findings.push_back({"id", reports[a.server].server,
                                    column.table + "." + column.column,
                                    count_of(common, "ID") + " also on " + reports[b.server].server,
                                    "Drop the schema on the server that the shard has left."});
        }
}

void find_shards_twice(const Options& options, const std::vector<ServerReport>& reports,
                       std::vector<Finding>& findings)
{
    std::map<int, std::vector<Place>> shards;
    for (std::size_t i = 0; i < reports.size(); i++)
        for (const Shard& shard : reports[i].shards)
            shards[shard.number].push_back({i, shard});
    for (const auto& [number, places] : shards)
        for (std::size_t i = 1; i < places.size(); i++) {
            const Place& first = places[0];
            findings.push_back(
                {"shard", reports[places[i].server].server, "shard " + std::to_string(number),
                 "it is schema " + places[i].shard.schema + " here and schema " +
                     first.shard.schema + " at " + reports[first.server].server,
                 "A shard has one schema on one server: drop the one that is not used."});
            if (first.server != places[i].server)
                compare_places(options, reports, first, places[i], findings);
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
    const std::vector<ServerReport> reports = read_servers(options);
    std::vector<Finding> findings;
    std::size_t shards = 0;
    for (const ServerReport& report : reports) {
        findings.insert(findings.end(), report.findings.begin(), report.findings.end());
        shards += report.shards.size();
    }
    find_shards_twice(options, reports, findings);

    Table table = {{"finding", "server", "object", "problem", "hint"}, {}};
    for (const Finding& each : findings) {
        table.rows.push_back({each.kind, each.server, each.object, each.problem, each.hint});
        if (!options.json)
            std::cout << each.server << ": " << each.object << ": " << each.problem
                      << "\n    HINT:  " << each.hint << "\n";
    }
    if (options.json)
        print(table, Format::json);
    else
        std::cout << count_of(shards, "shard") << " on " << count_of(reports.size(), "server")
                  << ", " << count_of(findings.size(), "finding") << "\n";
    return findings.empty() ? kDone : kFound;
}
