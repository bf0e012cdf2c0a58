# A plan empties a server of shards of an application, with reverse replication, while clients write through PgBouncer:
# there, back, and there again, each by the same file. Then the same under kills of the command, a server, its backends and
# workers, and PgBouncer, at any time: the same command, run again, always comes to the end. Only the closed copy of an
# undo that could not compare the rows is dropped first, as the obstacle says. Each acknowledged transaction is there
# once. The old server has an earlier version of PostgreSQL if one is installed with the extension.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use IPC::Run;
use PoolerTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use ShardWriters;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $program = shard_program();
plan skip_all => 'pgbouncer is not installed' unless pgbouncer_program();
seed_random();
my ($bindir) = qx(pg_config --bindir) =~ /(.*)/;
my ($versions, $version) = $bindir =~ m{^(.*)/(\d+)/bin$};
my ($earlier) = grep { $_ < $version && -e "$versions/$_/lib/snowflake.so" }
	sort { $a <=> $b } map { m{/(\d+)/bin/postgres$} } glob "$versions/*/bin/postgres" if defined $version;

my $first = 100;
my ($shards, $written) = $ENV{SNOWFLAKE_TEST_LONG} ? (100, 3) : (2, 2);
# A command moves all shards.
$PostgreSQL::Test::Utils::timeout_default = 3600 if $ENV{SNOWFLAKE_TEST_LONG};
# Moves leave dead rows in the catalogues: with autovacuum, as servers have it.
my $conf = "autovacuum = on\nwal_level = logical\nmax_connections = 200\nwal_retrieve_retry_interval = 100ms\n"
	. join '', map { "$_ = " . ($shards + 20) . "\n" }
	qw(max_wal_senders max_replication_slots max_logical_replication_workers max_worker_processes);
my $origins = defined $version && $version >= 18 ? 'max_active_replication_origins = ' . ($shards + 20) . "\n" : '';
my $old = new_server('old', conf => $conf, defined $earlier ? (install_path => "$versions/$earlier") : ());
my $new = new_server('new', conf => $conf . $origins);
note('from ' . ($earlier // 'this version') . " to this version, $shards shards");

make_real_database($_, 'postgres') foreach $old, $new;
make_real_shard($old, 'postgres', $first, "insta$first");
$old->safe_psql('postgres', "CREATE TABLE insta$first.log (id bigint PRIMARY KEY DEFAULT insta$first.next_id(), v text); ALTER TABLE insta$first.log OWNER TO app");
my $others = sprintf '%d-%d', $first + 1, $first + $shards - 1;
is((run_shard($program, 'clone', $old, '--template', "insta$first", '--schema', 'insta{}', '--shards', $others))[0], 0,
	'the shards');
foreach my $shard ($first .. $first + $shards - 1)
{
	my $long = $ENV{SNOWFLAKE_TEST_LONG} || $shard == $first ? 300_000 : 10_000;
	psql_file($old, 'postgres', 'rows', schema => "insta$shard", n => 20, long => $long);
}
my $pooler = new_pooler((run_shard($program, 'map', '--format', 'pgbouncer', $old))[1]);
my @routing = ('--pgbouncer', $pooler->{dsn}, '--config', $pooler->{file});

my ($status, $out, $err) = run_shard($program, 'plan', $old, $new, '--drain', $old, '--json');
my $plan = PostgreSQL::Test::Utils::tempdir() . '/plan.json';
append_to_file($plan, $out);
is(() = $out =~ /"schema"/g, $shards, 'the plan moves all shards');

my $user = getpwuid($<);
my @written = map { $first + int($_ * $shards / $written) } 0 .. $written - 1;
my %writers = map { $_ => start_writers(1, "insta$_", ['log'], "host=$pooler->{dir} port=6432 dbname=shard$_ user=$user") }
	@written;

sub await_writes
{
	my @journals = map { @{ $_->{journals} } } values %writers;
	my %before = map { $_ => -s $_ // 0 } @journals;
	return await('all clients write', sub { !grep { (-s $_ // 0) < $before{$_} + 500 } @journals });
}

# How many shards are open on the old server, and on the new one.
sub places
{
	return join ' ', map { my ($status, $rows) = shard_json($program, 'map', $_); scalar @$rows } $old, $new;
}

my @there = ('--plan', $plan, '--reversible', @routing);
my @back = ('--plan', $plan, '--undo', @routing);
my ($all_there, $all_back) = ("0 $shards", "$shards 0");
await_writes();

subtest 'there, back, and there again' => sub {
	my @pauses;
	foreach my $step ([ 'there', $all_there, @there ], [ 'back', $all_back, @back ],
		[ 'there again', $all_there, @there ])
	{
		my ($name, $places, @arguments) = @$step;
		($status, $out, $err) = run_shard($program, 'move', @arguments);
		is($status, 0, "$name: exit code 0") or diag("$out$err");
		my @blocked = sort { $a <=> $b } $out =~ /^ *\d+ +insta\d+ +[a-z ]+? +(\d+) *$/mg;
		note("$name: writes were blocked for @blocked ms");
		push @pauses, @blocked;
		is(places(), $places, "$name: all shards are open on one server");
		await_writes();
	}
	@pauses = sort { $a <=> $b } @pauses;
	is(scalar @pauses, 3 * $shards, scalar(@pauses) . " moves, writes were blocked for $pauses[@pauses / 2] ms in the median, at most "
			. "$pauses[-1] ms");
};

sub terminate
{
	my ($node) = @_;
	$node->psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE pid <> pg_backend_pid() AND (application_name ~ 'snowflake' OR backend_type ~ 'walsender|logical replication')});
	return;
}

my %victims = (
	command => sub { kill_command($_[0]) },
	old => sub { crash($old); start_server($old) },
	new => sub { crash($new); start_server($new) },
	backends => sub { terminate($_) foreach $old, $new },
	pooler => sub { kill_pooler($pooler); start_pooler($pooler) });
my $kills = trials(3, 60);
my (@faults, %killed, @tries);

# Kills a victim at a random time of the command; true if the command has ended before.
sub run_and_kill
{
	my (@arguments) = @_;
	my $run = IPC::Run::start([ $program, 'move', @arguments, '--timeout', '3s' ],
		'<', \undef, '>', \my $out, '2>', \my $err);
	my $end = time() + rand($shards < 30 ? 0.7 * $shards : 20);
	until (!goes_on($run) || time() > $end) { usleep(10_000) }
	my $is_running = $run->pumpable;
	if ($is_running)
	{
		my $victim = (sort keys %victims)[ rand keys %victims ];
		$victims{$victim}->($run);
		$killed{$victim}++;
	}
	eval { $run->finish };
	return !$is_running;
}

# After a kill between the opening and the comparison nobody knows whether the source had all rows: the closed copy stays
# until --complete.
sub run_to_end
{
	my (@arguments) = @_;
	foreach my $try (1 .. 5)
	{
		my ($status, $out, $err) = run_shard($program, 'move', @arguments);
		return push @tries, $try if $status == 0;
		run_shard($program, 'move', '--plan', $plan, '--complete') if $out =~ /--complete drops the closed copy/;
		push @faults, "$out$err" if $try == 5;
	}
	return;
}

subtest "$kills kills" => sub {
	my ($is_there, $count) = (1, 0);
	my @next = (@back, '--together', 2);
	while ($count < $kills && !@faults)
	{
		for (1 .. 1 + rand 5)
		{
			last if $count == $kills || run_and_kill(@next);
			$count++;
			show_progress('drain', $count, $kills);
		}
		run_to_end(@next);
		$is_there = !$is_there;
		my $places = places();
		push @faults, "open on $places" if $places ne ($is_there ? $all_there : $all_back);
		# Clients that had to connect again were served by the other server then.
		await_writes();
		# After --undo --reversible the next move copies no rows.
		@next = !$is_there ? @there : rand() < 0.5 ? @back : (@back, '--reversible');
		push @next, '--together', 1 + int rand 4;
	}
	is(join("\n", @faults), '', join(', ', map { "$killed{$_} $_" } sort keys %killed)
			. '; at the end at try ' . join(' ', @tries));
	await_writes();
	# A worker that was killed begins again after wal_retrieve_retry_interval, and its slot is read by nobody until then.
	my $found;
	eval { await('verify finds nothing', sub { (undef, $found) = shard_json($program, 'verify', $old, $new); !@$found }) };
	is(join("\n", map { "$_->{object}: $_->{problem}" } @$found), '', 'verify finds nothing');
};

subtest 'no acknowledged write is lost or doubled' => sub {
	my ($count, $doubts, @faults) = (0, 0);
	my $open = (split ' ', places())[0] == $shards ? $old : $new;
	foreach my $shard (@written)
	{
		my @journal = stop_writers($writers{$shard});
		push @faults, map { "insta$shard: $_" } lost_writes($open, 'postgres', "insta$shard", @journal);
		$count += @journal;
		$doubts += grep { $_->{doubt} } @journal;
	}
	is(join("\n", @faults), '', "$count transactions were acknowledged or in doubt ($doubts)");
};

$_->stop foreach $old, $new;
done_testing();
