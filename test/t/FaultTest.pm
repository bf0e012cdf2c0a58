# Helpers of the fault tests: a fault is repeated while an observer, a process of its own, records
# what clients see; the result is a row of the table that script/test --faults prints. Environment:
#
#   SNOWFLAKE_TEST_LONG     the long form: many more trials of each fault, and progress messages
#   SNOWFLAKE_TEST_CYCLES   the number of trials of each fault
#   SNOWFLAKE_TEST_REPORT   a file to which each row is appended as a line of JSON

package FaultTest;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time);

our @EXPORT = qw(
  trials
  show_progress
  create_original
  observe
  ids_seen
  await_sessions
  await_draws
  forsake
  findings_of
  findings_from
  report_fault
  report_beside_core
);

# The number of trials of a fault.
sub trials
{
	my ($short, $long) = @_;
	return $ENV{SNOWFLAKE_TEST_CYCLES} // ($ENV{SNOWFLAKE_TEST_LONG} ? $long : $short);
}

# Prints the number of the trial every ten seconds, in the long form.
my $last_progress = 0;
sub show_progress
{
	my ($fault, $trial, $trials) = @_;
	return if !$ENV{SNOWFLAKE_TEST_LONG} || time() - $last_progress < 10;
	$last_progress = time();
	diag("$fault: $trial of $trials");
	return;
}

# Creates the function that Instagram published as next_id(), with a sequence of its own. The text
# is taken from the stress client.
sub create_original
{
	my ($node) = @_;
	my ($text) = slurp_file("$FindBin::RealBin/../stress/scratch.h") =~ /kOriginal = R"\((.*?)\)";/s
	  or die 'the original was not found';
	my %values = (function => 'next_id()', shard => 5, sequence => 'original_s');
	$text =~ s/\{(\w+)\}/$values{$1}/g;
	$node->safe_psql('postgres', "CREATE SEQUENCE original_s; $text");
	return;
}

# Starts test/stress/stress --observe: clients in a process of their own, which draw from one
# sequence through every fault and record what they see. A client that loses its connection connects
# again; with several nodes, to the first that accepts writes. Options: nodes, instead of $node;
# database; sequence, default "s"; clients, values of --client; generator; arguments, more arguments
# of stress.
sub observe
{
	my ($node, %options) = @_;
	my @nodes = @{ $options{nodes} // [$node] };
	my $conninfo = sprintf 'dbname=%s host=%s port=%s', $options{database} // 'postgres',
	  join(',', map { $_->host } @nodes), join(',', map { $_->port } @nodes);
	$conninfo .= ' target_session_attrs=read-write' if @nodes > 1;
	$conninfo .= ' application_name=snowflake_observer';
	my @clients = @{ $options{clients} // ['mixed:300'] };
	my $observer = { clients => scalar @clients, stdin => '', stdout => '', stderr => '' };
	$observer->{run} = IPC::Run::start(
		[
			"$FindBin::RealBin/../stress/stress", '--observe',
			'--conninfo',  $conninfo,
			'--generator', $options{generator} // 'native',
			'--sequence',  $options{sequence} // 's',
			'--seed',      int(rand(2**31)),
			(map { ('--client', $_) } @clients),
			@{ $options{arguments} // [] }
		],
		'<',
		\$observer->{stdin},
		'>',
		\$observer->{stdout},
		'2>',
		\$observer->{stderr});
	return $observer;
}

# Sends one line and returns the answer, which is one line too.
sub progress_of
{
	my ($observer, $command) = @_;
	$observer->{stdin} .= ($command // 'progress') . "\n";
	await('the observer answers', sub {
			$observer->{run}->pump_nb;
			die "the observer ended: $observer->{stderr}" unless $observer->{run}->pumpable;
			return $observer->{stdout} =~ /\n/; });
	$observer->{stdout} =~ s/^(.*)\n// or die 'not a line';
	return decode_json($1);
}

sub ids_seen
{
	my ($observer) = @_;
	return progress_of($observer)->{ids};
}

# Waits until the node has one session for each client of these observers. No other observers may
# run.
sub await_sessions
{
	my ($node, @observers) = @_;
	my $clients = 0;
	$clients += $_->{clients} foreach @observers;
	await('every client has a session', sub {
			$clients == $node->safe_psql('postgres',
				q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'snowflake_observer'}) });
	return;
}

# Waits until each client has seen the results of $more further statements (default 1).
sub await_draws
{
	my ($observer, $more) = @_;
	my @before = @{ progress_of($observer)->{statements} };
	await('every client draws', sub {
			my @now = @{ progress_of($observer)->{statements} };
			return !grep { $now[$_] < $before[$_] + ($more // 1) } 0 .. $#now; });
	return;
}

# Announces that the server of the clients' present sessions will be lost with all that it makes
# from now on. These IDs count as seen, and not as committed.
sub forsake
{
	my ($observer) = @_;
	progress_of($observer, 'forsake');
	return;
}

# Ends the observer's clients and returns its findings. The server must be running.
sub findings_of
{
	my ($observer) = @_;
	$observer->{stdin} .= "stop\n";
	$observer->{run}->finish;
	my $status = $observer->{run}->result(0);
	die "the observer ended with $status: $observer->{stderr}" if $status != 0;
	note($observer->{stderr});
	return decode_json($observer->{stdout});
}

# The findings about IDs that a test has seen by itself: an array for each session, in the order in
# which they were seen, all of them committed. All sessions must draw from one sequence.
sub findings_from
{
	my (@sessions) = @_;
	my %findings = map { $_ => 0 }
	  qw(ids duplicates session_inversions late_ids duplicates_of_seen late_after_seen troubles);
	my %drawn;
	foreach my $ids (@sessions)
	{
		$findings{ids} += @$ids;
		$findings{duplicates} += grep { $drawn{$_}++ } @$ids;
		$findings{session_inversions} += grep { $ids->[$_] < $ids->[ $_ - 1 ] } 1 .. $#$ids;
	}
	return \%findings;
}

# Asserts what is promised for a fault, and writes its row of the table. Required: fault; trials;
# native, the findings of the observer of our clients, or an array of findings if each observer had
# its own sequence; rival, the name of the generator in the same trials; rival_findings, its
# findings, or none if rival is the reason why there are none.
#
# only_committed: the clock went back across a crash, so only committed IDs are promised.
# not_promised: the name of another reason why IDs that were only seen are not promised.
# nothing_promised: the name of a reason why no ID is promised.
sub report_fault
{
	my (%row) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $native = sum_of(ref $row{native} eq 'ARRAY' ? @{ $row{native} } : $row{native});
	my $fault = $row{fault};
	my $counts = sprintf '%d trials, %d IDs', $row{trials}, $native->{ids};
	my $orders = $native->{session_inversions} + $native->{late_ids};
	is($native->{troubles}, 0, "$fault: clients met no other error");
	cmp_ok($native->{ids}, '>', 0, "$fault: IDs were seen");
	if ($row{nothing_promised})
	{
		$row{not_promised} = $row{nothing_promised};
		$native->{duplicates_of_seen} += delete $native->{duplicates};
		$native->{late_after_seen} += $orders;
		$orders = undef;
	}
	else
	{
		is($native->{duplicates}, 0, "$fault: no committed ID twice ($counts)");
		is($orders, 0, "$fault: none out of order ($counts)");
	}
	my $not_promised = $row{not_promised}
	  // ($row{only_committed} ? 'seen, not committed, and the clock went back' : undef);
	if (!$not_promised)
	{
		is($native->{duplicates_of_seen}, 0, "$fault: none twice that was only seen ($counts)");
		is($native->{late_after_seen}, 0, "$fault: none below one that was only seen ($counts)");
	}
	my $rival =
	  ref $row{rival_findings}
	  ? rival_text($row{rival}, $row{rival_findings}, $row{not_promised})
	  : $row{rival};
	note("$fault: $rival");
	write_row({
			fault => $fault,
			trials => $row{trials},
			ids => $native->{ids},
			duplicates => $native->{duplicates},
			order_violations => $orders,
			not_promised => {
				named => $not_promised,
				duplicates => $native->{duplicates_of_seen},
				order_violations => $native->{late_after_seen} },
			rival => $rival }) if $ENV{SNOWFLAKE_TEST_REPORT};
	return;
}

# report_fault() for an observer of our clients and one of nextval(), which it ends.
sub report_beside_core
{
	my ($fault, $trials, $observers, %row) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	await_draws($_) foreach @$observers;
	my ($native, $core) = map { findings_of($_) } @$observers;
	report_fault(
		fault          => $fault,
		trials         => $trials,
		native         => $native,
		rival          => 'nextval()',
		rival_findings => $core,
		%row);
	return;
}

sub sum_of
{
	my (@findings) = @_;
	my %sum;
	foreach my $finding (@findings)
	{
		$sum{$_} += $finding->{$_} foreach grep { !ref $finding->{$_} } keys %$finding;
	}
	return \%sum;
}

sub rival_text
{
	my ($name, $findings, $not_promised) = @_;
	my $sum = sum_of(ref $findings eq 'ARRAY' ? @$findings : $findings);
	my $orders = $sum->{session_inversions} + $sum->{late_ids};
	my $text = "$name, in the same trials: $sum->{ids} drawn";
	return sprintf '%s, %d twice, %d out of order; of those not promised: %d, %d', $text,
	  $sum->{duplicates}, $orders, $sum->{duplicates_of_seen}, $sum->{late_after_seen}
	  if $not_promised;
	return sprintf '%s, %d twice, %d out of order', $text,
	  $sum->{duplicates} + $sum->{duplicates_of_seen}, $orders + $sum->{late_after_seen};
}

sub write_row
{
	my ($row) = @_;
	append_to_file($ENV{SNOWFLAKE_TEST_REPORT}, JSON::PP->new->canonical->encode($row) . "\n");
	return;
}

1;
