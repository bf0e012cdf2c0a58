# In a shard, its owner runs: SQL that a superuser carries into shards by "query" and "run" gives no right of the
# superuser to code of the owners. Every owner here is hostile, and has planted code wherever PostgreSQL calls any.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PlantedTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $node = new_server('fleet');
my ($status, $out, $err);

# Roles: a superuser, one that is a member of the owners, one that is not, and two owners of shards.
$node->safe_psql('postgres', q{
	CREATE ROLE super LOGIN SUPERUSER; CREATE ROLE deploy LOGIN; CREATE ROLE reader LOGIN;
	CREATE ROLE mallory LOGIN; CREATE ROLE eve LOGIN; GRANT mallory, eve TO deploy;
	GRANT CREATE ON DATABASE postgres TO mallory, eve;
	CREATE TABLE secret (word text); INSERT INTO secret VALUES ('secret')});
my %as = map { $_ => $node->connstr('postgres') . " user=$_" } qw(super deploy reader mallory eve);

sub run_as
{
	my ($role, @arguments) = @_;
	($status, $out, $err) = run_shard($program, $arguments[0], $as{$role}, @arguments[ 1 .. $#arguments ]);
	return $status;
}

sub psql_as
{
	my ($role, $sql) = @_;
	my ($code, $stdout, $stderr) = $node->psql('postgres', $sql, extra_params => [ '-U', $role ]);
	return $code == 0 ? $stdout : die "$sql: $stderr";
}

# Notes whose session runs it; tries each way to more rights, and notes when one has led to any. Other statements are of
# the owner's own session: they work, and lead nowhere.
my $climb = q{
	CREATE FUNCTION climb(place text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $climb$
	DECLARE
		way text;
	BEGIN
		IF current_setting('my.planting', true) = 'on' THEN RETURN 1; END IF;
		RAISE LOG 'PLANTED % in a session of % as %', place, session_user, current_user;
		FOREACH way IN ARRAY ARRAY['SET ROLE super', 'SET SESSION AUTHORIZATION super',
			$$SELECT set_config('session_authorization', 'super', false)$$,
			$$COPY public.secret TO PROGRAM 'cat >/dev/null'$$, 'TABLE public.secret', 'ALTER ROLE mallory SUPERUSER',
			'ALTER ROLE eve SUPERUSER', 'DECLARE c CURSOR WITH HOLD FOR TABLE public.secret',
			'CREATE EVENT TRIGGER planted ON ddl_command_start EXECUTE FUNCTION none()', 'DISCARD ALL',
			'ok: RESET ROLE', 'ok: SET ROLE NONE', 'ok: RESET SESSION AUTHORIZATION', $$ok: SELECT set_config('role', 'none', false)$$,
			'ok: CREATE TEMP TABLE users (id bigint)', 'ok: PREPARE p AS TABLE public.secret', 'ok: SET search_path = public',
			$$ok: SET client_connection_check_interval = 0$$, $$ok: SELECT pg_advisory_lock(1)$$,
			$$ok: DECLARE snowflake_shard CURSOR FOR SELECT 1$$]
		LOOP
			BEGIN
				EXECUTE replace(way, 'ok: ', '');
				IF way !~ '^ok: ' THEN RAISE LOG 'PLANTED % works as %', way, current_user; END IF;
			EXCEPTION WHEN OTHERS THEN
			END;
			IF current_user NOT IN ('mallory', 'eve') OR session_user NOT IN ('mallory', 'eve') THEN
				RAISE LOG 'PLANTED % has led as %', way, current_user;
			END IF;
		END LOOP;
		RETURN 1;
	END $climb$};

# A shard whose owner has planted code in every place; its names catch those of ordinary SQL.
sub plant
{
	my ($role, $number, $schema) = @_;
	psql_as($role, qq{
		SET my.planting = on;
		SELECT snowflake_create_shard($number, '$schema'); SET search_path = $schema, public; $climb;
		CREATE FUNCTION fired() RETURNS trigger
			LANGUAGE plpgsql AS 'BEGIN PERFORM $schema.climb(''trigger''); RETURN NEW; END';
		CREATE FUNCTION lower(varchar) RETURNS text LANGUAGE sql RETURN climb('function')::text;
		CREATE FUNCTION same(varchar, varchar) RETURNS boolean LANGUAGE sql RETURN climb('operator') = 1;
		CREATE OPERATOR = (FUNCTION = same, LEFTARG = varchar, RIGHTARG = varchar);
		CREATE TYPE pair AS (a integer);
		CREATE FUNCTION as_text(pair) RETURNS text LANGUAGE sql RETURN climb('cast')::text;
		CREATE CAST (pair AS text) WITH FUNCTION as_text(pair) AS IMPLICIT;
		CREATE FUNCTION defined() RETURNS integer
			LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN $schema.climb(''definer''); END';
		CREATE DOMAIN checked AS text CHECK (climb('domain') = 1);
		CREATE TABLE users (id bigint PRIMARY KEY DEFAULT next_id(), name varchar CHECK (climb('check') = 1), x integer
			DEFAULT climb('default'),
			many checked[], p pair, twice bigint GENERATED ALWAYS AS (x + climb('generated')) STORED);
		CREATE INDEX ON users ((x + climb('index')));
		CREATE INDEX ON users (x) WHERE climb('predicate') = 1;
		CREATE STATISTICS planted ON (x + climb('statistics')), name FROM users;
		CREATE TRIGGER planted BEFORE INSERT OR UPDATE OR DELETE ON users FOR EACH ROW EXECUTE FUNCTION fired();
		CREATE CONSTRAINT TRIGGER planted_last AFTER INSERT ON users DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
			EXECUTE FUNCTION fired();
		CREATE RULE planted AS ON UPDATE TO users DO ALSO SELECT climb('rule');
		ALTER TABLE users ENABLE ROW LEVEL SECURITY;
		CREATE POLICY planted ON users USING (climb('policy') = 1);
		CREATE PROCEDURE p() LANGUAGE plpgsql AS 'BEGIN COMMIT; PERFORM $schema.climb(''procedure''); END';
		CREATE VIEW photos AS SELECT climb('view') AS id, defined() AS d, u.p::text FROM users AS u});
	return;
}
plant('mallory', 5, 'insta5');
plant('eve', 6, 'insta6');
planted_code_run($node);

my $superusers =
	q{SELECT string_agg(rolsuper::text, ' ' ORDER BY rolname) FROM pg_roles WHERE rolname IN ('mallory', 'eve')};

# Runs a verb as a role; the planted code that ran, all of it as the owners.
sub is_contained
{
	my ($role, $expected, @arguments) = @_;
	my $name = "$arguments[0] as $role: " . ($arguments[-1] =~ s/\s+/ /gr);
	is(run_as($role, @arguments), $expected, "$name: exit code $expected") or diag("$out$err");
	my $run = planted_code_run($node);
	isnt($run, '', "$name: planted code runs") if $expected == 0;
	is(join(', ', grep { !/ in a session of (mallory|eve) as \1$/ } split /, /, $run), '',
		"$name: as the owner of its shard, without a way to more");
	return $run;
}

# --- query ---------------------------------------------------------------------------------------

subtest 'query runs planted code as the owner of the shard' => sub {
	foreach my $role (qw(super deploy))
	{
		is_contained($role, 0, 'query', '--sql', 'SELECT count(*), max(id), max(d) FROM photos');
		is_contained($role, 0, 'query', '--shards', '5-6', '--sql',
			q{SELECT count(*), max(lower(name)), bool_and(name = 'a') FROM users});
		is_contained($role, 0, 'query', '--sql', q{SELECT many = '{a}' FROM users});
		like($out, qr/^shard  schema  \?column\?\n/, "query as $role: the column of the query");
	}
	is($node->safe_psql('postgres', $superusers), 'false false', 'nobody has become a superuser');
};

# --- run -----------------------------------------------------------------------------------------

subtest 'run runs planted code as the owner of the shard' => sub {
	foreach my $sql (
		q{INSERT INTO users (name, many, p) VALUES ('a', '{b}', ROW(1))},
		q{UPDATE users SET name = 'b' WHERE lower(name) <> '0' AND name = 'a'},
		'ALTER TABLE users ADD place text; CREATE INDEX ON users (place); CREATE TABLE made AS SELECT * FROM photos; '
		. 'DROP TABLE made',
		'ALTER TABLE users ALTER many TYPE text[]', 'DELETE FROM users')
	{
		is_contained('super', 0, 'run', '--shards', '5-6', '--keep-going', '--sql', $sql);
	}
	is_contained('deploy', 0, 'run', '--shards', '5-6', '--once', 'one', '--sql',
		'INSERT INTO users (name) VALUES (NULL); CREATE TABLE made ()');
	is($node->safe_psql('postgres',
		q{SELECT string_agg(format('%s %s', c.oid::regclass, relowner::regrole), ', ' ORDER BY relname, 1) FROM pg_class AS c
			WHERE relname = 'made'}),
		'insta5.made mallory, insta6.made eve', 'a table that run makes is the owner\'s');
	is($node->safe_psql('postgres',
		q{SELECT string_agg(format('%s %s', p.oid::regprocedure, proowner::regrole), ', ' ORDER BY p.oid::regprocedure::text)
			FROM pg_proc AS p
		WHERE proname = 'snowflake_changes'}), 'insta5.snowflake_changes() mallory, insta6.snowflake_changes() eve',
			'and the record of its changes');
	is(run_as('super', 'run', '--shards', '5-6', '--once', 'one', '--sql',
		'INSERT INTO users (name) VALUES (NULL); CREATE TABLE made ()') . $out,
		"02 shards had it already: 5-6\n", 'a superuser finds the record of another role');
	is(planted_code_run($node), '', 'and runs nothing');
};

subtest 'run --no-transaction runs any statement as the owner of the shard' => sub {
	foreach my $sql ('CREATE INDEX CONCURRENTLY climbed ON users (climb(name::text), x) WHERE climb(\'a\'::text) = 1',
		'REINDEX INDEX CONCURRENTLY climbed', 'VACUUM ANALYZE users', q{CREATE INDEX CONCURRENTLY ON users (x) WHERE many = '{a}'},
		'SELECT climb(\'alone\')', 'CALL p()')
	{
		is_contained('super', 0, 'run', '--shards', '5-6', '--no-transaction', '--sql', $sql);
	}
	is_contained('deploy', 0, 'run', '--shards', '5-6', '--no-transaction', '--sql', 'CALL p()');
	is(run_as('super', 'run', '--shards', '5-6', '--no-transaction', '--sql', 'DROP INDEX CONCURRENTLY climbed')
		. planted_code_run($node), '0', 'DROP INDEX CONCURRENTLY runs nothing');
	is($node->safe_psql('postgres', $superusers), 'false false', 'nobody has become a superuser');
};

# --- limits --------------------------------------------------------------------------------------

subtest 'what run refuses, and what its errors repeat' => sub {
	is(run_as('super', 'run', '--shards', '5-6', '--keep-going', '--sql', 'CREATE TABLE t (); COMMIT') . $out,
		"32 shards failed: 5-6\n", 'run refuses COMMIT');
	like($err,
		qr/the SQL begins or ends a transaction itself.*\nHINT:  run begins and ends the transaction of each shard/s,
		'and says why');
	is(run_as('super', 'run', '--shards', '5', '--sql', 'VACUUM')
		. ($err =~ /HINT:  It cannot run in a transaction: use --no-transaction/ ? ' hint' : $err), '3 hint',
		'VACUUM needs --no-transaction');
	is(run_as('super', 'query', '--shards', '5', '--sql', "SELECT 1,\n2 FROM nowhere,\nsomewhere"), 3,
		'an error of a query');
	like($err, qr/relation "nowhere" does not exist\nLINE 3: 2 FROM nowhere,\n/, 'has its line, too');
	unlike($err, qr/somewhere|DECLARE/, 'does not repeat its text');
	is(run_as('super', 'run', '--shards', '5', '--sql', "SELECT 1;\nSELECT * FROM nowhere;\nSELECT 2"), 3,
		'an error of the SQL');
	like($err, qr/relation "nowhere" does not exist\nLINE 2: SELECT \* FROM nowhere;/, 'has its line');
	unlike($err, qr/SELECT 2/, 'and not the whole text');
	is(run_as('super', 'run', '--shards', '5', '--sql', 'COPY users FROM STDIN')
		. ($err =~ /COPY FROM STDIN and COPY TO STDOUT are not possible here: use psql/ ? '' : $err), '3', 'run refuses COPY');
	foreach my $verb (qw(query run))
	{
		foreach my $sql ('SELECT snowflake_shard(1)', 'SELECT FROM snowflake_shards')
		{
			is(run_as('super', $verb, '--shards', '5', '--sql', $sql), 3, "$verb: $sql finds nothing of the extension");
			like($err, qr/ does not exist.*\nsearch_path has the shard's schema alone: write public\.snowflake_\.\.\./s,
				'and the error says how it is written');
		}
	}
};

# public belongs to pg_database_owner, and this role is the owner of the database alone.
subtest 'a table in public, in a database of a superuser' => sub {
	$node->safe_psql('postgres',
		q{CREATE SEQUENCE one_seq; CREATE TABLE public.one (id bigint DEFAULT snowflake_next_id(900, 'one_seq'))});
	is(run_as('super', 'query', '--shards', '900', '--sql', 'SELECT count(*) FROM one'), 0, 'query') or diag($err);
	$node->safe_psql('postgres', 'GRANT CREATE ON SCHEMA public TO mallory');
	is(run_as('super', 'query', '--shards', '900', '--sql', 'SELECT count(*) FROM one'), 3, 'not where others may create');
	like($err, qr/schema public belongs to superuser \S+, and role mallory may create objects in it/, 'with the role');
	$node->safe_psql('postgres', 'REVOKE CREATE ON SCHEMA public FROM mallory; DROP TABLE one');
};

subtest 'a superuser has the rights of the owner' => sub {
	foreach my $verb (qw(query run))
	{
		is(run_as('super', $verb, '--shards', '5', '--sql', 'TABLE public.secret'), 3,
			"$verb as super: a table that the owner may not read");
		like($err, qr/permission denied for table secret.*The SQL runs in a session of role mallory\.\n/s,
			'and whose rights they are');
	}
};

subtest 'a role that may not act as the owner' => sub {
	psql_as('mallory', 'GRANT USAGE ON SCHEMA insta5 TO reader; CREATE TABLE insta5.mine (); GRANT ALL ON insta5.mine TO reader');
	foreach my $verb (qw(query run))
	{
		is(run_as('reader', $verb, '--shards', '5', '--sql', 'TABLE mine') . planted_code_run($node), 3, "$verb is refused");
		like($err, qr/role reader may not act as role mallory\nHINT:  As a superuser: GRANT mallory TO reader;/, 'with the GRANT');
	}
	my ($grant) = $err =~ /: (GRANT [^;]*;)/;
	$node->safe_psql('postgres', $grant);
	is(run_as('reader', 'query', '--shards', '5', '--format', 'csv', '--sql', 'SELECT session_user, current_user') . $out,
		"0shard,schema,session_user,current_user\n5,insta5,mallory,mallory\n", 'after which it may');
	$node->safe_psql('postgres', 'REVOKE mallory FROM reader');
};

subtest 'an owner who cannot have a session' => sub {
	psql_as('super', q{CREATE ROLE keeper; CREATE SCHEMA insta8 AUTHORIZATION keeper; SET ROLE keeper; CREATE SEQUENCE insta8.s;
		CREATE TABLE insta8.t (id bigint DEFAULT public.snowflake_next_id(8, 'insta8.s'))});
	my @eight = ('--shards', '8', '--sql', 'SELECT session_user');
	if ($node->pg_version < 17)
	{
		foreach my $verb (qw(query run))
		{
			is(run_as('super', $verb, @eight), 3, "without LOGIN $verb is refused before 17");
			like($err, qr/role keeper has no LOGIN, and before PostgreSQL 17 a session needs it\nHINT:  ALTER ROLE keeper LOGIN/,
				'with the remedy');
		}
		my ($alter) = $err =~ /HINT:  (ALTER ROLE [^;]*;)/;
		$node->safe_psql('postgres', $alter);
		isnt(($node->psql('postgres', 'SELECT 1', extra_params => [ '-U', 'keeper' ]))[0], 0, 'which lets no client in');
	}
	is(run_as('super', 'query', @eight), 0, 'then it works') or diag($err);
	like($out, qr/^ +8 +insta8 +keeper$/m, 'in a session of the owner');
	psql_as('super', 'REVOKE CONNECT ON DATABASE postgres FROM PUBLIC');
	foreach my $verb (qw(query run))
	{
		is(run_as('super', $verb, @eight), 3, "without CONNECT $verb is refused");
		like($err, qr/role keeper may not connect to database postgres\nHINT:  GRANT CONNECT ON DATABASE postgres TO keeper;/,
			'with the remedy');
	}
	psql_as('super', 'GRANT CONNECT ON DATABASE postgres TO PUBLIC; DROP OWNED BY keeper CASCADE; DROP ROLE keeper');
};

# Both of these run in one process of the server, as new.
subtest 'nothing of a shard is seen in the next one of its owner' => sub {
	psql_as('mallory', q{SET my.planting = on; SELECT snowflake_create_shard(10, 'insta10')});
	my $state = q{concat_ws(' ', current_setting('work_mem') = '7MB', to_regclass('pg_temp.kept'),
		(SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_cursors WHERE is_holdable),
		(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()))};
	psql_as('super', 'CREATE TABLE public.seen (schema text, pid integer, state text); GRANT ALL ON seen TO mallory');
	is(run_as('super', 'run', '--shards', '5,10', '--sql', qq{
		INSERT INTO public.seen SELECT current_schema(), pg_backend_pid(), $state;
		SET work_mem = '7MB'; CREATE TEMP TABLE kept (); PREPARE p AS SELECT 1; DECLARE c CURSOR WITH HOLD FOR SELECT 1;
		SELECT pg_advisory_lock(10)}), 0, 'two shards') or diag($err);
	is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT pid), string_agg(DISTINCT state, $$, $$) FROM seen'),
		'2|1|f 0 0 0', 'the second finds nothing of the first');
	psql_as('super', 'DROP TABLE seen; DROP SCHEMA insta10 CASCADE');
};

# No row is hidden: not by a policy that is forced on the owner, and not by that of another owner's table.
subtest 'policies' => sub {
	psql_as('mallory', 'CREATE TABLE insta5.forced (id bigint);
		ALTER TABLE insta5.forced ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY');
	psql_as('super', 'CREATE TABLE insta5.other (id bigint); ALTER TABLE insta5.other ENABLE ROW LEVEL SECURITY;
		CREATE TABLE insta6.forced (); ALTER TABLE insta6.forced OWNER TO eve; GRANT ALL ON insta5.other TO mallory');
	foreach my $case ([ 'query', 'SELECT count(*) FROM %s' ], [ 'run', 'DELETE FROM %s' ])
	{
		my ($verb, $sql) = @$case;
		foreach my $table (qw(forced other))
		{
			is(run_as('super', $verb, '--shards', '5', '--sql', sprintf $sql, $table), 3, "$verb: table $table");
			like($err, qr/^snowflake-shard: shard 5(?:, schema insta5)?: .*would be affected by row-level security policy for table "$table"/m,
				'is named with its shard');
		}
	}
	is(run_as('super', 'run', '--shards', '5', '--sql', 'SET row_security = on; DELETE FROM forced'), 0, 'run with it by choice');
	is(run_as('super', 'query', '--shards', '5,6', '--format', 'csv', '--sql', 'SELECT count(*) FROM forced') . $out,
		"3shard,schema,count\n6,insta6,0\n", 'the other shards answer');
	psql_as('super', 'DROP TABLE insta5.forced, insta5.other, insta6.forced');
};

subtest 'a reader is told whose rights the SQL has' => sub {
	$node->safe_psql('postgres', q{SET ROLE super; SELECT snowflake_create_shard(9, 'insta9')});
	my $dsn = $node->connstr('postgres') . ' user=super';
	my $line = qr/schema insta9 belongs to superuser super, so code there has all rights\. ALTER SCHEMA insta9 OWNER TO \.\.\.;/;
	my @sql = ('--shards', '9', '--sql', '"SELECT 1"');
	foreach my $verb ([ 'verify', "\"$dsn\"" ], [ 'query', "\"$dsn\"", @sql ], [ 'run', "\"$dsn\"", @sql ])
	{
		my $terminal = `script -qec '$program @$verb' /dev/null </dev/null 2>&1` =~ s/\r//gr;
		like($terminal, qr/$line/, "$verb->[0] on a terminal");
	}
	is(run_as('super', 'query', '--shards', '9', '--sql', 'SELECT 1') . $err, '0', 'a pipe gets the rows alone');
	psql_as('super', 'DROP SCHEMA insta9 CASCADE');
};

subtest 'the shard of a superuser' => sub {
	# With a superuser's rights, unless others could plant code there. One that reads a table of it is not there.
	$node->safe_psql('postgres',
		q{SET ROLE super; SELECT snowflake_create_shard(7, 'insta7'); CREATE TABLE insta7.t (); CREATE TABLE insta7.u ();
			CREATE VIEW public.reads AS SELECT FROM insta7.t; ALTER VIEW public.reads OWNER TO eve});
	is(run_as('super', 'run', '--shards', '7', '--sql',
		'CREATE TEMP TABLE x (); ALTER TABLE t ADD who name DEFAULT current_user'), 0,
			'in a superuser\'s shard a superuser may all');
	foreach my $plant ('GRANT CREATE ON SCHEMA insta7 TO eve', 'GRANT CREATE ON SCHEMA insta7 TO PUBLIC',
		'ALTER TABLE insta7.u OWNER TO eve', 'SET ROLE eve; CREATE VIEW insta7.v AS SELECT 1')
	{
		$node->safe_psql('postgres', ($plant =~ /eve;/ ? 'GRANT CREATE ON SCHEMA insta7 TO eve; ' : '') . $plant);
		$node->safe_psql('postgres', 'REVOKE CREATE ON SCHEMA insta7 FROM eve') if $plant =~ /VIEW/;
		is(run_as('super', 'query', '--shards', '7', '--sql', 'TABLE t'), 3,
			"query in a superuser's shard is refused after $plant");
		my $plants = qr/(?:may create objects in it|owns table insta7.u|owns view insta7.v)/;
		like($err,
			qr/schema insta7 belongs to superuser super, and (?:role eve|every role) $plants: code of that role would run/,
			'and the role is named');
		$node->safe_psql('postgres', 'REVOKE CREATE ON SCHEMA insta7 FROM PUBLIC, eve; ALTER TABLE insta7.u OWNER TO super');
	}
	is(run_as('super', 'run', '--shards', '5,7', '--sql', 'CREATE TABLE other ()')
		. $node->safe_psql('postgres', q{SELECT to_regclass('insta5.other') IS NULL}), '3t',
		'run refuses before it has changed another shard');
	is($node->safe_psql('postgres', $superusers), 'false false', 'nobody has become a superuser in the end');
	# Code of a superuser can lock a catalogue that the session of the command needs.
	$node->safe_psql('postgres', q{DROP VIEW insta7.v; CREATE FUNCTION insta7.lock_all() RETURNS integer LANGUAGE plpgsql AS
		'BEGIN LOCK TABLE pg_proc IN ACCESS EXCLUSIVE MODE; RETURN 1; END'; ALTER FUNCTION insta7.lock_all() OWNER TO super});
	run_as('super', 'query', '--shards', '7', '--timeout', '2s', '--sql', 'SELECT lock_all()');
	like($err, qr/^(?:|.*canceling statement due to (?:statement|lock) timeout.*)$/s, 'a lock on a catalogue ends with --timeout');
	run_as('super', 'run', '--shards', '7', '--lock-timeout', '500ms', '--sql', 'LOCK TABLE pg_namespace IN ACCESS EXCLUSIVE MODE');
	like($err, qr/canceling statement due to lock timeout/, 'one that the command holds with --lock-timeout');
};

subtest 'an owner without USAGE' => sub {
	$node->safe_psql('postgres', q{CREATE SCHEMA insta9 AUTHORIZATION eve; SET ROLE eve; CREATE SEQUENCE insta9.s;
		CREATE TABLE insta9.photos (id bigint DEFAULT public.snowflake_next_id(9, 'insta9.s'));
		REVOKE USAGE ON SCHEMA insta9 FROM eve});
	foreach my $verb ('query', 'run')
	{
		is(run_as('deploy', $verb, '--shards', '9', '--sql', 'SELECT * FROM photos'), 3, "$verb is refused");
		like($err, qr/does not exist.*Role eve has no right USAGE on schema insta9.*GRANT USAGE ON SCHEMA insta9 TO eve;/s,
			'and the missing right is named');
	}
	$node->safe_psql('postgres', 'GRANT USAGE ON SCHEMA insta9 TO eve');
	run_as('deploy', 'query', '--shards', '9', '--sql', 'SELECT * FROM photo');
	unlike($err, qr/USAGE/, 'not with the right');
};

$node->stop;
done_testing();
