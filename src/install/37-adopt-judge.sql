-- Steps of snowflake_adopt(): conclusions from the calls of the old function.

-- Calls a function with the search_path of the caller, and returns the observation.
CREATE FUNCTION snowflake_internal.adopt_call(legacy regprocedure, seq regclass) RETURNS snowflake_internal.observation
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
    named CONSTANT pg_catalog.text := -- with its schema
        (pg_catalog.pg_identify_object('pg_catalog.pg_proc'::pg_catalog.regclass, legacy, 0)).identity;
    seen snowflake_internal.observation;
BEGIN
    EXECUTE pg_catalog.concat('SELECT pg_catalog.clock_timestamp(), ', named, ', pg_catalog.clock_timestamp()')
        INTO seen.before, seen.id, seen.after;
    SELECT d.last_value, d.seqs INTO seen.last_value, seen.seqs FROM snowflake_internal.adopt_drawn(legacy, seq) AS d;
    RETURN seen;
END;
$$;

-- The epochs that fit all calls: of a function that rounds the clock down, then of one that rounds it to the nearest.
-- Before a call the clock was in millisecond b, after it in a. If the function rounds the clock down, its epoch
-- is in b - (id >> 23) .. a - (id >> 23). If it rounds to the nearest, b and a are those of half a millisecond
-- later. The epoch is in the intersection of all calls; a function that does neither leaves none. The
-- microsecond on both sides is for functions that compute with float8, which is off by a fraction of it.
CREATE FUNCTION snowflake_internal.adopt_epochs(
        calls snowflake_internal.observation[], OUT lowest bigint, OUT highest bigint) RETURNS SETOF record
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT e.lowest, e.highest
FROM (SELECT r.later_us,
             max(((extract(epoch FROM c.before) * 1000000)::bigint - 1 + r.later_us) / 1000 - (c.id >> 23)) AS lowest,
             min(((extract(epoch FROM c.after) * 1000000)::bigint + 1 + r.later_us) / 1000 - (c.id >> 23)) AS highest
      FROM unnest($1) AS c, (VALUES (0), (500)) AS r(later_us)
      GROUP BY r.later_us) AS e
WHERE e.lowest <= e.highest
ORDER BY e.later_us
$$;

-- Whether there are calls in less than 20 milliseconds, or more than one epoch fits; never after 200 calls.
CREATE FUNCTION snowflake_internal.adopt_needs_more(calls snowflake_internal.observation[]) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT cardinality($1) < 200
       AND ((SELECT count(DISTINCT date_trunc('milliseconds', c.before)) < 20 FROM unnest($1) AS c)
            OR (SELECT min(e.lowest) < max(e.highest) FROM snowflake_internal.adopt_epochs($1) AS e))
$$;

-- The epoch of a function; refuses one whose IDs are not of the layout, the shard and the sequence.
CREATE FUNCTION snowflake_internal.adopt_judge(
        legacy regprocedure, shard integer, seq regclass, epoch_ms bigint, calls snowflake_internal.observation[])
        RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    negative CONSTANT bigint := (SELECT min(c.id) FROM unnest(calls) AS c WHERE c.id < 0);
    instead CONSTANT text := snowflake_internal.adopt_attach_text(
        legacy, shard, seq, coalesce(epoch_ms, snowflake_internal.default_epoch()), calls);
    found_ms bigint;
BEGIN
    IF EXISTS (SELECT FROM unnest(calls) AS c WHERE c.id IS NULL) THEN
        RAISE EXCEPTION 'function % returned NULL', legacy USING ERRCODE = 'invalid_function_definition';
    ELSIF EXISTS (SELECT FROM unnest(calls) AS c WHERE (seq = ANY (c.seqs)) IS NOT TRUE)
          OR (SELECT count(DISTINCT c.last_value) FROM unnest(calls) AS c) < cardinality(calls) THEN
        RAISE EXCEPTION 'function % does not draw from sequence % in each call', legacy, seq USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = 'lastval() must be another number after each call, and the currval() of this sequence.';
    END IF;
    -- Not the last call: a counter that spills over the shard field can change the time, too.
    found_ms := snowflake_internal.adopt_judge_time(legacy, calls[:cardinality(calls) - 1], instead);
    IF negative IS NOT NULL THEN
        RAISE EXCEPTION 'function %: its IDs are negative', legacy USING
            ERRCODE = 'datetime_field_overflow',
            DETAIL = format('It returned %s. Either its epoch_ms is %s, and its time has overflowed, or it is %s, '
                            'which is in the future.',
                            negative, found_ms - (1::bigint << 41), found_ms),
            HINT = instead;
    END IF;
    PERFORM snowflake_internal.adopt_judge_fields(
        legacy, shard, calls, snowflake_internal.adopt_attach_text(legacy, shard, seq, found_ms, calls));
    IF epoch_ms <> found_ms THEN
        RAISE EXCEPTION 'function %: the epoch is %, not %', legacy, found_ms, epoch_ms USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = format('It is the one that fits the clock in each of %s calls.', cardinality(calls) - 1);
    END IF;
    RETURN found_ms;
END;
$$;

-- The epoch that the calls of a function show; an error if it is none, or more than one.
CREATE FUNCTION snowflake_internal.adopt_judge_time(
        legacy regprocedure, calls snowflake_internal.observation[], instead text) RETURNS bigint
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    epochs record;
    first_call CONSTANT snowflake_internal.observation := calls[1];
    last_call CONSTANT snowflake_internal.observation := calls[cardinality(calls)];
BEGIN
    -- If both kinds of rounding fit, as with slow calls, it is taken for the published one.
    SELECT * INTO epochs FROM snowflake_internal.adopt_epochs(calls) LIMIT 1;
    -- All above the counter: with its time at a lower bit, id >> 23 may not move for a while.
    IF (SELECT min(c.id >> 10) = max(c.id >> 10) FROM unnest(calls) AS c) THEN
        RAISE EXCEPTION 'function %: the time in its IDs stands still', legacy USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = format('In %s calls the clock moved by %s ms, and id >> 23 was %s in all of them.',
                            cardinality(calls), round(extract(epoch FROM last_call.before - first_call.before) * 1000),
                            first_call.id >> 23),
            HINT = 'If it calls now() or statement_timestamp(), write clock_timestamp() there, and adopt it then.';
    ELSIF epochs IS NULL THEN
        RAISE EXCEPTION 'function %: the time field is not milliseconds at bit 23', legacy USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = format('From the first of %s calls to the last the clock moved by %s ms, and id >> 23 by %s, '
                            'from %s to %s. No epoch fits all calls.',
                            cardinality(calls), round(extract(epoch FROM last_call.before - first_call.before) * 1000),
                            (last_call.id >> 23) - (first_call.id >> 23), first_call.id >> 23, last_call.id >> 23),
            HINT = instead;
    ELSIF epochs.lowest < epochs.highest THEN
        RAISE EXCEPTION 'function %: the epoch is not seen to the millisecond', legacy USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('After %s calls it is between %s and %s. The quickest call took %s ms.', cardinality(calls),
                            epochs.lowest, epochs.highest,
                            (SELECT extract(epoch FROM min(c.after - c.before)) * 1000 FROM unnest(calls) AS c)),
            HINT = 'Try again when the server is less busy.';
    END IF;
    RETURN epochs.lowest;
END;
$$;

-- Refuses a function whose IDs carry another shard or another counter than lastval() % 1024.
CREATE FUNCTION snowflake_internal.adopt_judge_fields(
        legacy regprocedure, shard integer, calls snowflake_internal.observation[], instead text) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first_shard CONSTANT bigint := (calls[1].id >> 10) & 8191;
    seen snowflake_internal.observation := calls[1];
    detail text;
BEGIN
    -- All 23 bits: a counter that is wider than its field changes the shard.
    SELECT c.* INTO seen FROM unnest(calls) AS c
    ORDER BY (c.id & 8388607) <> ((first_shard << 10) | (c.last_value & 1023)) DESC, c.before LIMIT 1;
    detail := format('With lastval() = %s it returned %s: shard %s, counter %s.',
                     seen.last_value, seen.id, (seen.id >> 10) & 8191, seen.id & 1023);
    IF (seen.id & 8388607) <> ((first_shard << 10) | (seen.last_value & 1023)) THEN
        RAISE EXCEPTION 'function %: the counter is not lastval() %% 1024', legacy USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = detail,
            HINT = concat_ws(E'\n',
                             'If its shard is shifted by 10 bits, write nextval(...) % 1024 for the counter, '
                             'and adopt it then.', instead);
    ELSIF first_shard <> shard THEN
        RAISE EXCEPTION 'function %: IDs carry shard %, not %', legacy, first_shard, shard USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = detail,
            HINT = format('If that is its shard: SELECT %ssnowflake_adopt(%L, %s);', snowflake_internal.prefix(), legacy, first_shard);
    END IF;
END;
$$;

-- The remedy for a function that cannot be adopted: the statements that attach the columns whose DEFAULT calls it.
CREATE FUNCTION snowflake_internal.adopt_attach_text(
        legacy regprocedure, shard integer, seq regclass, epoch_ms bigint, calls snowflake_internal.observation[])
        RETURNS text
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    statements text;
BEGIN
    -- Not the last call: see adopt_judge().
    IF (SELECT max(c.id >> 23) FROM unnest(calls[:cardinality(calls) - 1]) AS c)
       > floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - epoch_ms THEN
        RETURN 'Its IDs are larger than native ones of today: a column of them cannot go on with native IDs.';
    END IF;
    -- Two schemas cannot have one shard: snowflake_attach() asks for it then.
    SELECT string_agg(format('SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(), snowflake_internal.attach_arguments(
                          c.tbl, c.attname, CASE WHEN c.is_one_schema THEN shard END, seq, epoch_ms)),
                      E'\n' ORDER BY c.tbl::text COLLATE "C", c.attnum) INTO statements
    FROM (SELECT t.oid::regclass AS tbl, a.attname, a.attnum,
                 min(t.relnamespace) OVER () = max(t.relnamespace) OVER () AS is_one_schema
          FROM pg_depend AS d
          JOIN pg_attrdef AS f ON f.oid = d.objid
          JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum AND a.attinhcount = 0
          JOIN pg_class AS t ON t.oid = a.attrelid AND t.relpersistence <> 't'
          WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = legacy) AS c;
    RETURN concat_ws(E'\n',
        'A column whose DEFAULT calls it can be attached: its IDs stay, and new ones are above them. '
        'If its IDs are milliseconds << 23 of another epoch, give that as epoch_ms.',
        coalesce(statements, format('SELECT %ssnowflake_attach(table, column, %s);', snowflake_internal.prefix(),
                                    concat_ws(', ', 'shard => ' || shard, 'seq => ' || quote_literal(seq::text),
                                              'epoch_ms => ' || epoch_ms))));
END;
$$;
