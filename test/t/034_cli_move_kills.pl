# snowflake-shard move: a shard goes to another server while clients write. Each acknowledged write is
# there exactly once, no ID comes twice, and whatever is killed at whatever step, --resume or --abort
# leads to a shard that is open on one server, and to nothing that verify finds.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $program = shard_program();
seed_random();
my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\nmax_connections = 60\nwal_retrieve_retry_interval = 200ms\n";
my @nodes = map { new_server($_, conf => $conf) } qw(one two);
my @tables = qw(insta5.users insta5.log insta5.part);
my ($status, $out, $err);

# A shard with the kinds of tables that a move treats in different ways.
sub make_shard
{
	my ($node, $shard, $database) = @_;
	my $sql = q{
		SELECT snowflake_create_shard(5, 'insta5');
		SET search_path = insta5, public;
		CREATE TABLE users (id bigint PRIMARY KEY DEFAULT insta5.next_id(), v text);
		CREATE INDEX ON users (v);
		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), user_id bigint REFERENCES users ON DELETE CASCADE);
		CREATE SEQUENCE log_id_seq;
		CREATE TABLE log (id bigint PRIMARY KEY DEFAULT snowflake_next_id(5, 'insta5.log_id_seq'), v text);
		CREATE TABLE part (id bigint DEFAULT insta5.next_id() PRIMARY KEY, v text) PARTITION BY HASH (id);
		CREATE TABLE part0 PARTITION OF part FOR VALUES WITH (MODULUS 2, REMAINDER 0);
		CREATE TABLE part1 PARTITION OF part FOR VALUES WITH (MODULUS 2, REMAINDER 1);
		CREATE TABLE counted (n integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text);
		CREATE TABLE keyless (v text);
		ALTER TABLE keyless REPLICA IDENTITY FULL;
		CREATE TABLE empty (id bigint PRIMARY KEY DEFAULT insta5.next_id());
		CREATE SEQUENCE unused;
		CREATE SEQUENCE down INCREMENT -1 CYCLE;
		SELECT nextval('insta5.down'), nextval('insta5.down');
		CREATE MATERIALIZED VIEW m AS SELECT count(*) FROM counted;
		CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN new; END$$;
		CREATE TRIGGER touch BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION touch();
		INSERT INTO users (v) SELECT 'old' FROM generate_series(1, 1000);
		INSERT INTO photos (user_id) SELECT id FROM users;
		INSERT INTO counted (v) VALUES ('a'), ('b');
		INSERT INTO keyless SELECT 'k' FROM generate_series(1, 10);
	};
	$sql =~ s/insta5/insta$shard/g;
	$sql =~ s/\b5\b/$shard/g;
	$node->safe_psql($database // 'postgres', $sql);
	return;
}

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

make_shard($nodes[0], 5);
my $definition = dump_of($nodes[0], 'insta5');
my $down = $nodes[0]->safe_psql('postgres', 'SELECT last_value, is_called FROM insta5.down');

# There and back, while clients write.
my $writers = start_writers(4, \@tables, map { $_->connstr('postgres') } @nodes);
usleep(300_000);
($status, $out, $err) = move(@nodes);
is($status, 0, 'move: exit code 0') or diag("$out$err");
like($err, qr/writes were blocked for \d+ ms/, 'the pause is printed');
is(places(), '1', 'the shard is open on the target alone');
is(dump_of($nodes[1], 'insta5'), $definition, 'the definition is the same there');
is($nodes[1]->safe_psql('postgres', 'SELECT last_value, is_called FROM insta5.down'), $down, 'a sequence that counts down, too');
is($nodes[1]->safe_psql('postgres', 'SELECT count FROM insta5.m'), '2', 'the materialized view is filled');
is_clean('verify finds nothing while the source is fenced');

# Everything that makes a row or an ID fails on the source.
foreach my $sql ((map { "INSERT INTO insta5.$_ (v) VALUES ('x')" } qw(users log part part0 counted keyless)),
	'UPDATE insta5.users SET v = 1', 'DELETE FROM insta5.part1', 'TRUNCATE insta5.empty',
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
like(($nodes[0]->psql('postgres', 'DELETE FROM insta5.users'))[2] // '', qr/has moved\nDETAIL:  It is at \S*:${\$nodes[1]->port}\/postgres now/,
	'the error names the new server');

is((move(@nodes))[0], 3, 'a second move from the source that is fenced fails');
is((move(@nodes, '--resume'))[0], 0, '--resume after the move does nothing');
is((move(@nodes, '--abort'))[0], 3, '--abort is refused after the move');
is((move(reverse(@nodes)))[0], 1, 'back: the old schema is an obstacle');
$nodes[0]->safe_psql('postgres', 'CREATE VIEW public.v AS SELECT * FROM insta5.users');
($status, $out, $err) = move(@nodes, '--drop-source');
ok($status == 3 && $err =~ /view (public\.)?v/, '--drop-source names what depends on the schema');
$nodes[0]->safe_psql('postgres', 'DROP VIEW public.v');
is((move(@nodes, '--drop-source'))[0], 0, '--drop-source');
is($nodes[0]->safe_psql('postgres', "SELECT count(*) FROM pg_namespace WHERE nspname ~ 'insta5|move'"), '0', 'the source has nothing left');
is((move(reverse(@nodes)))[0], 0, 'and back');
is((move(reverse(@nodes), '--drop-source'))[0], 0, '--drop-source there');
is(dump_of($nodes[0], 'insta5'), $definition, 'the definition is the same after both moves');
is_clean('verify finds nothing');

# A command, a source or a target that is killed at any step.
my @steps = ('source: publication', 'target: definition', 'target: rows', 'target: indexes',
	'target: waiting until', 'source: fence', 'target: waiting for', 'target: open', 'both: comparing', 'both: subscription');
my $trials = trials(2, 200);
my %outcomes;
my $from = 0;
my $step = int(rand(@steps));
my @faults;
foreach my $trial (1 .. $trials)
{
	show_progress('move', $trial, $trials);
	$step = ($step + 1) % @steps;
	my $victim = (qw(command source target))[ rand 3 ];
	my @way = ($nodes[$from], $nodes[ 1 - $from ]);
	my $text = '';
	my $run = IPC::Run::start([ $program, 'move', 'insta5', '--from', $way[0]->connstr('postgres'),
			'--to', $way[1]->connstr('postgres'), '--timeout', '3s' ],
		'<', \undef, '>', '/dev/null', '2>', \$text);
	my $deadline = time() + 60;
	until ($text =~ /$steps[$step]/ || !$run->pumpable || time() > $deadline) { $run->pump_nb; usleep(500) }
	usleep(rand(30_000));
	$run->kill_kill(grace => 0) if $victim eq 'command';
	foreach my $node ($victim eq 'source' ? $way[0] : $victim eq 'target' ? $way[1] : ())
	{
		crash($node);
		start_server($node);
	}
	eval { $run->finish };
	my $end = $run->result(0);
	my $what = "$victim killed at \"$steps[$step]\"";
	my $word = rand() < 0.5 ? '--resume' : '--abort';
	($status, $out, $err) = move(@way, $word, '--timeout', '3s');
	push @faults, "$what, $word: rows differ: $err" if $status == 1;
	if ($status != 0 && places() ne "$from")    # switched, or nothing is there to be resumed
	{
		$word = '--resume';
		($status, $out, $err) = move(@way, $word, '--timeout', '3s');
	}
	($status, $out, $err) = move(@way, '--abort') if $status != 0;
	my $place = places();
	push @faults, "$what, $word: $err" if $status != 0;
	push @faults, "$what, $word: open at $place" if $place !~ /^[01]$/;
	$outcomes{ $place eq "$from" ? 'not moved' : 'moved' }++;
	if ($place eq 1 - $from)
	{
		($status, $out, $err) = move(@way, '--drop-source');
		push @faults, "$what, --drop-source: $err" if $status != 0;
		$from = 1 - $from;
	}
	my ($found_status, $found) = shard_json($program, 'verify', @nodes);
	push @faults, map { "$what, $word: $_->{object}: $_->{problem}" } @$found;
	last if @faults;
}
is(join("\n", @faults), '', "$trials kills: one server has the shard, verify finds nothing ("
	  . join(', ', map { "$outcomes{$_} $_" } sort keys %outcomes) . ')');
my @journal = stop_writers($writers);
my @lost = lost_writes($nodes[$from], 'postgres', @journal);
is(@lost, 0, 'each acknowledged write is there exactly once, ' . @journal . ' lines') or diag(join "\n", @lost[0 .. 4]);
is(dump_of($nodes[$from], 'insta5'), $definition, 'the definition is the same after all');

$_->stop foreach @nodes;
done_testing();
