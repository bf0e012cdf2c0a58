#include "verbs/rights.h"

#include "base/quoting.h"
#include "base/shards.h"
#include "postgres/error_text.h"
#include "postgres/values.h"

namespace
{

/* owned: the schema public belongs to pg_database_owner, which stands for the owner of the
 * database, as in become_owner_of_schema() of the library.
 *
 * planted: objects by which a role that is no superuser can catch names of the SQL in the schema of
 * a superuser, where they would run with the rights of a superuser. A table of another role is none
 * of them: SQL that names it runs its triggers, as any query of that table does. A type that is no
 * domain has no code. */
const char* const kRights = R"(
WITH owned AS (
    SELECT n.oid, nspname, nspacl, r.oid AS owner, r.rolname, r.rolsuper
    FROM pg_namespace AS n JOIN pg_database AS d ON d.datname = current_database()
    JOIN pg_roles AS r ON r.oid = CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END),
others AS (
    SELECT r.oid FROM pg_roles AS r JOIN pg_database AS d ON d.datname = current_database()
    JOIN pg_roles AS a ON a.oid = CASE r.oid WHEN 'pg_database_owner'::regrole THEN datdba ELSE r.oid END
    WHERE NOT a.rolsuper),
planted AS (
    SELECT o.oid AS schema, min(format('%s may create objects in it', CASE grantee WHEN 0 THEN 'every role'
                                                                      ELSE format('role %I', pg_get_userbyid(grantee)) END)) AS reason
    FROM owned AS o CROSS JOIN aclexplode(nspacl)
    WHERE rolsuper AND privilege_type = 'CREATE' AND (grantee = 0 OR grantee IN (TABLE others))
    GROUP BY o.oid
    UNION ALL
    SELECT schema, min(format('role %I owns %s', pg_get_userbyid(owner), pg_describe_object(class, object, 0)))
    FROM (SELECT relnamespace, relowner, tableoid, oid FROM pg_class WHERE relkind IN ('v', 'm', 'f')
          UNION ALL SELECT pronamespace, proowner, tableoid, oid FROM pg_proc
          UNION ALL SELECT oprnamespace, oprowner, tableoid, oid FROM pg_operator
          UNION ALL SELECT typnamespace, typowner, tableoid, oid FROM pg_type WHERE typtype = 'd') AS p (schema, owner, class, object)
    WHERE schema IN (SELECT oid FROM owned WHERE rolsuper) AND owner IN (TABLE others)
    GROUP BY schema)
SELECT nspname, quote_ident(rolname), rolname <> current_user AND NOT rolsuper AND pg_has_role(owner, $1),
       quote_ident(nspname), CASE WHEN current_setting('is_superuser') = 'on' THEN reason END,
       (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'snowflake')
FROM owned LEFT JOIN (SELECT schema, min(reason) AS reason FROM planted GROUP BY schema) AS p ON schema = oid)";

} // namespace

std::map<std::string, Rights> read_rights(Connection& connection)
{
    /* The right that SET ROLE asks for: a membership has had the option SET since 16. */
    const Result rows =
        connection.query(kRights, {connection.version() >= 160000 ? "SET" : "MEMBER"});
    std::map<std::string, Rights> rights;
    for (int i = 0; i < rows.rows(); i++) {
        Rights& of_schema = rights[rows.text(i, 0)];
        of_schema = {rows.flag(i, 2), rows.text(i, 1), "", rows.text(i, 5)};
        const std::string schema = visible(rows.text(i, 3));
        if (!rows.is_null(i, 4))
            of_schema.problem =
                "schema " + schema + " belongs to superuser " + visible(of_schema.owner) +
                ", and " + visible(rows.text(i, 4)) +
                ": code of that role would run with the rights of a superuser\nHINT:  ALTER "
                "SCHEMA " +
                schema + " OWNER TO ...; gives it to a role that is no superuser.";
    }
    return rights;
}

void run_as_owner(Connection& connection, const Shard& shard, const std::string& sql)
{
    try {
        connection.query("SELECT snowflake_internal.run_as_owner($1::regnamespace, $2)",
                         {shard.quoted, sql});
    } catch (const ServerError& error) {
        throw ServerError(without_text(error.what(), sql.substr(0, sql.find('\n'))),
                          error.sqlstate);
    }
}

namespace
{

/* The arguments of columns_as_owner() and rows_as_owner(). */
std::string arguments_of(Connection& connection, const Shard& shard, const std::string& sql,
                         const Parameters& parameters)
{
    std::string arguments =
        connection.literal(shard.quoted) + "::regnamespace, " + connection.literal(sql);
    for (const std::string& parameter : parameters)
        arguments += ", " + parameter + "::bigint";
    return arguments;
}

} // namespace

std::vector<Column> read_columns_as_owner(Connection& connection, const Shard& shard,
                                          const std::string& sql, const Parameters& parameters)
{
    const Result rows =
        connection.query("SELECT name, type FROM snowflake_internal.columns_as_owner(" +
                         arguments_of(connection, shard, sql, parameters) + ")");
    std::vector<Column> columns;
    for (int i = 0; i < rows.rows(); i++)
        columns.push_back({rows.text(i, 0), static_cast<unsigned int>(rows.number(i, 1))});
    if (columns.empty())
        throw Failure("the query has no columns");
    return columns;
}

std::string rows_as_owner_sql(Connection& connection, const Shard& shard, const std::string& sql,
                              const Parameters& parameters, std::size_t columns)
{
    /* A function that returns records takes the types of its columns from the query. */
    std::string list;
    for (std::size_t i = 1; i <= columns; i++)
        list += (i == 1 ? "c" : ", c") + std::to_string(i) + " text";
    return "SELECT * FROM snowflake_internal.rows_as_owner(" +
           arguments_of(connection, shard, sql, parameters) + ") AS r (" + list + ")";
}

/* A superuser does not expect to lack a right.
 *
 * search_path has no schema but the shard's: behind it, DROP TABLE IF EXISTS would find a table of
 * another schema in each shard that lacks one of that name. */
std::string explained(const ServerError& error, const Rights& rights)
{
    const std::string insufficient_privilege = "42501";
    const std::string undefined_function = "42883";
    const std::string undefined_table = "42P01";
    std::string text = without_text(error.what(), "DECLARE snowflake_rows ");
    if (rights.is_as_owner && error.sqlstate == insufficient_privilege)
        text += "\nThe SQL works with the rights of role " + visible(rights.owner) +
                ", which owns the schema.";
    if ((error.sqlstate == undefined_function &&
         text.find("function snowflake_") != std::string::npos) ||
        (error.sqlstate == undefined_table &&
         text.find("relation \"snowflake_") != std::string::npos))
        text += "\nsearch_path has the shard's schema alone: write " +
                visible(rights.extension_schema) + ".snowflake_...";
    return text;
}
