# Whatever is done to a sequence while clients draw from it, by several sessions at a time and with
# crashes between, no ID comes again and none is below one that was seen before: nextval(), setval()
# in both directions, RESTART, TRUNCATE ... RESTART IDENTITY, other ALTERs, SET UNLOGGED and back,
# snowflake_advance(). A sequence that is dropped and made anew is another one, and the crash of a
# server takes an unlogged one back to its start: those two are tried as well, and what comes of them
# is reported as what is not promised.

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

# Each is done to our sequence and to core's, both at the same time. setval() forward goes some
# milliseconds beyond the clock, which is as far as a burst goes.
my @kept = (
	[ 'nextval'          => sub { q{SELECT nextval('%1$s') FROM generate_series(1, } . (1 + int rand 100) . ');' } ],
	[ 'setval forward'   => sub { q{SELECT setval('%1$s', last_value + } . int(rand 5000) . ') FROM %1$s;' } ],
	[ 'setval back'      => sub { q{SELECT setval('%1$s', greatest(1, last_value - } . int(rand 100_000) . ')) FROM %1$s;' } ],
	[ 'setval to 1'      => sub { sprintf q{SELECT setval('%%1$s', 1, %s);}, rand() < 0.5 ? 'true' : 'false' } ],
	[ 'RESTART'          => sub { 'ALTER SEQUENCE %1$s RESTART;' } ],
	[ 'RESTART rolled back' => sub { 'BEGIN; ALTER SEQUENCE %1$s RESTART; ROLLBACK;' } ],
	[ 'RESTART WITH'     => sub { 'ALTER SEQUENCE %1$s RESTART WITH ' . (1 + int rand 1e6) . ';' } ],
	[ 'TRUNCATE RESTART' => sub { 'TRUNCATE %2$s RESTART IDENTITY;' } ],
	[ 'snowflake_advance' => sub { q{SELECT snowflake_advance('%1$s', snowflake_encode(clock_timestamp() + '} . (-50 + int rand 100) . q{ ms', 5, 0));} } ],
	[ 'CACHE'            => sub { 'ALTER SEQUENCE %1$s CACHE ' . (1 + int rand 3) . ';' } ],
	[ 'SET UNLOGGED'     => sub { 'ALTER SEQUENCE %1$s SET UNLOGGED;' } ],
	[ 'SET LOGGED'       => sub { 'ALTER SEQUENCE %1$s SET LOGGED;' } ]);
my @made_anew = (
	@kept,
	[ 'DROP, CREATE' => sub { 'BEGIN; DROP SEQUENCE %1$s; CREATE SEQUENCE %1$s OWNED BY %2$s.id; COMMIT;' } ]);

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
			my $statement = $commands->[ rand @$commands ]->[1]->();
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

# A crash passes over the rest of a lease, up to a second. Crashes that come faster than that would
# drive the position further ahead of the clock than it is kept when it is set back.
sub await_clock
{
	my ($node) = @_;
	await('the clock comes up', sub {
			$node->safe_psql('postgres', q{
				SELECT (last_value >> 10) < extract(epoch FROM clock_timestamp() + '2 s') * 1000 FROM s}) eq 't' });
	return;
}

# $before_crash is run when the commands are over; a sequence may be gone at any time.
sub command_cycles
{
	my ($name, $fault, $operations, $commands, $before_crash, %row) = @_;
	my $node = new_server($name);
	$node->safe_psql('postgres', q{
		CREATE SEQUENCE core_s;
		CREATE TABLE t (id bigint);
		CREATE TABLE core_t (id bigint);
		ALTER SEQUENCE s OWNED BY t.id;
		ALTER SEQUENCE core_s OWNED BY core_t.id});
	my $is_long = $operations > 1_000;
	my $at_once = $is_long ? 300 : 120;
	# Every ID is kept in memory: without rest the long form would take tens of gigabytes.
	my @rest = $is_long ? ('--rest', 100) : ();
	my $native = observe($node,
		clients => [ 'single', 'rows:300', 'mixed:1000', 'next_ids:20000' ],
		arguments => [ '--checkpoint', 50, @rest, $row{nothing_promised} ? ('--tolerate', '42P01') : () ]);
	my $core = observe($node, generator => 'nextval', sequence => 'core_s',
		clients => ['mixed:300'], arguments => [ '--tolerate', '42P01,XX000', @rest ]);
	my $failed = '';
	for (my $done = 0; $done < $operations; $done += $at_once)
	{
		show_progress($fault, $done, $operations);
		await_draws($_) foreach $native, $core;
		$failed .= run_commands($node, $commands, $at_once);
		$node->safe_psql('postgres', $before_crash);
		await_draws($native);
		await_clock($node) unless $row{nothing_promised};
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

command_cycles('kept', 'nextval, setval, RESTART, TRUNCATE, SET LOGGED, crash',
	trials(1000, 100_000), \@kept,
	'ALTER SEQUENCE s SET LOGGED; ALTER SEQUENCE core_s SET LOGGED');
command_cycles('made_anew', 'the same with DROP, and a crash while it is UNLOGGED',
	trials(240, 10_000), \@made_anew, '',
	nothing_promised => 'a sequence made anew, an unlogged one after a crash');

done_testing();
