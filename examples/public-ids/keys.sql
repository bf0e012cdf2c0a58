-- The keys of public names in a table. A role with EXECUTE on the two functions gets names and IDs, and never a key. Run
-- the file after functions.sql, as the same role.

BEGIN;

SET LOCAL search_path = pg_catalog, pg_temp;

CREATE TABLE public_ids.keys (
    version   text PRIMARY KEY,
    key       bytea NOT NULL CHECK (public_ids.checked_key(version, key) IS NOT NULL),
    starts_at timestamptz NOT NULL DEFAULT now());

-- The key that started last makes names. All keys read names.
CREATE FUNCTION public_ids.name_of(id bigint) RETURNS text
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    used public_ids.keys;
BEGIN
    SELECT * INTO used FROM public_ids.keys WHERE starts_at <= now() ORDER BY starts_at DESC, version DESC LIMIT 1;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no key in public_ids.keys has started' USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN public_ids.name_of(id, used.version, used.key);
END $$;

CREATE FUNCTION public_ids.id_of(name text) RETURNS bigint
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    used public_ids.keys;
BEGIN
    SELECT * INTO used FROM public_ids.keys WHERE version = left(public_ids.checked_name(name), 1);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no key of version "%"', left(name, 1) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN public_ids.id_of(name, used.version, used.key);
END $$;

REVOKE EXECUTE ON FUNCTION public_ids.name_of(bigint), public_ids.id_of(text) FROM PUBLIC;

COMMIT;
