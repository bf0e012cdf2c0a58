# A superuser runs snowflake-shard on the shard of a hostile role. That role has written text that pg_dump and
# psql would read as statements into bodies, comments, constants and names; and functions that PostgreSQL calls when
# it plans a query, or makes an object, into every place for an expression. None of the text is run as a
# statement. list, map and diff run no function. A restore of the dump runs some as the superuser; clone and the
# definition of a move run them as the owner of the shard, or not at all. The rows of a move: 054.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use JSON::PP;
use PlantedTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();

# Two servers, each with an operator and with a role that plants code.
my ($one, $two) =
	map { new_server($_, conf => "wal_level = logical\nmax_wal_senders = 8\nmax_replication_slots = 8\n") } 'one', 'two';
my ($status, $rows, $out, $err);
$_->safe_psql('postgres',
	'CREATE ROLE super LOGIN SUPERUSER; CREATE ROLE hostile LOGIN; GRANT CREATE ON DATABASE postgres TO hostile')
		foreach $one, $two;
my @super = map { $_->connstr('postgres') . ' user=super' } $one, $two;

sub as_hostile
{
	my ($sql) = @_;
	my ($code, $stdout, $stderr) = $one->psql('postgres', $sql, extra_params => [ '-U', 'hostile' ], on_error_die => 0);
	return $code == 0 ? $stdout : die "$sql: $stderr";
}

my $superusers =
	q{SELECT string_agg(rolname, ' ' ORDER BY rolname) FROM pg_roles WHERE rolsuper AND rolname IN ('hostile', 'super')};

# --- text ----------------------------------------------------------------------------------------

# Text that ends an entry, a dump and a string, and begins others.
my $text = q{
--
-- Name: t; Type: TABLE; Schema: vs; Owner: hostile
--

ALTER ROLE hostile SUPERUSER;

--
-- Name: a heading that is not complete
--

ALTER ROLE hostile SUPERUSER;

--
-- PostgreSQL database dump complete
--

\unrestrict x
ALTER ROLE hostile SUPERUSER;
SET row_security = off;
};
my $heading = $text =~ s/'/''/gr;
as_hostile(qq{
	SELECT snowflake_create_shard(5, 'vs');
	SET search_path = vs, public; SET check_function_bodies = off;
	CREATE FUNCTION f() RETURNS integer LANGUAGE plpgsql AS \$f\$ BEGIN $text END \$f\$;
	CREATE TABLE t (id bigint PRIMARY KEY DEFAULT next_id() CHECK (snowflake_shard(id) = 5),
		body text DEFAULT '$heading', "a
--
-- Name: b; Type: TABLE; Schema: vs; Owner: hostile
--

ALTER ROLE hostile SUPERUSER;
" integer, other text DEFAULT 'snowflake_next_id(5, vs.x)' CHECK (other <> '$heading'));
	CREATE INDEX ON t (id) WHERE body <> '$heading';
	CREATE VIEW v AS SELECT '$heading' AS x FROM t;
	COMMENT ON TABLE t IS '$heading';
	INSERT INTO t DEFAULT VALUES});

subtest 'no verb runs text of the shard' => sub {
	foreach my $verb ([ 'clone', $super[0], '--template', 'vs', '--shards', '6-7', '--schema', 'copy{}' ],
		[ 'diff', $super[0], '--template', 'vs' ], [ 'list', $super[0] ], [ 'verify', $super[0] ],
		[ 'map', $super[0] ], [ 'move', 'vs', '--from', $super[0], '--to', $super[1], '--dry-run' ],
		[ 'move', 'vs', '--from', $super[0], '--to', $super[1] ])
	{
		($status, $out, $err) = run_shard($program, @$verb);
		is($status, 0, "$verb->[0] ends well") or diag("$out$err");
		is(join(' ', map { $_->safe_psql('postgres', $superusers) } $one, $two), 'super super',
			"$verb->[0] runs no text of the shard");
	}
	like($one->safe_psql('postgres', q{SELECT pg_get_functiondef('copy6.f'::regproc)}),
		qr/Type: TABLE; Schema: vs;.*Name: a heading.*dump complete/s,
		'a clone has the whole body');
	is($one->safe_psql('postgres', q{INSERT INTO copy7.t DEFAULT VALUES RETURNING snowflake_shard(id) || other}),
		'7snowflake_next_id(5, vs.x)',
		'and constants as they are');
	is($two->safe_psql('postgres', q{SELECT count(*) FROM vs.t}), '1', 'the shard was moved');
	$one->safe_psql('postgres', 'SET client_min_messages = error; DROP SCHEMA copy6, copy7 CASCADE');
	($status, $out, $err) = run_shard($program, 'move', 'vs', '--from', $super[0], '--to', $super[1], '--complete');
	is($status, 0, 'move --complete ends well') or diag($err);
};

subtest 'a name with a mark of the command is refused' => sub {
	# A name in which the command's own marks would be replaced.
	as_hostile(qq{
		SELECT snowflake_create_shard(8, 'marks');
		CREATE FUNCTION marks."f\001\002"() RETURNS integer LANGUAGE sql SET search_path = marks RETURN 1});
	($status, $out, $err) =
		run_shard($program, 'clone', $super[0], '--template', 'marks', '--shards', '9', '--schema', q{it's "{}"; });
	ok($status == 3 && $err =~ /has a control character/, 'clone refuses a name with a mark of its own')
		or diag("$status $err");
	is($one->safe_psql('postgres', q{SELECT count(*) FROM pg_namespace WHERE nspname ~ '^snowflake_copy|^it'}), '0',
		'nothing is left');
	as_hostile('SET client_min_messages = error; DROP SCHEMA marks CASCADE');
};

subtest 'a search_path with statements in it runs none of them' => sub {
	# A search_path that PostgreSQL takes, and that is no list of SQL.
	as_hostile(q{
		SELECT snowflake_create_shard(8, 'paths');
		CREATE FUNCTION paths.f() RETURNS integer LANGUAGE sql SET search_path = paths, "Odd, Name" AS 'SELECT 1';
		CREATE FUNCTION paths.h() RETURNS integer LANGUAGE sql SET search_path = '' AS 'SELECT 1';
		SELECT set_config('search_path', 'paths,x;ALTER/**/ROLE/**/hostile/**/SUPERUSER;--', false);
		CREATE FUNCTION paths.g() RETURNS integer LANGUAGE sql SET search_path FROM CURRENT AS 'SELECT 1'});
	($status, $out, $err) =
		run_shard($program, 'clone', $super[0], '--template', 'paths', '--shards', '9', '--schema', 'copy{}');
	is($status, 0, 'clone of a search_path with statements in it') or diag($err);
	is($one->safe_psql('postgres', $superusers), 'super', 'runs none of them');
	is($one->safe_psql('postgres',
		q{SELECT string_agg(proconfig::text, ' ' ORDER BY proname) FROM pg_proc WHERE proname IN ('f', 'g', 'h')
			AND pronamespace = 'copy9'::regnamespace}),
		q({"search_path=copy9, \\"Odd, Name\\""} )
		. q({"search_path=copy9, \\"x;ALTER/**/ROLE/**/hostile/**/SUPERUSER;--\\""} {"search_path=\\"\\""}),
		'and keeps them as names');
	$one->safe_psql('postgres', 'SET client_min_messages = error; DROP SCHEMA copy9, paths CASCADE');
};

# --- expressions ---------------------------------------------------------------------------------

# A shard whose expressions write into the log which role runs them.
as_hostile(q{
	SELECT snowflake_create_shard(10, 'planted');
	SET search_path = planted, public;
	CREATE FUNCTION ran(place text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
		$$ BEGIN RAISE LOG 'PLANTED % as %', place, current_user; RETURN 1; END $$;
	CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM planted.ran('trigger'); RETURN NEW;
	END $$;
	CREATE DOMAIN checked AS text CHECK (planted.ran('domain') = 1);
	CREATE TABLE users (id bigint PRIMARY KEY DEFAULT next_id() CHECK (planted.ran('check') = 1), x integer
		DEFAULT ran('default'),
		body checked DEFAULT 'one', twice bigint GENERATED ALWAYS AS (x + ran('generated')) STORED);
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), user_id bigint REFERENCES users ON DELETE CASCADE);
	CREATE INDEX ON users ((x + ran('index expression')));
	CREATE INDEX ON users (x) WHERE ran('index predicate') = 1;
	CREATE STATISTICS planted ON (x + ran('statistics')), body FROM users;
	CREATE TRIGGER planted BEFORE INSERT OR UPDATE OR DELETE ON users FOR EACH ROW EXECUTE FUNCTION fired();
	CREATE RULE planted AS ON INSERT TO users DO ALSO SELECT ran('rule');
	CREATE TABLE child (CHECK (ran('check of a child') = 1)) INHERITS (users);
	CREATE TABLE parted (id bigint PRIMARY KEY DEFAULT next_id()) PARTITION BY RANGE (id);
	CREATE TABLE parted_rest PARTITION OF parted DEFAULT;
	ALTER TABLE parted_rest ADD CHECK (ran('check of a partition') = 1);
	ALTER TABLE users ENABLE ROW LEVEL SECURITY;
	CREATE POLICY planted ON users USING (ran('policy') = 1);
	CREATE MATERIALIZED VIEW filled AS SELECT ran('materialized view') AS n;
	CREATE DOMAIN queried AS text CHECK (VALUE <> '' AND planted.ran('domain of an array') = 1);
	CREATE TABLE constants (id bigint PRIMARY KEY DEFAULT next_id(), many queried[] DEFAULT '{1}'::queried[]);
	CREATE FUNCTION with_argument(many queried[] DEFAULT '{1}') RETURNS integer LANGUAGE sql RETURN 1});
planted_code_run($one, $two);

subtest q(reading runs no function of the shard's owner) => sub {
	foreach my $verb ([ 'list', $super[0] ], [ 'map', $super[0] ], [ 'plan', @super ], [ 'verify', $super[0] ],
		[ 'diff', $super[0], '--template', 'planted' ])
	{
		($status, $out, $err) = run_shard($program, @$verb);
		is($status . planted_code_run($one, $two), '0', "$verb->[0] runs no function of the shard's owner")
			or diag("$out$err");
	}
};

my $by_restore;
subtest 'a copy runs expressions as their owner' => sub {
	# The code that a restore of the whole dump runs, in a database where the schema is not.
	$one->safe_psql('postgres', 'CREATE DATABASE restored');
	$one->safe_psql('restored', 'CREATE EXTENSION snowflake');
	planted_code_run($one, $two);
	IPC::Run::run([ 'pg_dump', '--section=pre-data', '--section=post-data', '-n', 'planted', '-d', $super[0] ], '|',
		[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $one->connstr('restored') . ' user=super' ], '>', \my $ignored)
		or die 'pg_dump and psql failed';
	$by_restore = planted_code_run($one, $two);
	like($by_restore, qr/\b$_ as super\b/, "a restore runs a $_ as the superuser")
		foreach 'generated', 'statistics', 'domain of an array';
	($status, $out, $err) =
		run_shard($program, 'clone', $super[0], '--template', 'planted', '--shards', '11', '--schema', 'copy{}');
	is($status, 0, 'clone ends well') or diag($err);
	my $by_clone = planted_code_run($one, $two);
	like($by_clone, qr/\b$_ as hostile\b/, "clone runs a $_ as the owner")
		foreach 'generated', 'statistics', 'domain of an array';
	is(join(', ', grep { !/ as hostile$/ } split /, /, $by_clone), '', 'and everything else');
	($status, $out, $err) = run_shard($program, 'diff', $super[0], '--template', 'planted');
	is($status . planted_code_run($one, $two), '0', 'diff with a clone runs nothing') or diag("$out$err");
	($status, $out, $err) = run_shard($program, 'move', 'planted', '--from', $super[0], '--to', $super[1], '--dry-run');
	is(join(', ', grep { !/ as hostile$/ } split /, /, planted_code_run($one, $two)), '',
		'move --dry-run runs all as the owner');
};

subtest 'a shard of two roles' => sub {
	# The owner of the schema makes all of it, and may not give objects to any other role.
	$_->safe_psql('postgres', 'CREATE ROLE other LOGIN') foreach $one, $two;
	$one->safe_psql('postgres', 'GRANT USAGE ON SCHEMA planted TO other');
	$one->safe_psql('postgres', 'CREATE TABLE planted.of_other (id bigint); ALTER TABLE planted.of_other OWNER TO other');
	($status, $out, $err) = run_shard($program, 'clone', $super[0], '--template', 'planted', '--shards', '14', '--schema', 'copy{}');
	like("$status $err", qr/^3 .*\n +TABLE of_other: must be .*"other"\n +HINT:  Give the object to role "hostile", .*: GRANT "other" TO "hostile";/s,
		'clone names the object and what mends it');
	is(join(', ', grep { !/ as hostile$/ } split /, /, planted_code_run($one, $two)), '', 'and runs all as the owner');
	($status, $out, $err) = run_shard($program, 'move', 'planted', '--from', $super[0], '--to', $super[1], '--dry-run');
	is($status, 1, 'for move it is an obstacle');
	like($out, qr/TABLE of_other: must be (?:member of role|able to SET ROLE) "other"\n +HINT:  Give the object to role "?hostile"?, .*GRANT "other" TO "?hostile"?;/,
		'with what mends it') or diag($out);
	is(join(', ', grep { !/ as hostile$/ } split /, /, planted_code_run($one, $two)), '', 'it runs all as the owner, too');
	$one->safe_psql('postgres', 'DROP TABLE planted.of_other; REVOKE USAGE ON SCHEMA planted FROM other');
	$_->safe_psql('postgres', 'DROP ROLE other') foreach $one, $two;
	like($by_restore, qr/materialized view as hostile/, 'a materialized view is filled as its owner');
};

# --- the state of a move --------------------------------------------------------------------------

subtest 'a planted state of a move is not read' => sub {
	# A hostile role makes schemas that look like those of moves: a view, and a table with an index, whose functions
	# would run as the caller. A move of another role's schema is not read.
	as_hostile(q{
		CREATE SCHEMA snowflake_move_7;
		CREATE FUNCTION snowflake_move_7.step() RETURNS text
			LANGUAGE plpgsql AS $$BEGIN RAISE LOG 'PLANTED view of a move as %', current_user; RETURN 'prepared'; END$$;
		CREATE VIEW snowflake_move_7.state AS
			SELECT gen_random_uuid() AS id, 'x'::text AS other, snowflake_move_7.step() AS step, NULL::uuid AS marker;
		CREATE TABLE snowflake_move_7.shards AS SELECT 7 AS number, name 'planted' AS schema_name;
		CREATE SCHEMA snowflake_move_8;
		CREATE FUNCTION snowflake_move_8.f(text) RETURNS text
			LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RAISE LOG 'PLANTED index of a move as %', current_user; RETURN $1; END$$;
		CREATE TABLE snowflake_move_8.shards AS SELECT 8 AS number, name 'planted' AS schema_name;
		CREATE TABLE snowflake_move_8.state (id uuid, other text, step text, marker uuid,
			is_reversible boolean, is_reverse boolean, is_equal boolean,
			is_held boolean, compared_at timestamptz);
		CREATE INDEX ON snowflake_move_8.state ((step || snowflake_move_8.f('x')));
		INSERT INTO snowflake_move_8.state VALUES (gen_random_uuid(), 'x', 'moved')});
	planted_code_run($one, $two);
	foreach my $verb ([ 'list', $super[0] ], [ 'map', $super[0] ], [ 'verify', $super[0] ],
		[ 'move', 'planted', '--from', $super[0], '--to', $super[1], '--abort' ])
	{
		($status, $out, $err) = run_shard($program, @$verb);
		is(planted_code_run($one, $two), '', "$verb->[0] reads no planted state of a move") or diag("$out$err");
	}
	like((run_shard($program, 'list', $super[0]))[1], qr/\bplanted\b/, 'a planted state closes no shard');
};

# --- the record of changes ------------------------------------------------------------------------

subtest 'a planted record of changes is not called' => sub {
	# A shard's owner has planted a record. It is read, and never called; the entries of another owner stay in that shard.
	as_hostile(q{
		CREATE FUNCTION planted.snowflake_changes() RETURNS text[] LANGUAGE plpgsql AS $$
			BEGIN RAISE LOG 'PLANTED record as %', current_user; RETURN '{}'; END $$});
	$one->safe_psql('postgres', q{SET ROLE super; SELECT snowflake_create_shard(12, 'ours')});
	planted_code_run($one, $two);
	($status, $out, $err) = run_shard($program, 'run', $super[0], '--shards', '10,12', '--keep-going', '--once', 'ours',
		'--sql', 'CREATE TABLE ours ()');
	is("$status $out" . planted_code_run($one, $two), "3 1 shard done: 12\n1 shard failed: 10\n",
		'run --once calls no planted record') or diag($err);
	like($err,
		qr/shard 10, schema planted: function snowflake_changes\(\) of its schema is no record that run has written/,
		'and names it');
	is(as_hostile(q{SELECT to_regclass('planted.ours') IS NULL}), 't', 'the shard is not changed');
};

# --- what counts as a shard -------------------------------------------------------------------------

subtest 'temporary objects are no shard' => sub {
	# Any role may make temporary tables.
	my $temporary = $one->background_psql('postgres', extra_params => [ '-U', 'hostile' ]);
	$temporary->query_safe(q{
		CREATE TEMP SEQUENCE s;
		CREATE TEMP TABLE users (id bigint DEFAULT public.snowflake_next_id(12, 's'), wrong integer
			DEFAULT public.snowflake_next_id(13, 's'));
		CREATE FUNCTION pg_temp.next_id() RETURNS bigint LANGUAGE sql RETURN public.snowflake_next_id(14, 's')});
	foreach my $verb ('list', 'map')
	{
		($status, $rows) = shard_json($program, $verb, $super[0]);
		is(join(' ', $status, sort map { $_->{schema} } grep { $_->{shard} >= 12 } @$rows), '0 ours',
			"$verb: a temporary schema is no shard");
	}
	is((run_shard($program, 'query', $super[0], '--shards', '13', '--sql', 'SELECT 1 FROM users'))[0], 3, 'nor for query');
	unlike((run_shard($program, 'verify', $super[0]))[1], qr/pg_temp/,
		'verify: temporary objects of others are no findings');
	is($one->safe_psql('postgres',
		"SELECT * FROM snowflake_$_ WHERE shard IN (12, 13, 14) AND to_jsonb(snowflake_$_)::text ~ 'pg_temp'"), '',
			"nor rows of snowflake_$_")
		foreach qw(shards columns sequences);
	$temporary->quit;
};

subtest 'a number that two schemas use is refused until one is removed' => sub {
	# A role that may create a schema plants a second one with the number of another: the number is refused, until it is
	# removed.
	as_hostile(q{
		CREATE SCHEMA "a Twin";
		CREATE SEQUENCE "a Twin".s;
		CREATE TABLE "a Twin".x ("the ID" bigint DEFAULT snowflake_next_id(12, '"a Twin".s'));
		CREATE TABLE "a Twin".y (LIKE "a Twin".x INCLUDING DEFAULTS);
		CREATE DOMAIN "a Twin".d AS bigint DEFAULT snowflake_next_id(12, '"a Twin".s');
		CREATE FUNCTION "a Twin".f(integer) RETURNS bigint LANGUAGE sql RETURN snowflake_next_id(12, '"a Twin".s')});
	($status, $rows) = shard_json($program, 'list', $super[0]);
	is(join(', ', $status, map { $_->{schema} } grep { $_->{shard} == 12 } @$rows), '0, a Twin, ours',
		'list shows both schemas');
	my $server = $one->host . ':' . $one->port . '/postgres';
	my $drop_default = 'ALTER TABLE "a Twin".x ALTER COLUMN "the ID" DROP DEFAULT;';
	my $both = <<"END";
shard 12 has several schemas on $server: "a Twin" of role hostile, ours of role super
    "a Twin": type "a Twin".d of role hostile. To remove it: ALTER DOMAIN "a Twin".d DROP DEFAULT;
    "a Twin": function "a Twin".f(integer) of role hostile. To remove it: DROP FUNCTION "a Twin".f(integer);
    "a Twin": table column "a Twin".x."the ID" of role hostile. To remove it: $drop_default
    "a Twin": and 1 more
    ours: function ours.next_id() of role super. To remove it: DROP FUNCTION ours.next_id();
HINT:  Decide which schema is the shard, and remove the objects of the others.
END
	my $plan = PostgreSQL::Test::Utils::tempdir() . '/plan.json';
	append_to_file($plan, encode_json([ { shard => 12, schema => 'a Twin', from => $super[0], to => $super[1] } ]));
	my @ways = ('--from', $super[0], '--to', $super[1]);
	foreach my $verb ([ 'map', $super[0] ], [ 'map', $super[0], '--format', 'pgbouncer' ], [ 'move', 'ours', @ways ],
		[ 'move', 'a Twin', @ways, '--dry-run' ],
		[ 'move', '--shards', '12', @ways ], [ 'move', '--plan', $plan ],
		[ 'split', '--from', $super[0], '--standby', $super[1], '--shards', '10' ])
	{
		($status, $out, $err) = run_shard($program, @$verb);
		ok($status == 3 && $out eq '' && index($err, $both) >= 0, "@$verb[0, 1] refuses the number")
			or diag("$status $out$err");
	}
	($status, $out, $err) = run_shard($program, 'move', 'planted', @ways, '--dry-run');
	isnt($status, 3, 'another shard is not refused') or diag($err);
	foreach my $times (1, 2)
	{
		(undef, undef, $err) = run_shard($program, 'map', $super[0]);
		as_hostile($_) foreach $err =~ /"a Twin": .* To remove it: (.*)/g;
	}
	is((run_shard($program, 'map', $super[0]))[0], 0, 'the statements remove it');
};

# An operator gives the statement of a hint.
subtest 'hints of another role' => sub {
	my $forged = "\nHINT:  GRANT super TO hostile;\n";
	as_hostile(qq{
		SELECT snowflake_create_shard(15, 'forging');
		CREATE TABLE forging.t (id bigint DEFAULT forging.next_id(), y integer CONSTRAINT "y${forged}x" CHECK (y < 5));
		CREATE FUNCTION forging.raise(level text) RETURNS void LANGUAGE plpgsql AS \$f\$ BEGIN
			IF level = 'notice' THEN RAISE NOTICE 'a${forged}b'; ELSE
			RAISE 'a${forged}b' USING DETAIL = 'c${forged}d', HINT = 'e${forged}f'; END IF; END \$f\$});
	foreach my $sql ('INSERT INTO t (y) VALUES (7)', q{SELECT raise('notice')}, q{SELECT raise('error')})
	{
		($status, $out, $err) = run_shard($program, 'run', $super[0], '--shards', '15', '--sql', $sql);
		ok($err !~ /^HINT:  GRANT/m && $err =~ /^    HINT:  GRANT super TO hostile;$/m, "$sql: it is indented") or diag($err);
	}
	like($err, qr/^DETAIL:  c\n    HINT: .*\n    d\nHINT:  e\n    HINT: /m, 'a detail and a hint of the error are shown');
	as_hostile('INSERT INTO forging.t VALUES (snowflake_min_id(now()) | 77 << 10)');
	($status, $rows) = shard_json($program, 'verify', $super[0], '--full');
	is_deeply([ map { $_->{hint} =~ /(.*)SELECT \* FROM forging\.t/ } @$rows ], ['As role hostile, because code of that role can run: '],
		'a query of the table of another role is for that role');
	($status, $rows) = shard_json($program, 'verify', $one->connstr('postgres') . ' user=hostile', '--full');
	is_deeply([ map { $_->{hint} =~ /(.*)SELECT \* FROM forging\.t/ } @$rows ], [''], 'for whom it is without that');
	as_hostile('DROP SCHEMA forging CASCADE');
};

$_->stop foreach $one, $two;
done_testing();
