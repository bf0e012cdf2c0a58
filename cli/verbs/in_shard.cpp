#include "verbs/in_shard.h"

#include "base/quoting.h"
#include "postgres/error_text.h"
#include "postgres/extension.h"

namespace
{

void require_worker(Connection& connection, const Shard& shard)
{
    try {
        begin_in_shard(connection, shard, "");
    } catch (const ServerError& error) {
        if (error.sqlstate == kInsufficientResources || !connection.is_alive())
            throw Failure(error.what());
    }
}

} // namespace

void require_workers(Connection& first, std::list<Connection>& more, const Shard& shard)
{
    require_worker(first, shard);
    for (Connection& connection : more)
        require_worker(connection, shard);
}

void begin_in_shard(Connection& connection, const Shard& shard, const std::string& commands)
{
    connection.query(std::string("SELECT snowflake_internal.session_begin($1::oid, $2 ") +
                         kWithLockTimeout + ")",
                     {shard.oid, commands});
}

void reopen_if_lost(Connection& connection)
{
    try {
        if (!connection.is_alive())
            connection.reopen();
    } catch (const Failure&) {
        /* The error of the statement that lost it is told, and says more. */
    }
}

namespace
{

/* search_path leaves out a schema without the right. */
std::string missing_right(Connection& connection, const Shard& shard)
{
    const Result found = connection.query(R"(
        SELECT format(E'\nDETAIL:  Role %1$I has no right USAGE on schema %2$I, so no object of it is found.'
                      '\nHINT:  GRANT USAGE ON SCHEMA %2$I TO %1$I;', pg_get_userbyid(nspowner), nspname)
        FROM pg_namespace WHERE oid = $1::oid AND NOT has_schema_privilege(nspowner, oid, 'USAGE'))",
                                          {shard.oid});
    return found.rows() == 0 ? "" : visible(found.text(0, 0), "\n");
}

} // namespace

/* search_path has no schema but the shard's: behind it, DROP TABLE IF EXISTS would find a table of
 * another schema in each shard that lacks one of that name. */
std::string explained(const ServerError& error, Connection& connection, const Shard& shard)
{
    std::string text = without_text(error.what(), "DECLARE snowflake_rows ");
    if (connection.is_alive() &&
        (error.sqlstate == kUndefinedFunction || error.sqlstate == kUndefinedTable))
        text += missing_right(connection, shard);
    if (connection.is_alive() && ((error.sqlstate == kUndefinedFunction &&
                                   text.find("function snowflake_") != std::string::npos) ||
                                  (error.sqlstate == kUndefinedTable &&
                                   text.find("relation \"snowflake_") != std::string::npos)))
        text += "\nsearch_path has the shard's schema alone: write " +
                extension_schema(connection) + ".snowflake_...";
    return text;
}
