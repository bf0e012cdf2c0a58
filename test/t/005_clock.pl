# Whatever the clock does, IDs stay distinct and increase. It steps back and forth under load, and
# back while the server is down; IDs go on from the last position. Where it is behind by more than
# snowflake.max_drift, making an ID is an error, which leaves the sequence as it was.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time);

plan skip_all => 'libfaketime is not installed' unless libfaketime();

my $minute = 60;
my $hour = 3600;

my $clock = new_clock();
my $node = new_server('stepping', clock => $clock, conf => "snowflake.max_drift = '2h'\n");

sub seconds_off
{
	my ($query) = @_;
	return $node->safe_psql('postgres', "SELECT extract(epoch FROM $query)") - time();
}

set_clock($clock, -$hour);
cmp_ok(abs(seconds_off('clock_timestamp()') + $hour), '<', $minute, 'the test can set the clock');
set_clock($clock, 0);

# Under load.
my @clients = start_clients(
	$node,
	[q{SELECT snowflake_next_id(5, 's');}],
	[q{SELECT snowflake_next_id(5, 's') FROM generate_series(1, 200);}],
	[q{SELECT snowflake_next_ids(5, 's', 200);}],
	[ q{SELECT max(id) FROM snowflake_next_ids(5, 's', 50000) AS id;},
		q{BEGIN; SELECT snowflake_next_id(5, 's'); ROLLBACK;} ]);

sub all_clients_go_on
{
	my %seen = map { $_ => -s $_->{output} } @clients;
	await('all clients go on', sub { !grep { -s $_->{output} == $seen{$_} } @clients });
	return;
}

my @drawn = (draw($node));
my @steps = (
	[ '1 ms back',      -0.001 ],
	[ '250 ms back',    -0.250 ],
	[ '10 s back',      -10 ],
	[ '40 min back',    -40 * $minute ],
	[ '1 hour forward', $hour ],
	[ '1 hour back',    -$hour ]);
foreach my $step (@steps)
{
	my ($name, $seconds) = @$step;
	set_clock($clock, $clock->{offset} + $seconds);
	push @drawn, draw($node);
	all_clients_go_on();
	push @drawn, draw($node);
	cmp_ok(abs(seconds_off("snowflake_timestamp($drawn[-1])") - $clock->{offset}), '<', $minute,
		"$name: IDs follow the clock forward")
	  if $seconds > 0;
}
stop_clients($node);
is_strictly_increasing('steps of the clock under load: IDs are distinct, and increase',
	\@drawn, seen_by_clients('steps of the clock under load: no client met an error', @clients));

# While it steps back, IDs carry the time of the last position. It moves on with the IDs, not with
# the clock: that is as far ahead as it was, less the time that has passed.
cmp_ok(abs(seconds_off("snowflake_timestamp($drawn[-1])") - $clock->{offset} - $hour), '<', $minute,
	'after a step back IDs go on from the last position');

# While the server is down.
$node->stop;
set_clock($clock, $clock->{offset} - 20 * $minute);
start_server($node, $clock);
my $next = draw($node);
are_later('the clock went back while the server was down: IDs are later', \@drawn, [$next]);
push @drawn, $next;

# About 80 minutes behind now.
my %call = (
	'snowflake_next_id()'  => q{SELECT snowflake_next_id(5, 's')},
	'snowflake_next_ids()' => q{SELECT snowflake_next_ids(5, 's', 10)});
my $state = q{SELECT last_value, log_cnt, is_called, pg_relation_filenode('s') FROM s};
foreach my $function (sort keys %call)
{
	my $before = $node->safe_psql('postgres', $state);
	is(sqlstate($node, "SET snowflake.max_drift = '70min'; $call{$function}"),
		'55000', "$function with the clock behind by more than max_drift is an error");
	is($node->safe_psql('postgres', $state),
		$before, "$function: the error leaves the sequence as it was");
	is(sqlstate($node, "SET snowflake.max_drift = '100min'; $call{$function}"),
		'', "$function with the clock behind by less than max_drift goes on");
	is(sqlstate($node, "SET snowflake.max_drift = -1; SET snowflake.max_lead = 0; $call{$function}"),
		'', "$function goes on, however far behind the clock, where max_drift is -1");
}
push @drawn, draw($node);

# A clock that was far ahead for a while, and was set right.
set_clock($clock, $clock->{offset} + 48 * $hour);
push @drawn, draw($node);
set_clock($clock, $clock->{offset} - 48 * $hour);
is(sqlstate($node, $call{'snowflake_next_id()'}),
	'55000', 'a clock that was two days ahead and was set right: an error');
push @drawn, $node->safe_psql('postgres', "SET snowflake.max_drift = -1; $call{'snowflake_next_id()'}");
is_strictly_increasing('with max_drift -1 the sequence goes on from there', \@drawn);

$node->stop;
done_testing();
