# Under Citus no ID comes twice. A sequence that Citus copies to its workers makes IDs on the coordinator alone,
# whatever the node group of a worker: the clock is in the bounds of group 6. snowflake_next_id() makes IDs on
# every node, with a number for each, and snowflake-shard verify names two nodes that have one. docs/citus.md
# shows these commands.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my ($sharedir) = qx(pg_config --sharedir) =~ /(.*)/;
plan skip_all => 'Citus is not installed' unless -e "$sharedir/extension/citus.control";
my $program = shard_program();

# A coordinator and two workers, one of them in group 6.
my $conf = q{
listen_addresses = 'localhost'
shared_preload_libraries = 'citus'
citus.node_conninfo = 'sslmode=prefer'
citus.shard_count = 4
max_connections = 60
wal_level = logical
};
my ($coordinator, @workers) = my @nodes = map { new_server($_, conf => $conf) } qw(coordinator worker_1 worker_6);
foreach my $node (@nodes)
{
	$node->safe_psql('postgres', 'CREATE DATABASE app');
	$node->safe_psql('app', 'CREATE EXTENSION citus');
}
sub at
{
	my ($node, $sql) = @_;
	return $node->safe_psql('app', $sql);
}
at($coordinator, sprintf("SELECT citus_set_coordinator_host('localhost', %s)", $coordinator->port));
at($coordinator, sprintf("SELECT citus_add_node('localhost', %s)", $workers[0]->port));
at($coordinator,
	sprintf("ALTER SEQUENCE pg_dist_groupid_seq RESTART 6; SELECT citus_add_node('localhost', %s)", $workers[1]->port));
at($coordinator, 'CREATE EXTENSION snowflake');
is(join(' ', map { at($_, 'SELECT groupid FROM pg_dist_local_group') } @nodes), '0 1 6', 'the node groups');

# The servers of the cluster for snowflake-shard.
my @dsns = map { $_->connstr('app') . ' host=localhost' } @nodes;

# The error of a statement that a node refuses.
sub refusal
{
	my ($node, $sql) = @_;
	my ($status, $out, $err) = $node->psql('app', $sql);
	return $status == 0 ? "not refused: $out" : $err;
}

# --- sequences of their own: through the coordinator ---------------------------------------------

at($coordinator, q{
	CREATE SEQUENCE visits_id_seq;
	CREATE TABLE visits (id bigint PRIMARY KEY DEFAULT snowflake_next_id(5, 'visits_id_seq'), url text);
	SELECT create_distributed_table('visits', 'id');
	CREATE TABLE attached (id bigserial PRIMARY KEY, url text);
	SELECT snowflake_attach('attached', shard => 5, seq => 'visits_id_seq');
	SELECT create_distributed_table('attached', 'id');
	SELECT snowflake_create_shard(7, 'insta7');
	CREATE TABLE insta7.users (id bigint PRIMARY KEY DEFAULT insta7.next_id(), name text);
	SELECT citus_schema_distribute('insta7')});

subtest 'a worker makes no IDs of a sequence' => sub {
	foreach my $table (qw(visits attached insta7.users))
	{
		my $column = $table eq 'insta7.users' ? 'name' : 'url';
		my $insert = "INSERT INTO $table ($column) VALUES ('a')";
		at($coordinator, $insert);
		foreach my $worker (@workers)
		{
			like(refusal($worker, $insert),
				qr/makes no IDs on this Citus worker.*ALTER SYSTEM SET snowflake\.shard on each node/s,
				"$table: refused on " . $worker->name);
			unlike(refusal($worker, $insert), qr/MAXVALUE;/, "$table: no hint widens it on " . $worker->name);
		}
		like(refusal($coordinator, "INSERT INTO $table ($column) SELECT $column FROM $table"),
			qr/makes no IDs on this Citus worker/, "$table: refused where Citus lets a worker compute the DEFAULT");
	}
};

my $elsewhere;
subtest 'the coordinator makes the IDs of moved schemas and temporary tables' => sub {
	my $node_of_insta7 = at($coordinator,
		q{SELECT DISTINCT nodeport FROM citus_schemas JOIN citus_shards USING (colocation_id)
			WHERE schema_name = 'insta7'::regnamespace});
	($elsewhere) = grep { $_ ne $node_of_insta7 } map { $_->port } @workers;
	at($coordinator, "SELECT citus_schema_move('insta7', 'localhost', $elsewhere, 'block_writes')");
	at($coordinator, q{INSERT INTO insta7.users (name) VALUES ('b'), ('c');
		COPY insta7.users (name) FROM PROGRAM 'seq 1000';
		CREATE TEMP TABLE names AS SELECT name FROM insta7.users;
		INSERT INTO visits (url) SELECT name FROM names;
		INSERT INTO insta7.users (name) SELECT name FROM names});
	is(at($coordinator, 'SELECT count(*), count(DISTINCT id), bool_and(snowflake_shard(id) = 7) FROM insta7.users'),
		'2006|2006|t',
		'a schema that Citus has moved goes on with its shard');
	is(at($coordinator, 'SELECT count(*), count(DISTINCT id), bool_and(snowflake_shard(id) = 5) FROM visits'),
		'1004|1004|t',
		'the rows of a temporary table are inserted on the coordinator');
};

my ($status, $rows) = shard_json($program, 'list', @dsns);

subtest 'the command finds each shard once' => sub {
	is(join(' ', map { "$_->{shard}:$_->{server}" } @$rows),
		'5:localhost:' . $coordinator->port . "/app 7:localhost:$elsewhere/app",
		'list: each shard once, with the node of a schema');
	($status, $rows) = shard_json($program, 'map', @dsns);
	is(join(' ', map { "$_->{shard}:$_->{port}" } @$rows), '5:' . $coordinator->port . ' 7:' . $coordinator->port,
		'map: clients connect to the coordinator');
	($status, $rows) = shard_json($program, 'verify', @dsns);
	is("$status " . @$rows, '0 0', 'verify: a schema on all nodes is no finding');
};

# --- without arguments: on every node ------------------------------------------------------------

subtest 'a node without a number makes no IDs' => sub {
	at($coordinator, q{
		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake_next_id(), caption text);
		SELECT create_distributed_table('photos', 'id')});
	like(refusal($_, q{INSERT INTO photos (caption) VALUES ('a')}),
		qr/snowflake\.shard is not set.*under Citus: ALTER SYSTEM/s,
		'no number: refused on ' . $_->name)
		foreach @nodes;
};

sub set_numbers
{
	my @numbers = @_;
	foreach my $node (@nodes)
	{
		my $number = shift @numbers;
		# The server knows the setting from the first call of a function of the extension on.
		at($node, "SELECT snowflake_shard(0); ALTER SYSTEM SET snowflake.shard = $number; SELECT pg_reload_conf()");
		await('the node has its number', sub {
			at($node, q{SELECT snowflake_shard(0)}); at($node, 'SHOW snowflake.shard') eq $number });
	}
	return;
}

subtest 'verify finds two nodes with one number' => sub {
	set_numbers(100, 101, 101);
	($status, $rows) = shard_json($program, 'verify', @dsns);
	is("$status " . join(' ', map { "$_->{finding} $_->{object}" } @$rows), '1 shard shard 101',
		'verify: two nodes with one number');
	like($rows->[0]{problem},
		qr/as the setting snowflake\.shard here and as the setting snowflake\.shard at localhost:\d+\/app/,
		'verify: names the setting and both nodes');
	set_numbers(100, 101, 102);
	is((run_shard($program, 'verify', @dsns))[0], 0, 'verify: a number for each node');
};

subtest 'all nodes insert at once, each with its number' => sub {
	my $inserts = $ENV{SNOWFLAKE_TEST_LONG} ? 5000 : 500;
	my $script = PostgreSQL::Test::Utils::tempdir() . '/inserts.sql';
	append_to_file($script,
		qq{INSERT INTO photos (caption) VALUES ('a');\nINSERT INTO photos (caption) VALUES ('b'), ('c'), ('d');\n} x $inserts
			. qq{COPY photos (caption) FROM PROGRAM 'seq 10000';\n});
	my @clients = map { my %client; $client{run} =
		IPC::Run::start([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $script, '-d', $_->connstr('app') ],
			'<', '/dev/null', '>', \$client{out}, '2>', \$client{err}); \%client } @nodes, @nodes;
	$_->{run}->finish foreach @clients;
	is(join('', map { $_->{err} } @clients), '', 'all nodes insert at once');
	my $count = @clients * ($inserts * 4 + 10_000);
	is(at($coordinator, 'SELECT count(*), count(DISTINCT id) FROM photos'), "$count|$count", "$count IDs, none twice");
	is(at($coordinator, q{SELECT string_agg(DISTINCT snowflake_shard(id)::text, ' ') FROM photos}), '100 101 102',
		'each with the number of its node');
	at($coordinator, 'INSERT INTO photos (caption) SELECT caption FROM photos');
	is(at($coordinator, 'SELECT count(DISTINCT id) FROM photos'), 2 * $count, 'nor where the workers compute the DEFAULT');
};

# --- reading -------------------------------------------------------------------------------------

subtest 'reading on the workers, and the checks of a cluster' => sub {
	like(at($coordinator,
		q{EXPLAIN SELECT snowflake_shard(id), count(*) FROM photos WHERE snowflake_between(id, now(), now()) GROUP BY 1}),
		qr/Index Cond: \(\(id >= snowflake_min_id/, 'snowflake_between() uses the index on the workers');
	at($coordinator, q{INSERT INTO photos (id) VALUES (snowflake_encode(now() + interval '1 minute', 200, 0))});
	is(join("\n",
		map {
			at($_,
				q{SELECT * FROM snowflake_check()
					WHERE object !~ '^sequence (public\.visits_id_seq|insta7\.table_id_seq)$'}) } @nodes),
		"\n\n", 'snowflake_check(): no table in which Citus keeps rows');
	is(join(' ', map { at($_, q{SELECT DISTINCT severity FROM snowflake_check() WHERE problem ~ 'Citus'}) } @workers),
		'notice notice',
		'snowflake_check(): a notice of the copies of sequences');
};

$_->stop foreach @nodes;
done_testing();
