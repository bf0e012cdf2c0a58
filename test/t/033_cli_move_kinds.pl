# snowflake-shard move: all obstacles are listed at once; it goes on beside another move, from
# one database to another of the same server, and to a server whose clock is slow; Ctrl-C stops it; a
# difference of the rows is found.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $program = shard_program();
seed_random();

# Two servers. The clock of the second can be set, where libfaketime is installed.
my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\nmax_connections = 60\n"
	. "wal_sender_timeout = 0\nwal_receiver_timeout = 0\nwal_retrieve_retry_interval = 200ms\n";    # the clock may step
note('libfaketime is not installed: the clock of the target is not slow') unless libfaketime();
my $clock = libfaketime() ? new_clock() : undef;
my $one = new_server('one', conf => "$conf\nmax_prepared_transactions = 1\n");
my $two = new_server('two', conf => $conf, clock => $clock);
my ($status, $out, $err, $rows);

# A shard whose rows take a while to copy, with a sequence that is ahead of the clock.
make_template($one);
$two->safe_psql('postgres', 'CREATE ROLE app LOGIN');
$one->safe_psql('postgres', 'INSERT INTO insta0.users (name) SELECT n FROM generate_series(1, 30000) AS n');
$one->safe_psql('postgres', q{
	INSERT INTO insta0.log (id) VALUES (snowflake_encode(now() + '1 minute', 0, 0));
	SELECT snowflake_advance('insta0.log_id_seq', max(id)) FROM insta0.log});

sub move
{
	my ($schema, $from, $to, @arguments) = @_;
	return run_shard($program, 'move', $schema, '--from', $from, '--to', $to, @arguments);
}

# The obstacles of a dry run, joined; nothing is changed by it.
sub obstacles
{
	my ($from, $to, @arguments) = @_;
	my ($schema) = $arguments[0] && $arguments[0] !~ /^-/ ? shift @arguments : 'insta0';
	my ($status, $rows, $err) =
		shard_json($program, 'move', $schema, '--from', $from, '--to', $to, '--dry-run', @arguments);
	return ($status, join("\n", map { $_->{obstacle} } @$rows), $err);
}

# Obstacles: the cause, the message, the remedy.
my $points_and_pairs =
	qr/(?s:.*)column insta0\.j\.p is of type point(?s:.*)column insta0\.j\.pair is of type xml/;
my @obstacles = (
	# None of its indexes can be a replica identity.
	[ $one, q{CREATE TABLE insta0.o (n integer NOT NULL, m integer NOT NULL UNIQUE DEFERRABLE, o integer UNIQUE);
		CREATE INDEX ON insta0.o (n); CREATE UNIQUE INDEX ON insta0.o (n) WHERE n > 0;
		CREATE UNIQUE INDEX ON insta0.o ((n + 1));
		CREATE UNIQUE INDEX o_invalid ON insta0.o (n);
		UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'insta0.o_invalid'::regclass},
		qr/table insta0\.o has no replica identity\n.* ADD PRIMARY KEY \(\.\.\.\); or .* FULL; if .*: the target reads the whole table/,
		'DROP TABLE insta0.o' ],
	[ $one, 'CREATE TABLE insta0.o2 (n integer NOT NULL CONSTRAINT "O n" UNIQUE)',
		qr/table insta0\.o2 has no replica identity\n.*ALTER TABLE insta0\.o2 REPLICA IDENTITY USING INDEX "O n"; or/,
		'DROP TABLE insta0.o2' ],
	[ $one, 'CREATE TABLE insta0."No ident" (n integer PRIMARY KEY, m integer NOT NULL UNIQUE); ALTER TABLE insta0."No ident" REPLICA IDENTITY NOTHING',
		qr/table insta0\."No ident" has no replica identity\n.*HINT:  ALTER TABLE insta0\."No ident" REPLICA IDENTITY DEFAULT;/,
		'ALTER TABLE insta0."No ident" REPLICA IDENTITY DEFAULT; DROP TABLE insta0."No ident"' ],
	[ $one, 'CREATE UNLOGGED TABLE insta0.u (n integer PRIMARY KEY, j json)', qr/table insta0\.u is unlogged/,
		'DROP TABLE insta0.u' ],
	[ $one, 'CREATE TABLE insta0.f (n integer PRIMARY KEY); CREATE TABLE public.f (n integer REFERENCES insta0.f)',
		qr/f_n_fkey on table (public\.)?f needs table insta0\.f/, 'DROP TABLE public.f, insta0.f' ],
	[ $one,
		'CREATE FUNCTION insta0.h() RETURNS integer LANGUAGE sql RETURN 1; '
		. 'CREATE TABLE public.h (h integer DEFAULT insta0.h())',
		qr/default value for column h of table (public\.)?h needs function insta0\.h\(\)/,
		'DROP TABLE public.h; DROP FUNCTION insta0.h()' ],
	[ $one, 'CREATE TABLE public.t (m insta0.mood)', qr/column m of table (public\.)?t needs type insta0\.mood/,
		'DROP TABLE public.t' ],
	[ $one, 'CREATE TABLE public.w (); CREATE TRIGGER w BEFORE UPDATE ON public.w EXECUTE FUNCTION insta0.touch()',
		qr/trigger w on table (public\.)?w needs function insta0\.touch/, 'DROP TABLE public.w' ],
	[ $one, 'CREATE TABLE public.y (); CREATE POLICY y ON public.y USING (EXISTS (SELECT FROM insta0.users))',
		qr/policy y on table (public\.)?y needs table insta0\.users/, 'DROP TABLE public.y' ],
	[ $one,
		'CREATE TABLE insta0.q (n integer PRIMARY KEY) PARTITION BY LIST (n); '
		. 'CREATE TABLE public.q1 PARTITION OF insta0.q DEFAULT', qr/table (public\.)?q1 needs table insta0\.q/,
		'DROP TABLE insta0.q' ],
	[ $one,
		'CREATE TABLE public.parts (n integer) PARTITION BY LIST (n); '
		. 'CREATE TABLE insta0.part PARTITION OF public.parts (PRIMARY KEY (n)) DEFAULT',
		qr/table insta0\.part is a partition of table public\.parts, and the fence does not stop writes to that one\n.*ALTER TABLE public\.parts DETACH PARTITION insta0\.part;/,
		'DROP TABLE public.parts', 2 ],
	[ $one,
		'CREATE TABLE public.base (n integer); CREATE TABLE insta0.child (PRIMARY KEY (n)) INHERITS (public.base); '
		. 'CREATE TABLE insta0.grandchild (PRIMARY KEY (n)) INHERITS (insta0.child)',
		qr/table insta0\.child inherits from table public\.base, and .*\n.*ALTER TABLE insta0\.child NO INHERIT public\.base;/,
		'DROP TABLE public.base CASCADE', 2 ],
	[ $one, "CREATE TYPE public.e AS ENUM ('a'); CREATE TABLE insta0.e (e public.e PRIMARY KEY)",
		qr/enum type public\.e does not exist, and table insta0\.e needs it/, 'DROP TABLE insta0.e' ],
	[ $one,
		'CREATE FUNCTION public.g() RETURNS integer LANGUAGE sql RETURN 1; '
		. 'CREATE TABLE insta0.g (g integer PRIMARY KEY DEFAULT public.g())',
		qr/function public\.g\(\) does not exist, and default value for column g of table insta0\.g needs it/, 'DROP TABLE insta0.g' ],
	[ $one,
		'CREATE TABLE public.p (n integer PRIMARY KEY); CREATE TABLE insta0.p (n integer PRIMARY KEY REFERENCES public.p)',
		qr/table public\.p does not exist, and constraint p_n_fkey on table insta0\.p needs it/, 'DROP TABLE insta0.p' ],
	[ $one, 'ALTER TABLE insta0.users ENABLE ALWAYS TRIGGER touch', qr/trigger touch of table insta0\.users/,
		'ALTER TABLE insta0.users ENABLE TRIGGER touch' ],
	[ $one,
		'CREATE TRIGGER r BEFORE UPDATE ON insta0.likes EXECUTE FUNCTION insta0.touch(); '
		. 'ALTER TABLE insta0.likes ENABLE REPLICA TRIGGER r',
		qr/trigger r of table insta0\.likes would fire/, 'DROP TRIGGER r ON insta0.likes' ],
	[ $one, 'CREATE DOMAIN insta0.lo AS oid; CREATE TABLE insta0.l (n integer PRIMARY KEY, l insta0.lo)',
		qr/column insta0\.l\.l points to large objects/, 'DROP TABLE insta0.l; DROP DOMAIN insta0.lo' ],
	[ $one, 'CREATE ROLE owner LOGIN; ALTER TABLE insta0.likes OWNER TO owner',
		qr/role owner does not exist, and table insta0\.likes needs it\n.*CREATE ROLE owner;/, 'ALTER TABLE insta0.likes OWNER TO CURRENT_USER', 3 ],
	[ $one, 'CREATE ROLE reader; GRANT SELECT ON insta0.users TO reader', qr/role reader does not exist, and table insta0\.users needs it/,
		'REVOKE ALL ON insta0.users FROM reader' ],
	[ $one, 'CREATE TABLE insta0.d (n integer PRIMARY KEY DEFERRABLE)',
		qr/index insta0\.d_pkey, the replica identity of table insta0\.d, is DEFERRABLE: UPDATE and DELETE/,
		'DROP TABLE insta0.d' ],
	[ $one,
		q{CREATE TABLE insta0.i (n integer PRIMARY KEY);
			UPDATE pg_index SET indisvalid = false
				WHERE indexrelid = 'insta0.i_pkey'::regclass},
				qr/index insta0\.i_pkey, the replica identity of table insta0\.i, is invalid/, 'DROP TABLE insta0.i' ],
	[ $one, q{CREATE DOMAIN insta0.place AS point; CREATE TYPE insta0.pair AS (n integer, x xml);
		CREATE TABLE insta0.j (n integer, t text[], j json[], p insta0.place, pair insta0.pair, v varchar, g point
			GENERATED ALWAYS AS (point(n, n)) STORED);
		ALTER TABLE insta0.j REPLICA IDENTITY FULL},
		qr/column insta0\.j\.j is of type json, which has no equality$points_and_pairs/,
		'DROP TABLE insta0.j; DROP DOMAIN insta0.place; DROP TYPE insta0.pair', 3 ],
	[ $one, q{CREATE DOMAIN insta0.moods AS insta0.mood[]; CREATE TABLE insta0.hashed (m insta0.moods NOT NULL) PARTITION BY HASH (m)},
		qr/table insta0\.hashed is partitioned by HASH of m with the enum insta0\.mood, which has other hashes/,
		'DROP TABLE insta0.hashed; DROP DOMAIN insta0.moods' ],
	(map {
		my ($table, $rest, $title) = @$_;
		[ $one, qq{SET search_path = insta0;
			CREATE OR REPLACE FUNCTION inner_f(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT \$1';
			CREATE OR REPLACE FUNCTION outer_f(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN inner_f(\$1); END';
			CREATE TABLE $table (n integer PRIMARY KEY, o integer $rest; INSERT INTO $table VALUES (1)},
			qr/$title calls a function that needs a search_path, which replication does not have: .*inner_f.*\n.*ALTER FUNCTION insta0\.outer_f\(integer\) SET search_path = insta0; or/,
			"DROP TABLE insta0.$table" ] }
		[ 'generates', 'GENERATED ALWAYS AS (outer_f(n)) STORED)', qr/generated column insta0\.generates\.o/ ],
		[ 'indexes', '); CREATE INDEX by_f ON indexes (outer_f(n))', qr/index insta0\.by_f/ ],
		[ 'checks', 'CONSTRAINT c CHECK (outer_f(n) > 0))', qr/constraint c of table insta0\.checks/ ]),
	[ $one, "BEGIN; SELECT 1; PREPARE TRANSACTION 'undecided'",
		qr/transaction 'undecided' of database postgres is prepared/, "ROLLBACK PREPARED 'undecided'" ],
	[ $two, "SELECT snowflake_create_shard(0, 'zero')", qr/shard 0 is in use by schema zero\n.*Drop that schema/,
		'DROP SCHEMA zero CASCADE' ]);
$_->[0]->safe_psql('postgres', $_->[1]) foreach @obstacles;

subtest 'a dry run lists all obstacles, and changes nothing' => sub {
	# A slot waits for a transaction of another database, too, if it has written.
	my $sleeper = $one->background_psql('postgres');
	$sleeper->query_safe('BEGIN; SELECT 1');
	my $elsewhere = $one->background_psql('template1');
	$elsewhere->query_safe('BEGIN; CREATE TABLE t ()');
	my $reader = $one->background_psql('template1');
	$reader->query_safe('BEGIN; SELECT 1');
	usleep(200_000);
	($status, $out, $err) = obstacles($one, $two, '--timeout', '100ms');
	is($status, 1, '--dry-run: exit code 1');
	like($err, qr/1 shard has \d+ \w+: \S+ needs as much free space beside the \d+ \w+ of its tablespace pg_default/,
		'--dry-run: the size is said');
	foreach my $database ('postgres', 'template1')
	{
		like($out, qr/a transaction of process \d+ in database $database has been running for/,
			"--dry-run: a long transaction in $database");
	}
	$_->quit foreach $sleeper, $elsewhere, $reader;
	foreach my $obstacle (@obstacles)
	{
		like($out, $obstacle->[2], "--dry-run: $obstacle->[2]");
		$obstacle->[0]->safe_psql('postgres', $obstacle->[3]);
	}
	my $count = 2;
	$count += $_->[4] // 1 foreach @obstacles;
	is(() = $out =~ /HINT/g, $count, '--dry-run: nothing else') or diag($out);
};

my $object;
subtest 'objects of the target that would change the shard' => sub {
	$one->safe_psql('postgres', 'CREATE TABLE insta0.pictures (n integer PRIMARY KEY, picture oid)');
	unlike((obstacles($one, $two))[2], qr/large objects|event trigger|whole table/,
		'--dry-run: no word of large objects where there are none, nor of tables without an index');
	$one->safe_psql('postgres', q{CREATE TABLE insta0.full1 (n integer); ALTER TABLE insta0.full1 REPLICA IDENTITY FULL;
		CREATE INDEX ON insta0.full1 ((n + 1)); CREATE INDEX ON insta0.full1 (n) WHERE n > 0;
		CREATE TABLE insta0.full2 (n integer PRIMARY KEY); ALTER TABLE insta0.full2 REPLICA IDENTITY FULL});
	$_->safe_psql('postgres', 'CREATE SEQUENCE public.order_no') foreach $one, $two;
	unlike((obstacles($one, $two))[2], qr/sequences of other schemas/, '--dry-run: no word of sequences of the shard');
	$one->safe_psql('postgres', q{CREATE TABLE insta0.orders (n bigint PRIMARY KEY DEFAULT nextval('public.order_no'), "A b" integer DEFAULT 7,
		"No" text DEFAULT 'A' || nextval('public.order_no'), id bigint DEFAULT snowflake_next_id(0, 'public.order_no')); INSERT INTO insta0.orders (n) VALUES (5)});
	my $own_sequence = qr/HINT:  .*(BEGIN; CREATE SEQUENCE insta0\.order_no; GRANT USAGE ON SEQUENCE insta0\.order_no TO )\.\.\.(; ALTER TABLE insta0\.orders ALTER n SET DEFAULT )\.\.\.(; SELECT .* COMMIT;)$/m;
	($status, $out, $err) = obstacles($one, $two);
	like($err, qr/can come twice: insta0\.orders\.n draws from public\.order_no, insta0\.orders\."No" draws from public\.order_no, insta0\.orders\.id draws from public\.order_no\.\n$own_sequence/,
		'--dry-run: sequences of other schemas');
	my ($create, $alter, $set) = $err =~ $own_sequence;
	$one->safe_psql('postgres', "${create}CURRENT_USER${alter}nextval('insta0.order_no')$set");
	unlike((obstacles($one, $two))[2], qr/orders\.n draws/, '--dry-run: the statement of the hint mends it');
	is($one->safe_psql('postgres', 'INSERT INTO insta0.orders DEFAULT VALUES RETURNING n > 1'), 't', 'and the numbers go on');
	$one->safe_psql('postgres', 'DROP TABLE insta0.orders; DROP SEQUENCE insta0.order_no');
	$object = $one->safe_psql('postgres', 'SELECT lo_create(0)');
	$two->safe_psql('postgres', q{
		CREATE FUNCTION public.watch() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
		CREATE EVENT TRIGGER watch ON ddl_command_end EXECUTE FUNCTION public.watch();
		CREATE EVENT TRIGGER disabled ON ddl_command_end EXECUTE FUNCTION public.watch();
		ALTER EVENT TRIGGER disabled DISABLE;
		ALTER DEFAULT PRIVILEGES FOR ROLE app GRANT SELECT ON TABLES TO PUBLIC;
		ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT INSERT ON TABLES TO app;
		ALTER DEFAULT PRIVILEGES GRANT SELECT, DELETE ON TABLES TO app;
		ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC});
	($status, $out, $err) = obstacles($one, $two);
	like($err,
		qr/has large objects, which are not replicated. Do these columns point to them\? insta0\.pictures\.picture$/m,
		'--dry-run: large objects');
	like($err, qr/event trigger watch will run (public\.)?watch\(\) while the definition is made/,
		'--dry-run: an event trigger of the target');
	like($err, qr/ will read the whole table for each row .*: insta0\.full1 \(0 bytes\)\. A key is better: ALTER TABLE insta0\.full1 ADD/,
		'--dry-run: a table whose REPLICA IDENTITY is FULL, without an index');
	$one->safe_psql('postgres', 'DROP TABLE insta0.full1, insta0.full2');
	unlike($err, qr/event trigger disabled/, '--dry-run: but not of one that is disabled');
	is($status, 1, '--dry-run: default privileges of the target are obstacles');
	foreach my $text ('new tables of role \S+ give app SELECT by default', 'new tables of role \S+ give app DELETE',
		'new functions of role \S+ refuse PUBLIC EXECUTE')
	{
		like($out, qr/$text/, "--dry-run: $text");
	}
	$two->safe_psql('postgres', $_) foreach $out =~ /HINT:  (ALTER DEFAULT PRIVILEGES .*;)$/mg;
	is((obstacles($one, $two))[0], 0,
		'--dry-run: the hints mend that, and those of other roles, or of one schema, do not matter');
};

subtest 'rows that violate a foreign key' => sub {
	# Rows that were made with triggers off are looked for when nothing else is in the way. A key that is NOT VALID is no
	# obstacle.
	$one->safe_psql('postgres',
		q{CREATE TABLE insta0.r (n integer PRIMARY KEY, m integer REFERENCES insta0.r, o integer);
			SET session_replication_role = replica;
		INSERT INTO insta0.r VALUES (1, NULL, 7), (2, 3, NULL);
		ALTER TABLE insta0.r ADD FOREIGN KEY (o) REFERENCES insta0.r NOT VALID});
	($status, $out) = obstacles($one, $two);
	my $query = qr/SELECT t\.m FROM ONLY insta0\.r AS t WHERE .*; shows them/;
	like("$status $out",
		qr/^1 \S+: rows of table insta0\.r violate its foreign key r_m_fkey to table insta0\.r\n +HINT:  $query\.$/,
		'--dry-run: rows that violate a foreign key');
	is($one->safe_psql('postgres', $out =~ /HINT:  (SELECT .*); shows/ ? $1 : ''), '3', 'and the query that shows them');
	$one->safe_psql('postgres', 'UPDATE insta0.r SET m = 1 WHERE n = 2');
	is((obstacles($one, $two))[0], 0, '--dry-run: they are mended');
	$one->safe_psql('postgres', 'DROP TABLE insta0.r');
	$two->safe_psql('postgres', 'DROP EVENT TRIGGER watch; DROP EVENT TRIGGER disabled; DROP FUNCTION public.watch');
	$one->safe_psql('postgres', "DROP TABLE insta0.pictures; SELECT lo_unlink($object)");
};

# A sequence at the end of its type can be closed, too.
$one->safe_psql('postgres', q{
	CREATE SEQUENCE insta0.lowest AS smallint MINVALUE -32768 START -32768;
	CREATE SEQUENCE insta0.highest AS integer INCREMENT -1 MAXVALUE 2147483647 START 2147483647;
	CREATE SEQUENCE insta0.full MAXVALUE 9223372036854775807 START 9223372036854775807;
	SELECT nextval('insta0.full')});

subtest 'a schema of the same name on the target' => sub {
	$two->safe_psql('postgres', 'CREATE SCHEMA insta0; CREATE SCHEMA snowflake_move_0');
	(undef, $out) = obstacles($one, $two);
	like($out, qr/schema $_ is there already/, "--dry-run: schema $_") foreach 'insta0', 'snowflake_move_0';
	$two->safe_psql('postgres', $out =~ /HINT:  It is empty: (DROP SCHEMA insta0;)$/m ? $1 : '');
	$two->safe_psql('postgres', 'DROP SCHEMA snowflake_move_0');
	is((obstacles($one, $two))[0], 0, '--dry-run: an empty one is dropped');
	$two->safe_psql('postgres', 'CREATE SCHEMA insta0; CREATE TYPE insta0.t');
	like((obstacles($one, $two))[1], qr/HINT:  It is not of a move\. Decide by SELECT/, '--dry-run: one with a type is not');
	$two->safe_psql('postgres', 'DROP SCHEMA insta0 CASCADE');
};

subtest 'a foreign key to a table of another schema' => sub {
	$_->safe_psql('postgres', 'CREATE TABLE IF NOT EXISTS public.p (n integer PRIMARY KEY)') foreach $one, $two;
	$one->safe_psql('postgres', 'CREATE TABLE insta0.p (n integer PRIMARY KEY REFERENCES public.p)');
	my $writer = $two->background_psql('postgres');
	$writer->query_safe('BEGIN; INSERT INTO public.p VALUES (1)');
	like((obstacles($one, $two))[1], qr/CONSTRAINT p p_n_fkey: canceling statement due to lock timeout\n.*is busy/,
		'--dry-run: a busy table of another schema');
	$writer->quit;
	is((obstacles($one, $two))[0], 0, '--dry-run: a foreign key to a table that is there');
	$one->safe_psql('postgres', 'DROP TABLE insta0.p');
};

subtest 'a server that has not been made ready for moves' => sub {
	my $origins = $one->pg_version < 18 ? 'max_replication_slots' : 'max_active_replication_origins';
	my $small =
		new_server('small',
			conf => "$origins = 1\nwal_level = replica\nmax_wal_senders = 0\nmax_replication_slots = "
			. "1\nmax_logical_replication_workers = 0\nmax_worker_processes = 2\n");
	$small->safe_psql('postgres', "SELECT snowflake_create_shard(3, 'insta3')");
	$small->safe_psql('postgres',
		q{SELECT pg_create_physical_replication_slot('s'), pg_replication_origin_create('o1'),
			pg_replication_origin_create('o2')});
	$small->safe_psql('postgres', 'CREATE DATABASE bare');
	(undef, $out) = obstacles($small, $small->connstr('bare'), 'insta3');
	my $is_old = $one->safe_psql('postgres', 'SHOW server_version_num') < 190000; # pg_version: 19rc1 < 19
	foreach my $text ($is_old ? 'wal_level = replica' : (), 'max_replication_slots = 1, and 1 are in use',
		"$origins = 1, and 2 are in use", 'max_wal_senders = 0, and 0',
		'max_logical_replication_workers = 0, and 0',
		'max_worker_processes = 2, and 0 are in use: a move takes 5 with the sessions of owners\n'
		. '.*ALTER SYSTEM SET max_worker_processes = 7;',
		'extension snowflake is missing, and on the source it is \S+ in schema public')
	{
		like($out, qr/$text/, "--dry-run: $text");
	}
	like((obstacles($one, $small, '--copy-jobs', '4'))[1],
		qr/max_worker_processes = 2, and 0 are in use: a move takes 5 with/, '--dry-run: a session for each of the --copy-jobs');
	foreach my $dry ([], ['--dry-run'])
	{
		($status, $out, $err) = run_shard($program, 'clone', $small, '--template', 'insta3', '--schema', 'insta{}',
			'--shards', '4', '--jobs', '3', @$dry);
		like("$status $out$err", qr/^3 .*max_worker_processes = 2, and 0 are in use: --jobs 3 takes 3 /, "clone @$dry");
	}
	$one->safe_psql('postgres', 'CREATE TABLE public.g (n integer PRIMARY KEY)');
	($status, $out) = run_shard($program, 'global', 'add', 'public.g', '--on', $one, $small);
	my @few = map { qr/$_->[0], and \d are in use: global add takes $_->[1]\n/ }
		[ 'max_logical_replication_workers = 0', 2 ], [ 'max_worker_processes = 2', 3 ];
	like("$status $out", qr/^1 .*$few[0].*$few[1]/s, 'global add');
	$small->safe_psql('postgres', "UPDATE pg_extension SET extversion = '0.1' WHERE extname = 'snowflake'");
	like((obstacles($one, $small))[1], qr/extension snowflake is 0\.1 in schema public, and/,
		'--dry-run: another version of the extension');
	$small->safe_psql('postgres', 'UPDATE pg_extension SET extversion = $$'
		. $one->safe_psql('postgres', q{SELECT extversion FROM pg_extension WHERE extname = 'snowflake'})
			. q{$$, extnamespace = 'pg_catalog'::regnamespace WHERE extname = 'snowflake'});
	like((obstacles($one, $small))[1], qr/extension snowflake is \S+ in schema pg_catalog, and/,
		'--dry-run: another schema of the extension');
	$small->stop;
};

subtest 'a role that lacks rights' => sub {
	$_->safe_psql('postgres', 'ALTER ROLE app LOGIN') foreach $one, $two;
	(undef, $out) = obstacles(map { $_->connstr('postgres') . ' user=app' } $one, $two);
	foreach my $text ('role app may not make a slot\n.*ALTER ROLE app REPLICATION',
		'role app may make no schema and no publication in database postgres\n.*GRANT CREATE ON DATABASE postgres TO app',
		'role app may not copy rows\n.*GRANT EXECUTE ON FUNCTION snowflake_internal\.copy_rows\(regclass,text\[\],text,bytea\) TO app',
		$two->pg_version < 16 ? 'role app may not make a subscription: before PostgreSQL 16 only a superuser may'
		: ('GRANT pg_create_subscription TO app;',
			'objects of role \S+, and write to them\n.*Connect as a superuser\. Or give \w+ ',
			'role app, which is no superuser, takes a password'),
		'role app is no member of role \S+, which owns table insta0.likes and 10 more\n.*Move the shard as a '
		. 'superuser, or give')
	{
		like($out, qr/$text/, "--dry-run: $text");
	}
	unlike($out, qr/GRANT \S+ TO app WITH|GRANT (?!CREATE|pg_)\S+ TO app/,
		'--dry-run: no hint grants membership in a superuser');
};

subtest 'a source that the target cannot reach, and clocks that differ' => sub {
	($status, $rows) =
		shard_json($program, 'move', 'insta0', '--from', $one, '--to', $two, '--dry-run', '--source', 'host=/nonexistent');
	ok(@$rows == 1
		&& $rows->[0]{obstacle} =~ /SUBSCRIPTION snowflake_move_0: .*could not connect to the publisher.*\n.*pg_hba\.conf/,
		'--dry-run: the target\'s server cannot connect');
	set_clock($clock, -600) if $clock;
	($status, $rows, $err) = shard_json($program, 'move', 'insta0', '--from', $one, '--to', $two, '--dry-run');
	is("$status " . @$rows, '0 0', '--dry-run: nothing left');
	like($err, qr/the clock of .* is \d+ s behind/, '--dry-run: the clocks are apart') if $clock;
	set_clock($clock, -4000) if $clock;
	(undef, $out) = obstacles($one, $two);
	my $slow = qr/its clock is \d+ s behind the last ID of the source, and snowflake\.max_drift is 3600 s: a draw would be an error/;
	like($out, qr/:${\$two->port}\/postgres: $slow\n    HINT:  Set the clock right\./,
		'--dry-run: by more than a draw permits') if $clock;
	set_clock($clock, -600) if $clock;
};

# pg_dump would wait for ever.
subtest 'a table is locked' => sub {
	my $locker = $one->background_psql('postgres');
	$locker->query_safe('BEGIN; LOCK TABLE insta0.users');
	my $pid = $locker->query_safe('SELECT pg_backend_pid()');
	my ($found, $text) = obstacles($one, $two, '--timeout', '100ms');
	is("$found $text", '1 ' . $one->host . ':' . $one->port . "/postgres: process $pid has an ACCESS EXCLUSIVE lock on insta0.users, "
			. "and pg_dump would wait for it\n    HINT:  SELECT pg_terminate_backend($pid); or wait", '--dry-run: this, alone');
	my $move = start_command('move', '', 'insta0', '--from', $one, '--to', $two, '--dry-run');
	await('it waits', sub { $one->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity
		WHERE application_name = 'snowflake-shard' AND query ~ 'AccessExclusiveLock'}) });
	$locker->query_safe('ROLLBACK');
	is((end_command($move))[0], 0, 'a lock that ends in time is no obstacle');
	$locker->quit;
};

subtest 'there is no move to go on with' => sub {
	foreach my $end ([ '--resume', "there is no move of shard 0, schema insta0, to be resumed\nHINT:  Nothing has begun, .*: snowflake-shard move insta0 --from " ],
		[ '--complete', 'shard 0, schema insta0 of \S+, has not been moved' ])
	{
		($status, $out, $err) = move('insta0', $one, $two, $end->[0]);
		ok($status == 3 && $err =~ /$end->[1]/, "$end->[0] without a move") or diag($err);
	}
	is((move('insta0', $one, $two, '--drop-source'))[0], 2, 'no option of an earlier release') or diag($err);
	($status, $out, $err) = move('insta0', $one, $one);
	ok($status == 2 && $err =~ /--from and --to are the same/, 'a move from a server to itself is wrong usage')
		or diag($err);
};

subtest 'a table that is made when the publication is there, and the definition has not been copied' => sub {
	my $writing = $one->background_psql('template1');
	$writing->query_safe('BEGIN; SELECT pg_current_xact_id()');
	my $between = start_command('move', 'source: definition and slot', 'insta0', '--from', $one, '--to', $two);
	await('the publication is there', sub { $one->safe_psql('postgres', 'SELECT count(*) FROM pg_publication') eq '1' });
	$one->safe_psql('postgres', 'CREATE TABLE insta0.meanwhile (n integer PRIMARY KEY)');
	$writing->quit;
	is(end_command($between), 3, 'a table made after the publication: exit code 3');
	like($between->{err},
		qr/table insta0\.meanwhile was made during the move, which does not carry it.*Start anew: --abort/, 'it is named');
	is(sqlstate($one, 'INSERT INTO insta0.meanwhile VALUES (1)'), '', 'and the source is open');
	is((move('insta0', $one, $two, '--abort'))[0], 0, 'it is aborted');
	$one->safe_psql('postgres', 'DROP TABLE insta0.meanwhile');
};

my @way = ('insta0', '--from', $one, '--to', $two);

subtest 'two moves at once, Ctrl-C, and a table that is made meanwhile' => sub {
	my $first = start_command('move', 'target: rows', @way);
	kill 'STOP', $first->{run}{KIDS}[0]{PID};
	my @others = map { background('move', 'insta0', '--from', $_->[0], '--to', $_->[1]) } [ $one, $two ], [ $two, $one ];
	foreach my $node ($one, $two)
	{
		my $other = shift @others;
		$other->{h}->finish;
		like($other->{err},
			qr/another snowflake-shard is moving the shard: it has locked snowflake_move_0 on \S+:${\$node->port}\//,
			'two moves at once: the lock of ' . $node->name);
	}
	$first->{run}->signal('INT');
	kill 'CONT', $first->{run}{KIDS}[0]{PID};
	is(end_command($first), 3, 'Ctrl-C: exit code 3');
	like($first->{err}, qr/stopped\nHINT: .*--resume goes on/, 'Ctrl-C: says how to go on');
	($status, $rows) = shard_json($program, 'verify', $one, $two);
	ok($status == 1 && (grep { $_->{hint} =~ /--resume goes on/ } @$rows) == @$rows,
		'verify names what is left and the command that goes on');
	$one->safe_psql('postgres', 'CREATE TABLE insta0.late (n integer PRIMARY KEY)');
	my ($resume) = $rows->[0]{hint} =~ /^snowflake-shard (.*? --resume) goes on/;
	($status, $out, $err) = run_shard($program, split(' ', $resume));
	ok($status == 3 && $err =~ /table insta0\.late was made during the move, which does not carry it/,
		'a table that was made meanwhile is not lost') or diag($err);
	is(sqlstate($one, 'INSERT INTO insta0.late VALUES (1)'), '', 'and the source is open');
	($status, $out, $err) = move('insta0', $two, $one, '--abort');
	ok($status == 3 && $err =~ /is of another move/, '--abort with the servers exchanged is refused');
	my $id = 'SELECT id FROM snowflake_move_0.state';
	$two->safe_psql('postgres', 'UPDATE snowflake_move_0.state SET id = gen_random_uuid()');
	($status, $out, $err) = move('insta0', $one, $two, '--abort');
	ok($status == 3 && $err =~ /is of another move/, '--abort of two halves of two moves is refused');
	$two->safe_psql('postgres', sprintf q{UPDATE snowflake_move_0.state SET id = '%s'}, $one->safe_psql('postgres', $id));
	is((move('insta0', $one, $two, '--abort'))[0], 0, '--abort');
	is((move('insta0', $one, $two, '--abort'))[0], 3, '--abort again: there is no move');
	is((run_shard($program, 'verify', $one, $two))[0], 0, 'verify: nothing is left');
	$one->safe_psql('postgres', 'DROP TABLE insta0.late');
};

subtest 'a row that the target refuses' => sub {
	# A CHECK may call a function that decides otherwise there. Rows of the first piece, of 4 MB, are there by then.
	my $row = 20_000;
	$one->safe_psql('postgres', $_) foreach
		q{CREATE FUNCTION insta0.is_here(n integer) RETURNS boolean LANGUAGE sql STABLE AS
			$$SELECT n <> current_setting('test.refused', true)::integer IS NOT FALSE$$},
		'CREATE TABLE insta0.checked (n integer PRIMARY KEY CHECK (insta0.is_here(n)), t text)',
		"INSERT INTO insta0.checked SELECT n, repeat('x', 300) FROM generate_series(1, $row + 5) AS n";
	$two->safe_psql('postgres', "ALTER DATABASE postgres SET test.refused = $row");
	($status, $out, $err) = move('insta0', $one, $two);
	ok($status == 3 && $err =~ /table insta0\.checked: ERROR:  new row .* violates check constraint.*COPY checked, line $row\b/s,
		'the error names table and row') or diag("$out$err");
	$two->safe_psql('postgres', "ALTER DATABASE postgres RESET test.refused");
	is($two->safe_psql('postgres', 'SELECT count(*) FROM insta0.checked'), '0', 'a table is one transaction');
	is((move('insta0', $one, $two, '--abort'))[0], 0, 'it is aborted');
	$one->safe_psql('postgres', 'DROP TABLE insta0.checked; DROP FUNCTION insta0.is_here');
};

subtest 'a target with another encoding, and sessions there with another one' => sub {
	$two->safe_psql('postgres', q{CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0});
	$two->safe_psql('latin', 'CREATE EXTENSION snowflake');
	like((obstacles($one, $two->connstr('latin')))[1], qr/the database has encoding LATIN1, and the source UTF8\n.*ENCODING 'UTF8'/,
		'--dry-run: another encoding');
	$two->safe_psql('postgres', 'DROP DATABASE latin');
	$one->safe_psql('postgres', q{CREATE TABLE insta0.texts (t text PRIMARY KEY);
		INSERT INTO insta0.texts VALUES (U&'Gr\\00FC\\00DFe')});
	my $texts = 'SELECT encode(convert_to(t, $$UTF8$$), $$hex$$) FROM insta0.texts';
	$two->safe_psql('postgres', "ALTER DATABASE postgres SET client_encoding = 'LATIN1'");
	my $first = start_command('move', 'target: indexes', @way);
	$first->{run}->signal('INT');
	end_command($first);
	is($two->safe_psql('postgres', $texts), $one->safe_psql('postgres', $texts), 'the text is the same there');
	$two->safe_psql('postgres', 'ALTER DATABASE postgres RESET client_encoding');
	is((move('insta0', $one, $two, '--abort'))[0], 0, 'it is aborted');
	$one->safe_psql('postgres', 'DROP TABLE insta0.texts');
};

subtest 'a slot that is gone' => sub {
	# A slot that is gone while a command waits, and then while none runs. A new one would lack what was written in
	# between.
	my $first = start_command('move', 'target: indexes', @way);
	kill 'STOP', $first->{run}{KIDS}[0]{PID};
	my $locker = $two->background_psql('postgres');    # the command waits for a row of this table
	$locker->query_safe('BEGIN; LOCK TABLE snowflake_move_0.marker IN SHARE MODE');
	kill 'CONT', $first->{run}{KIDS}[0]{PID};
	await_text($first, 'target: waiting until');
	$two->safe_psql('postgres', $_) foreach 'ALTER SUBSCRIPTION snowflake_move_0 DISABLE',
		'SELECT pg_terminate_backend(pid) FROM pg_stat_subscription WHERE pid IS NOT NULL';
	$locker->quit;
	await('the slot can be dropped',
		sub {
			$one->psql('postgres',
				q{SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
					WHERE slot_name ~ '^snowflake_move_0_'}) == 0 });
	await_text($first, 'slot \w+ is gone');
	is(end_command($first), 3, 'a slot that is gone while the command waits: exit code 3');
	like($first->{err}, qr/slot snowflake_move_0_\d+ is gone, .*Start anew: --abort/, 'and the error says so');
	($status, $out, $err) = move('insta0', $one, $two, '--resume');
	ok($status == 3 && $err =~ /slot snowflake_move_0_\d+ is gone, .*Start anew: --abort/, 'a slot that is gone')
		or diag($err);
	is((move('insta0', $one, $two, '--abort'))[0], 0, 'it is aborted');
};

my $insert;
subtest 'a command that is killed after the fence, and a target that is lost' => sub {
	# A command that is killed after the fence, and a target that is lost for good: the statements of
	# docs/move-failures.md says for this. (The subscription is disabled, so that the last write does not come. A lock
	# holds the fence up until then.)
	my $holder = $one->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta0.log IN ROW EXCLUSIVE MODE');
	my $first = start_command('move', 'source: triggers of the fence', @way, '--timeout', '60s');
	my $late = $one->background_psql('postgres');
	$late->query_safe("BEGIN; UPDATE insta0.users SET name = 'late' WHERE id = (SELECT min(id) FROM insta0.users)");
	$two->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_0 DISABLE');
	$holder->quit;
	await('the source is closed',
		sub { $one->safe_psql('postgres', 'SELECT step FROM snowflake_move_0.state') eq 'fenced' });
	usleep(200_000);
	is($one->safe_psql('postgres', 'SELECT marker IS NULL FROM snowflake_move_0.state'), 't',
		'the fence waits for a transaction that has written');
	$late->query_safe('COMMIT');
	$late->quit;
	await('the move waits for the last write',
		sub { $first->{run}->pump_nb; $first->{err} =~ /waiting for the last write/ });
	kill_command($first->{run});
	$insert = "INSERT INTO insta0.log (t) VALUES ('x')";
	is(sqlstate($one, $insert), '25006', 'a command killed after the fence: the source is closed');
	($status, $out, $err) = move('insta0', $one, $two->connstr('template1'), '--abort');
	ok($status == 3 && $err =~ /is of another move/, '--abort with another target is refused');
	($status, $out, $err) = move('insta0', $one, $two, '--resume', '--reversible');
	ok($status == 3 && $err =~ /--reversible comes too late/, '--reversible after the fence is refused') or diag($err);
	$two->safe_psql('postgres', 'ALTER SCHEMA snowflake_move_0 RENAME TO lost');
	foreach my $end ('--resume', '--abort')
	{
		($status, $out, $err) = move('insta0', $one, $two, $end);
		ok($status == 3
			&& $err =~ /the source is fenced, and schema snowflake_move_0 is not on .*not known whether the shard is open there/,
			"$end without the state of the target is refused") or diag($err);
		is(sqlstate($one, $insert), '25006', 'and the source stays closed');
	}
	$two->safe_psql('postgres', 'ALTER SCHEMA lost RENAME TO snowflake_move_0');
	my ($by_hand) =
		slurp_file("$FindBin::RealBin/../../docs/move-failures.md") =~ /(BEGIN;\nSELECT snowflake_move_5.lift.*?)```/s;
	$by_hand =~ s/snowflake_move_5/snowflake_move_0/g;
	my ($lift, $remove) = $by_hand =~ /(.*?COMMIT;)(.*)/s;
	$one->safe_psql('postgres', $lift);
	is(sqlstate($one, $insert), '', 'the fence is lifted by hand');
	$one->safe_psql('postgres', $remove);
	is($one->safe_psql('postgres', "SELECT count(*) FROM pg_namespace WHERE nspname ~ 'move'")
		. $one->safe_psql('postgres',
			'SELECT count(*) FROM pg_publication') . $one->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_slots'),
		'000', 'and nothing of the move is left on the source');
	$two->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_0 SET (slot_name = NONE)');
	$two->safe_psql('postgres', $_) foreach 'DROP SUBSCRIPTION snowflake_move_0',
		'DROP SCHEMA snowflake_move_0, insta0 CASCADE';
};

subtest 'a difference between the rows, and a lock that the cutover does not get' => sub {
	# A difference, made on the target before the cutover. A client that holds a lock for longer than
	# --timeout stops the cutover and nobody else.
	my ($largest, $before) =
		split /\|/, $one->safe_psql('postgres', 'SELECT id, name FROM insta0.users ORDER BY id DESC LIMIT 1');
	my $client = $one->background_psql('postgres');
	my $first = start_command('move', 'target: rows', @way, '--timeout', '300ms');
	$client->query_safe('BEGIN; LOCK TABLE insta0.photos IN ROW EXCLUSIVE MODE');
	await('a cutover has failed', sub { $first->{run}->pump_nb; $first->{err} =~ /the source is open again/ });
	is(sqlstate($one, $insert), '', 'a lock that is not had in time: the source is open');
	is(end_command($first), 3, 'after three tries: exit code 3');
	is(() = $first->{err} =~ /canceling statement due to lock timeout|the source is open again/g, 6,
		'three times the source was open again') or diag($first->{err});
	like($first->{err}, qr/the cutover did not succeed within --timeout, 3 times tried\nHINT: .*--resume goes on/,
		'the error says how to go on');
	is(sqlstate($one, $insert), '', 'and the source is open');
	$client->quit;
	($status, $rows) = shard_json($program, 'verify', $one, $two);
	is(join("\n", map { "$_->{object}: $_->{problem}" } grep { $_->{hint} !~ /--resume goes on/ } @$rows), '',
		'verify says nothing of IDs that are ahead of a target that is not open');
	$two->safe_psql('postgres',
		"SET session_replication_role = replica; UPDATE insta0.users SET name = 'other' WHERE id = $largest");
	($status, $out, $err) = move('insta0', $one, $two, '--resume', '--timeout', '3s');
	is($status, 3, 'a difference before the cutover: exit code 3');
	# Now and then other rows have the same hash, and the key of one of them may be the one that is named.
	my $row = qr/has (?:1 row, key \($largest\)|\d+ rows, one with key \(\d+\))/;
	like($err, qr/table insta0\.users: \S+ $row, \S+ $row, which is not the same/, 'table and key are named');
	like($err, qr/the rows differ, and nothing was opened\. Start anew: --abort/, 'nothing was opened');
	is(sqlstate($one, $insert), '', 'and the source is open');
	$two->safe_psql('postgres', qq{SET session_replication_role = replica;
		UPDATE insta0.users SET name = '$before' WHERE id = $largest; INSERT INTO insta0.users VALUES (1, 'more')});
	($status, $out, $err) = move('insta0', $one, $two, '--resume', '--timeout', '3s', '--verify', '1');
	is($status, 1, 'one of tables that are only counted, after the cutover: exit code 1');
	like($err, qr/table insta0\.users: \S+ has \d+ rows, \S+ has \d+ rows\n/, 'it is named');
	is( $two->safe_psql('postgres', 'TABLE insta0.lowest UNION ALL TABLE insta0.highest UNION ALL TABLE insta0.full'),
		"-32768|0|f\n2147483647|0|f\n9223372036854775807|0|t", 'sequences at the ends of their types are carried');
	foreach my $sequence ('lowest', 'highest', 'full')
	{
		is(sqlstate($one, "SELECT nextval('insta0.$sequence')"), '2200H', "nothing is drawn from the source's $sequence");
	}
	ok($largest < $two->safe_psql('postgres', "INSERT INTO insta0.users (name) VALUES ('new') RETURNING id"),
		'a target with a slow clock makes larger IDs');
};

subtest '--complete needs the shard on the target' => sub {
	$two->safe_psql('postgres', 'ALTER SCHEMA insta0 RENAME TO away');
	($status, $out, $err) = move('insta0', $one, $two, '--complete');
	ok($status == 3 && $err =~ /schema insta0 of \S+:${\$two->port}\S* is not shard 0/,
		'--complete is refused if the target has no such shard') or diag($err);
	($status, $out, $err) = move('insta0', $one, $two);
	ok($status == 3 && $err =~ /shard 0, schema insta0, has left .* and is not there any more/, 'and a move says so')
		or diag($err);
	$two->safe_psql('postgres', 'ALTER SCHEMA away RENAME TO insta0');
	is((move('insta0', $one, $two, '--complete'))[0], 0, '--complete');
};

subtest 'a move between two databases of one server' => sub {
	$two->safe_psql('postgres', 'CREATE DATABASE other');
	$two->safe_psql('other', 'CREATE EXTENSION snowflake');
	($status, $out, $err) = move('insta0', $two, $two->connstr('other'));
	is($status, 0, 'a move between two databases of one server') or diag("$out$err");
};

# Each cutover asks again what the begin asked: a clock or a setting can have changed since.
subtest 'a server that clients could not write to is not opened' => sub {
	$one->safe_psql('postgres', q{SELECT snowflake_create_shard(8, 'Insta 8');
		CREATE TABLE "Insta 8".log (id bigint PRIMARY KEY DEFAULT "Insta 8".next_id(), t text);
		INSERT INTO "Insta 8".log (t) VALUES ('a')});
	my @set = ('Insta 8', $one, $two);
	my $insert = q{INSERT INTO "Insta 8".log (t) VALUES ('x')};
	my $is_refused = sub {
		my ($verb, $problem, $name) = @_;
		($status, $out, $err) = move(@set, $verb);
		like("$status $err", qr/^3 (?s:.*)$problem/, $name);
		unlike($err, qr/ fence$|open again/m, "$name: nothing is blocked");
	};
	my $behind = sub {
		my ($node, $what) = @_;
		my $drift = qr{snowflake\.max_drift is 3600 s: a draw would be an error\nHINT: +Set the clock right\.};
		return qr{:${\$node->port}/postgres: its clock is \d+ s behind $what, and $drift};
	};
	is((move(@set, '--hold', '--reversible'))[0], 0, 'a set is held');
	foreach ([ 'DATABASE postgres', 'database', 'ALTER DATABASE postgres RESET' ],
		[ 'SYSTEM', 'configuration file \S+', 'Remove it there' ])
	{
		my ($place, $from, $hint) = @$_;
		$two->safe_psql('postgres', $_)
			foreach "ALTER $place SET default_transaction_read_only = on", 'SELECT pg_reload_conf()';
		await('the setting is loaded', sub { $two->safe_psql('postgres', 'SHOW default_transaction_read_only') eq 'on' });
		$is_refused->('--cutover', qr/default_transaction_read_only = on, from $from: clients could not write\nHINT: +$hint/,
			"read only by ALTER $place: --cutover");
		my $reset = "ALTER $place RESET default_transaction_read_only";
		$two->safe_psql('postgres', "SET default_transaction_read_only = off; $reset") if $place ne 'SYSTEM';
		$two->safe_psql('postgres', $_) foreach 'ALTER SYSTEM RESET default_transaction_read_only', 'SELECT pg_reload_conf()';
	}
	if ($clock)
	{
		set_clock($clock, -7200);
		$is_refused->('--cutover', $behind->($two, 'that of the source'), 'a clock that has stepped back: --cutover');
		# As far ahead of the source as it permits.
		$one->safe_psql('postgres',
			q{SELECT snowflake_advance('"Insta 8".table_id_seq', snowflake_encode(now() + '55 minutes', 8, 0))});
		is(sqlstate($one, $insert), '', 'the source makes IDs that are ahead of its clock');
		set_clock($clock, -600);
		$is_refused->('--cutover', $behind->($two, 'the last ID of the source'), 'positions that are ahead of the clock: --cutover');
		set_clock($clock, 0);
	}
	is((move(@set, '--cutover'))[0], 0, '--cutover');
	is(sqlstate($two, $insert), '', 'the target makes IDs');
	if ($clock)
	{
		set_clock($clock, 7200);
		$is_refused->('--undo', $behind->($one, 'that of the source'), 'a server that is behind the one that is open: --undo');
		set_clock($clock, 0);
	}
	is((move(@set, '--undo'))[0], 0, '--undo');
	is(sqlstate($one, $insert), '', 'the source makes IDs again');
};

$_->stop foreach $one, $two;
done_testing();
