# snowflake-shard move --shards and --plan: a list of sets, each of which moves as one. All obstacles are told before the
# first; each server is in one set at a time; what is printed is what happened, and the same line does the rest.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use JSON::PP;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
seed_random();

# Three servers; the first has shards 0 to 7.
my $conf = "wal_level = logical\nmax_wal_senders = 20\nmax_replication_slots = 20\nmax_connections = 80\n"
	. "max_worker_processes = 20\nmax_logical_replication_workers = 12\n";
my @nodes = map { new_server($_, conf => $conf) } qw(one two three);
my ($status, $rows, $out, $err);
$nodes[0]->safe_psql('postgres', q{SELECT snowflake_create_shard(0, 'insta0');
	CREATE TABLE insta0.users (id bigint PRIMARY KEY DEFAULT insta0.next_id(), name text);
	INSERT INTO insta0.users (name) SELECT n FROM generate_series(1, 100) AS n});
is((run_shard($program, 'clone', $nodes[0], '--template', 'insta0', '--shards', '1-7', '--schema', 'insta{}'))[0], 0,
	'shards are made');
$nodes[0]->safe_psql('postgres', "INSERT INTO insta$_.users (name) SELECT n FROM generate_series(1, 10 * $_) AS n")
	foreach 1 .. 7;
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

# The rows of these shards, or all, have a next command like that, or none.
sub is_next
{
	my ($next, $name, @shards) = @_;
	my @these = grep { my $row = $_; !@shards || grep { $_ == $row->{shard} } @shards } @$rows;
	my @wrong = grep { $next ? ($_->{next} // '') !~ $next : $_->{next} } @these;
	return ok(@these && !@wrong, $name) || diag(explain($rows));
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

my %entry;
subtest 'wrong usage' => sub {
	is_wrong_usage('one of these is needed: a schema, --shards, --plan', 'insta1', '--shards', '1', @pair);
	is_wrong_usage('--from and --to are needed', '--shards', '1', '--from', $nodes[0]);
	is_wrong_usage('no --from, no --to', '--plan', plan_file([]), @pair);
	is_wrong_usage('is no plan', '--plan', plan_file('{}'));
	%entry =
		(shard => 1, schema => 'insta1', from => $nodes[0]->connstr('postgres'), to => $nodes[1]->connstr('postgres'));
	is_wrong_usage('entry 2: "to" is missing, or no text', '--plan',
		plan_file([ \%entry, { %entry, shard => 2, to => undef } ]));
	is_wrong_usage('entry 2: shard 1 is there twice', '--plan', plan_file([ \%entry, \%entry ]));
	is_wrong_usage("\"shard\" is missing, or no number from 0 to 8191", '--plan',
		plan_file(encode_json([ \%entry ]) =~ s/"shard":1/"shard":$_/r))
		foreach qw(-1 8192 4294967297 18446744073709551617 1.0 "1" null);
	is((run_shard($program, 'move', '--shards', '1,77', @pair))[0], 3, 'a shard that is nowhere');
};

my $told;
subtest 'a plan is checked as a whole' => sub {
	my ($one_name, $two_name) = map { $_->host . ':' . $_->port . '/postgres' } @nodes;
	my @wrong = ({ %entry, shard => 7777 }, { %entry, shard => 2, schema => 'insta2' },
		{ %entry, shard => 3, schema => 'no such schema' }, { %entry, shard => 1, schema => 'insta4' });
	$told = <<"END";
entry 1, shard 7777: schema insta1 is shard 1 on $one_name, not 7777
entry 3, shard 3: schema no such schema is no shard of $one_name or $two_name
entry 4, shard 1: schema insta4 is shard 4 on $one_name, not 1
Nothing was done.
END
	foreach my $verb ([], ['--dry-run'], ['--undo'])
	{
		($status, $out, $err) = run_shard($program, 'move', '--plan', plan_file(\@wrong), @$verb);
		is("$status $out$err", "3 snowflake-shard: $told", "a plan with wrong numbers @$verb");
	}
	my $down = 'host=/nonexistent/a password=secret dbname=app';
	($status, $out, $err) = run_shard($program, 'move', '--plan',
		plan_file([ { %entry, to => $down }, @wrong[ 0, 1 ], { %entry, shard => 3, schema => 'insta3', to => $down } ]));
	my $down_entries = qr/entries 1,4: dbname=app host=\/nonexistent\/a: connection .*/;
	like("$status $out$err",
		qr/^3 snowflake-shard: $down_entries\nentry 2, shard 7777: schema insta1 is .*\nNothing was done\.$/,
		'a server that is down is told with its entries');
	unlike($err, qr/secret/, 'and without its password');
	(my $again = $entry{from}) =~ s/host=(\S+)/host=$1\//;
	is_wrong_usage("entry 2, shard 2: both servers are the same: $one_name", '--plan',
		plan_file([ \%entry, { %entry, shard => 2, schema => 'insta2', to => $again } ]));
	is_wrong_usage("shard 1: both servers are the same: $one_name", '--shards', 1, '--from', $nodes[0], '--to', $again);
	is_wrong_usage("--from and --to are the same: $one_name", 'insta1', '--from', $nodes[0], '--to', $again);
	is(places(), '0 1 2 3 4 5 6 7||', 'nothing is moved');
};

subtest 'the obstacles of all shards are told before the first move' => sub {
	$nodes[0]->safe_psql('postgres', 'CREATE TABLE insta1.k (n integer); CREATE TABLE insta2.k (n integer)');
	is(many('--shards', '0-2', @pair) =~ s/\n.*?diff compares it//gr =~ s/, \S+:\d+\/postgres//gr,
		'1, shards 0-2: table insta1.k has no replica identity, shards 0-2: table insta2.k has no replica identity',
		'obstacles of two shards');
	is(many('--shards', '0-2', @pair, '--together', 1) =~ s/\n.*?diff compares it//gr =~ s/, \S+:\d+\/postgres//gr,
		'1, shard 1: table insta1.k has no replica identity, shard 2: table insta2.k has no replica identity',
		'and of two sets');
	is(places(), '0 1 2 3 4 5 6 7||', 'and nothing is moved');
	$nodes[0]->safe_psql('postgres', 'DROP TABLE insta1.k, insta2.k');
	is(many('--shards', '0-2', @pair, '--dry-run'), '0', '--dry-run');
	my $target = $nodes[1]->host . ':' . $nodes[1]->port . '/postgres';
	like($err, qr/^snowflake-shard: 0 obstacles
snowflake-shard: 3 shards have \d+ kB: \Q$target\E needs as much free space beside the \d+ \w+ of its tablespace pg_default, and each source/m,
		'and the space that the target needs');
	is(many('--shards', '0-2', @pair), '0, 0 moved, 1 moved, 2 moved', 'three shards');
	like(join(' ', map { $_->{pause_ms} } @$rows), qr/^(\d+) \1 \1$/, 'with their pause');
	is_next(qr/move --shards 0-2 --from '[^']*' --to '[^']*' --complete/, 'and with the next command');
	is(places(), '3 4 5 6 7|0 1 2|', 'they are there');
	is(many('--shards', '0-3', @pair), '0, 0 moved, 1 moved, 2 moved, 3 moved', 'the same again, and one more');
	like($err, qr/^snowflake-shard: 3 shards moved by an earlier command$/m, 'which looks at that one alone');
	unlike($err, qr/shard [0-2]:/, 'and says nothing of the others');
	is_next(qr/move --shards 0-2 --from '[^']*' --to '[^']*' --complete/, 'all with the next command', 0 .. 2);
	is_next(qr/move insta3 --from '[^']*' --to '[^']*' --complete/, 'each set with its own', 3);
	is(many('--shards', '0-3', @pair, '--complete'), '0, 0 dropped, 1 dropped, 2 dropped, 3 dropped', '--complete');
	is_next(undef, 'at rest there is none');
};

subtest 'a server that starts subscriptions slowly is named before the list begins' => sub {
	my $set = sub { $nodes[1]->safe_psql('postgres', $_) foreach @_, 'SELECT pg_reload_conf()' };
	my $slow = qr/:${\$nodes[1]->port}\/postgres: wal_retrieve_retry_interval = 5s\..*\n\s*HINT:  ALTER SYSTEM SET/;
	my $count = sub { many(@_, '--together', 1, '--dry-run'); return scalar(() = $err =~ /$slow/g) };
	my $is_old = $nodes[1]->safe_psql('postgres', 'SHOW server_version_num') < 160000 ? 1 : 0;
	$set->(q{ALTER SYSTEM SET wal_retrieve_retry_interval = '5s'});
	await('the setting is there', sub { $nodes[1]->safe_psql('postgres', 'SHOW wal_retrieve_retry_interval') eq '5s' });
	is($count->('--shards', '4-6', @pair), $is_old, 'before PostgreSQL 16: once for three sets');
	is($count->('--shards', '4', @pair), 0, 'no word for one');
	$set->('ALTER SYSTEM RESET wal_retrieve_retry_interval');
	await('it is gone', sub { $nodes[1]->safe_psql('postgres', 'SHOW wal_retrieve_retry_interval') eq '200ms' });
	is($count->('--shards', '4-6', @pair), 0, 'a short interval is not named');
};

# A shard of another owner is in a set of its own.
subtest 'the shards of a set move together, and nothing less' => sub {
	my $moves = sub { $nodes[0]->safe_psql('postgres', q{SELECT string_agg(nspname, ' ' ORDER BY 1) FROM pg_namespace
		WHERE nspname ~ '^snowflake_move'}) };
	my $writer = $nodes[0]->background_psql('postgres');
	$writer->query_safe('BEGIN; LOCK TABLE insta6.users IN ROW EXCLUSIVE MODE');
	my $run = background('move', '--shards', '5-7', @pair, '--reversible', '--timeout', '3min');
	await('the fence of shards 5 to 7', sub { has_ended($run) || $run->{err} =~ /shards 5-7: source: triggers/ });
	is(places(), '4 5 6 7|0 1 2 3|', 'all wait for a writer of one');
	$writer->quit;
	$run->{h}->finish;
	is($run->{h}->result(0), 0, 'and move then') or diag($run->{err});
	like($run->{err}, qr/^\d\d:\d\d:\d\d snowflake-shard: shards 5-7: target: open$/m, 'a log has the time of day');
	is(places(), '4|0 1 2 3 5 6 7|', 'at once');
	is($moves->(), 'snowflake_move_5', 'with one record');
	is($nodes[1]->safe_psql('postgres', q{SELECT count(*) FROM pg_replication_slots WHERE slot_name ~ '^snowflake_move'}), 1,
		'and one slot of reverse replication');
	foreach my $verb (qw(--undo --complete --resume --abort))
	{
		($status, $out, $err) = run_shard($program, 'move', 'insta6', @pair, $verb);
		like("$status $err", qr/^3 .*shard 6, schema insta6, moves with its set: shards 5-7\nHINT: .* --shards 5-7 .*--complete/,
			"$verb of a part");
		like(many('--shards', '6-7', @pair, $verb), qr/^3/, "$verb of two of them");
		like($err, qr/shard 6: it moves with its set, shards 5-7, and all of them are to be named/, 'which names the set');
	}
	is(many('--shards', '5-7', @pair, '--undo'), '0, 5 undone, 6 undone, 7 undone', 'and back');
	is(many('--shards', '5-7', @pair, '--complete'), '0, 5 dropped, 6 dropped, 7 dropped', 'their copies are dropped');
	$nodes[0]->safe_psql('postgres', 'CREATE ROLE app LOGIN; ALTER SCHEMA insta6 OWNER TO app');
	$nodes[1]->safe_psql('postgres', 'CREATE ROLE app LOGIN');
	my $sets = sub {
		many('--shards', '4-7', @pair, @_, '--dry-run');
		my @all = $err =~ /^snowflake-shard: (shards? [0-9,-]+): /mg;
		return join ' ', do { my %seen; grep { !$seen{$_}++ } @all };
	};
	$nodes[1]->safe_psql('postgres', 'CREATE FUNCTION f() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN END$$;
		CREATE EVENT TRIGGER told ON ddl_command_end EXECUTE FUNCTION f()');
	is($sets->(), 'shards 4-5,7 shard 6', 'a shard of another owner is a set of its own');
	is($sets->('--together', 2), 'shards 4-5 shard 6 shard 7', '--together');
	is($sets->('--together-size', '1B'), 'shard 4 shard 5 shard 6 shard 7', '--together-size');
	$nodes[1]->safe_psql('postgres', 'DROP EVENT TRIGGER told; DROP FUNCTION f()');
	$nodes[0]->safe_psql('postgres', 'ALTER SCHEMA insta6 OWNER TO CURRENT_USER');
};

my (@plan, $file);
subtest 'a move that fails does not stop the others' => sub {
	$nodes[0]->safe_psql('postgres', 'CREATE SCHEMA insta4_before');
	@plan = map { { %entry, shard => $_, schema => "insta$_" } } 4 .. 6;
	$plan[1]{to} = $nodes[2]->connstr('postgres');
	$plan[1]{from} .= ' application_name=again';
	$file = plan_file(\@plan);
	is(many('--plan', $file, '--jobs', 2, '--reversible'),
		join(', ', 0, map { "$_ moved with reverse replication" } 4, 6, 5), 'a plan for three servers');
	is(join(' ', $err =~ /^snowflake-shard: shards? (\S+): (?:target: definition|source: fence|both: comparing)/mg),
		'4,6 4,6 4,6 4,6 5 5 5 5',
		'one set at a time on a server that is spelled in two ways')
		or diag($err);
	is(join(' ', sort $err =~ /^snowflake-shard: shards? (\S+: looking for obstacles, set .*)/mg),
		'4,6: looking for obstacles, set 1 of 2 5: looking for obstacles, set 2 of 2', 'each set is named before its look');
	like($err, qr/^snowflake-shard: 1 of 2 sets have ended, (\d+ kB) of .*(?s:.*)^snowflake-shard: 2 of 2 sets have ended, (\d+ kB) of \2$/m,
		'how much of the list is done');
	is(places(), '7|0 1 2 3 4 6|5', 'as it is written');
	is(many('--plan', $file, '--reversible'),
		join(', ', 0, map { "$_ moved with reverse replication" } 4, 6, 5), 'the same plan again');
	like($err, qr/^snowflake-shard: 3 shards moved by an earlier command$/m, 'looks at none');
	$nodes[2]->stop('immediate');
	is(many('--plan', $file, '--undo'), '3, 4 undone, 6 undone, 5 failed',
		'--undo of a plan, one of whose servers is down');
	like($rows->[2]{error}, qr/connection to server/, 'the error of that server');
	start_server($nodes[2]);
	is(many('--plan', $file, '--undo'), '0, 4 undone, 6 undone, 5 undone', 'the same line when it is there again');
	is(places(), '4 5 6 7|0 1 2 3|', 'they are back');
	is(many('--plan', plan_file([ map { { %$_, from => $_->{to}, to => $_->{from} } } @plan ]), '--complete'),
		'0, 4 dropped, 6 dropped, 5 dropped',
		'the other copies are dropped');
};

# --- a server is stopped in the middle of a plan: what is reported is what happened, and the same line does the rest
# ---

my %dsn = map { $_->name => $_->connstr('postgres') } @nodes;
my @ways = ([ 5, qw(one three) ], [ 4, qw(one two) ], [ 0, qw(two three) ], [ 6, qw(one two) ]);
@plan = map { { shard => $_->[0], schema => "insta$_->[0]", from => $dsn{ $_->[1] }, to => $dsn{ $_->[2] } } } @ways;
my @steps = ('target: rows', 'source: fence', 'target: open', 'both: comparing');
my @stops = map { my $step = $_; map { [ $_, $step ] } @nodes[ 0, 2 ] } @steps;
my $first = int(rand(@stops));

subtest 'what is reported is what happened, and the same line does the rest' => sub {
	my $stops = trials(1, scalar @stops);
	foreach my $trial (1 .. $stops)
	{
		my ($victim, $step) = @{ $stops[ ($first + $trial) % @stops ] };
		my $name = $victim->name . " stopped at \"$step\"";
		$file = plan_file(\@plan);
		my $run = background('move', '--plan', $file, '--jobs', 2, '--timeout', '5s', '--json');
		await("shard 5: $step", sub { has_ended($run) || $run->{err} =~ /shard 5: $step/ });
		$victim->stop('immediate');
		$run->{h}->finish;
		is($run->{h}->result(0), 3, "$name: exit code 3");
		$rows = decode_json($run->{out});
		my %states = map { $_->{shard} => $_ } @$rows;
		my @lost = grep { grep { $_ eq $victim->name } @$_[ 1, 2 ] } @ways;
		start_server($victim);
		my @open = map { [ split ' ', $_ ] } split /\|/, places() . ' ';
		my %open;
		foreach my $server (0 .. 2) { $open{$_} .= $nodes[$server]->name foreach @{ $open[$server] } }
		foreach my $way (@ways)
		{
			my ($shard, undef, $to) = @$way;
			my ($state, $error) = map { $_ // '' } @{ $states{$shard} }{qw(state error)};
			my $is_there = ($open{$shard} // '') eq $to;
			my $told = "$name: shard $shard is told to be $state" . ($error =~ /not known/ ? ', or not' : '');
			is($state, 'moved', "$name: shard $shard is moved, which is on the other servers") unless grep { $_ == $way } @lost;
			ok($is_there, $told) if $state =~ /^(moved|open on)/;
			ok(!$is_there, $told) if $state eq 'failed' && $error !~ /^.*It is not known whether/;
			like($error, qr/\b${\$victim->port}\b/, "$name: the error of shard $shard names the server") if $state ne 'moved';
		}
		many('--plan', $file, '--jobs', 2);
		my %anew = map { ($_->{shard} => 1) } grep { ($_->{error} // '') =~ /has lost its end\. Start anew: --abort/ } @$rows;
		is((run_shard($program, 'move', $_->{schema}, '--from', $_->{from}, '--to', $_->{to}, '--abort'))[0], 0,
			"$name: shard $_->{shard} starts anew")
			foreach grep { $anew{ $_->{shard} } } @plan;
		is(many('--plan', $file, '--jobs', 2), '0, 5 moved, 4 moved, 6 moved, 0 moved', "$name: the same line does the rest")
			or diag($err);
		is(many('--plan', $file, '--complete', '--jobs', 2), '0, 5 dropped, 4 dropped, 6 dropped, 0 dropped',
			"$name: --complete");
		last if $trial == $stops;
		$file = plan_file([ map { { %$_, from => $_->{to}, to => $_->{from} } } @plan ]);
		is((run_shard($program, 'move', '--plan', $file, $_))[0], 0, "$name: back, $_") foreach '--jobs=2', '--complete';
	}
};

$_->stop foreach @nodes;
done_testing();
