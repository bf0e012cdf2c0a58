# Helpers of the TAP tests: servers that crash for good, a clock that can be set, clients that draw
# IDs and write down, outside of the server, each one they see, and the comparison of all of those.
#
# A test of a fault tries it over and over while an observer watches what clients see, and reports
# it as one row of a table. Environment:
#
#   SNOWFLAKE_TEST_SEED     what was random, once more
#   SNOWFLAKE_TEST_LONG     the long form: many more trials of each fault, with its progress
#   SNOWFLAKE_TEST_CYCLES   so many trials of each fault
#   SNOWFLAKE_TEST_REPORT   a file to which each row is added, as a line of JSON

package SnowflakeTest;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(
  seed_random
  new_server
  start_server
  crash
  sqlstate
  draw
  start_clients
  stop_clients
  seen_by_clients
  await
  is_strictly_increasing
  are_later
  new_clock
  set_clock
  libfaketime
  trials
  show_progress
  observe
  await_draws
  findings_of
  report_fault
);

# What every server of these tests has in common. Cluster.pm logs each statement; these tests send
# hundreds of thousands.
my $common_conf = q{
autovacuum = off
log_statement = none
max_connections = 30
};

# A random test says how to run it again.
sub seed_random
{
	my $seed = $ENV{SNOWFLAKE_TEST_SEED} // int(rand(2**31));
	srand($seed);
	note("SNOWFLAKE_TEST_SEED=$seed");
	return;
}

# How often a fault is tried.
sub trials
{
	my ($short, $long) = @_;
	return $ENV{SNOWFLAKE_TEST_CYCLES} // ($ENV{SNOWFLAKE_TEST_LONG} ? $long : $short);
}

# The long form takes its time, and says now and then where it is.
my $last_progress = 0;
sub show_progress
{
	my ($fault, $trial, $trials) = @_;
	return if !$ENV{SNOWFLAKE_TEST_LONG} || time() - $last_progress < 10;
	$last_progress = time();
	diag("$fault: $trial of $trials");
	return;
}

# A server with the extension and the sequence "s". Options: conf, more lines for postgresql.conf;
# clock, see new_clock(); init, options of Cluster.pm's init().
sub new_server
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(%{ $options{init} // {} });
	$node->append_conf('postgresql.conf', $common_conf . ($options{conf} // ''));
	start_server($node, $options{clock});
	$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE SEQUENCE s');
	return $node;
}

sub start_server
{
	my ($node, $clock) = @_;
	local %ENV = (%ENV, $clock ? %{ $clock->{environment} } : ());
	$node->start;
	return;
}

# All processes of the server die at once, as when the machine does: none of them writes what is
# still in memory. (After the death of the postmaster alone, a backend would finish its query.)
sub crash
{
	my ($node) = @_;
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my @processes = split /\n/,
	  $node->safe_psql('postgres',
		'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()');
	$node->kill9;
	kill 'KILL', @processes;
	my $all = join ',', $postmaster, @processes;
	await('all processes of the server are dead',
		sub { !grep { !/^Z/ } split /\n/, qx(ps -o stat= -p $all) });

	# Until the system's init reaps it (in a container, perhaps never) the dead postmaster has a PID
	# still, and its lock files would hold up the next one.
	unlink $node->data_dir . '/postmaster.pid', $node->host . '/.s.PGSQL.' . $node->port . '.lock';
	return;
}

# Until the condition holds; dies if it never does.
sub await
{
	my ($what, $condition) = @_;
	my $deadline = time() + $PostgreSQL::Test::Utils::timeout_default;
	until ($condition->())
	{
		die "timed out waiting until $what" if time() > $deadline;
		usleep(5_000);
	}
	return;
}

# The SQLSTATE that a script ends with; empty where it ends well.
sub sqlstate
{
	my ($node, $sql, %options) = @_;
	my ($status, $stdout, $stderr) = $node->psql(
		$options{database} // 'postgres', $sql,
		extra_params => [ '-v', 'VERBOSITY=sqlstate', @{ $options{params} // [] } ]);
	return '' if $status == 0;
	return $stderr =~ /(?:ERROR|FATAL):\s+(\w{5})$/m ? $1 : "not an SQLSTATE: $stderr";
}

# One ID, in a session and a transaction of its own.
sub draw
{
	my ($node, $sequence, $database) = @_;
	return $node->safe_psql($database // 'postgres',
		sprintf(q{SELECT snowflake_next_id(5, '%s')}, $sequence // 's'));
}

# Clients that run their statements over and over until the server ends them. An ID is written down
# when psql has the whole result, so for a statement without BEGIN after its commit.
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

# Ends the clients' sessions, where no crash has done so.
sub stop_clients
{
	my ($node) = @_;
	$node->safe_psql('postgres',
		q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		  WHERE application_name = 'snowflake_client'});
	return;
}

# The IDs of each client that has seen any; $name is the assertion that none met an error before its
# session was ended from outside. (psql ends with 2 where it finds the connection lost, with 3 where a
# statement found that.)
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

# All IDs that were seen, one array for each session: increasing in each of them, distinct over all.
sub is_strictly_increasing
{
	my ($name, @sessions) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @faults;
	foreach my $ids (@sessions)
	{
		push @faults, map { "$ids->[$_] after $ids->[$_ - 1] in one session" }
		  grep { $ids->[$_] <= $ids->[ $_ - 1 ] } 1 .. $#$ids;
	}
	my @all = sort { $a <=> $b } map { @$_ } @sessions;
	push @faults, map { "$all[$_] twice" } grep { $all[$_] == $all[ $_ - 1 ] } 1 .. $#all;
	ok(!@faults && @all, sprintf('%s (%d IDs)', $name, scalar @all));
	diag(scalar(@faults) . " faults, the first: $faults[0]") if @faults;
	return;
}

# Every ID of one phase is greater than each that was seen in the phases before.
sub are_later
{
	my ($name, $earlier, $later) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($last) = sort { $b <=> $a } @$earlier;
	my ($first) = sort { $a <=> $b } @$later;
	return cmp_ok($first // 0, '>', $last // 'no ID', $name);
}

# Clients in a process of their own, which draw from one sequence through every fault, and write down
# what they see: test/stress/stress --observe. They find the server again when it is back, or the
# first of several that takes writes. Options: nodes, in place of one; database; sequence, by default
# "s"; clients, see --client; generator; arguments, more of them.
sub observe
{
	my ($node, %options) = @_;
	my @nodes = @{ $options{nodes} // [$node] };
	my $conninfo = sprintf 'dbname=%s host=%s port=%s', $options{database} // 'postgres',
	  join(',', map { $_->host } @nodes), join(',', map { $_->port } @nodes);
	$conninfo .= ' target_session_attrs=read-write' if @nodes > 1;
	my $observer = { stdin => '', stdout => '', stderr => '' };
	$observer->{run} = IPC::Run::start(
		[
			"$FindBin::RealBin/../stress/stress", '--observe',
			'--conninfo',  $conninfo,
			'--generator', $options{generator} // 'native',
			'--sequence',  $options{sequence} // 's',
			'--seed',      int(rand(2**31)),
			(map { ('--client', $_) } @{ $options{clients} // ['mixed:300'] }),
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

# One line in, one line out.
sub progress_of
{
	my ($observer) = @_;
	$observer->{stdin} .= "progress\n";
	await('the observer answers', sub {
			$observer->{run}->pump_nb;
			die "the observer ended: $observer->{stderr}" unless $observer->{run}->pumpable;
			return $observer->{stdout} =~ /\n/; });
	$observer->{stdout} =~ s/^(.*)\n// or die 'not a line';
	return decode_json($1);
}

# Until each client has seen results of so many more statements than it had when this was called.
sub await_draws
{
	my ($observer, $more) = @_;
	my @before = @{ progress_of($observer)->{statements} };
	await('every client draws', sub {
			my @now = @{ progress_of($observer)->{statements} };
			return !grep { $now[$_] < $before[$_] + ($more // 1) } 0 .. $#now; });
	return;
}

# Ends the observer's clients, and says what it found. To be called while there is a server.
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

# A row of the table. Required: fault; trials; native, what the observer of our clients found, or
# several of them, where each has a sequence of its own; rival, the name of what went through the same
# trials beside it, and core or original, what that one's observer found (or the reason why there is
# none). Where the clock went back across a crash, only committed IDs are promised: only_committed.
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
	is($native->{duplicates}, 0, "$fault: no committed ID twice ($counts)");
	is($orders, 0, "$fault: none out of order ($counts)");
	if (!$row{only_committed})
	{
		is($native->{duplicates_of_seen}, 0, "$fault: none twice that was only seen ($counts)");
		is($native->{late_after_seen}, 0, "$fault: none below one that was only seen ($counts)");
	}
	my $rival = ref $row{rival_findings} ? rival_text($row{rival}, $row{rival_findings}) : $row{rival};
	note("$fault: $rival");
	write_row({
			fault => $fault,
			trials => $row{trials},
			ids => $native->{ids},
			duplicates => $native->{duplicates},
			order_violations => $orders,
			not_promised => {
				named => $row{only_committed} ? 'seen, not committed, and the clock went back' : undef,
				duplicates => $native->{duplicates_of_seen},
				order_violations => $native->{late_after_seen} },
			rival => $rival }) if $ENV{SNOWFLAKE_TEST_REPORT};
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
	my ($name, $findings) = @_;
	my $sum = sum_of(ref $findings eq 'ARRAY' ? @$findings : $findings);
	return sprintf '%s, in the same trials: %d drawn, %d twice, %d out of order', $name, $sum->{ids},
	  $sum->{duplicates} + $sum->{duplicates_of_seen},
	  $sum->{session_inversions} + $sum->{late_ids} + $sum->{late_after_seen};
}

sub write_row
{
	my ($row) = @_;
	append_to_file($ENV{SNOWFLAKE_TEST_REPORT}, JSON::PP->new->canonical->encode($row) . "\n");
	return;
}

# A library that fakes the clocks of the processes it is loaded into; undef where there is none.
sub libfaketime
{
	my @candidates = (
		$ENV{LIBFAKETIME} // (),
		glob('/usr/lib/*/faketime/libfaketime.so.1'),
		glob('/{usr,usr/local,opt}/{lib,lib64}/faketime/libfaketime.so.1'));
	my ($found) = grep { -e } @candidates;
	return $found;
}

# A clock for servers: the system's, plus an offset in seconds that set_clock() may change at any
# moment. Timeouts keep to the monotonic clock, which is left alone.
sub new_clock
{
	my $file = PostgreSQL::Test::Utils::tempdir() . '/offset';
	my $clock = {
		file        => $file,
		environment => {
			LD_PRELOAD                   => libfaketime(),
			FAKETIME_TIMESTAMP_FILE      => $file,
			FAKETIME_NO_CACHE            => 1,
			FAKETIME_DONT_FAKE_MONOTONIC => 1,
		},
	};
	set_clock($clock, 0);
	return $clock;
}

# By rename: a process that reads the file just now must not find half of an offset.
sub set_clock
{
	my ($clock, $offset) = @_;
	$clock->{offset} = $offset;
	my $new_file = "$clock->{file}.new";
	unlink $new_file;
	append_to_file($new_file, sprintf("%+.3f\n", $offset));
	rename $new_file, $clock->{file} or die "could not rename $new_file: $!";
	return;
}

1;
