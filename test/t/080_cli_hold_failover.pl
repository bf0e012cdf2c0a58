# From PostgreSQL 17 on the slot of a set that is held, and that of reverse replication, survive a failover of their server:
# its standby has a copy of the slot, and the other server follows the promoted standby at the same address.

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
	$primary->append_conf('postgresql.conf', "synchronized_standby_slots = '$name'");
	$primary->reload;
	return $standby;
}

# The standby takes the port of its primary.
sub fail_over
{
	my ($primary, $standby) = @_;
	my $slots = 'SELECT count(*) FROM pg_replication_slots WHERE synced AND NOT temporary AND invalidation_reason IS NULL';
	await('the slot is on the standby', sub { $standby->safe_psql('postgres', $slots) eq '1' });
	$primary->wait_for_catchup($standby);
	$primary->stop('immediate');
	$standby->promote;
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
	my $standby = new_standby($one, 'standby1');
	is(findings($one, $two), '', 'nor with such a standby');
	$one->safe_psql('postgres', $insert);
	$one = fail_over($one, $standby);
	$one->safe_psql('postgres', $insert);
	moves([ $one, $two, '--cutover' ], 'moved with reverse replication', '--cutover after the failover');
	is($two->safe_psql('postgres', $count), '300', 'all rows are there');
};

subtest 'reverse replication' => sub {
	my $standby = new_standby($two, 'standby2');
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

$_->stop foreach $one, $two;
done_testing();
