# snowflake-shard global run: a change of global tables is made on all servers or on none, while clients write, and the
# followers go on. If a server or the command is lost at the end, the same command completes the change. The SQL works
# with the rights of the tables' owner.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PlantedTest;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $conf = "wal_level = logical\nmax_wal_senders = 10\nwal_retrieve_retry_interval = 100ms\n";
my @all = map { new_server($_, conf => $conf) } qw(writer one two);
my ($writer, $one, $two) = @all;
my ($status, $out, $err);

sub global
{
	my ($verb, @arguments) = @_;
	($status, $out, $err) = run_shard($program, 'global', $verb, @arguments);
	return $status;
}

sub run_sql { return global('run', @all, '--sql', @_) }

sub value
{
	my ($node, $sql) = @_;
	return $node->safe_psql('postgres', $sql);
}

# The columns of filters on each server.
sub columns
{
	return join ' ', map { value($_, q{SELECT string_agg(attname || ':' || atttypid::regtype, ',' ORDER BY attname)
		FROM pg_attribute WHERE attrelid = 'public.filters'::regclass AND attnum > 0 AND NOT attisdropped}) } @all;
}

sub on_all { return join ' ', ($_[0]) x @all }

sub is_clean
{
	is(global('verify', @all), 0, $_[0] // 'verify finds nothing') or diag($out . $err);
	return;
}

my @nothing = ($writer, 'SELECT obj_description(oid) FROM pg_publication');

$writer->safe_psql('postgres', q{CREATE TABLE filters (id integer PRIMARY KEY, amount integer);
	INSERT INTO filters SELECT i, i FROM generate_series(1, 100) AS i});
$_->safe_psql('postgres', 'CREATE ROLE mallory LOGIN') foreach @all;
is(global('add', 'public.filters', '--on', @all), 0, 'a global table') or diag($out . $err);

subtest 'changes while clients write' => sub {
	my $writes = IPC::Run::start([ 'psql', '-Xq', '-d', $writer->connstr('postgres'), '-v', 'ON_ERROR_STOP=1', '-c', q{
		DO $$ BEGIN
			FOR i IN 101 .. 10000000 LOOP
				INSERT INTO filters (id) VALUES (i);
				DELETE FROM filters WHERE id = i - 3;
				COMMIT;
				PERFORM pg_sleep(0.001);
				EXIT WHEN EXISTS (SELECT FROM pg_class WHERE relname = 'stop');
			END LOOP; END $$}]);
	await('the writes have begun', sub { value($writer, 'SELECT max(id) > 150 FROM filters') eq 't' });
	foreach (
		[ q{ADD place text NOT NULL DEFAULT 'somewhere'}, 'amount:integer,id:integer,place:text' ],
		[ 'RENAME place TO home', 'amount:integer,home:text,id:integer' ],
		[ 'ALTER amount TYPE bigint', 'amount:bigint,home:text,id:integer' ],
		[ 'DROP home', 'amount:bigint,id:integer' ])
	{
		my ($change, $columns) = @$_;
		is(run_sql("ALTER TABLE public.filters $change"), 0, $change) or diag($out . $err);
		is(columns(), on_all($columns), 'it is on all servers');
	}
	is_clean('and the followers go on');
	$writer->safe_psql('postgres', 'CREATE TABLE stop ()');
	ok($writes->finish, 'no write has failed');
	is_clean();
	is(value(@nothing), '', 'and nothing is left');
};

subtest 'SQL that fails on a server changes none' => sub {
	$_->safe_psql('postgres', q{CREATE TYPE mood AS ENUM ('good')}) foreach $writer, $one;
	my $before = columns();
	foreach (
		[ 'ALTER TABLE public.filters ADD mood public.mood', qr/type "public\.mood" does not exist/ ],
		[ 'ALTER TABLE public.filters ADD a text; ALTER TABLE filters ADD b text',
			qr/relation "filters" does not exist.*\nHINT:  Write names with their schema/s ],
		[ 'ALTER TABLE public.filters ADD a text; COMMIT', qr/the SQL begins or ends a transaction itself/ ],
		[ 'ALTER TABLE public.filters ADD a text; UPDATE public.filters SET amount = 1',
			qr/public\.filters is a global table, and is not written here/ ],
		[ 'ALTER TABLE public.filters DROP CONSTRAINT filters_pkey',
			qr/after the change, table public\.filters: .* has neither a primary key nor/ ],
		[ "DO \$\$BEGIN IF current_setting('port') = '${\$one->port}'
			THEN ALTER TABLE public.filters ADD a text; END IF; END\$\$",
			qr/:${\$one->port}\S+ after the change, table public\.filters: column a: it is only here/ ],
		[ 'ALTER TABLE public.filters DISABLE TRIGGER ALL', qr/after the change.* writes to it are not refused/ ])
	{
		my ($sql, $error) = @$_;
		is(run_sql($sql), 3, $sql);
		like($err, $error, 'the error');
		like($err, qr/\nNothing was changed\.$/, 'says that nothing was changed');
		is(columns(), $before, 'and that is true');
	}
	is(run_sql(' ; '), 2, 'no SQL is wrong usage');
	is(global('run', $writer, $one, '--sql', 'ALTER TABLE public.filters ADD a text'), 3, 'a follower that is not given');
	like($err, qr/slot snowflake_global_\w+ on \S+ is of a follower that is not given/, 'is an error');
	$one->safe_psql('postgres', 'ALTER TABLE filters ADD b text');
	is(run_sql('ALTER TABLE public.filters ADD a text'), 1, 'a difference that is there already is an obstacle');
	$one->safe_psql('postgres', 'ALTER TABLE filters DROP b');
	my $holder = $two->background_psql('postgres');
	$holder->query_safe('BEGIN; SELECT FROM filters');
	is(run_sql('ALTER TABLE public.filters ADD a text', '--timeout', '300ms'), 3, 'a lock that is not had');
	like($err, qr/lock timeout.*\nNothing was changed\.$/s, 'ends the command');
	$holder->query_safe('COMMIT');
	$holder->quit;
	is_clean();
};

# Rows of the old definition that come after the change would stop a follower for ever.
subtest 'the followers get all earlier rows first' => sub {
	my $sender = value($writer, 'SELECT min(active_pid) FROM pg_replication_slots');
	kill 'STOP', $sender;
	$writer->safe_psql('postgres', 'UPDATE filters SET amount = 7 WHERE id = 1');
	my $run = background('global', 'run', @all, '--sql', 'ALTER TABLE public.filters RENAME amount TO size');
	await('it waits for them', sub { has_ended($run) || value($writer,
		q{SELECT count(*) FROM pg_stat_activity WHERE query ~ 'confirmed_flush_lsn' AND pid <> pg_backend_pid()}) eq '1' });
	is(sqlstate($writer, 'UPDATE filters SET amount = 8 WHERE id = 1'), '', 'clients can write meanwhile');
	kill 'CONT', $sender;
	$run->{h}->finish;
	is($run->{h}->result(0), 0, 'and makes the change') or diag($run->{out} . $run->{err});
	is_clean();
};

# The writer's COMMIT waits for a synchronous standby that does not exist.
sub at_commit
{
	my ($sql, $function) = @_;
	$writer->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = 'nobody'});
	$writer->reload;
	my $run = background('global', 'run', @all, '--sql', $sql);
	await('the writer commits', sub { has_ended($run) || value($writer, q{SELECT count(*) FROM pg_stat_activity
		WHERE wait_event = 'SyncRep' AND query = 'COMMIT'}) eq '1' });
	$function->($run);
	$writer->safe_psql('postgres', q{ALTER SYSTEM RESET synchronous_standby_names});
	$writer->reload;
	$run->{h}->finish;
	($out, $err) = ($run->{out}, $run->{err});
	return;
}

subtest 'the same command completes a change' => sub {
	my $add = 'SET search_path = public; ALTER TABLE filters ADD note text';
	at_commit($add, sub { value($two, q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE state = 'idle in transaction'}) });
	my ($here, $there) = map { qr/\S+:${\$_->port}\/postgres/ } $one, $two;
	like($err, qr/the change is on \S+, $here, and was not seen on $there:.*\nHINT:  Run the same command again/s,
		'a lost follower is named');
	$writer->safe_psql('postgres', q{INSERT INTO filters (id, note) VALUES (-5000000, 'new')});
	is(global('verify', @all), 1, 'verify has findings');
	like($out, qr/$there: global tables: it lacks a change of global run\n +HINT:  .* with: \Q$add\E\n/, 'and the SQL');
	is(global('add', '--on', @all), 1, 'no table and no server is added meanwhile');
	is(run_sql('ALTER TABLE public.filters DROP note'), 3, 'and no other change is made');
	like($err, qr/an earlier change is on \S+, and not on $there\nHINT:  Complete it .*: \Q$add\E/, 'before this one');
	is(run_sql($add), 0, 'the same command') or diag($out . $err);
	like($out, qr/$here +had it already\n$there +changed\n/, 'changes the one that lacks it');
	is_clean();

	at_commit('ALTER TABLE public.filters DROP note', sub { $_[0]{h}->signal('KILL') });
	is(run_sql('ALTER TABLE public.filters DROP note'), 0, 'it completes a killed command, too') or diag($out . $err);
	like($out, qr/had it already\n$here +changed\n$there +changed\n/, 'on the followers');
	is(columns(), on_all('id:integer,size:bigint'), 'with the change on all servers');

	at_commit('ALTER TABLE public.filters ADD last text', sub { value($writer,
		q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'MessageQueueReceive'}) });
	like($err, qr/on no follower\. It is not known whether it is on the writer\.\nHINT:  Run the same/, 'a lost writer');
	is(run_sql('ALTER TABLE public.filters ADD last text'), 0, 'is seen to have it') or diag($out . $err);
	like($out, qr/had it already\n$here +changed\n$there +changed\n/, 'by the same command');

	at_commit('ALTER TABLE public.filters DROP last', sub { $_[0]{h}->signal('TERM') });
	is(columns(), on_all('id:integer,size:bigint'), 'Ctrl-C at the end leaves no half');
	is_clean();
	is(value(@nothing), '', 'and nothing is left');
};

# A CHECK is code of the table's owner: it runs when the table is written anew.
subtest 'with the rights of the owner' => sub {
	$_->safe_psql('postgres', q{CREATE TABLE hostile (id integer PRIMARY KEY, n integer);
		CREATE FUNCTION evil(bigint) RETURNS boolean LANGUAGE plpgsql AS
			$$BEGIN RAISE LOG 'PLANTED check as %', current_user; RETURN true; END$$;
		INSERT INTO hostile VALUES (1, 1);
		ALTER TABLE hostile ADD CHECK (public.evil(n));
		ALTER TABLE hostile OWNER TO mallory; ALTER FUNCTION evil OWNER TO mallory}) foreach @all;
	$writer->safe_psql('postgres', 'UPDATE hostile SET n = 2');
	is(global('add', 'public.hostile', '--trust-owners', '--on', $writer, $one, $two), 1, 'a table with other rows');
	$_->safe_psql('postgres', 'DELETE FROM hostile') foreach $one, $two;
	is(global('add', 'public.hostile', '--trust-owners', '--on', @all), 0, 'a table of another role') or diag($out . $err);
	planted_code_run(@all);
	my $rewrite = 'ALTER TABLE public.hostile ALTER n TYPE bigint';
	is(run_sql($rewrite), 3, 'tables of several roles');
	like($err, qr/the global tables belong to roles mallory, \S+\nHINT:  --role names /, 'need the name of one');
	is(run_sql($rewrite, '--role', 'mallory'), 0, 'it is given') or diag($out . $err);
	is(planted_code_run(@all), 'check as mallory', 'and its code has its rights');
	is(run_sql('ALTER TABLE public.filters ADD a text', '--role', 'mallory'), 3, 'tables of others');
	like($err, qr/must be owner of table filters\nCONTEXT:  The SQL runs in a session of role mallory\./, 'are not changed');
	$_->safe_psql('postgres', 'CREATE ROLE "r$1" LOGIN') foreach @all;
	is(run_sql($rewrite, '--role', 'r$1'), 3, 'nor by a role with the name of a parameter');
	like($err, qr/must be owner of table hostile/, 'which is only a name');
	my $me = value($writer, 'SELECT current_user');
	is(run_sql($rewrite, '--role', $me), 3, 'the rights of a superuser');
	like($err, qr/table public\.hostile belongs to role mallory, and its code would run with the rights of superuser "?\Q$me\E"?\n/,
		'are not for code of others');
	is(planted_code_run(@all), '', 'which does not run');
	$_->safe_psql('postgres', 'ALTER TABLE filters OWNER TO mallory') foreach @all;
	is(run_sql('ALTER TABLE public.hostile ALTER n TYPE integer'), 0, 'the owner of all tables') or diag($out . $err);
	is(planted_code_run(@all), 'check as mallory', 'is the default');
	is_clean();
};

is(global('remove', '--on', @all), 0, 'removed');
$_->stop foreach @all;
done_testing();
