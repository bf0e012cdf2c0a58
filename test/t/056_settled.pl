# snowflake_settled_id(): a consumer that reads up to it gets every row once, in the order of the IDs, while 16 writers
# commit late, roll back, prepare transactions and are killed, and while the server crashes and a standby is promoted. A
# consumer that reads "id > last" misses rows of the same load.
#
#   SNOWFLAKE_TEST_LONG     10 minutes, instead of 15 seconds
#   SNOWFLAKE_TEST_CYCLES   the number of rounds, of 2 seconds each
#   SNOWFLAKE_TEST_SEED     as an earlier run has printed it

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

seed_random();
my $rounds = trials(4, 300);

my $conf = "max_connections = 60\nmax_prepared_transactions = 40\nmax_wal_senders = 5\nwal_level = replica\n";
my $node = new_server('settled', conf => $conf, init => { allows_streaming => 1 });

# What a consumer has read is noted in the database, in the transaction that reads it: exactly once, also over a crash.
$node->safe_psql('postgres', q{
	SELECT snowflake_create_shard(5, 'insta5');
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), caption text);
	CREATE TABLE insta5.likes (id bigint PRIMARY KEY DEFAULT insta5.next_id());
	CREATE VIEW rows AS SELECT id FROM insta5.photos UNION ALL SELECT id FROM insta5.likes;
	CREATE TABLE consumers (name text PRIMARY KEY, last bigint NOT NULL DEFAULT 0, stops boolean NOT NULL DEFAULT false);
	INSERT INTO consumers VALUES ('settled'), ('plain');
	CREATE TABLE seen (n bigint GENERATED ALWAYS AS IDENTITY, name text, id bigint);
	CREATE TABLE unrelated (n integer);

	CREATE PROCEDURE consume(consumer text) LANGUAGE plpgsql AS $$
	DECLARE
		own consumers;
		settled bigint;
		newest bigint;
	BEGIN
		LOOP
			SELECT * INTO own FROM consumers WHERE name = consumer;
			settled := CASE consumer WHEN 'settled' THEN insta5.settled_id() ELSE 9223372036854775807 END;
			WITH new AS (INSERT INTO seen (name, id)
			             SELECT consumer, id FROM rows WHERE id > own.last AND id <= settled ORDER BY id RETURNING id)
			SELECT max(id) INTO newest FROM new;
			UPDATE consumers SET last = CASE consumer WHEN 'settled' THEN settled ELSE coalesce(newest, last) END
			WHERE name = consumer;
			COMMIT;
			EXIT WHEN own.stops;
			PERFORM pg_sleep(0.002);
		END LOOP;
	END $$;
});

# Scripts of pgbench, with their weights. A transaction ends up to 40 ms after it has drawn.
my %scripts = (
	single => [ 6, 'BEGIN; INSERT INTO insta5.photos (caption) VALUES (\'x\');',
		'INSERT INTO insta5.likes DEFAULT VALUES; COMMIT;' ],
	batch => [ 3, 'BEGIN; INSERT INTO insta5.photos (caption) SELECT \'b\' FROM generate_series(1, 100);', 'COMMIT;' ],
	copy => [ 1, 'BEGIN; INSERT INTO insta5.photos SELECT snowflake_next_ids(5, \'insta5.table_id_seq\', 50), \'c\';',
		'COMMIT;' ],
	savepoint => [ 2, 'BEGIN; SAVEPOINT s; INSERT INTO insta5.likes DEFAULT VALUES; ROLLBACK TO s;
		INSERT INTO insta5.photos (caption) VALUES (\'s\');', 'COMMIT;' ],
	rollback => [ 1, 'BEGIN; INSERT INTO insta5.likes DEFAULT VALUES;', 'ROLLBACK;' ],
	prepared => [ 1, 'BEGIN; INSERT INTO insta5.photos (caption) VALUES (\'p\'); PREPARE TRANSACTION \'p:client_id\';',
		'COMMIT PREPARED \'p:client_id\';' ],
);
my @files;
foreach my $name (sort keys %scripts)
{
	my ($weight, $begin, $end) = @{ $scripts{$name} };
	my $file = PostgreSQL::Test::Utils::tempdir . "/$name.sql";
	append_to_file($file, "\\set late random(0, 40)\n$begin\n\\sleep :late ms\n$end\n");
	push @files, '-f', "$file\@$weight";
}

sub start_consumer
{
	my ($server, $name) = @_;
	my $consumer = { name => $name, out => '' };
	$consumer->{run} = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $server->connstr('postgres'), '-c', "CALL consume('$name')" ],
		'<', '/dev/null', '>&', \$consumer->{out});
	return $consumer;
}

# One round of writers. The exit status of pgbench does not matter, because its clients are killed. The prepared
# transactions that they leave are of nobody.
sub write_for
{
	my ($seconds, $meanwhile) = @_;
	my $out = '';
	my $run = IPC::Run::start(
		[ 'pgbench', '-n', '-c', 16, '-j', 4, '-T', $seconds, @files, $node->connstr('postgres') ],
		'<', '/dev/null', '>&', \$out);
	usleep(int($seconds * 500_000));
	$meanwhile->();
	$run->finish;
	my $left = $node->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
	$node->safe_psql('postgres', "ROLLBACK PREPARED '$_'") foreach split /\n/, $left;
	return;
}

# The rows up to the last ID that a consumer has read: how many it lacks, has twice, and has not in their order.
sub faults_of
{
	my ($name) = @_;
	return $node->safe_psql('postgres', qq{
		WITH own AS (SELECT n, id FROM seen WHERE name = '$name')
		SELECT (SELECT count(*) FROM rows WHERE id <= (SELECT last FROM consumers WHERE name = '$name')
		        AND id NOT IN (SELECT id FROM own)),
		       (SELECT count(*) - count(DISTINCT id) FROM own),
		       (SELECT count(*) FROM (SELECT id < lag(id) OVER (ORDER BY n) AS is_back FROM own) AS o WHERE is_back)});
}

# A write that has drawn nothing is open all the time.
my $unrelated = $node->background_psql('postgres');
$unrelated->query_safe('BEGIN; INSERT INTO unrelated VALUES (1)');

my %consumers = map { ($_ => start_consumer($node, $_)) } 'settled', 'plain';
my %ends = (
	kill => sub {
		$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE application_name = 'pgbench' ORDER BY random() LIMIT 4});
	},
	crash => sub {
		crash($node);
		$_->{run}->finish foreach values %consumers;
		$node->start;
		$consumers{$_} = start_consumer($node, $_) foreach keys %consumers;
	},
	nothing => sub { },
);
my @kinds = ('nothing', 'kill', 'crash', 'kill');
foreach my $round (1 .. $rounds)
{
	show_progress('settled', $round, $rounds);
	write_for(2, $ends{ $kinds[ $round % @kinds ] });
}

# The standby has everything that was committed (synchronous_commit waits for it), and the consumers go on there.
subtest 'promotion' => sub {
	$node->backup('copy');
	my $standby = PostgreSQL::Test::Cluster->new('promoted');
	$standby->init_from_backup($node, 'copy', has_streaming => 1);
	$standby->start;
	my ($status, undef, $err) = $standby->psql('postgres', 'SELECT insta5.settled_id()');
	like($err, qr/cannot run on a standby.*On the primary: /s, 'a standby refuses, and says what to do');
	$node->append_conf('postgresql.conf', "synchronous_standby_names = '*'");
	$node->reload;
	my $primary = $node;
	write_for(2, sub {
		crash($primary);
		$_->{run}->finish foreach values %consumers;
		$standby->promote;
		$node = $standby;
		$consumers{$_} = start_consumer($node, $_) foreach keys %consumers;
	});
	write_for(1, sub { });
};

subtest 'each row is read once, in the order of the IDs' => sub {
	$node->safe_psql('postgres', 'UPDATE consumers SET stops = true');
	$_->{run}->finish foreach values %consumers;
	is($_->{out}, '', "consumer $_->{name} ends") foreach values %consumers;

	my $rows = $node->safe_psql('postgres', 'SELECT count(*) FROM rows');
	my ($missed) = split /\|/, faults_of('plain');
	note("$rows rows; the plain consumer missed $missed");
	is(faults_of('settled'), '0|0|0', 'the settled consumer misses no row, has none twice, and all in their order');
	cmp_ok($missed, '>', 0, 'id > last misses rows of the same load');
	is($node->safe_psql('postgres', q{SELECT count(*) FROM rows
		WHERE id > (SELECT last FROM consumers WHERE name = 'settled')}), '0', 'and it has come to the end');
};

$node->stop;
done_testing();
