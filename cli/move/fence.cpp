#include "move/fence.h"

#include "base/output.h"
#include "cutover/cutover.h"
#include "cutover/waiting.h"
#include "move/state.h"
#include "postgres/trust.h"
#include "replication/publication.h"

namespace
{

/* The fence is made of three parts, because there are three ways to make an ID or a row:
 *
 * A trigger FOR EACH STATEMENT on every table and partition fires before a DEFAULT is computed. The
 * DEFAULTs stay, because to change them would lock readers out. The triggers are made before the
 * cutover, one table at a time, and call a function that does nothing. close() replaces its body.
 *
 * The native functions raise the same error. CREATE OR REPLACE keeps their OID and privileges. They
 * stay functions in SQL, but for those that return a record: a statement that looks up the language
 * before, and reads the body afterwards, would take it for a text of the old language.
 *
 * refuse() runs with the rights of the role that draws, so PUBLIC gets EXECUTE also where default
 * privileges refuse it. USAGE on the schema is granted with the record of the move.
 *
 * A sequence gets bounds that leave no value to be drawn, for direct calls of snowflake_next_id()
 * and nextval(). MINVALUE must be less than MAXVALUE, so the bounds are two values, and setval()
 * makes the last of them the drawn one. ALTER SEQUENCE waits for every transaction that has drawn
 * from it, so the position that is read after the first ALTER is the last one. It writes a new
 * file, so that setval() below is rolled back with it. The positions name each sequence as text,
 * with its schema because search_path is empty: OIDs are others on the target.
 *
 * No table is locked: transactions over several tables take their locks in any order, and would
 * deadlock with a fence that takes them in one. Nobody writes after the fence all the same. A
 * statement locks its table (ROW EXCLUSIVE) and then reads the invalidations that have been
 * committed by then, so it finds the new body, also in a transaction with an older snapshot,
 * because catalogues are not read with that. A transaction that had locked a table before close()
 * was committed is in pg_locks after it, and await_writers() waits until it has ended.
 *
 * The objects of the schema are found by pg_depend, where each of them depends on it, but indexes:
 * pg_class and pg_proc have no index on the schema alone, and writes would be blocked the longer
 * the more shards the database has. */
const char* const kFence = R"sql(
-- Published. A row of it says that everything before it has been replicated, and carries the positions of the sequences.
CREATE TABLE @move@.marker (id uuid PRIMARY KEY, positions jsonb NOT NULL);
-- The statements that lift the fence; for a function that one replaces, which one and whose.
CREATE TABLE @move@.undo (number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, statement text NOT NULL, function oid, owner oid);

-- Its text is no other function's: fingerprint() tells by it which functions close() has replaced.
CREATE FUNCTION @move@.fence() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END -- @move@';

CREATE FUNCTION @move@.close(problem text, place text) RETURNS void
    LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    schemas CONSTANT oid[] := ARRAY(SELECT n.oid FROM pg_namespace AS n JOIN @move@.shards AS s ON s.schema_name = n.nspname);
    body CONSTANT text := format('BEGIN RAISE EXCEPTION USING ERRCODE = ''read_only_sql_transaction'', '
                                 'MESSAGE = %L, DETAIL = %L; END', problem, place);
    function record;
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION @move@.refuse() RETURNS void LANGUAGE plpgsql AS %L', body);
    GRANT EXECUTE ON FUNCTION @move@.refuse() TO PUBLIC;
    EXECUTE format('CREATE OR REPLACE FUNCTION @move@.fence() RETURNS trigger LANGUAGE plpgsql AS %L', body);
    INSERT INTO @move@.undo (statement) VALUES
        ('CREATE OR REPLACE FUNCTION @move@.fence() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN NULL; END -- @move@''');

    FOR function IN
        SELECT format('%I.%I(%s) RETURNS %s', n.nspname, p.proname, pg_get_function_arguments(p.oid),
                      pg_get_function_result(p.oid)) AS signature, pg_get_functiondef(p.oid) AS definition, p.oid, p.proowner,
               CASE WHEN p.prorettype = 'record'::regtype THEN format('plpgsql AS %L', body)
                    ELSE format('sql AS %L', format('SELECT @move@.refuse(); SELECT NULL::%s', p.prorettype::regtype)) END AS closed
        FROM pg_depend AS d JOIN pg_proc AS p ON p.oid = d.objid JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = ANY (schemas) AND d.classid = 'pg_proc'::regclass
        AND EXISTS (SELECT FROM snowflake_internal.call_of(d.classid, d.objid, 0) AS k WHERE k.is_direct)
    LOOP
        -- A DEFAULT of an argument can have a constant of a type whose input calls functions of the shard's owner.
        PERFORM snowflake_internal.replace_guarded(
            format('CREATE OR REPLACE FUNCTION %s LANGUAGE %s', function.signature, function.closed),
            ARRAY[function.oid], ARRAY[function.proowner]);
        INSERT INTO @move@.undo (statement, function, owner) VALUES (function.definition, function.oid, function.proowner);
    END LOOP;
END $$;

CREATE FUNCTION @move@.stop_sequences() RETURNS jsonb LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    object regclass;
    bounds record;
    drawn record;
    is_up boolean;
    bits integer;
    low bigint;
    positions jsonb := '[]';
BEGIN
    FOR object IN
        SELECT c.oid FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.objid
        WHERE d.refclassid = 'pg_namespace'::regclass AND d.classid = 'pg_class'::regclass AND c.relkind = 'S'
        AND d.refobjid IN (SELECT n.oid FROM pg_namespace AS n JOIN @move@.shards AS s ON s.schema_name = n.nspname)
        ORDER BY c.oid
    LOOP
        SELECT * INTO bounds FROM pg_sequence WHERE seqrelid = object;
        EXECUTE format('ALTER SEQUENCE %s NO CYCLE', object);
        -- By the OID: a query of its name could be one of a view.
        SELECT * INTO STRICT drawn FROM snowflake_internal.stored_value(object);
        IF drawn.last_value IS NULL THEN
            RAISE insufficient_privilege USING MESSAGE = format('role %I may not read sequence %s', current_user, object),
                HINT = format('GRANT SELECT ON SEQUENCE %s TO %I;', object, current_user);
        END IF;
        is_up := bounds.seqincrement > 0;
        bits := CASE bounds.seqtypid WHEN 'smallint'::regtype THEN 15 WHEN 'integer'::regtype THEN 31 ELSE 63 END;
        -- Two values, the last of which is drawn: the present one, but at the end of the type.
        low := drawn.last_value - CASE WHEN is_up THEN (drawn.last_value > -power(2::numeric, bits))::integer
                                       ELSE (drawn.last_value = power(2::numeric, bits) - 1)::integer END;
        EXECUTE format('ALTER SEQUENCE %s MINVALUE %s MAXVALUE %s START %s', object, low, low + 1, low);
        PERFORM setval(object, low + is_up::integer, true);
        INSERT INTO @move@.undo (statement) VALUES
            -- RESTART: a TRUNCATE ... RESTART IDENTITY of the source may have left a value out of these bounds.
            (format('ALTER SEQUENCE %s MINVALUE %s MAXVALUE %s START %s RESTART %s', object, bounds.seqmin, bounds.seqmax,
                    bounds.seqstart, CASE WHEN bounds.seqcycle THEN 'CYCLE' END)),
            (format('SELECT pg_catalog.setval(%L, %s, %L)', object, drawn.last_value, drawn.is_called));
        positions := positions || jsonb_build_object('sequence', object, 'last_value', drawn.last_value,
                                                     'is_called', drawn.is_called);
    END LOOP;
    UPDATE @move@.state SET at = pg_catalog.pg_current_wal_insert_lsn();
    RETURN positions;
END $$;

-- Returns the functions that are not as they were: they are gone, or have another owner.
CREATE FUNCTION @move@.reopen() RETURNS text LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    undo record;
    left_out text;
BEGIN
    FOR undo IN SELECT u.* FROM @move@.undo AS u ORDER BY u.number LOOP
        IF undo.function IS NULL THEN
            EXECUTE undo.statement;
        ELSIF EXISTS (SELECT FROM pg_proc AS p WHERE p.oid = undo.function AND p.proowner = undo.owner) THEN
            PERFORM snowflake_internal.replace_guarded(undo.statement, ARRAY[undo.function], ARRAY[undo.owner]);
        ELSE
            left_out := concat_ws(', ', left_out, substring(undo.statement, '^CREATE OR REPLACE FUNCTION ([^\n]*)'));
        END IF;
    END LOOP;
    DELETE FROM @move@.undo;
    UPDATE @move@.state SET at = pg_catalog.pg_current_wal_insert_lsn();
    RETURN left_out;
END $$;

-- To fire a trigger takes no privilege, and refuse() is granted by close().
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA @move@ FROM PUBLIC;
)sql";

/* By pg_depend, as above. */
std::string relations_of(Connection& connection, const Move& move)
{
    return "SELECT objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND "
           "classid = 'pg_class'::regclass AND refobjid = ANY (" +
           connection.literal(move.schemas()) + "::regnamespace[])";
}

} // namespace

/* A table that was made between the publication and the copy of the definition has no rows
 * there. Partitions are published by themselves, and a partitioned table has no rows, so only
 * relkind 'r' is compared. */
void require_published_tables(Connection& source, const Move& move)
{
    const Result tables = source.query("SELECT oid::regclass FROM pg_class WHERE oid IN (" +
                                           relations_of(source, move) + R"()
        AND relkind = 'r' AND oid NOT IN (
            SELECT prrelid FROM pg_publication_rel JOIN pg_publication AS p ON p.oid = prpubid
            WHERE pubname = $1))",
                                       {move.name});
    if (tables.rows() > 0)
        throw MustStartAnew("table " + tables.text(0, 0) +
                            " was made during the move, which does not carry it");
}

void make_fence(Connection& connection, const Move& move)
{
    connection.run(move.sql(kFence) + keeping_to_owner(move.name));
}

std::vector<std::string> fence_triggers(Connection& connection, const Move& move,
                                        const std::string& firing)
{
    std::vector<std::string> statements;
    /* Partitioned tables, too: a trigger FOR EACH STATEMENT fires on the table that the
     * statement names, not on the partitions that get the rows. OR REPLACE (PostgreSQL 14),
     * because the step can be repeated, and because reverse replication changes the firing of
     * triggers that a move has made. */
    for (const std::string& table : tables_of(connection, move.shards, "rp"))
        statements.push_back(
            "CREATE OR REPLACE TRIGGER snowflake_move BEFORE INSERT OR UPDATE OR DELETE OR "
            "TRUNCATE ON " +
            table + move.sql(" FOR EACH STATEMENT EXECUTE FUNCTION @move@.fence(); ") +
            "ALTER TABLE ONLY " + table + " ENABLE " + firing + " TRIGGER snowflake_move;");
    return statements;
}

void close_shard(Connection& connection, const Move& move, const std::string& problem,
                 const std::string& place)
{
    connection.query(move.sql("SELECT @move@.close($1, $2)"), {problem, place});
}

std::string stop_sequences(Connection& connection, const Move& move)
{
    return connection.query(move.sql("SELECT @move@.stop_sequences()")).text(0, 0);
}

void reopen_shard(Connection& connection, const Move& move)
{
    const Result left_out = connection.query(move.sql("SELECT @move@.reopen()"));
    if (!left_out.text(0, 0).empty())
        warn(connection.server() +
             ": not restored, because they were dropped or got another owner "
             "while the shard was closed: function " +
             visible(left_out.text(0, 0)) +
             "\nHINT:  Their owners make them again, if they are wanted.");
}

void prepare_fence(Connection& source, const Move& move, Clock::time_point deadline)
{
    /* CREATE TRIGGER takes SHARE ROW EXCLUSIVE: it waits for the writers of its table, and later
     * writers wait behind it. So each table has a transaction of its own, before the time in which
     * writes are blocked. */
    for (const std::string& statement : fence_triggers(source, move, "ALWAYS"))
        lock_and_run(source, deadline, [&] { source.run(statement); });
}

void raise_fence(Connection& source, const Move& move, const std::string& target,
                 Clock::time_point deadline, Fence& fence)
{
    fence.start = Clock::now();
    /* If a command was killed after this commit, only the wait and the marker are left. */
    if (!fence.stands)
        lock_and_run(source, deadline, [&] {
            /* A crash that loses this commit loses those that follow: the source is open. */
            source.run("SET LOCAL synchronous_commit = off");
            require_published_tables(source, move);
            close_shard(source, move,
                        move.title() + (move.is_one() ? ", has moved" : " have moved"),
                        (move.is_one() ? "It is at " : "They are at ") + target + " now.");
            write_step(source, move, Step::fenced);
        });
    /* After the commit, for the reason above kFence. Partitioned tables are looked at,
     * too: INSERT locks a partition only when it routes the first row there, after the
     * trigger of the parent. */
    await_writers(source, relations_of(source, move), deadline);
    /* One transaction, because stop_sequences() must not run twice: it notes the present bounds for
     * reopen(), and a second run would note the closed ones. The caller does not come here when the
     * record has a marker. */
    lock_and_run(source, deadline, [&] {
        const Result marker = source.query(
            move.sql("INSERT INTO @move@.marker VALUES (gen_random_uuid(), $1) RETURNING id"),
            {stop_sequences(source, move)});
        write_step(source, move, Step::fenced, marker.text(0, 0));
        fence.marker = marker.text(0, 0);
    });
}

void lower_fence(Connection& source, const Move& move, Clock::time_point deadline)
{
    /* A source that hangs is given up at the deadline, so that the error below tells
     * the user of the fence. */
    const Watch watch(source, late_at(source, deadline));
    try {
        if (require_state(source, move).step == Step::fenced)
            lock_and_run(source, deadline, [&] {
                reopen_shard(source, move);
                /* This also removes the marker from the record. Clients write again, so the next
                 * cutover must wait for a new one. */
                write_step(source, move, Step::prepared);
            });
    } catch (const Failure& error) {
        throw Failure("the source may still be fenced, and closed to every write, until --resume "
                      "or --abort: " +
                      std::string(error.what()));
    }
}
