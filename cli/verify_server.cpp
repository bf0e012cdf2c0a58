#include "verify.h"

namespace
{

std::vector<IdColumn> read_columns(Connection& connection)
{
    const Result rows = connection.query(
        "SELECT k.shard, quote_ident(n.nspname), quote_ident(c.relname), quote_ident(a.attname), "
        "k.seq::text, k.epoch_ms, EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid "
        "AND i.indkey[0] = a.attnum AND i.indisvalid AND i.indpred IS NULL), greatest(c.reltuples, "
        "0) "
        "FROM " +
        extension_schema(connection) +
        ".snowflake_columns AS k "
        "JOIN pg_namespace AS n ON n.nspname = k.schema_name "
        "JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = k.table_name "
        "JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = k.column_name "
        "JOIN pg_type AS t ON t.oid = a.atttypid "
        "WHERE 'bigint'::regtype IN (t.oid, t.typbasetype) "
        "AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_temp_' "
        "ORDER BY 1, 2, 3, 4");
    std::vector<IdColumn> columns;
    for (int i = 0; i < rows.rows(); i++) {
        std::optional<int> shard;
        if (!rows.is_null(i, 0))
            shard = static_cast<int>(rows.number(i, 0));
        columns.push_back({shard, rows.text(i, 1), rows.text(i, 2), rows.text(i, 3),
                           rows.text(i, 4), rows.text(i, 5), rows.flag(i, 6),
                           std::stod(rows.text(i, 7))});
    }
    return columns;
}

/* The IDs to look at: all of them, or a sample of about 10,000 and both ends of the index. */
std::string id_source(const IdColumn& column, bool is_full)
{
    const std::string select =
        "SELECT " + column.column + "::bigint AS id FROM " + column.qualified_table();
    if (is_full)
        return select;
    constexpr double kSample = 10000;
    const double percent = column.rows <= kSample ? 100 : 100 * kSample / column.rows;
    const std::string ends = column.has_index
                                 ? " UNION ALL (" + select + " ORDER BY " + column.column +
                                       " LIMIT 100)" + " UNION ALL (" + select + " ORDER BY " +
                                       column.column + " DESC NULLS LAST LIMIT 100)"
                                 : "";
    return "(" + select + " TABLESAMPLE SYSTEM (" + std::to_string(percent) + ") LIMIT 20000)" +
           ends;
}

/* Numbers below 2^53 are no IDs of this scheme: an attached table keeps the keys that it had. */
void check_ids(Connection& connection, const IdColumn& column, bool is_full, ServerReport& report)
{
    const std::string shard = std::to_string(*column.shard);
    const Result ids = connection.query(
        "SELECT count(DISTINCT id) FILTER (WHERE shard <> " + shard +
        "), min(id) FILTER (WHERE shard <> " + shard + "), max(id) FILTER (WHERE shard = " + shard +
        ") FROM (SELECT id, (id >> 10) & 8191 AS shard FROM (" + id_source(column, is_full) +
        ") AS s WHERE id >= 9007199254740992) AS ids");
    const std::string object = column.qualified_table() + "." + column.column;
    if (ids.number(0, 0) > 0)
        report.findings.push_back({"id", report.server, object,
                                   count_of(static_cast<std::size_t>(ids.number(0, 0)), "ID") +
                                       " of other shards than " + shard + ", the smallest is " +
                                       ids.text(0, 1),
                                   "SELECT * FROM " + column.qualified_table() + " WHERE (" +
                                       column.column + " >> 10) & 8191 <> " + shard + ";"});
    if (column.sequence.empty() || column.epoch_ms.empty() || ids.is_null(0, 2))
        return;
    /* Read after the IDs: a session that draws meanwhile only moves it up. */
    const std::string largest = ids.text(0, 2);
    const Result sequence = connection.query(
        "SELECT s.value IS NULL OR s.value < CASE WHEN s.value >= 9007199254740992 THEN $1::bigint "
        "ELSE (($1::bigint >> 23) + $2::bigint) << 10 | ($1::bigint & 1023) END "
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
    if (connection.query("SELECT FROM pg_namespace WHERE nspname = 'snowflake_clone_scratch'")
            .rows() > 0)
        report.findings.push_back(
            {"leftover", report.server, "schema snowflake_clone_scratch",
             "a clone was killed, or is running now",
             "DROP SCHEMA snowflake_clone_scratch CASCADE; the next clone does it, too"});
}

} // namespace

ServerReport verify_server(Connection& connection, bool is_full, Progress& progress)
{
    /* Rows that a policy hides are an error here, not left out. */
    connection.run("SET row_security = off; SET default_transaction_read_only = on");
    ServerReport report;
    report.server = connection.server();
    report.shards = read_shards(connection);
    report.columns = read_columns(connection);
    find_leftovers(connection, report);
    progress.expect(report.columns.size());
    for (const IdColumn& column : report.columns) {
        if (column.shard)
            check_ids(connection, column, is_full, report);
        progress.step();
    }
    return report;
}
