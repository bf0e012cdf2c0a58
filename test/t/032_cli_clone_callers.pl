# Roles that may clone, and their templates: an ordinary role clones a template of its own; a template without
# next_id(), or with functions that draw from elsewhere, is one as well; the extension may have a schema of its own; two
# commands may make the same shards. A refused clone leaves nothing behind.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $node = new_server('callers');
my ($status, $rows, $err, $out);

sub clone
{
	my ($template, $shards, $schema, $server) = @_;
	($status, $rows, $err) =
		shard_json($program, 'clone', $server // $node, '--template', $template, '--shards', $shards, '--schema', $schema);
	return "$status " . states($rows);
}

sub is_refused
{
	my ($template, $shards, $schema, $message, $name, $server) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	($status, $out, $err) =
		run_shard($program, 'clone', $server // $node, '--template', $template, '--shards', $shards, '--schema', $schema);
	ok($status == 3 && $err =~ $message, $name) or diag("exit code $status: $out$err");
	return;
}

my $schemas = q{SELECT string_agg(nspname, ' ' ORDER BY nspname COLLATE "C") FROM pg_namespace WHERE nspname !~ '^pg_'};

# --- templates -----------------------------------------------------------------------------------

subtest 'a schema without a function is a template' => sub {
	$node->safe_psql('postgres', q{
		CREATE SCHEMA outside; CREATE SEQUENCE outside.ids;
		CREATE SCHEMA per_table; SET search_path = per_table, public;
		CREATE SEQUENCE users_id_seq;
		CREATE TABLE users (id bigint PRIMARY KEY DEFAULT snowflake_next_id(200, 'users_id_seq'));
		ALTER SEQUENCE users_id_seq OWNED BY users.id;
		CREATE SEQUENCE photos_id_seq;
		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake_next_id(200, 'photos_id_seq', 0), user_id bigint
			REFERENCES users)});
	is(clone('per_table', '201,8191', 'per_table_{}'), '0 made 201,8191',
		'a template without a function, and the last shard number');
	is($node->safe_psql('postgres',
		q{SELECT table_name, shard, seq, epoch_ms FROM snowflake_columns WHERE schema_name = 'per_table_8191' ORDER BY 1}),
		"photos|8191|per_table_8191.photos_id_seq|0\nusers|8191|per_table_8191.users_id_seq|1314220021721",
		'its columns draw from its own sequences, in their epochs');
	is($node->safe_psql('postgres', q{SELECT pg_get_serial_sequence('per_table_201.users', 'id')}),
		'per_table_201.users_id_seq',
		'a sequence is owned by the column of the clone');
};

subtest 'calls in bodies and in expressions are renumbered' => sub {
	$node->safe_psql('postgres', q{
		CREATE SCHEMA atomic;
		CREATE FUNCTION atomic.next_id() RETURNS bigint BEGIN ATOMIC
			SELECT snowflake_next_id(210, 'outside.ids', 1767225600000); END;
		CREATE FUNCTION atomic.owners_id() RETURNS bigint SECURITY DEFINER RETURN snowflake_next_id(210, 'outside.ids');
		CREATE TABLE atomic.t (id bigint DEFAULT atomic.next_id(), more bigint
			DEFAULT snowflake_next_id(210, 'outside.ids') + 0,
			"%s" text DEFAULT 'c' || atomic.owners_id())});
	is(clone('atomic', '211', 'atomic{}'), '0 made 211',
		'a body with BEGIN ATOMIC, a sequence of another schema, a call within an expression');
	is($node->safe_psql('postgres',
		q{INSERT INTO atomic211.t DEFAULT VALUES RETURNING snowflake_shard(id), snowflake_shard(more),
			snowflake_shard(ltrim("%s", 'c')::bigint)}),
		'211|211|211', 'all of them make IDs of the clone\'s shard');
	is($node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_proc WHERE pronamespace = 'atomic211'::regnamespace AND prosecdef}), '1',
		'SECURITY DEFINER is kept');
};

subtest 'a shard or a sequence that is computed is refused' => sub {
	$node->safe_psql('postgres', q{
		CREATE SCHEMA computed; SELECT snowflake_create_shard(220, 'computed');
		CREATE TABLE computed.t (a bigint DEFAULT snowflake_next_id(200 + 20, 'computed.table_id_seq'),
			b bigint DEFAULT snowflake_next_id(220, ('computed.' || 'table_id_seq')::regclass), c bigint
				DEFAULT snowflake_next_id())});
	is_refused('computed', '221', 'computed{}', qr/no constant.*\n    computed\.t\.a\n    computed\.t\.b\nHINT/,
		'a shard or a sequence that is computed is refused, and the columns are named');
	$node->safe_psql('postgres', 'SET client_min_messages = warning; DROP SCHEMA computed CASCADE');
};

subtest 'a clone goes on without its template' => sub {
	$node->safe_psql('postgres', 'SET client_min_messages = warning; DROP SCHEMA atomic, per_table CASCADE');
	is($node->safe_psql('postgres',
		q{INSERT INTO atomic211.t DEFAULT VALUES;
			INSERT INTO per_table_201.users DEFAULT VALUES RETURNING snowflake_shard(id)}),
		'201', 'a clone goes on without its template');
};

# --- roles ---------------------------------------------------------------------------------------

# A shard of an ordinary role.
$node->safe_psql('postgres', q{
	CREATE ROLE owner LOGIN; CREATE ROLE app LOGIN; CREATE ROLE stranger LOGIN; CREATE ROLE other_owner;
	CREATE TABLE outside.countries (code text PRIMARY KEY);
	CREATE SCHEMA owned AUTHORIZATION owner;
	SET ROLE owner;
	SELECT snowflake_create_shard(500, 'owned');
	CREATE TABLE owned.users (id bigint PRIMARY KEY DEFAULT owned.next_id(), name text);
	ALTER TABLE owned.users ENABLE ROW LEVEL SECURITY;
	CREATE POLICY theirs ON owned.users USING (name = current_user);
	GRANT SELECT ON owned.users TO app});
my $as_owner = $node->connstr('postgres') . ' user=owner';
my $as_stranger = $node->connstr('postgres') . ' user=stranger';
my $before = $node->safe_psql('postgres', $schemas);

subtest 'a role without the rights makes nothing' => sub {
	is_refused('owned', '501', 'owned{}', qr/role owner may not create schemas in database postgres\nHINT:  GRANT CREATE ON DATABASE postgres TO owner;/, 'without CREATE in the database: an error',
		$as_owner);
	$node->safe_psql('postgres', q{GRANT CREATE ON DATABASE postgres TO owner, stranger;
		GRANT USAGE ON SCHEMA owned TO stranger; GRANT SELECT ON ALL TABLES IN SCHEMA owned TO stranger;
		GRANT SELECT ON ALL SEQUENCES IN SCHEMA owned TO stranger});
	is_refused('owned', '501', 'owned{}', qr/role stranger may not act as role owner/,
		'who does not own the template cannot clone it', $as_stranger);
	is($node->safe_psql('postgres', $schemas), $before, 'nothing was made');
};

subtest 'an ordinary role clones what it owns' => sub {
	is(clone('owned', '501', 'owned{}', $as_owner), '0 made 501', 'an ordinary role clones what it owns') or diag($err);
	is(dump_of($node, 'owned501', name => 'owned', from => 501, to => 500), dump_of($node, 'owned'),
		'and the clone is as the template');
	$node->safe_psql('postgres', 'CREATE TABLE owned.theirs (); ALTER TABLE owned.theirs OWNER TO other_owner');
	is_refused('owned', '502', 'owned{}', qr/permission denied for table theirs/, 'a table of another owner in the template: an error', $as_owner);
	is_refused('owned', '502', 'owned{}',
		qr/\n +TABLE theirs: must be .*"other_owner"\n +HINT:  Give the object to role "owner", .*: GRANT "other_owner" TO "owner";/,
		'as a superuser, too');
	$node->safe_psql('postgres', q{DROP TABLE owned.theirs;
		CREATE TABLE owned.abroad (country text REFERENCES outside.countries); ALTER TABLE owned.abroad OWNER TO owner});
	is_refused('owned', '502', 'owned{}',
		qr/\n +FK CONSTRAINT abroad \w+: permission denied for schema outside\n.* trusts role "owner", /,
		'so is a foreign key to a table in a schema without USAGE', $as_owner);
	my @grants = $err =~ /HINT: .*?\b(GRANT .*;)$/mg;
	$node->safe_psql('postgres', "@grants");
	is_refused('owned', '502', 'owned{}', qr/\n +FK CONSTRAINT abroad \w+: permission denied for table countries\n/,
		'or without REFERENCES', $as_owner);
	push @grants, $err =~ /HINT: .*?\b(GRANT .*;)$/mg;
	is($node->safe_psql('postgres',
		q{SELECT to_regnamespace('owned502') IS NULL AND NOT EXISTS (SELECT FROM pg_namespace
			WHERE nspname ~ '^snowflake_copy')}), 't',
		'nothing was made');
	$node->safe_psql('postgres', join ' ', @grants);
	is(clone('owned', '502', 'owned{}', $as_owner), '0 made 502', 'with the statements of the hints it is cloned') or diag("@grants $err");
};

subtest 'a template with objects of two owners' => sub {
	$node->safe_psql('postgres', q{
		CREATE SCHEMA shared AUTHORIZATION owner; GRANT other_owner TO owner;
		SET ROLE owner; SELECT snowflake_create_shard(650, 'shared'); GRANT USAGE, CREATE ON SCHEMA shared TO other_owner;
		SET ROLE other_owner; CREATE TABLE shared.theirs (id bigint PRIMARY KEY)});
	is(clone('shared', '651', 'shared{}', $as_owner), '0 made 651', 'the second may create in the schema of a clone, too')
		or diag($err);
	is(dump_of($node, 'shared651', name => 'shared', from => 651, to => 650), dump_of($node, 'shared'),
		'and the clone is as the template');
};

# A member of the owner clones, and the owner has chosen a function of that member.
subtest 'a function of the caller runs with the rights of the owner' => sub {
	$node->safe_psql('postgres', q{
		CREATE ROLE ops LOGIN; GRANT owner TO ops; GRANT CREATE ON DATABASE postgres TO ops;
		CREATE SCHEMA ops AUTHORIZATION ops; GRANT USAGE ON SCHEMA ops TO owner;
		SET ROLE ops; CREATE TABLE ops.ran (role name); GRANT INSERT ON ops.ran TO owner;
		CREATE FUNCTION ops.note() RETURNS integer LANGUAGE plpgsql AS 'BEGIN INSERT INTO ops.ran VALUES (current_user); RETURN 1; END';
		SET ROLE owner; CREATE SCHEMA led; SELECT snowflake_create_shard(660, 'led');
		CREATE DOMAIN led.checked AS integer CHECK (ops.note() = 1);
		CREATE TABLE led.users (id bigint PRIMARY KEY DEFAULT led.next_id(), a led.checked[] DEFAULT '{1}');
		RESET ROLE; TRUNCATE ops.ran});
	is(clone('led', '661', 'led{}', $node->connstr('postgres') . ' user=ops'), '0 made 661', 'the caller is a member of the owner') or diag($err);
	is($node->safe_psql('postgres', 'SELECT DISTINCT role FROM ops.ran'), 'owner', 'a function of the caller runs as the owner');
	$node->safe_psql('postgres', 'SET client_min_messages = error; DROP SCHEMA led, led661 CASCADE; DROP OWNED BY ops; DROP ROLE ops');
};

subtest 'too few connections are an error before a shard is made' => sub {
	# Superusers have no such limit.
	$node->safe_psql('postgres', 'ALTER ROLE owner CONNECTION LIMIT 6');
	($status, $out, $err) = run_shard($program, 'clone', $as_owner, '--template', 'owned', '--shards', '520-539',
		'--schema', 'owned{}', '--jobs', 8);
	ok($status == 3
		&& $err =~ /too many connections for role "owner"\nHINT:  --jobs 8 opens 8 connections\b.*Nothing was made\.$/s,
		'fewer connections than --jobs: an error')
		or diag("$status $out$err");
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_namespace WHERE nspname ~ '^owned5[23]'}), '0',
		'before a shard is made');
	$node->safe_psql('postgres', 'ALTER ROLE owner CONNECTION LIMIT -1');
};

# --- the time of a clone -------------------------------------------------------------------------

# PostgreSQL reads all functions of a name to find one, and a claim reads the calls of all shards.
subtest 'the time of a clone does not grow with the number of shards' => sub {
	$node->safe_psql('postgres', q{
		CREATE DATABASE counted;
		ALTER DATABASE counted SET track_functions = 'all'});
	$node->safe_psql('counted', q{
		CREATE EXTENSION snowflake;
		SELECT snowflake_create_shard(0, 'counted0');
		CREATE AGGREGATE counted0.total(bigint) (SFUNC = int8pl, STYPE = bigint);
		CREATE FUNCTION counted0.place(text) RETURNS text LANGUAGE sql IMMUTABLE RETURN lower($1);
		CREATE FUNCTION counted0.place(bigint, OUT a bigint, OUT b bigint) LANGUAGE sql
			BEGIN ATOMIC SELECT counted0.next_id(), length(place) FROM counted0.place('x'); END;
		CREATE PROCEDURE counted0.clean(INOUT bigint) LANGUAGE sql AS 'SELECT 1';
		CREATE TYPE counted0.span AS RANGE (SUBTYPE = bigint);
		CREATE TABLE counted0.photos (id bigint PRIMARY KEY DEFAULT counted0.next_id(), place text CHECK (counted0.place(place) > ''));
		CREATE TABLE ran (tag text, object text);
		CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS $$
		BEGIN
			INSERT INTO public.ran SELECT command_tag, object_identity FROM pg_event_trigger_ddl_commands()
			WHERE object_type IN ('function', 'procedure', 'aggregate');
		END $$;
		CREATE EVENT TRIGGER note ON ddl_command_end EXECUTE FUNCTION note()});
	is(clone('counted0', '1-20', 'counted{}', $node->connstr('counted')), '0 made ' . join(',', 1 .. 20), 'shards are made') or diag($err);
	is((run_shard($program, 'diff', $node->connstr('counted'), '--template', 'counted0'))[0], 0, 'as the template');
	is($node->safe_psql('counted', q{SELECT tag, object, count(*) FROM ran
		WHERE tag <> 'ALTER ROUTINE' AND object !~ '^snowflake_copy_\d+_1\.snowflake_copy_\d+_1_\d\('
		GROUP BY 1, 2 HAVING count(*) > 10}), '', 'until the end each function of a clone has a name that no other shard has');
	is($node->safe_psql('counted', q{SELECT funcname, calls FROM pg_stat_user_functions WHERE funcname ~ '^claim_' ORDER BY 1}),
		"claim_shard|1\nclaim_shards|1", 'and all numbers are claimed at once: the other call made the template');
};

# --- two commands that make the same shards ------------------------------------------------------

subtest 'two commands that make the same shards make each of them once' => sub {
	my @both = map { my %run = (err => ''); $run{h} = IPC::Run::start(
		[ $program,
			shard_command('clone', $node, '--template', 'owned', '--shards', '1000-1014', '--schema', 'same{}', '--jobs', 2) ],
		'>', \$run{out}, '2>', \$run{err}); \%run } 1, 2;
	$_->{h}->finish foreach @both;
	my @codes = map { $_->{h}->result(0) } @both;
	ok((grep { $_ == 0 || $_ == 3 } @codes) == 2,
		'two commands that make the same shards: each has made them, or says which it has not')
		or diag("exit codes @codes");
	is((clone('owned', '1000-1014', 'same{}'))[0] =~ /^0 /, 1, 'the command can be run again') or diag($err);
	is($node->safe_psql('postgres',
		q{SELECT count(*), count(DISTINCT shard) FROM snowflake_shards WHERE schema_name ~ '^same'}), '15|15',
		'each shard is there once');
	is((run_shard($program, 'diff', $node, '--template', 'owned', '--shards', '1000-1014'))[0], 0, 'and as the template');
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_namespace WHERE nspname ~ '^snowflake_copy'}), '0',
		'no other schema is left');
};

# --- refusals ------------------------------------------------------------------------------------

$node->safe_psql('postgres', q{
	CREATE SCHEMA empty700;
	CREATE SCHEMA legacy; CREATE FUNCTION legacy.next_id() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
	CREATE SCHEMA by_setting; CREATE TABLE by_setting.t (id bigint DEFAULT snowflake_next_id());
	CREATE SCHEMA two;
	CREATE TABLE two.t (a bigint DEFAULT snowflake_next_id(601, 'outside.ids'), b bigint
		DEFAULT snowflake_next_id(602, 'outside.ids'));
	SELECT snowflake_create_shard(600, 'taken')});
$before = $node->safe_psql('postgres', $schemas);

subtest 'templates, numbers and names that are refused' => sub {
	is_refused('missing', '700', 'refused{}', qr/schema missing is no shard/, 'a template that does not exist');
	is_refused('pg_catalog', '700', 'refused{}', qr/schema pg_catalog is no shard/, 'a schema of the system');
	is_refused('legacy', '700', 'refused{}', qr/schema legacy is no shard/, 'a schema with the PL/pgSQL function');
	is_refused('by_setting', '700', 'refused{}', qr/schema by_setting is no shard/, 'a schema whose shard is a setting');
	is_refused('two', '700', 'refused{}', qr/several shards: 601, 602/, 'a schema that makes IDs of two shards');
	is_refused('owned', '600', 'refused{}', qr/shard 600 is in use by schema taken/, 'a shard number that is in use');
	is_refused('owned', '500', 'refused{}', qr/shard 500 is in use by schema owned/, 'the number of the template');
	is_refused('owned', '700', 'pg_{}', qr/unacceptable schema name/, 'a name that PostgreSQL keeps for itself');
	is_refused('owned', '700', 'empty{}', qr/there already, and not as the template.*empty700/s,
		'a schema that exists and is empty');
	is((run_shard($program, 'clone', $node, '--template', 'owned', '--shards', '700', '--schema', 'x' x 61 . '{}'))[0], 2,
		'a name of 64 bytes is wrong usage');
	is($node->safe_psql('postgres', $schemas), $before, 'nothing was made');
};

# --- the extension in another schema -------------------------------------------------------------

$node->safe_psql('postgres', 'CREATE DATABASE elsewhere TEMPLATE template0');
$node->safe_psql('elsewhere', q{
	CREATE SCHEMA "In %s here";
	CREATE EXTENSION snowflake SCHEMA "In %s here";
	SELECT "In %s here".snowflake_create_shard(1, 'one');
	CREATE TABLE one.t (id bigint PRIMARY KEY DEFAULT one.next_id(), d bigint
		DEFAULT "In %s here".snowflake_next_id(1, 'one.table_id_seq'))});
my $elsewhere = $node->connstr('elsewhere');

subtest 'the extension has a schema of its own' => sub {
	is(clone('one', '2', 'two%s{}', $elsewhere), '0 made 2', 'where the extension has a schema of its own') or diag($err);
	is($node->safe_psql('elsewhere',
		q{INSERT INTO "two%s2".t DEFAULT VALUES RETURNING "In %s here".snowflake_shard(id), "In %s here".snowflake_shard(d)}),
		'2|2', 'the clone makes IDs of its shard');
	$node->safe_psql('elsewhere',
		q{SET search_path = "In %s here"; CREATE SEQUENCE s; CREATE TABLE t (id bigint DEFAULT snowflake_next_id(5, 's'))});
	is_refused('In %s here', '6', 'six{}', qr/extension snowflake is installed in schema "In %s here", and .*\n.*cannot be moved/s,
		'the schema of the extension is no template', $elsewhere);
};

$node->stop;
done_testing();
