# A promoted standby never repeats an ID that its primary made under WAL that the standby has
# received, even if its clock is slow. Before its promotion a standby makes no ID.
#
# That WAL holds a position that is a lease ahead of every ID made under it. A synchronous standby
# has received it for every committed ID. An asynchronous standby may be cut off: IDs made under a
# lease that it has not received are protected by its clock alone.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use File::Path qw(rmtree);
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time usleep);

seed_random();
note('libfaketime is not installed: all clocks are right') unless libfaketime();

my $single = q{SELECT snowflake_next_id(5, 's');};
my $statement = q{SELECT snowflake_next_id(5, 's') FROM generate_series(1, 300);};
my $block = q{SELECT snowflake_next_ids(5, 's', 300);};
my @load = ([$single], [ $statement, $single ], [$block]);

# No replication timeouts, because setting a clock could trigger them.
my %replicated = (
	init => { allows_streaming => 1 },
	conf => "wal_sender_timeout = 0\nwal_receiver_timeout = 0\n");

# Makes $node a streaming standby of $upstream, from a new base backup. Its old data is removed. Its
# clock differs from the system's by $offset seconds.
sub make_standby
{
	my ($node, $upstream, $offset) = @_;
	rmtree($node->data_dir);
	system_or_bail('pg_basebackup', '--checkpoint=fast', '--no-sync', '-D', $node->data_dir, '-d',
		$upstream->connstr);
	$node->append_conf('postgresql.conf', 'port = ' . $node->port);
	$node->enable_streaming($upstream);
	$node->{clock} //= new_clock() if libfaketime();
	set_clock($node->{clock}, $offset) if libfaketime();
	start_server($node, $node->{clock});
	return $node;
}

# Starts clients that repeat their statements until the server ends their sessions. An ID is
# recorded when psql has the whole result: for a statement outside a transaction block, after its
# commit.
sub start_clients
{
	my ($node, @scripts) = @_;
	my @clients;
	foreach my $statements (@scripts)
	{
		my $dir = PostgreSQL::Test::Utils::tempdir();
		my $client = { output => "$dir/ids", stderr => '' };
		append_to_file("$dir/script.sql", join("\n", (@$statements) x int(30_000 / @$statements)));
		$client->{run} = IPC::Run::start(
			[
				'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/script.sql", '-d',
				$node->connstr('postgres') . ' application_name=snowflake_client'
			],
			'<', '/dev/null', '>', $client->{output}, '2>', \$client->{stderr});
		push @clients, $client;
	}
	foreach my $client (@clients)
	{
		await('every client has a result',
			sub { $client->{run}->pump_nb; -s $client->{output} || $client->{stderr} ne '' });
	}
	return @clients;
}

# Terminates the sessions of the clients, if no crash has ended them.
sub stop_clients
{
	my ($node) = @_;
	$node->safe_psql('postgres',
		q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		  WHERE application_name = 'snowflake_client'});
	return;
}

# The IDs of each client that has seen any. $name is the assertion that no client met an error
# before its session was ended from outside. psql exits with 2 if it finds the connection lost, and
# with 3 if a statement finds that.
sub seen_by_clients
{
	my ($name, @clients) = @_;
	my @seen;
	my @trouble;
	foreach my $client (@clients)
	{
		$client->{run}->finish;
		my $status = $client->{run}->result(0);
		push @trouble, "psql ended with status $status: $client->{stderr}"
			unless ($status == 2 || $status == 3) && $client->{stderr} !~ /ERROR:|PANIC:/;
		push @seen, [ grep { $_ ne '' } split /\n/, slurp_file($client->{output}) ];
	}
	is(join("\n", @trouble), '', $name);
	return grep { @$_ } @seen;
}

my $primary = new_server('primary', %replicated);
my $standby = make_standby(PostgreSQL::Test::Cluster->new('standby'), $primary, -20 * 60);
$primary->wait_for_catchup($standby);

subtest 'a standby refuses to write, and reads IDs' => sub {
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
};

subtest 'a standby makes later IDs when it is promoted' => sub {
	# Load on the primary; then the standby receives all of its WAL.
	my @drawing = start_clients($primary, @load);
	usleep(200_000 + int rand 300_000);
	stop_clients($primary);
	my @before = seen_by_clients('clients of the primary met no error', @drawing);
	$primary->wait_for_catchup($standby);

	# IDs that the primary makes now, under its present lease, write no WAL and need none. If a new
	# lease is due just now, or another process writes WAL, try again.
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
};

$standby->stop;

# Stops the walsender, which cuts the standby off, and waits up to 1.5 s, so that leases may run out
# before the crash.
sub cut_off
{
	my ($primary) = @_;
	kill 'STOP', $primary->safe_psql('postgres', 'SELECT pid FROM pg_stat_replication');
	usleep(int rand 1_500_000);
	return;
}

# The same, and then a burst of IDs, which runs ahead of the clock.
sub cut_off_and_burst
{
	my ($primary) = @_;
	cut_off($primary);
	$primary->safe_psql('postgres', q{SELECT max(id) FROM snowflake_next_ids(5, 's', 1000000) AS id});
	usleep(int rand 50_000);
	return;
}

sub forsake_and_cut_off
{
	my ($primary, $standby, @observers) = @_;
	forsake($_) foreach @observers;
	$primary->wait_for_catchup($standby);
	cut_off_and_burst($primary);
	return;
}

my @rest = ('--rest', 5);

# Load, a crash of the primary at a random moment, promotion of its standby, whose clock is slow by
# a random time up to $slow seconds; with two standbys, the second is promoted after the first in
# the same way. Then the clock is set right, and the crashed servers come back as standbys;
# repeated. nextval() goes through the same. Options: name; clients; standbys, their number, each
# following the one before; synchronous; slow; before_death and after_death, called around the crash
# of each primary; row, more for the row of the table.
sub promotions
{
	my ($fault, $trials, %how) = @_;
	my @chain = (new_server("primary_$how{name}", %replicated));
	push @chain, PostgreSQL::Test::Cluster->new("standby_$how{name}_$_") foreach 1 .. $how{standbys};
	my @nodes = @chain;
	my $slow = $how{slow} // 0;
	my $follow =
		sub { make_standby($chain[$_], $chain[ $_ - 1 ], $slow && -rand $slow) foreach @_ };

	$chain[0]->safe_psql('postgres', 'CREATE SEQUENCE core_s');
	if ($how{synchronous})
	{
		# Set before the base backups, so that the standbys have it, too.
		$chain[0]->append_conf('postgresql.conf', "synchronous_standby_names = '*'");
		$chain[0]->reload;
	}
	$follow->(1 .. $#chain);
	my @observers = (
		observe($chain[0], nodes => \@nodes, clients => $how{clients}, arguments => \@rest),
		observe($chain[0], nodes => \@nodes, clients => $how{clients}, arguments => \@rest,
			generator => 'nextval', sequence => 'core_s'));
	await_draws($_) foreach @observers;

	foreach my $trial (1 .. $trials)
	{
		show_progress($fault, $trial, $trials);
		usleep(int rand 400_000);
		$how{before_death}->($chain[0], $chain[1], @observers) if $how{before_death};
		crash($chain[0]);
		$how{after_death}->() if $how{after_death};
		push @chain, shift @chain;
		$chain[0]->promote;

		# The crashed servers come back as soon as no standby is left: clients of a synchronous
		# primary without a standby would wait.
		my $dead = $trial % $how{standbys} == 0 ? $how{standbys} : 0;
		$follow->($#chain - $dead + 1 .. $#chain);
		await_sessions($chain[0], @observers);
		await_draws($_) foreach @observers;
		set_clock($chain[0]{clock}, 0) if $chain[0]{clock} && $dead;
	}
	report_beside_core($fault, $trials, \@observers, %{ $how{row} // {} });
	foreach my $node (@nodes)
	{
		$node->stop('immediate');
		$node->clean_node;
	}
	return;
}

my @clients = ('single', 'mixed:300');
my @any = ('mixed:300', 'mixed:300:asynchronous');

subtest 'an asynchronous standby is cut off, and promoted' => sub {
	# The clock alone: it is right, and the standby is promoted after the longest lead, by default one
	# second. So its IDs are above all others, even those that were never flushed or only seen.
	promotions(
		'an asynchronous standby is cut off, and promoted after max_lead',
		trials(1, 100),
		name         => 'passed',
		standbys     => 1,
		clients      => \@any,
		before_death => \&cut_off_and_burst,
		after_death  => sub {
			my $died = time();
			await('max_lead has passed', sub { time() > $died + 1 });
		});

	# If the standby is promoted earlier, IDs that were ahead of the clock have no protection: they are
	# counted.
	promotions(
		'an asynchronous standby is cut off, and promoted at once',
		trials(1, 100),
		name         => 'early',
		standbys     => 1,
		clients      => \@clients,
		before_death => \&forsake_and_cut_off,
		row          => { not_promised => 'made after the standby was cut off, ahead of the clock' });
};

subtest 'standbys with slow clocks are promoted' => sub {
	SKIP:
	{
		skip 'libfaketime is not installed', 1 unless libfaketime();

		# No client sees a commit that the standby has not confirmed.
		my $sometimes_cut_off = sub { cut_off($_[0]) if rand() < 0.5 };
		promotions(
			'a synchronous standby with a slow clock is promoted',
			trials(2, 300),
			name         => 'synchronous',
			standbys     => 1,
			synchronous  => 1,
			slow         => 40 * 60,
			clients      => \@clients,
			before_death => $sometimes_cut_off,
			row          => { only_committed => 1 });
		promotions(
			'a synchronous standby is promoted, then its own standby, with slow clocks',
			trials(2, 300),
			name         => 'cascaded',
			standbys     => 2,
			synchronous  => 1,
			slow         => 40 * 60,
			clients      => \@clients,
			before_death => $sometimes_cut_off,
			row          => { only_committed => 1 });
		promotions(
			'an asynchronous standby with a slow clock is cut off, and promoted',
			trials(1, 300),
			name         => 'asynchronous',
			standbys     => 1,
			slow         => 40 * 60,
			clients      => \@clients,
			before_death => \&forsake_and_cut_off,
			row          => { not_promised => 'made after the standby was cut off, and its clock is slow' });
	}
};

done_testing();
