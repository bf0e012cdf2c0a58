# snowflake-shard move --shards and --plan: a list of moves. All obstacles are told before the first; a command that is
# killed goes on when the same line is given again; each server makes one move at a time; what is printed is what happened.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

my $program = shard_program();
seed_random();
my $conf = "wal_level = logical\nmax_wal_senders = 20\nmax_replication_slots = 20\nmax_connections = 80\n"
  . "max_worker_processes = 20\nmax_logical_replication_workers = 12\n";
my @nodes = map { new_server($_, conf => $conf) } qw(one two three);
my ($status, $rows, $out, $err);
make_template($nodes[0]);
$_->safe_psql('postgres', 'CREATE ROLE app') foreach @nodes[ 1, 2 ];
$nodes[0]->safe_psql('postgres', q{INSERT INTO insta0.users (name) SELECT n FROM generate_series(1, 100) AS n});
is((run_shard($program, 'clone', $nodes[0], '--template', 'insta0', '--shards', '1-7', '--schema', 'insta{}'))[0], 0, 'shards are made');
$nodes[0]->safe_psql('postgres', "INSERT INTO insta$_.users (name) SELECT n FROM generate_series(1, 10 * $_) AS n") foreach 1 .. 7;
my @pair = ('--from', $nodes[0], '--to', $nodes[1]);

# "0 1 2|5|" for each server: the shards that are open there.
sub places
{
	return join '|', map {
		my (undef, $rows) = shard_json($program, 'map', $_);
		join ' ', sort map { $_->{shard} } @$rows
	} @nodes;
}

sub many
{
	my (@arguments) = @_;
	($status, $rows, $err) = shard_json($program, 'move', @arguments);
	return join ', ', $status, map { defined $_->{state} ? "$_->{shard} $_->{state}" : $_->{obstacle} } @$rows;
}

sub is_wrong_usage
{
	my ($text, @arguments) = @_;
	($status, $out, $err) = run_shard($program, 'move', @arguments);
	return like("$status $err", qr/^2 .*\Q$text\E/, "wrong usage: $text");
}

sub plan_file
{
	my ($text) = @_;
	my $name = PostgreSQL::Test::Utils::tempdir() . '/plan.json';
	unlink $name;
	append_to_file($name, ref $text ? encode_json($text) : $text);
	return $name;
}

is_wrong_usage('one of these is needed: a schema, --shards, --plan', 'insta1', '--shards', '1', @pair);
is_wrong_usage('--from and --to are needed', '--shards', '1', '--from', $nodes[0]);
is_wrong_usage('no --from, no --to', '--plan', plan_file([]), @pair);
is_wrong_usage('is no plan', '--plan', plan_file('{}'));
my %entry = (shard => 1, schema => 'insta1', from => $nodes[0]->connstr('postgres'), to => $nodes[1]->connstr('postgres'));
is_wrong_usage('entry 2: "to" is missing, or no text', '--plan', plan_file([ \%entry, { %entry, shard => 2, to => undef } ]));
is_wrong_usage('entry 2: shard 1 is there twice', '--plan', plan_file([ \%entry, \%entry ]));
is((run_shard($program, 'move', '--shards', '1,77', @pair))[0], 3, 'a shard that is nowhere');

# The obstacles of all shards, before the first move.
$nodes[0]->safe_psql('postgres', 'CREATE TABLE insta1.k (n integer); CREATE TABLE insta2.k (n integer)');
is(many('--shards', '0-2', @pair) =~ s/\n.*?(?=, |$)//gr =~ s/, \S+:\d+\/postgres//gr,
	'1, shard 1: table insta1.k has no replica identity, shard 2: table insta2.k has no replica identity', 'obstacles of two shards');
is(places(), '0 1 2 3 4 5 6 7||', 'and nothing is moved');
$nodes[0]->safe_psql('postgres', 'DROP TABLE insta1.k, insta2.k');
is(many('--shards', '0-2', @pair, '--dry-run'), '0', '--dry-run');
is(many('--shards', '0-2', @pair, '--jobs', 3), '0, 0 moved, 1 moved, 2 moved', 'three shards');
like(join(' ', map { $_->{pause_ms} } @$rows), qr/^\d+ \d+ \d+$/, 'with their pauses');
is(places(), '3 4 5 6 7|0 1 2|', 'they are there');
is(many('--shards', '0-3', @pair), '0, 0 moved, 1 moved, 2 moved, 3 moved', 'the same again, and one more');
is(many('--shards', '0-3', @pair, '--drop-source'), '0, 0 dropped, 1 dropped, 2 dropped, 3 dropped', '--drop-source');

# One that fails does not stop the others.
$nodes[0]->safe_psql('postgres', 'CREATE SCHEMA insta4_before');
my @plan = map { { %entry, shard => $_, schema => "insta$_" } } 4 .. 6;
$plan[1]{to} = $nodes[2]->connstr('postgres');
my $file = plan_file(\@plan);
is(many('--plan', $file, '--jobs', 2, '--reversible'), '0, 4 moved with a way back, 5 moved with a way back, 6 moved with a way back', 'a plan for three servers');
is(places(), '7|0 1 2 3 4 6|5', 'as it is written');
$nodes[2]->stop('immediate');
is(many('--plan', $file, '--undo'), '3, 4 undone, 5 failed, 6 undone', '--undo of a plan, one of whose servers is down');
like($rows->[1]{error}, qr/connection to server/, 'the error of that server');
start_server($nodes[2]);
is(many('--plan', $file, '--undo'), '0, 4 undone, 5 undone, 6 undone', 'the same line when it is there again');
is(places(), '4 5 6 7|0 1 2 3|', 'they are back');
is(many('--plan', plan_file([ map { { %$_, from => $_->{to}, to => $_->{from} } } @plan ]), '--drop-source'), '0, 4 dropped, 5 dropped, 6 dropped',
	'the other copies are dropped');

# A planner's plan, and a command that is killed at a random moment, and given again.
($status, $out, $err) = run_shard($program, 'plan', @nodes, '--by', 'shards', '--json');
$file = plan_file($out);
cmp_ok(scalar @{ decode_json($out) }, '>=', 2, 'plan --json has moves');
my $trials = trials(3, 20);
foreach my $trial (1 .. $trials)
{
	my $text = '';
	my $run = IPC::Run::start([ $program, 'move', '--plan', $file, '--jobs', 2 ], '<', \undef, '>', '/dev/null', '2>', \$text);
	my $at = qr/(target: definition|target: rows|source: fence|target: open|both: comparing)/;
	await('a move goes on', sub { $run->pump_nb; $text =~ $at || !$run->pumpable });
	usleep(rand(300_000));
	$run->kill_kill(grace => 0);
	eval { $run->finish };
}
($status, $rows, $err) = shard_json($program, 'move', '--plan', $file, '--jobs', 2);
is($status, 0, "after $trials kills the same line finishes the plan") or diag($err);
is(join(' ', sort { $a <=> $b } map { split ' ' } split /\|/, places()), '0 1 2 3 4 5 6 7', 'each shard is at one place');
is(scalar(grep { split(' ') >= 2 } split /\|/, places()), 3, 'and no server has less than two');
is((run_shard($program, 'move', '--plan', $file, '--drop-source'))[0], 0, '--drop-source of the plan');
($status, $rows) = shard_json($program, 'verify', @nodes);
is(join("\n", map { "$_->{object}: $_->{problem}" } @$rows), '', 'verify finds nothing');

$_->stop foreach @nodes;
done_testing();
