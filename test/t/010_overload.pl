# More clients than the machine has processors ask for more IDs than a sequence can give, and are
# cancelled, timed out and terminated while they draw and while they wait for the clock. No ID is
# repeated or out of order, every wait can be interrupted, and no lock or pin is left behind. The
# PL/pgSQL original goes through the same.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Debugger;
use FaultTest;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

seed_random();

# Without a lead a draw waits for the next millisecond if the present one is used up.
my $node = new_server('overload', conf => "snowflake.max_lead = 0\n");
create_original($node);

# SQL that calls $function for one random client of either generator, preferably one that waits for
# the clock.
sub one_client
{
	my ($function) = @_;
	return sprintf q{
		SELECT count(%s(pid)) FROM (
			SELECT pid FROM pg_stat_activity WHERE application_name = 'snowflake_observer'
			ORDER BY random() < 0.5 AND coalesce(wait_event, '') IN ('Extension', 'SnowflakePace') DESC,
				random()
			LIMIT 1) AS victim}, $function;
}

sub set_timeout_of_others
{
	my ($ms) = @_;
	local $ENV{PGOPTIONS} = '-c statement_timeout=0';
	$node->safe_psql('postgres',
		"ALTER SYSTEM SET statement_timeout = $ms; SELECT pg_reload_conf()");
	return;
}

# The disturbances of the clients, and the log message that shows that a client was hit.
my %disturbances = (
	'statements cancelled' => [
		qr/canceling statement due to user request/,
		sub {
			$node->safe_psql('postgres', one_client('pg_cancel_backend'));
		}
	],
	'sessions terminated' => [
		qr/terminating connection due to administrator command/,
		sub {
			$node->safe_psql('postgres', one_client('pg_terminate_backend'));
		}
	],
	'statement_timeout' => [
		qr/canceling statement due to statement timeout/,
		sub {
			set_timeout_of_others(1 + int rand 20);
			usleep(int rand 50_000);
			set_timeout_of_others(0);
		}
	]);

my @clients = ('single', 'statement:5000', 'next_ids:5000', 'rows:300', ('mixed:1000') x 4);
my ($ids, $rivals) = $ENV{SNOWFLAKE_TEST_LONG} ? (10_000_000, 8) : (100_000, 2);

subtest 'more IDs than the clock gives are asked for, and clients are disturbed' => sub {
	foreach my $name (sort keys %disturbances)
	{
		my ($is_met, $disturb) = @{ $disturbances{$name} };
		my $fault = "more than 1024 IDs/ms asked for, $name";
		my $trials = trials(6, 1000);
		my $log_before = -s $node->logfile;
		my @tolerate = ('--tolerate', '57014');
		my $native = observe($node, clients => \@clients, arguments => \@tolerate);
		my $original = observe(
			$node,
			generator => 'plpgsql', sequence => 'original_s',
			clients => [ ('statement:5000') x $rivals ], arguments => \@tolerate);
		my $trial = 0;
		until ($trial >= $trials
			&& ids_seen($native) >= $ids
			&& slurp_file($node->logfile, $log_before) =~ $is_met)
		{
			show_progress($fault, ++$trial, $trials);
			$disturb->();
			usleep(int rand 20_000);
		}
		await_draws($_) foreach $native, $original;
		report_fault(
			fault => $fault,
			trials => $trial,
			native => findings_of($native),
			rival => 'the PL/pgSQL original',
			rival_findings => findings_of($original));
	}
};

subtest 'clients that were stopped leave nothing' => sub {
	# The clients that were stopped have left no lock and no pin.
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE relation = 's'::regclass}),
		'0', 'no lock is left');
	is(sqlstate($node, 'CHECKPOINT; DROP SEQUENCE s; CREATE SEQUENCE s'),
		'', 'the page can be written, and dropped');
};

subtest 'a cancel ends the wait of a call' => sub {
	# A cancel that arrives while a call waits ends the call there, before it draws. The sequence is so
	# far ahead of the clock, and at the end of a millisecond, that each call has to wait.
	SKIP:
	{
		my $reason = why_no_debugger($node);
		skip $reason, 1 if $reason;
		foreach my $call (q{snowflake_next_id(5, 's')}, q{count(*) FROM snowflake_next_ids(5, 's', 10)})
		{
			$node->safe_psql('postgres',
				q{SELECT snowflake_advance('s', snowflake_encode(now() + interval '30 min', 5, 0))});
			my $position = $node->safe_psql('postgres', 'SELECT last_value FROM s');
			my $session = debugged_session($node);
			ok(run_into($session, "SELECT $call", 'ResetLatch', qr/snowflake/), "$call waits");
			$node->safe_psql('postgres', "SELECT pg_cancel_backend($session->{pid})");
			like(let_go($session), qr/ERROR:\s+57014/, 'a cancel ends the wait');
			is($node->safe_psql('postgres', 'SELECT last_value FROM s'), $position, 'nothing was drawn');
			end_session($session);
		}
	}
};

subtest 'a call that would take half an hour, because a millisecond gives 1024 IDs' => sub {
	foreach my $way (
		[ 'statement_timeout' => q{SET statement_timeout = '100ms'}, '57014' ],
		[ 'pg_cancel_backend()' => '', '57014', 'pg_cancel_backend' ],
		[ 'pg_terminate_backend()' => '', '57P01', 'pg_terminate_backend' ])
	{
		my ($name, $setting, $expected, $function) = @$way;
		my $session = start_program('psql', '-XAtq', '-v', 'VERBOSITY=sqlstate', '-d',
			$node->connstr('postgres'));
		$session->{in} .= "$setting;\nSELECT count(*) FROM snowflake_next_ids(5, 's', 2000000000);\n";
		my $of_session = q{FROM pg_stat_activity
			WHERE state = 'active' AND query LIKE '%2000000000%' AND pid <> pg_backend_pid()};
		if ($function)
		{
			await('it waits', sub {
					$session->{run}->pump_nb;
					return $node->safe_psql('postgres', "SELECT count(*) $of_session") eq '1'; });
			$node->safe_psql('postgres', "SELECT $function(pid) $of_session");
		}
		await('it ends', sub {
				$session->{run}->pump_nb if $session->{run}->pumpable;
				return $session->{out} =~ /\n/; });
		like($session->{out}, qr/(ERROR|FATAL):\s+$expected/, "$name ends a long wait");
		end_session($session);
	}
	is(sqlstate($node, q{CHECKPOINT; DROP SEQUENCE s}), '', 'nothing is left of them either');
};

$node->stop;
done_testing();
