-- Shards of eight sizes.
INSERT INTO photos (user_id, caption)
SELECT substr(current_schema, 6)::bigint + 24 * n, repeat('old', 20)
FROM generate_series(1, 500 * (1 + substr(current_schema, 6)::integer % 8)) AS n;
