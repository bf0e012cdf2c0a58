# IDs stay distinct and increase, whatever the clock does. It steps back and forth under load, and
# back while the server is down; IDs go on from the last position. If the clock is behind by more
# than snowflake.max_drift, drawing an ID is an error, and the sequence stays as it was.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time usleep);

plan skip_all => 'libfaketime is not installed' unless libfaketime();

my $minute = 60;
my $hour = 3600;

my $clock = new_clock();
my $node = new_server('stepping', clock => $clock, conf => "snowflake.max_drift = '3h'\n");

sub seconds_off
{
	my ($query) = @_;
	return $node->safe_psql('postgres', "SELECT extract(epoch FROM $query)") - time();
}

my @drawn;
subtest 'IDs follow the clock forward, and go on after a step back' => sub {
	set_clock($clock, -$hour);
	cmp_ok(abs(seconds_off('clock_timestamp()') + $hour), '<', $minute, 'the test can set the clock');
	set_clock($clock, 0);

	# IDs follow the clock forward.
	@drawn = (draw($node));
	set_clock($clock, $hour);
	push @drawn, draw($node);
	cmp_ok(abs(seconds_off("snowflake_timestamp($drawn[-1])") - $hour), '<', $minute,
		'IDs follow the clock forward');
	set_clock($clock, -40 * $minute);
	push @drawn, map { draw($node) } 1 .. 2;

	# After a step back IDs carry the time of the last position, which moves on with the IDs, not with
	# the clock. So they still carry the time before the step, an hour ahead.
	cmp_ok(abs(seconds_off("snowflake_timestamp($drawn[-1])") - $hour), '<', $minute,
		'after a step back IDs go on from the last position');
};

subtest 'the clock goes back while the server is down' => sub {
	$node->stop;
	set_clock($clock, -$hour);
	start_server($node, $clock);
	my $next = draw($node);
	are_later('the clock went back while the server was down: IDs are later', \@drawn, [$next]);
	push @drawn, $next;
};

# The clock is about two hours behind the sequence now.
my %call = (
	'snowflake_next_id()'  => q{SELECT snowflake_next_id(5, 's')},
	'snowflake_next_ids()' => q{SELECT snowflake_next_ids(5, 's', 10)});

subtest 'a clock behind by more than max_drift is an error' => sub {
	my $state = q{SELECT last_value, log_cnt, is_called, pg_relation_filenode('s') FROM s};
	foreach my $function (sort keys %call)
	{
		my $before = $node->safe_psql('postgres', $state);
		is(sqlstate($node, "SET snowflake.max_drift = '110min'; $call{$function}"),
			'55000', "$function with the clock behind by more than max_drift is an error");
		is($node->safe_psql('postgres', $state),
			$before, "$function: the error leaves the sequence as it was");
		is(sqlstate($node, "SET snowflake.max_drift = '130min'; $call{$function}"),
			'', "$function with the clock behind by less than max_drift goes on");
		is(sqlstate($node, "SET snowflake.max_drift = -1; SET snowflake.max_lead = 0; $call{$function}"),
			'', "$function goes on, however far behind the clock, where max_drift is -1");
	}
	push @drawn, draw($node);
};

subtest 'a clock that was two days ahead' => sub {
	# The clock is two days ahead for a while, and is then set right.
	set_clock($clock, $clock->{offset} + 48 * $hour);
	push @drawn, draw($node);
	set_clock($clock, $clock->{offset} - 48 * $hour);
	is(sqlstate($node, $call{'snowflake_next_id()'}),
		'55000', 'a clock that was two days ahead and was set right: an error');
	push @drawn, $node->safe_psql('postgres', "SET snowflake.max_drift = -1; $call{'snowflake_next_id()'}");
	is_strictly_increasing('with max_drift -1 the sequence goes on from there', \@drawn);
};

# From here on under load, at times that the clock has not shown before. The original uses the clock
# as it is, so it repeats IDs if the clock shows a time for the second time.
$node->append_conf('postgresql.conf', 'snowflake.max_drift = -1');
$node->reload;
create_original($node);

sub step
{
	my ($seconds) = @_;
	set_clock($clock, $clock->{offset} + $seconds);
	return;
}

# Steps forward and, after some draws, back to a time at which the clients were drawing.
sub forward_and_back
{
	my ($seconds, @observers) = @_;
	step($seconds - 0.3);
	await_draws($_) foreach @observers;
	step(-$seconds);
	return;
}

# In the first trials each once, so that a short run has all of them; then at random.
my @steps = (
	sub { step(-0.001) },
	sub { step(-0.250) },
	sub { forward_and_back(10,           @_) },
	sub { forward_and_back(40 * $minute, @_) },
	sub { forward_and_back($hour,        @_) },
	sub {
		my @offsets = map { $clock->{offset} + rand() - 0.9 } 1 .. 50;
		set_clock($clock, $_) foreach @offsets;
	});
my @first_steps = @steps;

# Repeated: the clock is set to a time that it has not shown before, the clients draw, $disturb is
# called. The rival is the original, because nextval() does not use the clock.
sub under_load
{
	my ($fault, $trials, $disturb) = @_;
	my @clients = (clients => [ 'single', 'mixed:300', 'mixed:300' ]);
	my @observers = (
		observe($node, @clients, arguments => [ '--rest', 1 ]),
		observe($node, @clients, generator => 'plpgsql', sequence => 'original_s'));
	foreach my $trial (1 .. $trials)
	{
		show_progress($fault, $trial, $trials);
		step(2 * $hour);
		await_draws($_) foreach @observers;
		usleep(300_000 + int rand 100_000);
		$disturb->(@observers);
		await_draws($_, 20) foreach @observers;
	}
	my ($native, $original) = map { findings_of($_) } @observers;
	report_fault(
		fault          => $fault,
		trials         => $trials,
		native         => $native,
		rival          => 'the PL/pgSQL original',
		rival_findings => $original);
	return;
}

subtest 'steps of the clock under load' => sub {
	step(48 * $hour);
	under_load('the clock steps back, or back and forth, under load',
		trials(8, 500), sub { (shift @first_steps // $steps[ int rand @steps ])->(@_) });

	# The server is stopped and not crashed, so IDs that were only seen are promised, too.
	under_load(
		'the clock goes back while the server is down',
		trials(2, 100),
		sub {
			$node->stop;
			step(-0.3 - rand($hour) * int rand 2);
			start_server($node, $clock);
		});
};

$node->stop;
done_testing();
