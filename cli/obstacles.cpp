/* snowflake-shard move: what is in the way of a move, all of it at once. */

#include <regex>
#include <set>

#include "dump.h"
#include "move.h"
#include "output.h"

namespace
{

/* Queries whose rows are obstacles: the problem, and what mends it. Both the copy and the stream
 * take a slot, a sender and a worker. */
const char* const kOnSource = R"(
WITH tables AS (
    SELECT *, oid::regclass AS name FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p'))
SELECT 'wal_level = ' || current_setting('wal_level'),
       'ALTER SYSTEM SET wal_level = logical; and restart the server'
WHERE current_setting('wal_level') <> 'logical'
UNION ALL
SELECT format('role %I may not make a slot', rolname), format('ALTER ROLE %I REPLICATION;', rolname)
FROM pg_roles WHERE rolname = current_user AND NOT (rolreplication OR rolsuper)
UNION ALL
SELECT format('%s = %s, and %s are in use: a move takes 2', name, setting, used),
       format('ALTER SYSTEM SET %s = %s; and restart the server', name, used + 4)
FROM (VALUES ('max_replication_slots', (SELECT count(*) FROM pg_replication_slots)),
             ('max_wal_senders', (SELECT count(*) FROM pg_stat_replication))) AS u (name, used)
JOIN pg_settings USING (name) WHERE setting::bigint < used + 2
UNION ALL
SELECT format('table %s has no replica identity', name),
       format('ALTER TABLE %s REPLICA IDENTITY FULL; or give it a primary key', name)
FROM tables AS t
WHERE relkind = 'r' AND relpersistence = 'p' AND relreplident <> 'f' AND NOT EXISTS (
    SELECT FROM pg_index WHERE indrelid = t.oid
    AND CASE relreplident WHEN 'i' THEN indisreplident WHEN 'd' THEN indisprimary END)
UNION ALL
SELECT format('table %s is unlogged', name), format('ALTER TABLE %s SET LOGGED;', name)
FROM tables WHERE relkind = 'r' AND relpersistence = 'u'
UNION ALL
SELECT format('trigger %I of table %s would fire for replicated rows, too', tgname, name),
       format('ALTER TABLE %s ENABLE TRIGGER %I;', name, tgname)
FROM tables AS t JOIN pg_trigger ON tgrelid = t.oid WHERE tgenabled IN ('A', 'R') AND NOT tgisinternal
UNION ALL
SELECT format('column %s.%I points to large objects, which are not replicated', name, attname),
       'Store them as bytea.'
FROM tables AS t JOIN pg_attribute ON attrelid = t.oid JOIN pg_type AS y ON y.oid = atttypid
WHERE typname = 'lo' AND NOT attisdropped
UNION ALL
SELECT format('table %s belongs to %s', name, relowner::regrole),
       format('GRANT %s TO %I;', relowner::regrole, current_user)
FROM tables WHERE NOT pg_has_role(relowner, 'USAGE')
UNION ALL
SELECT format('a transaction of process %s has been running for %s', pid, date_trunc('second', age)),
       format('SELECT pg_terminate_backend(%s); or wait', pid)
FROM pg_stat_activity, LATERAL (SELECT clock_timestamp() - xact_start) AS a (age)
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
AND age > make_interval(secs => $2::double precision)
UNION ALL
SELECT format('transaction %L is prepared', gid), format('ROLLBACK PREPARED %L; or COMMIT PREPARED', gid)
FROM pg_prepared_xacts WHERE database = current_database())";

const char* const kOnTarget = R"(
SELECT format('%s = %s, and %s are in use: a move takes 2', name, setting, used),
       format('ALTER SYSTEM SET %s = %s; and restart the server', name, used + 4)
FROM (VALUES ('max_logical_replication_workers', (SELECT count(pid) FROM pg_stat_subscription)),
             ('max_replication_slots', (SELECT count(*) FROM pg_replication_origin))) AS u (name, used)
JOIN pg_settings USING (name) WHERE setting::bigint < used + 2
UNION ALL
SELECT format('role %I may not make a subscription and roles'' objects', current_user),
       format('ALTER ROLE %I SUPERUSER;', current_user)
WHERE current_setting('is_superuser') = 'off'
UNION ALL
SELECT format('extension snowflake is %s, and on the source it is %s', there, $3::text),
       'CREATE EXTENSION snowflake; or ALTER EXTENSION snowflake UPDATE; or ... SET SCHEMA'
FROM (SELECT coalesce(max(format('%s in schema %s', extversion, extnamespace::regnamespace)), 'missing')
      FROM pg_extension WHERE extname = 'snowflake') AS e (there)
WHERE there <> $3
UNION ALL
SELECT format('schema %I is there already', nspname),
       format('If the shard was moved away from there: snowflake-shard move %I --drop-source; '
              'else DROP SCHEMA %I CASCADE;', $1::text, nspname)
FROM pg_namespace WHERE nspname IN ($1, $2))";

/* Members are the schema's objects, and what is dropped with them: row types, constraints, TOAST
 * tables, rows of a publication. */
const char* const kDependents = R"(
WITH RECURSIVE members AS (
    SELECT 'pg_namespace'::regclass::oid AS classid, $1::regnamespace::oid AS objid
    UNION
    SELECT d.classid, d.objid
    FROM members AS m JOIN pg_depend AS d ON d.refclassid = m.classid AND d.refobjid = m.objid
    WHERE (m.classid = 'pg_namespace'::regclass OR d.deptype IN ('i', 'a', 'P', 'S'))
    AND NOT EXISTS (SELECT FROM pg_class AS c
                    WHERE d.classid = c.tableoid AND d.objid = c.oid
                    AND relnamespace NOT IN ($1::regnamespace, 'pg_toast'::regnamespace))
)
SELECT DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid) || ' needs ' ||
                pg_describe_object(d.refclassid, d.refobjid, 0)
FROM members AS m JOIN pg_depend AS d ON d.refclassid = m.classid AND d.refobjid = m.objid
WHERE d.deptype IN ('n', 'a') AND (d.classid, d.objid) NOT IN (TABLE members)
AND (pg_identify_object(d.refclassid, d.refobjid, 0)).type NOT LIKE '%index')";

class Obstacles
{
public:
    explicit Obstacles(Move& move) : move_(move), source_(move.source), target_(move.target) {}

    std::vector<std::string> find()
    {
        add_rows(source_, kOnSource, {move_.shard.quoted, std::to_string(move_.options.timeout)});
        for (const std::string& dependent : find_dependents(move_))
            add(source_, dependent, "Drop it, or move it into the schema.");
        const Result version = source_.query(R"(
            SELECT format('%s in schema %s', extversion, extnamespace::regnamespace)
            FROM pg_extension WHERE extname = 'snowflake')");
        if (add_rows(target_, kOnTarget, {move_.shard.schema, move_.name, version.text(0, 0)}) == 0)
            try_definition();
        compare_clocks();
        return found_;
    }

private:
    void add(const Connection& connection, const std::string& problem, const std::string& hint)
    {
        found_.push_back(connection.server() + ": " + problem + "\n    HINT:  " + hint);
    }

    int add_rows(Connection& connection, const std::string& sql,
                 const std::vector<std::string>& parameters)
    {
        const Result rows = connection.query(sql, parameters);
        for (int i = 0; i < rows.rows(); i++)
            add(connection, rows.text(i, 0), rows.text(i, 1));
        return rows.rows();
    }

    /* The subscription and the definition are made on the target in a transaction that is rolled
     * back. Each error is an obstacle: the target's server does not get to the source; a role,
     * type, function or table that the shard needs is not there.
     *
     * Others do not see these objects. A foreign key locks the table of another schema that it
     * refers to against writing, from its entry (one of the last) until the rollback. A table that
     * is locked by others is waited for 100 ms, because its writers wait behind this transaction;
     * then it is an obstacle, too. There are no rows, so no entry takes long; pg_dump -s leaves out
     * the queries of materialized views, which could. */
    void try_definition()
    {
        const std::string shard = std::to_string(move_.shard.number);
        Entries entries = {{"shard", shard,
                            "SELECT snowflake_internal.claim_shard(" + shard + ", " +
                                target_.literal(move_.shard.schema) + ");"},
                           {"SUBSCRIPTION", move_.name,
                            subscription_sql(move_, "slot_name = NONE, enabled = false") + ";"}};
        try {
            const Entries all = dump_schemas(source_, {move_.shard.schema})[move_.shard.schema];
            entries.insert(entries.end(), all.begin(), all.end());
        } catch (const Failure& error) {
            return add(source_, error.what(), "A move takes pg_dump, too.");
        }
        target_.run("BEGIN; " + std::string(kDumpSettings) + "; SET LOCAL lock_timeout = '100ms'");
        for (const Entry& entry : entries)
            if (entry.type.rfind("PUBLICATION", 0) != 0)
                try_entry(entry);
        target_.rollback();
    }

    void try_entry(const Entry& entry)
    {
        try {
            target_.run("SAVEPOINT entry; " + entry.sql + "RELEASE entry");
        } catch (const ServerError& error) {
            target_.run("ROLLBACK TO entry");
            note_error(entry, error);
        }
    }

    /* An error that names the shard's own schema follows from an earlier one. A role is made (until
     * the rollback), to see what else is missing. */
    void note_error(const Entry& entry, const ServerError& error)
    {
        const std::string message =
            std::regex_replace(error.what(), std::regex("^[^:]*:  ([^\n]*)[^]*"), "$1");
        const std::string& schema = move_.shard.schema;
        const bool is_consequence = message.find(schema + ".") != std::string::npos ||
                                    message.find("\"" + schema + "\"") != std::string::npos;
        if ((is_consequence && !errors_.empty()) || !errors_.insert(message).second)
            return;
        std::smatch role;
        if (std::regex_match(message, role, std::regex("role \"(.*)\" does not exist"))) {
            const std::string create = "CREATE ROLE " + target_.identifier(role[1]) + ";";
            add(target_, message, create);
            target_.run(create);
            return try_entry(entry);
        }
        add(target_, entry.type + " " + entry.name + ": " + message, hint_of(entry, error));
    }

    static std::string hint_of(const Entry& entry, const ServerError& error)
    {
        if (error.sqlstate == kLockTimeout)
            return "A table that it refers to is busy there. Try again.";
        if (entry.type == "shard")
            return "Drop that schema there, if it is not used.";
        if (entry.type == "SUBSCRIPTION")
            return "Let pg_hba.conf of the source allow it, and give --source if the source has "
                   "another address there.";
        return "Make there what is missing, or change it in the shard.";
    }

    /* Not an obstacle: the target goes on from the source's positions. */
    void compare_clocks()
    {
        const std::string sql = "SELECT EXTRACT(epoch FROM clock_timestamp())::bigint";
        const std::int64_t here = source_.query(sql).number(0, 0);
        const std::int64_t apart = target_.query(sql).number(0, 0) - here;
        if (apart < -1 || apart > 1)
            warn("the clock of " + target_.server() + " is " + std::to_string(std::abs(apart)) +
                 " s " + (apart < 0 ? "behind" : "ahead of") + " that of " + source_.server());
    }

    Move& move_;
    Connection& source_;
    Connection& target_;
    std::vector<std::string> found_;
    std::set<std::string> errors_;
};

} // namespace

std::vector<std::string> find_obstacles(Move& move)
{
    return Obstacles(move).find();
}

std::vector<std::string> find_dependents(Move& move)
{
    return texts_of(move.source.query(kDependents, {move.shard.quoted}));
}
