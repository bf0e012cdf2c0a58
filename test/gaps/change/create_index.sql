CREATE INDEX CONCURRENTLY users_name ON insta5.users (name);
-- carried over if
SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('insta5.users_name');
