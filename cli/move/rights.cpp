#include "move/rights.h"

#include "sql/sql.h"

namespace
{

/* The roles that own tables of the shards and gain rights if their code runs as the current role.
 */
const char* const kGaining = R"(
SELECT DISTINCT quote_ident(rolname) FROM pg_class JOIN pg_roles AS r ON r.oid = relowner
WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind = 'r' AND NOT rolsuper AND rolname <> current_user ORDER BY 1)";

std::vector<std::string> read_gaining(Connection& server, const Shards& shards)
{
    return texts_of(server.query(kGaining, {schemas_of(shards)}));
}

bool writes_as_owner_of_subscription(const Connection& subscriber)
{
    return subscriber.version() < 160000;
}

/* The database has an OID in it, because roles are of the whole server. */
std::string worker_role(Connection& subscriber, const Move& move)
{
    return subscriber
        .query("SELECT quote_ident(format('%s_%s', $1::text, oid)) FROM pg_database WHERE datname "
               "= current_database()",
               {move.name})
        .text(0, 0);
}

} // namespace

Owners read_owners(Connection& home, const Shards& shards)
{
    const Result owners = home.query(owners_sql, {schemas_of(shards)});
    return {owners.text(0, 0), owners.text(0, 1)};
}

Obstacles find_obstacles_of_workers(const Connection& subscriber, Connection& home,
                                    const Shards& shards)
{
    Obstacles found;
    const std::vector<std::string> owners = read_gaining(home, shards);
    if (owners.empty())
        return found;
    const Result table = home.query(not_as_owner_sql, {schemas_of(shards)});
    if (table.rows() > 0)
        found.add(home.server(),
                  "workers on " + subscriber.server() +
                      " cannot write the rows as the owner of their table, because " +
                      visible(table.text(0, 0)),
                  visible(table.text(0, 1)));
    if (owners.size() > 1 && writes_as_owner_of_subscription(subscriber))
        found.add(subscriber.server(),
                  "before PostgreSQL 16 a subscription writes to all tables as one role, and the "
                  "tables belong to several: " +
                      visible(owners[0]) + " and " + visible(owners[1]) +
                      (owners.size() > 2 ? " and others" : ""),
                  "Move the shards of each role by themselves; or give the tables of a shard to "
                  "one role: ALTER TABLE ... OWNER TO ...;");
    return found;
}

/* PostgreSQL 15 asks for a superuser when a subscription gets an owner, and never again. A worker
 * is authenticated as that role (ApplyWorkerMain()), so it needs LOGIN; CONNECTION LIMIT 0 keeps
 * clients out. SELECT of the marker is left out: its rows are secret until they have arrived. */
void give_to_worker(Connection& subscriber, Connection& home, const Move& move)
{
    find_obstacles_of_workers(subscriber, home, move.shards).raise_first();
    const std::vector<std::string> owners = read_gaining(subscriber, move.shards);
    if (owners.empty() || !writes_as_owner_of_subscription(subscriber))
        return;
    const std::string role = worker_role(subscriber, move);
    subscriber.run(removal_of_worker(subscriber, move) + "CREATE ROLE " + role +
                   " SUPERUSER LOGIN CONNECTION LIMIT 0 IN ROLE " + owners[0] +
                   move.sql("; ALTER SUBSCRIPTION @move@ OWNER TO ") + role + "; ALTER ROLE " +
                   role + move.sql(" NOSUPERUSER; GRANT USAGE ON SCHEMA @move@ TO ") + role +
                   move.sql("; GRANT INSERT, UPDATE, DELETE, TRUNCATE ON @move@.marker TO ") +
                   role);
}

std::string removal_of_worker(Connection& subscriber, const Move& move)
{
    const std::string role = worker_role(subscriber, move);
    const bool is_there = subscriber.query("SELECT to_regrole($1) IS NOT NULL", {role}).flag(0, 0);
    return is_there ? "DROP OWNED BY " + role + "; DROP ROLE " + role + ";" : "";
}
