-- The same functions in the proxy's database. The first is run where the ID's shard is, the second
-- on every server.
CREATE EXTENSION IF NOT EXISTS plproxy;
CREATE EXTENSION IF NOT EXISTS snowflake;

CREATE FUNCTION photo_caption(photo_id bigint) RETURNS text
    LANGUAGE plproxy
AS $$
    CLUSTER 'snowflake';
    RUN ON snowflake_shard(photo_id);
$$;

CREATE FUNCTION count_photos() RETURNS SETOF bigint
    LANGUAGE plproxy
AS $$
    CLUSTER 'snowflake';
    RUN ON ALL;
$$;

CREATE FUNCTION count_all_photos() RETURNS bigint
    LANGUAGE sql STABLE
    RETURN (SELECT sum(photos) FROM count_photos() AS f(photos));
