-- Partitions by time of a table that is partitioned by RANGE of its ID. The IDs of a partition are an int8range: without
-- a lower bound it is FROM (MINVALUE), without an upper one TO (MAXVALUE), and NULL is the default partition.

-- snowflake_create_partitions('schema.table', '2024-01-01', '2025-01-01', '1 month' [, epoch_ms])
--
--   22004, 22023   NULL; no time to make partitions for, or a step that is not positive, of one kind and whole seconds
--   22008          no ID is of that time
--   42501          not the owner of the table
--   42809, 42P17   not partitioned by RANGE of one bigint column; a partition overlaps
--   42P07, 42622   the name of a new partition is taken, or too long
--   55000          the epoch is not known, or not that of the DEFAULT
--   54000          more than 10,000 partitions
--   23514          the default partition holds rows of a new one
CREATE FUNCTION snowflake_create_partitions(
        parent regclass, from_ts timestamptz, to_ts timestamptz, step interval, epoch_ms bigint DEFAULT NULL)
    RETURNS SETOF regclass
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key CONSTANT name := snowflake_internal.partition_key(parent);
    arguments CONSTANT text := concat_ws(', ', quote_literal(parent::text), quote_literal(from_ts::text),
                                         quote_literal(to_ts::text), quote_literal(step::text),
                                         'epoch_ms => ' || epoch_ms); -- of this call, for hints
    epoch bigint;
    proven regclass;
    new record;
BEGIN
    epoch := snowflake_internal.partition_epoch(parent, key, epoch_ms);
    PERFORM snowflake_internal.partition_require_period(from_ts, to_ts, step, epoch);

    -- As ATTACH PARTITION does: rows are read and written meanwhile, and another call for the table waits.
    EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', parent);
    proven := snowflake_internal.partition_prove_default(parent, key, (
        SELECT int8range(min(lower(s.ids)), max(upper(s.ids)))
        FROM snowflake_internal.partition_steps(from_ts, to_ts, step, epoch) AS s
        WHERE NOT EXISTS (SELECT FROM snowflake_internal.partitions(parent) AS p WHERE p.ids = s.ids)), arguments);
    FOR new IN
        SELECT s.*, p.partition AS present, p.ids AS present_ids
        FROM snowflake_internal.partition_steps(from_ts, to_ts, step, epoch) AS s
        LEFT JOIN snowflake_internal.partitions(parent) AS p ON p.ids && s.ids
        ORDER BY s.from_ts
    LOOP
        IF new.present IS NULL THEN
            RETURN NEXT snowflake_internal.create_partition(parent, new.name, new.ids);
        ELSIF new.present_ids <> new.ids THEN
            RAISE EXCEPTION 'partition % overlaps the time from % to %', new.present, new.from_ts, new.to_ts USING
                ERRCODE = 'invalid_object_definition',
                DETAIL = (SELECT format('It is of the time from %s to %s.', b.from_ts, b.to_ts)
                          FROM snowflake_internal.times_of(new.present_ids, epoch) AS b),
                HINT = 'Begin where it ends, or end where it begins. '
                       'Steps of days and months are those of the time zone of the session.';
        END IF;
    END LOOP;
    IF proven IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT snowflake_create_partitions', proven);
    END IF;
END;
$$;
COMMENT ON FUNCTION snowflake_create_partitions(regclass, timestamptz, timestamptz, interval, bigint) IS
    'makes the partitions of a table that is partitioned by RANGE of its ID: one for each step (months, days, '
    'or hours and less) from from_ts until to_ts is reached, of the epoch of the column''s DEFAULT; '
    'returns those that were not there';

-- snowflake_partition_bounds('schema.partition' [, epoch_ms])
--
--   22004          NULL
--   42809, 42P01   no partition by RANGE of one bigint column; no table
--   55000          the epoch is not known, or not that of the DEFAULT
CREATE FUNCTION snowflake_partition_bounds(
        partition regclass, epoch_ms bigint DEFAULT NULL, OUT from_ts timestamptz, OUT to_ts timestamptz)
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parent regclass;
    epoch bigint;
BEGIN
    SELECT i.inhparent INTO parent
    FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE c.oid = partition AND c.relispartition;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% is not a partition', coalesce(partition::text, 'NULL') USING
            ERRCODE = 'wrong_object_type',
            HINT = 'Give a partition of a table that is partitioned by RANGE of its ID.';
    END IF;
    epoch := snowflake_internal.partition_epoch(parent, snowflake_internal.partition_key(parent), epoch_ms);
    SELECT b.from_ts, b.to_ts INTO from_ts, to_ts
    FROM snowflake_internal.partitions(parent) AS p, snowflake_internal.times_of(p.ids, epoch) AS b
    WHERE p.partition = snowflake_partition_bounds.partition;
END;
$$;
COMMENT ON FUNCTION snowflake_partition_bounds(regclass, bigint) IS
    'the time of a partition''s IDs, [from_ts, to_ts): -infinity and infinity where it has no bound, '
    'NULL of a default partition';

-- The column that a table is partitioned by; an error if that is not the RANGE of one bigint column.
CREATE FUNCTION snowflake_internal.partition_key(parent regclass) RETURNS name
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target record;
BEGIN
    IF parent IS NULL THEN
        RAISE EXCEPTION 'the table of snowflake_create_partitions() must not be null' USING
            ERRCODE = 'null_value_not_allowed',
            HINT = format('SELECT %ssnowflake_create_partitions(''schema.table'', ''2024-01-01'', ''2025-01-01'', ''1 month'');',
                          snowflake_internal.prefix());
    END IF;
    SELECT k.partstrat, k.partnatts, a.attname, t.typoutput,
           CASE WHEN k.partnatts = 1 THEN format_type(a.atttypid, a.atttypmod) END AS type INTO target
    FROM pg_class AS c
    LEFT JOIN pg_partitioned_table AS k ON k.partrelid = c.oid
    LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.partattrs[0] AND a.attnum > 0 -- 0: an expression
    LEFT JOIN pg_type AS t ON t.oid = a.atttypid
    WHERE c.oid = parent;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'table with OID % does not exist', parent::oid USING
            ERRCODE = 'undefined_table',
            HINT = 'Give a table by its name: ''schema.table''::regclass.';
    ELSIF target.partstrat = 'r' AND target.partnatts = 1
          AND target.typoutput = 'int8out'::regproc THEN -- or a domain over bigint
        RETURN target.attname;
    END IF;
    RAISE EXCEPTION '% is not partitioned by RANGE of one bigint column',
        pg_describe_object('pg_class'::regclass, parent, 0) USING
        ERRCODE = 'wrong_object_type',
        DETAIL = coalesce('Its partition key is ' || pg_get_partkeydef(parent)
                          || coalesce(', of type ' || target.type, '') || '.',
                          'It has no partition key.'),
        HINT = 'CREATE TABLE ... (id bigint PRIMARY KEY, ...) PARTITION BY RANGE (id);';
END;
$$;

-- The epoch of a column's IDs: that of its DEFAULT, or epoch_ms where it does not tell; an error if they differ.
CREATE FUNCTION snowflake_internal.partition_epoch(parent regclass, key name, epoch_ms bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    described CONSTANT text := format('column %I of table %s', key, parent);
    made bigint[]; -- the epochs of the DEFAULT; NULL: one that is no constant
    known bigint[];
BEGIN
    -- A row that is inserted into a table gets the DEFAULT of that table, and not that of its partition.
    SELECT array_agg(DISTINCT k.epoch_ms) INTO made
    FROM pg_partition_ancestors(parent) AS t(tbl)
    JOIN pg_attribute AS a ON a.attrelid = t.tbl AND a.attname = key
    CROSS JOIN LATERAL snowflake_internal.call_of('pg_class'::regclass::oid, t.tbl::oid, a.attnum::integer) AS k;

    known := array_remove(made, NULL);
    IF cardinality(known) > 1 THEN
        RAISE EXCEPTION '% makes IDs of several epochs', described USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('They are %s; the bounds of a partition are of one.', array_to_string(known, ', ')),
            HINT = format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT ...', pg_partition_root(parent), key);
    ELSIF known[1] <> epoch_ms THEN
        RAISE EXCEPTION '% makes IDs of another epoch than epoch_ms %', described, epoch_ms USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Its DEFAULT has epoch_ms %s.', known[1]),
            HINT = 'Leave epoch_ms out.';
    ELSIF epoch_ms IS NULL AND (made IS NULL OR cardinality(known) < cardinality(made)) THEN
        RAISE EXCEPTION 'the epoch of % is not known', described USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = CASE WHEN made IS NULL THEN 'Its DEFAULT makes no IDs.'
                          ELSE 'The epoch_ms of its DEFAULT is no constant.' END,
            HINT = concat_ws(' ',
                             format('Give the epoch of its IDs, for example epoch_ms => %s.', snowflake_internal.default_epoch()),
                             CASE WHEN made IS NULL
                                 THEN format('If they shall be made here: SELECT %ssnowflake_attach(%L, %L);', snowflake_internal.prefix(),
                                             pg_partition_root(parent), key) END);
    END IF;
    RETURN coalesce(epoch_ms, known[1]);
END;
$$;
