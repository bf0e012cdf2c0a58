-- The scheme without the extension, for servers where no C library can be installed: SQL and PL/pgSQL alone, PostgreSQL 14
-- or later. The functions have the names, arguments and answers of the extension's, for the default epoch. Run it once in
-- each database, and then make shards:
--
--     psql -d app -v ON_ERROR_STOP=1 --single-transaction -f examples/hosted.sql
--     SELECT snowflake_create_shard(5, 'insta5');
--     CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), caption text);
--
-- docs/hosted.md says what this does not promise, and how to migrate to the extension.

-- The fields of an ID. (The mask: >> copies the sign of a negative number.)

CREATE FUNCTION snowflake_timestamp(id bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN to_timestamp((((id >> 23) & 2199023255551) + 1314220021721) / 1000::float8);

CREATE FUNCTION snowflake_shard(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ((id >> 10) & 8191)::integer;

CREATE FUNCTION snowflake_seq(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (id & 1023)::integer;

CREATE FUNCTION snowflake_decode(id bigint, OUT created_at timestamptz, OUT shard integer, OUT seq integer)
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    BEGIN ATOMIC
        SELECT snowflake_timestamp(id), snowflake_shard(id), snowflake_seq(id);
    END;

-- The IDs of a range of time. 1099511627775 is the last millisecond after the epoch for which an ID is positive.

CREATE FUNCTION snowflake_min_id(ts timestamptz) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    BEGIN ATOMIC
        SELECT CASE WHEN age <= 0 THEN 0
                    WHEN age > 1099511627775 THEN 9223372036854775807
                    ELSE age::bigint << 23 END
        FROM (SELECT ceil(extract(epoch FROM ts) * 1000) - 1314220021721) AS a(age);
    END;

CREATE FUNCTION snowflake_max_id(ts timestamptz) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    BEGIN ATOMIC
        SELECT CASE WHEN age < 0 THEN -1
                    WHEN age > 1099511627775 THEN 9223372036854775807
                    ELSE (age::bigint << 23) | 8388607 END
        FROM (SELECT floor(extract(epoch FROM ts) * 1000) - 1314220021721) AS a(age);
    END;

-- Not STRICT: the planner inlines it, and so uses an index on id.
CREATE FUNCTION snowflake_between(id bigint, from_ts timestamptz, to_ts timestamptz) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN id >= snowflake_min_id(from_ts) AND id < snowflake_min_id(to_ts);

-- A shard: a schema, its sequence, and its next_id(). An ID has the millisecond in which its counter was drawn. If the
-- clock moved on between its two readings, a second counter is drawn: the first could be 1024 behind that of another
-- session by now, and both IDs would be equal.
CREATE FUNCTION snowflake_create_shard(shard integer, schema_name name) RETURNS void
    LANGUAGE plpgsql STRICT
AS $create$
BEGIN
    IF shard NOT BETWEEN 0 AND 8191 THEN
        RAISE EXCEPTION 'shard % is out of range', shard USING
            ERRCODE = 'numeric_value_out_of_range', DETAIL = 'An ID has 13 bits for its shard: 0 to 8191.';
    END IF;
    EXECUTE format('CREATE SCHEMA IF NOT EXISTS %I', schema_name);
    EXECUTE format('CREATE SEQUENCE %I.table_id_seq', schema_name);
    EXECUTE format($format$
        CREATE FUNCTION %1$I.next_id() RETURNS bigint LANGUAGE plpgsql AS $next_id$
        DECLARE
            now_ms bigint;
            counter bigint;
        BEGIN
            LOOP
                now_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
                counter := nextval(%2$L) %% 1024;
                EXIT WHEN floor(extract(epoch FROM clock_timestamp()) * 1000) = now_ms;
            END LOOP;
            RETURN ((now_ms - 1314220021721) << 23) | (%3$s << 10) | counter;
        END $next_id$ $format$,
        schema_name, format('%I.table_id_seq', schema_name), shard);
END $create$;
