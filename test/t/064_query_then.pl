# snowflake-shard query --then: one answer over the rows of all shards. It is that of one database with all rows, whatever
# the settings of the servers. Shards that answer differently, or not at all, are an error. No code of other roles runs.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $node = new_server('then');

# Two servers of four shards each. Shards 3 and 6 are empty.
my @columns = (
	[ whole => 'integer', '(i * 7 + s) % 13' ],
	[ big => 'bigint', '9007199254740993 + i * s' ],
	[ small => 'smallint', '(i - s)::smallint' ],
	[ exact => 'numeric(12,3)', 'CASE WHEN i % 11 = 0 THEN NULL ELSE i / 7.0 * s END' ],
	[ wide => 'numeric', q{CASE WHEN i = 5 THEN 'NaN' ELSE 10::numeric ^ (i % 30) + s END} ],
	[ approx => 'float8', 'i / 3.0 + s / 7.0' ],
	[ single => 'real', 'i / 3.0' ],
	[ flag => 'boolean', 'CASE i % 3 WHEN 0 THEN NULL ELSE i % 2 = 0 END' ],
	[ words => 'text', q{CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN E'a\tb\\nc\rd\n' || s
		ELSE '\N' || i END} ],
	[ padded => 'char(6)', q{'x' || i} ],
	[ short => 'varchar(9)', q{'ä' || i} ],
	[ moment => 'timestamptz', q{timestamptz '2026-02-03 04:05:06.789+00' + i * interval '1 day'
		+ s * interval '1 s'} ],
	[ clock => 'timestamp', q{timestamp '2026-02-03 04:05:06' - i * interval '1 month'} ],
	[ day => 'date', q{CASE WHEN i = 9 THEN 'infinity' ELSE date '2026-02-03' + i END} ],
	[ span => 'interval', q{make_interval(months => i, days => s, secs => 1.5)} ],
	[ doc => 'jsonb', q{jsonb_build_object('i', i, 's', jsonb_build_array(s, NULL, 'ü"'))} ],
	[ list => 'integer[]', 'ARRAY[i, NULL, s]' ],
	[ names => 'text[]', q{ARRAY['a,b', NULL, '"', '\\', i::text]} ],
	[ bytes => 'bytea', q{decode(lpad(to_hex(i * 1000 + s), 8, '0'), 'hex')} ],
	[ key => 'uuid', q{md5(i || '/' || s)::uuid} ],
	[ place => 'inet', q{inet '10.0.0.0' + i} ],
	[ bits => 'bit(4)', '(i % 16)::bit(4)' ],
	[ reach => 'int8range', 'int8range(i, i + s)' ]);
my $definition = join ', ', map { "$_->[0] $_->[1]" } @columns;
my $values = join ', ', map { $_->[2] } @columns;

$node->safe_psql('postgres', 'CREATE DATABASE whole');
$node->safe_psql('whole', "CREATE TABLE rows (shard integer, schema text, $definition)");
my %settings = (
	one => q{datestyle = 'SQL, DMY'; intervalstyle = 'iso_8601'; bytea_output = 'escape'; extra_float_digits = -6},
	two => q{datestyle = 'German'; intervalstyle = 'sql_standard'; timezone = 'Asia/Kolkata'; extra_float_digits = 0});
foreach my $database ('one', 'two')
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION snowflake');
	foreach my $s ($database eq 'one' ? 0 .. 3 : 4 .. 7)
	{
		my $rows = $s == 3 || $s == 6 ? 0 : 40;
		my $from = "FROM generate_series(1, $rows) AS i, (VALUES ($s)) AS v (s)";
		$node->safe_psql($database, qq{
			SELECT snowflake_create_shard($s, 'insta$s');
			CREATE TYPE insta$s.mood AS ENUM ('sad', 'glad');
			CREATE TABLE insta$s.things ($definition, mood insta$s.mood DEFAULT 'glad');
			INSERT INTO insta$s.things SELECT $values $from});
		$node->safe_psql('whole', "INSERT INTO rows SELECT $s, 'insta$s', $values $from");
	}
	$node->safe_psql('postgres', "ALTER DATABASE $database SET $_") foreach split /; /, $settings{$database};
}
# The rows of this one are read with the rights of its owner.
$node->safe_psql('one', 'CREATE ROLE app LOGIN; ALTER SCHEMA insta1 OWNER TO app; ALTER TABLE insta1.things OWNER TO app');
my @servers = map { $node->connstr($_) } 'one', 'two';
my $sql = 'SELECT ' . join(', ', map { $_->[0] } @columns) . ' FROM things';

sub then
{
	my ($then, @more) = @_;
	my %options = ('--sql' => $sql, '--jobs' => 2, '--format' => 'csv', '--timeout' => '1min', @more);
	return run_shard($program, 'query', @servers, %options, '--then', $then);
}

subtest 'the answer is that of one database with all rows' => sub {
	my @queries = (
		'SELECT count(*) AS n, count(exact), sum(exact), avg(big) FROM rows',
		'SELECT shard, schema, count(*) FROM rows GROUP BY 1, 2 ORDER BY 1',
		'SELECT whole, sum(big) FROM rows GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10',
		'SELECT max(wide), min(wide), sum(wide) FILTER (WHERE wide <> $$NaN$$) FROM rows',
		'SELECT approx, single FROM rows ORDER BY approx, key LIMIT 50',
		'SELECT stddev_pop(approx ORDER BY key) FROM rows',
		'SELECT flag, count(*) FROM rows GROUP BY 1 ORDER BY 1 NULLS FIRST',
		'SELECT words, length(words), count(*) FROM rows GROUP BY 1 ORDER BY words COLLATE "C"',
		'SELECT padded = $$x1$$, octet_length(padded), short FROM rows ORDER BY key LIMIT 30',
		'SELECT moment, clock, day FROM rows ORDER BY key',
		'SELECT date_trunc($$month$$, moment), count(*) FROM rows GROUP BY 1 ORDER BY 1',
		'SELECT day - date $$2026-01-01$$ FROM rows WHERE isfinite(day) ORDER BY key',
		'SELECT span, sum(span) OVER (ORDER BY key) FROM rows ORDER BY key',
		'SELECT doc, doc->$$i$$, jsonb_array_length(doc->$$s$$) FROM rows ORDER BY doc LIMIT 40',
		'SELECT list, names, array_length(list, 1) FROM rows ORDER BY list, shard',
		'SELECT encode(bytes, $$hex$$), key, place, bits FROM rows ORDER BY key',
		'SELECT shard, upper(reach), isempty(reach) FROM rows ORDER BY 1, 2',
		'SELECT a.shard, b.shard AS other, count(*) FROM rows a JOIN rows b USING (whole) WHERE a.small < b.small
			GROUP BY 1, 2 ORDER BY 1, 2',
		'SELECT DISTINCT ON (shard) shard, moment, rank() OVER (PARTITION BY shard ORDER BY moment) FROM rows
			ORDER BY shard, moment',
		'WITH t AS (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY approx) AS m FROM rows)
			SELECT m, count(*) FROM t, rows WHERE approx > m GROUP BY 1');
	foreach my $query (@queries)
	{
		my ($status, $out, $err) = then($query);
		my $expected = $node->safe_psql('whole', qq{SET datestyle = ISO; SET intervalstyle = postgres;
			COPY ($query) TO STDOUT (FORMAT csv, HEADER)});
		is($out, "$expected\n", $query =~ s/\s+/ /gr) or diag($err);
	}
	is(scalar(@queries), 20, 'queries');
	my ($status, $out) = then('SELECT pg_typeof(mood), mood, count(*) FROM rows GROUP BY 2',
		'--sql', 'SELECT mood FROM things');
	is($out, "pg_typeof,mood,count\ntext,glad,240\n", 'the enum of each shard is text');
};

subtest 'without --then values are written in one form, too' => sub {
	my $list = 'approx, single, clock, day, span, bytes';
	my ($status, $out, $err) = run_shard($program, 'query', @servers, '--format', 'csv',
		'--sql', "SELECT $list FROM things ORDER BY key");
	my $expected = $node->safe_psql('whole', qq{SET datestyle = ISO; SET intervalstyle = postgres; SET bytea_output = hex;
		COPY (SELECT shard, schema, $list FROM rows ORDER BY shard, key) TO STDOUT (FORMAT csv, HEADER)});
	is("$status $out", "0 $expected\n", 'as one database writes them') or diag($err);
};

subtest 'another server, formats, and what is left' => sub {
	my ($status, $out) = then('SELECT count(*) AS n FROM rows', '--at', $node->connstr('whole'));
	is("$status $out", "0 n\n240\n", 'a server without the extension keeps the table');
	($status, $out) = then('TABLE rows ORDER BY shard LIMIT 1', '--sql', 'SELECT 1 AS shard', '--format', 'json');
	is("$status $out", qq{0 [\n  {"shard": 0, "schema": "insta0", "shard_2": 1}\n]\n},
		'JSON; a column of a name that is there');
	is($node->safe_psql('one', q{SELECT count(*) FROM pg_class WHERE relname = 'rows'}), '0', 'no table is left');
};

subtest 'shards that answer differently, or not at all' => sub {
	$node->safe_psql('two', 'ALTER TABLE insta5.things ALTER whole TYPE bigint;
		ALTER TABLE insta7.things RENAME small TO tiny');
	my ($status, $out, $err) = then('SELECT count(*) FROM rows', '--sql', 'SELECT * FROM things', '--jobs', '1');
	is("$status $out", '3 ', 'nothing is printed');
	like($err, qr/shard 5: the columns are whole bigint, .*, and in shard \d whole integer, /, 'another type');
	like($err, qr/shard 7: the columns are .*tiny smallint, .*, and in shard \d .*small smallint, /, 'another name');
	like($err, qr/--then was not run, because not all shards have answered$/, 'and why there is no answer');
	(undef, undef, $err) = then('SELECT 1 FROM rows', '--sql', 'SELECT tiny FROM things');
	like($err, qr/shards 0-3: ERROR:  column "tiny" does not exist.*shards 4-6: .*not run/s, 'an error in some shards');
	($status, $out) = run_shard($program, 'query', @servers, '--sql', 'SELECT nothing FROM things');
	is("$status $out", '3 ', 'without --then: no head of a table if no shard has answered');
	($status, undef, $err) = run_shard($program, 'query', $servers[0], $node->connstr('none'), '--sql', $sql, '--then',
		'SELECT 1 FROM rows');
	like("$status $err", qr/^3 .*"none" does not exist.*not run/s, 'a server that is not there');
};

subtest 'errors of the query over the rows' => sub {
	my @kinds = (
		[ 'SELECT nothing FROM rows', qr/--then: ERROR:  column "nothing" does not exist/ ],
		[ 'SELECT 1 / (count(*) - 240) FROM rows', qr/--then: ERROR:  division by zero/ ],
		[ 'DELETE FROM rows', qr/--then: ERROR:  syntax error/ ],
		[ 'SELECT 1; SELECT 2', qr/--then: ERROR:  cannot insert multiple commands/ ],
		[ q{SELECT nextval('public.s')}, qr/--then: ERROR:  cannot execute nextval\(\) in a read-only transaction/ ]);
	$node->safe_psql('one', 'CREATE SEQUENCE public.s');
	foreach my $kind (@kinds)
	{
		my ($status, $out, $err) = then($kind->[0], '--sql', 'SELECT whole::text FROM things');
		like("$status $out$err", qr/^3 .*$kind->[1]/, $kind->[0]);
	}
	$node->safe_psql('whole', 'CREATE ROLE reader LOGIN; REVOKE TEMPORARY ON DATABASE whole FROM PUBLIC');
	my (undef, undef, $err) = then('SELECT 1 FROM rows', '--at', $node->connstr('whole') . ' user=reader');
	like($err, qr/permission denied to create temporary tables.*HINT:  --at names another server/s,
		'no right to make the table');
	(my $status, undef, $err) = then('SELECT 1 FROM rows', '--at', 'host=x password=secret nonsense');
	ok($status == 2 && $err =~ /--at: a connection string cannot be read/ && $err !~ /secret/, 'a string that cannot be read')
	  or diag($err);
};

subtest 'no code of another role runs with the query over the rows' => sub {
	$node->safe_psql('one', q{
		CREATE ROLE mallory; GRANT CREATE ON SCHEMA public TO mallory; SET ROLE mallory;
		CREATE FUNCTION public.sum_of(integer[]) RETURNS text LANGUAGE sql AS $$SELECT current_user::text$$;
		CREATE FUNCTION public.lower(integer) RETURNS text LANGUAGE sql AS $$SELECT 'caught ' || current_user$$;
		CREATE TABLE public.rows (shard integer)});
	my (undef, undef, $err) = then('SELECT sum_of(list) FROM rows', '--sql', 'SELECT list FROM things');
	like($err, qr/function sum_of\(integer\[\]\) does not exist/, 'a function of the schema public is not found');
	(undef, undef, $err) = then('SELECT lower(whole) FROM rows', '--sql', 'SELECT whole::integer FROM things');
	like($err, qr/function lower\(integer\) does not exist/, 'nor one that fits better than that of PostgreSQL');
	is((then('SELECT count(*) FROM rows', '--sql', 'SELECT list FROM things'))[1], "count\n240\n",
		'nor a table of the same name');
};

# PostgreSQL refuses the temporary table with an error that names no shard.
subtest 'columns that no table can have' => sub {
	my $query = sub { run_shard($program, 'query', $node->connstr('one'), '--then', 'TABLE rows', '--sql', @_) };
	my ($status, $out, $err) = $query->('SELECT 1 AS one, 2 AS ctid');
	is($status, 3, 'a system column is refused');
	like($err, qr/^snowflake-shard: shards 0-3: the column ctid .*\nHINT:  Give it another name: AS \.\.\.$/m,
		'with its name, the shards, and what to do');
	($status, $out, $err) = $query->('SELECT ' . join(', ', map { "$_ AS c$_" } 1 .. 1599));
	is($status, 3, 'too many columns are refused');
	like($err, qr/^snowflake-shard: shards 0-3: the query has 1599 columns, and a table .* 1598/m, 'with their number and the shards');
	($status, $out, $err) = $query->('SELECT ' . join(', ', map { "$_ AS c$_" } 1 .. 1598));
	is($status, 0, 'so many are not too many') or diag($err);
};

done_testing();
