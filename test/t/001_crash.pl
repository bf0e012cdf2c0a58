# After a crash no ID comes again, and each is greater than all that were seen before it: under load,
# with checkpoints at any moment, whatever the processes had in memory.
#
# Two things protect an ID that was seen. The lease in the WAL protects what has committed, whatever
# the clock says afterwards; so one part of this test sets the clock back at every crash. The clock
# protects what has not committed or not been flushed; where such an ID runs ahead of the clock, a
# flush has to; so the other parts leave the clock alone, run far ahead of it, and flush nothing.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

seed_random();

# Load, a crash at a random moment, recovery; over and over. $end tells how the server ends and comes
# back. Core's nextval() goes through the same crashes.
sub crash_cycles
{
	my ($fault, $node, $clients, $end, %row) = @_;
	my $cycles = trials(20, 1000);
	$node->safe_psql('postgres', 'CREATE SEQUENCE core_s');
	my $native = observe($node, clients => $clients, arguments => [ '--checkpoint', 50 ]);
	my $core = observe($node, generator => 'nextval', sequence => 'core_s',
		clients => [ 'mixed:300', 'single', 'single' ]);
	foreach my $cycle (1 .. $cycles)
	{
		show_progress($fault, $cycle, $cycles);
		await_draws($_) foreach $native, $core;
		usleep(int rand 400_000);
		$end->($node);
	}
	report_beside_core($fault, $cycles, [ $native, $core ], %row);
	return;
}

# The clock runs on. Half of the clients don't flush, and a long lead makes IDs that the clock won't
# reach before the server is up again.
{
	my $node = new_server('ahead', conf => "snowflake.max_lead = '10min'\n");
	my @clients = ('single', 'mixed:300', 'mixed:1000:asynchronous', 'next_ids:20000:asynchronous');
	crash_cycles('kill -9 of the server', $node, \@clients,
		sub { crash($_[0]); $_[0]->start });

	# One process dies, and the postmaster starts all over: what was in shared memory is lost too.
	$node->append_conf('postgresql.conf', 'restart_after_crash = on');
	$node->reload;
	$node->safe_psql('postgres', 'DROP SEQUENCE core_s');
	crash_cycles('kill -9 of one backend', $node, \@clients,
		sub {
			my ($node) = @_;
			my $victim = $node->safe_psql('postgres',
				q{SELECT pid FROM pg_stat_activity
				  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
				  ORDER BY random() LIMIT 1});
			my $log_length = -s $node->logfile;
			kill 'KILL', $victim;
			$node->wait_for_log(qr/ready to accept connections/, $log_length);
		});
	$node->stop;
}

# The clock goes back at each crash, by more than recovery and any lead last.
SKIP:
{
	skip 'libfaketime is not installed', 1 unless libfaketime();
	my $clock = new_clock();
	my $node = new_server('back', clock => $clock, conf => "snowflake.max_drift = -1\n");
	crash_cycles(
		'kill -9 of the server, and the clock goes back',
		$node,
		[ 'single', 'mixed:300', 'rows:300', 'next_ids:20000' ],
		sub {
			crash($_[0]);
			set_clock($clock, $clock->{offset} - 60 - rand 300);
			start_server($_[0], $clock);
		},
		only_committed => 1);
	$node->stop;
}

# setval(..., false) says that the value itself is still to be made. Once it has been made, that must
# be logged, though the position has not moved.
{
	my $node = new_server('not_called');
	$node->safe_psql('postgres',
		q{SELECT setval('s', (extract(epoch FROM now() + '10 s') * 1000)::bigint << 10, false)});
	my $before = draw($node);
	crash($node);
	$node->start;
	are_later('a value that setval() left to be made is made once', [$before], [ draw($node) ]);
	$node->stop;
}

# snowflake_advance() past an ID, where setval() is beyond it already, keeps what setval() has stored: the
# page stays as it was but for that, and that has to be logged too.
{
	my $node = new_server('advanced');
	my $past = $node->safe_psql('postgres', q{SELECT snowflake_encode(now() + '3 s', 5, 0)});
	$node->safe_psql('postgres',
		q{SELECT setval('s', (extract(epoch FROM now() + '3200 ms') * 1000)::bigint << 10)});
	$node->safe_psql('postgres', "SELECT snowflake_advance('s', $past)");
	crash($node);
	$node->start;
	$node->safe_psql('postgres', 'ALTER SEQUENCE s RESTART');
	are_later('what snowflake_advance() has kept outlasts a crash', [$past], [ draw($node) ]);
	$node->stop;
}

done_testing();
