/* snowflake-shard move: what is in the way of a move, all of it at once. */

#include "move.h"
#include "output.h"

namespace
{

/* The objects of schema $1; those of tables and views that have no schema of their own, too. */
const char* const kMembers =
    "WITH relations AS (SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace "
    "AS n ON n.oid = c.relnamespace WHERE n.nspname = $1), members AS ("
    "SELECT 'pg_catalog.pg_class'::regclass AS classid, oid AS objid FROM relations UNION ALL "
    "SELECT 'pg_catalog.pg_namespace'::regclass, oid FROM pg_catalog.pg_namespace WHERE nspname = "
    "$1 UNION ALL "
    "SELECT p.tableoid, p.oid FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON "
    "n.oid = p.pronamespace WHERE n.nspname = $1 UNION ALL "
    "SELECT t.tableoid, t.oid FROM pg_catalog.pg_type AS t JOIN pg_catalog.pg_namespace AS n ON "
    "n.oid = t.typnamespace WHERE n.nspname = $1 UNION ALL "
    "SELECT k.tableoid, k.oid FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_namespace AS "
    "n ON n.oid = k.connamespace WHERE n.nspname = $1 UNION ALL "
    "SELECT x.tableoid, x.oid FROM pg_catalog.pg_attrdef AS x JOIN relations AS r ON r.oid = "
    "x.adrelid UNION ALL "
    "SELECT x.tableoid, x.oid FROM pg_catalog.pg_trigger AS x JOIN relations AS r ON r.oid = "
    "x.tgrelid WHERE NOT x.tgisinternal UNION ALL "
    "SELECT x.tableoid, x.oid FROM pg_catalog.pg_rewrite AS x JOIN relations AS r ON r.oid = "
    "x.ev_class UNION ALL "
    "SELECT x.tableoid, x.oid FROM pg_catalog.pg_policy AS x JOIN relations AS r ON r.oid = "
    "x.polrelid) ";

class Obstacles
{
public:
    explicit Obstacles(Move& move) : move_(move) {}

    std::vector<std::string> find()
    {
        look_at_settings();
        look_at_target();
        look_at_tables();
        look_at_dependencies();
        look_at_transactions();
        look_at_clocks();
        look_at_connection();
        return found_;
    }

private:
    void add(const std::string& problem, const std::string& hint)
    {
        found_.push_back(problem + "\n    HINT:  " + hint);
    }

    /* A query whose rows are obstacles: problem, hint. */
    void add_rows(Connection& connection, const std::string& sql,
                  const std::vector<std::string>& parameters)
    {
        const Result rows = connection.query(sql, parameters);
        for (int i = 0; i < rows.rows(); i++)
            add(connection.server() + ": " + rows.text(i, 0), rows.text(i, 1));
    }

    /* Both the copy and the stream take a slot, a sender and a worker. */
    void look_at_settings()
    {
        const std::string free = "SELECT pg_catalog.format('%s = %s, and %s are in use: a move "
                                 "takes 2', name, setting, used), pg_catalog.format('ALTER SYSTEM "
                                 "SET %s = %s; and restart the server', name, used + 4) FROM "
                                 "pg_catalog.pg_settings JOIN (VALUES ";
        const std::string few = ") AS u (setting_name, used) ON name = setting_name WHERE "
                                "setting::bigint < used + 2";
        add_rows(move_.source,
                 "SELECT 'wal_level = ' || setting, 'ALTER SYSTEM SET wal_level = logical; and "
                 "restart the server' FROM pg_catalog.pg_settings WHERE name = 'wal_level' AND "
                 "setting <> 'logical' UNION ALL SELECT pg_catalog.format('role %I may not make a "
                 "slot', rolname), pg_catalog.format('ALTER ROLE %I REPLICATION;', rolname) FROM "
                 "pg_catalog.pg_roles WHERE rolname = current_user AND NOT (rolreplication OR "
                 "rolsuper)",
                 {});
        add_rows(move_.source,
                 free +
                     "('max_replication_slots', (SELECT pg_catalog.count(*) FROM "
                     "pg_catalog.pg_replication_slots)), ('max_wal_senders', (SELECT "
                     "pg_catalog.count(*) FROM pg_catalog.pg_stat_replication))" +
                     few,
                 {});
        add_rows(move_.target,
                 free +
                     "('max_logical_replication_workers', (SELECT pg_catalog.count(pid) FROM "
                     "pg_catalog.pg_stat_subscription)), ('max_replication_slots', (SELECT "
                     "pg_catalog.count(*) FROM pg_catalog.pg_replication_origin))" +
                     few,
                 {});
        add_rows(move_.target,
                 "SELECT pg_catalog.format('role %I may not make a subscription and roles'' "
                 "objects', current_user), pg_catalog.format('ALTER ROLE %I SUPERUSER;', "
                 "current_user) WHERE pg_catalog.current_setting('is_superuser') = 'off'",
                 {});
    }

    void look_at_target()
    {
        const std::string version =
            "SELECT coalesce((SELECT pg_catalog.format('%s in schema %I', e.extversion, n.nspname) "
            "FROM pg_catalog.pg_extension AS e JOIN pg_catalog.pg_namespace AS n ON n.oid = "
            "e.extnamespace WHERE e.extname = 'snowflake'), 'missing')";
        const std::string here = move_.source.query(version).text(0, 0);
        const std::string there = move_.target.query(version).text(0, 0);
        if (here != there)
            add(move_.target.server() + ": extension snowflake is " + there + ", and on " +
                    move_.source.server() + " it is " + here,
                "CREATE EXTENSION snowflake; or ALTER EXTENSION snowflake UPDATE; or ... SET "
                "SCHEMA");
        else
            for (const Shard& shard : read_shards(move_.target))
                if (shard.number == move_.shard.number && shard.schema != move_.shard.schema)
                    add(move_.target.server() + ": shard " + std::to_string(shard.number) +
                            " is there already, as schema " + shard.schema,
                        "DROP SCHEMA " + shard.quoted + " CASCADE; if it is not used");
        add_rows(move_.target,
                 "SELECT pg_catalog.format('schema %I is there already', nspname), "
                 "pg_catalog.format('If the shard was moved away from there: snowflake-shard move "
                 "%I --drop-source; else DROP SCHEMA %I CASCADE;', $1::text, nspname) FROM "
                 "pg_catalog.pg_namespace WHERE nspname IN ($1::text, $2)",
                 {move_.shard.schema, move_.name});
        /* Owners, and roles of privileges and policies. */
        const Result roles = move_.source.query(
            std::string(kMembers) +
                "SELECT DISTINCT r.rolname FROM members AS m JOIN pg_catalog.pg_shdepend AS "
                "d ON d.classid = m.classid AND d.objid = m.objid AND d.dbid = (SELECT oid "
                "FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) "
                "JOIN pg_catalog.pg_roles AS r ON r.oid = d.refobjid WHERE d.refclassid = "
                "'pg_catalog.pg_authid'::regclass ORDER BY 1",
            {move_.shard.schema});
        for (int i = 0; i < roles.rows(); i++)
            add_rows(move_.target,
                     "SELECT pg_catalog.format('role %I is missing', $1::name), "
                     "pg_catalog.format('CREATE ROLE %I;', $1::name) WHERE NOT EXISTS (SELECT FROM "
                     "pg_catalog.pg_roles WHERE rolname = $1)",
                     {roles.text(i, 0)});
    }

    void look_at_tables()
    {
        add_rows(
            move_.source,
            "WITH tables AS (SELECT c.*, c.oid::regclass AS name FROM pg_catalog.pg_class AS c "
            "JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND "
            "c.relkind IN ('r', 'p')) "
            "SELECT pg_catalog.format('table %s has no replica identity', name), "
            "pg_catalog.format('ALTER TABLE %s REPLICA IDENTITY FULL; or give it a primary key', "
            "name) FROM tables AS t WHERE relkind = 'r' AND relpersistence = 'p' AND CASE "
            "relreplident WHEN 'f' THEN false WHEN 'n' THEN true ELSE NOT EXISTS (SELECT FROM "
            "pg_catalog.pg_index AS i WHERE i.indrelid = t.oid AND CASE t.relreplident WHEN 'i' "
            "THEN i.indisreplident ELSE i.indisprimary END) END "
            "UNION ALL SELECT pg_catalog.format('table %s is unlogged', name), "
            "pg_catalog.format('ALTER TABLE %s SET LOGGED;', name) FROM tables WHERE relkind = 'r' "
            "AND relpersistence = 'u' "
            "UNION ALL SELECT pg_catalog.format('trigger %I of table %s would fire for replicated "
            "rows, too', g.tgname, t.name), pg_catalog.format('ALTER TABLE %s ENABLE TRIGGER %I;', "
            "t.name, g.tgname) FROM tables AS t JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = "
            "t.oid WHERE g.tgenabled IN ('A', 'R') AND NOT g.tgisinternal "
            "UNION ALL SELECT pg_catalog.format('column %s.%I points to large objects, which are "
            "not replicated', t.name, a.attname), 'Store them as bytea.' FROM tables AS t JOIN "
            "pg_catalog.pg_attribute AS a ON a.attrelid = t.oid JOIN pg_catalog.pg_type AS y ON "
            "y.oid = a.atttypid WHERE y.typname = 'lo' AND NOT a.attisdropped "
            "UNION ALL SELECT pg_catalog.format('table %s belongs to %s', name, "
            "relowner::regrole), pg_catalog.format('GRANT %s TO %I;', relowner::regrole, "
            "current_user) FROM tables WHERE NOT pg_catalog.pg_has_role(relowner, 'USAGE')",
            {move_.shard.schema});
    }

    /* What of the shard needs objects of other schemas, and the other way round. Types and
     * functions may be there on the target, too. */
    void look_at_dependencies()
    {
        const Result rows = move_.source.query(
            std::string(kMembers) +
                "SELECT DISTINCT pg_catalog.pg_describe_object(d.classid, d.objid, 0), "
                "pg_catalog.pg_describe_object(d.refclassid, d.refobjid, 0), r.type, r.identity "
                "FROM members AS m JOIN pg_catalog.pg_depend AS d ON d.classid = m.classid AND "
                "d.objid = m.objid CROSS JOIN LATERAL pg_catalog.pg_identify_object(d.refclassid, "
                "d.refobjid, 0) AS r WHERE r.type <> 'index' AND r.schema NOT IN ($1, "
                "'pg_catalog', "
                "'information_schema', 'snowflake_internal', 'pg_toast') AND NOT EXISTS (SELECT "
                "FROM pg_catalog.pg_depend AS x JOIN pg_catalog.pg_extension AS e ON e.oid = "
                "x.refobjid WHERE x.classid = d.refclassid AND x.objid = d.refobjid AND "
                "x.deptype = 'e' AND e.extname = 'snowflake')",
            {move_.shard.schema});
        for (int i = 0; i < rows.rows(); i++) {
            const std::string type = rows.text(i, 2);
            const bool is_there =
                (type == "type" || type == "function") &&
                !move_.target
                     .query("SELECT pg_catalog.to_reg" +
                                std::string(type == "type" ? "type" : "procedure") + "($1)",
                            {rows.text(i, 3)})
                     .is_null(0, 0);
            if (!is_there)
                add(rows.text(i, 0) + " needs " + rows.text(i, 1) + " of another schema",
                    "Make it on the target, too, if it is a type or function; else move it into "
                    "the schema or drop it.");
        }
        for (const std::string& dependent : find_dependents(move_))
            add(dependent, "Drop it, or move it into the schema.");
    }

    void look_at_transactions()
    {
        add_rows(move_.source,
                 "SELECT pg_catalog.format('a transaction of process %s has been running for %s', "
                 "pid, pg_catalog.date_trunc('second', pg_catalog.clock_timestamp() - "
                 "xact_start)), pg_catalog.format('SELECT pg_terminate_backend(%s); or wait', pid) "
                 "FROM pg_catalog.pg_stat_activity WHERE datname = pg_catalog.current_database() "
                 "AND backend_type = 'client backend' AND pg_catalog.clock_timestamp() - "
                 "xact_start > pg_catalog.make_interval(secs => $1::double precision) "
                 "UNION ALL SELECT pg_catalog.format('transaction %L is prepared', gid), "
                 "pg_catalog.format('ROLLBACK PREPARED %L; or COMMIT PREPARED', gid) FROM "
                 "pg_catalog.pg_prepared_xacts WHERE database = pg_catalog.current_database()",
                 {std::to_string(move_.options.timeout)});
    }

    /* Not an obstacle: the target goes on from the source's positions. */
    void look_at_clocks()
    {
        const std::string sql = "SELECT EXTRACT(epoch FROM pg_catalog.clock_timestamp())::bigint";
        const std::int64_t here = move_.source.query(sql).number(0, 0);
        const std::int64_t apart = move_.target.query(sql).number(0, 0) - here;
        if (apart < -1 || apart > 1)
            warn("the clock of " + move_.target.server() + " is " +
                 std::to_string(std::abs(apart)) + " s " + (apart < 0 ? "behind" : "ahead of") +
                 " that of " + move_.source.server());
    }

    /* Only the target's server knows whether it gets there. */
    void look_at_connection()
    {
        try {
            move_.target.run("BEGIN; CREATE SUBSCRIPTION " + move_.name + " CONNECTION " +
                             move_.target.literal(source_dsn(move_)) + " PUBLICATION " +
                             move_.name +
                             " WITH (create_slot = false, slot_name = NONE, enabled = false)");
        } catch (const ServerError& error) {
            add(move_.target.server() +
                    ": the server cannot connect to the source: " + error.what(),
                "Let pg_hba.conf of the source allow it, and give --source if it has another "
                "address there.");
        }
        move_.target.rollback();
    }

    Move& move_;
    std::vector<std::string> found_;
};

} // namespace

std::vector<std::string> find_obstacles(Move& move)
{
    return Obstacles(move).find();
}

/* Toast tables and the rows of a publication depend on a table, too, and go with it. */
std::vector<std::string> find_dependents(Move& move)
{
    const Result rows = move.source.query(
        std::string(kMembers) +
            "SELECT DISTINCT pg_catalog.pg_describe_object(d.classid, d.objid, 0) || ' needs ' || "
            "pg_catalog.pg_describe_object(d.refclassid, d.refobjid, 0) FROM members AS m JOIN "
            "pg_catalog.pg_depend AS d ON d.refclassid = m.classid AND d.refobjid = m.objid LEFT "
            "JOIN members AS o ON o.classid = d.classid AND o.objid = d.objid LEFT JOIN "
            "pg_catalog.pg_trigger AS g ON d.classid = g.tableoid AND d.objid = g.oid LEFT JOIN "
            "pg_catalog.pg_index AS i ON m.classid = 'pg_catalog.pg_class'::regclass AND "
            "m.objid = i.indexrelid WHERE o.objid IS NULL AND i.indexrelid IS NULL AND "
            "g.tgisinternal IS NOT TRUE AND d.classid IN (SELECT classid FROM members UNION SELECT "
            "c.oid FROM "
            "pg_catalog.pg_class AS c WHERE c.oid IN ('pg_catalog.pg_proc'::regclass, "
            "'pg_catalog.pg_rewrite'::regclass, 'pg_catalog.pg_constraint'::regclass, "
            "'pg_catalog.pg_trigger'::regclass, 'pg_catalog.pg_policy'::regclass, "
            "'pg_catalog.pg_attrdef'::regclass)) AND NOT EXISTS (SELECT FROM pg_catalog.pg_class "
            "AS t WHERE t.oid = d.objid AND d.classid = 'pg_catalog.pg_class'::regclass AND "
            "t.relnamespace = 'pg_toast'::regnamespace)",
        {move.shard.schema});
    std::vector<std::string> dependents;
    for (int i = 0; i < rows.rows(); i++)
        dependents.push_back(rows.text(i, 0));
    return dependents;
}
