-- IDs as text: snowflake_to_text() and snowflake_from_text().

SELECT e AS encoding, snowflake_to_text(0, e) AS zero, snowflake_to_text(1922949326347663701, e) AS an_id, snowflake_to_text(9223372036854775807, e) AS last
FROM unnest('{base32,base62,base58,base64url}'::text[]) AS e;
SELECT snowflake_to_text(1922949326347663701), snowflake_from_text('1nbxg75f0eyan'), snowflake_from_text(snowflake_to_text(1922949326347663701));
SELECT snowflake_to_text(NULL), snowflake_to_text(1, NULL), snowflake_from_text(NULL);

-- Instagram's own shortcodes
SELECT snowflake_to_text(id, 'base64url') = shortcode AS written, snowflake_from_text(shortcode, 'base64url') = id AS read
FROM (VALUES (1922949326347663701, 'BqvsDleB3lV'), (1806097553666903266, 'BkQjCfsBIzi')) AS i(id, shortcode);

-- Every ID is read again, and the forms of a fixed width sort as the IDs do.
SELECT e AS encoding, bool_and(snowflake_from_text(snowflake_to_text(id, e), e) = id) AS is_same,
       array_agg(id ORDER BY id) = array_agg(id ORDER BY snowflake_to_text(id, e) COLLATE "C") AS is_sorted
FROM unnest('{base32,base62,base58,base64url}'::text[]) AS e,
     (SELECT 9223372036854775807 >> n AS id FROM generate_series(0, 62) AS n
      UNION SELECT (1::bigint << n) + 1 FROM generate_series(1, 62) AS n) AS ids
GROUP BY e ORDER BY e;

-- Crockford's own reading of letters
SELECT snowflake_from_text('oOiIlL0000000') = snowflake_from_text('0011110000000') AS letters;

-- What is no ID
SELECT snowflake_to_text(-1);
SELECT snowflake_to_text(1, 'base16');
SELECT snowflake_from_text('1NBZ3NBG1VSEN', 'Base32');
SELECT snowflake_from_text('1NBZ3NBG1VSE');
SELECT snowflake_from_text('1NBZ3NBG1VSENN');
SELECT snowflake_from_text('1NBZ3NBG1VSEU');
SELECT snowflake_from_text('1NBZ3ñBG1VSEN');
SELECT snowflake_from_text('8000000000000');
SELECT snowflake_from_text('zzzzzzzzzzz', 'base62');
SELECT snowflake_from_text('JPwcyDCgEu0', 'base58');
SELECT snowflake_from_text('_qvsDleB3lV', 'base64url');
SELECT snowflake_from_text('BqvsDleB3lVBqvsDleB3lV', 'base64url');
SELECT snowflake_from_text('ABqvsDleB3lV', 'base64url');
SELECT snowflake_from_text('', 'base64url');
SELECT snowflake_from_text('');

\set VERBOSITY sqlstate
SELECT snowflake_to_text(-1);
SELECT snowflake_to_text(1, 'base16');
SELECT snowflake_from_text('1NBZ3NBG1VSEU');
SELECT snowflake_from_text('8000000000000');
\set VERBOSITY default
