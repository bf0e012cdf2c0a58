# snowflake-shard over several servers: how they are named, a database that is given twice, standbys, a server
# that is down, a shard that is moving. A verb does what it says on all servers, or says on which it did not.
# 047_cli_run.pl has the changes that run records.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my ($status, $out, $err, $rows);

# A template on a server with a standby, and another server.
my $one = new_server('one', init => { allows_streaming => 1 }, conf => "wal_level = logical\n");
my $two = new_server('two');
make_template($one);
$one->safe_psql('postgres', 'ALTER TABLE insta0.log OWNER TO CURRENT_USER');    # the schema is a superuser's
$one->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($one, 'base', has_streaming => 1);
$standby->start;
my $folder = PostgreSQL::Test::Utils::tempdir();

# A file with one connection string a line.
sub servers_file
{
	my ($name, @lines) = @_;
	open my $file, '>', "$folder/$name" or die $!;
	print $file "$_\n" foreach @lines;
	close $file;
	return "$folder/$name";
}

sub names
{
	return join(' ', map { $_->{schema} } @{ $_[0] });
}

# --- clone: the template is on one server, the clones may be made on another -----------------------

subtest 'the clones are made beside the template or on another server' => sub {
	$two->safe_psql('postgres', 'CREATE ROLE app LOGIN');
	($status, $rows) =
		shard_json($program, 'clone', $one, $two, '--template', 'insta0', '--shards', '1-3', '--schema', 'insta{}');
	is("$status " . states($rows), '0 made 1,2,3', 'clone: beside the template');
	($status, $rows, $err) = shard_json($program, 'clone', $one, '--template', 'insta0', '--shards', '4-7', '--schema',
		'insta{}', '--to', $two, '--jobs', 2);
	is("$status " . states($rows), '0 made 4,5,6,7', 'clone: --to makes them on another server') or diag($err);
	is(dump_of($two, 'insta5', name => 'insta0', from => 5, to => 0), dump_of($one, 'insta0'),
		'clone: there they are as the template');
	is($two->safe_psql('postgres', q{INSERT INTO insta5.users (name) VALUES ('a') RETURNING snowflake_shard(id)}), 5,
		'clone: and make their own IDs');
};

subtest 'a shard that another server has is not made a second time' => sub {
	($status, $rows, $err) =
		shard_json($program, 'clone', $one, $two, '--template', 'insta0', '--shards', '0-8', '--schema', 'insta{}');
	is("$status " . states($rows), '0 made 8; there already 0,1,2,3,4,5,6,7',
		'clone: a number that another server has is not made a second time')
		or diag($err);
	($status, $out, $err) =
		run_shard($program, 'clone', $one, $two, '--template', 'insta0', '--shards', '5,9', '--schema', 'x{}');
	ok($status == 3 && $err =~ /shard 5 is schema insta5 on \S+, and cannot be made as schema x5/,
		'clone: nor under another name') or diag($err);
	$two->safe_psql('postgres', 'ALTER TABLE insta6.users DROP COLUMN m');
	($status, $out, $err) =
		run_shard($program, 'clone', $one, $two, '--template', 'insta0', '--shards', '0-9', '--schema', 'insta{}');
	ok($status == 3 && $err =~ /not as the template:\s+insta6: TABLE users/,
		'clone: one that differs on another server is an error') or diag($err);
	is($one->safe_psql('postgres', q{SELECT to_regnamespace('insta9') IS NULL}), 't', 'clone: before anything is made');
	($status, $out, $err) =
		run_shard($program, 'clone', $two, '--template', 'insta0', '--shards', '9', '--schema', 'insta{}');
	ok($status == 3 && $err =~ /schema insta0 is no shard of/, 'clone: the template is on none of the servers');
};

# --- diff ----------------------------------------------------------------------------------------

subtest 'diff compares the shards of all servers' => sub {
	($status, $rows) = shard_json($program, 'diff', $one, $two, '--template', 'insta0');
	is(join(', ', $status, map { "$_->{schema} $_->{change} $_->{object}" } @$rows),
		'1, insta6 missing TABLE users, insta6 added TABLE users', 'diff: a shard of another server than the template');
	is($rows->[0]{server}, $two->host . ':' . $two->port . '/postgres', 'diff: names its server');
	$two->safe_psql('postgres', 'ALTER TABLE insta6.users ADD COLUMN m insta6.mood');
	($status, $out) = run_shard($program, 'diff', $one, $two, '--template', 'insta0');
	is("$status $out", "0 8 shards compared with insta0, different: none\n", 'diff: all servers');
	($status, $out, $err) = run_shard($program, 'diff', $one, $two, '--template', 'insta0', '--shards', '4,5000-5002');
	ok($status == 3 && $err =~ /3 shards on none of the servers: 5000-5002/,
		'diff: numbers that no server has are refused');
};

# --- how servers are named -----------------------------------------------------------------------

subtest 'servers are named by arguments, by a file, or in the environment' => sub {
	my $by_address = 'host=' . $one->host . ' port=' . $one->port
		. " dbname=postgres application_name='again # and again'";
	my $file = servers_file('servers', '# all of ours', '', "\t$by_address # the first", $two->connstr('postgres'),
		'#host=nonexistent');
	($status, $rows) = shard_json($program, 'list', "\@$file");
	is(names($rows), join(' ', map { "insta$_" } 0 .. 3, 8, 4 .. 7), '@FILE: a server a line, and comments');
	foreach my $order ([ $one, $two ], [ $two, $one ])
	{
		my @totals = (run_shard($program, 'list', @$order))[1] =~ /^\S+:(\d+)\/postgres: \d shards/mg;
		is("@totals", join(' ', map { $_->port } @$order), 'list: totals in the order of the servers');
	}
	{
		local $ENV{SNOWFLAKE_SERVERS} = $file;
		is(names((shard_json($program, 'list'))[1]), names($rows), 'SNOWFLAKE_SERVERS names the file');
		is(names((shard_json($program, 'list', $two))[1]), 'insta4 insta5 insta6 insta7', 'if no server is given');
	}
	is((run_shard($program, 'list'))[0], 2, 'without a server: wrong usage');
	is((run_shard($program, 'list', "\@$folder/nonexistent"))[0], 2, 'without the file, too');
	is((run_shard($program, 'list', '@' . servers_file('none', '# none')))[0], 2, 'or with an empty one');
	($status, $out, $err) =
		run_shard($program, 'list', '@' . servers_file('zero', $by_address, "$by_address\0host=nonexistent"));
	ok($status == 2 && $err =~ /zero, line 2 has a zero byte/, 'or with one that is no text') or diag("$status $err");
	($status, $rows, $err) = shard_json($program, 'list', $one, $by_address, "\@$file");
	is(names($rows) . $err, join(' ', map { "insta$_" } 0 .. 3, 8, 4 .. 7),
		'a database that is given three times counts once');
	like((run_shard($program, 'verify', $one, $by_address))[1], qr/^5 shards on 1 server, 0 findings$/, 'for verify, too');
};

# --- standbys ------------------------------------------------------------------------------------

subtest 'a standby of a server that is given counts once, and a standby alone is only read' => sub {
	$one->wait_for_catchup($standby);
	my $standby_name = $standby->host . ':' . $standby->port . '/postgres';
	($status, $rows, $err) = shard_json($program, 'list', $standby, $one);
	is($status . names($rows), '0' . join(' ', map { "insta$_" } 0 .. 3, 8),
		'a standby of a server that is given counts once');
	is(join(' ', map { $_->{server} =~ /:(\d+)/ } $rows->[0]), $one->port, 'as that server');
	like($err, qr/^snowflake-shard: \Q$standby_name\E is a standby and is left out: /, 'and is named');
	($status, $rows) = shard_json($program, 'list', $standby);
	is($status . names($rows), '0' . join(' ', map { "insta$_" } 0 .. 3, 8), 'a standby alone is read');
	($status, $out, $err) = run_shard($program, 'query', $standby, '--format', 'csv', '--sql', 'SELECT pg_is_in_recovery() FROM log');
	is("$status $out", "0 shard,schema,pg_is_in_recovery\n", 'query runs there') or diag($err);
	($status, undef, $err) = run_shard($program, 'plan', $standby->connstr('postgres'), '--by', 'writes', '--over', '1s');
	like("$status $err", qr/^3 .*it is a standby, which does not count the work of its primary\n/, 'but has no load');
	# The record of reverse replication, as move --reversible writes it on the server that publishes:
	# slots and pg_current_wal_lsn()
	# are of the primary alone.
	$one->safe_psql('postgres', q{
		CREATE SCHEMA snowflake_move_3;
		CREATE TABLE snowflake_move_3.shards AS SELECT 3 AS number, name 'insta3' AS schema_name;
		CREATE TABLE snowflake_move_3.state AS SELECT gen_random_uuid() AS id,
			'elsewhere:5432/postgres' AS other, 'prepared' AS step,
			NULL::uuid AS marker, false AS is_reversible, true AS is_reverse, false AS is_equal,
			false AS is_held, NULL::timestamptz AS compared_at});
	$one->wait_for_catchup($standby);
	($status, $out, $err) = run_shard($program, 'verify', $standby);
	is("$status $out$err", "0 5 shards on 1 server, 0 findings\n",
		'verify of a standby alone, while its primary has reverse replication');
	($status, $out, $err) = run_shard($program, 'verify', $one);
	like("$out$err", qr/slot snowflake_move_3_\d+ is gone/, 'verify of the primary looks at reverse replication');
	$one->safe_psql('postgres', 'SET client_min_messages = warning; DROP SCHEMA snowflake_move_3 CASCADE');
	($status, $out, $err) = run_shard($program, 'run', $standby, '--shards', '0', '--sql', 'SELECT 1');
	is($status, 3, 'a standby alone is not written to');
	like($err, qr/^snowflake-shard: \Q$standby_name\E: it is a standby, and cannot be written to\. HINT: Give its primary/,
		'and is named');
	my $both = 'host=' . join(',', $standby->host, $one->host) . ' port=' . join(',', $standby->port, $one->port)
		. ' dbname=postgres';
	is((run_shard($program, 'run', $both, '--shards', '0', '--sql', 'SELECT 1'))[0], 3,
		'the first of several hosts is the standby');
	is((run_shard($program, 'run', "$both target_session_attrs=primary", '--shards', '0', '--sql', 'SELECT 1'))[0], 0,
		'with target_session_attrs=primary the primary is found');
	($status, $rows) = shard_json($program, 'clone', "$both target_session_attrs=primary", '--template', 'insta0',
		'--shards', '9', '--schema', 'insta{}', '--jobs', 2);
	is("$status " . states($rows), '0 made 9', 'by further connections, too');
};

subtest 'a statement that the replay of a standby cancels is tried again' => sub {
	$standby->safe_psql('postgres', 'ALTER SYSTEM SET max_standby_streaming_delay = 0');
	$standby->reload;
	$one->safe_psql('postgres', 'CREATE TABLE public.dead AS SELECT 1 AS n');
	$one->wait_for_catchup($standby);
	my $waits = sub {
		my ($event) = @_;
		return sub {
			$standby->safe_psql('postgres', qq{SELECT count(*) FROM pg_stat_activity WHERE application_name ~ '^snowflake-shard'
				AND $event}) > 0;
		};
	};
	# Rows that the snapshot of the statement may need are removed.
	my $cancel = sub {
		my $before = -s $standby->logfile;
		$one->safe_psql('postgres', 'UPDATE public.dead SET n = n + 1');
		$one->safe_psql('postgres', 'VACUUM public.dead');
		$standby->wait_for_log('canceling statement due to conflict with recovery', $before);
	};
	my $query = background('query', $standby, '--format', 'csv', '--shards', '1-2', '--sql', 'SELECT count(*), pg_sleep(2) FROM users');
	await('the query works', $waits->(q{wait_event = 'PgSleep'}));
	$cancel->();
	$query->{h}->finish;
	is($query->{h}->result(0) . (() = $query->{out} =~ /,insta/g), '02', 'query: both shards answer') or diag($query->{err});
	# A lock is replayed, too. The transaction that holds it is in another database, so VACUUM removes newer rows.
	my $holder = $one->background_psql('template1');
	$holder->query_safe('BEGIN; LOCK TABLE pg_subscription IN ACCESS EXCLUSIVE MODE');
	$one->safe_psql('postgres', 'INSERT INTO public.dead VALUES (0)');
	$one->wait_for_catchup($standby);
	my $verify = background('verify', $standby);
	await('verify waits', $waits->(q{wait_event_type = 'Lock'}));
	$cancel->();
	$holder->quit;
	$verify->{h}->finish;
	is($verify->{h}->result(0) . $verify->{err}, '0', 'verify') or diag($verify->{out});
	$one->safe_psql('postgres', 'DROP TABLE public.dead');
	$standby->safe_psql('postgres', 'ALTER SYSTEM RESET max_standby_streaming_delay');
	$standby->reload;
};

subtest 'a standby that was promoted is a server of its own, which has the same system identifier' => sub {
	$one->wait_for_catchup($standby);
	$standby->promote;
	is(scalar @{ (shard_json($program, 'list', $standby, $one))[1] }, 12, 'a standby that was promoted is another server');
	$standby->stop;
};

# --- query ---------------------------------------------------------------------------------------

my @counts = (0, 1, 2, 3, 4, 1, 6, 7, 8, 9);    # insta5 has a row
foreach my $shard (grep { $_ != 5 } 1 .. 9)
{
	my $server = $shard >= 4 && $shard <= 7 ? $two : $one;
	$server->safe_psql('postgres',
		"INSERT INTO insta$shard.users (name) SELECT 'user' FROM generate_series(1, $counts[$shard])");
}

subtest 'query prints the rows in the order of the shards' => sub {
	($status, $out) = run_shard($program, 'query', $one, $two, '--sql',
		'SELECT count(*), current_schema() AS here FROM users', '--jobs', 2);
	is("$status\n$out",
		"0\n" . join('', "shard  schema  count  here\n", map { "    $_  insta$_      $counts[$_]  insta$_\n" } 0 .. 9),
		'query: a table in the order of the shards');
	($status, $rows) = shard_json($program, 'query', $two, $one, '--shards', '3-4', '--format', 'json', '--sql', q{
		SELECT 5 AS shard, current_schema() AS schema, 2.5::float8 AS f, 123456789012345678 AS id, 1.25 AS n, 'NaN'::float8,
			true AS b, NULL AS x, E'a"\n' AS t, 7, 8});
	is($status, 0, 'query: JSON');
	my $expected =
		sub { { shard => $_[0], schema => "insta$_[0]", shard_2 => 5, schema_2 => "insta$_[0]", f => 2.5,
			id => '123456789012345678', n => 1.25,
		float8 => 'NaN', b => JSON::PP::true, x => undef, t => "a\"\n", '?column?' => 7, '?column?_2' => 8 } };
	is_deeply($rows, [ $expected->(3), $expected->(4) ], 'query: a column named shard, types, names that come twice');
	($status, $out) = run_shard($program, 'query', $one, $two, '--shards', '4', '--format', 'json', '--sql',
		'SELECT 42 AS n, 123456789012345678 AS id');
	is($out, qq([\n  {"shard": 4, "schema": "insta4", "n": 42, "id": "123456789012345678"}\n]\n),
		'query: a number that programs would round is text');
	($status, $out) =
		run_shard($program, 'query', $one, '--shards', '3', '--format', 'csv', '--sql', q{VALUES ('a,"b"', '', NULL, 1)});
	is("$status $out", qq(0 shard,schema,column1,column2,column3,column4\n3,insta3,"a,""b""","",,1\n), 'query: CSV');
	is((run_shard($program, 'query', $one, '--format', $_, '--sql', 'SELECT 1 AS n WHERE false'))[1],
		{ csv => "shard,schema,n\n", json => "[]\n", table => "shard  schema  n\n" }->{$_},
		"query: no rows as $_") foreach qw(csv json table);
};

subtest 'query only reads' => sub {
	my @refused = (
		[ 'it writes', q{SELECT public.snowflake_create_shard(99, 'x')}, qr/read-only transaction/ ],
			[ 'it is no query', 'DELETE FROM users', qr/syntax error/ ],
		[ 'it writes before it reads', 'WITH x AS (DELETE FROM users RETURNING 1) SELECT * FROM x',
			qr/must not contain data-modifying/ ],
		[ 'it is two statements', 'SELECT 1; COMMIT; DELETE FROM users', qr/the text is not one query/ ]);
	foreach my $refused (@refused)
	{
		my ($name, $sql, $message) = @$refused;
		($status, $out, $err) = run_shard($program, 'query', $one, '--sql', $sql);
		ok($status == 3 && $err =~ /^snowflake-shard: shards 0-3,8-9: .*$message/s, "query: refused, because $name")
			or diag("$status $out $err");
	}
	is($one->safe_psql('postgres', 'SELECT count(*) FROM insta9.users'), 9, 'query: nothing was deleted');
};

subtest 'query goes on without a shard that fails' => sub {
	$two->safe_psql('postgres', 'ALTER TABLE insta6.users RENAME TO people');
	($status, $out, $err) =
		run_shard($program, 'query', $one, $two, '--format', 'csv', '--sql', 'SELECT count(*) FROM users');
	ok($status == 3 && $err =~ /^snowflake-shard: shard 6: ERROR:  relation "users" does not exist/
		&& (() = $out =~ /,insta/g) == 9,
		'query: goes on without a shard that fails') or diag("$out$err");
	$two->safe_psql('postgres', 'ALTER TABLE insta6.people RENAME TO users');
	($status, $out, $err) = run_shard($program, 'query', $one, '--shards', '2,3', '--timeout', '1s', '--sql',
		q{SELECT pg_sleep(CASE current_schema() WHEN 'insta2' THEN 60 ELSE 0 END)});
	ok($status == 3 && $err =~ /^snowflake-shard: shard 2: ERROR:  canceling statement due to statement timeout/
		&& $out =~ /insta3/, 'query: --timeout') or diag("$out$err");
	is((run_shard($program, 'query', $one, '--shards', '2,77', '--sql', 'SELECT 1'))[0], 3,
		'query: a number that no server has is refused');
};

subtest 'query prints a million rows in little memory' => sub {
	# A million rows, within 100 MB for all that the program writes to.
	($status, $out, $err) = run_shard('prlimit', '--data=100000000', $program, 'query', $one, $two, '--shards', '3-4',
		'--format', 'csv', '--jobs', 2,
		'--sql', q{SELECT n, repeat('x', 50) FROM generate_series(1, 500000) AS n});
	is($status . ' ' . ($out =~ tr/\n//), '0 1000001', 'query: a million rows') or diag($err);
	like($out, qr/\n3,insta3,500000,x+\n4,insta4,1,x+\n/, 'query: in order');
};

# --- a shard that is moving -----------------------------------------------------------------------

subtest 'run refuses a shard that is moving' => sub {
	my @way = ('insta8', '--from', $one, '--to', $two);
	my $move = start_command('move', 'target: rows', @way);
	$move->{run}->signal('INT');
	isnt(end_command($move), 0, 'a move is interrupted');
	my $columns =
		q{SELECT string_agg(DISTINCT table_schema, ' ') FROM information_schema.columns WHERE column_name = 'place'};
	foreach my $servers ([$one], [$two], [ $one, $two ])
	{
		($status, $out, $err) = run_shard($program, 'run', @$servers, '--shards', '0-8', '--keep-going', '--sql',
			'ALTER TABLE users ADD place text');
		my $moving = qr/shard 8, schema insta8, is moving\nHINT:  snowflake-shard /;
		ok($status == 3 && $out eq ''
			&& $err =~ /^snowflake-shard: $moving(move insta8 .*) --resume goes on/,
			'run refuses a shard that is moving, given ' . @$servers) or diag("$status $err");
	}
	my ($command) = $err =~ /snowflake-shard (move insta8 .*) --resume goes on/;
	is(() = $err =~ /is moving/g, 1, 'and names it once');
	is($_->safe_psql('postgres', $columns), '', 'before anything runs') foreach $one, $two;
	is((run_shard($program, split(/ /, $command), '--abort'))[0], 0, 'the command that is named ends the move');
	is((run_shard($program, 'run', $one, $two, '--shards', '0-8', '--sql', 'ALTER TABLE users ADD place text'))[0], 0,
		'and run goes on');
};

# --- the closed copy of a move --------------------------------------------------------------------

subtest 'clone names the closed copy of a move' => sub {
	my @clone = ('clone', $one, $two, '--template', 'insta0', '--shards', '30', '--schema', 'insta{}');
	is((run_shard($program, @clone))[0], 0, 'a shard');
	is((run_shard($program, 'move', 'insta30', '--from', $one, '--to', $two))[0], 0, 'that moves');
	($status, undef, $err) = run_shard($program, @clone);
	my $has_moved = qr/shard 30, schema insta30, has moved to \S+/;
	ok($status == 3
		&& $err =~ /$has_moved\nHINT:  snowflake-shard (move insta30 .*--complete) drops the closed copy/,
		'clone names the closed copy of a move') or diag("$status $err");
	is((run_shard($program, split(/ /, $err =~ /snowflake-shard (move insta30 .*--complete)/ ? $1 : 'none')))[0], 0,
		'the command that is named drops it');
	is((run_shard($program, @clone))[1], "1 shard there already: 30\n", 'then clone finds the shard on the other server');
	$two->safe_psql('postgres', 'DROP SCHEMA insta30 CASCADE');
};

# --- a server that is stopped in the middle of query and plan ----------------------------------------

# A third server, and a function that waits until its server has a row in gate.
my $three = new_server('three');
$three->safe_psql('postgres', 'CREATE ROLE app LOGIN');
is((run_shard($program, 'clone', $one, $two, '--template', 'insta0', '--shards', '20-21', '--schema', 'insta{}', '--to',
	$three))[0], 0, 'a third server');
$_->safe_psql('postgres', q{
	CREATE TABLE gate ();
	CREATE FUNCTION await_gate() RETURNS integer LANGUAGE plpgsql AS
		'BEGIN WHILE NOT EXISTS (SELECT FROM public.gate) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN 1; END'})
			foreach $one, $two, $three;
my $two_name = $two->host . ':' . $two->port . '/postgres';
my $waiting =
	q{SELECT count(*) = %d FROM pg_stat_activity WHERE application_name = 'snowflake-shard' AND state = 'active' AND %s};
my $fetches = q{query ~ 'session_fetch'};

subtest 'query: a server is stopped' => sub {
	foreach my $jobs (1, 2)
	{
		$_->safe_psql('postgres', 'TRUNCATE gate') foreach $one, $two, $three;
		my $query = background('query', $one, $two, $three, '--format', 'csv', '--jobs', $jobs, '--sql',
			'SELECT public.await_gate() AS n');
		$_->poll_query_until('postgres', sprintf($waiting, $jobs, $fetches)) foreach $one, $two, $three;
		$two->stop('immediate');
		$_->safe_psql('postgres', 'INSERT INTO gate DEFAULT VALUES') foreach $one, $three;
		$query->{h}->finish;
		is($query->{h}->result(0), 3, "query --jobs $jobs, and a server is stopped: exit code 3");
		is($query->{out}, join('', "shard,schema,n\n", map { "$_,insta$_,1\n" } 0 .. 3, 8, 9, 20, 21),
			'the rows of all other shards');
		my ($asked, $left) = $jobs == 1 ? ('shard 4', '5-7') : ('shards 4-5', '6-7');
		like($query->{err}, qr/^snowflake-shard: $asked: server closed the connection.*^SERVER:  \Q$two_name\E$/ms,
			'the shards that were asked, and the server');
		like($query->{err}, qr/^snowflake-shard: shards $left: not asked, because the connection to \Q$two_name\E was lost$/m,
			'those that were not');
		start_server($two);
	}
};

subtest 'query: one of two connections is lost' => sub {
	# One of two connections is ended, and its server goes on: the other connection asks the rest.
	$one->safe_psql('postgres', 'TRUNCATE gate');
	my $query = background('query', $one, '--format', 'csv', '--jobs', 2, '--sql', 'SELECT public.await_gate() AS n');
	$one->poll_query_until('postgres', sprintf($waiting, 2, $fetches));
	is($one->safe_psql('postgres',
		qq{SELECT pg_terminate_backend(min(pid), 60000) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND $fetches}), 't',
			'query: a connection is ended');
	$one->safe_psql('postgres', 'INSERT INTO gate DEFAULT VALUES');
	$query->{h}->finish;
	is($query->{h}->result(0), 3, 'query, and a connection is lost: exit code 3');
	like($query->{err}, qr/\Asnowflake-shard: shard [01]: (?!.*^snowflake-shard: ).*^SERVER:  \S+\n\z/ms,
		'the shard that it was at')
		or diag($query->{err});
	like($query->{out}, qr/\Ashard,schema,n\n([01]),insta\1,1\n2,insta2,1\n3,insta3,1\n8,insta8,1\n9,insta9,1\n\z/,
		'another connection has asked all others');
};

subtest 'plan: a server is stopped' => sub {
	foreach my $keep_going ([], ['--keep-going'])
	{
		my $lock = $two->background_psql('postgres', on_error_stop => 0);
		$lock->query_safe('BEGIN; LOCK TABLE pg_depend');    # the lock of a shard is waited for a second only
		my $plan = background('plan', $one, $two, $three, '--json', @$keep_going);
		$two->poll_query_until('postgres', sprintf($waiting, 1, q{wait_event_type = 'Lock'}));
		$two->stop('immediate');
		$plan->{h}->finish;
		eval { $lock->quit };
		is($plan->{h}->result(0), 3, "plan @$keep_going, and a server is stopped: exit code 3");
		like($plan->{err}, qr/^snowflake-shard: server closed the connection.*^SERVER:  \Q$two_name\E$/ms, 'which is named');
		is($plan->{out}, '', 'no plan is made') unless @$keep_going;
		ok($plan->{out} =~ /^\[/ && $plan->{out} !~ /port=${\$two->port}\b/, 'the plan is for the other servers')
			if @$keep_going;
		start_server($two);
	}
};

subtest 'diff: a server is stopped' => sub {
	my $lock = $two->background_psql('postgres', on_error_stop => 0);
	$lock->query_safe('BEGIN; LOCK TABLE insta5.users');
	my $diff = background('diff', $one, $two, '--template', 'insta0', '--shards', '0-8', '--keep-going');
	$two->poll_query_until('postgres',
		q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'snowflake-shard' AND wait_event_type = 'Lock'});
	$two->stop('immediate');
	$diff->{h}->finish;
	eval { $lock->quit };
	is($diff->{h}->result(0), 3, 'diff --keep-going, and a server is stopped: exit code 3');
	is($diff->{out}, "4 shards compared with insta0, different: none\n", 'only shards that were compared are counted')
		or diag($diff->{err});
	start_server($two);
};

$three->stop;

# --- a server that is down -----------------------------------------------------------------------

my $no_socket = qr{connection to server on socket "/nonexistent/a/[^\n]*No such file[^\n]*};
my $down = 'host=/nonexistent/a password=secret dbname=app';
my $failed =
	qr{^snowflake-shard: dbname=app host=/nonexistent/a: $no_socket\n}m;

subtest 'query and list go on without a server that is down' => sub {
	($status, $out, $err) = run_shard($program, 'query', $one, $down, $two, '--format', 'csv', '--sql', 'SELECT 1');
	ok($status == 3 && $err =~ $failed && (() = $out =~ /,insta/g) == 10, 'query: goes on without a server that is down')
		or diag("$out$err");
	($status, $rows, $err) = shard_json($program, 'list', $one, $down, $two);
	is($status . ' ' . scalar @$rows, '3 10', 'list: goes on without a server that is down');
	like($err, $failed, 'list: names it in one line');
	unlike($err, qr/secret/, 'list: without its password');
};

subtest 'other verbs refuse without --keep-going' => sub {
	my @verbs = (
		[ 'map' ], [ 'verify' ], [ 'diff', '--template', 'insta0' ],
			[ 'run', '--shards', '0-9', '--sql', 'CREATE TABLE made ()' ],
		[ 'clone', '--template', 'insta0', '--shards', '10', '--schema', 'insta{}' ]);
	foreach my $verb (@verbs)
	{
		($status, $out, $err) = run_shard($program, @$verb, $one, $down, $two);
		ok($status == 3 && $err =~ /$failed/ && $err =~ /1 of 3 servers failed: nothing was done/, "$verb->[0] refuses")
			or diag("$status $err");
		is($out, '', "$verb->[0]: and prints nothing");
		($status, $out, $err) = run_shard($program, @$verb, '--keep-going', $one, $down, $two);
		ok($status == 3 && $err =~ /$failed/ && $out ne '',
			"$verb->[0] --keep-going goes on with the others, and ends with 3") or diag("$status $err");
	}
	is($one->safe_psql('postgres',
		q{SELECT count(*) FROM pg_class WHERE relname = 'made' AND relnamespace <> 'insta10'::regnamespace}), 6,
		'run --keep-going: every shard once');
	is($one->safe_psql('postgres', q{SELECT to_regnamespace('insta10') IS NOT NULL}), 't',
		'clone --keep-going: the shard was made');
};

subtest 'a database without the extension is named by each verb' => sub {
	my $empty = $one->connstr('template1');
	my @pair = ('--from', $empty, '--to', $two->connstr('postgres'));
	foreach my $arguments ([ 'list', $empty ], [ 'query', $empty, '--sql', 'SELECT 1' ],
		[ 'clone', $one->connstr('postgres'), qw(--template insta0 --shards 77 --schema insta{}), '--to', $empty ],
		[ 'clone', $empty, qw(--template insta0 --shards 77 --schema insta{}) ], [ 'move', 'insta0', @pair ],
		[ 'split', '--from', $empty, '--standby', $two->connstr('postgres'), '--shards', '0' ])
	{
		like((run_shard($program, @$arguments))[2],
			qr/template1: the extension is not installed there.*\nHINT:  CREATE EXTENSION snowflake;$/m, $arguments->[0]);
	}
};

subtest 'connection strings are told without their passwords' => sub {
	($status, $out, $err) = run_shard($program, 'list', $down, $one->connstr('template1'));
	ok($status == 3 && $err =~ /$failed/ && $err =~ /template1: the extension is not installed there/
		&& $err =~ /none of the servers is left/,
		'if no server is left, that is said') or diag($err);
	($status, $out, $err) = run_shard($program, 'list', 'host=x password=secret nonsense');
	ok($status == 2 && $err =~ /a connection string cannot be read/ && $err !~ /secret/,
		'a string that cannot be read is not repeated with its password')
		or diag($err);
};

$_->stop foreach $one, $two;
done_testing();
