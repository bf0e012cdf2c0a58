#include "postgres/row_text.h"

namespace
{

/* The columns of the primary key of $1. Those after indnkeyatts are of INCLUDE, and not of it. */
const std::string kFromKey = R"(
        FROM pg_index, unnest(indkey) WITH ORDINALITY AS k (number, place)
        JOIN pg_attribute ON attnum = number
        WHERE indrelid = $1::regclass AND indisprimary AND attrelid = indrelid
        AND place <= indnkeyatts)";

} // namespace

/* extra_float_digits = 1 writes floats exactly. The type money is written by lc_monetary. */
std::string value_text_settings(const std::string& set)
{
    std::string settings;
    for (const char* const setting :
         {"DateStyle = ISO", "IntervalStyle = postgres", "extra_float_digits = 1",
          "bytea_output = hex", "lc_monetary = 'C'"})
        settings += set + " " + setting + "; ";
    return settings;
}

void set_row_text(Connection& connection)
{
    connection.run(value_text_settings("SET") + "SET TimeZone = UTC; SET xmlbinary = base64");
}

std::string row_text_of(Connection& connection, const std::string& table)
{
    return connection
        .query(R"(
            SELECT concat('ROW(', string_agg('t.' || quote_ident(attname), ', ' ORDER BY attname), ')::text')
            FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped)",
               {table})
        .text(0, 0);
}

std::string key_of(Connection& connection, const std::string& table)
{
    /* COLLATE is an error for a type that has no collation. */
    return connection
        .query(R"(
        SELECT string_agg(quote_ident(attname) ||
                          CASE WHEN attcollation <> 0 THEN ' COLLATE "C"' ELSE '' END,
                          ', ' ORDER BY place))" +
                   kFromKey,
               {table})
        .text(0, 0);
}

KeyColumns key_columns_of(Connection& connection, const std::string& table)
{
    const Result key = connection.query(R"(
        SELECT CASE WHEN max(atttypid) < 16384 THEN string_agg(quote_ident(attname), ', ' ORDER BY place) END,
               string_agg(format('%I::text AS %1$I', attname), ', ' ORDER BY place),
               string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY place))" +
                                            kFromKey,
                                        {table});
    return {key.text(0, 0), key.text(0, 1), key.text(0, 2)};
}

Result read_rows(Connection& connection, const std::string& table, const std::string& sql,
                 int columns)
{
    std::string list;
    for (int i = 1; i <= columns; i++)
        list += (i == 1 ? "c" : ", c") + std::to_string(i) + " text";
    return connection.query(
        "SELECT * FROM snowflake_internal.session_rows($1::regclass, $2) AS r (" + list + ")",
        {table, sql});
}
