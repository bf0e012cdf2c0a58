-- Public names of IDs: the ID encrypted with a secret key, as text. Needs pgcrypto, and PostgreSQL 14 or later.
-- docs/public-ids.md explains it. Here the key is a parameter; keys.sql keeps it in a table.
--
-- Run the file as the role that is to own the functions. Only this role may create objects in the schema:
--
--     CREATE EXTENSION pgcrypto;
--     CREATE ROLE public_ids NOLOGIN;
--     CREATE SCHEMA public_ids AUTHORIZATION public_ids;
--     SET ROLE public_ids;
--
-- A name has 12 characters: the version of the key, a letter from a to z, and then 8 bytes in base64url.

BEGIN;

SET LOCAL search_path = pg_catalog, pg_temp;

-- One block of 64 bits. PostgreSQL parses these two bodies now, and keeps the functions of pgcrypto that they call, at any
-- search_path of a caller. The schema of pgcrypto may have other functions: the cast selects the one with these types.
DO $$
DECLARE
    pgcrypto regnamespace := (SELECT extnamespace FROM pg_extension WHERE extname = 'pgcrypto');
BEGIN
    IF pgcrypto IS NULL THEN
        RAISE EXCEPTION 'this database does not have the extension pgcrypto' USING HINT = 'CREATE EXTENSION pgcrypto;';
    END IF;
    PERFORM set_config('search_path', 'pg_catalog, ' || pgcrypto || ', pg_temp', true);
END $$;

CREATE FUNCTION public_ids.encrypt_block(block bytea, key bytea) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN encrypt(block, key, '3des-ecb/pad:none'::text);

CREATE FUNCTION public_ids.decrypt_block(block bytea, key bytea) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN decrypt(block, key, '3des-ecb/pad:none'::text);

-- These two return their argument if it is right. No message contains a key, and no statement has it as a parameter, which
-- auto_explain would show: a plpgsql expression is no statement. pgcrypto fills a short key up with zeros and cuts a
-- long one, without an error.
CREATE FUNCTION public_ids.checked_key(version text, key bytea) RETURNS bytea
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF version COLLATE "C" !~ '^[a-z]$' OR octet_length(key) <> 24 THEN
        RAISE EXCEPTION 'key "%": a version is one letter from a to z, and a key has 24 bytes', version
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN key;
END $$;

-- The last of 11 characters has 4 bits, so it is one of 16: each ID has one name.
CREATE FUNCTION public_ids.checked_name(name text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF length(name) <> 12 THEN
        RAISE EXCEPTION 'a public name has 12 characters, not %', length(name)
            USING ERRCODE = 'invalid_text_representation';
    ELSIF name COLLATE "C" !~ '^[a-z][A-Za-z0-9_-]{10}[AEIMQUYcgkosw048]$' THEN
        RAISE EXCEPTION 'not a public name: "%"', name USING ERRCODE = 'invalid_text_representation';
    END IF;
    RETURN name;
END $$;

CREATE FUNCTION public_ids.name_of(id bigint, version text, key bytea) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    block bytea := public_ids.encrypt_block(int8send(id), public_ids.checked_key(version, key));
BEGIN
    RETURN version || translate(encode(block, 'base64'), '+/=', '-_');
END $$;

-- A name that was not made with this key is no error: the result is some bigint, positive or negative.
CREATE FUNCTION public_ids.id_of(name text, version text, key bytea) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    checked_key bytea := public_ids.checked_key(version, key);
    block       bytea;
BEGIN
    IF left(public_ids.checked_name(name), 1) COLLATE "C" <> version THEN
        RAISE EXCEPTION 'no key of version "%"', left(name, 1) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    block := decode(translate(substr(name, 2), '-_', '+/') || '=', 'base64');
    RETURN ('x' || encode(public_ids.decrypt_block(block, checked_key), 'hex'))::bit(64)::bigint;
END $$;

COMMIT;
