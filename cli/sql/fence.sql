-- name: fence
-- The fence of a move and of a split: see cutover/fence.h and cutover/sequences.h. @record@ is the schema of their record, whose table
-- shards has the columns number, schema_name and leaves; @trigger@ is the name of the triggers.

-- Where sequences were when end_sequences() set them to their end.
CREATE TABLE @record@.positions (sequence oid PRIMARY KEY, last_value bigint NOT NULL, is_called boolean NOT NULL);
-- The definitions of sequences that mark() has changed.
CREATE TABLE @record@.bounds (sequence oid PRIMARY KEY, low bigint NOT NULL, high bigint NOT NULL, start bigint NOT NULL, cycles boolean NOT NULL);
-- By side: the first XID that had not been given to a transaction at the closing, and those of transactions that had not ended. See
-- cutover/unwritten.h.
CREATE TABLE @record@.closings (leaves boolean PRIMARY KEY, xid xid8 NOT NULL, running xid[] NOT NULL);
-- When the writers have ended. By pg_locks, because a snapshot lacks the XIDs of savepoints. It is read after the snapshot is taken.
CREATE FUNCTION @record@.note_closing(side boolean) RETURNS void LANGUAGE sql SET search_path = '' AS $$
    INSERT INTO @record@.closings VALUES (side, pg_snapshot_xmax(pg_current_snapshot()), ARRAY(
        SELECT transactionid FROM pg_locks
        WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND pid IS DISTINCT FROM pg_backend_pid()))
    ON CONFLICT (leaves) DO UPDATE SET xid = excluded.xid, running = excluded.running
$$;

-- By pg_depend, where each relation of a schema depends on it, but indexes: pg_class has no index on the schema alone, and writes would
-- be blocked the longer the more shards the database has.
CREATE VIEW @record@.relations AS
    SELECT c.oid, c.relkind, s.leaves, format('shard %s, schema %s', s.number, s.schema_name) AS title
    FROM @record@.shards AS s
    JOIN pg_catalog.pg_namespace AS n ON n.nspname = s.schema_name
    JOIN pg_catalog.pg_depend AS d ON d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass AND d.refobjid = n.oid
        AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
    JOIN pg_catalog.pg_class AS c ON c.oid = d.objid;
CREATE FUNCTION @record@.sequences_of(leave boolean) RETURNS oid[] LANGUAGE sql SET search_path = ''
    AS $$ SELECT array_agg(r.oid) FROM @record@.relations AS r WHERE r.relkind = 'S' AND r.leaves = leave $$;
CREATE VIEW @record@.sequences AS
    SELECT q.seqrelid AS sequence, CASE WHEN q.seqincrement > 0 THEN q.seqmax ELSE q.seqmin END AS last, q.seqincrement > 0 AS is_up,
           q.seqcycle AS cycles
    FROM pg_catalog.pg_sequence AS q;

-- The triggers call these. They run as the client, with its search_path, so their bodies qualify every name, operators too. The
-- argument of a trigger is the title of its shard.
CREATE FUNCTION @record@.leaving() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION @record@.staying() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION @record@.set_body(side text, condition text, problem text, place text) RETURNS void
    LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION @record@.%I() RETURNS trigger LANGUAGE plpgsql AS %L', side,
        format('BEGIN IF %s THEN RETURN NULL; END IF; RAISE EXCEPTION USING ERRCODE = ''read_only_sql_transaction'', '
               'MESSAGE = pg_catalog.concat(TG_ARGV[0], %L), DETAIL = %L; END', condition, problem, place));
END $$;
CREATE FUNCTION @record@.open_side(side text) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION @record@.%I() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN NULL; END''', side);
END $$;

-- Tables without a trigger that fires so, and the statement that makes it. Partitioned tables and partitions, too: a statement fires
-- the triggers FOR EACH STATEMENT of the table that it names, and of no other. OR REPLACE (PostgreSQL 14): the trigger can be there,
-- and fire otherwise. ONLY: each partition gets its own.
CREATE FUNCTION @record@.missing_triggers(firing "char") RETURNS TABLE (name regclass, statement text) LANGUAGE sql SET search_path = '' AS $$
    SELECT r.oid::regclass, format('CREATE OR REPLACE TRIGGER @trigger@ BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s FOR EACH STATEMENT '
                         'EXECUTE FUNCTION %s(%L); ALTER TABLE ONLY %1$s ENABLE %4$s TRIGGER @trigger@',
                         r.oid::regclass, f.side::regproc, r.title, CASE firing WHEN 'A' THEN 'ALWAYS' END)
    FROM @record@.relations AS r
    CROSS JOIN LATERAL (SELECT CASE WHEN r.leaves THEN '@record@.leaving'::regproc ELSE '@record@.staying'::regproc END) AS f (side)
    WHERE r.relkind IN ('r', 'p') AND NOT EXISTS (
        SELECT FROM pg_trigger AS t WHERE t.tgrelid = r.oid AND t.tgname = '@trigger@' AND t.tgfoid = f.side AND t.tgenabled = firing)
    ORDER BY r.oid
$$;

-- A sequence that cannot be read is an error: it would be passed over, and neither be closed nor opened.
CREATE FUNCTION @record@.refuse(sequence oid) RETURNS bigint LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF NOT has_sequence_privilege(sequence, 'SELECT') THEN
        RAISE insufficient_privilege USING MESSAGE = format('role %I may not read sequence %s', current_user, sequence::regclass),
            HINT = format('GRANT SELECT ON SEQUENCE %s TO %I;', sequence::regclass, current_user);
    END IF;
    RAISE lock_not_available USING MESSAGE = format('another session has locked sequence %s', sequence::regclass);
END $$;
-- By the OID: a query of its name could be one of a view. STABLE and without SET search_path, so that the planner inlines it: it is
-- called for thousands. OFFSET 0: a condition of the caller on is_called cannot come first.
CREATE FUNCTION @record@.stored(sequence oid) RETURNS TABLE (last_value bigint, is_called boolean) LANGUAGE sql STABLE
    AS 'SELECT COALESCE(v.last_value, @record@.refuse(sequence)), v.is_called FROM snowflake_internal.stored_value(sequence) AS v OFFSET 0';
-- How far they have been drawn. at_end: such a sequence is closed already, and its position is kept.
CREATE FUNCTION @record@.read_sequences(wanted oid[], OUT sequences oid[], OUT last_values bigint[], OUT are_called boolean[],
                                        OUT at_end boolean[])
    LANGUAGE sql SET search_path = '' AS $$
    SELECT array_agg(s.sequence), array_agg(v.last_value), array_agg(v.is_called),
           array_agg(v.last_value = s.last AND v.is_called AND NOT s.cycles)
    FROM @record@.sequences AS s CROSS JOIN LATERAL @record@.stored(s.sequence) AS v
    WHERE s.sequence = ANY (wanted)
$$;
CREATE FUNCTION @record@.keep_positions(sequences oid[], last_values bigint[], are_called boolean[], at_end boolean[]) RETURNS void
    LANGUAGE sql SET search_path = '' AS $$
    MERGE INTO @record@.positions AS p
    USING unnest(sequences, last_values, are_called, at_end) AS r (sequence, last_value, is_called, at_end)
    ON p.sequence = r.sequence
    WHEN MATCHED AND NOT r.at_end THEN UPDATE SET last_value = r.last_value, is_called = r.is_called
    WHEN MATCHED THEN DO NOTHING
    WHEN NOT MATCHED THEN INSERT VALUES (r.sequence, r.last_value, r.is_called)
$$;
-- Bounds that leave no value to be drawn: two values, because MINVALUE must be less than MAXVALUE, the last of which is drawn.
CREATE FUNCTION @record@.mark(object regclass) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    INSERT INTO @record@.bounds
    SELECT q.seqrelid, q.seqmin, q.seqmax, q.seqstart, q.seqcycle FROM pg_sequence AS q WHERE q.seqrelid = object;
    EXECUTE format('ALTER SEQUENCE %s MINVALUE 1 MAXVALUE 2 START 1 RESTART NO CYCLE', object);
    PERFORM setval(object, s.last, true) FROM @record@.sequences AS s WHERE s.sequence = object;
END $$;
-- Few sequences cycle, or have an end at which snowflake_next_id() reads an ID before the last one of an epoch: these get bounds at once.
CREATE FUNCTION @record@.end_sequences(wanted oid[]) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM @record@.mark(s.sequence) FROM @record@.sequences AS s
    WHERE s.sequence = ANY (wanted) AND (s.cycles OR s.last BETWEEN 1::bigint << 53 AND 9223372036854775806);
    PERFORM setval(s.sequence, s.last, true)
    FROM @record@.sequences AS s CROSS JOIN LATERAL @record@.stored(s.sequence) AS v
    WHERE s.sequence = ANY (wanted) AND NOT (v.last_value = s.last AND v.is_called);
END $$;
-- RESTART: ALTER SEQUENCE refuses bounds that do not hold last_value. A rollback undoes all of this, and a later setval() in this
-- transaction, too, because the sequences have new files.
CREATE FUNCTION @record@.unmark(wanted oid[]) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    marked record;
BEGIN
    FOR marked IN
        SELECT b.*, c.oid::regclass AS name FROM @record@.bounds AS b JOIN pg_class AS c ON c.oid = b.sequence
        WHERE b.sequence = ANY (wanted) ORDER BY b.sequence
    LOOP
        EXECUTE format('ALTER SEQUENCE %s MINVALUE %s MAXVALUE %s START %s RESTART %s', marked.name, marked.low, marked.high, marked.start,
                       CASE WHEN marked.cycles THEN 'CYCLE' END);
        PERFORM setval(s.sequence, s.last, true) FROM @record@.sequences AS s WHERE s.sequence = marked.sequence;
        DELETE FROM @record@.bounds AS b WHERE b.sequence = marked.sequence;
    END LOOP;
END $$;
-- Only sequences at their end are set: one that was released by an earlier call, and drawn from since, is left alone, because its IDs
-- would come twice.
CREATE FUNCTION @record@.release_sequences(wanted oid[]) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM @record@.unmark(wanted);
    -- OFFSET 0: stored() raises an error for a sequence that another session has locked, and one without a position is not closed.
    PERFORM setval(c.sequence, c.last_value, c.is_called)
    FROM (SELECT s.sequence, s.last, p.last_value, p.is_called
          FROM @record@.positions AS p JOIN @record@.sequences AS s ON s.sequence = p.sequence
          WHERE s.sequence = ANY (wanted) OFFSET 0) AS c
    CROSS JOIN LATERAL @record@.stored(c.sequence) AS v
    WHERE v.last_value = c.last AND v.is_called;
END $$;

-- Opens the shards that leave where they were closed, with all sequences at once, so that a user can call it by hand. setval() is not
-- undone by a rollback.
CREATE FUNCTION @record@.lift() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM @record@.release_sequences(@record@.sequences_of(true));
    PERFORM @record@.open_side('leaving');
    DELETE FROM @record@.positions;
END $$;

-- Opens the shards where mark() has closed them. setval() follows in the same transaction.
CREATE FUNCTION @record@.open_marked() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM @record@.unmark(array_agg(b.sequence)) FROM @record@.bounds AS b;
    PERFORM @record@.open_side('leaving');
    DELETE FROM @record@.positions;
END $$;

-- name: closing_by_owner
-- In the session of an owner, in the transaction that makes tables and sequences: triggers of the fence, and the end of sequences, so that
-- nobody finds the shards open. mark() of the command comes later, also for sequences that cycle. @shards@: names and titles.
DO $do$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT format('CREATE TRIGGER @trigger@ BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s FOR EACH STATEMENT '
                      'EXECUTE FUNCTION @record@.leaving(%L)', c.oid::regclass, title)
        FROM (VALUES @shards@) AS s (schema_name, title) JOIN pg_namespace AS n ON nspname = schema_name JOIN pg_class AS c ON relnamespace = n.oid
        WHERE relkind IN ('r', 'p') AND pg_has_role(relowner, 'USAGE')
        AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND tgname = '@trigger@')
    LOOP
        EXECUTE statement;
    END LOOP;
    PERFORM setval(seqrelid, CASE WHEN seqincrement > 0 THEN seqmax ELSE seqmin END)
    FROM (VALUES @shards@) AS s (schema_name, title) JOIN pg_namespace AS n ON nspname = schema_name JOIN pg_class AS c ON relnamespace = n.oid
    JOIN pg_sequence ON seqrelid = c.oid WHERE has_sequence_privilege(seqrelid, 'UPDATE');
END $do$;
