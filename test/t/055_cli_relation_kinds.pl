# snowflake-shard in a shard that holds relations of every kind: each verb reads those with rows, passes over the
# others, and gives the same answer whatever plan the server takes for its queries.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $conf = "wal_level = logical\nmax_wal_senders = 20\nmax_replication_slots = 20\nmax_worker_processes = 20\n"
	. "max_logical_replication_workers = 12\nmax_sync_workers_per_subscription = 8\n";
my ($one, $two) = map { new_server($_, conf => $conf) } qw(one two);
my ($status, $rows, $out, $err);

# nowhere has no handler: to read a table of it is an error. The rows of file_fdw have IDs of shard 9.
my $file = PostgreSQL::Test::Utils::tempdir() . '/rows.csv';
append_to_file($file, join '', map { (9 << 10 | 1 << 53) + $_ . ",2\n" } 1 .. 3);
$_->safe_psql('postgres', q{
	CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
	CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing}) foreach $one, $two;
my $kinds = q{
	SELECT snowflake_create_shard(5, 'Kinds 5');
	CREATE SCHEMA other;
	SET search_path = "Kinds 5", public;
	CREATE DOMAIN key AS bigint;
	CREATE TYPE pair AS (id bigint, v text);
	CREATE TABLE plain (id key PRIMARY KEY DEFAULT next_id(), v text);
	CREATE TABLE "It's ""%s""" ("Id, %I" bigint PRIMARY KEY DEFAULT next_id(), "V $1" text);
	CREATE TABLE noted (id bigint PRIMARY KEY DEFAULT next_id(), t text, v text);
	CREATE TABLE typed OF pair (id DEFAULT next_id() PRIMARY KEY);
	CREATE TABLE dropped (gone integer, id bigint PRIMARY KEY DEFAULT next_id(), gone_too text);
	ALTER TABLE dropped DROP gone, DROP gone_too;
	CREATE TABLE all_dropped (gone integer); ALTER TABLE all_dropped DROP gone;
	ALTER TABLE all_dropped REPLICA IDENTITY FULL;
	CREATE TABLE no_columns (); ALTER TABLE no_columns REPLICA IDENTITY FULL;
	CREATE TABLE computed (id bigint PRIMARY KEY DEFAULT next_id(), twice bigint GENERATED ALWAYS AS (id / 2) STORED,
		n integer GENERATED ALWAYS AS IDENTITY, large text);
	CREATE TABLE parent (a integer, id bigint PRIMARY KEY DEFAULT next_id());
	CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent);
	CREATE TABLE grandchild (PRIMARY KEY (id)) INHERITS (child);
	CREATE UNLOGGED TABLE unlogged (id bigint PRIMARY KEY DEFAULT next_id());
	CREATE UNLOGGED SEQUENCE unlogged_seq;
	CREATE TABLE measured (number bigint DEFAULT next_id(), day integer, PRIMARY KEY (number, day))
		PARTITION BY RANGE (day);
	SELECT format('CREATE TABLE measured_%1$s PARTITION OF measured FOR VALUES FROM (%1$s) TO (%1$s + 1)', n)
		FROM generate_series(1, 51) AS n \gexec
	CREATE TABLE measured_sub PARTITION OF measured FOR VALUES FROM (52) TO (54) PARTITION BY HASH (number);
	SELECT format('CREATE TABLE measured_sub_%1$s PARTITION OF measured_sub FOR VALUES WITH (MODULUS 3, REMAINDER %1$s)',
		n) FROM generate_series(0, 2) AS n \gexec
	CREATE UNLOGGED TABLE measured_unlogged PARTITION OF measured FOR VALUES FROM (54) TO (55);
	CREATE TABLE other.measured_away PARTITION OF measured FOR VALUES FROM (55) TO (56);
	CREATE TABLE measured_rest PARTITION OF measured DEFAULT;
	CREATE TABLE kept (id bigint DEFAULT next_id(), place integer) PARTITION BY LIST (place);
	CREATE TABLE kept_here PARTITION OF kept FOR VALUES IN (1); ALTER TABLE kept_here REPLICA IDENTITY FULL;
	CREATE FOREIGN TABLE kept_far PARTITION OF kept FOR VALUES IN (2) SERVER files OPTIONS (filename 'FILE', format 'csv');
	CREATE TABLE no_partitions (id bigint DEFAULT next_id()) PARTITION BY HASH (id);
	CREATE FOREIGN TABLE far (id bigint DEFAULT next_id(), v text) SERVER nowhere;
	CREATE FOREIGN TABLE far_child () INHERITS (parent) SERVER files OPTIONS (filename '/dev/null', format 'csv');
	CREATE VIEW seen AS SELECT * FROM measured;
	CREATE VIEW seen_far AS SELECT * FROM far;
	CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM plain;
	CREATE UNIQUE INDEX ON counted (count);
	CREATE MATERIALIZED VIEW uncounted AS SELECT number FROM seen WITH NO DATA;
	CREATE STATISTICS days ON number, day FROM measured;
	CREATE RULE quiet AS ON INSERT TO seen DO INSTEAD INSERT INTO measured VALUES (DEFAULT, NEW.day);
	INSERT INTO plain (v) SELECT n FROM generate_series(1, 20) AS n;
	INSERT INTO "It's ""%s""" ("V $1") VALUES ('''"');
	INSERT INTO noted (t, v) VALUES ('t', 'v'); INSERT INTO typed (v) VALUES ('x'); INSERT INTO dropped DEFAULT VALUES;
	INSERT INTO all_dropped DEFAULT VALUES; INSERT INTO no_columns DEFAULT VALUES;
	INSERT INTO computed (large) SELECT string_agg(md5(n::text), '') FROM generate_series(1, 300) AS n;
	INSERT INTO parent VALUES (1); INSERT INTO child VALUES (2); INSERT INTO grandchild VALUES (3);
	INSERT INTO unlogged DEFAULT VALUES;
	INSERT INTO seen (day) SELECT n % 60 FROM generate_series(1, 200) AS n;
	INSERT INTO kept (place) VALUES (1)} =~ s/FILE/$file/r;
$one->safe_psql('postgres', $kinds);

# Only its own session can read a temporary table, also one that inherits from a table of a shard.
my $session = $one->background_psql('postgres');
$session->query_safe('CREATE TEMPORARY TABLE mine () INHERITS ("Kinds 5".parent);
	INSERT INTO mine SELECT 4, "Kinds 5".next_id()');

# The exit code, the problems that verify finds, and its error.
sub verified
{
	my (@arguments) = @_;
	($status, $rows, $err) = shard_json($program, 'verify', @arguments);
	return join("\n", $status, (map { "$_->{object}: $_->{problem}" } @$rows), $err);
}

# Exit code and what a move printed.
my @way = ('Kinds 5', '--from', $one, '--to', $two);
sub move
{
	($status, $out, $err) = run_shard($program, 'move', @way, @_);
	chomp $out;
	return "$status $out";
}

my $away = 'table other.measured_away is a partition of table "Kinds 5".measured';

subtest 'verify --full finds IDs of another shard in tables of every kind' => sub {
	# IDs of shard 6 in tables and partitions at any depth and in any schema are found, and one in the table of another
	# session is not looked at.
	$one->safe_psql('postgres', q{
		CREATE TABLE wrong AS SELECT snowflake_encode(now(), 6, n) AS id, n FROM generate_series(1, 6) AS n;
		INSERT INTO "Kinds 5".measured SELECT id, 51 + n FROM wrong WHERE n < 5;
		INSERT INTO "Kinds 5".grandchild SELECT n, id FROM wrong WHERE n = 5;
		INSERT INTO "Kinds 5"."It's ""%s""" SELECT id FROM wrong WHERE n = 6});
	$session->query_safe('INSERT INTO mine SELECT n, id FROM wrong');
	is(verified($one, '--full') =~ s/, (?:the smallest|in another schema).*//gr,
		join("\n", 1, '"Kinds 5"."It\'s ""%s"""."Id, %I": 1 ID not of shard 5',
			(map { "\"Kinds 5\".$_" } 'child.id: 1 ID not of shard 5', 'grandchild.id: 1 ID not of shard 5',
				'measured.number: 4 IDs not of shard 5',
				'parent.id: 1 ID not of shard 5'), "schema Kinds 5: $away", ''), 'verify --full: IDs of another shard');
	is((shard_json($program, 'query', $one, '--shards', '5', '--sql', $rows->[0]{hint} =~ s/;$//r))[1][0]{shard}, 5,
		'the hint shows the row');
	$session->query_safe('DELETE FROM mine WHERE id IN (SELECT id FROM wrong)');
	$one->safe_psql('postgres', q{
		DELETE FROM "Kinds 5".measured WHERE number IN (SELECT id FROM wrong);
		DELETE FROM "Kinds 5".grandchild WHERE id IN (SELECT id FROM wrong);
		DELETE FROM "Kinds 5"."It's ""%s""" WHERE "Id, %I" IN (SELECT id FROM wrong); DROP TABLE wrong});
};

# clone, diff, run. pg_dump writes a table that inherits with the columns of its parent first.
sub cloned
{
	($status, $rows, $err) =
		shard_json($program, 'clone', $one, '--template', 'Kinds 5', '--shards', '6', '--schema', 'Kinds {}');
	return "$status " . states($rows);
}

my $add_reordered =
	'CREATE TABLE %1$s.reordered (id bigint PRIMARY KEY, a integer); ALTER TABLE %1$s.reordered INHERIT %1$s.child;
	INSERT INTO %1$s.reordered SELECT %1$s.next_id(), 7';

subtest 'clone makes every kind, and refuses what a restore would make otherwise' => sub {
	# A partition of another role, and children of children.
	$one->safe_psql('postgres', q{CREATE ROLE keeper; ALTER TABLE other.measured_away OWNER TO keeper});
	my $back = 'ALTER TABLE other.measured_away SET SCHEMA "Kinds 5";';
	is(cloned(), '3 ', 'clone: a partition in another schema');
	like($err, qr/\Q$away\E, in another schema: .*\nHINT:  \Q$back\E$/m, 'it is named');
	like(verified($one), qr/^1\nschema Kinds 5: \Q$away\E, in another schema: [^\n]*\n$/, 'verify names it');
	is($rows->[0]{hint}, $back, 'and the statement');
	$one->safe_psql('postgres', qq{$back ALTER TABLE "Kinds 5".measured_away OWNER TO CURRENT_USER; DROP ROLE keeper;
		CREATE TABLE other."Its child" () INHERITS ("Kinds 5".child);
		CREATE FOREIGN TABLE other.far () INHERITS (other."Its child") SERVER files OPTIONS (filename '/dev/null', format 'csv')});
	is(cloned(), '3 ', 'clone: children in another schema');
	like($err, qr/table other\."Its child" inherits from table "Kinds 5"\.child, in another schema \(and 1 more\): /, 'they are named');
	$one->safe_psql('postgres', 'DROP FOREIGN TABLE other.far; DROP TABLE other."Its child"; DROP SCHEMA other');
	$one->safe_psql('postgres', sprintf $add_reordered, '"Kinds 5"');
	is(cloned(), '3 ', 'clone: a table whose columns are in another order than a restore makes');
	like($err, qr/clones would differ from schema Kinds 5;.*CREATE TABLE "Kinds 5"\.reordered/s, 'it is named');
	$one->safe_psql('postgres', 'DROP TABLE "Kinds 5".reordered');
	is(cloned(), '0 made 6', 'clone: every other kind') or diag($err);
	my $below =
		q{SELECT count(*) FROM pg_inherits JOIN pg_class AS p ON p.oid = inhparent JOIN pg_class AS c ON c.oid = inhrelid
		WHERE p.relkind <> 'I' AND p.relnamespace = '"Kinds %s"'::regnamespace};
	is($one->safe_psql('postgres', sprintf $below, 6), $one->safe_psql('postgres', sprintf $below, 5) - 1,
		'clone: all children and partitions but a temporary one');
	$one->safe_psql('postgres', 'ALTER TABLE "Kinds 6".noted INHERIT "Kinds 5".noted');
	my $tie = 'table "Kinds 6".noted inherits from table "Kinds 5".noted, in another schema';
	like(verified($one), qr/^1\nschema Kinds 5: \Q$tie\E/, 'verify: a child in another shard');
	my ($diffed, undef, $why) = run_shard($program, 'diff', $one, '--template', 'Kinds 6', '--shards', '5');
	like("$diffed $why", qr/^1 .*shard 5, schema Kinds 5: \Q$tie\E.*, nor is it compared\nHINT:  /s, 'diff tells it');
	$one->safe_psql('postgres', $rows->[0]{hint});
	is(verified($one), "0\n", 'the statement of the hint ends that');
};

sub changed
{
	($status, $rows, $err) = shard_json($program, 'run', $one, '--shards', '5-6', '--sql', @_);
	return "$status " . states($rows);
}

subtest 'run changes every kind' => sub {
	is(changed('ALTER TABLE parent ADD b integer'), '3 failed 5; not done 6',
		'run: a temporary table of another session inherits');
	like($rows->[0]{message}, qr/cannot alter temporary tables of other sessions/, 'run: the error of PostgreSQL');
	is(changed(
		'ALTER TABLE measured ADD note text; ALTER TYPE pair ADD ATTRIBUTE w integer CASCADE;
		ALTER FOREIGN TABLE far ADD w integer;
		REFRESH MATERIALIZED VIEW counted; TRUNCATE kept_here, no_columns; INSERT INTO kept (place) VALUES (1);
			INSERT INTO no_columns DEFAULT VALUES'),
		'0 done 5,6', 'run: a change of every kind') or diag(explain($rows));
};

# Each verb that reads gives the same answer with every plan. With these settings the planner joins in an order that
# depends on geqo_seed alone, so that a function that stands beside a filter is called before the filter with some of
# them.
my %reading = (
	verify => [ 'verify', $one, '--full' ],
	list => [ 'list', $one ],
	map => [ 'map', $one ],
	plan => [ 'plan', $one, $two ],
	diff => [ 'diff', $one, '--template', 'Kinds 5' ],
	query => [ 'query', $one, '--shards', '5-6', '--sql',
		'SELECT (SELECT count(*) FROM measured), (SELECT count(*) FROM kept), (SELECT count(*) FROM parent)' ],
	move => [ 'move', @way, '--reversible', '--dry-run' ],
	split => [ 'split', '--from', $one, '--standby', $two, '--shards', '5', '--dry-run' ]);
sub printed
{
	my ($verb) = @_;
	($status, $out, $err) = run_shard($program, @{ $reading{$verb} });
	# The tablespace grows between two commands.
	return join("\n", $status, $verb =~ /move|split/ ? sort split /\n/, $out : $out, $err) =~ s/beside the \d+ \w+/beside the SIZE/r;
}
sub with_plans
{
	my ($do) = @_;
	foreach my $seed (0, .2, .8, .9)
	{
		local $ENV{PGOPTIONS} = "-c geqo_threshold=2 -c geqo_pool_size=2 -c geqo_generations=1 -c geqo_seed=$seed";
		$do->("geqo_seed = $seed");
	}
	return;
}

subtest 'verbs that read give the same answer with every plan' => sub {
	with_plans(sub { is(verified($one, '--full'), "0\n", "verify --full: no statistics, $_[0]") });
	$one->safe_psql('postgres', 'ANALYZE');
	with_plans(sub { is(verified($one, '--full'), "0\n", "verify --full: $_[0]") });
	my %printed = map { ($_ => printed($_)) } keys %reading;
	like($printed{verify}, qr/^0\n2 shards on 1 server, 0 findings\n/, 'verify');
	like($printed{diff}, qr/^0\n1 shard compared with Kinds 5, different: none/, 'diff');
	like($printed{list}, qr/^    5  Kinds 5  open +15 .*\n    6  Kinds 6  open +15 /m,
		'list: partitions are no tables of their own');
	like($printed{map}, qr/^    5  Kinds 5 .*\n    6  Kinds 6 /m, 'map');
	like($printed{plan}, qr/^    6  Kinds 6 /m, 'plan');
	like($printed{query}, qr/^ +5  Kinds 5 +200 +4 +3\n +6  Kinds 6 +0 +4 +0$/m, 'query: rows of every kind');
	is(join("\n", sort map { s/pg_temp_\d+/pg_temp/r =~ s/"Kinds 5"\.//gr } $printed{move} =~ /^\/\S+: (.*)$/mg),
		join("\n",
			'default value for column id of table pg_temp.mine needs function next_id()',
			'table measured_unlogged is unlogged',
			'table pg_temp.mine needs table parent',
			'table unlogged is unlogged'), 'move --dry-run: what is in the way');
	is(join("\n", $printed{split} =~ /"Kinds 5"\.(\w+) is unlogged/g), "measured_unlogged\nunlogged\nunlogged_seq",
		'split --dry-run: what is in the way');
	{
		local $ENV{PGOPTIONS} = '-c geqo_threshold=2 -c geqo_pool_size=2 -c geqo_generations=1 -c geqo_seed=0.2';
		is(printed($_), $printed{$_}, "$_: with other plans") foreach sort keys %reading;
	}
};

subtest 'a table of no shard that is locked, and a setting that is no number' => sub {
	my $locker = $one->background_psql('postgres');
	$locker->query_safe('CREATE TABLE public.locked (); BEGIN; LOCK TABLE public.locked');
	{
		local $ENV{PGOPTIONS} = '-c lock_timeout=5s';
		is((run_shard($program, @{ $reading{$_} }))[0], 0, "$_ does not wait for a table of no shard")
			foreach qw(list plan verify);
	}
	$locker->quit;
	$one->safe_psql('postgres', 'ALTER DATABASE postgres SET snowflake.shard = five');
	like(verified($one), qr/^0\n/, 'verify: a setting that is no number');
	$one->safe_psql('postgres', 'ALTER DATABASE postgres RESET snowflake.shard');
};

# Values of many types. The array of spare keeps a bitmap of NULLs, which the copy does not have.
my $varied = q{
	SET search_path = "Kinds 5", public; CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE TYPE duo AS (a integer, b text);
	CREATE TABLE varied (id integer PRIMARY KEY, b boolean, i2 smallint, i8 bigint, f real, n numeric, d date,
		ti timestamptz, iv interval, u uuid, t varchar, c char(5), by bytea, jb jsonb, ia integer[], e mood, p duo, k key);
	INSERT INTO varied SELECT n, true, 1, 2, 3.5, 4.25, '2011-08-24', '2011-08-24 21:07Z', '1 day', md5('')::uuid,
		repeat('x', 9000), 'c', '\xff', '{}', '{1}', 'sad', '(1,x)', 5 FROM generate_series(1, 20) AS n;
	CREATE TABLE spare AS SELECT 1 AS a, '{1,NULL}'::integer[] AS b; ALTER TABLE spare ADD PRIMARY KEY (a);
	UPDATE spare SET b[2] = 2};

subtest 'a move with reverse replication' => sub {
	# A move with reverse replication, without the obstacles. A worker copies each table, so fewer partitions save
	# much of the time.
	$session->quit;
	$one->safe_psql('postgres', q{
		DROP TABLE "Kinds 5".unlogged, "Kinds 5".measured_unlogged, "Kinds 5".measured_away;
		SELECT format('DROP TABLE "Kinds 5".measured_%s', n) FROM generate_series(21, 51) AS n \gexec
		} . sprintf("$add_reordered;", '"Kinds 5"') . $varied);
	my $definition = dump_of($one, 'Kinds 5');
	is(move('--dry-run', '--reversible'), '0 ', 'move --dry-run: no obstacles are left') or diag($err);
	is(move('--reversible'), '0 1 shard moved with reverse replication: 5', 'move --reversible') or diag($err);
	is(verified($one, $two, '--full', '--rows'), "0\n", 'verify --rows: both sides are equal');
	with_plans(sub { is(verified($one, $two, '--full'), "0\n", "verify with reverse replication: $_[0]") });
	$two->safe_psql('postgres', q{
		SET search_path = "Kinds 5", public;
		INSERT INTO seen (day) SELECT n % 60 FROM generate_series(1, 60) AS n;
		UPDATE ONLY parent SET a = a + 10; UPDATE ONLY child SET a = a + 10; UPDATE reordered SET a = a + 10;
		DELETE FROM plain WHERE v::integer > 10;
		DELETE FROM no_columns; INSERT INTO no_columns DEFAULT VALUES; INSERT INTO all_dropped DEFAULT VALUES;
		UPDATE kept_here SET place = 1});
	is(verified($one, $two, '--rows'), "0\n", 'verify --rows: after changes in tables of every kind');
	$one->safe_psql('postgres', q{SET session_replication_role = replica; UPDATE "Kinds 5".noted SET v = 'w'});
	like(verified($one, $two, '--rows'),
		qr/^1\nschema Kinds 5: table "Kinds 5"\.noted: .* has 1 row, key \(\d+\), which is not the same\n$/,
		'verify --rows: a difference beside a column t');
	$one->safe_psql('postgres', q{SET session_replication_role = replica; UPDATE "Kinds 5".noted SET v = 'v'});
	my @digests = map { $_->safe_psql('postgres', q{SELECT snowflake_internal.digest('"Kinds 5".spare')}) } $one, $two;
	isnt($digests[0], $digests[1], 'digests differ by a bitmap alone');
	# Row n differs in column n alone.
	$one->safe_psql('postgres', q{SET session_replication_role = replica;
		SELECT format('UPDATE "Kinds 5".varied SET %I = NULL WHERE id = %s', attname, attnum)
		FROM pg_attribute WHERE attrelid = '"Kinds 5".varied'::regclass AND attnum > 1 \gexec});
	like(verified($one, $two, '--rows'),
		qr/^1\nschema Kinds 5: table "Kinds 5"\.varied: [^\n]*; and 14 more differences\n$/,
		'verify --rows: a difference in each column');
	$two->safe_psql('postgres', 'DELETE FROM "Kinds 5".varied');
	is(move('--undo'), '0 1 shard undone: 5', 'move --undo') or diag($err);
	is(dump_of($one, 'Kinds 5'), $definition, 'the definition is what it was');
	is($one->safe_psql('postgres',
		'SELECT count(*), (SELECT sum(a) FROM "Kinds 5".parent), (SELECT count(*) FROM "Kinds 5".plain) FROM '
		. '"Kinds 5".measured'),
		'161|43|10', 'and the rows are those of the target');
	is(verified($one, '--full'), "0\n", 'verify: nothing is left');
};

$_->stop foreach $one, $two;
done_testing();
