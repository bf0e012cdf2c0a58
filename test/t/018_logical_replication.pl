# Two servers write the same table, each with a shard of its own, and replicate it to each other: no ID comes
# twice, and neither snowflake_check() nor snowflake-shard verify finds fault with the IDs of the other side,
# whose clock is fast. Before PostgreSQL 16, which has "origin", only one direction is replicated.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program_if_built();
my $conf = "wal_level = logical\nmax_wal_senders = 8\nmax_replication_slots = 8\n";
my @nodes = map { new_server("server_$_", conf => "${conf}snowflake.shard = $_\n") } 100, 101;
my ($one, $two) = @nodes;
my $version = $one->safe_psql('postgres', 'SHOW server_version_num');
my $both_ways = $version >= 160000;

# Rows that a server has once it has caught up.
sub await_count
{
	my ($node, $table, $count) = @_;
	$node->poll_query_until('postgres', "SELECT count(*) = $count FROM $table")
		or die "$count rows did not arrive in $table";
	return;
}

# The subscription has the name of the publication.
sub subscribe
{
	my ($node, $publisher, $name, $options) = @_;
	my $from = $publisher->connstr . ' dbname=postgres';
	$node->safe_psql('postgres', "CREATE SUBSCRIPTION $name CONNECTION '$from' PUBLICATION $name WITH ($options)");
	return;
}

# photos in a shard; likes by the setting; visits partitioned by time, with its partitions subscribed to.
my $tables = q{
	CREATE TABLE insta.photos (id bigint PRIMARY KEY DEFAULT insta.next_id(), caption text);
	CREATE TABLE insta.likes (id bigint PRIMARY KEY DEFAULT snowflake_next_id(), photo_id bigint);
	CREATE TABLE insta.visits (id bigint PRIMARY KEY DEFAULT insta.next_id(), path text) PARTITION BY RANGE (id);
	CREATE TABLE insta.visits_all PARTITION OF insta.visits DEFAULT};
my @names = qw(photos likes visits);
foreach my $i (0, 1)
{
	$nodes[$i]->safe_psql('postgres', 'SELECT snowflake_create_shard(' . (5 + $i) . ", 'insta'); $tables");
	$nodes[$i]->safe_psql('postgres', 'CREATE PUBLICATION photos FOR TABLE ' . join ', ', map { "insta.$_" } @names);
}
subscribe($two, $one, 'photos', 'copy_data = false' . ($both_ways ? ', origin = none' : ''));
subscribe($one, $two, 'photos', 'copy_data = false, origin = none') if $both_ways;

# The first server's clock is fast: its sequences are ten minutes ahead of the clock.
$one->safe_psql('postgres', q{
	SELECT snowflake_advance(seq, snowflake_max_id(now() + '10 min'))
	FROM unnest('{insta.table_id_seq,snowflake_id_seq}'::regclass[]) AS seq});
foreach my $i (0, 1)
{
	$nodes[$i]->safe_psql('postgres', "INSERT INTO insta.photos (caption) SELECT 'x' FROM generate_series(1, 200);
		INSERT INTO insta.likes (photo_id) SELECT id FROM insta.photos ORDER BY id LIMIT 200;
		INSERT INTO insta.visits (path) SELECT '/' FROM generate_series(1, 200)");
}
await_count($two, "insta.$_", 400) foreach @names;
if ($both_ways)
{
	await_count($one, "insta.$_", 400) foreach @names;
}

subtest 'rows of the other side are no fault' => sub {
	is($two->safe_psql('postgres',
		'SELECT count(DISTINCT snowflake_shard(id)), count(*) FROM insta.likes WHERE snowflake_shard(id) IN (100, 101)'),
		'2|400', 'the second server has rows of both sides');
	is($two->safe_psql('postgres', 'SELECT * FROM snowflake_check()'), '',
		"check: the other side's IDs, ahead of the clock, are no fault");
	is($one->safe_psql('postgres', "SELECT count(*) FROM snowflake_check() WHERE object !~ '^sequence'"), '0',
		'check: nor are those behind the sequence');
};

subtest 'an ID of the own shard ahead of the clock is one' => sub {
	# An ID of the own shard is one, below those of the other side.
	$two->safe_psql('postgres',
		"INSERT INTO insta.photos VALUES (snowflake_encode(now() + '5 min', 6, 0)), (snowflake_encode(now() + "
		. "'5 min', 7, 0))");
	is($two->safe_psql('postgres',
		q{SELECT severity, object, snowflake_shard(substring(problem, '\d{16,}')::bigint) FROM snowflake_check()}),
		'error|insta.photos.id|6', 'check: an ID ahead of the clock that this side makes again');
	$two->safe_psql('postgres',
		'DELETE FROM insta.photos WHERE id > snowflake_max_id(now()) AND snowflake_shard(id) <> 5');
};

subtest 'verify knows rows that a subscription brought' => sub {
	SKIP:
	{
		skip 'snowflake-shard was not built: its headers are not here', 2 unless defined $program;
		my ($status, $rows) = shard_json($program, 'verify', $one, $two, '--full');
		is("$status " . @$rows, '0 0', 'verify: rows that a subscription brought') or diag(explain($rows));
		$two->safe_psql('postgres', 'CREATE TABLE insta.albums (id bigint PRIMARY KEY DEFAULT insta.next_id());
			INSERT INTO insta.albums VALUES (snowflake_encode(now(), 5, 0))');
		($status, $rows) = shard_json($program, 'verify', $one, $two, '--full');
		is("$status " . join(' ', map { $_->{object} } @$rows), '1 insta.albums.id',
			'verify: a table that no subscription writes to');
		$two->safe_psql('postgres', 'DROP TABLE insta.albums');
	}
};

$_->safe_psql('postgres', 'DROP SUBSCRIPTION IF EXISTS photos') foreach @nodes;
$_->stop foreach @nodes;
done_testing();
