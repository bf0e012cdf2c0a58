#include "postgres/extension.h"

#include "base/quoting.h"

namespace
{

const std::string kVersion = SNOWFLAKE_VERSION;
/* This command works with the extension of these versions. */
const char* const kVersions = "{1.2}";
const std::string kVersionsText = "1.2";

/* All functions of snowflake_internal that this command calls. test/t/030_cli.pl compares. */
const char* const kFunctions =
    "{advance,call_of,calls,checked_calls,claim_shards,copy_rows,digest,ends_transaction,"
    "file_size,fire_key,foreign_code,has_statements,id_seq,is_citus_copy,"
    "keep_extension,lock_schema,lock_sequence,min_id,other_ids,sequences,session_alone,"
    "session_begin,session_comment,session_create_schema,session_fetch,session_of_role,session_problem,"
    "session_problem_of,session_query,session_rename_schema,session_rows,session_run,"
    "session_script,settled_id,shard_settings,stored_rows,stored_value,told_to}";

/* One row, or none if the extension is missing. */
Result read_extension(Connection& connection)
{
    return connection.query(
        R"(
        SELECT extversion, extversion = ANY ($1::text[]),
               (SELECT string_agg(name, ', ') FROM unnest($2::text[]) AS name
                WHERE NOT EXISTS (SELECT FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = pronamespace
                                  WHERE proname = name AND nspname = 'snowflake_internal'))
        FROM pg_extension WHERE extname = 'snowflake')",
        {kVersions, kFunctions});
}

void require_functions(const Connection& connection, const Result& extension)
{
    if (!extension.is_null(0, 2))
        throw Failure(connection.server() +
                      ": extension snowflake was made by an earlier build of version " +
                      extension.text(0, 0) + ", and lacks " + extension.text(0, 2) +
                      " of snowflake_internal\nHINT:  Restore a dump of the database into a new "
                      "one: it gets the extension that is installed now. Or take the "
                      "snowflake-shard of that build.");
}

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
    const Result extension = read_extension(connection);
    if (extension.rows() == 0)
        return;
    if (!extension.flag(0, 1))
        throw Failure(connection.server() + ": extension snowflake has version " +
                      visible(extension.text(0, 0)) + ", and this command works with " +
                      kVersionsText + "\nHINT:  ALTER EXTENSION snowflake UPDATE TO '" + kVersion +
                      "'; or take the snowflake-shard of that version.");
    require_functions(connection, extension);
}

void require_build(Connection& connection)
{
    const Result extension = read_extension(connection);
    if (extension.rows() > 0 && extension.flag(0, 1))
        require_functions(connection, extension);
}
