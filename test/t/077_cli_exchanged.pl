# The command looks at an object and then acts on it, and the owner of the object, mallory, exchanges it in between:
# behind a proxy that stops the command before the act, or while the act waits for a lock. Code of mallory runs as
# mallory alone, and no function of mallory's gets another owner.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../gaps";

use Command;
use IPC::Run;
use PlantedTest;
use PostgreSQL::Test::Utils;
use Proxy;
use ShardTest;
use SnowflakeTest;
use SplitTest;
use Test::More;

my $program = shard_program();
my %options = (conf => "max_wal_senders = 10\n", init => { allows_streaming => 'logical' });
my %nodes = map { $_ => new_server($_, %options) } qw(one two);
my @nodes = @nodes{qw(one two)};
my $is_before_16 = $nodes{one}->safe_psql('postgres', 'SHOW server_version_num') < 160000;

my $dir = PostgreSQL::Test::Utils::tempdir_short();
mkdir "$dir/$_" foreach keys %nodes;
my $proxy = Proxy->new(map { $_ => { listen => "$dir/$_/.s.PGSQL.5432",
			upstream => $nodes{$_}->host . '/.s.PGSQL.' . $nodes{$_}->port } } keys %nodes);
my ($one, $two) = my @both = map { "host=$dir/$_ port=5432 dbname=postgres" } qw(one two);

# --- helpers -------------------------------------------------------------------------------------

sub as_role
{
	my ($role, $node, $sql, $database) = @_;
	my ($code, $out, $err) = $node->psql($database // 'postgres', "SET client_min_messages = error; $sql",
		extra_params => [ '-U', $role ]);
	return $code == 0 ? $out : die "$sql: $err";
}

sub as_mallory { return as_role('mallory', @_) }
sub as_eve { return as_role('eve', @_) }

# False if it is refused, or the command holds a lock of the object.
sub try_as_mallory
{
	my ($node, $sql, $database) = @_;
	return eval { as_mallory($node, "SET lock_timeout = '100ms'; $sql", $database); 1 };
}

# Whether ALTER SCHEMA ... RENAME waits for a session that holds a lock of the schema. It does in 15.20, and not in 18.6.
sub rename_waits
{
	my ($node) = @_;
	my $session = $node->background_psql('postgres');
	$session->query_safe('CREATE SCHEMA waits; BEGIN; CREATE TYPE waits.held AS ENUM ()');
	my ($code) = $node->psql('postgres', q{SET lock_timeout = '100ms'; ALTER SCHEMA waits RENAME TO waits_no_more});
	$session->query_safe('COMMIT');
	$session->quit;
	$node->safe_psql('postgres', 'DROP SCHEMA IF EXISTS waits, waits_no_more CASCADE');
	return $code != 0;
}

# Runs the command. act->(server, run) is called in the first gap with the pattern in its name, and returns true if it
# has killed the command. next->(server) is called in the next gap of that server, or at the end.
sub run_behind
{
	my ($words, $where, $act, $next) = @_;
	my ($acted, $is_done);
	my $run = Command::run($proxy, [ $program, @$words ], sub {
		my ($server, $gap, $round, $run) = @_;
		if (!defined $acted && $gap =~ $where)
		{
			$acted = $server;
			return $act->($server, $run);
		}
		if (defined $acted && $server eq $acted && $next && !$is_done++) { $next->($server) }
		return 0; });
	$next->($acted) if defined $acted && $next && !$is_done;
	$run->{acted} = defined $acted;
	return $run;
}

# The names of the gaps of a command, from the first one with the pattern on.
sub gaps_of
{
	my ($words, $from) = @_;
	my (@gaps, %is_known);
	my $run = Command::run($proxy, [ $program, @$words ], sub {
		push @gaps, $_[1] if (@gaps || $_[1] =~ $from) && !$is_known{ $_[1] }++;
		return 0; });
	is($run->{status}, 0, "@$words[0, 1] without an exchange") or diag($run->{err});
	return @gaps;
}

# No planted code has run as another role than its owner.
sub is_contained
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @foreign = grep { !/ of (\w+) as \1$/ } map { split /, /, planted_code_run($_) } @nodes;
	return is(join(', ', @foreign), '', "$name: code runs as its owner alone");
}

# In each gap of the command, beginning with that of the pattern: act, and next in the gap after it. If the command
# has a lock then, next is done when it has ended.
sub try_in_gaps
{
	my ($name, $words, $from, $act, $next) = @_;
	my @gaps = gaps_of($words, $from);
	cmp_ok(scalar @gaps, q{>}, 1, "$name has gaps");
	foreach my $gap (@gaps)
	{
		my $run = run_behind($words, qr/^\Q$gap\E$/, sub { $act->(@_); 0 }, $next);
		$next->($gap =~ /^(\w+)/);
		is_contained("$name, $gap") or diag($run->{err});
	}
	return;
}

# --- what there is -------------------------------------------------------------------------------

my $note = q{
	CREATE FUNCTION ROLE.note(place text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
		$$BEGIN RAISE LOG 'PLANTED % of ROLE as %', place, current_user; RETURN 1; END$$;
	CREATE FUNCTION ROLE.fired() RETURNS trigger LANGUAGE plpgsql AS
		$$BEGIN PERFORM ROLE.note('trigger'); RETURN NEW; END$$;};
foreach my $node (@nodes)
{
	foreach my $role (qw(mallory eve))
	{
		$node->safe_psql('postgres',
			"CREATE ROLE $role LOGIN; CREATE SCHEMA $role AUTHORIZATION $role; GRANT CREATE ON DATABASE postgres TO $role");
		as_role($role, $node, $note =~ s/ROLE/$role/gr);
	}
	as_eve($node, q{
		CREATE TABLE eve.countries (id integer PRIMARY KEY); INSERT INTO eve.countries VALUES (1);
		CREATE INDEX by_note ON eve.countries (id, (eve.note('index')));
		GRANT USAGE ON SCHEMA eve TO mallory; GRANT ALL ON eve.countries TO mallory});
	as_mallory($node, 'CREATE SCHEMA shop');
	$node->safe_psql('postgres', 'GRANT CREATE ON SCHEMA public TO mallory');
}
$nodes{one}->safe_psql('postgres', q{CREATE TABLE shop.filters (id integer PRIMARY KEY, name text);
	INSERT INTO shop.filters VALUES (1, 'a'); SELECT snowflake_create_shard(6, 'insta6');
	CREATE TABLE insta6.users (id bigint PRIMARY KEY DEFAULT insta6.next_id(), name text)});
as_mallory($nodes{one}, q{
	SELECT snowflake_create_shard(5, 'insta5');
	CREATE TABLE insta5.users (id bigint PRIMARY KEY DEFAULT insta5.next_id(), name text, country integer);
	CREATE INDEX ON insta5.users (id, (mallory.note('index')));
	CREATE TRIGGER fired BEFORE INSERT ON insta5.users FOR EACH ROW EXECUTE FUNCTION mallory.fired();
	INSERT INTO insta5.users (name, country) VALUES ('a', 1);
	ALTER TABLE insta5.users ADD FOREIGN KEY (country) REFERENCES eve.countries});

# It draws, so a move closes it.
my $other_id = q{CREATE FUNCTION insta5.other_id() RETURNS bigint LANGUAGE sql SECURITY DEFINER
	BEGIN ATOMIC SELECT mallory.note('function'); SELECT snowflake_next_id(5, 'insta5.table_id_seq'); END};
as_mallory($nodes{one}, $other_id);
planted_code_run(@nodes);

my $away = sub { try_as_mallory($nodes{ $_[0] }, 'ALTER SCHEMA insta5 RENAME TO away') };
my $back = sub { try_as_mallory($nodes{ $_[0] }, 'ALTER SCHEMA away RENAME TO insta5') };

# --- query, run and list -------------------------------------------------------------------------

subtest 'a schema is renamed away when the shards have been read' => sub {
	my $calls = qr{quote_ident\(schema_name\)};
	my @query = ('query', $one, '--shards', '5', '--sql');
	try_in_gaps('query', [ @query, q{SELECT mallory.note('query')} ], $calls, $away, $back);
	my @run = ('run', $one, '--shards', '5', '--sql', q{INSERT INTO users (name) VALUES ('b')});
	try_in_gaps('run', \@run, $calls, $away, $back);
};

# Mallory gives the name to a schema in which eve has a table of that name: its index would run mallory's code as eve.
subtest 'the schema is exchanged before a statement that runs by itself' => sub {
	my $node = $nodes{one};
	my $climb = q{CREATE FUNCTION SCHEMA.climb(text) RETURNS integer IMMUTABLE LANGUAGE sql AS $$SELECT mallory.note('index')$$;};
	as_mallory($node, 'CREATE SCHEMA shared; GRANT USAGE, CREATE ON SCHEMA shared TO eve;'
		  . join('', map { $climb =~ s/SCHEMA/$_/r } qw(shared insta5)));
	as_eve($node, q{CREATE TABLE shared.users (id bigint, name text); INSERT INTO shared.users VALUES (1, 'a')});
	my $is_exchanged;
	my @run = ('run', $one, '--shards', '5', '--no-transaction', '--sql');
	my $run = run_behind([ @run, 'CREATE INDEX CONCURRENTLY climbed ON users (id, (climb(name)))' ],
		qr/^one: CALL snowflake_internal\.session_alone\(/, sub {
			$is_exchanged = try_as_mallory($node, 'ALTER SCHEMA insta5 RENAME TO away; ALTER SCHEMA shared RENAME TO insta5');
			return 0; });
	ok($run->{acted} && $is_exchanged, 'the schema is exchanged');
	is($run->{status}, 3, 'run fails') or diag($run->{out});
	like($run->{err}, qr/must be owner of table users/, 'as mallory would');
	is_contained('run --no-transaction');
	as_mallory($node, 'ALTER SCHEMA insta5 RENAME TO shared; ALTER SCHEMA away RENAME TO insta5');
	$run = run_behind([ @run, 'ANALYZE users' ], qr/^one: SELECT snowflake_internal\.session_begin\(/, sub { $away->('one'); 0 });
	$back->('one');
	is($run->{status}, 0, 'renamed before that: the schema is the one that was looked at') or diag($run->{err});
	is_contained('run --no-transaction after a renaming');
	as_mallory($node, 'DROP SCHEMA shared CASCADE; DROP FUNCTION insta5.climb(text) CASCADE');
};

subtest 'the schema of the extension is exchanged' => sub {
	my $node = $nodes{one};
	$node->safe_psql('postgres', 'CREATE DATABASE owned OWNER mallory');
	as_role('mallory', $node, q{
		CREATE SCHEMA mallory; CREATE SCHEMA ext; CREATE EXTENSION snowflake SCHEMA ext;
		SELECT ext.snowflake_create_shard(9, 'insta9');
		CREATE TABLE insta9.users (id bigint DEFAULT insta9.next_id(), name text);
		INSERT INTO insta9.users (name) VALUES ('a');} . $note =~ s/ROLE/mallory/gr, 'owned');
	planted_code_run(@nodes);
	my $exchange = sub { try_as_mallory($node, q{
		ALTER SCHEMA ext RENAME TO away; CREATE SCHEMA ext;
		CREATE FUNCTION ext.snowflake_check(OUT severity text, OUT object text, OUT problem text, OUT hint text)
			RETURNS SETOF record LANGUAGE sql AS $$SELECT mallory.note('check')::text, ''::text, ''::text, ''::text$$;
		CREATE FUNCTION ext.snowflake_settled_id(integer, oid, bigint) RETURNS bigint
			LANGUAGE sql AS $$SELECT mallory.note('settled')::bigint$$;
		CREATE VIEW ext.snowflake_shards AS SELECT *, mallory.note('shards') FROM away.snowflake_shards;
		CREATE VIEW ext.snowflake_sequences AS SELECT *, mallory.note('sequences') FROM away.snowflake_sequences},
		'owned') };
	my $restore = sub { try_as_mallory($node, q{
		ALTER SCHEMA away RENAME TO back; DROP SCHEMA ext CASCADE; ALTER SCHEMA back RENAME TO ext}, 'owned') };
	my $owned = "host=$dir/one port=5432 dbname=owned";
	my $since = [ 'query', $owned, '--since', "$dir/since", '--sql', 'SELECT id FROM users WHERE id > $1 AND id <= $2' ];
	foreach my $words ([ 'list', $owned ], [ 'verify', $owned ], $since)
	{
		my @gaps = gaps_of($words, qr/^one/);
		my $exchanged = 0;
		foreach my $gap (@gaps)
		{
			my $run = run_behind($words, qr/^\Q$gap\E$/, sub { $exchanged += $exchange->() || 0; 0 });
			$restore->();
			is_contained("$words->[0], $gap") or diag($run->{err});
		}
		is($exchanged, scalar @gaps, "$words->[0]: the schema was exchanged in each gap");
	}
};

# Mallory owns the database and the schema of the extension, so it may drop the extension, and make a schema of the name
# snowflake_internal: the functions that it has there have the names and arguments of those that the command calls.
my $plant = q{
	BEGIN;
	CREATE TEMPORARY TABLE planted AS
		SELECT format('CREATE %s snowflake_internal.%I(%s) %s LANGUAGE plpgsql AS %L',
			CASE prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END, proname, pg_get_function_arguments(oid),
			'RETURNS ' || pg_get_function_result(oid), format('BEGIN PERFORM mallory.note(%L); RETURN%s; END', proname,
				CASE WHEN NOT proretset AND prokind = 'f' AND prorettype NOT IN ('void'::regtype, 'record'::regtype)
					AND proargmodes IS NULL THEN ' NULL' END)) AS sql
		FROM pg_proc WHERE pronamespace = 'snowflake_internal'::regnamespace;
	DROP;
	CREATE SCHEMA snowflake_internal; GRANT USAGE ON SCHEMA snowflake_internal TO PUBLIC;
	DO 'DECLARE s text; BEGIN FOR s IN SELECT sql FROM planted LOOP
		BEGIN EXECUTE s; EXCEPTION WHEN OTHERS THEN END; END LOOP; END';
	COMMIT};
my @drops = ('DROP EXTENSION snowflake CASCADE', 'DROP SCHEMA ext CASCADE');

subtest 'the extension is exchanged' => sub {
	my $node = $nodes{one};
	my $shard = q{SELECT ext.snowflake_create_shard(9, 'insta9');
		CREATE TABLE insta9.users (id bigint PRIMARY KEY DEFAULT insta9.next_id(), name text);
		INSERT INTO insta9.users (name) VALUES ('a')};
	my @owned = map { "host=$dir/$_ port=5432 dbname=owned" } qw(one two);
	$nodes{two}->safe_psql('postgres', 'CREATE DATABASE owned OWNER mallory');
	as_role('mallory', $nodes{two}, 'CREATE SCHEMA mallory; CREATE SCHEMA ext; CREATE EXTENSION snowflake SCHEMA ext;'
		  . $note =~ s/ROLE/mallory/gr, 'owned');
	as_role('mallory', $node, "DROP SCHEMA insta9 CASCADE; DROP EXTENSION snowflake;
		CREATE EXTENSION snowflake SCHEMA ext; $shard", 'owned');
	planted_code_run(@nodes);
	my (%count, %is_tried);
	my $tried = 0;
	my $restore = sub { as_role('mallory', $nodes{ $_[0] }, 'DROP SCHEMA IF EXISTS snowflake_internal, insta9 CASCADE;
		CREATE SCHEMA IF NOT EXISTS ext; CREATE EXTENSION snowflake SCHEMA ext;' . ($_[0] eq 'one' ? $shard : ''), 'owned') };
	my @shard = ($owned[0], '--shards', '9', '--sql');
	foreach my $words ([ 'list', $owned[0] ], [ 'query', @shard, 'SELECT id FROM users' ],
		[ 'query', $owned[0], '--since', "$dir/since9", '--sql', 'SELECT id FROM users WHERE id > $1 AND id <= $2' ],
		[ 'run', @shard, q{INSERT INTO users (name) VALUES ('b')} ], [ 'run', @shard, 'ANALYZE users', '--no-transaction' ],
		[ 'verify', @owned ], [ 'move', 'insta9', '--from', $owned[0], '--to', $owned[1], '--dry-run' ])
	{
		my @gaps = grep { m{^\w+: (?:.*snowflake_|call by OID|WITH trusted)} && !$is_tried{ s/ \(\d+\)$//r }++ }
		  gaps_of($words, qr/^one/);
		foreach my $gap (@gaps)
		{
			my $drop = $drops[ $tried++ % 2 ];
			my $done;
			my $run = run_behind($words, qr/^\Q$gap\E$/, sub {
				$done = try_as_mallory($nodes{ $_[0] }, $plant =~ s/DROP;/$drop;/r, 'owned');
				return 0; });
			is_contained("$words->[0], $gap") or diag($run->{err});
			is($run->{status}, 0, "$words->[0], $gap: without an exchange, the command goes on") or diag($run->{err}) if !$done;
			$restore->($gap =~ /^(\w+)/) if $done;
			$count{ $done ? 'done' : 'refused' }++;
		}
	}
	is($_->safe_psql('owned', q{SELECT count(*) FROM pg_locks WHERE classid = 'pg_extension'::regclass}), '0',
		'no lock is left') foreach @nodes;
	cmp_ok($count{done}, '>', 1, "the extension is exchanged before the first call ($count{done})");
	cmp_ok($count{refused}, '>', 10, "and behind it that is refused ($count{refused})");
	my $calls = 'snowflake_internal.calls()';
	foreach my $planted ([ 'GRANT CREATE ON SCHEMA snowflake_internal TO eve', qr/role eve may create functions in schema/,
			'REVOKE CREATE ON SCHEMA snowflake_internal FROM eve' ],
		[ "ALTER FUNCTION $calls OWNER TO mallory", qr/function snowflake_internal\.calls\(\) belongs to role mallory/,
			"ALTER FUNCTION $calls OWNER TO CURRENT_USER" ],
		[ 'CREATE FUNCTION snowflake_internal.calls(text) RETURNS text RETURN $1',
			qr/function snowflake_internal\.calls\(text\) is not of the extension/, 'DROP FUNCTION snowflake_internal.calls(text)' ])
	{
		$node->safe_psql('owned', $planted->[0]);
		my ($status, $out, $err) = run_shard($program, 'list', $node->connstr('owned'));
		is($status, 3, "list is refused after $planted->[0]") or diag($out);
		like($err, $planted->[1], 'the error has the object and the role');
		$node->safe_psql('owned', $planted->[2]);
	}
	# An error of a shard ends the transaction, and with it the lock: it is taken again before the next shard.
	as_role('mallory', $node, q{SELECT ext.snowflake_create_shard(10, 'insta10'); CREATE TABLE insta10.users ()},
		'owned');
	my @two = ('query', $owned[0], '--shards', '9-10', '--jobs', '1', '--sql', 'SELECT 1 / (count(*) - COUNT) FROM users');
	my $count = as_role('mallory', $node, 'SELECT count(*) FROM insta9.users', 'owned');
	$_ =~ s/COUNT/$count/ foreach @two;
	my @run = ('run', $owned[0], '--shards', '9-10', '--jobs', '1', '--sql', 'SELECT 1');
	is(scalar(grep { /call by OID/ } gaps_of(\@run, qr/^one/)), 1, 'run takes the lock once for all shards');
	foreach my $gap ('SELECT snowflake_internal\.session_begin.* \(2\)', 'call by OID \(2\)')
	{
		my $is_done;
		my $run = run_behind(\@two, qr/^one: $gap$/, sub {
			$is_done = try_as_mallory($node, $plant =~ s/DROP;/$drops[0];/r, 'owned');
			return 0; });
		ok($run->{acted}, "after an error: $gap") or diag($run->{err});
		is($is_done // 0, $gap =~ /OID/ ? 1 : 0, $is_done ? 'the extension is exchanged' : 'the extension is kept');
		like($run->{err}, $is_done ? qr/extension snowflake|function with OID/ : qr/division by zero/, 'the error');
		is_contained($gap);
	}
};

# Replay takes no lock of an extension, but those of its views.
subtest 'the extension is exchanged on the primary of a standby' => sub {
	my $node = $nodes{one};
	my $restore = q{DROP EXTENSION IF EXISTS snowflake CASCADE;
		DROP SCHEMA IF EXISTS snowflake_internal, insta9, insta10 CASCADE; CREATE SCHEMA IF NOT EXISTS ext;
		CREATE EXTENSION snowflake SCHEMA ext;
		SELECT ext.snowflake_create_shard(9, 'insta9'), ext.snowflake_create_shard(10, 'insta10')};
	as_role('mallory', $node, $restore, 'owned');
	my $standby = new_standby($node, 'standby');
	$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = 200ms\nhot_standby_feedback = on\n");
	$standby->reload;
	mkdir "$dir/standby";
	my $behind = Proxy->new(standby => { listen => "$dir/standby/.s.PGSQL.5432",
		upstream => $standby->host . '/.s.PGSQL.' . $standby->port });
	my @words = ('query', "host=$dir/standby port=5432 dbname=owned", '--shards', '9', '--sql', 'SELECT 1');
	# The first one only asks for a worker, before any shard.
	foreach my $which (1, 2)
	{
		as_role('mallory', $node, $restore, 'owned') if $which > 1;
		$node->wait_for_catchup('standby', 'replay');
		my $calls = 0;
		my $run = Command::run($behind, [ $program, @words ], sub {
			return 0 if $_[1] !~ /session_begin/ || ++$calls != $which;
			as_role('mallory', $node, $plant =~ s/DROP;/$drops[0];/r, 'owned');
			$node->wait_for_catchup('standby', 'replay');
			return 0; });
		is($run->{status}, 3, "query fails at call $which of session_begin()") or diag($run->{out});
		like($run->{err}, qr/conflict with recovery/, 'because replay cancels its transaction');
		is(planted_code_run($standby), '', 'and runs nothing of it');
	}
	$standby->stop;
};

subtest 'a planted snowflake_settled_id() fits better' => sub {
	as_mallory($nodes{one}, q{CREATE FUNCTION public.snowflake_settled_id(integer, oid, bigint) RETURNS bigint
		LANGUAGE sql AS $$SELECT mallory.note('settled')::bigint$$});
	my @since = ('--since', "$dir/since5", '--sql', 'SELECT id FROM users WHERE id > $1 AND id <= $2');
	my ($status, $out, $err) = run_shard($program, 'query', $nodes{one}, '--shards', '5', @since);
	is($status, 0, 'query --since') or diag($err);
	is_contained('query --since');
};

subtest 'a table in the shard of a superuser has a child of another owner' => sub {
	as_mallory($nodes{one}, q{CREATE TABLE mallory.child (id bigint NOT NULL, name text);
		CREATE INDEX ON mallory.child (id, (mallory.note('index')))});
	planted_code_run(@nodes);
	$nodes{one}->safe_psql('postgres', 'ALTER TABLE mallory.child INHERIT insta6.users');
	my ($status, $out, $err) =
	  run_shard($program, 'query', $nodes{one}, '--shards', '6', '--sql', 'SELECT id FROM users WHERE id > 3');
	is($status, 3, 'query is refused') or diag($out);
	like($err, qr/role mallory owns function mallory\.note\(text\)/, 'and names what would run');
	is_contained('query');
	$nodes{one}->safe_psql('postgres', 'DROP TABLE mallory.child');
};

subtest 'a foreign key may be made to the shard of a superuser' => sub {
	my $users = q{(id) ON insta6.users};
	$nodes{one}->safe_psql('postgres', "GRANT REFERENCES $users TO mallory");
	my ($status, $out, $err) = run_shard($program, 'run', $nodes{one}, '--shards', '6', '--sql', 'DELETE FROM users');
	is($status, 3, 'run is refused') or diag($out);
	like($err, qr/role mallory has REFERENCES on table insta6\.users/, 'by a privilege on a column, too');
	my ($revoke) = $err =~ /HINT:  (REVOKE .*?;)/;
	$nodes{one}->safe_psql('postgres', $revoke);
	($status, $out, $err) = run_shard($program, 'run', $nodes{one}, '--shards', '6', '--sql', 'DELETE FROM users');
	is($status, 0, 'the hint takes it away') or diag($err);
};

subtest 'a trigger may be made in the shard of a superuser' => sub {
	my @run = ('run', $nodes{one}, '--shards', '6', '--sql', q{INSERT INTO users (name) VALUES ('a')});
	$nodes{one}->safe_psql('postgres',
		'GRANT USAGE ON SCHEMA insta6 TO mallory; GRANT TRIGGER ON insta6.users TO mallory');
	foreach my $made (0, 1)
	{
		my ($status, $out, $err) = run_shard($program, @run);
		is($status, 3, 'run is refused') or diag($out);
		like($err, qr/role mallory (?:has TRIGGER on table insta6\.users|owns function mallory\.fired\(\))/, 'and says why');
		is($nodes{one}->safe_psql('postgres', 'SELECT count(*) FROM insta6.users'), '0', 'nothing was inserted');
		as_mallory($nodes{one}, 'CREATE TRIGGER fired BEFORE INSERT ON insta6.users FOR EACH ROW '
			  . 'EXECUTE FUNCTION mallory.fired()') if !$made;
	}
	is_contained('run');
	$nodes{one}->safe_psql('postgres', 'DROP SCHEMA insta6 CASCADE');
};

# --- move and clone ------------------------------------------------------------------------------

my @move = ('move', 'insta5', '--from', $one, '--to', $two);

# ALTER TABLE reads the tables of both sides of a new key (RI_Initial_Check()), as each query of mallory does that reads eve's table. Mallory's
# definition is made in a session of mallory: eve's code gets no other rights.
subtest 'a foreign key leads to a table of another owner' => sub {
	my $run = Command::run($proxy, [ $program, @move, '--dry-run' ]);
	is($run->{status}, 0, 'move --dry-run') or diag($run->{out} . $run->{err});
	is(join(', ', grep { !/ as mallory$/ && !/ of (\w+) as \1$/ } planted_code_run(@nodes)), '', 'the code of the other owner has the rights of the shard\'s owner alone');
	as_eve($_, 'DROP INDEX eve.by_note') foreach @nodes;
	$run = Command::run($proxy, [ $program, @move, '--dry-run' ]);
	like($run->{err}, qr/foreign key users_country_fkey of table insta5\.users was not checked: .* another owner/,
		'a warning says that the key was not checked');
	my $index = 'CREATE INDEX by_note ON eve.countries (id, (eve.note($$index$$)))';
	$run = run_behind(\@move, qr/^two: .*copy_rows\(/, sub { as_eve($nodes{two}, $index); 0 });
	ok($run->{acted}, 'the other owner makes the index while the rows are copied');
	is($run->{status}, 0, 'move') or diag($run->{err});
	is(join(', ', grep { !/ as mallory$/ && !/ of (\w+) as \1$/ } planted_code_run(@nodes)), '', 'it has the rights of mallory alone');
	as_eve($nodes{two}, 'DROP INDEX eve.by_note');
	my @back = ('move', 'insta5', '--from', $two, '--to', $one);
	is(Command::run($proxy, [ $program, @$_ ])->{status}, 0, "@$_[0, -1]") foreach [ @move, '--complete' ], \@back, [ @back, '--complete' ];
};

# The owners of the functions of this name.
sub owners_of
{
	my ($node) = @_;
	return $node->safe_psql('postgres',
		q{SELECT string_agg(DISTINCT proowner::regrole::text, ' ') FROM pg_proc WHERE proname = 'other_id'});
}

subtest 'a function of a closed shard is dropped' => sub {
	my $closed = run_behind(\@move, qr/^one: .*lock_sequence\(/, sub { kill 'KILL', $_[1]{pid} });
	ok($closed->{acted}, 'a move is killed after the fence');
	as_mallory($nodes{one}, 'DROP FUNCTION insta5.other_id()');
	my $run = Command::run($proxy, [ $program, @move, '--abort' ]);
	is($run->{status}, 0, 'move --abort');
	is(owners_of($nodes{one}), '', 'which is not made again');
	as_mallory($nodes{one}, $other_id);
	$run = Command::run($proxy, [ $program, @move, '--reversible' ]);
	is($run->{status}, 0, 'move --reversible') or diag($run->{err});
	as_mallory($nodes{one}, 'DROP FUNCTION insta5.other_id()');
	$run = Command::run($proxy, [ $program, @move, '--undo' ]);
	is($run->{status}, 0, 'move --undo');
	is(owners_of($nodes{one}), '', 'which is not made again');
	is_contained('move');
	as_mallory($nodes{one}, $other_id);
};

subtest 'a view of a closed shard is made before the shard is dropped' => sub {
	my $is_made;
	my $view = q{SET lock_timeout = '100ms'; CREATE VIEW public.late AS SELECT id FROM insta5.users};
	my $run = run_behind([ 'move', 'insta5', '--from', $two, '--to', $one, '--complete' ], qr/: DROP SCHEMA IF EXISTS /, sub {
		$is_made = eval { $nodes{ $_[0] }->safe_psql('postgres', $view); 1 };
		return 0; });
	ok($run->{acted} && !$is_made, 'it waits, because --complete has looked for such objects');
	is($run->{status}, 0, 'move --complete') or diag($run->{err});
};

# The last query before clone changes the copy.
my $looked = qr{COMMENT ON FUNCTION};

subtest 'a function of the copy of a shard is dropped' => sub {
	my @clone = ('clone', $one, '--template', 'insta5', '--shards', '7', '--schema', 'insta{}');
	my $run = run_behind(\@clone, $looked, sub {
		my $copy = $nodes{one}->safe_psql('postgres',
			q{SELECT nspname FROM pg_namespace WHERE nspname ~ '^snowflake_copy_'});
		as_mallory($nodes{one}, "DROP FUNCTION $copy.other_id()");
		return 0; });
	ok($run->{acted}, 'the function is dropped');
	is($run->{status}, 0, 'clone makes it again') or diag($run->{err});
	is(owners_of($nodes{one}), 'mallory', 'no function has another owner');
	is_contained('clone');
};

# Mallory gives the name of the copy to a schema in which eve has a function of the same name: clone would change that one.
subtest 'the names of the copy of a shard and of another schema are exchanged' => sub {
	my $node = $nodes{one};
	as_mallory($node, q{CREATE SCHEMA shared; GRANT USAGE, CREATE ON SCHEMA shared TO eve; CREATE SEQUENCE shared.table_id_seq;
		SELECT snowflake_create_shard(9, 'insta9'); DROP FUNCTION insta9.next_id(), insta9.settled_id();
		CREATE TABLE insta9.photos (id bigint PRIMARY KEY DEFAULT snowflake_next_id(9, 'insta9.table_id_seq'));
		CREATE FUNCTION insta9.api() RETURNS integer LANGUAGE sql SET search_path = mallory, insta9 AS 'SELECT 1'});
	as_eve($node, q{CREATE TABLE shared.photos (id bigint PRIMARY KEY);
		CREATE FUNCTION shared.api() RETURNS integer LANGUAGE sql SET search_path = eve AS 'SELECT 1'});
	my @clone = ('clone', $one, '--template', 'insta9', '--shards', '7', '--schema', 'insta{}');
	my $copy;
	my $exchange = sub { "ALTER SCHEMA $copy RENAME TO own; ALTER SCHEMA shared RENAME TO $copy;" };
	my $find_copy = sub { $copy = $node->safe_psql('postgres',
			q{SELECT nspname FROM pg_namespace WHERE nspname ~ '^snowflake_copy_'}) };
	my $path = sub { $node->safe_psql('postgres', q{SELECT proconfig FROM pg_proc
		WHERE proname = 'api' AND proowner = 'eve'::regrole}) };

	my $run = run_behind(\@clone, $looked, sub { $find_copy->(); as_mallory($node, $exchange->()); 0 });
	ok($run->{acted}, 'they are exchanged before clone changes the copy');
	isnt($run->{status}, 0, 'clone fails');
	like($run->{err}, qr/must be owner of \w+ \w+\n.*session of role mallory/, 'and says why');
	is($path->(), '', 'the schema of mallory that had the name of the copy was dropped as the copy');
	as_mallory($node, "DROP SCHEMA IF EXISTS own, insta9 CASCADE");
};

# --- global tables -------------------------------------------------------------------------------

my @servers = ($one, $two);
my @add = ('global', 'add', 'shop.filters', '--on', @servers);

subtest 'the schema of a global table belongs to another role' => sub {
	plan skip_all => 'from 16 on, workers write as the owner of the table' if !$is_before_16;
	my $run = Command::run($proxy, [ $program, @add ]);
	is($run->{status}, 1, 'global add');
	like($run->{out}, qr/schema shop of table shop\.filters belongs to role mallory, who could exchange the table/,
		'it is an obstacle');
};

# Runs global verify; the table is exchanged while the call of the function on server one waits for its lock.
sub verify_exchanged
{
	my ($function, $other) = @_;
	my ($text, $holder) = ('');
	my $run = run_behind([ 'global', 'verify', @servers ], qr/^one: .*\Q$function\E\(/, sub {
		$holder = IPC::Run::start([ 'psql', '-XAtq', '-d', $nodes{one}->connstr('postgres'), '-c', q{
			BEGIN;
			LOCK TABLE shop.filters IN ACCESS EXCLUSIVE MODE;
			SELECT 'locked'}, '-c', q{
			DO $$
			BEGIN
				WHILE NOT EXISTS (SELECT FROM pg_locks WHERE relation = 'shop.filters'::regclass AND NOT granted) LOOP
					PERFORM pg_sleep(0.01);
				END LOOP;
			END $$}, '-c', qq{
			SET LOCAL ROLE mallory;
			ALTER SCHEMA shop RENAME TO away; CREATE SCHEMA shop;
			$other;
			COMMIT} ], '>', \$text, '2>&1');
		await('the table is locked', sub { goes_on($holder); $text =~ /locked/ });
		return 0; });
	$holder->finish;
	is($text, "locked\n", "$function: the table is exchanged");
	is_contained("global verify, $function");
	as_mallory($nodes{one}, 'DROP SCHEMA shop CASCADE; ALTER SCHEMA away RENAME TO shop');
	return $run;
}

sub set_on_follower
{
	my ($name) = @_;
	$nodes{two}->safe_psql('postgres', qq{ALTER TABLE shop.filters DISABLE TRIGGER snowflake_global;
		UPDATE shop.filters SET name = '$name'; ALTER TABLE shop.filters ENABLE TRIGGER snowflake_global});
}

subtest 'the table is exchanged while its comparison waits for a lock' => sub {
	my $run = Command::run($proxy, [ $program, @add, $is_before_16 ? '--trust-owners' : () ]);
	is($run->{status}, 0, 'global add') or diag("$run->{out}$run->{err}");
	# A digest reads the table that was looked up, by its OID.
	my $table = q{CREATE TABLE shop.filters (id integer PRIMARY KEY, name text);
		CREATE INDEX ON shop.filters (id, (mallory.note('index')))};
	is(verify_exchanged('digest', $table)->{status}, 0, 'the table of before is read');
	# Digests that differ are followed by a query, whose text has the name.
	set_on_follower('b');
	# A view, too, that reads the table: its functions would run with the rights of the table's owner.
	my $view = q{CREATE VIEW shop.filters AS SELECT xmin, id, name FROM away.filters WHERE mallory.note('view') IS NOT NULL;
		GRANT USAGE ON SCHEMA shop TO PUBLIC; GRANT SELECT ON shop.filters TO PUBLIC};
	$nodes{one}->safe_psql('postgres', 'GRANT SELECT ON shop.filters TO mallory');
	foreach my $other ($table, $view)
	{
		$run = verify_exchanged('session_rows', $other);
		like($run->{out} . $run->{err}, qr/table shop\.filters belongs to role mallory, and the query works with the rights/,
			'the new one is not read');
	}
	$nodes{one}->safe_psql('postgres', 'REVOKE SELECT ON shop.filters FROM mallory');
	set_on_follower('a');
};

# Without the check, SQL of a superuser would run code of the table that mallory gives the name to.
subtest 'the schema of a table of this role belongs to another role' => sub {
	my @alter = ('global', 'run', @servers, '--sql', 'ALTER TABLE shop.filters ADD note text');
	my $me = $nodes{one}->safe_psql('postgres', 'SELECT current_user');
	foreach my $role ([], [ '--role', $me ])
	{
		my $run = Command::run($proxy, [ $program, @alter, @$role ]);
		is($run->{status}, 3, 'global run is refused') or diag($run->{out});
		like($run->{err}, qr/schema shop of table shop\.filters belongs to role mallory, who could exchange the table.*HINT:  ALTER SCHEMA shop OWNER TO "?\Q$me\E"?;/s,
			'the error has the schema and its role');
	}
};

subtest 'a table is exchanged while it becomes global' => sub {
	$nodes{one}->safe_psql('postgres', q{CREATE SCHEMA sale AUTHORIZATION mallory;
		CREATE TABLE sale.prices (id integer PRIMARY KEY); GRANT SELECT ON sale.prices TO PUBLIC});
	$nodes{two}->safe_psql('postgres', 'CREATE SCHEMA sale');
	as_mallory($nodes{one}, 'CREATE SCHEMA shared; GRANT USAGE, CREATE ON SCHEMA shared TO eve');
	as_eve($nodes{one}, 'CREATE TABLE shared.prices (id integer PRIMARY KEY)');
	my @prices = ('global', 'add', 'sale.prices', '--on', @servers, $is_before_16 ? '--trust-owners' : ());
	my $published = q{SELECT string_agg(prrelid::regclass::text, ' ' ORDER BY prrelid::regclass::text) FROM pg_publication_rel};

	my $run = run_behind(\@prices, qr/^one: ALTER PUBLICATION /, sub {
		$nodes{one}->safe_psql('postgres', 'DROP TABLE sale.prices; CREATE TABLE sale.prices (id integer PRIMARY KEY);
			GRANT SELECT ON sale.prices TO PUBLIC');
		return 0; });
	is($run->{status}, 3, 'another table has the name') or diag($run->{out});
	like($run->{err}, qr/table sale\.prices is not the one that was checked/, 'which is an error');
	is($nodes{one}->safe_psql('postgres', $published), 'shop.filters', 'and is not published');

	my $is_exchanged;
	$run = run_behind(\@prices, qr/^one: ALTER PUBLICATION /, sub {
		$is_exchanged = try_as_mallory($nodes{one}, 'ALTER SCHEMA sale RENAME TO away; ALTER SCHEMA shared RENAME TO sale');
		return 0; });
	if (rename_waits($nodes{one}))
	{
		ok(!$is_exchanged, 'its schema keeps its name until the rows are copied');
	}
	else
	{
		like($run->{err}, qr/table sale\.prices is not the one that was checked/, 'an exchange of names is an error');
		as_mallory($nodes{one}, 'ALTER SCHEMA sale RENAME TO shared; ALTER SCHEMA away RENAME TO sale');
		$run = Command::run($proxy, [ $program, @prices ]);
	}
	is($run->{status}, 0, 'global add') or diag($run->{out} . $run->{err});
	is($nodes{one}->safe_psql('postgres', $published), 'sale.prices shop.filters', 'the table is published');
	$run = Command::run($proxy, [ $program, 'global', 'remove', 'sale.prices', '--on', @servers ]);
	is($run->{status}, 0, 'global remove') or diag($run->{out} . $run->{err});
};

subtest 'a global table is exchanged' => sub {
	$_->safe_psql('postgres', 'ALTER TABLE shop.filters OWNER TO mallory') foreach @nodes;
	my @run = ('global', 'run', @servers, '--sql', q{SELECT mallory.note('global run')});
	my $look = qr/oid = ANY \(\$N::oid|FROM unnest\(\$N::oid|DISTINCT rolname|session_(?:of_role|run|script)\(/;
	my $refused = 0;
	my $rename = sub { try_as_mallory($nodes{ $_[0] }, 'ALTER SCHEMA shop RENAME TO away'); return 0 };
	my $restore = sub { try_as_mallory($nodes{ $_[0] }, 'ALTER SCHEMA away RENAME TO shop') };
	foreach my $gap (grep { /$look/ } gaps_of(\@run, qr/./))
	{
		my $run = run_behind(\@run, qr/^\Q$gap\E$/, $rename, $restore);
		$restore->($gap =~ /^(\w+)/);
		$refused += $run->{err} =~ /a global table was dropped or renamed meanwhile|"shop(?:\.filters)?" does not exist/;
		is_contained("global run, $gap") or diag($run->{err});
	}
	cmp_ok($refused, '>', 0, 'a table that is not there is an error');
	my $run = run_behind(\@run, qr/^two: .*session_of_role/, sub {
		as_mallory($nodes{two}, q{
			DROP TABLE shop.filters; CREATE TABLE shop.filters (id integer PRIMARY KEY, name text);
			CREATE TRIGGER fired AFTER UPDATE ON shop.filters FOR EACH STATEMENT EXECUTE FUNCTION mallory.fired()});
		return 0; });
	isnt($run->{status}, 0, 'a table that is another one');
	like($run->{err}, qr/a global table was dropped or renamed meanwhile/, 'is an error, too');
	is_contained('global run');
};

is($_->safe_psql('postgres', q{SELECT count(*) FROM pg_roles WHERE rolsuper AND rolname IN ('mallory', 'eve')}), '0',
	'no role has become a superuser')
  foreach @nodes;

$_->stop foreach @nodes;
done_testing();
