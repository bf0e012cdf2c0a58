#include "replication/needed.h"

#include <algorithm>
#include <map>
#include <set>

#include "sql/sql.h"

namespace
{

/* Catalogue and identity: OIDs of catalogues are those of all servers. */
using Key = std::pair<std::string, std::string>;

struct Needed {
    Key key;
    std::string schema;
    std::string user; /* an object of the definition */
    bool is_owner;    /* a role, of that object */
    std::string extension;

    const std::string& identity() const { return key.second; }
};

struct Found {
    std::string kind;    /* function, enum type ... */
    std::string keyword; /* of SQL: FUNCTION, TYPE ... */
    std::string owner;   /* as SQL writes it */
    bool is_trusted;     /* the owner counts as a superuser */
    bool is_superuser;
};

std::vector<Needed> read_needed(Connection& source, const std::string& schemas,
                                const std::string& tables)
{
    std::vector<Needed> needed;
    const Result rows = source.query(needed_sql, {schemas, tables});
    for (int i = 0; i < rows.rows(); i++)
        needed.push_back({{rows.text(i, 0), rows.text(i, 2)},
                          rows.text(i, 1),
                          rows.text(i, 3),
                          rows.flag(i, 4),
                          rows.text(i, 5)});
    return needed;
}

std::map<Key, Found> find(Connection& connection, const std::vector<Needed>& needed)
{
    std::vector<std::string> catalogs;
    std::vector<std::string> schemas;
    std::vector<std::string> identities;
    for (const Needed& one : needed) {
        catalogs.push_back(one.key.first);
        schemas.push_back(one.schema);
        identities.push_back(one.identity());
    }
    const Result rows = connection.query(
        found_sql, {sql_array(catalogs), sql_array(schemas), sql_array(identities)});
    std::map<Key, Found> found;
    for (int i = 0; i < rows.rows(); i++)
        found[{rows.text(i, 0), rows.text(i, 1)}] = {
            rows.text(i, 2), rows.text(i, 3), rows.text(i, 4), rows.flag(i, 5), rows.flag(i, 6)};
    return found;
}

class Check
{
public:
    Check(Connection& source, Connection& target, const std::vector<Needed>& needed)
        : source_(source.server()), target_(target), in_source_(find(source, needed)),
          in_target_(find(target, needed))
    {
        for (const Needed& one : needed) /* one that was dropped meanwhile is in neither */
            if (const auto there = in_source_.find(one.key); there != in_source_.end())
                compare(one, there->second);
    }

    const Obstacles& found() const { return found_; }

private:
    void add(const std::string& problem, const std::string& hint)
    {
        found_.add(target_.server(), visible(problem), visible(hint));
    }

    void compare(const Needed& needed, const Found& there)
    {
        const auto here = in_target_.find(needed.key);
        if (here == in_target_.end())
            add_missing(needed, there);
        else if (here->second.kind != there.kind)
            add(needed.identity() + " is of kind " + here->second.kind + ", and of kind " +
                    there.kind + " on " + source_ + ": " + needed.user + " needs it",
                "Make it as on " + source_ + ".");
        else
            compare_owners(needed, there, here->second);
    }

    void add_missing(const Needed& needed, const Found& there)
    {
        const std::string owner = owner_here(there);
        /* The missing extension is told. */
        if (!needed.extension.empty() && !has_extension(needed.extension))
            return;
        std::string hint = "Make it as on " + source_ + ", with owner " + owner + ".";
        if (there.kind == "role" || there.kind == "extension")
            hint = "CREATE " + there.keyword + " " + needed.identity() + ";";
        else if (there.kind == "schema")
            hint = "CREATE SCHEMA " + needed.identity() + " AUTHORIZATION " + owner + ";";
        else if (!needed.extension.empty())
            hint = "Have extension " + needed.extension + " in the same version and schema as on " +
                   source_ + ": ALTER EXTENSION " + needed.extension + " ...;";
        add(there.kind + " " + needed.identity() + " does not exist, and " + needed.user +
                " needs it",
            hint);
    }

    void compare_owners(const Needed& needed, const Found& there, const Found& here)
    {
        const bool is_place = there.kind == "schema";
        if (here.owner == there.owner) {
            if (here.is_superuser != there.is_superuser && !is_place &&
                (there.kind != "role" || needed.is_owner) && told_.insert(here.owner).second)
                add_superuser(needed, there, here);
        } else if (there.kind != "extension" &&
                   !(here.is_trusted && (there.is_trusted || is_place)))
            add(there.kind + " " + needed.identity() + " belongs to role " + here.owner +
                    ", and to role " + there.owner + " on " + source_ + "; " + needed.user +
                    " needs it",
                "If it is the same as on " + source_ + ": ALTER " + there.keyword + " " +
                    needed.identity() + " OWNER TO " + owner_here(there) +
                    "; If not, make it anew.");
    }

    void add_superuser(const Needed& needed, const Found& there, const Found& here)
    {
        add("role " + here.owner +
                (here.is_superuser ? " has the rights of a superuser, and not on "
                                   : " has not the rights of a superuser that it has on ") +
                source_ + ", and owns " +
                (there.kind == "role" ? needed.user : there.kind + " " + needed.identity()),
            "On " + source_ +
                ", give the objects of that role to one that is no superuser on either server: "
                "ALTER ... OWNER TO.");
    }

    bool has_extension(const std::string& name) const
    {
        return std::any_of(in_target_.begin(), in_target_.end(), [&](const auto& one) {
            return one.first.second == name && one.second.kind == "extension";
        });
    }

    /* For a superuser of the source the role of the target's session. */
    std::string owner_here(const Found& there) const
    {
        return there.is_trusted ? target_.identifier(target_.user()) : there.owner;
    }

    const std::string source_;
    const Connection& target_;
    const std::map<Key, Found> in_source_;
    const std::map<Key, Found> in_target_;
    Obstacles found_;
    std::set<std::string> told_; /* roles */
};

Obstacles find_differences(Connection& source, Connection& target, const std::string& schemas,
                           const std::string& tables)
{
    return Check(source, target, read_needed(source, schemas, tables)).found();
}

} // namespace

Obstacles find_needed(Connection& source, Connection& target, const Shards& shards)
{
    return find_differences(source, target, schemas_of(shards), "{}");
}

Obstacles find_needed_of_tables(Connection& source, Connection& target, const std::string& tables)
{
    return find_differences(source, target, "{}", tables);
}
