/* snowflake-shard move: what is in the way of a move, all of it at once. */

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
     * back. If there is an error, they are made again object by object, and each error is an
     * obstacle: the target's server does not get to the source; a role, type, function or table
     * that the shard needs is not there.
     *
     * Others do not see these objects. A foreign key locks the table of another schema that it
     * refers to against writing until the rollback. A table that is locked by others is waited for
     * 100 ms, because its writers wait behind this transaction; then it is an obstacle, too. There
     * are no rows, and materialized views are not filled, so no object takes long. */
    void try_definition()
    {
        const std::string shard = std::to_string(move_.shard.number);
        std::vector<Step> steps = {
            {Kind::shard, "shard " + shard,
             "SELECT snowflake_internal.claim_shard(" + shard + ", " +
                 target_.literal(move_.shard.schema) + ");"},
            {Kind::subscription, "SUBSCRIPTION " + move_.name,
             subscription_sql(move_, "slot_name = NONE, enabled = false") + ";"}};
        try {
            const Archive archive(source_, move_.shard.schema, false);
            std::vector<Archive::Item> items = archive.items(Archive::Section::pre_data);
            for (const Archive::Item& item : archive.items(Archive::Section::post_data))
                items.push_back(item);
            if (can_make(steps, archive.sql(items)))
                return;
            for (const Archive::Item& item : items)
                steps.push_back({Kind::object, item.title, archive.sql({item})});
        } catch (const ServerError&) {
            throw;
        } catch (const Failure& error) {
            return add(source_, error.what(), "A move needs a working pg_dump and pg_restore.");
        }
        begin();
        for (const Step& step : steps)
            try_step(step);
        target_.rollback();
    }

    enum class Kind { shard, subscription, object };

    struct Step {
        Kind kind;
        std::string title;
        std::string sql;
    };

    void begin() { target_.run("BEGIN; SET LOCAL lock_timeout = '100ms'"); }

    bool can_make(const std::vector<Step>& steps, const std::string& definition)
    {
        begin();
        bool is_made = true;
        try {
            for (const Step& step : steps)
                target_.run(step.sql);
            target_.run(definition);
        } catch (const ServerError&) {
            is_made = false;
        }
        target_.rollback();
        return is_made;
    }

    void try_step(const Step& step)
    {
        target_.run("SAVEPOINT step");
        try {
            target_.run(step.sql);
            target_.run("RELEASE step");
        } catch (const ServerError& error) {
            target_.run("ROLLBACK TO step");
            note_error(step, error);
        }
    }

    /* An error that names the shard's own schema follows from an earlier one. A role is made (until
     * the rollback), to see what else is missing. */
    void note_error(const Step& step, const ServerError& error)
    {
        const std::string message = message_of(error);
        const std::string& schema = move_.shard.schema;
        const bool is_consequence = message.find(schema + ".") != std::string::npos ||
                                    message.find("\"" + schema + "\"") != std::string::npos;
        if ((is_consequence && !errors_.empty()) || !errors_.insert(message).second)
            return;
        const std::string before = "role \"";
        const std::string behind = "\" does not exist";
        if (message.compare(0, before.size(), before) == 0 && message.size() > behind.size() &&
            message.compare(message.size() - behind.size(), behind.size(), behind) == 0) {
            const std::string create =
                "CREATE ROLE " +
                target_.identifier(
                    message.substr(before.size(), message.size() - before.size() - behind.size())) +
                ";";
            add(target_, message, create);
            target_.run(create);
            return try_step(step);
        }
        add(target_, step.title + ": " + message, hint_of(step, error));
    }

    /* The first line, without ERROR. */
    static std::string message_of(const ServerError& error)
    {
        const std::string text = error.what();
        const std::size_t begin = text.find(":  ");
        const std::size_t from = begin == std::string::npos ? 0 : begin + 3;
        return text.substr(from, text.find('\n', from) - from);
    }

    static std::string hint_of(const Step& step, const ServerError& error)
    {
        if (error.sqlstate == kLockTimeout)
            return "A table that it refers to is busy there. Try again.";
        if (step.kind == Kind::shard)
            return "Drop that schema there, if it is not used.";
        if (step.kind == Kind::subscription)
            return "Let pg_hba.conf of the source allow it, and give --source if the source has "
                   "another address there.";
        return "Create the missing object on the target, or change the shard.";
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
