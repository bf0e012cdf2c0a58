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

# Tries each way to more rights that a session has, and tells when one has led to any.
my $climb = q{
	CREATE FUNCTION climb(place text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $climb$
	DECLARE
		way text;
	BEGIN
		RAISE LOG 'PLANTED % as %', place, current_user;
		IF session_user = current_user THEN RETURN 1; END IF;    -- the owner makes its objects
		FOREACH way IN ARRAY ARRAY['RESET ROLE', 'SET ROLE NONE', 'SET ROLE super', 'RESET SESSION AUTHORIZATION',
			'SET SESSION AUTHORIZATION super',
			$$SELECT set_config('role', 'none', false)$$, $$SELECT set_config('session_authorization', 'super', false)$$,
			$$COPY public.secret TO PROGRAM 'cat >/dev/null'$$, 'TABLE public.secret', 'ALTER ROLE mallory SUPERUSER',
				'ALTER ROLE eve SUPERUSER',
			'CREATE TEMP TABLE users (id bigint)', 'DECLARE c CURSOR WITH HOLD FOR TABLE public.secret',
				'PREPARE p AS TABLE public.secret',
			'LISTEN planted', 'DISCARD ALL', 'CREATE EVENT TRIGGER planted ON ddl_command_start EXECUTE FUNCTION none()',
			$$SELECT pg_advisory_lock(1)$$, $$DECLARE snowflake_shard CURSOR FOR SELECT 1$$]
		LOOP
			BEGIN
				EXECUTE way;
				IF way !~ 'advisory|snowflake_shard' THEN RAISE LOG 'PLANTED % works as %', way, current_user; END IF;
			EXCEPTION WHEN OTHERS THEN
			END;
			IF current_user NOT IN ('mallory', 'eve') THEN RAISE LOG 'PLANTED % has led as %', way, current_user; END IF;
		END LOOP;
		RETURN 1;
	END $climb$};

# A shard whose owner has planted code in every place; its names catch those of ordinary SQL.
sub plant
{
	my ($role, $number, $schema) = @_;
	psql_as($role, qq{
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
		CREATE VIEW photos AS SELECT climb('view') AS id, defined() AS d, u.p::text FROM users AS u});
	return;
}
plant('mallory', 5, 'insta5');
plant('eve', 6, 'insta6');
planted_code_run($node);

my $nobody = 'f f';
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
	is(join(', ', grep { !/ as (?:mallory|eve)$/ || / works | has led / } split /, /, $run), '',
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

subtest 'outside of a transaction run takes only statements that run as the owner' => sub {
	# Outside of a transaction: statements that PostgreSQL runs as the owner of the table, and no others.
	foreach my $sql ('CREATE INDEX CONCURRENTLY climbed ON users (climb(name::text), x) WHERE climb(\'a\'::text) = 1',
		'REINDEX INDEX CONCURRENTLY climbed',
		'VACUUM ANALYZE users', 'DROP INDEX CONCURRENTLY climbed')
	{
		my @arguments = ('run', '--shards', '5-6', '--no-transaction', '--sql', $sql);
		if ($sql =~ /^DROP/) { is(run_as('super', @arguments) . planted_code_run($node), '0',
			"run as super: $sql, which runs nothing"); }
		else { is_contained('super', 0, @arguments); }
	}
	foreach my $sql ('SELECT climb(\'alone\')', q{CREATE INDEX CONCURRENTLY ON users (x) WHERE many = '{a}'}, 'CALL p()')
	{
		is(run_as('super', 'run', '--shards', '5-6', '--no-transaction', '--sql', $sql) . planted_code_run($node), '3',
			"run refuses by itself: $sql");
		my $code = qr/whose code could run with the rights of role super in this statement/;
		like($err,
			qr/schema insta5 belongs to role mallory, $code\nHINT:  Connect as role mallory\./,
			'and names the owner');
	}
	is(run_as('mallory', 'run', '--shards', '5', '--no-transaction', '--sql',
		q{CREATE INDEX CONCURRENTLY ON users (x) WHERE name <> 'x'}), 0, 'the owner may');
	like(planted_code_run($node), qr/as mallory/, 'with its own code');
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
		like($err,
			qr/permission denied for table secret.*\n +The SQL works with the rights of role mallory, which owns the schema\./s,
			'and whose rights they are');
	}
};

subtest 'a role that may not act as the owners works with its own rights, as in psql' => sub {
	psql_as('mallory',
		'GRANT USAGE ON SCHEMA insta5 TO reader; CREATE VIEW insta5.mine AS SELECT current_user AS reads; '
		. 'GRANT SELECT ON insta5.mine TO reader');
	is(run_as('reader', 'query', '--shards', '5', '--format', 'csv', '--sql', 'TABLE mine') . $out,
		"0shard,schema,reads\n5,insta5,reader\n", 'a reader reads as itself');
	is(run_as('super', 'query', '--shards', '5', '--format', 'csv', '--sql', 'TABLE mine') . $out,
		"0shard,schema,reads\n5,insta5,mallory\n", 'a superuser as the owner');
};

# Shard 8 has all rows for its owner; shard 5 has a table under FORCE ROW LEVEL SECURITY, and one of another owner.
subtest 'rows that a policy hides are an error' => sub {
	psql_as('eve', q{SELECT snowflake_create_shard(8, 'insta8'); CREATE TABLE insta8.people (n integer);
		CREATE TABLE insta8.notes (n integer); INSERT INTO insta8.people VALUES (1), (2), (3)});
	psql_as('mallory', q{SET search_path = insta5; CREATE TABLE people (n integer); INSERT INTO people VALUES (1), (2);
		ALTER TABLE people ENABLE ROW LEVEL SECURITY; CREATE POLICY odd ON people USING (n % 2 = 1); CREATE TABLE notes (n integer);
		ALTER TABLE notes ENABLE ROW LEVEL SECURITY; CREATE VIEW seen AS TABLE notes});
	$node->safe_psql('postgres', q{ALTER TABLE insta5.notes OWNER TO eve; GRANT SELECT ON insta5.notes TO mallory;
		GRANT pg_read_all_data TO reader});
	my @count = ('query', '--shards', '5,8', '--format', 'csv', '--sql', 'SELECT count(*) FROM people');
	my $hidden = qr/^snowflake-shard: shard 5: ERROR:  query would be affected by row-level security policy for table "people"/m;
	is(run_as('reader', @count) . $out, "3shard,schema,count\n8,insta8,3\n", 'for a reader: the other shards answer');
	like($err, qr/$hidden\nSERVER:.*\nHINT:  Run it as role mallory, the owner, or as a role with BYPASSRLS, to read all rows of insta5\.people\.$/m,
		'table and shard are named, with who reads all');
	is(run_as('deploy', @count), 0, 'the owner reads all of his rows');
	psql_as('mallory', 'ALTER TABLE insta5.people FORCE ROW LEVEL SECURITY');
	is(run_as('super', @count) . $out, "0shard,schema,count\n5,insta5,2\n8,insta8,3\n", 'and a superuser under FORCE, too');
	is(run_as('deploy', @count) . $out, "3shard,schema,count\n8,insta8,3\n", 'but not a member of the owner');
	like($err, qr/$hidden\nHINT:  .*\n    The SQL works with the rights of role mallory/m, 'who is told') or diag($err);
	is(run_as('deploy', 'run', '--shards', '5', '--sql', 'UPDATE people SET n = n + 2'), 3, 'nor does run change some of the rows');
	is(run_as('deploy', 'run', '--shards', '5', '--sql', 'SET LOCAL row_security = on; UPDATE people SET n = n + 2'), 0,
		'unless its SQL says so');
	is($node->safe_psql('postgres', 'SELECT string_agg(n::text, \' \' ORDER BY n) FROM insta5.people'), '2 3', 'as psql does');
	foreach my $relation ('notes', 'seen')
	{
		is(run_as('super', 'query', '--shards', '5', '--sql', "TABLE $relation"), 3, "$relation: a table of another owner");
		like($err, qr/for table "notes".*HINT:  Run it as a role with BYPASSRLS that may not act as role mallory, to read all/s,
			'with who reads it');
	}
	$node->safe_psql('postgres', 'ALTER ROLE reader BYPASSRLS');
	is(run_as('reader', @count) . $out, "0shard,schema,count\n5,insta5,2\n8,insta8,3\n", 'as a role with BYPASSRLS does');
	$node->safe_psql('postgres', 'REVOKE pg_read_all_data FROM reader; ALTER ROLE reader NOBYPASSRLS');
};

subtest 'the shard of a superuser' => sub {
	# A superuser's own shard: as the caller, unless others could plant code there.
	$node->safe_psql('postgres',
		q{SET ROLE super; SELECT snowflake_create_shard(7, 'insta7'); CREATE TABLE insta7.t (); CREATE TABLE insta7.u ();
			ALTER TABLE insta7.u OWNER TO eve});
	is(run_as('super', 'run', '--shards', '7', '--sql',
		'CREATE TEMP TABLE x (); ALTER TABLE t ADD who name DEFAULT current_user'), 0,
			'in a superuser\'s shard a superuser may all');
	foreach my $plant ('GRANT CREATE ON SCHEMA insta7 TO eve', 'GRANT CREATE ON SCHEMA insta7 TO PUBLIC',
		'SET ROLE eve; CREATE VIEW insta7.v AS SELECT 1')
	{
		$node->safe_psql('postgres', ($plant =~ /eve;/ ? 'GRANT CREATE ON SCHEMA insta7 TO eve; ' : '') . $plant);
		$node->safe_psql('postgres', 'REVOKE CREATE ON SCHEMA insta7 FROM eve') if $plant =~ /VIEW/;
		is(run_as('super', 'query', '--shards', '7', '--sql', 'TABLE t'), 3,
			"query in a superuser's shard is refused after $plant");
		my $plants = qr/(?:may create objects in it|owns view insta7.v)/;
		like($err,
			qr/schema insta7 belongs to superuser super, and (?:role eve|every role) $plants: code of that role would run/,
			'and the role is named');
		$node->safe_psql('postgres', 'REVOKE CREATE ON SCHEMA insta7 FROM PUBLIC, eve');
	}
	is(run_as('super', 'run', '--shards', '5,7', '--sql', 'CREATE TABLE other ()')
		. $node->safe_psql('postgres', q{SELECT to_regclass('insta5.other') IS NULL}), '3t',
		'run refuses before it has changed another shard');
	is($node->safe_psql('postgres', $superusers), 'false false', 'nobody has become a superuser in the end');
};

subtest 'a role without USAGE' => sub {
	$node->safe_psql('postgres', q{CREATE SCHEMA insta9 AUTHORIZATION eve; SET ROLE eve; CREATE SEQUENCE insta9.s;
		CREATE TABLE insta9.photos (id bigint DEFAULT public.snowflake_next_id(9, 'insta9.s'))});
	foreach my $verb ('query', 'run')
	{
		is(run_as('reader', $verb, '--shards', '9', '--sql', 'SELECT * FROM photos'), 3, "$verb is refused");
		like($err, qr/does not exist.*Role reader has no right USAGE on schema insta9.*GRANT USAGE ON SCHEMA insta9 TO reader;/s,
			'and the missing right is named');
	}
	run_as('deploy', 'query', '--shards', '9', '--sql', 'SELECT * FROM photo');
	unlike($err, qr/USAGE/, 'not for a member of the owner');
};

$node->stop;
done_testing();
