#include "replication/owners.h"

#include <algorithm>

#include "base/match.h"
#include "postgres/session.h"

namespace
{

/* The server's messages have no schema. No row if there are several objects of the name $2. */
const char* const kWithSchema = R"(
SELECT min(name) FROM (
    SELECT oid::regclass::text FROM pg_class WHERE $1 = 'table' AND relname = $2
    UNION ALL SELECT oid::regprocedure::text FROM pg_proc WHERE $1 = 'function' AND proname = $2
    UNION ALL SELECT oid::regtype::text FROM pg_type WHERE $1 IN ('type', 'domain') AND typname = $2) AS o (name)
HAVING count(*) = 1)";

/* role: as PostgreSQL quotes it in a message. */
bool is_superuser(Connection& connection, const std::string& role)
{
    return connection
               .query("SELECT FROM pg_roles WHERE format('\"%s\"', rolname) = $1 AND NOT rolsuper",
                      {role})
               .rows() == 0;
}

} // namespace

std::vector<OwnersItems> parts_of(std::vector<Archive::Item> items)
{
    std::stable_partition(items.begin(), items.end(), [](const Archive::Item& item) {
        return item.kind == Archive::Item::Kind::privileges_of_schema;
    });
    std::vector<OwnersItems> parts;
    for (const Archive::Item& item : items) {
        if (item.kind == Archive::Item::Kind::schema)
            continue;
        if (parts.empty() || parts.back().owner != item.owner)
            parts.push_back({item.owner, {}});
        parts.back().items.push_back(item);
    }
    return parts;
}

void begin_of_owner(Connection& connection, const std::string& owner,
                    std::chrono::milliseconds lock_timeout)
{
    connection.run("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = " +
                   std::to_string(lock_timeout.count()));
    begin_session(connection, owner,
                  connection.timeouts_sql("SET", "0") +
                      "; BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
}

void commit_of_owner(Connection& connection)
{
    commit_session(connection);
    connection.run("COMMIT");
}

void make_items(Connection& connection, const Archive& archive,
                const std::vector<Archive::Item>& items, const std::string& last)
{
    for (const OwnersItems& part : parts_of(items)) {
        begin_of_owner(connection, part.owner);
        run_in_session(connection, archive.sql(part.items));
        if (!last.empty())
            run_in_session(connection, last);
        commit_of_owner(connection);
    }
}

std::string remedy_of_right(Connection& connection, const std::string& message,
                            const std::string& role)
{
    const std::string owner = connection.identifier(role);
    if (const auto other = match(message, "^must be (member of role|able to SET ROLE) (.*)$");
        !other.empty())
        return "Give the object to role " + owner + ", which owns its schema: ALTER ... OWNER TO." +
               (is_superuser(connection, other[2])
                    ? ""
                    : " Or, if that role may have all rights of role " + other[2] + ": GRANT " +
                          other[2] + " TO " + owner + ";");
    const auto object =
        match(message, "^permission denied for (table|function|schema|foreign server|type|domain|"
                       "language|sequence|tablespace) (.*)$");
    if (object.empty())
        return "Role " + owner +
               " makes the shard there. Grant it the right, or change the shard on the source.";
    std::string kind = object[1];
    const std::string right = kind == "table"        ? "REFERENCES"
                              : kind == "function"   ? "EXECUTE"
                              : kind == "tablespace" ? "CREATE"
                                                     : "USAGE";
    std::transform(kind.begin(), kind.end(), kind.begin(), ::toupper);
    const Result name = connection.query(kWithSchema, {object[1], object[2]});
    return "If its owner trusts role " + owner + ", which makes the shard: GRANT " + right +
           " ON " + kind + " " + (name.rows() > 0 ? name.text(0, 0) : object[2]) + " TO " + owner +
           ";";
}
