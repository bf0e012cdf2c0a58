# Logical replication beside that of snowflake-shard, and changes that this skips: a subscription that writes to a shard, which no fence stops, is led to the
# target by hand, and loses no row; one of all tables would stop at the tables of a record.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use MoveTest;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\n";
my ($one, $two, $feeder) = map { new_server($_, conf => $conf) } qw(one two feeder);
my $feed = qr/subscription feed writes to table insta5\.events, and the fence does not stop its worker/;

$one->safe_psql('postgres', q{
	SELECT snowflake_create_shard(5, 'insta5');
	CREATE TABLE insta5.events (n integer PRIMARY KEY); CREATE TABLE insta5.log (id bigint PRIMARY KEY DEFAULT insta5.next_id())});
$feeder->safe_psql('postgres', q{CREATE SCHEMA insta5; CREATE TABLE insta5.events (n integer PRIMARY KEY);
	CREATE PUBLICATION feed FOR TABLE insta5.events});

sub subscription
{
	my ($options) = @_;
	return "CREATE SUBSCRIPTION feed CONNECTION '" . $feeder->connstr . " dbname=postgres' PUBLICATION feed $options";
}

sub publish
{
	my ($first) = @_;
	$feeder->safe_psql('postgres', "INSERT INTO insta5.events SELECT generate_series($first, $first + 99)");
	return;
}

sub await_events
{
	my ($node, $rows) = @_;
	await("$rows events are at " . $node->name, sub { $node->safe_psql('postgres', 'SELECT count(*) FROM insta5.events') == $rows });
	return;
}

# As docs/move-needs.md has it.
sub lead_feed
{
	my ($from, $to) = @_;
	my $position = $from->safe_psql('postgres', q{SELECT remote_lsn FROM pg_replication_origin_status
		JOIN pg_subscription ON external_id = 'pg_' || oid WHERE subname = 'feed'});
	$from->safe_psql('postgres', $_) foreach 'ALTER SUBSCRIPTION feed SET (slot_name = NONE)', 'DROP SUBSCRIPTION feed';
	$to->safe_psql('postgres', $_)
		foreach subscription('WITH (slot_name = feed, create_slot = false, copy_data = false, enabled = false)'),
		"SELECT pg_replication_origin_advance('pg_' || oid, '$position') FROM pg_subscription WHERE subname = 'feed'",
		'ALTER SUBSCRIPTION feed ENABLE';
	return;
}

subtest 'a subscription that writes to the shard' => sub {
	publish(1);
	$one->safe_psql('postgres', subscription(''));
	await_events($one, 100);
	like(move($one, $two, '--dry-run'), qr/^1 \S+: $feed\n    HINT:  ALTER SUBSCRIPTION feed DISABLE; docs\/move-needs\.md/,
		'it is an obstacle');
	$one->safe_psql('postgres', 'ALTER SUBSCRIPTION feed DISABLE');
	publish(101);
	moves([ $one, $two, '--reversible' ], 'moved with reverse replication', 'the statement of the hint is enough');
	publish(201);
	lead_feed($one, $two);
	await_events($_, 300) foreach $two, $one;
};

subtest 'an undo looks at both servers' => sub {
	my @undo = ($one, $two, '--undo');
	is_refused(\@undo, qr/${\$two->port}\/postgres: $feed/, 'the source');
	$two->safe_psql('postgres', 'ALTER SUBSCRIPTION feed DISABLE');
	$one->safe_psql('postgres', subscription('WITH (slot_name = NONE, connect = false)') . q{;
		ALTER SUBSCRIPTION feed SET (slot_name = feed); ALTER SUBSCRIPTION feed ENABLE; ALTER SUBSCRIPTION feed REFRESH PUBLICATION});
	is_refused(\@undo, qr/${\$one->port}\/postgres: $feed/, 'the target');
	$one->safe_psql('postgres', 'ALTER SUBSCRIPTION feed DISABLE; ALTER SUBSCRIPTION feed SET (slot_name = NONE); DROP SUBSCRIPTION feed');
	moves(\@undo, 'undone', '--undo');
	publish(301);
	lead_feed($two, $one);
	await_events($one, 400);
};

subtest 'one that is enabled during the move' => sub {
	$one->safe_psql('postgres', 'ALTER SUBSCRIPTION feed DISABLE');
	my $holder = $one->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta5.log IN ROW EXCLUSIVE MODE');
	my $move = start_command('move', 'source: triggers of the fence', 'insta5', '--from', $one, '--to', $two);
	$one->safe_psql('postgres', 'ALTER SUBSCRIPTION feed ENABLE');
	$holder->quit;
	is(end_command($move), 3, 'the cutover is refused');
	like($move->{err}, qr/$feed(?s:.*)the source is open again/, 'and the source is open');
	publish(401);
	await_events($one, 500);
	is(sqlstate($one, 'INSERT INTO insta5.log DEFAULT VALUES'), '', 'for everybody');
	moves([ $one, $two, '--abort' ], 'aborted', '--abort');
};

$one->safe_psql('postgres', 'DROP SUBSCRIPTION feed');

# The probe of the move cannot be written while the marker is locked. The copy takes a while.
subtest 'another database has a subscription of the name of the move' => sub {
	$two->safe_psql('postgres', 'CREATE DATABASE other');
	$feeder->safe_psql('postgres', 'CREATE TABLE other (); CREATE PUBLICATION other FOR TABLE other');
	$two->safe_psql('other', 'CREATE TABLE other (); CREATE SUBSCRIPTION snowflake_move_5 CONNECTION '
		. "'" . $feeder->connstr . " dbname=postgres' PUBLICATION other WITH (slot_name = other)");
	my $worker = q{SELECT pid FROM pg_stat_subscription AS w JOIN pg_database AS d ON d.datname = '%s'
		JOIN pg_subscription AS s ON s.oid = subid AND subdbid = d.oid WHERE w.subname = 'snowflake_move_5' AND w.pid IS NOT NULL};
	await('its worker runs', sub { $two->safe_psql('postgres', sprintf $worker, 'other') ne '' });
	$one->safe_psql('postgres', 'INSERT INTO insta5.events SELECT generate_series(1001, 300000)');
	my $holder = $two->background_psql('postgres');
	my $move = start_command('move', 'target: rows', 'insta5', '--from', $one, '--to', $two);
	$holder->query_safe('BEGIN; LOCK TABLE snowflake_move_5.marker IN SHARE MODE');
	await_text($move, 'worker \d+ runs');
	my $pid = $two->safe_psql('postgres', sprintf $worker, 'postgres');
	like($move->{err}, qr/worker $pid runs/, 'the command names the worker of the move');
	$holder->quit;
	is(end_command($move), 0, 'move') or diag($move->{err});
	$two->safe_psql('other', 'DROP SUBSCRIPTION snowflake_move_5');
	moves([ $one, $two, '--complete' ], 'dropped', '--complete');
	($one, $two) = ($two, $one);
};

# From PostgreSQL 18 on. A DELETE of a row that is missing is no error.
sub skip_change
{
	my ($publisher, $subscriber) = @_;
	$publisher->safe_psql('postgres', 'INSERT INTO insta5.events VALUES (0)');
	await_events($subscriber, $publisher->safe_psql('postgres', 'SELECT count(*) FROM insta5.events'));
	$subscriber->safe_psql('postgres', 'SET session_replication_role = replica; DELETE FROM insta5.events WHERE n = 0');
	$publisher->safe_psql('postgres', 'DELETE FROM insta5.events WHERE n = 0');
	await('the change is counted', sub { $subscriber->safe_psql('postgres',
		q{SELECT confl_delete_missing FROM pg_stat_subscription_stats WHERE subname = 'snowflake_move_5'}) eq '1' });
	return;
}

subtest 'a change that was skipped' => sub {
	plan skip_all => 'PostgreSQL 18 counts them' if $one->safe_psql('postgres', 'SHOW server_version_num') < 180000;
	my $skipped = qr/subscription snowflake_move_5 has skipped 1 change of rows that are missing here\n\s*HINT:  .*(SELECT pg_stat_reset\S+;)/;
	my $holder = $one->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta5.log IN ROW EXCLUSIVE MODE');
	my $move = start_command('move', 'source: triggers of the fence', 'insta5', '--from', $one, '--to', $two, '--reversible');
	skip_change($one, $two);
	$holder->quit;
	is(end_command($move), 3, 'the target is not opened');
	like($move->{err}, qr/$skipped(?s:.*)the source is open again/, 'and the source is open');
	is_refused([ $one, $two, '--resume' ], $skipped, '--resume');
	$two->safe_psql('postgres', $move->{err} =~ $skipped);
	moves([ $one, $two, '--resume' ], 'moved with reverse replication', 'after the statement of the hint it goes on');

	skip_change($two, $one);
	my ($status, $out) = run_shard($program, 'verify', $one, $two);
	like("$status $out", qr/^1 .*schema snowflake_move_5: $skipped/, 'verify finds it in reverse replication');
	is_refused([ $one, $two, '--undo' ], $skipped, '--undo');
	$one->safe_psql('postgres', $out =~ $skipped);
	is((run_shard($program, 'verify', $one, $two))[0], 0, 'verify finds nothing');
	moves([ $one, $two, '--undo' ], 'undone', '--undo');
	moves([ $one, $two, '--complete' ], 'dropped', '--complete');
};

subtest 'a publication FOR ALL TABLES' => sub {
	my @databases = qw(plain extended);
	$feeder->safe_psql('postgres', "CREATE DATABASE $_") foreach @databases;
	$feeder->safe_psql('extended', 'CREATE EXTENSION snowflake');
	$one->safe_psql('postgres', 'CREATE PUBLICATION app FOR ALL TABLES');
	foreach my $database (@databases)
	{
		$feeder->safe_psql($database, q{CREATE SCHEMA insta5; CREATE TABLE insta5.events (n integer PRIMARY KEY);
			CREATE TABLE insta5.log (id bigint PRIMARY KEY)});
		$feeder->safe_psql($database, "CREATE SUBSCRIPTION $database CONNECTION '" . $one->connstr . " dbname=postgres' PUBLICATION app");
	}
	my $all = qr/publication app is FOR ALL TABLES, .* a subscription that reads slot/;
	like(move($one, $two, '--dry-run'), qr/^1 \S+: $all extended, plain would fail for ever/, 'it is an obstacle');
	is(move($one, $two, '--dry-run', '--trust-readers'), 'exit code 0', '--trust-readers');

	# As docs/operations.md has it.
	my $position = (split /\n/, $one->safe_psql('postgres',
		'CREATE PUBLICATION app_schemas FOR TABLES IN SCHEMA insta5; SELECT pg_current_wal_lsn()'))[0];
	foreach my $database (@databases)
	{
		$one->poll_query_until('postgres',
			"SELECT confirmed_flush_lsn >= '$position' FROM pg_replication_slots WHERE slot_name = '$database'");
		$feeder->safe_psql($database, "ALTER SUBSCRIPTION $database SET PUBLICATION app_schemas WITH (copy_data = false)");
	}
	$one->safe_psql('postgres', 'DROP PUBLICATION app');
	moves([ $one, $two, '--reversible' ], 'moved with reverse replication', 'schemas are none');
	$two->safe_psql('postgres', 'INSERT INTO insta5.log DEFAULT VALUES');
	moves([ $one, $two, '--undo' ], 'undone', '--undo');
	$one->safe_psql('postgres', 'INSERT INTO insta5.log DEFAULT VALUES');
	my $rows = $one->safe_psql('postgres', 'SELECT id FROM insta5.log ORDER BY id');
	foreach my $database (@databases)
	{
		await("the subscription in $database has all rows",
			sub { $feeder->safe_psql($database, 'SELECT id FROM insta5.log ORDER BY id') eq $rows });
		is($feeder->safe_psql('postgres', "SELECT apply_error_count FROM pg_stat_subscription_stats WHERE subname = '$database'"),
			'0', "the subscription in $database has not failed");
	}

	$two->safe_psql('postgres', q{CREATE PUBLICATION everything FOR ALL TABLES; SELECT pg_create_logical_replication_slot('all', 'pgoutput')});
	like(move($one, $two, '--dry-run'), qr/^1 \S+:${\$two->port}\/postgres: publication everything is FOR ALL TABLES/,
		'one of the target is an obstacle, too');
	$two->safe_psql('postgres', q{SELECT pg_drop_replication_slot('all')});
	is(move($one, $two, '--dry-run'), 'exit code 0', 'but not if no slot reads it');
	$feeder->safe_psql($_, "DROP SUBSCRIPTION $_") foreach @databases;
};

$_->stop foreach $one, $two, $feeder;
done_testing();
