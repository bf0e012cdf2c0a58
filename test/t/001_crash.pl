# After a crash no ID comes again, and each is greater than all that were seen before it: under load,
# with checkpoints at any moment, whatever the processes had in memory.
#
# Two things protect an ID that was seen. The lease in the WAL protects what has committed, whatever
# the clock says afterwards; so one part of this test sets the clock back at every crash. The clock
# protects what has not committed or not been flushed; where such an ID runs ahead of the clock, a
# flush has to; so the other part leaves the clock alone, runs far ahead of it, and flushes nothing.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

seed_random();

my $single = q{SELECT snowflake_next_id(5, 's');};
my $statement = q{SELECT snowflake_next_id(5, 's') FROM generate_series(1, 300);};
my $block = q{SELECT snowflake_next_ids(5, 's', 100);};
my $burst = q{SELECT max(id) FROM snowflake_next_ids(5, 's', 100000) AS id;};
my $rolled_back = join ' ', 'BEGIN;', $single, 'SAVEPOINT a;', $single, 'ROLLBACK TO a;', $single,
  'ROLLBACK;';

# What a client does that makes checkpoints at random moments.
sub checkpoints
{
	return [ map { (sprintf('SELECT pg_sleep(%.3f);', rand 0.05), 'CHECKPOINT;') } 1 .. 20 ];
}

# Load, a crash at a random moment, recovery; several times. $load tells what the clients do, $end
# how the server ends and comes back.
sub crash_cycles
{
	my ($name, $node, $cycles, $load, $end) = @_;
	my @earlier;
	my @sessions;
	foreach my $cycle (1 .. $cycles)
	{
		my @clients = start_clients($node, @$load, checkpoints());
		usleep(int rand 400_000);
		$end->($node);
		my @seen = seen_by_clients("$name, cycle $cycle: clients met no error but the crash", @clients);
		my $first_after = draw($node);
		are_later("$name, cycle $cycle: IDs of the cycle are later than all before it",
			\@earlier, [ map { $_->[0] } @seen ])
		  if @earlier;
		@earlier = map { $_->[-1] } @seen;
		are_later("$name, cycle $cycle: the first ID after the crash is later than all seen",
			\@earlier, [$first_after]);
		push @earlier, $first_after;
		push @sessions, @seen, [$first_after];
	}
	is_strictly_increasing("$name: all IDs seen are distinct, and increase in each session",
		@sessions);
	return;
}

# The clock runs on. No commit and no rollback flushes, and a long lead makes IDs that the clock won't
# reach before the server is up again.
{
	my $node = new_server('ahead',
		conf => "snowflake.max_lead = '10min'\nsynchronous_commit = off\n");
	crash_cycles('clock runs on', $node, 5,
		[ [$single], [ $statement, $burst ], [$rolled_back], [ $burst, $block ] ],
		sub { crash($_[0]); $_[0]->start });

	# One process dies, and the postmaster starts all over: what was in shared memory is lost too.
	$node->append_conf('postgresql.conf', 'restart_after_crash = on');
	$node->reload;
	crash_cycles(
		'one backend killed',
		$node, 2,
		[ [$single], [$block], [$rolled_back], [ $burst, $single ] ],
		sub {
			my ($node) = @_;
			my $victim = $node->safe_psql('postgres',
				q{SELECT pid FROM pg_stat_activity
				  WHERE application_name = 'snowflake_client' ORDER BY random() LIMIT 1});
			my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
			kill 'KILL', $victim;
			$node->poll_query_until('postgres',
				qq{SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $victim
				   AND application_name = 'snowflake_client'})
			  or die 'the server did not come back';
		});
	$node->stop;
}

# The clock goes back at each crash, by more than recovery and any lead last. Clients see an ID only
# after its commit.
SKIP:
{
	skip 'libfaketime is not installed', 1 unless libfaketime();
	my $clock = new_clock();
	my $node = new_server('back', clock => $clock);
	crash_cycles(
		'clock goes back',
		$node, 5,
		[ [$single], [$statement], [ $block, $single ], [ $burst, $single ] ],
		sub {
			crash($_[0]);
			set_clock($clock, $clock->{offset} - 60 - rand 300);
			start_server($_[0], $clock);
		});
	$node->stop;
}

done_testing();
