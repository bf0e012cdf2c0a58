# Helpers of the TAP tests: they crash a server, set its clock, and compare IDs. SNOWFLAKE_TEST_SEED in
# the environment repeats the random choices of an earlier run.

package SnowflakeTest;

use strict;
use warnings;

use Exporter 'import';
use IPC::Open2;
use IPC::SysV qw(IPC_RMID);
use KeptSessions;
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
  await
  is_strictly_increasing
  are_later
  new_clock
  set_clock
  libfaketime
);

# Settings of every test server. Cluster.pm sets log_statement = all; these tests send hundreds of
# thousands of statements. The default kind of dynamic shared memory stays in /dev/shm when a server
# is killed; this one is in the data directory. A worker of replication that has ended comes back after
# wal_retrieve_retry_interval, by default 5 s.
my $common_conf = q{
autovacuum = off
dynamic_shared_memory_type = mmap
log_statement = none
max_connections = 30
wal_retrieve_retry_interval = 200ms
};

# Prints the seed with which the test can be repeated.
sub seed_random
{
	my $seed = $ENV{SNOWFLAKE_TEST_SEED} // int(rand(2**31));
	srand($seed);
	note("SNOWFLAKE_TEST_SEED=$seed");
	return;
}

# A server with the extension and the sequence "s". Options: conf, more lines for postgresql.conf;
# clock, from new_clock(); init, options of Cluster.pm's init(); install_path, the installation of
# another PostgreSQL.
sub new_server
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name, install_path => $options{install_path});
	init_server($node, %options);
	$node->append_conf('postgresql.conf', $common_conf . ($options{conf} // ''));
	start_server($node, $options{clock});
	$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE SEQUENCE s');
	return $node;
}

# initdb takes more processor time than all else in the life of a test server. SNOWFLAKE_TEST_TEMPLATES is a folder of data
# directories to copy; script/test makes it. Each is used once in a test file: snowflake-shard compares system identifiers.
my @templates = $ENV{SNOWFLAKE_TEST_TEMPLATES} ? glob "$ENV{SNOWFLAKE_TEST_TEMPLATES}/*" : ();

sub init_server
{
	my ($node, %options) = @_;
	my %init = %{ $options{init} // {} };
	my $template = $init{extra} || $options{install_path} ? undef : shift @templates;
	my $run = \&PostgreSQL::Test::Utils::system_or_bail;
	no warnings 'redefine';
	local *PostgreSQL::Test::Utils::system_or_bail = sub {
		return $run->('cp', '-a', $template, $node->data_dir) if $template && $_[0] eq 'initdb';
		return $run->(@_);
	};
	$node->init(%init);
	return;
}

sub start_server
{
	my ($node, $clock) = @_;
	local %ENV = (%ENV, $clock ? %{ $clock->{environment} } : ());
	$node->start;
	return;
}

# Kills all processes of the server at once, as a crash of the machine does, so that none of them
# writes what is in memory. If only the postmaster died, a backend would finish its query. The
# postmaster is stopped first: it could start a backend after its processes were listed. The next
# postmaster does not start as long as any process has the shared memory.
sub crash
{
	my ($node) = @_;
	my @lock_file = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');
	my $postmaster = $lock_file[0];
	my ($segment) = $lock_file[6] =~ /(\d+)\s*$/;
	kill 'STOP', $postmaster;
	await('the postmaster is stopped', sub { (state_and_parent($postmaster))[0] eq 'T' });
	my @processes = grep { (state_and_parent($_))[1] == $postmaster } map { m{(\d+)$} } glob '/proc/[0-9]*';
	$node->kill9;
	kill 'KILL', @processes;
	await('no process has the shared memory of the server', sub {
		my @columns = map { [split] } split /\n/, slurp_file('/proc/sysvipc/shm');
		return !grep { $_->[1] eq $segment && $_->[6] > 0 } @columns; });
	shmctl $segment, IPC_RMID, 0;    # nobody else knows it when the lock file is gone

	# Until init reaps the dead postmaster (in a container perhaps never), its PID exists, and its
	# lock files would keep the next postmaster from starting.
	unlink $node->data_dir . '/postmaster.pid', $node->host . '/.s.PGSQL.' . $node->port . '.lock';
	return;
}

# The state and the parent of a process, which are in its line after the name; neither if it has ended.
sub state_and_parent
{
	my ($pid) = @_;
	open my $file, '<', "/proc/$pid/stat" or return ('', 0);
	return (readline($file) // '') =~ /.*\) (\w) (\d+) / ? ($1, $2) : ('', 0);
}

# Waits until the condition holds. Dies after the timeout of PostgreSQL's test modules. Most conditions start a psql:
# after a while they are tried less often, so that a wait leaves the processors to others.
sub await
{
	my ($what, $condition) = @_;
	my $start = time();
	until ($condition->())
	{
		my $waited = time() - $start;
		die "timed out waiting until $what" if $waited > $PostgreSQL::Test::Utils::timeout_default;
		usleep($waited < 0.05 ? 5_000 : $waited < 1.5 ? 100_000 * $waited : 150_000);
	}
	return;
}

# The SQLSTATE of the error that ends a script; empty if there is no error.
sub sqlstate
{
	my ($node, $sql, %options) = @_;
	my ($status, $stdout, $stderr) = $node->psql(
		$options{database} // 'postgres', $sql,
		extra_params => [ '-v', 'VERBOSITY=sqlstate', @{ $options{params} // [] } ]);
	return '' if $status == 0;
	return $stderr =~ /(?:ERROR|FATAL):\s+(\w{5})$/m ? $1 : "not an SQLSTATE: $stderr";
}

# Draws one ID, in a session and a transaction of its own.
sub draw
{
	my ($node, $sequence, $database) = @_;
	return $node->safe_psql($database // 'postgres',
		sprintf(q{SELECT snowflake_next_id(5, '%s')}, $sequence // 's'));
}

# Asserts that IDs increase within each session (one array for each) and are distinct over all.
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

# Asserts that every ID in $later is greater than every ID in $earlier.
sub are_later
{
	my ($name, $earlier, $later) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($last) = sort { $b <=> $a } @$earlier;
	my ($first) = sort { $a <=> $b } @$later;
	return cmp_ok($first // 0, '>', $last // 'no ID', $name);
}

# The library that fakes the clocks of the processes it is loaded into; undef if there is none.
sub libfaketime
{
	my @candidates = (
		$ENV{LIBFAKETIME} // (),
		glob('/usr/lib/*/faketime/libfaketime.so.1'),
		glob('/{usr,usr/local,opt}/{lib,lib64}/faketime/libfaketime.so.1'));
	my ($found) = grep { -e } @candidates;
	return $found;
}

# A clock for servers: the system clock plus an offset in seconds, which set_clock() can change at
# any time. The monotonic clock is not changed, so timeouts work as usual.
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
	keep_shared_memory($clock);
	return $clock;
}

# Starts a process that makes the shared memory of libfaketime and removes it when this test has
# ended, in any way. Otherwise the first of a server's processes makes it and removes it while the
# server runs; then each command that the server calls makes its own, and leaves it in /dev/shm.
sub keep_shared_memory
{
	my ($clock) = @_;
	local %ENV = (%ENV, %{ $clock->{environment} });
	delete $ENV{HOME};    # script/test kills the processes with its HOME; this one ends by itself
	my $pid = open2($clock->{keeper_says}, $clock->{keeper_reads},
		$^X, '-e', '$| = 1; print "$ENV{FAKETIME_SHARED}\n"; readline');
	chomp(my $names = readline $clock->{keeper_says});
	$clock->{environment}{FAKETIME_SHARED} = $names if $names ne '';
	return;
}

# Sets the offset by a rename, so that no process reads half of it.
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
