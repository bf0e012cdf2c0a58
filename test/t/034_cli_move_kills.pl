# snowflake-shard move: a shard goes to another server while clients write. Each acknowledged write is
# there exactly once, no ID comes twice, a client behind PgBouncer reads what it wrote, and after a kill of any part at
# any step, --resume or --abort leads to a shard that is open on one server, and to nothing that verify finds.

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
seed_random();

# Two servers, and shard 5 of an application on the first.
my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\nmax_connections = 60\n"
	. "max_worker_processes = 12\nmax_logical_replication_workers = 8\n";
my @nodes = map { new_server($_, conf => $conf) } qw(one two);
my ($status, $out, $err);

sub move
{
	my ($from, $to, @arguments) = @_;
	return run_shard($program, 'move', 'insta5', '--from', $from, '--to', $to, @arguments);
}

sub is_clean
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($status, $found) = shard_json($program, 'verify', @nodes);
	return is(join("\n", map { "$_->{object}: $_->{problem}" } @$found), '', $name);
}

# Where the shard is open: 0, 1 or both.
sub places
{
	return join ',', grep {
		my ($node) = $nodes[$_];
		my ($status, $rows) = shard_json($program, 'map', $node);
		grep { $_->{schema} eq 'insta5' } @$rows
	} 0 .. 1;
}

make_written_shard(@nodes);
my $definition = dump_of($nodes[0], 'insta5');
my $down = $nodes[0]->safe_psql('postgres', 'SELECT last_value, is_called FROM insta5.down');

# There and back, while clients write: some know both servers, some are led there by PgBouncer.
my $pooler = pgbouncer_program() ? new_pooler(alias_to($nodes[0])) : undef;
my @routing = $pooler ? ('--pgbouncer', $pooler->{dsn}, '--config', $pooler->{file}) : ();
my @writers = start_writers(2, 'insta5', [qw(log part)], map { $_->connstr('postgres') } @nodes);
push @writers, start_writers(2, 'insta5', [qw(log part)], shard5_of($pooler)) if $pooler;
usleep(300_000);

subtest 'a move while clients write' => sub {
	my $old = $nodes[0]->background_psql('postgres', on_error_stop => 0);
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM insta5.users');
	# With the setting pg_dump doubles the backslash of a CHECK.
	$nodes[0]->safe_psql('postgres', 'ALTER DATABASE postgres SET standard_conforming_strings = off');
	($status, $out, $err) = move(@nodes, @routing);
	$nodes[0]->safe_psql('postgres', 'ALTER DATABASE postgres RESET standard_conforming_strings');
	is($status, 0, 'move: exit code 0') or diag("$out$err");
	$old->query('UPDATE insta5.users SET country = NULL');
	like($old->{stderr}, qr/has moved/, 'fence: a transaction whose snapshot is older');
	$old->quit;
	like($err, qr/writes were blocked for \d+ ms/, 'the pause is printed');
	is(places(), '1', 'the shard is open on the target alone');
	is(dump_of($nodes[1], 'insta5'), $definition, 'the definition is the same there');
	is($nodes[1]->safe_psql('postgres', 'SELECT last_value, is_called FROM insta5.down'), $down,
		'a sequence that counts down, too');
	is($nodes[1]->safe_psql('postgres', 'SELECT count FROM insta5.m'), '2', 'the materialized view is filled');
	is_clean('verify finds nothing while the source is fenced');
};

subtest 'everything that makes a row or an ID fails on the source' => sub {
	foreach my $sql ((map { "INSERT INTO insta5.$_ (v) VALUES ('x')" } qw(log part part0 counted keyless)),
		q{INSERT INTO insta5.users (name) VALUES ('x')}, q{INSERT INTO insta5.events (kind) VALUES ('x')},
		q{INSERT INTO insta5.users (name) VALUES ('hot') ON CONFLICT (lower(name::text)) DO UPDATE SET settings = '{}'},
		'UPDATE insta5.users SET country = NULL', 'DELETE FROM insta5.part1', 'TRUNCATE insta5.empty',
		'COPY insta5.keyless FROM PROGRAM \'echo x\'', 'SELECT insta5.next_id()')
	{
		is(sqlstate($nodes[0], $sql), '25006', "fence: $sql");
		is(sqlstate($nodes[0], "SET session_replication_role = replica; $sql"), '25006', "fence: $sql, as a replica");
	}
	foreach my $draw ("snowflake_next_id(5, 'insta5.log_id_seq')", "snowflake_next_id(5, 'insta5.unused')",
		map { "nextval('insta5.$_')" } qw(table_id_seq log_id_seq counted_n_seq unused down))
	{
		isnt(sqlstate($nodes[0], "SELECT $draw"), '', "fence: $draw");
	}
	like(($nodes[0]->psql('postgres', 'DELETE FROM insta5.users'))[2] // '',
		qr/has moved\nDETAIL:  It is at \S*:${\$nodes[1]->port}\/postgres now/,
		'the error names the new server');
};

subtest 'a move that is done, and the move back' => sub {
	is((move(@nodes))[0], 0, 'a move that is done does nothing');
	is((move(@nodes, '--resume'))[0], 0, '--resume after the move does nothing');
	is((move(@nodes, '--abort'))[0], 3, '--abort is refused after the move');
	is((move(reverse(@nodes)))[0], 1, 'back: the old schema is an obstacle');
	$nodes[0]->safe_psql('postgres', 'CREATE VIEW public.v AS SELECT * FROM insta5.users');
	($status, $out, $err) = move(@nodes, '--complete');
	ok($status == 3 && $err =~ /view (public\.)?v/, '--complete names what depends on the schema');
	$nodes[0]->safe_psql('postgres', 'DROP VIEW public.v');
	is((move(@nodes, '--complete'))[0], 0, '--complete');
	is($nodes[0]->safe_psql('postgres', "SELECT count(*) FROM pg_namespace WHERE nspname ~ 'insta5|move'"), '0',
		'the source has nothing left');
	is((move(reverse(@nodes), @routing))[0], 0, 'and back');
	is((move(reverse(@nodes), '--complete'))[0], 0, '--complete there');
	is(dump_of($nodes[0], 'insta5'), $definition, 'the definition is the same after both moves');
	is_clean('verify finds nothing');
};

# Ends the processes of a kind on a server, as a network that breaks does.
sub terminate
{
	my ($node, $kind) = @_;
	$node->psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type IN ($kind)");
	return;
}

# Somebody is killed at any step, three times of four during the cutover.
my @cutover = ('source: triggers', 'source: fence', 'target: waiting for', 'target: open', 'both: comparing');
my @steps = ('source: publication', 'target: definition', 'target: rows', 'target: indexes', 'target: waiting until',
	'both: subscription', map { @cutover } 1 .. 4);
my %victims = (
	command => sub { my ($run) = @_; kill_command($run) },
	source => sub { crash($_[1]); start_server($_[1]) },
	target => sub { crash($_[2]); start_server($_[2]) },
	both => sub { my (undef, @way) = @_; crash($_) foreach @way; start_server($_) foreach @way },
	$pooler ? (pooler => sub { kill_pooler($pooler); start_pooler($pooler) }) : (),
	walsender => sub { terminate($_[1], q{'walsender'}) },
	worker => sub { terminate($_[2], q{'logical replication worker', 'logical replication apply worker'}) });
my $trials = trials(2, 200);
my %outcomes;
my $from = 0;
my $step = int(rand(@steps));
my @faults;

subtest 'one server has the shard after any kill' => sub {
	foreach my $trial (1 .. $trials)
	{
		show_progress('move', $trial, $trials);
		$step = ($step + 1) % @steps;
		my $victim = (sort keys %victims)[ rand keys %victims ];
		my @way = ($nodes[$from], $nodes[ 1 - $from ]);
		my $text = '';
		my $run = IPC::Run::start([ $program, 'move', 'insta5', '--from', $way[0]->connstr('postgres'),
				'--to', $way[1]->connstr('postgres'), '--timeout', '3s', @routing ],
			'<', \undef, '>', '/dev/null', '2>', \$text);
		my $deadline = time() + 60;
		until (!goes_on($run) || $text =~ /$steps[$step]/ || time() > $deadline) { usleep(3_000) }
		usleep(rand(30_000));
		$victims{$victim}->($run, @way);
		eval { $run->finish };
		my $end = $run->result(0);
		my $what = "$victim killed at \"$steps[$step]\"";
		my $word = rand() < 0.9 ? '--resume' : '--abort';
		($status, $out, $err) = move(@way, $word, '--timeout', '3s');
		push @faults, "$what, $word: rows differ: $err" if $status == 1;
		if ($status != 0)    # the target was open, or nothing was there
		{
			push @faults, "$what, $word: $err"
				if $err !~ /is open on|there is no move of/;
			$word = places() eq $from && ($status == 0 || $err =~ /there is no move of/) ? 'anew' : '--resume';
			($status, $out, $err) = move(@way, $word eq 'anew' ? @routing : $word, '--timeout', '3s');
		}
		my $place = places();
		push @faults, "$what, $word: $err" if $status != 0;
		push @faults, "$what, $word: PgBouncer leads to " . alias_of($pooler)
			if $pooler && $place =~ /^[01]$/ && alias_of($pooler) ne led_to($nodes[$place]);
		push @faults, "$what, $word: open at $place" if $place !~ /^[01]$/;
		$outcomes{ $place eq "$from" ? 'not moved' : 'moved' }++;
		if ($place eq 1 - $from)
		{
			($status, $out, $err) = move(@way, '--complete');
			push @faults, "$what, --complete: $err" if $status != 0;
			$from = 1 - $from;
		}
		my ($found_status, $found) = shard_json($program, 'verify', @nodes);
		push @faults, map { "$what, $word: $_->{object}: $_->{problem}" } @$found;
		last if @faults;
	}
	is(join("\n", @faults), '', "$trials kills: one server has the shard, verify finds nothing ("
			. join(', ', map { "$outcomes{$_} $_" } sort keys %outcomes) . ')');
};

subtest 'each acknowledged transaction is there once' => sub {
	my @journal = map { stop_writers($_) } @writers;
	my @lost = lost_writes($nodes[$from], 'postgres', 'insta5', @journal);
	is(@lost, 0, 'each acknowledged transaction is there exactly once, ' . @journal . ' transactions, '
			. grep({ $_->{doubt} } @journal) . ' in doubt') or diag(join "\n", @lost[0 .. 4]);
	is(dump_of($nodes[$from], 'insta5'), $definition, 'the definition is the same after all');
};

$_->stop foreach @nodes;
done_testing();
