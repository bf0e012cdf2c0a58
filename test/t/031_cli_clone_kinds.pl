# A clone is its template: pg_dump -s of the two is equal but for the schema's name and the shard's number,
# on a schema with every kind of object that a schema can hold, under names with everything that a name can
# have; sequences start anew, filled views are filled, and every reference leads to the clone's own
# objects. A clone that would not be equal is refused before anything is made.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ShardTest;
use SnowflakeTest;
use Test::More;

# Names the first line that differs: the texts are long.
sub is_equal_dump
{
	my ($is, $expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return if ok($is eq $expected, $name);
	my @a = split /\n/, $expected;
	my @b = split /\n/, $is;
	my ($line) = grep { ($a[$_] // '') ne ($b[$_] // '') } 0 .. ($#a > $#b ? $#a : $#b);
	diag("line $line: expected '" . ($a[$line] // '') . "', clone '" . ($b[$line] // '') . "'");
	return;
}

my $program = shard_program();
my $node = new_server('kinds');
my $has_old_strings = $node->safe_psql('postgres', 'SHOW server_version_num') < 190000;

# What the template uses of the cluster and of another schema. Only a superuser makes some kinds, and a superuser's template has no code of
# other roles.
$node->safe_psql('postgres', q{
	CREATE ROLE app LOGIN SUPERUSER; CREATE ROLE "the ""reader""" SUPERUSER;
	CREATE SCHEMA outside;
	CREATE TABLE outside.countries (code text PRIMARY KEY);
	CREATE SEQUENCE outside.ids;
	CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
	CREATE ACCESS METHOD another_heap TYPE TABLE HANDLER heap_tableam_handler;
	SET allow_in_place_tablespaces = on;
	CREATE TABLESPACE other_space LOCATION ''});

# A schema with an object of each kind.
my $template = q{
	SELECT snowflake_create_shard(100, 'kinds', 1767225600000);
	SET search_path = kinds, public;
	COMMENT ON SCHEMA kinds IS 'kinds.of everything';
	ALTER DEFAULT PRIVILEGES IN SCHEMA kinds GRANT SELECT ON TABLES TO app;

	CREATE TYPE mood AS ENUM ('glad', 'kinds.sad');
	CREATE TYPE pair AS (a integer, b mood);
	CREATE TYPE mood_range AS RANGE (subtype = mood);
	CREATE DOMAIN email AS text COLLATE "C" DEFAULT 'kinds.x@y' CHECK (VALUE ~ '@' AND VALUE !~ '\s') NOT NULL;
	CREATE TABLE narrowed (a integer, b integer);
	GRANT SELECT (a), UPDATE (b) ON narrowed TO app;
	ALTER TABLE narrowed DROP COLUMN b;
	CREATE TYPE shell;
	CREATE TYPE base;
	CREATE FUNCTION base_in(cstring) RETURNS base LANGUAGE internal IMMUTABLE STRICT AS 'textin';
	CREATE FUNCTION base_out(base) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
	CREATE TYPE base (INPUT = base_in, OUTPUT = base_out, LIKE = text);
	CREATE COLLATION plain FROM "C";
	CREATE CONVERSION latin FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8;
	CREATE TEXT SEARCH PARSER words (START = prsd_start, GETTOKEN = prsd_nexttoken, END = prsd_end,
		LEXTYPES = prsd_lextype);
	CREATE TEXT SEARCH TEMPLATE simple_like (INIT = dsimple_init, LEXIZE = dsimple_lexize);
	CREATE TEXT SEARCH DICTIONARY dictionary (TEMPLATE = simple_like);
	CREATE TEXT SEARCH CONFIGURATION search (PARSER = words);
	ALTER TEXT SEARCH CONFIGURATION search ADD MAPPING FOR word WITH dictionary;

	CREATE FUNCTION plus(a integer, b integer DEFAULT 1) RETURNS integer LANGUAGE sql IMMUTABLE RETURN a + b;
	CREATE FUNCTION two(OUT a mood, OUT b bigint) RETURNS SETOF record ROWS 5 COST 7 LANGUAGE sql
		BEGIN ATOMIC SELECT CASE WHEN true THEN 'glad'::mood END, 1; SELECT 'sad;'::text::mood, next_id(); END;
	CREATE FUNCTION by_text() RETURNS text SECURITY DEFINER SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql
		AS $$BEGIN RETURN 'snowflake_next_id(100, x); -- Name: a; Type: b; Schema: c; Owner: d'; END$$;
	CREATE PROCEDURE does_nothing() LANGUAGE plpgsql AS $$BEGIN END$$;
	CREATE AGGREGATE total(integer) (SFUNC = plus, STYPE = integer, INITCOND = '0');
	CREATE OPERATOR @+ (LEFTARG = integer, RIGHTARG = integer, FUNCTION = plus, COMMUTATOR = OPERATOR(kinds.@+));
	CREATE OPERATOR FAMILY family USING btree;
	CREATE OPERATOR CLASS class FOR TYPE integer USING btree FAMILY family AS
		OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(integer, integer);
	REVOKE EXECUTE ON FUNCTION plus FROM PUBLIC;
	GRANT EXECUTE ON FUNCTION plus TO "the ""reader""" WITH GRANT OPTION;

	CREATE SEQUENCE own;
	CREATE SEQUENCE "Numbers %s 'it''s'" AS integer START 1000 INCREMENT 10 MINVALUE 5 MAXVALUE 100000 CACHE 3 CYCLE;
	CREATE UNLOGGED TABLE scratch (id serial PRIMARY KEY, t text) WITH (fillfactor = 70) TABLESPACE other_space;
	CREATE TABLE "User %I" (
		id bigint PRIMARY KEY DEFAULT next_id() CHECK (snowflake_shard(id) = 100),
		direct bigint NOT NULL DEFAULT snowflake_next_id(100, 'own', 1767225600000),
		nested text DEFAULT 'N%s-' || lpad(nextval('"Numbers %s ''it''''s''"')::text, 8,
			'0') || '/' || snowflake_next_id(100, 'own'),
		named bigint DEFAULT snowflake_next_id(shard => 100, seq => 'own'),
		named_last bigint DEFAULT snowflake_next_id(seq => 'own', shard => 100),
		elsewhere bigint DEFAULT snowflake_next_id(100, 'outside.ids'),
		setting bigint DEFAULT snowflake_next_id(),
		gone text, counted serial, "small 'No'" smallserial,
		always bigint GENERATED ALWAYS AS IDENTITY (START 100 INCREMENT 5 CACHE 7 CYCLE MAXVALUE 100000),
		by_default integer GENERATED BY DEFAULT AS IDENTITY,
		e email, m mood DEFAULT 'glad', p pair, b base, r mood_range,
		"kinds" text COLLATE plain DEFAULT 'kinds.x',
		doubled integer GENERATED ALWAYS AS (plus(1, 2) * 2) STORED,
		during tsrange, country text REFERENCES outside.countries, place point,
		CONSTRAINT late_number UNIQUE NULLS NOT DISTINCT (counted) DEFERRABLE,
		CONSTRAINT "check 'em" CHECK ("kinds" <> 'kinds.y') NO INHERIT,
		CONSTRAINT no_overlap EXCLUDE USING gist (during WITH &&) WHERE (id > 1) DEFERRABLE INITIALLY DEFERRED);
	ALTER TABLE "User %I" DROP COLUMN gone, ALTER country SET COMPRESSION pglz;
	ALTER SEQUENCE "User %I_by_default_seq" RENAME TO "identity %s";
	ALTER SEQUENCE "User %I_counted_seq" RENAME TO "serial %s";
	COMMENT ON SEQUENCE own IS 'of the direct call'; CREATE SEQUENCE down INCREMENT BY -1; CREATE SEQUENCE pg_class;
	ALTER TABLE "User %I" ADD of_catalogue bigint DEFAULT nextval('kinds.pg_class');
	ALTER TABLE "User %I" ALTER "kinds" SET STORAGE EXTERNAL, ALTER "kinds" SET STATISTICS 500,
		ALTER e SET (n_distinct = -0.5);
	COMMENT ON TABLE "User %I" IS 'kinds.it''s'; COMMENT ON COLUMN "User %I".id IS 'snowflake_next_id(100, 5)';
	COMMENT ON CONSTRAINT "check 'em" ON "User %I" IS 'a check';
	CREATE UNIQUE INDEX "partial ""%s""" ON "User %I" (lower("kinds") text_pattern_ops DESC,
		(counted @+ 1) class) INCLUDE (e) WHERE m = 'glad';
	CREATE INDEX ON "User %I" USING gin (to_tsvector('kinds.search', "kinds")) TABLESPACE other_space;
	ALTER TABLE "User %I" CLUSTER ON "User %I_pkey", REPLICA IDENTITY USING INDEX "User %I_pkey";
	CREATE INDEX expressions ON "User %I" ((counted * 2), ("kinds" || 'x'));
	ALTER INDEX expressions ALTER COLUMN 2 SET STATISTICS 500;
	CREATE INDEX named_twice ON "User %I" (named); CREATE INDEX named_too ON "User %I" (named);
	COMMENT ON INDEX named_too IS 'too';
	CREATE INDEX ON "User %I" USING brin (id) WITH (pages_per_range = 8);
	CREATE STATISTICS several (ndistinct, mcv) ON counted, m FROM "User %I";
	CREATE TABLE with_access_method (id integer) USING another_heap TABLESPACE other_space;
	CREATE TABLE typed OF pair (PRIMARY KEY (a));
	CREATE TABLE no_columns ();
	CREATE TABLE full_identity (id integer) WITH (toast.autovacuum_enabled = off);
	ALTER TABLE full_identity REPLICA IDENTITY FULL;
	CREATE TABLE parent (a integer); CREATE TABLE child (b integer) INHERITS (parent);
	CREATE TABLE events (id bigint DEFAULT next_id(), kind mood, PRIMARY KEY (id, kind)) PARTITION BY LIST (kind);
	CREATE TABLE events_glad PARTITION OF events FOR VALUES IN ('glad') PARTITION BY RANGE (id);
	CREATE TABLE events_glad_1 PARTITION OF events_glad FOR VALUES FROM (0) TO (4000000000000000000);
	CREATE TABLE events_rest PARTITION OF events DEFAULT;
	CREATE INDEX events_kind ON events (kind);
	CREATE TABLE events_sad (dropped integer, kind mood NOT NULL, id bigint NOT NULL
		DEFAULT 7, CONSTRAINT own_key PRIMARY KEY (id, kind));
	ALTER TABLE events_sad DROP COLUMN dropped, ADD CONSTRAINT own_check CHECK (id < 4000000000000000000);
	CREATE INDEX own_index ON events_sad (kind);
	ALTER TABLE events ATTACH PARTITION events_sad FOR VALUES IN ('kinds.sad');
	CREATE TABLE about_events (id bigint, kind mood, FOREIGN KEY (id, kind) REFERENCES events ON DELETE CASCADE);
	CREATE TABLE hashed (id bigint) PARTITION BY HASH (id);
	CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	CREATE TABLE by_expression (t text, n integer) PARTITION BY LIST (lower(t) COLLATE "C" text_pattern_ops);
	CREATE TABLE by_expression_a PARTITION OF by_expression FOR VALUES IN ('a', 'it''s %s', NULL);
	CREATE TABLE measures (v double precision, at timestamptz, i interval) PARTITION BY RANGE (v, at, i);
	CREATE TABLE measures_1 PARTITION OF measures FOR VALUES FROM (0.1, '2024-02-03 04:05:06.789+00', '1 day 02:03:04')
		TO (0.30000000000000004, '2025-03-04 00:00:00+00', MAXVALUE);
	CREATE TABLE numbered (id bigint GENERATED ALWAYS AS IDENTITY, k integer) PARTITION BY LIST (k);
	CREATE TABLE numbered_1 PARTITION OF numbered FOR VALUES IN (1);
	CREATE TABLE chicken (id bigint PRIMARY KEY DEFAULT next_id(), egg bigint, mother bigint REFERENCES chicken
		ON DELETE SET NULL);
	ALTER TABLE chicken ADD a integer, ADD b integer DEFAULT 3, ADD UNIQUE (a, b);
	CREATE TABLE egg (id bigint PRIMARY KEY DEFAULT next_id(), hen bigint REFERENCES chicken DEFERRABLE INITIALLY DEFERRED,
		b integer, a integer,
		CONSTRAINT "set 'null' %s" FOREIGN KEY (a, b) REFERENCES chicken (a, b) ON DELETE SET NULL (b) ON UPDATE SET DEFAULT,
		FOREIGN KEY (a, b) REFERENCES chicken (a, b) MATCH FULL ON DELETE SET DEFAULT (b, a));
	ALTER TABLE chicken ADD FOREIGN KEY (egg) REFERENCES egg ON DELETE CASCADE NOT VALID;
	CREATE FOREIGN TABLE far (id bigint DEFAULT next_id()) SERVER nowhere;

	CREATE VIEW looks AS SELECT u.id, kinds.m FROM "User %I" AS kinds, "User %I" AS u;
	CREATE RECURSIVE VIEW steps (n) AS SELECT 1 UNION ALL SELECT n + 1 FROM steps WHERE n < 5;
	CREATE MATERIALIZED VIEW filled AS SELECT count(*) AS n FROM "User %I";
	CREATE UNIQUE INDEX ON filled (n);
	CREATE MATERIALIZED VIEW filled_too AS SELECT n FROM filled;
	CREATE MATERIALIZED VIEW not_filled AS SELECT id FROM egg WITH NO DATA;
	CREATE RULE twice AS ON INSERT TO parent DO ALSO (INSERT INTO child VALUES (1, 2); NOTIFY kinds);
	CREATE FUNCTION on_change() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN new; END$$;
	CREATE TRIGGER changed BEFORE UPDATE OF m ON "User %I" FOR EACH ROW WHEN (old.m <> new.m)
		EXECUTE FUNCTION on_change('kinds.x');
	CREATE TRIGGER of_all AFTER INSERT ON events REFERENCING NEW TABLE AS added FOR EACH STATEMENT
		EXECUTE FUNCTION on_change();
	CREATE CONSTRAINT TRIGGER late AFTER INSERT ON egg DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
		EXECUTE FUNCTION on_change();
	ALTER TABLE egg ENABLE ALWAYS TRIGGER late;
	ALTER TABLE "User %I" ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
	CREATE POLICY theirs ON "User %I" AS RESTRICTIVE FOR UPDATE TO app USING (EXISTS (SELECT FROM egg)) WITH
		CHECK (id > 0);
	GRANT SELECT, INSERT (e, m) ON "User %I" TO app WITH GRANT OPTION;
	GRANT USAGE ON SCHEMA kinds TO app; GRANT USAGE ON TYPE mood TO app; REVOKE USAGE ON TYPE email FROM PUBLIC;
	GRANT SELECT ON SEQUENCE own TO "the ""reader""";
	GRANT SELECT (id, e), UPDATE (m) ON "User %I" TO "the ""reader""";
	REVOKE DELETE, TRUNCATE ON chicken FROM CURRENT_USER;
	GRANT SELECT ON chicken TO "the ""reader""" WITH GRANT OPTION; GRANT USAGE ON SCHEMA kinds TO "the ""reader""";
	SET ROLE "the ""reader"""; GRANT SELECT ON chicken TO PUBLIC; RESET ROLE;
	ALTER TABLE egg OWNER TO app; ALTER TYPE pair OWNER TO app; ALTER FUNCTION two OWNER TO app;
};
$node->safe_psql('postgres', $template);
# Use it, so that no position is the clone's.
$node->safe_psql('postgres', q{SET search_path = kinds;
	INSERT INTO chicken DEFAULT VALUES; INSERT INTO parent VALUES (1); SELECT nextval('"Numbers %s ''it''''s''"')});

my $text = dump_of($node, 'kinds');

subtest 'the template has an object of each kind' => sub {
	my ($headings) = qx(pg_dump -s -n kinds -d '@{[ $node->connstr('postgres') ]}') =~ /(.*)/s;
	foreach my $type ('ACL', 'AGGREGATE', 'COLLATION', 'COMMENT', 'CONSTRAINT', 'CONVERSION', 'DEFAULT', 'DEFAULT ACL',
		'DOMAIN',
		'FK CONSTRAINT', 'FOREIGN TABLE', 'FUNCTION', 'INDEX', 'INDEX ATTACH', 'MATERIALIZED VIEW', 'OPERATOR',
		'OPERATOR CLASS',
		'OPERATOR FAMILY', 'POLICY', 'PROCEDURE', 'ROW SECURITY', 'RULE', 'SCHEMA', 'SEQUENCE', 'SEQUENCE OWNED BY',
		'SHELL TYPE',
		'STATISTICS', 'TABLE', 'TABLE ATTACH', 'TEXT SEARCH CONFIGURATION', 'TEXT SEARCH DICTIONARY', 'TEXT SEARCH PARSER',
		'TEXT SEARCH TEMPLATE', 'TRIGGER', 'TYPE', 'VIEW')
	{
		like($headings, qr/^-- Name: .*; Type: $type;/m, "the template has a $type");
	}
};

subtest 'a clone has the definition of the template' => sub {
	my ($status, $rows, $err) =
		shard_json($program, 'clone', $node, '--template', 'kinds', '--shards', '7,8', '--schema', 'copy{}');
	is("$status " . states($rows), '0 made 7,8', 'every kind of object is cloned') or diag($err);
	# Text stays as it is: a comment, a constant, an alias, a column of the name.
	my $expected = $text;
	$expected =~ s/(SELECT u\.id,\n\s+)kinds\.m/$1ALIAS.m/;
	my $is = dump_of($node, 'copy7', name => 'kinds', from => 7, to => 100);
	$is =~ s/(SELECT u\.id,\n\s+)kinds\.m/$1ALIAS.m/;
	is_equal_dump($is, $expected, 'pg_dump -s of the clone and of the template are equal but for name and number');
};

subtest 'settings of the caller change nothing' => sub {
	foreach my $setting ('default_tablespace=other_space', 'default_table_access_method=another_heap', 'datestyle=SQL,DMY',
		'timezone=Asia/Kolkata',
		'extra_float_digits=-10', 'quote_all_identifiers=on', 'search_path=kinds',
		'default_transaction_isolation=serializable', 'intervalstyle=sql_standard',
		$has_old_strings ? 'standard_conforming_strings=off' : ())
	{
		local $ENV{PGOPTIONS} = "-c $setting";
		my ($code, $states, $message) =
			shard_json($program, 'clone', $node, '--template', 'kinds', '--shards', '7,11', '--schema', 'copy{}');
		is("$code " . states($states), '0 made 11; there already 7', "with $setting") or diag($message);
		local $ENV{PGOPTIONS} = '';
		is_equal_dump(dump_of($node, 'copy11', name => 'copy7', from => 11, to => 7), dump_of($node, 'copy7'),
			'the clone is no other');
		$node->safe_psql('postgres', 'SET client_min_messages = warning; DROP SCHEMA IF EXISTS copy11 CASCADE');
	}
};

subtest 'an alias that is the name of the schema looks like it in a dump' => sub {
	my ($status, $rows) = shard_json($program, 'diff', $node, '--template', 'kinds', '--shards', '7');
	is(join(', ', map { $_->{object} } @$rows), 'VIEW looks, VIEW looks',
		'diff finds only the alias that looks like the schema');
};

subtest 'a clone and its template do not depend on each other' => sub {
	is($node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_sequences WHERE schemaname = 'copy7' AND last_value IS NOT NULL}),
		0, 'no sequence of a clone has been used');
	is($node->safe_psql('postgres',
		q{SELECT string_agg(matviewname || ispopulated, ' ' ORDER BY matviewname) FROM pg_matviews
			WHERE schemaname = 'copy7'}),
		'filledtrue filled_tootrue not_filledfalse', 'materialized views are filled where the template\'s are');
	is($node->safe_psql('postgres', q{
		SELECT count(*) FROM pg_depend AS d
		CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, d.objsubid) AS a
		CROSS JOIN LATERAL pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid) AS b
		WHERE d.classid <> 0 AND (a.identity LIKE '%copy7%' AND b.identity LIKE '%kinds.%' OR a.identity LIKE '%kinds.%'
			AND b.identity LIKE '%copy7%')}),
		0, 'nothing of a clone depends on the template, and nothing of the template on a clone');
	is($node->safe_psql('postgres', q{INSERT INTO copy7.egg DEFAULT VALUES RETURNING public.snowflake_shard(id)}), '7',
		'a clone makes IDs of its own shard');
	is($node->safe_psql('postgres',
		q{SELECT string_agg(DISTINCT shard::text, ',') FROM snowflake_columns WHERE schema_name = 'copy7'}),
		'7', 'every call that the registry finds is of the clone\'s shard');
	my $findings =
		q{SELECT regexp_replace(replace(concat_ws(' | ', severity, object, problem, hint), '%s', 'kinds'),
			'\yshard %s\y|(\()%s\y', '\1N', 'g') AS line
		FROM snowflake_check() WHERE object ~ '\y%s\y' ORDER BY 1};
	is($node->safe_psql('postgres', sprintf($findings, 'copy7', 7, 7, 'copy7')),
		$node->safe_psql('postgres', sprintf($findings, 'kinds', 100, 100, 'kinds')),
		'snowflake_check() says of a clone what it says of the template, and no more');
};

subtest 'a clone is a template as well, and its name takes quotes' => sub {
	my ($status, $rows, $err) = shard_json($program, 'clone', $node, '--template', 'copy7', '--shards', '9', '--schema',
		q{Te%m "plate" o'clock ünï {}});
	is("$status " . states($rows), '0 made 9', 'a clone of a clone, with a name that has quotes') or diag($err);
	($status, $rows, $err) = shard_json($program, 'clone', $node, '--template', q{Te%m "plate" o'clock ünï 9},
		'--shards', '9-10', '--schema', q{Te%m "plate" o'clock ünï {}});
	is("$status " . states($rows), '0 made 10; there already 9', 'which is a template, and found equal to itself')
		or diag($err);

	is($node->safe_psql('postgres',
		q{SELECT count(*), count(DISTINCT n.nspacl::text), count(DISTINCT obj_description(n.oid)) FROM pg_namespace AS n
		WHERE n.nspname IN ('kinds', 'copy7')
			OR n.nspname ~ '^Te%m'}), '4|1|1', 'all of them have the same privileges and the same comment');
};

subtest 'a clone that would not be as the template is refused' => sub {
	$node->safe_psql('postgres', 'ALTER DEFAULT PRIVILEGES GRANT INSERT ON TABLES TO app');
	my ($status, $rows, $err) =
		run_shard($program, 'clone', $node, '--template', 'kinds', '--shards', '20', '--schema', 'copy{}');
	is($status, 3, 'default privileges that the template has not: an error');
	like($err, qr/clones would differ from schema kinds.*GRANT/s, 'with the statement that would differ');
	$node->safe_psql('postgres', 'ALTER DEFAULT PRIVILEGES REVOKE INSERT ON TABLES FROM app');
	$node->safe_psql('postgres', 'CREATE SCHEMA plain; CREATE TABLE plain.t ()');
	like((run_shard($program, 'clone', $node, '--template', 'plain', '--shards', '20', '--schema', 'copy{}'))[2],
		qr/schema plain is no shard/, 'a schema that is no shard');
	is($node->safe_psql('postgres',
		q{SELECT to_regnamespace('copy20') IS NULL AND NOT EXISTS (SELECT FROM pg_namespace WHERE nspname ~ '^snowflake_copy')
		AND to_regclass('kinds.egg') IS NOT NULL}), 't', 'nothing was made, and the template has its name');
};

subtest 'tables of several access methods are cloned' => sub {
	# pg_dump sets the access method of a table, and none for a partitioned one: what stands above it is another shard's.
	$node->safe_psql('postgres', q{
		SELECT snowflake_create_shard(300, 'two_methods');
		CREATE TABLE two_methods.a (id bigint) PARTITION BY HASH (id);
		CREATE TABLE two_methods.b (id bigint);
		CREATE TABLE two_methods.c (id bigint) USING another_heap});
	my @methods = ($node, '--template', 'two_methods', '--shards', '301,302');
	is((run_shard($program, 'clone', @methods, '--schema', 'two_methods{}'))[0], 0,
		'tables of two access methods are cloned');
	is((run_shard($program, 'diff', @methods))[1], "2 shards compared with two_methods, different: none\n",
		'diff finds no difference between them');
};

subtest 'keys that each shard counts from 1 are named' => sub {
	$node->safe_psql('postgres', q{
		SELECT snowflake_create_shard(310, 'counted');
		SET search_path = counted;
		CREATE TABLE made (id bigint PRIMARY KEY DEFAULT counted.next_id(), n serial);
		CREATE TABLE "A" (id bigserial PRIMARY KEY);
		CREATE TABLE likes (id integer GENERATED BY DEFAULT AS IDENTITY, user_id bigint UNIQUE, PRIMARY KEY (id));
		CREATE TABLE parts (id bigserial PRIMARY KEY) PARTITION BY RANGE (id);
		CREATE TABLE part PARTITION OF parts DEFAULT});
	my @keys = ($node, '--template', 'counted');
	my $of = sub { return join ' ', $_[0] =~ /^snowflake-shard: each shard counts (\S+) from 1: /mg };
	my (undef, undef, $err) = run_shard($program, 'clone', @keys, '--shards', '311', '--schema', 'counted{}');
	is($of->($err), '"A".id likes.id parts.id', 'clone');
	(undef, undef, $err) = run_shard($program, 'diff', @keys, '--shards', '311');
	is($of->($err), '"A".id likes.id parts.id', 'diff');
	like((run_shard($program, 'verify', $node))[2], qr/^snowflake-shard: each shard counts likes\.id from 1, in 2 shards: /m, 'verify');
	foreach my $statement ($err =~ /run in each shard: (.*)/g)
	{
		my ($status, undef, $problem) =
			run_shard($program, 'run', $node, '--shards', '310,311', '--sql', $statement);
		is($status, 0, $statement) or diag($problem);
	}
	my ($status, undef, $after) = run_shard($program, 'diff', @keys, '--shards', '311');
	is("$status $after", '0 ', 'none is left after the statements that it gives');
	unlike((run_shard($program, 'verify', $node))[2], qr/counts likes\.id/, 'and none for verify');
};

$node->stop;
done_testing();
