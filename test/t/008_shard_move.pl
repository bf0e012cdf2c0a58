# A shard that pg_dump -n moves works on the new server, even if the clock there is slow: the shard
# is the same, every later ID is greater than every earlier one, the views and snowflake_check() are
# right on both servers. A dump of the whole database keeps the registry, too. If two sessions
# create one shard at the same time, one of them gets a clear error.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

note('libfaketime is not installed: the new clock is not slow') unless libfaketime();
my $clock = libfaketime() ? new_clock() : undef;
my $old = new_server('old', clock => $clock);
my $new = new_server('new', clock => $clock);

$old->safe_psql('postgres', q{
	SELECT snowflake_create_shard(5, 'insta5');
	SELECT snowflake_create_shard(6, 'insta6', 1700000000000);
	CREATE TABLE insta5.users (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
	CREATE TABLE insta5.photos (
		id bigint PRIMARY KEY DEFAULT insta5.next_id(),
		user_id bigint REFERENCES insta5.users);
	CREATE SEQUENCE insta5.likes_id_seq;
	CREATE TABLE insta5.likes (
		id bigint PRIMARY KEY DEFAULT snowflake_next_id(5, 'insta5.likes_id_seq'), n integer);
	ALTER SEQUENCE insta5.likes_id_seq OWNED BY insta5.likes.id;
	INSERT INTO insta5.users (n) SELECT generate_series(1, 100);
	INSERT INTO insta5.photos (user_id) SELECT id FROM insta5.users;
});

# A burst, so that the position is ahead of the clock when the shard is dumped.
my $largest = 'SELECT greatest((SELECT max(id) FROM insta5.photos), (SELECT max(id) FROM insta5.users))';
$old->safe_psql('postgres',
	'INSERT INTO insta5.likes (n) SELECT generate_series(1, 100000)');
my $last_photo = $old->safe_psql('postgres', $largest);
my $last_like = $old->safe_psql('postgres', 'SELECT max(id) FROM insta5.likes');

my $registry = q{SELECT table_name, column_name, function, shard, seq, epoch_ms
	FROM snowflake_columns WHERE schema_name = 'insta5' ORDER BY 1, 2};
my $columns = $old->safe_psql('postgres', $registry);

subtest 'the registry has direct and indirect calls' => sub {
	like($columns, qr/^likes\|id\|\|5\|insta5.likes_id_seq\|1314220021721$/m, 'registry: a direct call');
	like($columns, qr/^users\|id\|insta5.next_id\(\)\|5\|insta5.table_id_seq\|1314220021721$/m,
		'registry: a call through next_id()');
};

subtest 'the shard is dumped, and restored on another server' => sub {
	my $dump = PostgreSQL::Test::Utils::tempdir() . '/insta5.sql';
	$old->command_ok(
		[ 'pg_dump', '-h', $old->host, '-p', $old->port, '-n', 'insta5', '-f', $dump, 'postgres' ],
		'pg_dump -n insta5');
	set_clock($clock, -600) if $clock;
	$new->command_ok(
		[ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-h', $new->host, '-p', $new->port, '-f', $dump, 'postgres' ],
		'restored on the other server');
};

subtest 'the shard goes on there' => sub {
	is($new->safe_psql('postgres', $registry), $columns, 'the registry is the same there');
	is($new->safe_psql('postgres', 'SELECT shard, schema_name, function FROM snowflake_shards'),
		'5|insta5|insta5.next_id()', 'the shard is registered there');
	my $behind = $clock ? qr/^(warning\|[^\n]*clock is \d+ s behind it\n?)*$/ : qr/^$/;
	like($new->safe_psql('postgres', 'SELECT severity, problem FROM snowflake_check()'), $behind,
		'nothing to complain of there but the clock');

	my $photo = $new->safe_psql('postgres',
		'INSERT INTO insta5.photos (user_id) SELECT min(id) FROM insta5.users RETURNING id');
	my $like = $new->safe_psql('postgres', 'INSERT INTO insta5.likes (n) VALUES (1) RETURNING id');
	are_later('through next_id(): later IDs are above all earlier ones', [$last_photo], [$photo]);
	are_later('directly: later IDs are above all earlier ones', [$last_like], [$like]);
	is($new->safe_psql('postgres', "SELECT snowflake_shard($photo), snowflake_shard($like)"), '5|5',
		'they are of the same shard');
	is( sqlstate($new, q{SELECT snowflake_create_shard(5, 'another')}), '42710',
		'its number is taken there');
	is($old->safe_psql('postgres', 'DROP SCHEMA insta5 CASCADE; SELECT shard FROM snowflake_shards'),
		'6', 'dropped on the old server, it is gone from the registry');
};

subtest 'a dump of the whole database' => sub {
	my $all = PostgreSQL::Test::Utils::tempdir() . '/all.sql';
	$old->command_ok([ 'pg_dump', '-h', $old->host, '-p', $old->port, '-f', $all, 'postgres' ], 'pg_dump');
	$new->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE template0');
	$new->command_ok(
		[ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-h', $new->host, '-p', $new->port, '-f', $all, 'copy' ],
		'restored');
	is($new->safe_psql('copy', 'SELECT shard, schema_name, function, seq, epoch_ms FROM snowflake_shards'),
		'6|insta6|insta6.next_id()|insta6.table_id_seq|1700000000000',
		'a shard with an epoch of its own keeps it');
};

subtest 'two sessions create shards with the same number, then in the same schema' => sub {
	foreach my $second ([ 7, 'insta7b', '42710' ], [ 8, 'insta7', '42723' ])
	{
		my ($shard, $schema, $expected) = @$second;
		my $open = IPC::Run::start(
			[ 'psql', '-XAtq', '-h', $old->host, '-p', $old->port, 'postgres' ],
			'<', \my $in, '>', \my $out, '2>', \my $err);
		$in .= "BEGIN; SELECT snowflake_create_shard(7, 'insta7'); SELECT 'made';\n";
		await('the first session has made its shard', sub { $open->pump_nb; $out =~ /made/ });
		my $waiting = IPC::Run::start(
			[ 'psql', '-XAtq', '-v', 'VERBOSITY=sqlstate', '-h', $old->host, '-p', $old->port,
				'-c', "SELECT snowflake_create_shard($shard, '$schema')", 'postgres' ],
			'<', \undef, '>', \my $waiting_out, '2>', \my $waiting_err);
		await('the second one waits',
			sub { $old->safe_psql('postgres', 'SELECT count(*) FROM pg_locks WHERE NOT granted') eq '1' });
		$in .= "COMMIT;\n\\q\n";
		$open->finish;
		$waiting->finish;
		like($waiting_err, qr/ERROR:\s+$expected/, "shard $shard as $schema beside shard 7 as insta7: $expected");
		$old->safe_psql('postgres', 'DROP SCHEMA insta7 CASCADE');
	}
};

$old->stop;
$new->stop;
done_testing();
