#include "definition/copy.h"

#include "definition/marks.h"
#include "sql/sql.h"

namespace
{

/* The elements of search_path as SQL writes them, and whether one is the name. A comma separates
 * two of them if an even number of quotes follows: otherwise it is in a name. The setting is text,
 * so pg_dump wrote the template's name, and a rename of the schema does not change it.
 *
 * An element without quotes can have any character, a semicolon too, if the setting was taken from
 * a session (SET ... FROM CURRENT). SplitIdentifierString() reads it in lower case. */
const char* const kSettings = R"(
SELECT format('ALTER ROUTINE %s SET search_path TO ', oid::regprocedure), n, name, name = $2
FROM pg_proc, unnest(proconfig) AS setting,
     regexp_split_to_table(substring(setting, '^search_path=(.*)$'),
                           '\s*,\s*(?=(?:[^"]*"[^"]*")*[^"]*$)') WITH ORDINALITY AS s (e, n),
     LATERAL (SELECT CASE WHEN e = '""' THEN quote_literal('') WHEN e ~ '^"([^"]|"")+"$' THEN e
                          ELSE quote_ident(lower(e)) END) AS q (name)
WHERE pronamespace = $1::regnamespace ORDER BY oid, n)";

/* The comment of snowflake_create_shard() on next_id(). A comment of a user stays. */
const char* const kComments = R"(
SELECT format('COMMENT ON FUNCTION %s IS ''next ID of shard ', oid::regprocedure)
FROM pg_proc WHERE pronamespace = $1::regnamespace AND obj_description(oid, 'pg_proc') = 'next ID of shard ' || $2)";

/* A mark in a name or in a constant would be replaced within its quotes. */
std::string checked(const std::string& text)
{
    if (text.find_first_of({kNameMark, kNumberMark}) != std::string::npos)
        throw Failure(
            "a name or an expression has a control character, and cannot be cloned:\n    " + text);
    return text;
}

std::string objects_of(Connection& connection, const Shard& copy)
{
    const Result rows = connection.query(renumbering_sql, {copy.quoted});
    std::string drops;
    std::string makes;
    for (int i = 0; i < rows.rows(); i++) {
        const std::string make = checked(rows.text(i, 2));
        const std::string marked = mark_number(make, copy.number);
        /* Without the number of the shard: it stays as the dump has made it. */
        if (marked == make)
            continue;
        drops += checked(rows.text(i, 1));
        /* A parent's constraint takes that of its partition over, if it is there. */
        makes = marked + "\n" + makes;
    }
    return drops + makes;
}

std::string settings_of(Connection& connection, const Shard& copy, const Shard& named)
{
    const Result rows = connection.query(kSettings, {copy.quoted, named.quoted});
    std::string statements;
    /* A row is an element: the first one begins the statement of its function, and the last one
     * ends it. */
    for (int i = 0; i < rows.rows(); i++)
        statements += (rows.number(i, 1) > 1 ? ", " : checked(rows.text(i, 0))) +
                      (rows.flag(i, 3) ? std::string(1, kNameMark) : checked(rows.text(i, 2))) +
                      (i + 1 == rows.rows() || rows.number(i + 1, 1) == 1 ? ";\n" : "");
    return statements;
}

} // namespace

std::string renumbering_of(Connection& connection, const Shard& copy, const Shard& named)
{
    /* In this order: CREATE OR REPLACE FUNCTION has the old search_path in it, and the ALTER
     * ROUTINE after it sets the new one. */
    std::string statements = objects_of(connection, copy) + settings_of(connection, copy, named);
    const Result rows = connection.query(kComments, {copy.quoted, std::to_string(copy.number)});
    for (int i = 0; i < rows.rows(); i++)
        statements += checked(rows.text(i, 0)) + kNumberMark + "';\n";
    return statements;
}
