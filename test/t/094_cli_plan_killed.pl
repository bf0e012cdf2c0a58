# A plan of many moves of real shards over three servers, while clients write. The command is killed at random moments,
# and the same line is given again: each shard is open where the plan says, and no acknowledged write is lost or doubled.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use JSON::PP;
use PostgreSQL::Test::Utils;
use ShardTest;
use ShardWriters;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

my $program = shard_program();
seed_random();

my $conf = "wal_level = logical\nmax_wal_senders = 20\nmax_replication_slots = 20\nmax_connections = 80\n"
	. "max_worker_processes = 20\nmax_logical_replication_workers = 12\n";
my @nodes = map { new_server($_, conf => $conf) } qw(one two three);
my ($status, $rows, $out, $err);

my $trials = trials(2, 20);
my $moved = 2 * trials(1, 20);
my $count = 3 * $moved / 2;    # shards
my @servers = map { $_->connstr('many') } @nodes;
make_real_database($_, 'many') foreach @nodes;
make_real_shard($nodes[0], 'many', 0, 'insta0');
is((run_shard($program, 'clone', $servers[0], '--template', 'insta0', '--shards', '1-' . ($count - 1), '--schema',
	'insta{}'))[0], 0, "$count real shards");
foreach my $shard (0 .. $count - 1)
{
	my $long = $ENV{SNOWFLAKE_TEST_LONG} || $shard == 0 ? 300_000 : 10_000;
	psql_file($nodes[0], 'many', 'rows', schema => "insta$shard", n => 30, long => $long);
}
($status, $out, $err) = run_shard($program, 'plan', @servers, qw(--by shards --threshold 0% --json));
my $file = PostgreSQL::Test::Utils::tempdir() . '/plan.json';
append_to_file($file, $out);
my %target = map { $_->{shard} => $_->{to} =~ /port=(\d+)/ } @{ decode_json($out) };
is(scalar keys %target, $moved, 'plan --json moves two thirds of them');
my @moving = sort { $a <=> $b } keys %target;
my %written = map { $_ => 1 } 1, @moving[ 0, $moved / 2, -1 ], (grep { !$target{$_} } 0 .. $count - 1)[0];
my %writers = map { $_ => start_writers(1, "insta$_", [], @servers) } sort keys %written;

my @line = ('move', '--plan', $file, '--jobs', 2, '--timeout', '10s');
my $killed = 0;

subtest 'a plan whose command is killed is finished by the same line' => sub {
	foreach my $trial (1 .. $trials)
	{
		show_progress('plan', $trial, $trials);
		# A move prints at least these five lines, so that no command ends before it is killed.
		my $steps = 1 + int(rand(5 * $moved / ($trials + 1)));
		my $run = background(@line);
		my $at = qr/target: definition|target: rows|source: fence|target: open|both: comparing/;
		await('a move goes on', sub { has_ended($run) || (() = $run->{err} =~ /$at/g) >= $steps });
		usleep(rand(50_000));
		$killed++ if $run->{h}->pumpable;
		kill_command($run->{h});
	}
	is($killed, $trials, 'the command was killed ' . $trials . ' times');
	my $last = background(@line);    # without the timeout of run_shard(): many moves may be left
	$last->{h}->finish;
	is($last->{h}->result(0), 0, 'the same line finishes the plan') or diag($last->{err});
	my %journals = map { $_ => [ stop_writers($writers{$_}) ] } keys %writers;
	my %place = map { @$_{qw(shard port)} } @{ (shard_json($program, 'map', @servers))[1] };
	is_deeply(\%place, { map { $_ => $target{$_} // $nodes[0]->port } 0 .. $count - 1 },
		'each shard is open where the plan says');
	foreach my $shard (sort { $a <=> $b } keys %journals)
	{
		my @journal = @{ $journals{$shard} };
		my ($node) = grep { $_->port == $place{$shard} } @nodes;
		my @lost = lost_writes($node, 'many', "insta$shard", @journal);
		is(@lost, 0, "each transaction of shard $shard is there exactly once: " . @journal . ', in doubt '
			. grep { $_->{doubt} } @journal) or diag(join "\n", @lost[ 0 .. 4 ]);
		cmp_ok(scalar @journal, '>', 10, 'and there are some');
	}
	is((run_shard($program, 'move', '--plan', $file, '--complete'))[0], 0, '--complete of the plan');
	($status, $rows) = shard_json($program, 'verify', @servers);
	is(join("\n", map { "$_->{object}: $_->{problem}" } @$rows), '', 'verify finds nothing');
};

$_->stop foreach @nodes;
done_testing();
