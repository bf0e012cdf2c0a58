#include "verify.h"

namespace
{

std::vector<IdColumn> read_columns(Connection& connection)
{
    const Result rows = connection.query(
        "SELECT k.shard, quote_ident(n.nspname), c.oid::regclass, quote_ident(a.attname), k.seq, "
        "k.epoch_ms, "
        "EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indkey[0] = a.attnum "
        "AND i.indisvalid AND i.indpred IS NULL), greatest(c.reltuples, 0) "
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
    std::vector<IdColumn> columns;
    for (int i = 0; i < rows.rows(); i++)
        columns.push_back({rows.text(i, 0), rows.text(i, 1), rows.text(i, 2), rows.text(i, 3),
                           rows.text(i, 4), rows.text(i, 5), rows.flag(i, 6),
                           std::stod(rows.text(i, 7))});
    return columns;
}

/* The IDs to look at: all of them, or a sample of about 10,000 and both ends of the index. */
std::string id_source(const IdColumn& column, bool is_full)
{
    constexpr double kSample = 10000;
    const std::string select = "SELECT " + column.column + "::bigint AS id FROM " + column.table;
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

} // namespace

ServerReport verify_server(Connection& connection, bool is_full, Progress& progress)
{
    /* Rows that a policy hides are an error here, not left out. */
    connection.run("SET row_security = off; SET default_transaction_read_only = on");
    ServerReport report = {
        connection.server(), read_shards(connection), read_columns(connection), {}};
    find_leftovers(connection, report);
    progress.expect(report.columns.size());
    for (const IdColumn& column : report.columns) {
        check_column(connection, column, is_full, report);
        progress.step();
    }
    return report;
}
