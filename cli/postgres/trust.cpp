#include "postgres/trust.h"

namespace
{

/* The owner of a table can give it rules and triggers, and the owner of a function its body.
 * Indexes and types belong to the owner of their table. */
std::string objects_of(const std::string& pattern)
{
    return R"(
        WITH schemas AS (SELECT tableoid, oid, nspowner FROM pg_namespace WHERE nspname ~ )" +
           pattern + R"()
        SELECT oid AS schema, tableoid AS class, oid AS object, nspowner AS owner FROM schemas
        UNION ALL
        SELECT relnamespace, c.tableoid, c.oid, relowner FROM pg_class AS c JOIN schemas ON schemas.oid = relnamespace
        UNION ALL
        SELECT pronamespace, p.tableoid, p.oid, proowner FROM pg_proc AS p JOIN schemas ON schemas.oid = pronamespace)";
}

} // namespace

std::string is_trusted(const std::string& owner)
{
    return owner + " IN (SELECT oid FROM pg_roles WHERE rolsuper OR rolname = current_user)";
}

std::string untrusted_schemas(const std::string& pattern)
{
    return "SELECT schema FROM (" + objects_of(pattern) + ") AS o WHERE NOT " + is_trusted("owner");
}

Result untrusted_objects(Connection& connection, const std::string& pattern)
{
    return connection.query("SELECT DISTINCT ON (schema) pg_describe_object(class, object, 0), "
                            "quote_ident(pg_get_userbyid(owner)), schema::regnamespace FROM (" +
                            objects_of(pattern) + ") AS o WHERE NOT " + is_trusted("owner") +
                            " ORDER BY schema, class <> 'pg_namespace'::regclass, class, object");
}

void require_trusted_schema(Connection& connection, const std::string& schema)
{
    const Result found =
        untrusted_objects(connection, "('^' || " + connection.literal(schema) + " || '$')");
    if (found.rows() > 0)
        throw Failure(found.text(0, 0) + " on " + connection.server() + " belongs to role " +
                      found.text(0, 1) +
                      ", which is neither this role nor a superuser\nHINT:  If that role has begun "
                      "it by this command, connect as that role. Else: DROP SCHEMA " +
                      schema + " CASCADE;");
}

std::string keeping_to_owner(const std::string& schema)
{
    return R"(
DO $do$
DECLARE
    schema_oid CONSTANT oid := ')" +
           schema + R"('::regnamespace;
    other text;
BEGIN
    FOR other IN
        SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END
        FROM (SELECT nspacl, nspowner FROM pg_namespace WHERE oid = schema_oid
              UNION ALL SELECT relacl, relowner FROM pg_class WHERE relnamespace = schema_oid) AS o (acl, owner),
             aclexplode(acl) WHERE grantee <> owner AND grantee <> ALL (SELECT subowner FROM pg_subscription WHERE subname = ')" +
           schema + R"(')
    LOOP
        EXECUTE format('REVOKE CREATE ON SCHEMA )" +
           schema + R"( FROM %s', other);
        EXECUTE format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON ALL TABLES IN SCHEMA )" +
           schema + R"( FROM %s', other);
    END LOOP;
END $do$;
)";
}
