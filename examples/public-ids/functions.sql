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
-- A name is the version of the key, a letter from a to z, and then one block in base64url. The length of the key selects the
-- cipher: 32 bytes are a key of AES, for names of 23 characters, and 24 bytes one of 3DES, for names of 12.

BEGIN;

SET LOCAL search_path = pg_catalog, pg_temp;

-- PostgreSQL parses these two bodies now, and keeps the functions of pgcrypto that they call, at any search_path of a
-- caller. The schema of pgcrypto may have other functions: the cast selects the one with these types. With one block, ECB
-- is the cipher itself.
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
    RETURN encrypt(block, key, (CASE octet_length(key) WHEN 24 THEN '3des' ELSE 'aes' END || '-ecb/pad:none')::text);

CREATE FUNCTION public_ids.decrypt_block(block bytea, key bytea) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN decrypt(block, key, (CASE octet_length(key) WHEN 24 THEN '3des' ELSE 'aes' END || '-ecb/pad:none')::text);

-- These two return their argument if it is right. No message contains a key, and no statement has it as a parameter, which
-- auto_explain would show: a plpgsql expression is no statement. pgcrypto fills a short key up with zeros and cuts a
-- long one, without an error.
--
-- 3DES with two neighbouring parts that are equal is DES. The lowest bit of each byte is not used. Random keys of neither
-- cipher have equal parts; keys that are constants or filled up have them.
CREATE FUNCTION public_ids.checked_key(version text, key bytea) RETURNS bytea
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    bits varbit;
BEGIN
    IF version COLLATE "C" !~ '^[a-z]$' OR octet_length(key) NOT IN (32, 24) THEN
        RAISE EXCEPTION 'key "%": a version is one letter from a to z, and a key has 32 bytes (AES) or 24 (3DES)', version
            USING ERRCODE = 'invalid_parameter_value', HINT = 'gen_random_bytes(32) makes a key.';
    END IF;
    bits := ('x' || encode(key, 'hex'))::varbit & repeat('11111110', octet_length(key))::varbit;
    IF substring(bits, 1, 64) IN (substring(bits, 65, 64), substring(bits, 129, 64), substring(bits, 193))
        OR substring(bits, 65, 64) IN (substring(bits, 129, 64), substring(bits, 193))
        OR substring(bits, 129, 64) = substring(bits, 193)
    THEN
        RAISE EXCEPTION 'key "%" is weak: two of its parts of 8 bytes are equal', version
            USING ERRCODE = 'invalid_parameter_value', HINT = 'gen_random_bytes(32) makes a key.';
    END IF;
    RETURN key;
END $$;

-- The last character of 22 has 2 bits, and of 11 it has 4: each ID has one name.
CREATE FUNCTION public_ids.checked_name(name text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF length(name) NOT IN (23, 12) THEN
        RAISE EXCEPTION 'a public name has 23 characters, or 12 with 3DES, not %', length(name)
            USING ERRCODE = 'invalid_text_representation';
    ELSIF name COLLATE "C" !~ '^[a-z]([A-Za-z0-9_-]{21}[AQgw]|[A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])$' THEN
        RAISE EXCEPTION 'not a public name: "%"', name USING ERRCODE = 'invalid_text_representation';
    END IF;
    RETURN name;
END $$;

-- The bytes of a block that are not of the ID: 8 zeros with AES, none with 3DES.
CREATE FUNCTION public_ids.zeros(key bytea) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE octet_length(key) WHEN 24 THEN '\x'::bytea ELSE '\x0000000000000000' END;

CREATE FUNCTION public_ids.name_of(id bigint, version text, key bytea) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    checked_key bytea := public_ids.checked_key(version, key);
    block       bytea := public_ids.encrypt_block(int8send(id) || public_ids.zeros(key), checked_key);
BEGIN
    RETURN version || translate(encode(block, 'base64'), '+/=', '-_');
END $$;

-- With AES, a name that was not made with this key is an error. With 3DES it gives some bigint, positive or negative.
CREATE FUNCTION public_ids.id_of(name text, version text, key bytea) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    checked_key bytea := public_ids.checked_key(version, key);
    zeros       bytea := public_ids.zeros(key);
    block       bytea;
BEGIN
    IF left(public_ids.checked_name(name), 1) COLLATE "C" <> version THEN
        RAISE EXCEPTION 'no key of version "%"', left(name, 1) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    block := decode(translate(substr(name, 2), '-_', '+/') || CASE length(name) WHEN 23 THEN '==' ELSE '=' END, 'base64');
    IF length(block) = 8 + length(zeros) THEN
        block := public_ids.decrypt_block(block, checked_key);
        IF substr(block, 9) = zeros THEN
            RETURN ('x' || encode(substr(block, 1, 8), 'hex'))::bit(64)::bigint;
        END IF;
    END IF;
    RAISE EXCEPTION 'not made with key "%": "%"', version, name USING ERRCODE = 'invalid_text_representation';
END $$;

COMMIT;
