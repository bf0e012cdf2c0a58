-- The schema of the functions that only the extension's own functions call. Its name is fixed, whatever
-- schema the extension itself is installed into. A schema of that name that exists already is an error.
--
-- The public functions run with the caller's rights, so every role needs USAGE. Nobody is granted CREATE.

CREATE SCHEMA snowflake_internal;
GRANT USAGE ON SCHEMA snowflake_internal TO PUBLIC;
COMMENT ON SCHEMA snowflake_internal IS
    'functions that the extension snowflake uses itself; they can change with every version';
