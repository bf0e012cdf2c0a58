# Commands that write a sequence, while clients draw from it in several sessions and the server crashes:
# no ID comes again, and none is below one that was seen before.
#
#  - nextval(), setval() forward, ALTER SEQUENCE, SET UNLOGGED and back, snowflake_advance(): always.
#  - setval() back, RESTART, TRUNCATE ... RESTART IDENTITY: for IDs that are not ahead of the clock. So
#    there max_lead is 0, and after a crash the commands wait until the clock has passed the lease.
#  - DROP and CREATE, and a crash while the sequence is UNLOGGED: nothing is promised, and the result
#    is reported.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use IPC::Run;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

seed_random();

# Each command is run on our sequence and on core's. ALTER SEQUENCE locks the sequence until the
# transaction ends: otherwise draws could pass last_value before setval() stores it.
sub setval_from_last_value
{
	my ($value) = @_;
	return "BEGIN; ALTER SEQUENCE %1\$s CACHE 1; SELECT setval('%1\$s', $value) FROM %1\$s; COMMIT;";
}

sub advance_by
{
	my ($ms) = @_;
	return q{SELECT snowflake_advance('%1$s', snowflake_encode(clock_timestamp() + '} . $ms . q{ ms', 5, 0));};
}

my @altered = (
	sub { 'ALTER SEQUENCE %1$s CACHE ' . (1 + int rand 3) . ';' },
	sub { 'BEGIN; ALTER SEQUENCE %1$s RESTART; ROLLBACK;' });
my @forward = (
	@altered,
	sub { q{SELECT nextval('%1$s') FROM generate_series(1, } . (1 + int rand 100) . ');' },
	sub { setval_from_last_value('last_value + ' . int rand 5000) },
	sub { advance_by(-50 + int rand 100) },
	sub { 'ALTER SEQUENCE %1$s SET UNLOGGED;' },
	sub { 'ALTER SEQUENCE %1$s SET LOGGED;' });
my @set_back = (
	@altered,
	sub { setval_from_last_value('greatest(1, last_value - ' . int(rand 100_000) . ')') },
	sub { sprintf q{SELECT setval('%%1$s', 1, %s);}, rand() < 0.5 ? 'true' : 'false' },
	sub { 'ALTER SEQUENCE %1$s RESTART;' },
	sub { 'ALTER SEQUENCE %1$s RESTART WITH ' . (1 + int rand 1e6) . ';' },
	sub { 'TRUNCATE %2$s RESTART IDENTITY;' },
	sub { advance_by(-50 + int rand 50) });
my @made_anew = (
	@forward, @set_back,
	sub { 'BEGIN; DROP SEQUENCE %1$s; CREATE SEQUENCE %1$s OWNED BY %2$s.id; COMMIT;' });

my $sessions = 3;

# Several sessions, each with its own commands in random order, to their end.
sub run_commands
{
	my ($node, $commands, $count) = @_;
	my @running;
	foreach my $session (1 .. $sessions)
	{
		my $script = '';
		foreach (1 .. $count / $sessions)
		{
			my $statement = $commands->[ rand @$commands ]->();
			$script .= sprintf("$statement\n", @$_) foreach [ 's', 't' ], [ 'core_s', 'core_t' ];
		}
		my $output = '';
		push @running, [
			IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ],
				'<', \$script, '>', \$output, '2>', \$output), \$output ];
	}
	my $failed = '';
	foreach my $running (@running)
	{
		$running->[0]->finish;
		$failed .= join '', grep { /^(ERROR|FATAL|PANIC)/ } split /^/, ${ $running->[1] };
	}
	return $failed;
}

# A crash passes over the rest of a lease, so that IDs are ahead of the clock for up to a second.
sub await_clock
{
	my ($node) = @_;
	await('the clock passes the position', sub {
			$node->safe_psql('postgres', q{
				SELECT (last_value >> 10) <= extract(epoch FROM clock_timestamp()) * 1000 FROM s}) eq 't' });
	return;
}

# Options: operations, how many commands; commands; clients; max_lead; before_crash, SQL to be run when
# the commands are over. A sequence may be gone at any time where nothing is promised.
sub command_cycles
{
	my ($name, $fault, %options) = @_;
	my $operations = $options{operations};
	my $node = new_server($name, conf => "snowflake.max_lead = '$options{max_lead}'\n");
	$node->safe_psql('postgres', q{
		CREATE SEQUENCE core_s;
		CREATE TABLE t (id bigint);
		CREATE TABLE core_t (id bigint);
		ALTER SEQUENCE s OWNED BY t.id;
		ALTER SEQUENCE core_s OWNED BY core_t.id});
	my $at_once = $operations > 1_000 ? 300 : 120;
	# Clients rest: the long form keeps every ID in memory, and without rest a sequence that is paced
	# after a crash would not fall behind the clock again.
	my @rest = ('--rest', $options{rest});
	my %row = %{ $options{row} // {} };
	my $native = observe($node, clients => $options{clients},
		arguments => [ '--checkpoint', 50, @rest, $row{nothing_promised} ? ('--tolerate', '42P01') : () ]);
	my $core = observe($node, generator => 'nextval', sequence => 'core_s',
		clients => ['mixed:300'], arguments => [ '--tolerate', '42P01,XX000', @rest ]);
	my $failed = '';
	for (my $done = 0; $done < $operations; $done += $at_once)
	{
		show_progress($fault, $done, $operations);
		await_draws($_) foreach $native, $core;
		await_clock($node) if $options{max_lead} eq '0';
		$failed .= run_commands($node, $options{commands}, $at_once);
		$node->safe_psql('postgres', $options{before_crash} // '');
		await_draws($native);
		usleep(int rand 50_000);
		crash($node);
		$node->start;
	}
	is($failed, '', "$fault: the commands met no error") unless $row{nothing_promised};
	report_beside_core($fault, $operations, [ $native, $core ],
		rival => 'nextval(), which starts over where it is told to', %row);
	$node->stop;
	return;
}

my @bursts = ('single', 'rows:300', 'mixed:1000', 'next_ids:20000');

subtest 'commands that move a sequence forward' => sub {
	command_cycles('forward', 'nextval, setval forward, ALTER, SET LOGGED, advance, crash',
		operations   => trials(240, 50_000),
		commands     => \@forward,
		clients      => \@bursts,
		max_lead     => '1s',
		rest         => 100,
		before_crash => 'ALTER SEQUENCE s SET LOGGED; ALTER SEQUENCE core_s SET LOGGED');
};

subtest 'commands that set it back' => sub {
	command_cycles('set_back', 'setval back, RESTART, TRUNCATE, crash; no ID ahead of the clock',
		operations => trials(240, 50_000),
		commands   => \@set_back,
		clients    => [ 'single', 'rows:20', 'next_ids:20' ],
		max_lead   => '0',
		rest       => 2);
};

subtest 'commands that make it anew' => sub {
	command_cycles('made_anew', 'the same with bursts, DROP, and a crash while it is UNLOGGED',
		operations => trials(120, 10_000),
		commands   => \@made_anew,
		clients    => \@bursts,
		max_lead   => '1s',
		rest       => 100,
		row        => { nothing_promised => 'set back from ahead of the clock, made anew, an unlogged one after a crash' });
};

done_testing();
