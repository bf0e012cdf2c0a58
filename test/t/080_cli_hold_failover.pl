# From PostgreSQL 17 on the slot of a set that is held, and that of reverse replication, survive a failover of their server:
# its standby has a copy of the slot, and the other server follows the promoted standby at the same address. If the promoted
# server lacks changes that the other one has, this is found before anything is opened.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use MoveTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
seed_random();

my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\nwal_retrieve_retry_interval = 200ms\n"
	. "hot_standby_feedback = on\n";
my %settings = (init => { allows_streaming => 1 }, conf => $conf);
my ($one, $two) = map { new_server($_, %settings) } qw(one two);
plan skip_all => 'slots survive a failover from PostgreSQL 17 on' if $one->pg_version < 17;

# The standby of a server, with a copy of its slots.
sub new_standby
{
	my ($primary, $name) = @_;
	$primary->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('$name')");
	my $backup = "of_$name";
	$primary->backup($backup);
	my $standby = PostgreSQL::Test::Cluster->new($name);
	$standby->init_from_backup($primary, $backup, has_streaming => 1);
	my $conninfo = $primary->connstr('postgres');
	$standby->append_conf('postgresql.conf', qq{
		primary_conninfo = '@{[ $conninfo =~ s/'/''/gr ]} application_name=$name'
		primary_slot_name = '$name'
		sync_replication_slots = on});
	$standby->start;
	return $standby;
}

sub await_slot
{
	my ($standby) = @_;
	my $slots = 'SELECT count(*) FROM pg_replication_slots WHERE synced AND NOT temporary AND invalidation_reason IS NULL';
	await('the slot is on the standby', sub { $standby->safe_psql('postgres', $slots) eq '1' });
	return;
}

# From now on the other server gets no change that this standby lacks.
sub synchronize
{
	my ($primary, $standby) = @_;
	$primary->append_conf('postgresql.conf', "synchronized_standby_slots = '" . $standby->name . "'");
	$primary->reload;
	return $standby;
}

sub fail_over
{
	my ($primary, $standby) = @_;
	await_slot($standby);
	$primary->wait_for_catchup($standby);
	$primary->stop('immediate');
	$standby->promote;
	return take_port($primary, $standby);
}

# To a standby that lacks what the script writes to the primary, and that the other server has.
sub lose
{
	my ($primary, $standby, $script, $arrived) = @_;
	await_slot($standby);
	$primary->wait_for_catchup($standby);
	$standby->stop;
	$primary->safe_psql('postgres', $script);
	await('the other server has it', sub { $arrived->() });
	$primary->stop('immediate');
	$standby->start;
	$standby->promote;
	return take_port($primary, $standby);
}

# The standby takes the port of its primary.
sub take_port
{
	my ($primary, $standby) = @_;
	my $port = $primary->port;
	my ($host) = $primary->host;
	$standby->append_conf('postgresql.conf',
		"port = $port\nunix_socket_directories = '$host'\nsynchronized_standby_slots = ''\nprimary_slot_name = ''");
	$standby->restart;
	@{$standby}{qw(_port _host)} = ($port, $host);
	return $standby;
}

sub findings
{
	my (undef, $found) = shard_json($program, 'verify', @_);
	return join "\n", map { "$_->{finding}: $_->{problem}" } @$found;
}

my $insert = "INSERT INTO insta5.t (v) SELECT 'x' FROM generate_series(1, 100)";
my $count = 'SELECT count(*) FROM insta5.t';
$one->safe_psql('postgres', "SELECT snowflake_create_shard(5, 'insta5');
	CREATE TABLE insta5.t (id bigint PRIMARY KEY DEFAULT insta5.next_id(), v text); $insert");

subtest 'a set that is held' => sub {
	moves([ $one, $two, '--hold', '--reversible' ], 'held', 'held');
	is(findings($one, $two), '', 'verify finds nothing where no standby is known');
	$one->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('other')");
	is(findings($one, $two),
		'held: synchronized_standby_slots is empty, so after a failover the other server can have changes that this one has not',
		'verify tells of a standby that is not waited for');
	$one->safe_psql('postgres', "SELECT pg_drop_replication_slot('other')");
	my $standby = synchronize($one, new_standby($one, 'standby1'));
	is(findings($one, $two), '', 'nor with such a standby');
	$one->safe_psql('postgres', $insert);
	$one = fail_over($one, $standby);
	$one->safe_psql('postgres', $insert);
	moves([ $one, $two, '--cutover' ], 'moved with reverse replication', '--cutover after the failover');
	is($two->safe_psql('postgres', $count), '300', 'all rows are there');
};

subtest 'reverse replication' => sub {
	my $standby = synchronize($two, new_standby($two, 'standby2'));
	$two->safe_psql('postgres', $insert);
	$two = fail_over($two, $standby);
	$two->safe_psql('postgres', $insert);
	moves([ $one, $two, '--undo' ], 'undone', '--undo after the failover');
	is($one->safe_psql('postgres', $count), '500', 'all rows are there');
};

subtest 'a slot that would not survive' => sub {
	moves([ $one, $two, '--complete' ], 'dropped', '--complete');
	moves([ $one, $two, '--hold' ], 'held', 'held');
	$two->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 DISABLE');
	await('the subscription is disabled', sub {
		return $two->psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 SET (failover = false)') == 0 });
	$two->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 ENABLE');
	$one->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('other')");
	await('it follows', sub { findings($one, $two) !~ /does not read/ });
	like(findings($one, $two), qr/^held: slot \S+ would not survive a failover of this server$/, 'verify names it');
	moves([ $one, $two, '--abort' ], 'aborted', '--abort');
};

my $id = qr/system \d+, timeline \w{8}/;
my $changed = qr/has changed since the other server began to follow it, and each of them may lack changes of the other: it was $id, and is $id/;
my $differ = qr/the rows differ, and nothing was opened\..*\n    table insta5\.t: .* more differences$/m;

# The slot, as the server that follows reads it.
sub behind
{
	my ($sender) = @_;
	my $slot = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint FROM pg_replication_slots
		WHERE slot_name ~ '^snowflake_move_5_' AND active";
	return $sender->safe_psql('postgres', "SELECT coalesce(($slot), 1)");
}

subtest 'reverse replication, and a standby that lacks changes' => sub {
	moves([ $one, $two, '--reversible' ], 'moved with reverse replication', 'moved');
	my $rows = $one->safe_psql('postgres', $count);
	$two = lose($two, new_standby($two, 'standby3'), $insert,
		sub { $one->safe_psql('postgres', $count) == $rows + 100 });
	# Changes that clients see committed, below the position of the server that follows.
	$two->safe_psql('postgres', "INSERT INTO insta5.t (v) SELECT 'y' FROM generate_series(1, 20)");
	$two->safe_psql('postgres', "UPDATE insta5.t SET v = 'y' WHERE id IN (SELECT id FROM insta5.t ORDER BY id LIMIT 100)");
	$two->safe_psql('postgres', 'SELECT pg_switch_wal()');
	my $probe = $two->safe_psql('postgres', q{INSERT INTO insta5.t (v) VALUES ('probe') RETURNING id});
	await('it follows', sub { $one->safe_psql('postgres', "SELECT count(*) FROM insta5.t WHERE id = $probe") eq '1' });
	like(findings($one, $two), qr/^reverse replication: the server $changed$/m, 'verify tells');
	is_refused([ $one, $two, '--undo' ], $differ, '--undo is refused');
	like($move_error, qr/:${\$two->port}\/postgres $changed\. So all rows are compared/, 'and says why all rows were compared');
	my ($note) = map { $_->{hint} =~ /If they are equal: (.*)/ } @{ (shard_json($program, 'verify', $one, $two))[1] };
	$two->safe_psql('postgres', $note);
	unlike(findings($one, $two), $changed, 'the statement of the hint says that they are equal');
	is_refused([ $one, $two, '--undo' ], $differ, '--undo is refused all the same');
	like($move_error, $changed, 'because the server that follows has a note, too');
	moves([ $one, $two, '--complete' ], 'dropped', '--complete');
};

subtest 'a set that is held, and a standby that lacks changes' => sub {
	moves([ $two, $one, '--hold' ], 'held', 'held');
	my $rows = $one->safe_psql('postgres', $count);
	$two = lose($two, new_standby($two, 'standby4'), $insert,
		sub { $one->safe_psql('postgres', $count) == $rows + 100 });
	await('it is ahead', sub { behind($two) < 0 });
	my $found = findings($one, $two);
	like($found, qr/^held: the server $changed$/m, 'verify tells');
	like($found, qr/^held: server \S+ does not follow shard 5: it is ahead by \d+ \w+, as after a failover/m, 'and that it is ahead');
	is_refused([ $two, $one, '--cutover', '--verify', '0' ], $differ, '--cutover is refused, whatever --verify says');
	moves([ $two, $one, '--abort' ], 'aborted', '--abort');
};

subtest 'the standby lacks changes of other tables alone' => sub {
	$two->safe_psql('postgres', 'CREATE TABLE other (v text)');
	moves([ $two, $one, '--hold' ], 'held', 'held');
	my $standby = new_standby($two, 'standby5');
	my $lost = q{INSERT INTO other SELECT repeat('x', 1000) FROM generate_series(1, 3000);
		INSERT INTO insta5.t (v) VALUES ('gone'); DELETE FROM insta5.t WHERE v = 'gone'};
	$two = lose($two, $standby, $lost, sub { behind($two) == 0 });
	await('it is ahead', sub { behind($two) < 0 });
	moves([ $two, $one, '--hold' ], 'held', '--hold');
	like($move_error, qr/:${\$one->port}\/postgres is ahead of \S+ by \d+ \w+ of WAL, which is filled up now/, 'waits until changes are sent');
	is(findings($one, $two), '', 'verify is content');
	$two->safe_psql('postgres', $insert);
	my $rows = $two->safe_psql('postgres', $count);
	moves([ $two, $one, '--cutover', '--verify', '0' ], 'moved', '--cutover');
	is($one->safe_psql('postgres', $count), $rows, 'all rows are there');
};

$_->stop foreach $one, $two;
done_testing();
