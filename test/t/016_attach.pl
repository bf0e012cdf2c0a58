# The error of snowflake_attach() on a table with views, policies, triggers, rules and functions says how to save them,
# to drop them, and to attach. After that, and after the saved definitions were run, the dump of the database is that of
# before, but for integer columns that are bigint now.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $node = new_server('attach', conf => "wal_level = logical\n");
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGDATABASE} = 'postgres';
my $folder = PostgreSQL::Test::Utils::tempdir();

$node->safe_psql('postgres', q{CREATE ROLE app LOGIN; CREATE ROLE web; CREATE ROLE "the ""reader"""});

# Entries of a dump: definitions with the comments over them, in order.
sub entries
{
	return split /^(?=--\n-- (?:Name|Data for Name): )/m, slurp_file($_[0]);
}

# The definition in an entry without the parts that may change: a restored expression is written with other casts and
# brackets once.
sub definition
{
	my ($entry) = @_;
	$entry =~ s/\b(?:integer|smallint)\b/bigint/g;
	$entry =~ s/::(?:character varying|text)(?:\[\])?|[()]//g;
	$entry =~ s/^\\.*\n//mg;
	return $entry;
}

# The definitions that must not change. Sequences and DEFAULTs are those of the attached columns.
sub state_of
{
	my ($file) = @_;
	IPC::Run::run([ 'pg_dump', '-s', '-f', "$folder/$file" ]) or die 'pg_dump failed';
	return join('',
		map { definition($_) } grep { !/^-- Name: [^;]*; Type: (?:DEFAULT|SEQUENCE)/m } entries("$folder/$file"));
}

# Runs the statements of the hint, in the shell and in psql, and then does the reader's part.
sub attach
{
	my ($arguments) = @_;
	my $before = state_of('whole.sql');
	my $hint = $node->safe_psql('postgres', qq{
		DO \$do\$
		DECLARE hint text;
		BEGIN
			PERFORM snowflake_attach($arguments);
		EXCEPTION WHEN object_not_in_prerequisite_state THEN
			GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
			PERFORM set_config('test.hint', hint, false);
		END \$do\$;
		SELECT current_setting('test.hint')});
	my ($command) = $hint =~ /^-- +(pg_dump .*)$/m or die "no command in: $hint";
	note($hint);
	unlink "$folder/before.sql";
	is(system("cd '$folder' && $command"), 0, "$arguments: the definitions are saved");
	my ($status, $stdout, $stderr) = $node->psql('postgres', "$hint\nCOMMIT;", on_error_stop => 1);
	is($status, 0, "$arguments: all is dropped in order, and attached") or diag($stderr);

	state_of('after.sql');
	my %is_there = map { definition($_) => 1 } entries("$folder/after.sql");
	my ($settings, @saved) = entries("$folder/before.sql");
	my @dropped = grep { !$is_there{ definition($_) } && !/^-- Name: [^;]*; Type: (?:TABLE|DEFAULT|SEQUENCE)\b/m } @saved;
	cmp_ok(scalar @dropped, '>', 10, "$arguments: much was dropped");
	$settings =~ s/^\\.*\n//mg;
	($status, $stdout, $stderr) =
		$node->psql('postgres', join('', $settings, @dropped) =~ s/^\\.*\n//mgr, on_error_stop => 1);
	is($status, 0, "$arguments: it is created again") or diag($stderr);
	is(state_of('again.sql'), $before, "$arguments: all is as it was");
	return;
}

# An application's shard with integer keys: pg_dump -t has all obstacles.
$node->safe_psql('postgres', q{
	CREATE SCHEMA "Shop";
	SET search_path = "Shop", public;
	CREATE DOMAIN handle AS varchar(30) CHECK (VALUE ~ '^[a-z0-9_.]+$' AND VALUE NOT IN ('admin', 'root'));
	CREATE TABLE users (
		id serial PRIMARY KEY, name handle NOT NULL,
		kind varchar(10) NOT NULL DEFAULT 'person' CHECK (kind IN ('person', 'business', 'bot')),
		search tsvector GENERATED ALWAYS AS (to_tsvector('simple', name)) STORED, photo_count integer NOT NULL DEFAULT 0);
	CREATE INDEX ON users (id) WHERE kind IN ('business', 'bot');
	CREATE TABLE photos (
		id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, user_id integer NOT NULL REFERENCES users ON DELETE CASCADE,
		seen_by text NOT NULL DEFAULT 'public', UNIQUE (user_id, id));
	CREATE TABLE "the %s ""tags"" of '" (user_id smallint REFERENCES users, tag text);
	CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
	CREATE TRIGGER touch BEFORE UPDATE OF id, name ON users FOR EACH ROW WHEN (NEW.id > 0)
		EXECUTE FUNCTION touch('a', 'b''c');
	CREATE TRIGGER other BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION touch();
	CREATE CONSTRAINT TRIGGER late AFTER UPDATE OF user_id ON photos DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
		EXECUTE FUNCTION touch();
	ALTER TABLE users DISABLE TRIGGER touch;
	COMMENT ON TRIGGER touch ON users IS 'disabled';
	CREATE RULE kept AS ON DELETE TO users WHERE OLD.id < 0 DO INSTEAD NOTHING;
	CREATE RULE copied AS ON UPDATE TO users WHERE OLD.id <> NEW.id DO ALSO UPDATE photos SET seen_by = 'x'
		WHERE user_id = NEW.id;
	ALTER TABLE users ENABLE ROW LEVEL SECURITY;
	CREATE POLICY positive ON users FOR SELECT TO app, web USING (id > 0 AND kind IN ('person', 'bot'));
	CREATE POLICY own ON photos AS RESTRICTIVE TO app, web USING (user_id IN (SELECT id FROM users)) WITH
		CHECK (user_id > 1);
	COMMENT ON POLICY own ON photos IS 'it''s own';
	CREATE VIEW public_photos WITH (security_barrier) AS
		SELECT p.id, p.user_id, u.name FROM photos AS p JOIN users AS u ON u.id = p.user_id
			WHERE u.kind IN ('person', 'business');
	CREATE VIEW "Names %s" AS SELECT name, count(*) FROM public_photos GROUP BY name;
	CREATE MATERIALIZED VIEW top_users WITH (fillfactor = 50) AS SELECT user_id, count(*) AS photos FROM public_photos
		GROUP BY user_id;
	CREATE UNIQUE INDEX ON top_users (user_id);
	CREATE INDEX top_photos ON top_users ((photos + 1)) WHERE photos > 0;
	COMMENT ON INDEX top_photos IS 'of top_users';
	COMMENT ON VIEW public_photos IS 'all "public"';
	COMMENT ON COLUMN public_photos.user_id IS 'owner';
	CREATE TRIGGER instead INSTEAD OF INSERT ON public_photos FOR EACH ROW EXECUTE FUNCTION touch();
	CREATE RULE ruled AS ON UPDATE TO "Names %s" DO INSTEAD NOTHING;
	GRANT USAGE ON SCHEMA "Shop" TO app, web;
	ALTER VIEW public_photos OWNER TO app;
	ALTER MATERIALIZED VIEW top_users OWNER TO app;
	GRANT SELECT ON users, photos TO app;
	GRANT SELECT, INSERT ON public_photos TO web WITH GRANT OPTION;
	GRANT UPDATE (name), REFERENCES (id) ON public_photos TO "the ""reader""";
	INSERT INTO users (name) VALUES ('mia'), ('ben');
	INSERT INTO photos (user_id) VALUES (1), (1), (2)});

subtest 'a shard of an application with integer keys' => sub {
	attach(q{'"Shop".users', shard => 39});
	$node->safe_psql('postgres', q{REFRESH MATERIALIZED VIEW "Shop".top_users});
	is($node->safe_psql('postgres', q{
		INSERT INTO "Shop".users (name) VALUES ('new');
		SELECT count(*), count(snowflake_shard(id)) FILTER (WHERE snowflake_shard(id) = 39 AND id > 2147483647)
			FROM "Shop".users;
		SELECT count FROM "Shop"."Names %s" WHERE name = 'mia'}), "3|1\n2", 'new IDs are native, and the views work');
};

# pg_dump -t does not have functions, procedures and publications: the hint saves the whole database.
$node->safe_psql('postgres', q{
	CREATE SCHEMA att;
	GRANT USAGE, CREATE ON SCHEMA att TO app;
	SET search_path = att, public;
	CREATE TABLE t (id serial PRIMARY KEY, k integer, v text);
	CREATE TABLE other (id integer, v text);
	GRANT SELECT ON t TO app;
	CREATE VIEW first WITH (check_option = local) AS SELECT id, k, v FROM t WHERE k > 0 OR v > '2024-02-03'::date::text;
	ALTER VIEW first OWNER TO app;
	CREATE VIEW second AS SELECT id + 1 AS id, timestamptz '2024-02-03 04:05:06+00' AS at FROM first;
	GRANT SELECT ON second TO app;
	CREATE RECURSIVE VIEW counted (n) AS SELECT min(id) FROM second UNION ALL SELECT n + 1 FROM counted WHERE n < 5;
	CREATE FUNCTION largest() RETURNS bigint LANGUAGE sql SECURITY DEFINER STABLE SET work_mem = '1MB'
		BEGIN ATOMIC SELECT 1; SELECT max(id) FROM first; END;
	ALTER FUNCTION largest() OWNER TO app;
	REVOKE ALL ON FUNCTION largest() FROM PUBLIC;
	GRANT EXECUTE ON FUNCTION largest() TO web WITH GRANT OPTION;
	COMMENT ON FUNCTION largest() IS 'the largest';
	CREATE FUNCTION rows(first, integer DEFAULT 5) RETURNS SETOF first LANGUAGE sql AS 'SELECT $1';
	CREATE PROCEDURE done() LANGUAGE sql BEGIN ATOMIC DELETE FROM t WHERE id < 0; END;
	CREATE VIEW third AS SELECT largest() AS largest, f.id FROM first AS f;
	CREATE FUNCTION of_third() RETURNS bigint LANGUAGE sql RETURN (SELECT max(largest) FROM third);
	CREATE POLICY elsewhere ON other FOR INSERT WITH CHECK (id IN (SELECT id FROM third));
	CREATE PUBLICATION ids;
	ALTER PUBLICATION ids ADD TABLE t (id, v) WHERE (id > 5), other});

subtest 'functions, procedures and a publication' => sub {
	attach(q{'att.t', shard => 40});
};

subtest 'a partitioned table without a partition' => sub {
	$node->safe_psql('postgres', 'CREATE TABLE empty_parts (id integer NOT NULL, k integer) PARTITION BY LIST (k)');
	my (undef, undef, $notices) = $node->psql('postgres', q{SELECT snowflake_attach('empty_parts', shard => 5)});
	like($notices, qr/NOTICE:  rewriting table public\.empty_parts: no partitions\n/,
		'a partitioned table without a partition has no size');
};

done_testing();
