#include "postgres/locked_schemas.h"

namespace
{

/* The schema of a superuser has no owner to exchange names. The owner of the database stands for
 * pg_database_owner. */
const char* const kLockObjects = R"(
SELECT count(snowflake_internal.lock_schema(n.oid)) FROM pg_namespace AS n JOIN pg_database ON datname = current_database()
JOIN pg_roles AS r ON r.oid = CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END
WHERE n.oid = ANY ($1::oid[]) AND NOT rolsuper)";

const char* const kLockRows = "SELECT FROM pg_namespace WHERE oid = ANY ($1::oid[]) FOR SHARE";

bool is_superuser(Connection& connection)
{
    return connection.query("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        .flag(0, 0);
}

} // namespace

bool lock_schemas(Connection& connection, const std::string& names, const std::string& schemas,
                  SchemaLock lock)
{
    const bool has_rows = lock == SchemaLock::row && is_superuser(connection);
    connection.query(has_rows ? kLockRows : kLockObjects, {schemas});
    return connection
        .query("SELECT ARRAY(SELECT to_regnamespace(n)::oid FROM unnest($1::text[]) WITH "
               "ORDINALITY AS u (n, i) ORDER BY i) = $2::oid[]",
               {names, schemas})
        .flag(0, 0);
}
