-- IDs as text.

CREATE FUNCTION snowflake_to_text(id bigint, encoding text DEFAULT 'base32') RETURNS text
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_to_text';
COMMENT ON FUNCTION snowflake_to_text(bigint, text) IS
    'an ID as text: base32 (Crockford, 13 characters), base62 or base58 (11; '
    'all three sort as the IDs do under COLLATE "C"), base64url (Instagram''s shortcode)';

CREATE FUNCTION snowflake_from_text(id text, encoding text DEFAULT 'base32') RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_from_text';
COMMENT ON FUNCTION snowflake_from_text(text, text) IS
    'the ID that snowflake_to_text() wrote; base32 also in lower case';
