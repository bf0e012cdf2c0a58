# After a crash no ID is repeated, and each is greater than each one seen before it: under
# load, with checkpoints at random, whatever was only in memory.
#
# Two things protect an ID that was seen. The lease in the WAL protects committed IDs, whatever the
# clock says after the crash; so one part of this test sets the clock back at every crash. The clock
# protects IDs that were not committed or not flushed; if such an ID is ahead of the clock, its WAL
# record is flushed before a client sees it. So the other parts leave the clock alone, run far ahead
# of it, and commit asynchronously.

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

# Load, a crash at a random moment, recovery; repeated. $end ends the server and brings it back.
# nextval() goes through the same crashes.
sub crash_cycles
{
	my ($fault, $node, $clients, $end, %row) = @_;
	my $cycles = trials(5, 1000);
	$node->safe_psql('postgres', 'CREATE SEQUENCE core_s');
	my $native = observe($node, clients => $clients, arguments => [ '--checkpoint', 50 ]);
	my $core = observe($node, generator => 'nextval', sequence => 'core_s',
		clients => [ 'mixed:300', 'single', 'single' ]);
	foreach my $cycle (1 .. $cycles)
	{
		show_progress($fault, $cycle, $cycles);
		await_draws($_) foreach $native, $core;
		usleep(int rand 200_000);
		$end->($node);
	}
	report_beside_core($fault, $cycles, [ $native, $core ], %row);
	return;
}

# The clock is right. Half of the clients commit asynchronously, and a long lead makes IDs that the
# clock does not reach before the server is up again.
subtest 'crashes of the server, or of one of its backends' => sub {
	my $node = new_server('ahead', conf => "snowflake.max_lead = '10min'\n");
	my @clients = ('single', 'mixed:300', 'mixed:1000:asynchronous', 'next_ids:20000:asynchronous');
	crash_cycles('kill -9 of the server', $node, \@clients,
		sub { crash($_[0]); $_[0]->start });

	# One process is killed and the postmaster reinitializes, so shared memory is lost, too.
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
};

subtest 'the clock goes back at each crash, by more than recovery and any lead take' => sub {
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
};

# After setval(..., false) the value itself is the next to be issued. Issuing it must be logged,
# although the position does not move.
subtest 'a value that setval() left to be made, and a crash' => sub {
	my $node = new_server('not_called');
	$node->safe_psql('postgres',
		q{SELECT setval('s', (extract(epoch FROM now() + '10 s') * 1000)::bigint << 10, false)});
	my $before = draw($node);
	crash($node);
	$node->start;
	are_later('a value that setval() left to be made is made once', [$before], [ draw($node) ]);
	$node->stop;
};

# An advance is durable when its transaction has committed, and so are the IDs drawn after it.
subtest 'an advance, and a crash' => sub {
	my $node = new_server('advanced');
	my $past = $node->safe_psql('postgres', q{SELECT snowflake_encode(now() + '10 s', 5, 0)});
	$node->safe_psql('postgres', "SELECT snowflake_advance('s', $past)");
	crash($node);
	$node->start;
	my $drawn = draw($node);
	are_later('an advance outlasts a crash', [$past], [$drawn]);
	crash($node);
	$node->start;
	are_later('an ID drawn after an advance is made once', [$drawn], [ draw($node) ]);
	$node->stop;
};

done_testing();
