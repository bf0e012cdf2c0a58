# examples/hosted.sql, the scheme without the extension. Its functions answer as those of the extension do. IDs that
# several clients draw at the same time are distinct. As docs/hosted.md shows, the extension takes its place while
# clients write: new IDs are above all old ones, and none comes twice.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

seed_random();
my $node = new_server('hosted');    # database postgres has the extension, database app has not
my $file = "$FindBin::RealBin/../../examples/hosted.sql";
my $clients = 4;

$node->safe_psql('postgres', 'CREATE DATABASE app TEMPLATE template0');
$node->command_ok([ 'psql', '-Xq', '--single-transaction', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('app'), '-f',
	$file ],
	'hosted.sql runs in an empty database');

# --- the same answers ----------------------------------------------------------------------------

# Any bigint can be read; times are those of IDs, just beside them, and any others.
my @ids = (0, 1, 8388607, 8388608, '9223372036854775806', '9223372036854775807', -1, '-9223372036854775808',
	map { 2**62 * (rand(4) - 2) } 1 .. 3000);
my @times = (
	qw(-infinity infinity), '1970-01-01', '4714-11-24 BC', '294276-12-31 23:59:59.999999',
	'2011-08-24 21:07:01.721', '2011-08-24 21:07:01.7209', '2046-06-27 17:00:49.496', '2046-06-27 17:00:49.496001',
	map { sprintf '%04d-%02d-%02d %02d:%02d:%02d.%06d', 1900 + rand 300, 1 + rand 12, 1 + rand 28, rand 24, rand 60,
		rand 60, rand 1e6 } 1 .. 3000);
my $values = sprintf q{
	SET TIME ZONE 'UTC';
	CREATE TEMPORARY TABLE ids AS SELECT id::bigint FROM unnest('{%s}'::numeric[]) AS id;
	CREATE TEMPORARY TABLE times AS SELECT ts FROM unnest('{%s}'::timestamptz[]) AS ts
		UNION ALL SELECT snowflake_timestamp(id) + n * interval '1 microsecond' FROM ids, generate_series(-1, 1) AS n;
}, join(',', map { /^-?\d+$/ ? $_ : sprintf '%.0f', $_ } @ids), join(',', map { qq("$_") } @times);

sub answers
{
	my ($database) = @_;
	return $node->safe_psql($database, $values . q{
		SELECT id, snowflake_timestamp(id), snowflake_shard(id), snowflake_seq(id), snowflake_decode(id) FROM ids;
		SELECT ts, snowflake_min_id(ts), snowflake_max_id(ts) FROM times;
		SELECT id, a.ts, b.ts, snowflake_between(id, a.ts, b.ts)
		FROM (SELECT id, row_number() OVER () AS n FROM ids) AS i
		JOIN (SELECT ts, row_number() OVER () AS n FROM times) AS a USING (n)
		JOIN (SELECT ts, row_number() OVER (ORDER BY ts DESC) AS n FROM times) AS b USING (n);
		SELECT snowflake_timestamp(NULL), snowflake_shard(NULL), snowflake_seq(NULL), snowflake_min_id(NULL),
			snowflake_max_id(NULL),
			snowflake_between(NULL, '2020-01-01', '2021-01-01'), (snowflake_decode(NULL)).*;
		SELECT proname, pg_get_function_identity_arguments(oid), prorettype::regtype, provolatile, proparallel
		FROM pg_proc WHERE pronargs > 0 AND proname IN ('snowflake_timestamp', 'snowflake_shard', 'snowflake_seq',
			'snowflake_decode',
			'snowflake_min_id', 'snowflake_max_id', 'snowflake_between') AND NOT 'epoch_ms' = ANY (coalesce(proargnames, '{}'))
		ORDER BY proname;
	});
}

subtest 'its functions answer as those of the extension' => sub {
	my @native = split /\n/, answers('postgres');
	my @hosted = split /\n/, answers('app');
	cmp_ok(scalar @native, '>', 3 * 3000, 'there are answers to compare');
	my ($differs) = grep { ($native[$_] // '') ne ($hosted[$_] // '') } 0 .. ($#native > $#hosted ? $#native : $#hosted);
	ok(!defined $differs, 'its functions answer as those of the extension do')
		or diag("the extension: $native[$differs]\nhosted.sql:    $hosted[$differs]");
};

# --- shards --------------------------------------------------------------------------------------

sub refuses
{
	my ($sql, $code, $name) = @_;
	return is(sqlstate($node, $sql, database => 'app'), $code, $name);
}

$node->safe_psql('app', q{
	SELECT snowflake_create_shard(5, 'insta5'), snowflake_create_shard(8191, 'A "Shard" %');
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), caption text,
		made_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED);
	CREATE TABLE insta5.likes (id bigint PRIMARY KEY DEFAULT insta5.next_id(), photo_id bigint);
});

subtest 'shards of it' => sub {
	refuses(q{SELECT snowflake_create_shard(8192, 'insta8192')}, '22003', 'shard 8192 is refused');
	refuses(q{SELECT snowflake_create_shard(-1, 'minus')}, '22003', 'shard -1 is refused');
	refuses(q{SELECT snowflake_create_shard(6, 'insta5')}, '42P07', 'a schema that is a shard is refused');
	is($node->safe_psql('app',
		q{SELECT d.shard, d.seq = lastval(), d.created_at BETWEEN statement_timestamp() - interval '1 ms'
			AND clock_timestamp()
		FROM "A ""Shard"" %".next_id() AS id,
			snowflake_decode(id) AS d}), '8191|t|t', 'an ID has its time, the largest shard and the counter');
	my $plan = $node->safe_psql('app', q{SET enable_seqscan = off; EXPLAIN (COSTS OFF)
		SELECT FROM insta5.photos WHERE snowflake_between(id, '2024-01-01', now())});
	like($plan, qr/Index Cond: \(\(id >= '\d+'::bigint\) AND \(id < snowflake_min_id\(now\(\)\)\)\)/,
		'snowflake_between uses the index');
};

# --- several clients, and the extension takes its place while they write ---------------------------

my $dir = PostgreSQL::Test::Utils::tempdir();
append_to_file("$dir/post.sql", <<'SQL');
INSERT INTO insta5.photos (caption) VALUES ('sunset') RETURNING id \gset
INSERT INTO insta5.likes (photo_id) VALUES (:id);
SQL
my ($output, $errors) = ('', '');
my $load =
	IPC::Run::start([ 'pgbench', '-n', '-c', $clients, '-t', 50_000, '-f', "$dir/post.sql", $node->connstr('app') ],
	'<', \undef, '>', \$output, '2>', \$errors);
my $rows = '(SELECT id, xmin FROM insta5.photos UNION ALL SELECT id, xmin FROM insta5.likes) AS r';

sub await_rows
{
	my ($count, $condition) = @_;
	await("there are $count rows $condition", sub {
		$load->pumpable && $load->pump_nb;
		die "pgbench has ended: $errors" unless $load->pumpable;
		return $node->safe_psql('app', "SELECT count(*) FROM $rows WHERE $condition") >= $count; });
	return;
}

subtest 'the extension takes the place of the functions' => sub {
	await_rows(2000, 'true');
	refuses('CREATE EXTENSION snowflake', '42723', 'the extension does not replace these functions');
	my $timestamp = 'snowflake_timestamp(bigint)';
	my $others = join ', ', 'snowflake_shard(bigint)', 'snowflake_seq(bigint)', 'snowflake_decode(bigint)',
		'snowflake_min_id(timestamptz)',
		'snowflake_max_id(timestamptz)', 'snowflake_between(bigint, timestamptz, timestamptz)',
		'snowflake_create_shard(integer, name)';
	refuses("DROP FUNCTION $timestamp, $others", '2BP01', 'a function that a generated column uses is not dropped');
	$node->safe_psql('app', qq{
		BEGIN;
		CREATE SCHEMA hosted;
		ALTER FUNCTION $timestamp SET SCHEMA hosted;
		DROP FUNCTION $others;
		CREATE EXTENSION snowflake;
		COMMIT;
});
	is($node->safe_psql('app', 'SELECT object FROM snowflake_check() ORDER BY object'),
		qq("A ""Shard"" %".next_id()\ninsta5.next_id()), 'snowflake_check lists the functions to adopt');
};

my ($old_rows, $last_old);
subtest 'an old function is adopted while clients write' => sub {
	# While the sequence is locked, the old rows are all there, and no new one is.
	($old_rows, $last_old) = split /\|/, $node->safe_psql('app', qq{
		BEGIN;
		DO \$\$ BEGIN PERFORM snowflake_adopt('insta5.next_id()', 5); END \$\$;
		SELECT count(*), max(id) FROM $rows;
		COMMIT;
});
	await_rows(2000, "id > $last_old");
	$node->safe_psql('app',
		q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'app' AND pid <> pg_backend_pid()});
	$load->finish;
	unlike($errors, qr/ERROR:/, 'no client met an error') or diag($errors);
};

subtest 'IDs go on, and the extension finds nothing' => sub {
	is($node->safe_psql('app', "SELECT count(*) FROM $rows WHERE id <= $last_old"), $old_rows,
		'every new ID is above all old ones');
	is($node->safe_psql('app',
		"SELECT count(*) - count(DISTINCT id), count(*) FILTER (WHERE snowflake_shard(id) <> 5) FROM $rows"),
		'0|0', 'no ID came twice, and all are of the shard');
	is($node->safe_psql('app', 'SELECT count(*) FROM insta5.photos WHERE made_at <> snowflake_timestamp(id)'), '0',
		'the generated column goes on');
	is($node->safe_psql('app', 'SELECT shard, schema_name, seq FROM snowflake_shards'), '5|insta5|insta5.table_id_seq',
		'the shard is one of the extension');
	is($node->safe_psql('app',
		q{SELECT snowflake_adopt('"A ""Shard"" %".next_id()', 8191); SELECT object FROM snowflake_check()}),
		'', 'so is the other one, and nothing is left to do');
};

$node->stop;
done_testing();
