-- Giving a column native IDs: a sequence, NOT NULL and a DEFAULT, in place of its former ones.
--
-- snowflake_attach() looks at everything, locks, looks again, and only then changes anything. So each error comes before
-- a row is written. Its steps are the functions attach_...(). old_ is the state before, new_ the state after.

-- A column that snowflake_attach() changes: the column itself, that of a child or a partition, or one that refers to
-- it. All of them are found once, by attach_scope(), and given to each step.
CREATE TYPE snowflake_internal.attach_member AS (
    root regclass,       -- the top of its inheritance tree: ALTER TABLE changes the tree from there
    tbl regclass,
    attnum smallint,
    column_name name,
    is_attached boolean, -- the column itself, in its table and in all below it: gets the DEFAULT
    is_narrow boolean    -- attached, or referring to one that is, and too small for an ID: becomes bigint
);

-- snowflake_attach('schema.table' [, 'column'] [, shard => 0..8191] [, seq => 'schema.sequence'] [, epoch_ms => n]
--                  [, validate => false])
--
-- validate => false: foreign keys are NOT VALID afterwards, and a NOTICE has the statements that validate them.
--
--   42501  not the owner of the table, or of one that refers to it; no right to make or to use the sequence
--   42809  a view, a foreign table, a system catalogue, a partition, an inherited column; seq is no sequence
--   42703, 42804, 428C9   no such column; not bigint, integer or smallint; a generated column
--   55000  no shard; a foreign key to another table's ID; attached with another shard, sequence or epoch; a sequence
--          that others draw from, or that cannot be used; a DEFAULT whose epoch is not known; something in the
--          way, listed with the statements that drop it, and how to save it before; a value so large that new IDs
--          would not be above it within snowflake.max_drift
--   42710, 22003          the shard is another schema's; is none
--   22008, 2200H          the epoch is in the future; is over
--   23502, 25001, 25006   NULLs in the column; isolation above READ COMMITTED; read-only
--   55P03                 others held a table until lock_timeout after the call began: all tables together have that time
--
-- NOTICEs tell the progress: the size before each rewriting, the time after it.
CREATE FUNCTION snowflake_attach(
        tbl regclass, column_name name DEFAULT 'id', shard integer DEFAULT NULL,
        seq regclass DEFAULT NULL, epoch_ms bigint DEFAULT NULL, validate boolean DEFAULT true) RETURNS void
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    started CONSTANT timestamptz := clock_timestamp();
    col pg_attribute;
    scope snowflake_internal.attach_member[];
    arguments text;  -- of this call, for hints
    new_call record; -- shard, epoch_ms, and the schema
    new_seq regclass;
    claimed record;
    largest bigint;
BEGIN
    -- Another session may attach, move or rename the table, or give it a foreign key or a view, while this one
    -- waits for a lock. So all is looked at again until nothing is left to wait for.
    LOOP
        col := snowflake_internal.attach_column(tbl, column_name);
        arguments := snowflake_internal.attach_arguments(tbl, column_name, shard, seq, epoch_ms)
                     || CASE WHEN validate IS FALSE THEN ', validate => false' ELSE '' END;
        PERFORM snowflake_internal.require_read_committed('snowflake_attach'::text, arguments);
        IF snowflake_internal.attach_is_done(col, shard, seq, epoch_ms) THEN
            RETURN;
        END IF;
        PERFORM snowflake_internal.attach_require_own_ids(col, shard, epoch_ms);
        scope := snowflake_internal.attach_scope(tbl, col.attnum);
        PERFORM snowflake_internal.attach_require_owner(scope);
        SELECT a.shard, a.epoch_ms, a.schema INTO new_call
        FROM snowflake_internal.attach_shard(col, shard, epoch_ms) AS a;
        -- Lock order: the shard's number, then the tables. A session that holds a table waits only for tables.
        -- A number that is in use is an error before any hint names objects to drop.
        IF claimed IS DISTINCT FROM new_call THEN
            PERFORM snowflake_internal.claim_shard(new_call.shard, new_call.schema);
            claimed := new_call;
            CONTINUE;
        END IF;
        IF epoch_ms IS NULL THEN
            PERFORM snowflake_internal.attach_require_known_epoch(scope, new_call.shard, new_call.epoch_ms, arguments);
        END IF;
        new_seq := snowflake_internal.attach_sequence(scope, new_call.shard, seq, new_call.epoch_ms);
        PERFORM snowflake_internal.attach_require_clear(scope, seq, arguments);
        EXIT WHEN NOT snowflake_internal.attach_lock(scope, started);
    END LOOP;

    largest := snowflake_internal.attach_largest(scope);
    PERFORM snowflake_internal.require_reach(tbl, column_name, largest, new_call.epoch_ms);

    PERFORM snowflake_internal.attach_tell_broken(scope);
    PERFORM snowflake_internal.attach_tell_readers(scope);
    PERFORM snowflake_internal.attach_tell_old(scope, new_seq);
    new_seq := snowflake_internal.attach_prepare_sequence(scope, new_seq, is_given => seq IS NOT NULL);
    -- Serial numbers, read as IDs, lie long before now. This is for a clock that steps back, and for IDs of
    -- a moment ago. A negative number is below every ID.
    IF largest >= 0 THEN
        PERFORM snowflake_internal.advance(new_seq, largest, new_call.epoch_ms);
    END IF;
    PERFORM snowflake_internal.attach_alter(
        scope, snowflake_internal.call_text(new_call.shard, new_seq, new_call.epoch_ms), validate);
END;
$$;
COMMENT ON FUNCTION snowflake_attach(regclass, name, integer, regclass, bigint, boolean) IS
    'gives a column IDs of a shard, the schema''s by default: a sequence of its own or seq, '
    'NOT NULL and DEFAULT snowflake_next_id(); serial, identity and integer columns are converted with their rows, '
    'and integer columns that refer to it by a foreign key with it; '
    'with validate => false foreign keys are left NOT VALID';

-- The arguments of a call of snowflake_attach() as SQL text, for hints; NULL: not given.
CREATE FUNCTION snowflake_internal.attach_arguments(
        tbl regclass, column_name name, shard integer, seq regclass, epoch_ms bigint) RETURNS text
    LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT concat_ws(', ', quote_literal(tbl::text), quote_literal(column_name), 'shard => ' || shard,
                 'seq => ' || quote_literal(seq::text), 'epoch_ms => ' || epoch_ms)
$$;

-- Whether a column is attached as asked for, with a NOTICE if it is; an error if it is attached otherwise.
CREATE FUNCTION snowflake_internal.attach_is_done(col pg_catalog.pg_attribute, shard integer, seq regclass,
                                                  epoch_ms bigint)
    RETURNS boolean
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    described CONSTANT text := format('column %I of table %s', col.attname, col.attrelid::regclass);
    old record; -- the native call that the column has
    old_text text;
BEGIN
    SELECT k.* INTO old
    FROM snowflake_internal.call_of('pg_class'::regclass::oid, col.attrelid, col.attnum::integer) AS k;
    IF NOT FOUND OR col.atttypid IN ('integer'::regtype, 'smallint'::regtype) THEN
        RETURN false;
    END IF;
    old_text := concat_ws(', ', coalesce('shard ' || old.shard, 'a shard that is no constant'),
                          'sequence ' || coalesce(old.seq::regclass::text, 'none that is constant'),
                          'epoch_ms ' || nullif(old.epoch_ms, snowflake_internal.default_epoch()),
                          'through ' || old.function::regprocedure);
    IF coalesce(shard, old.shard) IS DISTINCT FROM old.shard OR coalesce(seq, old.seq) IS DISTINCT FROM old.seq
       OR coalesce(epoch_ms, old.epoch_ms) IS DISTINCT FROM old.epoch_ms THEN
        RAISE EXCEPTION '% is attached already: %', described, old_text USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Asked for is %s.',
                            concat_ws(', ', 'shard ' || shard, 'sequence ' || seq::text, 'epoch_ms ' || epoch_ms)),
            HINT = format('To change it: ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT; SELECT %ssnowflake_attach(%s);',
                          col.attrelid::regclass, col.attname, snowflake_internal.prefix(),
                          snowflake_internal.attach_arguments(col.attrelid::regclass, col.attname, shard, seq, epoch_ms));
    END IF;
    RAISE NOTICE '% is attached already: %', described, old_text;
    RETURN true;
END;
$$;
