-- Problems of snowflake_check(): the IDs that columns hold, and DEFAULTs that count on from one.

-- The largest ID of the shard in the last 1,000 entries of a btree index that begins with the bigint column, if it is
-- of a later millisecond than the sequence's position; NULL also if the caller may not read one of them, and if
-- somebody holds one in ACCESS EXCLUSIVE mode: this does not wait.
CREATE FUNCTION snowflake_internal.id_above(tbl oid, attnum integer, shard integer, seq oid, epoch_ms bigint)
    RETURNS bigint LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'snowflake_id_above';

-- The largest value of a bigint column that a btree index begins with, if nextval() can have returned it, and it is no
-- ID of the shard; NULL as with id_above().
CREATE FUNCTION snowflake_internal.stored_position(tbl oid, attnum integer, shard integer) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'snowflake_stored_position';

-- The IDs of a bigint column that are not of the shard, in one table that the caller may read: of all rows if the
-- sample is 0, otherwise of about as many rows and of both ends of an index.
-- For snowflake-shard verify, which a superuser runs on tables of all roles: nothing is planned.
CREATE FUNCTION snowflake_internal.other_ids(tbl oid, attnum integer, shard integer, sample integer, OUT count bigint,
                                             OUT smallest bigint)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_other_ids';

-- Columns with an index that hold an ID above their sequence: it can come again, if it is ahead of the clock; and
-- columns that hold positions in place of IDs.
CREATE FUNCTION snowflake_internal.check_ids(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
-- An ID of another shard, as replication brings it, cannot come again from this sequence.
WITH compared AS MATERIALIZED (
    SELECT k.objid, k.objsubid, n.shard, k.seq, k.epoch_ms,
           -- Both here: a table is opened once, as the session keeps it for the second look.
           snowflake_internal.id_above(k.objid, k.objsubid, n.shard, s.seqrelid, k.epoch_ms) AS id,
           snowflake_internal.stored_position(k.objid, k.objsubid, k.shard) AS position
    FROM snowflake_internal.rows_of($1) AS k
    CROSS JOIN LATERAL (SELECT k.shard WHERE k.shard IS NOT NULL
                        UNION ALL
                        SELECT DISTINCT g.shard FROM snowflake_internal.shard_settings() AS g
                        WHERE k.shard IS NULL AND k.seq = (SELECT snowflake_internal.id_seq())) AS n
    LEFT JOIN pg_sequence AS s ON s.seqrelid = k.seq AND snowflake_internal.is_open(s.seqmin, s.seqmax)
    WHERE k.classid = 'pg_class'::regclass
), above AS (
    SELECT objid::regclass AS tbl, objsubid, shard, min(id) AS id, min(seq)::regclass AS seq, min(epoch_ms) AS epoch_ms,
           (min(id) >> 23)::numeric + min(epoch_ms) - floor(extract(epoch FROM clock_timestamp()) * 1000) AS lead
    FROM compared
    GROUP BY objid, objsubid, shard
    HAVING bool_and(id IS NOT NULL) -- of several sequences, above all
), settings AS (
    SELECT CASE WHEN min(setting::bigint) >= 0 THEN max(setting::bigint) END AS reach
    FROM pg_settings WHERE name IN ('snowflake.max_drift', 'snowflake.max_lead')
)
SELECT CASE WHEN lead > 0 THEN 'error' ELSE 'notice' END, (pg_identify_object('pg_class'::regclass, tbl, objsubid)).identity,
       format('it holds %s, above sequence %s', id, seq)
       || CASE WHEN lead > 0 THEN format(' and %s ms ahead of the clock', lead) ELSE '' END,
       CASE WHEN lead > reach
            THEN format('New IDs cannot be above it. Give other numbers to the rows of SELECT * FROM %1$s WHERE %2$I > '
                        '%5$ssnowflake_max_id(now(), %3$s) AND %5$ssnowflake_shard(%2$I) = %4$s;', tbl, a.attname,
                        epoch_ms, shard, snowflake_internal.prefix())
            ELSE format('SELECT %ssnowflake_advance(%L, %s%s);', snowflake_internal.prefix(), seq, id,
                        CASE WHEN epoch_ms <> snowflake_internal.default_epoch() THEN format(', %s', epoch_ms) END) END
FROM above JOIN pg_attribute AS a ON a.attrelid = tbl AND a.attnum = objsubid, settings
UNION ALL
SELECT DISTINCT 'warning', (pg_identify_object('pg_class'::regclass, c.objid, c.objsubid)).identity,
       format('it holds %s, which nextval() can have returned: a position of its sequence, and no ID', c.position),
       format('Let clients leave the column to its DEFAULT. SELECT * FROM %s WHERE %I <= %s; shows the rows.',
              c.objid::regclass, a.attname, c.position)
FROM compared AS c JOIN pg_attribute AS a ON a.attrelid = c.objid AND a.attnum = c.objsubid
WHERE c.position IS NOT NULL
$$;

-- Columns whose DEFAULT counts on from an ID: nextval() of a sequence that native IDs were drawn from.
CREATE FUNCTION snowflake_internal.check_defaults(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH calls AS MATERIALIZED (SELECT * FROM snowflake_internal.rows_of($1))
SELECT DISTINCT ON (f.oid) 'error', (pg_identify_object('pg_class'::regclass, c.oid, a.attnum)).identity,
       format('its DEFAULT is nextval() of sequence %s, which holds %s, %s: new values are the numbers after it',
              s.seqrelid::regclass, v.last_value,
              CASE WHEN v.last_value < 1::bigint << 53 THEN 'a position of native IDs' ELSE 'an ID' END),
       format('SELECT %ssnowflake_attach(%s%s);', snowflake_internal.prefix(),
              snowflake_internal.attach_arguments(c.oid, a.attname, NULL, s.seqrelid, nullif(e.epoch_ms, snowflake_internal.default_epoch())),
              CASE WHEN NOT EXISTS (SELECT FROM calls AS k WHERE k.schema = c.relnamespace AND k.is_direct
                                    AND k.shard IS NOT NULL) THEN ', shard => ...' END)
FROM pg_sequence AS s
JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.seqrelid
    AND d.classid = 'pg_attrdef'::regclass
JOIN pg_attrdef AS f ON f.oid = d.objid
JOIN pg_class AS c ON c.oid = f.adrelid AND c.relpersistence <> 't'
JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum AND a.attinhcount = 0
CROSS JOIN LATERAL snowflake_internal.stored_value(s.seqrelid) AS v
CROSS JOIN (SELECT k.epoch_ms FROM calls AS k WHERE k.epoch_ms IS NOT NULL
            UNION SELECT snowflake_internal.default_epoch()) AS e
WHERE s.seqtypid = 'bigint'::regtype AND snowflake_internal.is_open(s.seqmin, s.seqmax)
  AND s.seqstart < 1::bigint << 45 AND v.last_value >= 1::bigint << 45 -- not large from its start on
  -- nextval() and nothing else. pg_get_expr() would wait for a lock.
  AND f.adbin::text ~ format('^\{(COERCETODOMAIN :arg \{)?FUNCEXPR :funcid %s ', 'nextval(regclass)'::regprocedure::oid)
  -- The extension is younger than 2020. A number of another kind is seldom a time since then.
  AND snowflake_internal.stored_ms(v.last_value, e.epoch_ms)
      BETWEEN 1577836800000 AND extract(epoch FROM clock_timestamp()) * 1000 + 86400000
ORDER BY f.oid, e.epoch_ms <> snowflake_internal.default_epoch(), e.epoch_ms
$$;
