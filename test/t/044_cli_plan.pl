# snowflake-shard plan: the sizes, exclusions and servers of its arguments reach the planner, whose properties
# test/unit/planner_test.cpp has; what it prints can be read back; it writes nothing, and no password.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $node = new_server('one');
my ($host, $port) = ($node->host, $node->port);
my %dsn = map { $_ => "host=$host port=$port dbname=$_" } qw(a b c p q r);
my ($status, $out, $err, $plan);

sub run_plan
{
	return run_shard($program, 'plan', @_);
}

# Exit code, the moves as "5 a b", standard error.
sub moves
{
	my ($code, $json, $error) = shard_json($program, 'plan', @_);
	return ($code, join(', ', map { "$_->{shard} " . join ' ', map { /dbname=(\w+)/ } @$_{qw(from to)} } @$json), $error);
}

sub file_of
{
	my ($text) = @_;
	my $name = PostgreSQL::Test::Utils::tempdir() . '/weights';
	open my $file, '>', $name or die "$name: $!\n";
	print $file $text;
	close $file or die "$name: $!\n";
	return $name;
}

# Shards 0 to 7 in a, of which 0 is empty and the size grows with the number; one empty shard in b; c is new.
foreach my $database (qw(a b c))
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION snowflake');
}
$node->safe_psql('a', join '', map { qq{
	SELECT snowflake_create_shard($_, 'insta$_');
	CREATE TABLE insta$_.t (id bigint PRIMARY KEY DEFAULT insta$_.next_id(), t text);
	ALTER TABLE insta$_.t ALTER t SET STORAGE EXTERNAL;
	INSERT INTO insta$_.t (t) SELECT repeat('x', 4096) FROM generate_series(1, 100 * $_);
	ANALYZE insta$_.t; } } 0 .. 7);
$node->safe_psql('b', q{SELECT snowflake_create_shard(8, 'Insta <&> "8"')});

# By size. The mean is 14 of 28; 7 and 6 to b are within the threshold.
subtest 'the largest shards first, until the servers are balanced' => sub {
	is((moves($dsn{a}, $dsn{b}))[1], '7 a b, 6 a b', 'the largest first, until the servers are within 10% of the mean');
	($status, $out, $err) = run_plan($dsn{a}, $dsn{b}, '--rate', '1MB');
	is($status, 0, 'exit code 0');
	like($out, qr/^ +7  insta7  \d+ kB  \S+\/a  \S+\/b\n/m, 'a line for each move');
	like($out, qr/\/a  before +8 +1  .* 200% +#+\|#+\n.*\/a  after +6 +1  .* \d+% +#/, 'servers before and after');
	like($out, qr/^2 moves, \d+ kB: [5-9] s at 1024 kB per second/m, 'bytes and time');
	is((moves($dsn{b}, $dsn{a}, $dsn{b}))[1], '7 a b, 6 a b',
		'neither the order nor a server that is given twice has an influence');
	is((moves($dsn{a}, $dsn{b}, qw(--max-moves 1)))[1], '7 a b', '--max-moves');
	my @all = split /, /, (moves($dsn{a}, $dsn{b}, qw(--threshold 0%)))[1];
	like((run_plan($dsn{a}, $dsn{b}, '--threshold', '0%', '--max-moves', @all - $_->[0]))[1], qr/^$_->[1]$/m,
		"the last line with --max-moves, $_->[0] less than all")
		foreach [ 1, '--max-moves ends the plan before all servers are balanced' ],
		[ 0, 'no further move of a shard would gain half of its weight' ];
	is((moves($dsn{a}, $dsn{b}, qw(--exclude 6-7)))[1], '5 a b, 4 a b, 3 a b, 2 a b', '--exclude');
	is((moves($dsn{a}, $dsn{b}, qw(--threshold 100%)))[1], '', '--threshold');
	is((moves($dsn{a}, $dsn{b}, qw(--by shards)))[1], '0 a b, 1 a b, 2 a b', '--by shards');
	is((moves($dsn{a}, $dsn{b}, qw(--by rows)))[1], '7 a b, 6 a b', '--by rows');
	is((run_plan($dsn{a}, $dsn{b}, @$_))[0], 2, "wrong usage: @$_")
		foreach [qw(--threshold 0.1)], [qw(--threshold 10)], [qw(--max-moves 0)], [qw(--exclude 5-)], [qw(--by load)];
};

# A plan is carried out: nothing more is to be done. (As a move of the whole shard would do it.)
sub carry_out
{
	my ($from, $to, @shards) = @_;
	foreach my $shard (@shards)
	{
		IPC::Run::run([ 'pg_dump', '-n', "insta$shard", $dsn{$from} ], '|', [ 'psql', '-Xqd', $dsn{$to} ], '>', '/dev/null')
			or die "shard $shard cannot be copied";
		$node->safe_psql($from, "SET client_min_messages = warning; DROP SCHEMA insta$shard CASCADE");
	}
	return;
}

subtest 'a plan that is carried out leaves nothing to do' => sub {
	carry_out('a', 'b', 6, 7);
	($status, $out) = run_plan($dsn{a}, $dsn{b});
	like("$status $out", qr/^0 (?!.*after).*now.*\nbalanced: every server/s, 'balanced: nothing to do');
	is((run_shard($program, 'plan', $dsn{a}, $dsn{b}, '--json'))[1], "[]\n", 'balanced, in JSON');
	like((moves($dsn{a}, $dsn{b}, $dsn{c}))[1], qr/^5 a c\b/, 'a new server is filled');
};

subtest '--drain leaves nothing on a server' => sub {
	($status, $plan) = moves($dsn{a}, $dsn{b}, $dsn{c}, '--drain', $dsn{b});
	like($plan, qr/^7 b c, 6 b c, 8 b c\b/, '--drain leaves nothing, to the emptiest server first');
	like((run_plan($dsn{a}, '--drain', $dsn{b}))[2], qr/--drain \S+ is none of the servers/,
		'a drained server is one of the servers');
	($status, $plan, $err) = moves($dsn{a}, $dsn{b}, '--drain', $dsn{b}, '--exclude', '7,77');
	is($plan, '6 b a, 8 b a', '--drain with --exclude');
	like($err, qr/on none of the servers: 77\n.*left on \S+\/b: 7\n/s,
		'a shard that is nowhere, and one that stays, are named');
	is((run_plan($dsn{a}, '--drain', $dsn{a}))[0], 2, 'somewhere the shards must go');
};

subtest '--weights names the load of the shards' => sub {
	my $weights = file_of("# load\n0,5\n 1 , 2.5 # writes\n\n2,0\r\n3,0\n4,1\n5,1.5\n6,0\n7,0\n99,3");
	($status, $plan, $err) = moves($dsn{a}, $dsn{b}, '--weights', $weights);
	like($plan, qr/^0 a b\b/, '--weights: the shard with the most load');
	like($err, qr/shards that are on none of the servers: 99\n.*no weight for shards, which count as empty: 8\n/s,
		'weights that are missing or too many');
	foreach my $wrong ([ "0,5\n1;2\n", 'line 2: "1;2" is no shard' ], [ "0,-5\n", 'line 1: "0,-5"' ],
		[ "5,1\n6,1\n5,2\n", 'line 3: shard 5 has a weight already' ],
		[ "0,5\n1,2\0,3\n", 'line 2: "1,2" is no shard' ])
	{
		($status, $out, $err) = run_plan($dsn{a}, '--weights', file_of($wrong->[0]));
		like("$status $err", qr/^2 .*weights, \Q$wrong->[1]\E/, "a file of weights: $wrong->[1]");
	}
	is((run_plan($dsn{a}, '--weights', '/nonexistent'))[0], 2, 'a file of weights that is not there');
};

subtest 'a plan in JSON has connection strings without the password' => sub {
	($status, $plan) = shard_json($program, 'plan', "$dsn{a} password=secret sslmode=disable",
		"postgresql://:secret\@/c?host=$host&port=$port");
	is_deeply([ @{ $plan->[0] }{qw(shard schema from to)} ], [ 5, 'insta5', "$dsn{a} sslmode=disable", $dsn{c} ],
		'a move in JSON');
	cmp_ok($plan->[0]{size}, '>', 500 * 4096, 'with the size in bytes');
};

# Shards that are moving, and one at two places.
sub add_move
{
	my ($database, $shard, $step) = @_;
	$node->safe_psql($database, qq{
		CREATE SCHEMA snowflake_move_$shard;
		CREATE TABLE snowflake_move_$shard.shards AS SELECT $shard AS number, name 'insta$shard' AS schema_name;
		CREATE TABLE snowflake_move_$shard.state (id uuid, other text, step text, marker uuid,
			is_reversible boolean DEFAULT false, is_reverse boolean DEFAULT false, is_equal boolean DEFAULT false,
			is_held boolean DEFAULT false, compared_at timestamptz);
		INSERT INTO snowflake_move_$shard.state VALUES (gen_random_uuid(), 'x', '$step')});
	return;
}

subtest 'shards that are moving are left out, and one at two places is an error' => sub {
	add_move('a', 5, 'prepared');
	add_move('c', 4, 'moved');
	($status, $plan, $err) = moves($dsn{a}, $dsn{c});
	is($plan, '3 a c, 2 a c, 1 a c', 'a shard that is moving is left out');
	like($err, qr/because they are moving: 5\n.*until --complete: 4\n/s, 'and named');
	$node->safe_psql('c', "SELECT snowflake_create_shard(5, 'other')");
	($status, $out, $err) = run_plan($dsn{a}, $dsn{c});
	like("$status$out$err",
		qr/^3snowflake-shard: shard 5 is at two places: schema insta5 at \S+\/a, schema other at \S+\/c\n/,
		'a shard at two places');
	my %status = (table => 0, csv => 3, json => 3, pgbouncer => 3, plproxy => 3);
	is((run_shard($program, 'map', $dsn{a}, $dsn{c}, '--format', $_))[0], $status{$_}, "map --format $_") foreach sort keys %status;
	$node->safe_psql('postgres', 'CREATE DATABASE without_shards');
	$node->safe_psql('without_shards', 'CREATE EXTENSION snowflake');
	%status = (table => 0, csv => 0, json => 0, pgbouncer => 3, plproxy => 3);
	is((run_shard($program, 'map', $node->connstr('without_shards'), '--format', $_))[0], $status{$_}, "no shards, map --format $_")
		foreach sort keys %status;
};

# Shards 10 to 17 in p: 11 is large, and nobody writes to it; clients write to 12, 13 and 14, and a little to 15. Each
# transaction has a connection of its own, because a session reports its counts at its end, else once in a second.
sub start_writers
{
	my (%place) = @_;
	my @writers;
	foreach my $shard (sort keys %place)
	{
		my $pause = $shard == 15 ? 800 : 50;
		my $script = file_of("INSERT INTO insta$shard.t (t) SELECT 'x' FROM generate_series(1, 5);\n\\sleep $pause ms\n");
		push @writers, IPC::Run::start([ 'pgbench', '-n', '-C', '-T', '600', '-f', $script, $dsn{$place{$shard}} ],
			'>', '/dev/null', '2>', '/dev/null');
	}
	foreach my $shard (sort keys %place)
	{
		my $written = sub { $node->safe_psql($place{$shard},
			"SELECT n_tup_ins > 0 FROM pg_stat_user_tables WHERE schemaname = 'insta$shard'") };
		await("shard $shard is written to", sub { $written->() eq 't' });
	}
	return @writers;
}

sub stop_writers
{
	my (@writers) = @_;
	$_->signal('TERM'), $_->finish foreach @writers;
	return;
}

subtest '--by writes and --by pages balance what shards do' => sub {
	foreach my $database (qw(p q r))
	{
		$node->safe_psql('postgres', "CREATE DATABASE $database");
		$node->safe_psql($database, 'CREATE EXTENSION snowflake');
	}
	$node->safe_psql('p', join '', map { qq{
		SELECT snowflake_create_shard($_, 'insta$_');
		CREATE TABLE insta$_.t (id bigint PRIMARY KEY DEFAULT insta$_.next_id(), t text); } } 10 .. 17);
	$node->safe_psql('p', q{INSERT INTO insta11.t (t) SELECT repeat('x', 1000) FROM generate_series(1, 5000)});
	my @servers = @dsn{qw(p q r)};
	my @writers = start_writers(map { $_ => 'p' } 12 .. 15);
	($status, $plan, $err) = moves(@servers, '--by', 'writes', '--over', '3s');
	like("$status $plan", qr/^0 (1[234]) p [qr], (1[234]) p [qr]$/, 'two of three hot shards, and no idle one')
	  or diag($err);
	my %place = ((map { $_ => 'p' } 12 .. 15), map { split / p / } split /, /, $plan);
	stop_writers(@writers);
	carry_out('p', $place{$_}, $_) foreach grep { $place{$_} ne 'p' } 12 .. 14;
	@writers = start_writers(%place);
	($status, $out, $err) = run_plan(@servers, '--by', 'writes', '--over', '3s', '--threshold', '15%');
	like($out, qr/^balanced: every server is within the threshold of the mean$/m,
		'the next sample: within 15% of the mean') or diag($out, $err);
	like((run_plan(@servers, '--by', 'pages', '--over', '1s', '--drain', $servers[1]))[1], qr/shard +schema +pages /,
		'pages');
	stop_writers(@writers);
	my $plan_of_one = background('plan', @servers, '--by', 'writes', '--over', '3s');
	my $waits = q{SELECT count(*) FROM pg_stat_activity WHERE query ~ 'FROM pg_stat_user_tables$' AND state = 'idle'
		AND application_name = 'snowflake-shard' AND datname = 'p'};
	await('the command measures', sub { $node->safe_psql('postgres', $waits) eq '1' });
	$node->safe_psql('p', 'SELECT pg_stat_reset()');
	$plan_of_one->{h}->finish;
	like($plan_of_one->{err}, qr/\/p: its statistics were reset during the measurement/, 'a reset of the statistics');
	like((run_plan(@servers, '--over', '3s'))[2], qr/--over is for --by writes and --by pages/, '--over by size');
};

subtest 'a shard that is more than the share of a server is named' => sub {
	my $weights = file_of("10,1\n12,90\n13,4\n");
	($status, $out, $err) = run_plan(@dsn{qw(p q r)}, '--weights', $weights);
	like($err, qr/^snowflake-shard: more than the share of a server, each by itself: 12$/m, 'no move helps');
};

subtest 'examples/router/picture.py draws servers and a plan' => sub {
	my $plan_file = file_of((run_shard($program, 'plan', $dsn{a}, $dsn{b}, '--drain', $dsn{b}, '--json'))[1]);
	my $listed = (run_shard($program, 'list', $dsn{a}, $dsn{b}, '--json'))[1];
	my $picture = sub {
		my $python = [ 'python3', "$FindBin::RealBin/../../examples/router/picture.py", @_ ];
		IPC::Run::run($python, '<', \$listed, '>', \my $svg, '2>', \my $errors);
		is($errors, '', 'no error');
		return $svg;
	};
	my $planned = $picture->($plan_file);
	my $odd = 'Insta &lt;&amp;&gt; &quot;8&quot;, shard 8, ';
	like($planned, qr/^<rect .* class="s0 moves"><title>\Q$odd\E/m, 'a shard that moves, where it is');
	like($planned, qr/^<rect .* class="comes"><title>\Q$odd\E/m, 'and where it goes');
	my @titles = $planned =~ /^<rect .*<title>(.*)<\/title>/mg;
	is_deeply([ grep { m{/[ab]\z} } @titles ], [ map { "$host:$port/$_" } qw(a b) ], 'a block for each server');
	unlike($picture->(), qr/"comes"/, 'without a plan no shard moves');
	SKIP:
	{
		skip 'xmllint is not here', 1 unless eval { IPC::Run::run([ 'xmllint', '--version' ], '2>', '/dev/null') };
		IPC::Run::run([ 'xmllint', '--noout', '-' ], '<', \$planned, '2>', \my $errors);
		is($errors, '', 'XML');
	}
};

done_testing();
