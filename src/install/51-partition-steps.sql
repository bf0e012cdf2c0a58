-- Steps of snowflake_create_partitions(): which partitions a table has, which it is to get, and making one.

-- The partitions of a table that is partitioned by RANGE of a bigint, and their IDs; NULL: the default partition.
CREATE FUNCTION snowflake_internal.partitions(parent regclass) RETURNS TABLE (partition regclass, ids int8range)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT p.oid, CASE WHEN b.found IS NOT NULL THEN int8range(nullif(btrim(b.found[1], ''''), 'MINVALUE')::bigint,
                                                           nullif(btrim(b.found[2], ''''), 'MAXVALUE')::bigint) END
-- OFFSET 0: pg_get_expr() locks the partition, and could be called for those of other tables otherwise.
FROM (SELECT c.oid, c.relpartbound FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
      WHERE i.inhparent = parent OFFSET 0) AS p
CROSS JOIN LATERAL regexp_match(pg_get_expr(p.relpartbound, p.oid),
                                '^FOR VALUES FROM \((.*)\) TO \((.*)\)$') AS b(found)
$$;

-- The time in which IDs are made.
CREATE FUNCTION snowflake_internal.times_of(ids int8range, epoch_ms bigint, OUT from_ts timestamptz,
                                            OUT to_ts timestamptz)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
-- No ID is negative.
SELECT CASE WHEN lower($1) >= 0 THEN snowflake_internal.time_of(lower($1), $2) ELSE '-infinity' END,
       CASE WHEN upper_inf($1) THEN 'infinity'
            WHEN upper($1) >= 0 THEN snowflake_internal.time_of(upper($1), $2) ELSE '-infinity' END
$$;

-- Refuses times and steps that no partitions can be made for, and too many of them.
CREATE FUNCTION snowflake_internal.partition_require_period(from_ts timestamptz, to_ts timestamptz, step interval,
                                                            epoch_ms bigint)
    RETURNS void LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    months integer;
    days integer;
    rest interval;
    first_ts CONSTANT timestamptz := snowflake_internal.time_of(0::bigint, epoch_ms);
    last_ts CONSTANT timestamptz := snowflake_internal.time_of(9223372036854775807, epoch_ms);
BEGIN
    IF from_ts IS NULL OR to_ts IS NULL OR step IS NULL THEN
        RAISE EXCEPTION 'from_ts, to_ts and step of snowflake_create_partitions() must not be null' USING
            ERRCODE = 'null_value_not_allowed',
            HINT = format('SELECT %ssnowflake_create_partitions(''schema.table'', ''2024-01-01'', ''2025-01-01'', ''1 month'');',
                          snowflake_internal.prefix());
    ELSIF NOT isfinite(from_ts) OR NOT isfinite(to_ts) OR from_ts >= to_ts THEN
        RAISE EXCEPTION 'there is no time from % to %', from_ts, to_ts USING ERRCODE = 'invalid_parameter_value',
            DETAIL = 'from_ts must be before to_ts, and both must be finite.',
            HINT = 'For older or younger rows, make a partition FROM (MINVALUE) or TO (MAXVALUE) yourself.';
    ELSIF date_trunc('second', from_ts) <> from_ts THEN
        RAISE EXCEPTION 'from_ts % is no full second', from_ts USING ERRCODE = 'invalid_parameter_value',
            DETAIL = 'The first partition begins at from_ts.',
            HINT = 'Round it down: date_trunc(''month'', now()), for example.';
    END IF;
    IF isfinite(step) THEN
        months := extract(year FROM step) * 12 + extract(month FROM step);
        days := extract(day FROM step);
        rest := step - make_interval(months => months, days => days);
    END IF;
    -- A month and a day have no length of their own, so a mixture is not a step that the name of a partition tells.
    IF NOT isfinite(step) OR months < 0 OR days < 0 OR rest < interval '0' OR date_trunc('second', rest) <> rest
       OR (months > 0)::integer + (days > 0)::integer + (rest > interval '0')::integer <> 1 THEN
        RAISE EXCEPTION 'step % makes no partitions', step USING ERRCODE = 'invalid_parameter_value',
            DETAIL = 'A step is a number of months (and years), or of days (and weeks), '
                     'or of full seconds (and hours), greater than 0.',
            HINT = 'For example interval ''1 month'', interval ''7 days'' or interval ''6 hours''.';
    END IF;

    IF from_ts + step <= first_ts OR to_ts > last_ts THEN
        RAISE EXCEPTION 'the time from % to % is not within the epoch', from_ts, to_ts USING
            ERRCODE = 'datetime_field_overflow',
            DETAIL = format('With epoch_ms %s the first ID is of %s, and the last one of %s.',
                            epoch_ms, first_ts, last_ts),
            HINT = 'Give times between these two, and epoch_ms in milliseconds.';
    -- Steps of a year and more are few, because an epoch has 69 years. Many of them could be no interval.
    ELSIF step < interval '1 year' AND from_ts + 10000 * step < to_ts THEN
        RAISE EXCEPTION 'more than 10000 partitions from % to %', from_ts, to_ts USING
            ERRCODE = 'program_limit_exceeded',
            DETAIL = format('With the step %s the first 10000 end at %s.', step, from_ts + 10000 * step),
            HINT = 'Take a longer step, or make them in several calls.';
    END IF;
END;
$$;

-- The steps from first_ts until last_ts is reached: their times, IDs and ends of names, without empty ones.
CREATE FUNCTION snowflake_internal.partition_steps(
        first_ts timestamptz, last_ts timestamptz, step interval, epoch_ms bigint,
        OUT from_ts timestamptz, OUT to_ts timestamptz, OUT ids int8range, OUT name text) RETURNS SETOF record
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    n integer := 0;
BEGIN
    -- Each step is counted from the first one: a month after January 31 is February 29, two are March 31.
    to_ts := first_ts;
    WHILE to_ts < last_ts LOOP
        from_ts := to_ts;
        n := n + 1;
        to_ts := first_ts + n * step;
        -- A day that a time zone has left out has no length.
        IF from_ts < to_ts THEN
            ids := int8range(snowflake_internal.min_id(from_ts, epoch_ms),
                             snowflake_internal.min_id(to_ts, epoch_ms));
            -- As exact as the step and the time need it, in the time zone of the session: 2024, 2024_05, 2024_05_17,
            -- 2024_05_17_0800. Of an hour that a time zone has twice, the first is named in UTC.
            name := CASE WHEN from_ts::timestamp::timestamptz <> from_ts
                             THEN to_char(from_ts AT TIME ZONE 'UTC', 'YYYY_MM_DD_HH24MISS"_utc"')
                         ELSE to_char(from_ts, CASE
                         WHEN date_trunc('minute', from_ts) <> from_ts THEN 'YYYY_MM_DD_HH24MISS'
                         WHEN date_trunc('day', from_ts) <> from_ts OR step < interval '1 day' THEN 'YYYY_MM_DD_HH24MI'
                         WHEN date_trunc('month', from_ts) <> from_ts OR step < interval '1 month' THEN 'YYYY_MM_DD'
                         WHEN date_trunc('year', from_ts) <> from_ts OR step < interval '1 year' THEN 'YYYY_MM'
                         ELSE 'YYYY' END) END;
            RETURN NEXT;
        END IF;
    END LOOP;
END;
$$;

-- The default partition, with a CHECK constraint by which it has no row of the new partitions, and an error with the
-- statements that move such rows. Without the constraint ATTACH PARTITION reads all rows for each new partition. NULL: no
-- constraint was made. arguments are for the hint.
CREATE FUNCTION snowflake_internal.partition_prove_default(parent regclass, key name, ids int8range, arguments text)
    RETURNS regclass LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other CONSTANT regclass := (SELECT nullif(k.partdefid, 0) FROM pg_partitioned_table AS k
                                WHERE k.partrelid = parent);
    condition CONSTANT text := format('%1$I >= %2$s AND %1$I < %3$s', key, lower(ids), upper(ids));
    columns text;
BEGIN
    -- ALTER TABLE refuses tables of other owners, and believes a constraint of a foreign table.
    IF other IS NULL
       OR EXISTS (SELECT FROM pg_partition_tree(other) AS t JOIN pg_class AS c ON c.oid = t.relid
                  WHERE c.relkind NOT IN ('r', 'p') OR NOT pg_has_role(c.relowner, 'USAGE')) THEN
        RETURN NULL;
    END IF;
    EXECUTE format('ALTER TABLE %1$s ADD CONSTRAINT snowflake_create_partitions CHECK (%2$I < %3$s OR %2$I >= %4$s)',
                   other, key, lower(ids), upper(ids));
    RETURN other;
EXCEPTION
WHEN object_in_use THEN
    RETURN NULL; -- this transaction has deferred triggers to fire for its rows
WHEN check_violation THEN
    SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) INTO columns
    FROM pg_attribute AS a
    WHERE a.attrelid = parent AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '';
    RAISE EXCEPTION 'the default partition % holds rows of the new partitions', other USING ERRCODE = 'check_violation',
        DETAIL = format('They are those of SELECT * FROM %s WHERE %s.', other, condition),
        HINT = concat_ws(E'\n', 'Move them:', 'BEGIN;',
            format('ALTER TABLE %s DETACH PARTITION %s;', parent, other),
            format('SELECT %ssnowflake_create_partitions(%s);', snowflake_internal.prefix(), arguments),
            format('WITH moved AS (DELETE FROM %s WHERE %s RETURNING %s) '
                   'INSERT INTO %s (%3$s) SELECT %3$s FROM moved;',
                   other, condition, columns, parent),
            format('ALTER TABLE %s ATTACH PARTITION %s DEFAULT;', parent, other),
            'COMMIT;');
END;
$$;

-- Makes a partition of these IDs, with the owner, the access method and the tablespace of its parent.
CREATE FUNCTION snowflake_internal.create_partition(parent regclass, suffix text, ids int8range) RETURNS regclass
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    described CONSTANT pg_class := (SELECT c FROM pg_class AS c WHERE c.oid = parent);
    relname CONSTANT text := format('%s_%s', described.relname, suffix);
    partition CONSTANT text := format('%s.%I', described.relnamespace::regnamespace, relname);
    bounds CONSTANT text := format('FOR VALUES FROM (%s) TO (%s)', lower(ids), upper(ids));
BEGIN
    -- The server would cut it, and two partitions could get the same name.
    IF octet_length(relname) > current_setting('max_identifier_length')::integer THEN
        RAISE EXCEPTION 'the name % is too long', quote_ident(relname) USING ERRCODE = 'name_too_long',
            DETAIL = format('It has %s bytes; a name has %s at most.', octet_length(relname),
                            current_setting('max_identifier_length')),
            HINT = format('Make the partition under a shorter name: CREATE TABLE ... PARTITION OF %s %s; '
                          'or rename the table.', parent, bounds);
    END IF;
    -- CREATE TABLE ... PARTITION OF would lock the parent against all others. LIKE copies the same properties;
    -- indexes, foreign keys, triggers and identity come with ATTACH.
    EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED '
                   'INCLUDING STORAGE INCLUDING COMPRESSION)%s%s',
                   partition, parent,
                   (SELECT format(' USING %I', m.amname) FROM pg_am AS m WHERE m.oid = described.relam),
                   (SELECT format(' TABLESPACE %I', t.spcname) FROM pg_tablespace AS t
                    WHERE t.oid = described.reltablespace));
    IF described.relowner <> quote_ident(current_user)::regrole THEN
        EXECUTE format('ALTER TABLE %s OWNER TO %s', partition, described.relowner::regrole);
    END IF;
    EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s %s', parent, partition, bounds);
    RETURN partition;
END;
$$;
