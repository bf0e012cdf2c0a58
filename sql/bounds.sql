-- snowflake_min_id and snowflake_max_id: for every id >= 0 and every t,
--   id >= snowflake_min_id(t)  <=>  snowflake_timestamp(id) >= t
--   id <= snowflake_max_id(t)  <=>  snowflake_timestamp(id) <= t
-- but for the one id that min_id clamps to past the last millisecond.

SET timezone = 'UTC';
SELECT snowflake_min_id('-infinity'), snowflake_max_id('-infinity'), snowflake_min_id('infinity'), snowflake_max_id('infinity');
SELECT snowflake_min_id('2011-08-24 21:07:01.721+00'), snowflake_max_id('2011-08-24 21:07:01.721+00');
SELECT snowflake_min_id('2011-08-24 21:07:01.7211+00') = 1 << 23 AS rounds_up,
       snowflake_max_id('2011-08-24 21:07:01.7219+00') = (1 << 23) - 1 AS rounds_down;
SELECT snowflake_max_id('2046-06-27 17:00:49.496+00'), snowflake_max_id('2046-06-27 17:00:49.495999+00'),
       snowflake_min_id('2046-06-27 17:00:49.496+00'), snowflake_min_id('2046-06-27 17:00:49.496001+00');

-- Over many random ids and times: the ids' own, their neighbours, and any others.
SELECT (random() * 1e9)::int AS seed \gset
\if :{?bounds_seed}
    \set seed :bounds_seed
\endif
SELECT setseed(:seed / 1e9) \g /dev/null
SELECT coalesce(string_agg(format('seed %s: id %s, t %s', :seed, id, t), E'\n'), 'none') AS wrong
FROM (SELECT id, t FROM (
        SELECT (random() * 9223372036854774784)::bigint AS id FROM generate_series(1, 5000)
        UNION ALL SELECT unnest(ARRAY[0, 1, 8388607, 8388608, 9223372036854775806])
      ) AS ids
      CROSS JOIN LATERAL (
        SELECT snowflake_timestamp(id) + (random() * 4 - 2)::int * interval '1 microsecond'
        UNION ALL SELECT snowflake_timestamp(id)
        UNION ALL SELECT snowflake_timestamp(id) + (random() * 4 - 2)::int * interval '1 millisecond'
        UNION ALL SELECT timestamptz '1900-01-01' + random() * interval '300 years'
        UNION ALL SELECT '-infinity'
        UNION ALL SELECT 'infinity'
        UNION ALL SELECT '4714-11-24 00:00:00+00 BC'
        UNION ALL SELECT '294276-12-31 23:59:59.999999+00'
      ) AS times (t)) AS pairs
WHERE (id >= snowflake_min_id(t)) <> (snowflake_timestamp(id) >= t)
   OR (id <= snowflake_max_id(t)) <> (snowflake_timestamp(id) <= t);

-- The same with other epochs.
SELECT count(*) AS wrong
FROM (SELECT (random() * 9223372036854774784)::bigint AS id, (random() * 4e12 - 2e12)::bigint AS epoch
      FROM generate_series(1, 5000)) AS ids
CROSS JOIN LATERAL (
    SELECT snowflake_timestamp(id, epoch) + (random() * 4 - 2)::int * interval '1 microsecond'
    UNION ALL SELECT timestamptz '1900-01-01' + random() * interval '300 years') AS times (t)
WHERE (id >= snowflake_min_id(t, epoch)) <> (snowflake_timestamp(id, epoch) >= t)
   OR (id <= snowflake_max_id(t, epoch)) <> (snowflake_timestamp(id, epoch) <= t);

-- Any epoch: no overflow, no crash.
SELECT snowflake_min_id(t, epoch), snowflake_max_id(t, epoch)
FROM (VALUES (-9223372036854775808), (-1), (0), (9223372036854775807)) AS epochs (epoch),
     (VALUES (timestamptz '-infinity'), ('2026-01-01 00:00:00+00'), ('infinity')) AS times (t)
ORDER BY epoch, t;
