# A promoted standby never makes an ID again that its primary made, though its clock is 20 minutes
# slow: what it has received of the WAL is a lease ahead of every ID made under it. A synchronous
# standby has received that for every ID that was committed; an asynchronous one, for those before it
# was cut off. Until its promotion it makes none.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

seed_random();
note('libfaketime is not installed: all clocks are right') unless libfaketime();

my $single = q{SELECT snowflake_next_id(5, 's');};
my $statement = q{SELECT snowflake_next_id(5, 's') FROM generate_series(1, 300);};
my $block = q{SELECT snowflake_next_ids(5, 's', 300);};
my @load = ([$single], [ $statement, $single ], [$block]);

# A streaming standby of $primary, whose clock differs from the system's by $offset seconds.
sub new_standby
{
	my ($name, $primary, $offset) = @_;
	$primary->backup("for_$name");
	my $standby = PostgreSQL::Test::Cluster->new($name);
	$standby->init_from_backup($primary, "for_$name", has_streaming => 1);
	my $clock;
	if (libfaketime())
	{
		$clock = new_clock();
		set_clock($clock, $offset);
	}
	start_server($standby, $clock);
	return $standby;
}

my $primary = new_server('primary', init => { allows_streaming => 1 });
my $standby = new_standby('standby', $primary, -20 * 60);
$primary->wait_for_catchup($standby);

# Before promotion.
my %writing = (
	'snowflake_next_id(shard, seq)'        => q{SELECT snowflake_next_id(5, 's')},
	'snowflake_next_id(shard, seq, epoch)' => q{SELECT snowflake_next_id(5, 's', 0)},
	'snowflake_next_id()'           => q{SET snowflake.shard = 5; SELECT snowflake_next_id()},
	'snowflake_next_ids()'          => q{SELECT snowflake_next_ids(5, 's', 10)},
	'snowflake_advance()'           => q{SELECT snowflake_advance('s', 1)},
	'snowflake_advance(with epoch)' => q{SELECT snowflake_advance('s', 1, 0)});
is(sqlstate($standby, $writing{$_}), '25006', "$_ on a standby is refused as read-only")
  foreach sort keys %writing;
is( sqlstate($standby, q{SELECT * FROM snowflake_decode(1); SELECT snowflake_min_id(now())}),
	'', 'reading IDs works on a standby');

# Load on the primary, then a moment at which the standby has all of its WAL.
my @clients = start_clients($primary, @load);
usleep(200_000 + int rand 300_000);
stop_clients($primary);
my @before = seen_by_clients('clients of the primary met no error', @clients);
$primary->wait_for_catchup($standby);

# What the primary makes after that under its present lease writes no WAL, and needs none. Should a
# new lease be due just now, or something else write, once more.
my @under_lease;
foreach (1 .. 20)
{
	push @before, [ draw($primary) ];
	$primary->wait_for_catchup($standby);
	my @lines = split /\n/, $primary->safe_psql('postgres', q{
		SELECT pg_current_wal_insert_lsn();
		SELECT snowflake_next_ids(5, 's', 10);
		SELECT snowflake_next_id(5, 's');
		SELECT pg_current_wal_insert_lsn();
	});
	my ($lsn_before, $lsn_after) = (shift @lines, pop @lines);
	@under_lease = @lines;
	last if $lsn_before eq $lsn_after;
	push @before, [@lines];
	@under_lease = ();
}
is(scalar @under_lease, 11, 'IDs under a lease write no WAL');

crash($primary);
$standby->promote;
my @after = map { draw($standby) } 1 .. 3;
are_later('the promoted standby: IDs are later than those that the primary made under its lease',
	\@under_lease, \@after);
is_strictly_increasing('primary and promoted standby: all IDs are distinct',
	@before, \@under_lease, \@after);

# With a synchronous standby nobody has to wait for a good moment: the primary dies under load, and
# whatever a client has seen committed does not come again.
my $next = new_standby('next', $standby, -40 * 60);
$standby->append_conf('postgresql.conf', "synchronous_standby_names = 'next'");
$standby->reload;
$standby->poll_query_until('postgres',
	q{SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'})
  or die 'the standby did not become synchronous';
@clients = start_clients($standby, @load);
usleep(300_000 + int rand 900_000);
crash($standby);
my @seen = seen_by_clients('clients met no error but the crash', @clients);
$next->promote;
my @last = map { draw($next) } 1 .. 3;
are_later('a promoted synchronous standby: IDs are later than all that clients saw committed',
	[ map { @$_ } @before, @seen ], \@last);
is_strictly_increasing('two promotions: all IDs are distinct', @seen, \@after, \@last);

$next->stop;
done_testing();
