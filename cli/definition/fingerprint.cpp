#include "definition/fingerprint.h"

#include "postgres/error_text.h"
#include "sql/sql.h"

namespace
{

const char* const kNoBounds =
    "(SELECT 0::oid AS sequence, 0 AS low, 0 AS high, 0 AS start, false AS cycles)";

void put(std::string& text, const std::string& mark, const std::string& expression)
{
    text.replace(text.find(mark), mark.size(), expression);
}

} // namespace

std::string fingerprint_body(const std::string& schemas, const std::string& record,
                             const std::string& result)
{
    std::string body = fingerprint_sql;
    put(body, "@schemas@", schemas);
    put(body, "@bounds@", record.empty() ? kNoBounds : record + ".bounds");
    put(body, "@result@", result);
    return body;
}

/* DO has no result, and a function would take the right to make one. A schema that is gone has no
 * rows. */
std::string fingerprint_of(Connection& connection, const Shards& shards, const std::string& record)
{
    const std::string sql =
        "DO $do$" +
        fingerprint_body("ARRAY(SELECT to_regnamespace(s) FROM unnest(" +
                             connection.literal(schemas_of(shards)) + "::text[]) AS s)",
                         record,
                         "PERFORM set_config('snowflake_shard.fingerprint', fingerprint, false)") +
        "$do$; SELECT current_setting('snowflake_shard.fingerprint')";
    return while_doing(kFingerprinting, [&] {
        try {
            return connection.run(sql).text(0, 0);
        } catch (const ServerError& error) {
            throw ServerError(without_text(error.what(), "fingerprint := ("), error.sqlstate);
        }
    });
}
