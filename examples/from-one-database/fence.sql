-- On both servers, while tables are distributed: which tables, and a fence. The tables can be written as long as
-- distribute.open exists: those of the old database until the cutover, those of the shards after it. Catalogues are not read
-- with the snapshot of a transaction, so that a transaction which is older than the cutover is refused, too.
CREATE SCHEMA distribute;
GRANT USAGE ON SCHEMA distribute TO PUBLIC;
CREATE TABLE distribute.tables (name text PRIMARY KEY, key text, replica_identity "char" NOT NULL);
CREATE TABLE distribute.side (name text NOT NULL);
CREATE TABLE distribute.marker (id uuid PRIMARY KEY);

-- It runs as the client, with its search_path, so that its body qualifies every name, operators too.
CREATE FUNCTION distribute.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP OPERATOR(pg_catalog.=) 'TRUNCATE' THEN
        RAISE EXCEPTION 'table %.% is being distributed, and TRUNCATE is not replicated', TG_TABLE_SCHEMA, TG_TABLE_NAME
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Use DELETE.';
    ELSIF pg_catalog.to_regclass('distribute.open') IS NULL THEN
        RAISE EXCEPTION 'table %.% is not written here', TG_TABLE_SCHEMA, TG_TABLE_NAME
            USING ERRCODE = 'read_only_sql_transaction',
                  HINT = 'Write in the other database: the old one, or the shard of the user.';
    END IF;
    RETURN NULL;
END $$;
REVOKE EXECUTE ON FUNCTION distribute.refuse() FROM PUBLIC;
