-- name: move_record
-- verify, list and map may be run by any role.
CREATE SCHEMA @move@;
CREATE TABLE @move@.state (
    id uuid PRIMARY KEY,
    other text NOT NULL,
    step text NOT NULL,
    marker uuid,
    is_reversible boolean NOT NULL DEFAULT false,
    is_reverse boolean NOT NULL DEFAULT false,
    is_equal boolean NOT NULL DEFAULT false,
    is_held boolean NOT NULL DEFAULT false,
    compared_at timestamptz,
    closed_at timestamptz, -- when the fence was raised here
    -- Positions of the WAL, for those who decode it.
    at pg_lsn, -- of this server, when the shard was closed or opened here last
    other_at pg_lsn); -- of the other one, when it was opened there
CREATE TABLE @move@.shards (number integer PRIMARY KEY, schema_name name NOT NULL UNIQUE, leaves boolean NOT NULL DEFAULT true);
CREATE TABLE @move@.compared (name text PRIMARY KEY); -- tables, in a comparison before the cutover
GRANT USAGE ON SCHEMA @move@ TO PUBLIC;
GRANT SELECT ON @move@.state, @move@.shards TO PUBLIC

-- name: split_record
-- The tables have OIDs of sequences, because a standby has the same ones. CREATE SCHEMA without IF NOT EXISTS: a schema of this name that
-- another role has made is an error, and is not used. verify, list and map may be run by any role.
CREATE SCHEMA snowflake_split;
CREATE TABLE snowflake_split.state (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    old_server text NOT NULL,
    new_server text NOT NULL,
    step text NOT NULL DEFAULT 'prepared',
    is_new boolean NOT NULL DEFAULT false,
    home text,
    seal uuid,
    standby_start text);
CREATE TABLE snowflake_split.shards (number integer NOT NULL, schema_name name PRIMARY KEY, leaves boolean NOT NULL);
GRANT USAGE ON SCHEMA snowflake_split TO PUBLIC;
GRANT SELECT ON snowflake_split.state, snowflake_split.shards TO PUBLIC;
