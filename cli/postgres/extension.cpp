#include "postgres/extension.h"

#include "base/quoting.h"

namespace
{

const std::string kVersion = SNOWFLAKE_VERSION;
/* This command works with the extension of these versions. */
const char* const kVersions = "{1.2}";
const std::string kVersionsText = "1.2";

} // namespace

bool has_extension(Connection& connection)
{
    return connection.query("SELECT FROM pg_extension WHERE extname = 'snowflake'").rows() > 0;
}

std::string extension_schema(Connection& connection)
{
    const Result schema = connection.query(
        "SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'snowflake'");
    if (schema.rows() == 0)
        throw Failure(connection.server() + ": the extension is not installed there.\n"
                                            "HINT:  CREATE EXTENSION snowflake;");
    /* The output of regnamespace is quoted where that is needed, so it can stand in SQL. */
    return schema.text(0, 0);
}

std::string closed_extension_schema(Connection& connection)
{
    /* Without an ACL only the owner can. PUBLIC is the grantee 0. */
    const Result schema = connection.query(R"(
        SELECT n.oid::regnamespace FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace
        WHERE extname = 'snowflake'
          AND NOT EXISTS (SELECT FROM aclexplode(nspacl)
                          WHERE privilege_type = 'CREATE' AND grantee <> nspowner))");
    return schema.rows() == 0 ? "" : schema.text(0, 0);
}

void require_extension(Connection& connection)
{
    const Result other = connection.query("SELECT extversion FROM pg_extension WHERE extname = "
                                          "'snowflake' AND extversion <> ALL ($1::text[])",
                                          {kVersions});
    if (other.rows() > 0)
        throw Failure(connection.server() + ": extension snowflake has version " +
                      visible(other.text(0, 0)) + ", and this command works with " + kVersionsText +
                      "\nHINT:  ALTER EXTENSION snowflake UPDATE TO '" + kVersion +
                      "'; or take the snowflake-shard of that version.");
}
