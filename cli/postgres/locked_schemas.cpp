#include "postgres/locked_schemas.h"

/* is_callers() locks the schema. That of a superuser has no owner to exchange names, and the
 * function refuses one in which others may create objects. The owner of the database stands for
 * pg_database_owner. */
bool lock_schemas(Connection& connection, const std::string& names, const std::string& schemas,
                  SchemaLock lock)
{
    connection.query(R"(
        SELECT count(snowflake_internal.is_callers(n.oid)) FROM pg_namespace AS n JOIN pg_database ON datname = current_database()
        JOIN pg_roles AS r ON r.oid = CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END
        WHERE n.oid = ANY ($1::oid[]) AND NOT rolsuper)",
                     {schemas});
    if (lock == SchemaLock::kWithRow &&
        connection.query("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").flag(0, 0))
        connection.query("SELECT FROM pg_namespace WHERE oid = ANY ($1::oid[]) FOR SHARE",
                         {schemas});
    return connection
        .query("SELECT ARRAY(SELECT to_regnamespace(n)::oid FROM unnest($1::text[]) WITH "
               "ORDINALITY AS u (n, i) ORDER BY i) = $2::oid[]",
               {names, schemas})
        .flag(0, 0);
}
