# snowflake-shard move names what it waits for, and tells for how long writes were blocked; a signal after the opening
# does not keep it from its end; --undo names the commands that work.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $dir = PostgreSQL::Test::Utils::tempdir();

my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\nmax_prepared_transactions = 10\n";
my ($one, $two) = map { new_server($_, conf => $conf) } qw(one two);
$one->safe_psql('postgres', q{
	SELECT snowflake_create_shard(5, 'insta5');
	CREATE TABLE insta5.users (id bigint PRIMARY KEY DEFAULT insta5.next_id(), name text);
	CREATE TABLE insta5.z (id bigint PRIMARY KEY)});
my ($from, $to) = ($one, $two);
my ($status, $out, $err);

# The next move goes the other way.
sub complete
{
	is((run_shard($program, 'move', 'insta5', '--from', $from, '--to', $to, '--complete'))[0], 0, '--complete');
	($from, $to) = ($to, $from);
	return;
}

subtest 'signals after the opening' => sub {
	plan skip_all => 'there is no /proc' unless -e "/proc/$$/status";
	my $wait = "touch $dir/begun; until test -e $dir/end; do sleep 0.1; done";
	my $move = start_command('move', 'target: open', 'insta5', '--from', $from, '--to', $to, '--switch-command', $wait);
	await('the target is open', sub { -e "$dir/begun" });
	my $pid = $move->{run}{KIDS}[0]{PID};
	foreach my $signal (qw(INT INT TERM TERM HUP))
	{
		kill $signal, $pid;
		await("SIG$signal was taken", sub { slurp_file("/proc/$pid/status") =~ /^ShdPnd:\s*0+$/m });
	}
	append_to_file("$dir/end", '');
	is(end_command($move), 0, 'the move comes to its end') or diag($move->{err});
	complete();
};

subtest 'a synchronous standby that is dead' => sub {
	my @move = ('insta5', '--from', $from, '--to', $to);
	my $set = sub {
		my ($node, $names) = @_;
		$node->safe_psql('postgres', $_)
			foreach "ALTER SYSTEM SET synchronous_standby_names = '$names'", 'SELECT pg_reload_conf()';
	};
	my $named = qr/synchronous_standby_names = 'ANY 2 \(a, b\)', and 0 of 2 such standbys follow: each COMMIT would wait/;
	foreach my $node ($from, $to)
	{
		$set->($node, 'ANY 2 (a, b)');
		($status, $out, $err) = run_shard($program, 'move', @move, '--dry-run');
		is($status, 1, '--dry-run: exit code 1') or diag($err);
		like($out, qr/${\$node->port}\/postgres: $named/, '--dry-run: it is an obstacle');
		$set->($node, '');
	}
	# A subscription would be one.
	my $any = qr/synchronous_standby_names = '[^\n]*\*[^\n]*': a subscription counts as a standby by \*, .*\n +HINT:  ALTER SYSTEM SET synchronous_standby_names = \.\.\.; with the names of the standbys in place of \*/;
	my $found = sub {
		my ($names, @options) = @_;
		foreach my $node ($from, $to)
		{
			$set->($node, $names);
			await('the setting is loaded', sub { $node->safe_psql('postgres', 'SHOW synchronous_standby_names') eq $names });
		}
		($status, $out, $err) = run_shard($program, 'move', @move, '--dry-run', @options);
		return join ' ', map { my $port = $_->port; $out =~ /:$port\/postgres: $any/ ? $_->name : () } $from, $to;
	};
	is($found->($_), $from->name, "synchronous_standby_names = $_") or diag($out)
		foreach '*', 'FIRST 1 (a, *)', 'ANY 1 (*, b)', '"*"', '"a""b", "*"';
	is($found->('*', '--reversible'), join(' ', map { $_->name } $from, $to), 'with reverse replication that of the target, too');
	is($found->('"a, *", "*""", b', '--reversible'), '', 'other names with a *');
	$set->($_, '') foreach $from, $to;
	# It dies after the look for obstacles. The slot waits for this transaction.
	my $holder = $from->background_psql('postgres');
	$holder->query_safe('BEGIN; SELECT txid_current()');
	my $move = start_command('move', 'the slot waits for', @move);
	$set->($to, 'nobody');
	$holder->quit;
	await_text($move, 'a COMMIT waits for a synchronous standby, which does not answer: synchronous_\w+ = nobody');
	$set->($to, '');
	is(end_command($move), 0, 'the move goes on when the COMMIT has ended') or diag($move->{err});
	complete();
};

# A move that waits behind its fence for the transaction of the statements, and that session.
sub hold_fence
{
	my ($statements, @options) = @_;
	# The tables get their triggers in this order: users, z.
	my ($gate, $other) = map { $from->background_psql('postgres') } 1 .. 2;
	$gate->query_safe('BEGIN; LOCK TABLE insta5.z IN ROW EXCLUSIVE MODE');
	my $move =
		start_command('move', 'source: triggers of the fence', 'insta5', '--from', $from, '--to', $to, @options);
	await('the trigger of the fence is there', sub { $from->safe_psql('postgres', q{SELECT count(*) FROM pg_trigger
		WHERE tgrelid = 'insta5.users'::regclass AND tgname = 'snowflake_move'}) eq '1' });
	$other->query_safe($_) foreach 'BEGIN', @$statements;
	$gate->quit;
	return ($move, $other);
}

subtest 'transactions that a cutover waits for are named' => sub {
	my $who = qr/\(role "?[\w-]+"?/;
	my $age = qr/transaction \d\d:\d\d:\d\d old\)/;
	my %statements = (writes => q{INSERT INTO insta5.users (name) VALUES ('x')}, draws => 'SELECT insta5.next_id()');
	foreach my $kind (sort keys %statements)
	{
		foreach my $is_prepared (0, 1)
		{
			my ($move, $other) =
				hold_fence([ $statements{$kind}, $is_prepared ? q{PREPARE TRANSACTION 'p'} : () ], '--timeout', '2s');
			await_text($move, 'source is open again');
			my $whose = $is_prepared ? qr/prepared transaction 'p' $who, database postgres, $age/
				: qr/process \d+ $who, database postgres, application \S+, $age/;
			like($move->{err}, qr/$whose writes to the shard, and did not end in time\nHINT: .*a process, .*ROLLBACK PREPARED a/,
				$is_prepared ? "a prepared transaction that $kind" : "a transaction that $kind");
			$other->query_safe($is_prepared ? q{ROLLBACK PREPARED 'p'} : 'ROLLBACK');
			$other->quit;
			is(end_command($move), 0, 'the move goes on') or diag($move->{err});
			complete();
		}
	}
};

subtest '--resume tells for how long writes were blocked' => sub {
	my ($move, $writer) = hold_fence([q{INSERT INTO insta5.users (name) VALUES ('x')}], '--timeout', '60s');
	await('the source is closed',
		sub { $from->safe_psql('postgres', 'SELECT step FROM snowflake_move_5.state') eq 'fenced' });
	kill_command($move->{run});
	$from->safe_psql('postgres', q{UPDATE snowflake_move_5.state SET closed_at = closed_at - interval '1 hour'});
	$writer->quit;
	($status, $out, $err) = run_shard($program, 'move', 'insta5', '--from', $from, '--to', $to, '--resume');
	is($status, 0, '--resume') or diag($err);
	like($err, qr/writes were blocked for 36\d{5} ms/, 'since the fence was raised');
	complete();
};

subtest 'a session of the command is no obstacle of its next move' => sub {
	my @move = ('insta5', '--from', $from, '--to', $to, '--timeout', '1s', '--dry-run');
	foreach my $name ('snowflake-shard', 'other')
	{
		local $ENV{PGAPPNAME} = $name;
		my $session = $from->background_psql('postgres');
		$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT');
		await('it is old', sub { $from->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity
			WHERE application_name = '$name' AND clock_timestamp() - xact_start > interval '1.5 s'") ne '0' });
		delete local $ENV{PGAPPNAME};
		is((run_shard($program, 'move', @move))[0], $name eq 'other' ? 1 : 0, "an old transaction of application $name");
		$session->quit;
	}
};

subtest '--undo that is not possible' => sub {
	my @servers = ('--from', $from, '--to', $to);
	my ($here, $there) = map { qr/\S+:${\$_->port}\/postgres/ } $from, $to;
	($status, undef, $err) = run_shard($program, 'move', 'insta5', @servers, '--undo');
	is($status, 3, 'of a shard that never moved: exit code 3');
	like($err, qr/shard 5, schema insta5, is at $here, and $there has no record of a move: there is nothing to undo/,
		'and the error says where it is') or diag($err);
	is((run_shard($program, 'move', 'insta5', @servers, '--reversible'))[0], 0, 'a move with reverse replication');
	$to->safe_psql('postgres', 'ALTER TABLE insta5.users ADD COLUMN more integer');
	($status, undef, $err) = run_shard($program, 'move', 'insta5', @servers, '--undo');
	is($status, 3, 'after a change of the definition on the target: exit code 3');
	unlike($err, qr/--abort/, 'the error names no --abort');
	my @commands =
		$err =~ /HINT:  (snowflake-shard .*?) stops reverse replication, and drops the rows that followed\. Then (snowflake-shard .*?) moves the shard/;
	is(scalar @commands, 2, 'and two commands') or diag($err);
	foreach my $command (@commands)
	{
		is((run_shard('sh', '-c', $command =~ s/^snowflake-shard/$program/r))[0], 0, 'which can be pasted');
	}
	is($from->safe_psql('postgres', 'SELECT count(more) FROM insta5.users'), '0', 'the shard is back, with the change');
};

$_->stop foreach $one, $two;
done_testing();
