-- What snowflake_adopt() and snowflake_attach() ask before they move a sequence past the IDs of a column.

CREATE FUNCTION snowflake_internal.require_reach(tbl regclass, column_name name, largest bigint, epoch_ms bigint) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    max_drift bigint;
    max_lead bigint;
    lead bigint;
BEGIN
    -- Snowflakes of this epoch are fine. A number of another make can be far in the future: it would
    -- take the sequence there, and the generator would refuse every INSERT until the clock has come.
    SELECT min(p.setting::bigint) FILTER (WHERE p.name = 'snowflake.max_drift'),
           min(p.setting::bigint) FILTER (WHERE p.name = 'snowflake.max_lead')
    INTO max_drift, max_lead FROM pg_settings AS p;
    lead := (largest >> 23) + epoch_ms - floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    IF largest > 0 AND max_drift >= 0 AND lead > greatest(max_drift, max_lead) THEN
        RAISE EXCEPTION 'column % of table % holds %: new IDs cannot be above that', quote_ident(column_name), tbl, largest USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Read as an ID it is of a time %s ms from now; snowflake.max_drift is %s ms.', lead, max_drift),
            HINT = format('Give other numbers to the rows of SELECT * FROM %s WHERE %I > snowflake_max_id(now(), %s);', tbl, column_name, epoch_ms);
    END IF;
END;
$$;
COMMENT ON FUNCTION snowflake_internal.require_reach(regclass, name, bigint, bigint) IS
    'refuses a column with an ID that is further ahead of the clock than new ones may be';

