-- name: refused_plugins
-- Of the plugins $1 those that output_plugin_libraries does not name. The setting is a list of names, in double quotes where needed, which
-- the server compares with those of slots, case and all. Minor releases before 15.19, 16.15, 17.11 and 18.6 do not have it, and a role without
-- the rights of pg_read_all_settings has no row of it in pg_settings. In the statement each name is a literal: one literal for the whole list
-- would be one name. A standby takes no ALTER ROLE.
WITH plugins AS (
    SELECT setting, source FROM pg_settings WHERE name = 'output_plugin_libraries'
), listed AS (
    SELECT n, CASE WHEN name[1] ~ '^"' THEN replace(substr(name[1], 2, length(name[1]) - 2), '""', '"') ELSE name[1] END AS library
    FROM plugins, regexp_matches(setting, '"(?:[^"]|"")*"|[^\s,"]+', 'g') WITH ORDINALITY AS m (name, n)
), wanted AS (
    SELECT n, library FROM listed WHERE library <> ''
    UNION ALL
    SELECT NULL, plugin FROM unnest($1::text[]) AS plugin WHERE plugin NOT IN (SELECT library FROM listed)
)
SELECT format('output_plugin_libraries = %L does not name %s: no slot can use it', setting, refused),
       format('ALTER %s SET output_plugin_libraries = %s;', coalesce(place, 'SYSTEM'), libraries)
       || CASE WHEN place IS NULL THEN ' and SELECT pg_reload_conf();' WHEN pg_is_in_recovery() THEN ' on the server that it follows' ELSE '' END
FROM plugins,
LATERAL (SELECT CASE source WHEN 'database' THEN format('DATABASE %I', current_database())
                            WHEN 'user' THEN format('ROLE %I', session_user)
                            WHEN 'database user' THEN format('ROLE %I IN DATABASE %I', session_user, current_database()) END) AS p (place),
LATERAL (SELECT string_agg(library, ', ' ORDER BY library) FILTER (WHERE n IS NULL), string_agg(quote_literal(library), ', ' ORDER BY n, library)
         FROM wanted) AS w (refused, libraries)
WHERE refused IS NOT NULL
