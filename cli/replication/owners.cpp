#include "replication/owners.h"

#include <algorithm>

#include "postgres/session.h"

namespace
{

/* role: as PostgreSQL quotes it in a message. */
bool is_superuser(Connection& connection, const std::string& role)
{
    return connection
               .query("SELECT FROM pg_roles WHERE format('\"%s\"', rolname) = $1 AND NOT rolsuper",
                      {role})
               .rows() == 0;
}

/* The rest of the text, if it begins so. */
bool has_rest(const std::string& text, const std::string& begin, std::string& rest)
{
    if (text.compare(0, begin.size(), begin) != 0)
        return false;
    rest = text.substr(begin.size());
    return true;
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
    const std::string trusted = "If its owner trusts role " + owner + ", which makes the shard: ";
    std::string name;
    for (const char* const begin : {"must be member of role ", "must be able to SET ROLE "})
        if (has_rest(message, begin, name))
            return "On the source, give the object to role " + owner +
                   ", which owns its schema: ALTER ... OWNER TO." +
                   (is_superuser(connection, name)
                        ? ""
                        : " Or, if that role may have all rights of role " + name + ": GRANT " +
                              name + " TO " + owner + ";");
    const std::vector<std::pair<std::string, std::string>> kinds = {
        {"table", "REFERENCES ON TABLE"},
        {"function", "EXECUTE ON FUNCTION"},
        {"schema", "USAGE ON SCHEMA"},
        {"foreign server", "USAGE ON FOREIGN SERVER"},
        {"type", "USAGE ON TYPE"},
        {"domain", "USAGE ON DOMAIN"},
        {"language", "USAGE ON LANGUAGE"},
        {"sequence", "USAGE ON SEQUENCE"},
        {"tablespace", "CREATE ON TABLESPACE"}};
    for (const auto& [kind, right] : kinds)
        if (has_rest(message, "permission denied for " + kind + " ", name))
            return trusted + "GRANT " + right + " " + name + " TO " + owner + ";";
    return "Role " + owner +
           " makes the shard there. Grant it the right, or change the shard on the source.";
}
