# snowflake-shard move when something hangs: writers are blocked for --timeout at most, whatever has stopped; a wait
# says what it waits for, and Ctrl-C ends it before the cutover; a command that is killed lets go at once, and an index
# that it has built stays; keys of a large table wait for its rows; settings of a role end no statement of a move; no password comes into a log.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();

# Two servers, and a shard that is moved to and fro.
my ($one, $two) =
	map { new_server($_, conf => "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\n") } qw(one two);
make_template($one);
$two->safe_psql('postgres', 'CREATE ROLE app LOGIN');
my $insert = "INSERT INTO insta0.log (t) VALUES ('x')";
my ($status, $rows, $out, $err);

# Processes that are stopped go on also when the test dies.
my %stopped;

sub stop
{
	my @pids = @_;
	kill 'STOP', @pids;
	@stopped{@pids} = ();
	return;
}

sub go_on
{
	kill 'CONT', keys %stopped;
	%stopped = ();
	return;
}

END
{
	my $status = $?;
	go_on();
	$? = $status;
}

# The backend of the move on one side. Another session of it has a lock for the positions of sequences.
sub backend_of
{
	my ($node) = @_;
	return $node->safe_psql('postgres', q{SELECT pid FROM pg_locks WHERE locktype = 'advisory'
		AND (classid::bigint << 32 | objid::bigint) = hashtextextended('snowflake_move_0', 0)});
}

# Its only slot has lost WAL then.
sub lose_slot
{
	my ($node) = @_;
	$node->safe_psql('postgres', $_) foreach q{ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'}, 'SELECT pg_reload_conf()';
	await('the slot has lost WAL', sub {
		$node->safe_psql('postgres', $_) foreach q{SELECT pg_logical_emit_message(false, '', ''), pg_switch_wal()},
			'CHECKPOINT';
		$node->safe_psql('postgres', 'SELECT wal_status FROM pg_replication_slots') eq 'lost';
	});
	$node->safe_psql('postgres', $_) foreach 'ALTER SYSTEM RESET max_slot_wal_keep_size', 'SELECT pg_reload_conf()';
	return;
}

# The processes of a server: the postmaster, and all that it has started.
sub processes_of
{
	my ($node) = @_;
	my ($postmaster) = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');
	return ($postmaster, split /\n/,
		$node->safe_psql('postgres', 'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()'));
}

# A move that waits before the fence, because somebody has locked a table.
sub hold_move
{
	my ($from, $to, @arguments) = @_;
	my $holder = $from->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta0.log IN ROW EXCLUSIVE MODE');
	my $move = start_command('move', 'source: triggers of the fence', 'insta0', '--from', $from, '--to', $to, @arguments);
	return ($move, $holder);
}

# A move that waits behind the fence, because somebody writes to a table.
sub hold_fence
{
	my ($from, $to, @arguments) = @_;
	my ($move, $holder) = hold_move($from, $to, @arguments);
	await('the trigger of the fence is there', sub { $from->safe_psql('postgres', q{SELECT count(*) FROM pg_trigger
		WHERE tgrelid = 'insta0.users'::regclass AND tgname = 'snowflake_move'}) eq '1' });
	my $writer = $from->background_psql('postgres');
	$writer->query_safe('BEGIN; LOCK TABLE insta0.users IN ROW EXCLUSIVE MODE');
	$holder->quit;
	await('the source is closed',
		sub { $from->safe_psql('postgres', 'SELECT step FROM snowflake_move_0.state') eq 'fenced' });
	return ($move, $writer);
}

# A part of the target is stopped after the fence. The fence goes down, and the move ends when the target goes on.
my ($from, $to) = ($one, $two);
my %victims = (
	'the backend of the move' => sub { backend_of($_[0]) },
	'the snapshot of the move' => sub {
		$_[0]->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE application_name = 'snowflake-shard'
		AND pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')}) },
	'the apply worker' => sub {
		$_[0]->safe_psql('postgres', 'SELECT pid FROM pg_stat_subscription WHERE pid IS NOT NULL') },
	'the whole server' => \&processes_of);

subtest 'the fence goes down when a part of the target hangs, and the move ends when it goes on' => sub {
	foreach my $victim (sort keys %victims)
	{
		my ($move, $writer) = hold_fence($from, $to, '--timeout', '2s');
		stop($victims{$victim}->($to));
		$writer->quit;
		await_text($move, 'source: fence(?s:.*)the source is open again');
		like($move->{err}, qr/source: fence\n/, "$victim hangs: the source was fenced");
		is(sqlstate($from, $insert), '', "$victim hangs: clients can write to the source again") or diag($move->{err});
		await_text($move, 'open again(?s:.*)worker \d+ runs(?s:.*)sender \d+ is in state streaming')
			if $victim eq 'the apply worker';
		go_on();
		is(end_command($move), 0, "$victim goes on: so does the move") or diag($move->{err});
		is((run_shard($program, 'move', 'insta0', '--from', $from, '--to', $to, '--complete'))[0], 0, '--complete');
		($from, $to) = ($to, $from);
	}
};

subtest 'the source hangs behind the fence, where that waits for a writer: nobody can lower it' => sub {
	my ($move, $writer) = hold_fence($from, $to, '--timeout', '2s');
	stop(backend_of($from));
	await_text($move, 'the source may still be fenced');
	is(end_command($move), 3, 'the source hangs: exit code 3');
	$writer->quit;
	like($move->{err},
		qr/the source may still be fenced, and closed to every write, until --resume or --abort: .* did not answer in time/,
		'the source hangs: the error says that the fence may stand');
	is(sqlstate($from, $insert), '25006', 'the source hangs: it does');
	go_on();
	is((run_shard($program, 'move', 'insta0', '--from', $from, '--to', $to, '--abort'))[0], 0,
		'the source goes on: --abort');
	is(sqlstate($from, $insert), '', 'and clients can write again');
};

subtest 'the target ends the session of the move' => sub {
	# The target ends the session of the move: the fence goes down at once, because no COMMIT has been sent.
	my ($move, $holder) = hold_move($from, $to, '--timeout', '60s');
	$to->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_0 DISABLE');
	$holder->quit;
	await_text($move, 'waiting for the last write');
	$to->safe_psql('postgres', 'SELECT pg_terminate_backend(' . backend_of($to) . ')');
	is(end_command($move), 3, 'the target ends the session: exit code 3');
	is(sqlstate($from, $insert), '', 'the target ends the session: clients can write again') or diag($move->{err});
	is((run_shard($program, 'move', 'insta0', '--from', $from, '--to', $to, '--abort'))[0], 0, '--abort');
};

subtest 'the COMMIT that opens the target hangs' => sub {
	# The COMMIT that opens the target hangs, because a standby is missing: the fence stays, also after the deadline.
	my ($move, $holder) = hold_move($from, $to, '--timeout', '2s');
	$to->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
	$to->safe_psql('postgres', 'SELECT pg_reload_conf()');
	$holder->quit;
	await_text($move, 'the COMMIT that opens the shard is under way, and \S+ does not answer');
	is(sqlstate($from, $insert), '25006', 'a COMMIT without an answer: the source stays closed') or diag($move->{err});
	is(sqlstate($to, "SET synchronous_commit = local; $insert"), '25006', 'and so does the target');
	$to->safe_psql('postgres', "SET synchronous_commit = local; ALTER SYSTEM RESET synchronous_standby_names");
	$to->safe_psql('postgres', 'SELECT pg_reload_conf()');
	is(end_command($move), 0, 'the answer comes: the move ends') or diag($move->{err});
	is(sqlstate($to, $insert), '', 'the target is open');
	is((run_shard($program, 'verify', $one, $two))[0], 0, 'verify: nothing is left');

	is((run_shard($program, 'move', 'insta0', '--from', $from, '--to', $to, '--complete'))[0], 0, '--complete');
	($from, $to) = ($to, $from);
};

subtest 'the session ends while the COMMIT hangs: the target may be open, so the source stays closed' => sub {
	my ($move, $holder) = hold_move($from, $to, '--timeout', '2s');
	$to->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
	$to->safe_psql('postgres', 'SELECT pg_reload_conf()');
	$holder->quit;
	await_text($move, 'the COMMIT that opens the shard is under way');
	$to->safe_psql('postgres', 'SELECT pg_terminate_backend(' . backend_of($to) . ')');
	is(end_command($move), 3, 'a COMMIT whose session ends: exit code 3');
	like($move->{err}, qr/not known whether the shard is open on \S+\. Nobody can write to it before --resume/,
		'a COMMIT whose session ends: the error says what is not known');
	is(sqlstate($from, $insert), '25006', 'a COMMIT whose session ends: the source stays closed');
	$to->safe_psql('postgres', "SET synchronous_commit = local; ALTER SYSTEM RESET synchronous_standby_names");
	$to->safe_psql('postgres', 'SELECT pg_reload_conf()');
	is((run_shard($program, 'move', 'insta0', '--from', $from, '--to', $to, '--resume'))[0], 0,
		'a COMMIT whose session ends: --resume');
	is(sqlstate($to, $insert), '', 'the target is open');
	is((run_shard($program, 'move', 'insta0', '--from', $from, '--to', $to, '--complete'))[0], 0, '--complete');
	($from, $to) = ($to, $from);
};

subtest 'a transaction of another database keeps the slot waiting' => sub {
	# A transaction of another database keeps the slot waiting. Its role is dropped meanwhile.
	$from->safe_psql('postgres', $_) foreach 'CREATE DATABASE other', 'CREATE ROLE leaver LOGIN';
	my $old = $from->background_psql('other', extra_params => [ '-U', 'leaver' ]);
	my ($pid) = $old->query_safe('BEGIN; SELECT pg_backend_pid() FROM pg_current_xact_id()') =~ /(\d+)/;
	my $waits =
		"the slot waits for process $pid \\(role leaver, database other, application psql\\), whose transaction began at 20";
	my $move = start_command('move', $waits, 'insta0', '--from', $from, '--to', $to);
	like($move->{err}, qr/$waits/, 'a slot that waits: the process is named');
	$move->{run}->signal('INT');
	is(end_command($move), 3, 'Ctrl-C while the slot waits: exit code 3');
	like($move->{err}, qr/stopped\nHINT: .*--resume goes on/, 'and how to go on');
	await('no slot is left', sub { $from->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_slots') eq '0' });
	$from->safe_psql('postgres', 'DROP ROLE leaver');
	$waits =~ s/role leaver, //;
	$move = start_command('move', $waits, 'insta0', '--from', $from, '--to', $to, '--resume');
	like($move->{err}, qr/$waits/, 'a process whose role was dropped is named, too');
	# The slot is made, and nothing on the target. Then the slot loses its WAL.
	$to->safe_psql('postgres', 'CREATE SCHEMA insta0');
	$old->quit;
	is(end_command($move), 3, 'a schema that is there meanwhile: exit code 3') or diag($move->{err});
	$to->safe_psql('postgres', 'DROP SCHEMA insta0');
	lose_slot($from);
	($status, $out, $err) = run_shard($program, 'move', 'insta0', '--from', $from, '--to', $to, '--resume');
	is($status, 0, 'a slot that has lost WAL before anybody has subscribed is made anew') or diag($err);
	is((run_shard($program, 'move', 'insta0', '--from', $from, '--to', $to, '--complete'))[0], 0, '--complete');
	($from, $to) = ($to, $from);
};

subtest 'a row that cannot be written on the target: that replication fails is said once, not for each try' => sub {
	my ($move, $holder) = hold_move($from, $to, '--timeout', '2s');
	$to->safe_psql('postgres', "SET session_replication_role = replica; INSERT INTO insta0.log VALUES (1, 'other')");
	$from->safe_psql('postgres', "INSERT INTO insta0.log VALUES (1, 'x')");
	$holder->quit;
	my $failed = qr/replication has failed \d+ times?; the log of \S+ says why/;
	await_text($move, $failed);
	my $failures = 'SELECT apply_error_count FROM pg_stat_subscription_stats';
	my $before = $to->safe_psql('postgres', $failures);
	await('it fails more often', sub { $move->{run}->pump_nb; $to->safe_psql('postgres', $failures) > $before + 5 });
	is(scalar(() = $move->{err} =~ /$failed/g), 1, 'replication that fails is told once') or diag($move->{err});
	$move->{run}->signal('INT');
	await_text($move, 'stopped\n');
	is(end_command($move), 3, 'Ctrl-C while replication fails: exit code 3');
	$to->safe_psql('postgres', 'SET session_replication_role = replica; DELETE FROM insta0.log WHERE id = 1');
	($status, $out, $err) = run_shard($program, 'move', 'insta0', '--from', $from, '--to', $to, '--resume');
	is($status, 0, 'the row can be written: --resume goes on') or diag($err);
	is((run_shard($program, 'move', 'insta0', '--from', $from, '--to', $to, '--complete'))[0], 0, '--complete');
	($from, $to) = ($to, $from);
};

subtest 'kill -9 while an index is built: the next command waits for none, and begins the copy again' => sub {
	my $build = 60;    # seconds, on the target alone
	$from->safe_psql('postgres', $_) foreach
		q{CREATE FUNCTION insta0.slow(n bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS
			'BEGIN PERFORM pg_sleep(1) WHERE n % 1000 = 0 AND current_setting(''test.slow'', true) = ''on''; RETURN n; END'},
		'CREATE TABLE insta0.large (id bigint PRIMARY KEY)',
		"INSERT INTO insta0.large SELECT generate_series(1, 1000 * $build)",
		'CREATE INDEX slow ON insta0.large (insta0.slow(id))', 'CREATE INDEX fast ON insta0.large ((id % 10), id)';
	my $set_slow = sub { $to->append_conf('postgresql.conf', "test.slow = $_[0]\n"); $to->reload };
	$set_slow->('on');
	my $is_slow = q{SELECT current_setting('test.slow', true)};
	await('the setting is there', sub { $to->safe_psql('postgres', $is_slow) eq 'on' });
	my @move = ('insta0', '--from', $from, '--to', $to);
	my ($start, $move, %built);
	foreach my $resume ([], ['--resume'])
	{
		$start = time();
		$move = start_command('move', 'target: indexes', @move, @$resume);
		like($move->{err}, qr/target: indexes/, "move @$resume builds the indexes");
		cmp_ok(time() - $start, '<', $build / 4, "@$resume begins at once") if @$resume;
		await('one index is being built, and the other is there', sub { $to->safe_psql('postgres',
			q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND to_regclass('insta0.fast') IS NOT NULL})
			eq '1' });
		$built{ $to->safe_psql('postgres', q{SELECT to_regclass('insta0.fast')::oid}) } = 1;
		kill_command($move->{run});
	}
	is(keys %built, 2, 'the copy has begun again');
	like($move->{err}, qr/the copy begins again/, 'and the command says so');
	my $definition = dump_of($from, 'insta0');
	$start = time();
	is((run_shard($program, 'move', @move, '--abort'))[0], 0, '--abort ends');
	cmp_ok(time() - $start, '<', $build / 4, '--abort begins at once');
	$set_slow->('off');
	is((run_shard($program, 'move', @move, '--index-jobs', 1))[0], 0, 'a move with --index-jobs 1');
	is(dump_of($to, 'insta0'), $definition, 'the definition is the same there');
	is((run_shard($program, 'move', @move, '--complete'))[0], 0, '--complete');
	($from, $to) = ($to, $from);
	$from->safe_psql('postgres', 'DROP TABLE insta0.large; DROP FUNCTION insta0.slow');
};

subtest 'rows are copied without keys, and again after a kill' => sub {
	$from->safe_psql('postgres', $_) foreach
		q{CREATE FUNCTION insta0.gate(n bigint) RETURNS boolean LANGUAGE plpgsql AS
			'BEGIN PERFORM pg_advisory_xact_lock_shared(99) WHERE n = 10000; RETURN true; END'},
		q{CREATE TABLE insta0."Large" (id bigint PRIMARY KEY CHECK (insta0.gate(id)), u bigint UNIQUE, i bigint, t text,
			EXCLUDE (i WITH =))},
		q{INSERT INTO insta0."Large" SELECT i, i, i, repeat('x', 500) FROM generate_series(1, 20000) AS i},
		q{ALTER TABLE insta0."Large" REPLICA IDENTITY USING INDEX "Large_pkey"};
	my $keys = q{SELECT count(*) FROM pg_constraint WHERE conrelid = 'insta0."Large"'::regclass AND contype IN ('p', 'u', 'x')};
	my $waiting = q{SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND objid = 99};
	foreach my $is_killed (0, 1)
	{
		my @move = ('insta0', '--from', $from, '--to', $to);
		my $definition = dump_of($from, 'insta0');
		my $gate = $to->background_psql('postgres');
		$gate->query_safe('SELECT pg_advisory_lock(99)');
		my $move = start_command('move', 'target: rows', @move);
		await('a row waits', sub { $to->safe_psql('postgres', $waiting) eq '1' });
		is($to->safe_psql('postgres', $keys), '0', 'no key is there');
		# The copy of the rows is let through, and nobody else: not the owner of the table, a superuser.
		my (undef, undef, $refused) = $to->psql('postgres', q{INSERT INTO insta0.log VALUES (1, 'by mistake')});
		like($refused, qr/shard 0, schema insta0, is not open here yet/, 'a client that writes to the copy is refused');
		kill_command($move->{run}) if $is_killed;
		await('nobody waits any more', sub { $to->safe_psql('postgres', $waiting) eq '0' }) if $is_killed;
		$from->safe_psql('postgres', 'UPDATE insta0."Large" SET t = id::text WHERE id % 10 = 1');
		$gate->quit;
		if ($is_killed)
		{
			($status, undef, $err) = run_shard($program, 'move', @move, '--resume');
			is($status, 0, '--resume copies the rows') or diag($err);
			like($err, qr/the copy begins again/, 'and says so');
		}
		else
		{
			is(end_command($move), 0, 'the move ends') or diag($move->{err});
		}
		is(dump_of($to, 'insta0'), $definition, 'the definition is the same there');
		is((run_shard($program, 'move', @move, '--complete'))[0], 0, '--complete');
		($from, $to) = ($to, $from);
	}
	$from->safe_psql('postgres', 'DROP TABLE insta0."Large"; DROP FUNCTION insta0.gate');
};

subtest 'kill -9 while pg_dump waits for a lock: it ends, too, and leaves no file' => sub {
	local $ENV{TMPDIR} = PostgreSQL::Test::Utils::tempdir();
	my $holder = $from->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE pg_event_trigger');
	my $move = background('move', 'insta0', '--from', $from, '--to', $to);
	my $dumps = q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pg_dump'};
	await('pg_dump waits', sub { $from->safe_psql('postgres', "$dumps AND wait_event_type = 'Lock'") eq '1' });
	kill_command($move->{h});
	await('pg_dump has ended', sub { $from->safe_psql('postgres', $dumps) eq '0' });
	is(join(' ', glob "$ENV{TMPDIR}/*"), '', 'nothing is left in the temporary folder');
	$holder->quit;
};

subtest 'settings of the role, and a table whose copy takes longer than they allow' => sub {
	# Settings of the role on both servers, and a table whose copy takes longer than they allow. The servers log all that
	# they may.
	foreach my $node ($one, $two)
	{
		$node->safe_psql('postgres', 'CREATE ROLE mover SUPERUSER LOGIN');
		$node->safe_psql('postgres', "ALTER ROLE mover SET $_")
			foreach q{statement_timeout = '100ms'}, q{lock_timeout = '1ms'},
			q{idle_in_transaction_session_timeout = '100ms'}, q{idle_session_timeout = '1s'},
			'default_transaction_read_only = on',
			q{default_transaction_isolation = 'serializable'}, 'session_replication_role = replica',
			'standard_conforming_strings = off';
		$node->append_conf('postgresql.conf',
			"log_statement = all\nlog_min_duration_statement = 0\nlog_parameter_max_length = -1\n");
		$node->reload;
	}
	$from->safe_psql('postgres', "INSERT INTO insta0.log (t) SELECT repeat('x', 100) FROM generate_series(1, 200000)");
	my @way = map { $_->connstr('postgres') . ' user=mover password=hushed' } $from, $to;
	my @logged = map { -s $_->logfile } $one, $two;
	is((run_shard($program, 'move', 'insta0', '--from', $way[0], '--to', $way[1], '--dry-run', '--source',
		'port=1 host=/nonexistent password=hushed'))[0], 1,
		'--dry-run: a source that cannot be reached');
	($status, $out, $err) = run_shard($program, 'move', 'insta0', '--from', $way[0], '--to', $way[1],
		'--source', "$way[0] options='-c work_mem=1MB'");
	is($status, 0, 'settings of the role do not stop a move') or diag($err);
	is((run_shard($program, 'verify', $one, $two))[0], 0, 'verify: nothing is left');
	my @logs = map { slurp_file($_->logfile, shift @logged) } $one, $two;
	like($_, qr/statement: .*BEGIN/, 'statements were logged') foreach @logs;
	unlike($_, qr/hushed/, 'no password was logged') foreach @logs;
};

$_->stop foreach $one, $two;
done_testing();
