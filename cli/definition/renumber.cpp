#include "definition/copy.h"

#include "definition/marks.h"

namespace
{

/* The statement that drops an object, the one that makes it again, and the owner's part of its
 * text. Constraints of partitions come after those of their parents, because pg_dump makes the
 * parents first. ONLY: a DEFAULT of a parent would replace those of its children, and each of them
 * has its own row of pg_attrdef. SET DEFAULT of a generated column is an error. A function is
 * replaced, so its owner, its privileges and the objects that call it stay. An inherited constraint
 * (not conislocal) goes and comes with that of its parent; alone it cannot be dropped. The comment
 * of a constraint is lost with it, so it is made again; COMMENT names a table without the word
 * TABLE, and a domain with DOMAIN. */
const char* const kStatements = R"(
SELECT oid, '' AS drop, format('ALTER TABLE ONLY %s ALTER COLUMN %I SET DEFAULT %s;', name, attname, pg_get_expr(adbin, adrelid)) AS make
FROM (SELECT d.oid, adrelid::regclass AS name, adbin, adrelid, adnum FROM pg_attrdef AS d JOIN pg_class AS c ON c.oid = adrelid
      WHERE relnamespace = $1::regnamespace) AS d
JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE attgenerated = ''
UNION ALL
SELECT oid, '', pg_get_functiondef(oid) || ';' FROM pg_proc WHERE pronamespace = $1::regnamespace AND prosqlbody IS NOT NULL
UNION ALL
SELECT oid, '', format('ALTER DOMAIN %s SET DEFAULT %s;', oid::regtype, pg_get_expr(typdefaultbin, 0))
FROM pg_type WHERE typnamespace = $1::regnamespace AND typtype = 'd' AND typdefaultbin IS NOT NULL
UNION ALL
SELECT c.oid, format('ALTER %s DROP CONSTRAINT %I;', parent, conname),
       format('ALTER %s ADD CONSTRAINT %I %s;', parent, conname, pg_get_constraintdef(c.oid)) ||
       coalesce(format('COMMENT ON CONSTRAINT %I ON %s IS %L;', conname, regexp_replace(parent, '^TABLE ', ''),
                       obj_description(c.oid, 'pg_constraint')), '')
FROM pg_constraint AS c, LATERAL (
    SELECT CASE WHEN contypid = 0 THEN format('TABLE %s', conrelid::regclass) ELSE format('DOMAIN %s', contypid::regtype) END) AS o (parent)
WHERE connamespace = $1::regnamespace AND contype = 'c' AND (conislocal OR contypid <> 0)
ORDER BY 1)";

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
    const Result rows = connection.query(kStatements, {copy.quoted});
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
