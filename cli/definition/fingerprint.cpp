#include "definition/fingerprint.h"

#include "sql/sql.h"

std::string fingerprint_body(const std::string& schemas, const std::string& result)
{
    std::string body = fingerprint_sql;
    body.replace(body.find("@schemas@"), 9, schemas);
    return body.replace(body.find("@result@"), 8, result);
}

/* DO has no result, and a function would take the right to make one. A schema that is gone has no
 * rows. */
std::string fingerprint_of(Connection& connection, const Shards& shards)
{
    return connection
        .run("DO $do$" +
             fingerprint_body("ARRAY(SELECT to_regnamespace(s) FROM unnest(" +
                                  connection.literal(schemas_of(shards)) + "::text[]) AS s)",
                              "PERFORM set_config('snowflake_shard.fingerprint', fingerprint, "
                              "false)") +
             "$do$; SELECT current_setting('snowflake_shard.fingerprint')")
        .text(0, 0);
}
