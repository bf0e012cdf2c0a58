-- A global table: it has the same rows on all servers. They are written on one of them.
CREATE TABLE filters (name text PRIMARY KEY);

-- The functions of one server for questions over all shards: PL/Proxy calls them from the proxy's
-- database. snowflake_shards tells which shards this server has at the moment.
CREATE FUNCTION photo_caption(photo_id bigint) RETURNS text
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    result text;
BEGIN
    EXECUTE format('SELECT caption FROM %I.photos WHERE id = $1', 'insta' || snowflake_shard(photo_id))
        INTO result USING photo_id;
    RETURN result;
END
$$;

CREATE FUNCTION count_photos() RETURNS SETOF bigint
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    shard_schema name;
    photos bigint;
BEGIN
    FOR shard_schema IN SELECT schema_name FROM snowflake_shards LOOP
        EXECUTE format('SELECT count(*) FROM %I.photos', shard_schema) INTO photos;
        RETURN NEXT photos;
    END LOOP;
END
$$;
