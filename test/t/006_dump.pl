# pg_dump and restore keep a sequence's position: IDs made after the restore are greater than all IDs
# made before the dump, even if the new server's clock is slow. Tested for the sequences of columns, for
# an ID that setval() has stored, and for snowflake_id_seq, which is dumped like a configuration table.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

seed_random();
note('libfaketime is not installed: the new clock is not slow') unless libfaketime();
my $clock = libfaketime() ? new_clock() : undef;
my $node = new_server('dumped', clock => $clock);
$node->command_ok([ 'createdb', '-h', $node->host, '-p', $node->port, 'source' ], 'createdb');

# The extension in a schema of its own, one column of the default epoch, one of another.
$node->safe_psql('source', q{
	CREATE SCHEMA "Ids";
	CREATE EXTENSION snowflake SCHEMA "Ids";
	CREATE SEQUENCE photos_id_seq;
	CREATE TABLE photos (
		id bigint NOT NULL DEFAULT "Ids".snowflake_next_id(5, 'photos_id_seq'), n integer);
	ALTER SEQUENCE photos_id_seq OWNED BY photos.id;
	CREATE SCHEMA insta7;
	CREATE SEQUENCE insta7.table_id_seq;
	CREATE TABLE insta7.likes (
		id bigint NOT NULL
			DEFAULT "Ids".snowflake_next_id(7, 'insta7.table_id_seq', 1700000000000),
		n integer);
	CREATE SEQUENCE untouched;
	CREATE TABLE reset (id bigserial, n integer);
	ALTER TABLE reset ALTER COLUMN id SET DEFAULT "Ids".snowflake_next_id(6, 'reset_id_seq');
});

my %insert = (
	'a column' => 'INSERT INTO photos (n) VALUES (1) RETURNING id',
	'a column with an epoch of its own' => 'INSERT INTO insta7.likes (n) VALUES (1) RETURNING id',
	'a column whose sequence holds an ID' => 'INSERT INTO reset (n) VALUES (1) RETURNING id',
	'snowflake_id_seq' => 'SET snowflake.shard = 9; SELECT "Ids".snowflake_next_id()');
my %before = map { $_ => $node->safe_psql('source', $insert{$_}) } keys %insert;

$node->safe_psql('source', q{SELECT setval(pg_get_serial_sequence('reset', 'id'), max(id)) FROM reset});
# An ID ahead of the clock, as a burst leaves it.
$before{'a column'} = $node->safe_psql('source',
	q{SELECT max(id) FROM "Ids".snowflake_next_ids(5, 'photos_id_seq', 100000) AS id});

my $directory = PostgreSQL::Test::Utils::tempdir();
my @server = ('-h', $node->host, '-p', $node->port);

subtest 'the dump has the positions, and nothing internal' => sub {
	$node->command_ok([ 'pg_dump', @server, '-f', "$directory/plain.sql", 'source' ], 'pg_dump');
	$node->command_ok([ 'pg_dump', @server, '-Fc', '-f', "$directory/custom", 'source' ], 'pg_dump -Fc');
	like(
		slurp_file("$directory/plain.sql"),
		qr/setval\('"Ids"\.snowflake_id_seq', \d{10,}, true\)/,
		'the dump has the value of snowflake_id_seq');
	unlike(
		slurp_file("$directory/plain.sql"),
		qr/snowflake_internal/,
		'the dump leaves the schema of the internal functions to CREATE EXTENSION');
};

subtest 'the IDs go on where the dump is restored' => sub {
	my %restore = (
		plain  => [ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', @server, '-f', "$directory/plain.sql" ],
		custom => [ 'pg_restore', '--exit-on-error', @server, "$directory/custom" ]);
	set_clock($clock, -600) if $clock;
	foreach my $format (sort keys %restore)
	{
		my $database = "restored_$format";
		$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE template0");
		$node->command_ok([ @{ $restore{$format} }, '-d', $database ], "$format: restored");
		foreach my $object (sort keys %insert)
		{
			my $after = $node->safe_psql($database, $insert{$object});
			are_later("$format, $object: IDs are later than those before the dump",
				[ $before{$object} ], [$after]);
		}
		is( $node->safe_psql($database, q{
				SELECT count(DISTINCT id >> 23) < 500 FROM "Ids".snowflake_next_ids(5, 'photos_id_seq', 200000) AS id}),
			't',
			"$format: a burst after the restore is not paced: it fills its milliseconds");
		is( $node->safe_psql($database, q{
				SELECT s.last_value, s.is_called, i.last_value > 1 FROM untouched s,
					"Ids".snowflake_id_seq i}),
			'1|f|t',
			"$format: a sequence that was never used is as new");
		is( $node->safe_psql($database,
				q{SELECT count(*), count(DISTINCT id), min("Ids".snowflake_shard(id)) FROM insta7.likes}),
			'2|2|7',
			"$format: rows keep their IDs");
	}
};

$node->stop;

# Under load, on two servers in turn: clients draw while one server is dumped and after that, the server
# crashes, and they go on on the other server, where the dump was restored and whose clock is slow. The
# dump holds everything that was committed before pg_dump began.
subtest 'a dump and a restore under load' => sub {
	SKIP:
	{
		skip 'libfaketime is not installed', 1 unless $clock;
		my $fault = 'pg_dump, and a restore on a server with a slow clock';
		my $trials = trials(1, 20);
		my @nodes = map { new_server("loaded_$_") } 1, 2;
		$_->{clock} = new_clock() foreach @nodes;
		$nodes[0]->safe_psql('postgres', 'CREATE DATABASE load');
		$nodes[0]->safe_psql('load', 'CREATE EXTENSION snowflake; CREATE SEQUENCE s; CREATE SEQUENCE core_s');
		my @load = (
			nodes     => [@nodes],
			database  => 'load',
			clients   => [ 'single', 'mixed:300' ],
			arguments => [ '--rest', 5 ]);
		my @observers = (
			observe($nodes[0], @load),
			observe($nodes[0], @load, generator => 'nextval', sequence => 'core_s'));
		foreach my $trial (1 .. $trials)
		{
			show_progress($fault, $trial, $trials);
			my ($old, $new) = @nodes;
			await_draws($_) foreach @observers;
			usleep(int rand 300_000);
			forsake($_) foreach @observers;
			$old->command_ok([ 'pg_dump', '-f', "$directory/load.sql", '-d', $old->connstr('load') ],
				'pg_dump under load');
			await_draws($_) foreach @observers;
			crash($old);

			# Under its own name the database is complete: clients are waiting for it.
			$new->stop;
			set_clock($new->{clock}, -rand 40 * 60);
			start_server($new, $new->{clock});
			$new->safe_psql('postgres', 'CREATE DATABASE new');
			$new->command_ok(
				[ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$directory/load.sql", '-d', $new->connstr('new') ],
				'restored for clients that wait');
			$new->safe_psql('postgres', 'ALTER DATABASE new RENAME TO load');
			await_sessions($new, @observers);
			await_draws($_, 10) foreach @observers;
			set_clock($new->{clock}, 0);
			start_server($old);
			$old->safe_psql('postgres', 'DROP DATABASE load');
			@nodes = reverse @nodes;
		}
		report_beside_core($fault, $trials, \@observers, not_promised => 'made after pg_dump began');
		$_->stop foreach @nodes;
	}
};

done_testing();
