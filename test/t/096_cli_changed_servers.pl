# One of the two servers of a move is replaced while clients write: by its synchronous or asynchronous standby, by a restore
# from a dump or a backup, or by pg_upgrade; during the copy, while the set is held, just after the opening, and in reverse
# replication. No transaction that the open server has acknowledged and kept is lost or doubled. If a server lacks changes,
# rows that differ are named, and nothing is opened.
#
# SNOWFLAKE_TEST_CYCLES says how many rounds are tried, in a random order: "all" for each once; SNOWFLAKE_TEST_ROUNDS which:
# 'held|reverse', 'sender asynchronous'. The names of the tests are a table.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use List::Util 'shuffle';
use MoveTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use ShardWriters;
use SnowflakeTest;
use Test::More;
use Time::HiRes 'usleep';

my $program = shard_program();
seed_random();

my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\nmax_connections = 60\n"
	. "max_worker_processes = 12\nmax_logical_replication_workers = 8\nwal_retrieve_retry_interval = 200ms\n";
my $first = PostgreSQL::Test::Cluster->new('first');
my $keeps_slots = $first->pg_version >= 17;    # slots survive a failover and pg_upgrade
my ($one, $two, %round);

# --- the changes ----------------------------------------------------------------------------------

sub new_standby
{
	my ($primary) = @_;
	my $name = $primary->name . '_standby';
	$primary->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('$name')");
	$primary->backup($name);
	my $standby = PostgreSQL::Test::Cluster->new($name);
	$standby->init_from_backup($primary, $name, has_streaming => 1);
	my $conninfo = $primary->connstr('postgres') =~ s/'/''/gr;
	$standby->append_conf('postgresql.conf', "primary_slot_name = '$name'\nhot_standby_feedback = on\n"
		. "primary_conninfo = '$conninfo application_name=$name'\n" . ($keeps_slots ? "sync_replication_slots = on\n" : ''));
	$standby->start;
	return $standby;
}

# Commits wait for the standby from now on.
sub make_synchronous
{
	my ($primary, $standby) = @_;
	my $name = $standby->name;
	$primary->safe_psql('postgres', $_) foreach "ALTER SYSTEM SET synchronous_standby_names = '$name'",
		$keeps_slots && rand() < 0.5 ? "ALTER SYSTEM SET synchronized_standby_slots = '$name'" : (), 'SELECT pg_reload_conf()';
	await('it is synchronous', sub {
		$primary->safe_psql('postgres', "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") eq '1' });
	return;
}

# The node has the address of the other one, and is started there.
sub take_place
{
	my ($node, $old, $more) = @_;
	my ($port, $host) = ($old->port, $old->host);
	$node->append_conf('postgresql.conf', "port = $port\nunix_socket_directories = '$host'\n" . ($more // ''));
	@{$node}{qw(_port _host)} = ($port, $host);
	$node->start;
	$node->promote if -e $node->data_dir . '/standby.signal';
	await('it is a primary', sub { $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 'f' });
	return $node;
}

my $alone = "primary_slot_name = ''\nsynchronous_standby_names = ''\n" . ($keeps_slots ? "synchronized_standby_slots = ''\n" : '');

sub subscription_of
{
	my ($node) = @_;
	return $node->safe_psql('postgres', 'SELECT subname FROM pg_subscription') ne '';
}

# The slot of a follower has passed the changes of now.
sub await_passed
{
	my ($follower) = @_;
	return unless subscription_of($follower);
	my $sender = $follower->port == $one->port ? $two : $one;
	my $now = $sender->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	await('the slot has passed the changes', sub { $sender->safe_psql('postgres', "SELECT bool_and(confirmed_flush_lsn >= '$now')
		FROM pg_replication_slots WHERE slot_name ~ '^snowflake_move_5_'") eq 't' });
	return;
}

# The standby gets a copy of the slot when it has a snapshot of the running transactions, which is written every 15 s.
sub await_slot
{
	my ($node, $standby) = @_;
	my $slots = 'SELECT count(*) FROM pg_replication_slots WHERE slot_type =';
	return unless $keeps_slots && $node->safe_psql('postgres', "$slots 'logical' AND active AND failover") ne '0';
	await('the slot is on the standby', sub {
		$node->safe_psql('postgres', 'SELECT pg_log_standby_snapshot()');
		return $standby->safe_psql('postgres', "$slots 'logical' AND synced AND NOT temporary") ne '0'; });
	return;
}

# What the manual says of a subscription that was restored. Changes between the two statements are passed over.
sub enable_restored
{
	my ($node) = @_;
	return unless subscription_of($node);
	$node->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 ENABLE');
	await_commits(3);
	await_passed($node);
	my $lacks = 'SELECT count(*) FROM pg_subscription_rel';
	$node->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 REFRESH PUBLICATION WITH (copy_data = false)')
	  if $node->safe_psql('postgres', $lacks) eq '0';
	return;
}

# Each returns the node in its place. meanwhile: what happens between the state that it goes back to, and the change.
my %changes = (
	'synchronous standby' => sub {
		my ($node, $meanwhile) = @_;
		await_slot($node, $round{standby});
		$meanwhile->();
		$node->stop('immediate');
		$round{standby}->stop;
		return take_place($round{standby}, $node, $alone);
	},
	'asynchronous standby' => sub {
		my ($node, $meanwhile) = @_;
		my $standby = $round{standby};
		await_slot($node, $standby);
		$node->wait_for_catchup($standby);
		$standby->stop;
		$meanwhile->();
		$node->stop('immediate');
		return take_place($standby, $node, $alone);
	},
	'backup' => sub {
		my ($node, $meanwhile) = @_;
		my $name = 'restored_' . $node->name;
		$node->backup($name);
		$meanwhile->();
		my $restored = PostgreSQL::Test::Cluster->new($name);
		$restored->init_from_backup($node, $name);
		$node->stop('immediate');
		$restored->set_recovery_mode;
		return take_place($restored, $node,
			"restore_command = 'false'\nrecovery_target = 'immediate'\nrecovery_target_action = 'promote'\n");
	},
	'dump' => sub {
		my ($node, $meanwhile) = @_;
		my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump';
		my $has_subscription = subscription_of($node);
		$node->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 DISABLE') if $has_subscription;
		system_or_bail('pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr('postgres'));
		$node->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 ENABLE') if $has_subscription;
		$meanwhile->();
		$node->safe_psql('postgres', $_) foreach $has_subscription ? ('ALTER SUBSCRIPTION snowflake_move_5 DISABLE',
			'ALTER SUBSCRIPTION snowflake_move_5 SET (slot_name = NONE); DROP SUBSCRIPTION snowflake_move_5') : ();
		$node->safe_psql('template1', $_)
		  foreach 'DROP DATABASE postgres WITH (FORCE)', 'CREATE DATABASE postgres TEMPLATE template0';
		system_or_bail('pg_restore', '-d', $node->connstr('postgres'), $dump);
		enable_restored($node);
		return $node;
	},
	'pg_upgrade' => sub {
		my ($node, $meanwhile) = @_;
		$meanwhile->();
		my $new = PostgreSQL::Test::Cluster->new('upgraded_' . $node->name);
		$new->init(allows_streaming => 1);
		$new->append_conf('postgresql.conf', "autovacuum = off\n$conf");
		$node->stop('fast');
		my $home = PostgreSQL::Test::Utils::tempdir_short();
		my $bindir = $node->config_data('--bindir');
		my $output = '';
		IPC::Run::run([ 'pg_upgrade', '--no-sync', '-d', $node->data_dir, '-b', $bindir, '-p', $node->port, '-D', $new->data_dir,
			'-B', $bindir, '-P', $new->port, '-s', $home ], '>', \$output, '2>&1', init => sub { chdir $home })
		  or die "pg_upgrade failed: $output";
		take_place($new, $node);
		enable_restored($new);
		return $new;
	});

# --- clients --------------------------------------------------------------------------------------

my @groups;    # of writers: { writers, journal }

sub start_group
{
	push @groups, { writers => start_writers(3, 'insta5', [qw(log part)], map { $_->connstr('postgres') } $one, $two) };
	return $groups[-1];
}

sub stop_group
{
	my ($group) = @_;
	$group->{journal} //= [ stop_writers($group->{writers}) ];
	return;
}

sub lines
{
	my $lines = 0;
	$lines += () = slurp_file($_) =~ /\n/g foreach grep { -e } @{ $groups[-1]{writers}{journals} };
	return $lines;
}

sub await_commits
{
	my ($more) = @_;
	return unless @groups && !$groups[-1]{journal};
	my $before = lines();
	await("$more more commits", sub { lines() >= $before + $more });
	return;
}

# --- a round --------------------------------------------------------------------------------------

sub findings
{
	my (undef, $found) = shard_json($program, 'verify', $one, $two);
	return map { "$_->{finding}: $_->{problem}" } @$found;
}

# Gives the verb until it succeeds, does as its errors say, and notes them. Returns 1 if it has succeeded as it was.
sub carry_out
{
	my ($follower, $start_anew, @verb) = @_;
	foreach my $try (1 .. 20)
	{
		return 1 if move($one, $two, @verb, '--verify', '0') =~ /^0 /;
		$round{said} .= $move_error;
		if ($move_error =~ /the rows differ, and nothing was opened/)
		{
			$round{named} = $move_error =~ /table insta5\.\S+: / ? 'rows named' : 'NO ROWS NAMED';
			$start_anew->();
			return 0;
		}
		if ($move_error =~ /lacks \d+ tables? of the set.*\nHINT:  (.*)/)
		{
			$follower->()->safe_psql('postgres', $_) foreach split /(?<=;) /, $1;
			next;
		}
		if ($move_error =~ /Start anew|give --abort first|is gone|--abort undoes|--abort removes|--complete stops reverse/)
		{
			$round{outcome} = 'begun anew';
			$start_anew->();
			return 0;
		}
		usleep(300_000);
	}
	die "no end: $round{said}";
}

sub must
{
	my ($name, @arguments) = @_;
	foreach my $try (1 .. 20)
	{
		return if move(@arguments) =~ /^0 /;
		$round{said} .= $move_error;
		usleep(300_000);
	}
	die "$name: $round{said}";
}

sub copy_anew
{
	must('--abort', $one, $two, '--abort');
	must('move', $one, $two);
	return;
}

sub move_back_anew
{
	must('--complete', $one, $two, '--complete');
	must('move', $two, $one);
	return;
}

# The server in its place, under the name that the round has for it.
sub change
{
	my ($side, $change) = @_;
	my $node = $side eq 'one' ? $one : $two;
	my $loses = $round{side} eq 'sender' && $change eq 'asynchronous standby';
	my $meanwhile = sub {
		if (!$loses)
		{
			await_commits(5);
			await_passed($node) if $round{phase} =~ /held|reverse/ && $round{side} eq 'follower' && $change !~ /^synchronous/;
			return;
		}
		# Of the open server's own failover: these transactions may be lost, and no others.
		start_group()->{is_lost} = 1;
		await_commits(10);
		stop_group($groups[-1]);
	};
	stop_group($groups[-1]) if $loses;
	my $new = $changes{$change}->($node, $meanwhile);
	($side eq 'one' ? $one : $two) = $new;
	start_group() if $loses;
	await_commits(5);
	return;
}

# The sides by their place; the sender has the open shard.
my %phases = (
	copying => {
		sender => 'one', follower => 'two',
		run => sub {
			my ($change) = @_;
			my $copy = start_command('move', 'target: rows', 'insta5', '--from', $one, '--to', $two, '--hold');
			$change->();
			end_command($copy);
			$round{said} .= $copy->{err};
			carry_out(sub { $two }, \&copy_anew, '--resume');
			return if ($round{outcome} // '') eq 'begun anew' || $round{named};
			carry_out(sub { $two }, \&copy_anew, '--cutover');
		} },
	held => {
		sender => 'one', follower => 'two',
		run => sub {
			my ($change) = @_;
			must('--hold', $one, $two, '--hold');
			$change->();
			carry_out(sub { $two }, \&copy_anew, '--cutover');
		} },
	open => {
		sender => 'two', follower => 'one',
		run => sub {
			my ($change) = @_;
			my $move = start_command('move', 'both: subscription, slot', 'insta5', '--from', $one, '--to', $two, '--reversible');
			kill_command($move->{run});
			$round{said} .= $move->{err};
			$change->();
			return unless carry_out(sub { $one }, \&move_back_anew, '--resume');
			await_commits(3);
			carry_out(sub { $one }, \&move_back_anew, '--undo');
		} },
	reverse => {
		sender => 'two', follower => 'one',
		run => sub {
			my ($change) = @_;
			must('move', $one, $two, '--reversible');
			await_commits(3);
			$change->();
			carry_out(sub { $one }, \&move_back_anew, '--undo');
		} });

# The keys that the entries are about.
sub keys_of { return map { (keys %{ $_->{rows} // {} }, @{ $_->{made} // [] }) } @_ }

sub places
{
	return grep {
		my (undef, $rows) = shard_json($program, 'map', $_);
		grep { $_->{schema} eq 'insta5' } @$rows
	} $one, $two;
}

my $number = 0;

sub run_round
{
	my ($phase, $side, $change) = @_;
	%round = (phase => $phase, side => $side, change => $change, said => '');
	@groups = ();
	$number++;
	($one, $two) = map { new_server("${_}_$number", init => { allows_streaming => 1 }, conf => $conf) } qw(one two);
	make_written_shard($one, $two);
	my $place = $phases{$phase}{$side};
	my $node = $place eq 'one' ? $one : $two;
	$round{standby} = new_standby($node) if $change =~ /standby/;
	make_synchronous($node, $round{standby}) if $change =~ /^synchronous/;
	start_group();
	await_commits(5);
	$phases{$phase}{run}->(sub {
		change($place, $change);
		$round{found} = join '; ', findings(); });
	await_commits(3);
	stop_group($_) foreach @groups;
	my @open = places();
	my $open = $open[0];
	my %may_be_lost = map { $_ => 1 } map { keys_of(@{ $_->{journal} }) } grep { $_->{is_lost} } @groups;
	my @journal = map { @{ $_->{journal} } } @groups;
	my @faults = $open ? lost_writes($open, 'postgres', 'insta5', @journal) : ('it is open nowhere');
	my ($lost_to_failover, @others) = (0);
	foreach my $fault (@faults)
	{
		my ($key) = $fault =~ /^(\w+ \d+)/;
		if (defined $key && $may_be_lost{$key} || $fault =~ /^photo_count/ && %may_be_lost) { $lost_to_failover++ }
		else { push @others, $fault }
	}
	my $doubled = grep { /twice|in two tables/ } @others;
	$round{outcome} = $round{named} ? "refused, $round{named}" : $round{outcome} // 'went on';
	my $result = sprintf '%-8s| %-9s| %-21s| %-20s| %5d | %3d | %3d | %d',
		$phase, $side, $change, $round{outcome}, scalar @journal, @others - $doubled, $doubled, $lost_to_failover;
	ok(@open == 1 && !@others && $result !~ /NO ROWS/, $result) or diag(join("\n", @others[ 0 .. ($#others > 9 ? 9 : $#others) ]),
		"\nopen on " . @open . "\nverify: $round{found}\n$round{said}");
	note("verify: $round{found}");
	if ($phase =~ /held|reverse/ && ($side eq 'follower' || $keeps_slots))
	{
		like($round{found}, qr/has changed since|lacks \d+ table/, "$phase, $side, $change: verify has a finding");
		is($round{named}, 'rows named', "$phase, $side, $change: rows that differ are named")
		  if $change =~ /^asynchronous|backup|dump/ || $change eq 'pg_upgrade' && !$keeps_slots;
	}
	$_->stop('immediate') foreach $one, $two;
	$_->clean_node foreach $one, $two;
	return;
}

my @all = map { my $phase = $_; map { [ $phase, @$_ ] }
	[ follower => 'synchronous standby' ], [ follower => 'asynchronous standby' ], [ follower => 'backup' ], [ follower => 'dump' ],
	[ follower => 'pg_upgrade' ], [ sender => 'synchronous standby' ], [ sender => 'asynchronous standby' ],
	# pg_upgrade refuses a slot that has not been read to its end: that of reverse replication before it is used.
	$keeps_slots && $phase ne 'open' ? [ sender => 'pg_upgrade' ] : () } sort keys %phases;
@all = grep { "@$_" =~ /$ENV{SNOWFLAKE_TEST_ROUNDS}/ } @all if $ENV{SNOWFLAKE_TEST_ROUNDS};
my $trials = $ENV{SNOWFLAKE_TEST_CYCLES} // 2;
@all = shuffle @all unless $trials eq 'all';
note('phase   | server   | change               | outcome             | transactions | lost | doubled | lost by the failover of the open server');
run_round(@$_) foreach $trials eq 'all' ? @all : @all[ 0 .. ($trials > @all ? $#all : $trials - 1) ];
done_testing();
