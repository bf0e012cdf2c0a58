# Replication carries sequences from PostgreSQL 19 on: after ALTER SUBSCRIPTION ... REFRESH SEQUENCES the positions of
# the subscriber are those of the publisher, and its new IDs are above all IDs that the publisher has made, whose clock
# is fast.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $conf = "wal_level = logical\nmax_wal_senders = 8\nmax_replication_slots = 8\nsnowflake.shard = 100\n";
my ($publisher, $subscriber) = map { new_server($_, conf => $conf) } 'publisher', 'subscriber';
my $version = $publisher->safe_psql('postgres', 'SHOW server_version_num');
plan skip_all => 'replicated sequences come with PostgreSQL 19' if $version < 190000;

my $tables = q{
	SELECT snowflake_create_shard(5, 'insta');
	CREATE TABLE insta.photos (id bigint PRIMARY KEY DEFAULT insta.next_id(), caption text);
	CREATE TABLE insta.likes (id bigint PRIMARY KEY DEFAULT snowflake_next_id(), photo_id bigint)};
my $insert = q{
	INSERT INTO insta.photos (caption) SELECT 'x' FROM generate_series(1, 5000);
	INSERT INTO insta.likes (photo_id) SELECT id FROM insta.photos};
$_->safe_psql('postgres', $tables) foreach $publisher, $subscriber;
# No ID of the subscriber's own clock would be above these.
$publisher->safe_psql('postgres', q{
	SELECT snowflake_advance(seq, snowflake_max_id(now() + '10 min'))
	FROM unnest('{insta.table_id_seq,snowflake_id_seq}'::regclass[]) AS seq});
$publisher->safe_psql('postgres', $insert);

sub positions
{
	my ($node) = @_;
	return $node->safe_psql('postgres',
		'SELECT s.last_value, e.last_value FROM insta.table_id_seq AS s, snowflake_id_seq AS e');
}

sub await_sequences
{
	$subscriber->poll_query_until('postgres', q{SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel})
		or die 'the subscription is not ready';
	return;
}

subtest 'CREATE SUBSCRIPTION carries the positions' => sub {
	$publisher->safe_psql('postgres', 'CREATE PUBLICATION app FOR ALL TABLES, ALL SEQUENCES');
	my $from = $publisher->connstr . ' dbname=postgres';
	$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION app CONNECTION '$from' PUBLICATION app");
	await_sequences();
	is(positions($subscriber), positions($publisher), 'CREATE SUBSCRIPTION carries the positions');
};

subtest 'later IDs arrive without their positions' => sub {
	$publisher->safe_psql('postgres', $insert);
	$publisher->wait_for_catchup('app');
	isnt(positions($subscriber), positions($publisher), 'later IDs arrive without their positions');
	like($subscriber->safe_psql('postgres', 'SELECT * FROM snowflake_check()'),
		qr/^error\|insta\.photos\.id\|it holds \d+, above sequence/m,
		'snowflake_check() says so');
};

subtest 'REFRESH SEQUENCES carries the positions' => sub {
	$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION app REFRESH SEQUENCES');
	await_sequences();
	is(positions($subscriber), positions($publisher), 'REFRESH SEQUENCES carries the positions');
	is($subscriber->safe_psql('postgres', q{SELECT count(*) FROM snowflake_check() WHERE object !~ '^sequence'}), '0',
		'snowflake_check() finds no ID above a sequence');
	foreach my $table ('photos', 'likes')
	{
		my $largest = $publisher->safe_psql('postgres', "SELECT max(id) FROM insta.$table");
		is($subscriber->safe_psql('postgres', "INSERT INTO insta.$table DEFAULT VALUES RETURNING id > $largest"), 't',
			"$table: the next ID of the subscriber is above all IDs of the publisher");
	}
};

subtest 'REFRESH SEQUENCES moves a sequence back' => sub {
	# The positions of the publisher replace those of the subscriber, whichever is further.
	$subscriber->safe_psql('postgres', $insert);
	$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION app REFRESH SEQUENCES');
	await_sequences();
	is(positions($subscriber), positions($publisher), 'REFRESH SEQUENCES moves a sequence back');
};

$_->stop foreach $subscriber, $publisher;
done_testing();
