#include "move/rights.h"

#include "base/output.h"
#include "postgres/extension.h"
#include "sql/sql.h"

namespace
{

/* The owners of all shards, open or not. A temporary schema is no shard. */
const char* const kShardOwners = R"(
SELECT coalesce(array_agg(DISTINCT rolname), '{}')
FROM snowflake_internal.calls() AS k JOIN pg_namespace AS n ON n.oid = k.schema JOIN pg_database ON datname = current_database()
JOIN pg_roles AS r ON r.oid = CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END
WHERE k.is_direct AND nspname !~ '^pg_(toast_)?temp_')";

/* The roles with these names that gain rights if their code runs as the current role. A role that
 * is missing is an obstacle of its own. */
const char* const kGaining = R"(
SELECT rolname FROM pg_roles WHERE rolname = ANY ($1::name[]) AND NOT rolsuper AND rolname <> current_user)";

/* Why the workers write as the role of the move. Empty: they write as the owners. */
struct Cause {
    std::string text;
    std::string remedy;
};

Cause find_cause(const Connection& subscriber, Connection& home, const Shards& shards)
{
    if (subscriber.version() < 160000)
        return {"as all workers before PostgreSQL 16 do", ""};
    const Result table = home.query(not_as_owner_sql, {schemas_of(shards)});
    if (table.rows() == 0)
        return {};
    return {"because " + visible(table.text(0, 0)), visible(table.text(0, 1))};
}

/* names: an array of SQL. */
std::set<std::string> read_gaining(Connection& subscriber, const std::string& names)
{
    std::set<std::string> gaining;
    for (const std::string& name : texts_of(subscriber.query(kGaining, {names})))
        gaining.insert(visible(name));
    return gaining;
}

std::string read_shard_owners(Connection& server)
{
    return has_extension(server) ? server.query(kShardOwners).text(0, 0) : "{}";
}

/* "a, b and 7 more" */
std::string list_of(const std::set<std::string>& names)
{
    constexpr std::size_t kMostNames = 5;
    std::string text;
    std::size_t count = 0;
    for (const std::string& name : names)
        if (count++ < kMostNames)
            text += (text.empty() ? "" : ", ") + name;
    return text +
           (count > kMostNames ? " and " + std::to_string(count - kMostNames) + " more" : "");
}

} // namespace

Owners read_owners(Connection& home, const Shards& shards)
{
    const Result owners = home.query(owners_sql, {schemas_of(shards)});
    return {owners.text(0, 0), owners.text(0, 1)};
}

Obstacles find_untrusted_owners(Connection& subscriber, Connection& publisher, Connection& home,
                                const Shards& shards, const Workers& workers)
{
    const Cause cause = find_cause(subscriber, home, shards);
    if (cause.text.empty() || workers.trusts_owners)
        return {};
    const std::set<std::string> gaining = read_gaining(subscriber, read_owners(home, shards).names);
    if (gaining.empty())
        return {};
    std::set<std::string> owners = gaining;
    for (Connection* const server : {&subscriber, &publisher})
        owners.merge(read_gaining(subscriber, read_shard_owners(*server)));
    if (owners.size() == 1)
        return {};
    return {{subscriber.server(),
             "workers would write the rows as role " + visible(subscriber.user()) + ", " +
                 cause.text + ", and so run code of " + list_of(gaining) + " with the rights of " +
                 visible(subscriber.user()) +
                 ". The shards of both servers belong to several roles: " + list_of(owners),
             cause.remedy + (cause.remedy.empty() ? "" : " Or ") + "--trust-owners, if " +
                 list_of(gaining) + " may use all rights of role " + visible(subscriber.user()) +
                 " on that server."}};
}

std::string worker_option(Connection& subscriber, Connection& publisher, Connection& home,
                          const Shards& shards, const Workers& workers)
{
    find_untrusted_owners(subscriber, publisher, home, shards, workers).raise_first();
    const bool has_option = subscriber.version() >= 160000;
    return has_option && !find_cause(subscriber, home, shards).text.empty()
               ? ", run_as_owner = true"
               : "";
}

void tell_of_code(Connection& subscriber, Connection& home, const Shards& shards)
{
    const Cause cause = find_cause(subscriber, home, shards);
    if (cause.text.empty())
        return;
    const Result code = home.query(worker_code_sql, {schemas_of(shards)});
    if (code.rows() == 0)
        return;
    const auto more = static_cast<std::size_t>(code.rows()) - 1;
    warn(subscriber.server() + ": workers will write the rows as role " +
         visible(subscriber.user()) + ", " + cause.text + ", and so run " +
         visible(code.text(0, 0)) + " (" + visible(code.text(0, 1)) + ")" +
         (more > 0 ? " and " + count_of(more, "more function") : "") +
         ". Move the shard if you trust that role.");
}
