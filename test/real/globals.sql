-- Once in each database, before shard.sql: objects of other schemas that its shards need. Roles are the cluster's.
SET client_min_messages = warning;
DO $$
DECLARE r text;
BEGIN
    FOREACH r IN ARRAY '{app, web, report}'::text[] LOOP
        IF to_regrole(r) IS NULL THEN EXECUTE format('CREATE ROLE %I LOGIN', r); END IF;
    END LOOP;
END $$;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE TABLE IF NOT EXISTS public.countries (code char(2) PRIMARY KEY, name text NOT NULL);
INSERT INTO public.countries VALUES ('de', 'Germany'), ('fr', 'France'), ('jp', 'Japan'), ('br', 'Brazil') ON CONFLICT DO NOTHING;
GRANT REFERENCES ON public.countries TO app;
