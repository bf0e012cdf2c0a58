# A server with global tables is split: the command says beforehand, and at its end, which command gives the new server
# its rows. Until then both servers have one slot, and no change is lost.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use File::Basename qw(dirname);
use IPC::Run;
use ShardTest;
use SnowflakeTest;
use SplitTest;
use Test::More;

my $program = shard_program();
my ($writer, $one, $two) = map { new_server($_, init => { allows_streaming => 1 },
	conf => "wal_level = logical\nmax_wal_senders = 10\nwal_retrieve_retry_interval = 100ms\n") } qw(writer one two);
my ($status, $out, $err);

sub run_verb
{
	($status, $out, $err) = run_shard($program, @_);
	return $status;
}

sub value
{
	my ($node, $sql) = @_;
	return $node->safe_psql('postgres', $sql);
}

# As an operator pastes it into a shell.
sub paste
{
	my ($command) = @_;
	local $ENV{PATH} = dirname($program) . ":$ENV{PATH}";
	return IPC::Run::run([ 'bash', '-c', $command ], '>', \$out, '2>', \$err);
}

sub is_clean
{
	is(run_verb('global', 'verify', @_), 0, 'verify finds nothing') or diag($out . $err);
	return;
}

$writer->safe_psql('postgres', 'CREATE TABLE filters (id integer PRIMARY KEY, amount integer);
	INSERT INTO filters SELECT i, i FROM generate_series(1, 100) AS i');
my $shard = 0;
foreach my $node ($writer, $writer, $one, $one)
{
	my $number = $shard++;
	$node->safe_psql('postgres', "SELECT snowflake_create_shard($number, 'insta$number')");
}
is(run_verb('global', 'add', 'public.filters', '--on', $writer, $one, $two), 0, 'a global table') or diag($out . $err);

my ($half_of_one, $half_of_writer);
subtest 'a follower' => sub {
	$half_of_one = new_standby($one, 'half_of_one');
	my @split = ('split', '--from', $one, '--standby', $half_of_one, '--shards', '3');
	my $command = qr/(snowflake-shard global add --on '\S+ port=${\$writer->port} \S+' '[^']+' '\S+ port=\d+ \S+')\n/;
	is(run_verb(@split, '--dry-run'), 1, 'its subscription is an obstacle');
	my ($disable) = $out =~ /HINT:  (ALTER SUBSCRIPTION snowflake_global_\w+ DISABLE;)/;
	like($err, qr/database postgres follows global tables, .* same slot\. .*\nHINT:  After the split: $command/,
		'and the command for later is told');
	$one->safe_psql('postgres', $disable);
	is(run_verb(@split, '--dry-run'), 0, 'without an obstacle') or diag($out . $err);
	like($err, qr/ same slot\. .*\nHINT:  After the split: $command/, 'it is told, too');
	$writer->safe_psql('postgres', 'UPDATE filters SET amount = 77 WHERE id = 7');
	is(run_verb(@split), 0, 'the split') or diag($out . $err);
	my ($add) = $err =~ /HINT:  Now: $command/;
	ok($add, 'tells the command again') or diag($err);
	run_verb('global', 'verify', $writer, $one, $two, $half_of_one);
	like($out, qr/the subscription of \S+ has the same slot, as after a split/, 'verify finds the slot of two servers');
	ok($add && paste($add), 'the command gives each its own') or diag($out . $err);
	await('the changes since are there', sub { value($half_of_one, 'SELECT amount FROM filters WHERE id = 7') eq '77' });
	is_clean($writer, $one, $two, $half_of_one);
	is(run_verb('split', '--from', $one, '--standby', $half_of_one, '--complete'), 0, 'the split ends')
		or diag($out . $err);
};

subtest 'the writer' => sub {
	$half_of_writer = new_standby($writer, 'half_of_writer');
	my @split = ('split', '--from', $writer, '--standby', $half_of_writer, '--shards', '1');
	my $drop = qr/psql '[^']+' -c 'DROP PUBLICATION snowflake_global'/;
	my $command = qr/($drop && snowflake-shard global add --on '[^']+' '[^']+')\n/;
	is(run_verb(@split, '--dry-run'), 0, 'its slots are no obstacle') or diag($out . $err);
	like($err, qr/database postgres writes global tables, .*\nHINT:  After the split: $command/, 'the command is told');
	# Its standby replays nothing of the split until the command waits for it.
	my $startup = value($half_of_writer, q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'startup'});
	kill 'STOP', $startup;
	my $run = background(@split);
	await('the standby is waited for', sub { has_ended($run) || $run->{err} =~ /standby: waiting, it is behind by/ });
	kill 'CONT', $startup;
	$run->{h}->finish;
	($out, $err) = ($run->{out}, $run->{err});
	is($run->{h}->result(0), 0, 'the split') or diag($out . $err);
	my ($add) = $err =~ /HINT:  Now: $command/;
	ok($add, 'tells the command again') or diag($err);
	is(run_verb('global', 'verify', $writer, $half_of_writer), 3, 'verify finds two writers');
	like($err, qr/ both have publication snowflake_global\n/, 'by their publications');
	ok($add && paste($add), 'the command makes the new server a follower') or diag($out . $err);
	is(sqlstate($half_of_writer, 'DELETE FROM filters'), '25006', 'which refuses writes');
	$writer->safe_psql('postgres', 'UPDATE filters SET amount = 88 WHERE id = 8');
	is_clean($writer, $one, $two, $half_of_one, $half_of_writer);
	is(join(' ', map { value($_, 'SELECT amount FROM filters WHERE id = 8') } $one, $two, $half_of_one, $half_of_writer),
		'88 88 88 88', 'all servers follow');
	is(value($writer, 'SELECT count(*) FROM pg_replication_slots WHERE slot_type = \'logical\''), '4', 'each with a slot');
};

$_->stop foreach $half_of_one, $half_of_writer, $writer, $one, $two;
done_testing();
