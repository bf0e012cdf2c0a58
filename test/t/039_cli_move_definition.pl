# snowflake-shard move: the definition of the shard is changed while it moves. Nothing of the change may be
# lost on the target: the move stops, names the change, and the source is open.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\n";
my ($one, $two) = map { new_server($_, conf => $conf) } qw(one two);
if ($one->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'btree_gist'") eq '0')
{
	$_->stop foreach $one, $two;
	plan skip_all => 'btree_gist is not installed (it is a contrib module)';
}

# Shard 5 of an application.
make_real_database($_, 'postgres') foreach $one, $two;
make_real_shard($one, 'postgres', 5, 'insta5');
psql_file($one, 'postgres', 'rows', schema => 'insta5', n => 200);
$one->safe_psql('postgres',
	'CREATE OPERATOR FAMILY insta5.family USING hash; CREATE TYPE insta5.pair AS (a integer, b text); '
	. 'CREATE ACCESS METHOD other_heap TYPE TABLE HANDLER heap_tableam_handler; CREATE TABLE insta5.gate (n integer PRIMARY KEY)');
# Only a superuser makes an operator family.
$_->safe_psql('postgres', 'ALTER ROLE app SUPERUSER') foreach $one, $two;
my @way = ('insta5', '--from', $one, '--to', $two);

sub abort_move
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($status, $out, $err) = run_shard($program, 'move', @way, '--abort');
	return is($status, 0, "$name: --abort") || diag("$out$err");
}

# A move that has its snapshot, and waits to make the definition on the target until the session ends.
sub hold_definition
{
	my @options = @_;
	my $slot = $one->background_psql('postgres');
	$slot->query_safe('BEGIN; SELECT pg_current_xact_id()');
	my $move = start_command('move', 'the slot waits for', @way, @options);
	my $tables = $two->background_psql('postgres');
	$tables->query_safe('BEGIN; CREATE SCHEMA insta5');
	$slot->quit;
	await_text($move, 'target: definition');
	return ($move, $tables);
}

# One that waits with the first row.
sub hold_rows
{
	my ($move, $tables) = hold_definition();
	my $gate = $one->background_psql('postgres');
	$gate->query_safe('BEGIN; LOCK TABLE insta5.gate IN ACCESS EXCLUSIVE MODE');
	$tables->quit;
	await('the first row is waited for', sub { !goes_on($move->{run}) || $one->safe_psql('postgres',
		q{SELECT count(*) FROM pg_locks WHERE relation = 'insta5.gate'::regclass AND NOT granted}) eq '1' });
	return ($move, $gate);
}

# A change of each kind, while the rows are copied, and how it is shown.
my @changes = (
	[ 'ALTER TABLE insta5.photos ALTER width TYPE numeric(12,4)',
		qr/^- .*width numeric\(12,2\).*^\+ .*width numeric\(12,4\)/ms ],
	[ 'DROP TABLE insta5.bookings', qr/^- CREATE TABLE insta5\.bookings/m ],
	[ 'REVOKE SELECT ON insta5.photos FROM report', qr/^- GRANT SELECT ON TABLE insta5\.photos TO report/m ],
	[ q{CREATE OR REPLACE FUNCTION insta5.count_photos() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'},
		qr/^\+     AS \$\$BEGIN RETURN NULL; END\$\$/m ],
	[ 'ALTER POLICY all_of_web ON insta5.photos USING (false)', qr/^\+ CREATE POLICY all_of_web .*USING \(false\)/m ],
	[ q{COMMENT ON TABLE insta5.users IS 'new'}, qr/^\+ COMMENT ON TABLE insta5\.users IS 'new'/m ],
	[ 'ALTER TABLE insta5.users SET (fillfactor = 90)', qr/^\+ WITH \(fillfactor='?90'?\)/m ]);

subtest 'changes during the copy stop the move' => sub {
	my ($move, $gate) = hold_rows();
	$one->safe_psql('postgres', $_->[0]) foreach @changes;
	# After the fence there is no time for pg_dump: the fingerprint tells of a change of any of these kinds.
	foreach my $sql ('GRANT CREATE ON SCHEMA insta5 TO report', 'GRANT DELETE ON insta5.users TO report',
		'ALTER TABLE insta5.users SET (fillfactor = 80)',
		'ALTER TABLE insta5.users ENABLE ROW LEVEL SECURITY', 'ALTER TABLE insta5.users FORCE ROW LEVEL SECURITY',
		'ALTER TABLE insta5.users REPLICA IDENTITY FULL',
		'ALTER TABLE insta5.users ALTER avatar SET STORAGE EXTERNAL',
		'ALTER TABLE insta5.users ALTER photo_count SET DEFAULT 1',
		'ALTER TABLE insta5.users CLUSTER ON users_name',
		'ALTER TABLE insta5.follows RENAME CONSTRAINT follows_check TO other',
		'ALTER TABLE insta5.photos DISABLE TRIGGER audit', 'ALTER POLICY all_of_web ON insta5.photos USING (false)',
		'ALTER TABLE insta5.follows DISABLE RULE no_delete',
		'ALTER STATISTICS insta5.photos_of_users SET STATISTICS 10',
		(map { ("ALTER FUNCTION insta5.$_() COST 7", "ALTER FUNCTION insta5.$_() OWNER TO report",
			"GRANT EXECUTE ON FUNCTION insta5.$_() TO report") } qw(audit next_id settled_id)),
		q{ALTER DOMAIN insta5.handle SET DEFAULT 'x'}, q{ALTER DOMAIN insta5.handle ADD CHECK (VALUE <> 'x') NOT VALID},
		'ALTER TYPE insta5.pair ADD ATTRIBUTE c integer', 'ALTER TYPE insta5.pair OWNER TO report',
		'ALTER INDEX insta5.users_name SET (fillfactor = 80)', 'ALTER INDEX insta5.users_name RENAME TO c',
		'CREATE INDEX ON insta5.users (id)', q{COMMENT ON INDEX insta5.users_name IS 'new'},
		q{ALTER TYPE insta5.visibility RENAME VALUE 'private' TO 'secret'},
		'CREATE OPERATOR insta5.<<< (FUNCTION = int4pl, LEFTARG = integer, RIGHTARG = integer)',
		'CREATE OPERATOR CLASS insta5.c FOR TYPE integer USING hash AS OPERATOR 1 =', 'CREATE COLLATION insta5.c FROM "C"',
		'CREATE TEXT SEARCH CONFIGURATION insta5.c (COPY = simple)',
		'CREATE TEXT SEARCH DICTIONARY insta5.c (TEMPLATE = simple)',
		'ALTER DEFAULT PRIVILEGES IN SCHEMA insta5 GRANT SELECT ON TABLES TO report',
		q{COMMENT ON TABLE insta5.users IS 'new'}, q{COMMENT ON FUNCTION insta5.audit() IS 'new'},
		(map { "COMMENT ON $_ IS 'new'" } 'SCHEMA insta5', 'TYPE insta5.visibility', 'TRIGGER audit ON insta5.photos',
			'CONSTRAINT follows_check ON insta5.follows',
			'COLUMN insta5.users.avatar'),
		'REVOKE EXECUTE ON FUNCTION insta5.next_id() FROM PUBLIC', q{COMMENT ON FUNCTION insta5.next_id() IS 'new'},
		'GRANT USAGE ON SEQUENCE insta5.table_id_seq TO report', 'CREATE SEQUENCE insta5.c',
		(map { "ALTER SEQUENCE insta5.table_id_seq $_" } 'CACHE 7', 'MAXVALUE 9007199254740992', 'MINVALUE -7', 'START 7', 'CYCLE'),
		'CREATE OPERATOR FAMILY insta5.c USING hash',
		'ALTER OPERATOR FAMILY insta5.family USING hash ADD OPERATOR 1 = (integer, integer)',
		'ALTER OPERATOR FAMILY insta5.family USING hash ADD FUNCTION 1 hashint4(integer)',
		'ALTER TABLE insta5.users SET ACCESS METHOD other_heap')
	{
		my $fingerprint = 'SELECT snowflake_move_5.fingerprint()';
		my ($before, $after) = split /\n/, $one->safe_psql('postgres', "BEGIN; $fingerprint; $sql; $fingerprint; ROLLBACK");
		isnt($after, $before, "the fingerprint is another one after: $sql");
	}
	my ($before, $marked, $altered, $unmarked) = split /\n/, $one->safe_psql('postgres', q{BEGIN;
		CREATE VIEW f AS SELECT snowflake_move_5.fingerprint(); ALTER SEQUENCE insta5.table_id_seq START 7 CYCLE;
		TABLE f; DO $$BEGIN PERFORM snowflake_move_5.mark('insta5.table_id_seq'); END$$;
		TABLE f; ALTER SEQUENCE insta5.table_id_seq MAXVALUE 9;
		TABLE f; DO $$BEGIN PERFORM snowflake_move_5.unmark(ARRAY['insta5.table_id_seq'::regclass]); END$$;
		TABLE f; ROLLBACK});
	is("$marked $unmarked", "$before $before", 'the bounds by which the fence closes a sequence change no fingerprint');
	isnt($altered, $before, 'those that somebody gives it after that do');
	# The time after the fence must not grow with the number of other shards. A small catalogue is read as a whole.
	$one->safe_psql('postgres', q{CREATE SCHEMA others;
		DO $$BEGIN
			FOR i IN 1..300 LOOP
				EXECUTE format('CREATE TABLE others.t%s (id bigint PRIMARY KEY CHECK (id > 0), v text)', i);
				EXECUTE format('CREATE FUNCTION others.f%s() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN NULL; END''', i);
				EXECUTE format('CREATE TRIGGER audit BEFORE INSERT ON others.t%s EXECUTE FUNCTION others.f%1$s()', i);
			END LOOP;
		END$$;
		ANALYZE (SKIP_LOCKED)});
	is($one->safe_psql('postgres', q{BEGIN;
			DO $$BEGIN
				PERFORM snowflake_move_5.set_body('leaving', 'false', '', ''), oid FROM snowflake_move_5.relations;
				PERFORM snowflake_move_5.read_sequences(s), snowflake_move_5.release_sequences(s),
					snowflake_move_5.missing_triggers('A'), snowflake_move_5.fingerprint()
				FROM snowflake_move_5.sequences_of(true) AS s;
			END$$;
			SELECT relname, seq_scan FROM pg_stat_xact_sys_tables WHERE seq_scan > 0 AND relname IN ('pg_attribute', 'pg_class',
				'pg_depend', 'pg_index', 'pg_proc', 'pg_type');
			ROLLBACK}), '', 'the fence reads no whole catalogue');
	$gate->quit;
	is(end_command($move), 3, 'changes during the copy: exit code 3');
	like($move->{err}, qr/the definition has changed since it was copied\. Start anew: --abort/, 'the error says so');
	like($move->{err}, $_->[1], "it shows: $_->[0]") foreach @changes;
	is(sqlstate($one, q{INSERT INTO insta5.events (kind) VALUES ('x')}), '', 'the source is open');
	abort_move('changes during the copy');
};

# A change with which no row can be replicated any more, while the move waits for that. (A lock has made it wait once
# more.)
my $holder = $one->background_psql('postgres');

subtest 'a change that stops replication' => sub {
	$holder->query_safe('BEGIN; LOCK TABLE insta5.users IN ROW EXCLUSIVE MODE');
	my $move = start_command('move', 'source: triggers of the fence', @way, '--timeout', '1s');
	$one->safe_psql('postgres', $_) foreach 'ALTER TABLE insta5.follows ADD COLUMN late integer',
		'UPDATE insta5.follows SET late = 1';
	await_text($move, 'definition has changed');
	is(end_command($move), 3, 'a change that stops replication: exit code 3');
	like($move->{err}, qr/the source is open again\n(?s:.*)Start anew: --abort(?s:.*)^\+ .*late integer/m,
		'the error shows the change');
	$holder->quit;
	abort_move('a change that stops replication');
	$one->safe_psql('postgres', 'ALTER TABLE insta5.follows DROP COLUMN late');
};

# After the fence, when the shard could be opened: the last write is held up by a subscription that is disabled.
sub move_with_change
{
	my ($sql) = @_;
	my $holder = $one->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta5.users IN ROW EXCLUSIVE MODE');
	my $moving = start_command('move', 'source: triggers of the fence', @way, '--timeout', '20s');
	$two->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 DISABLE');
	$holder->quit;
	await('the move waits for the last write',
		sub { $moving->{run}->pump_nb; $moving->{err} =~ /waiting for the last write/ });
	$one->safe_psql('postgres', $sql);
	$two->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 ENABLE');
	return $moving;
}

subtest 'a change after the fence' => sub {
	my $move = move_with_change('ALTER TABLE insta5.users ADD COLUMN late integer');
	is(end_command($move), 3, 'a change after the fence: exit code 3');
	like($move->{err}, qr/the definition of the shard is being changed\n.*the source is open again\n/s,
		'the source is opened again');
	like($move->{err}, qr/Start anew: --abort.*^\+ .*late integer/ms, 'the error shows the change');
	is(sqlstate($one, q{INSERT INTO insta5.events (kind) VALUES ('x')}), '', 'the source is open');
	abort_move('a change after the fence');
};

# All rows are newer than the snapshot then, and the catalogue tells of no change. VACUUM FULL and CLUSTER keep the versions of rows.
subtest 'a table is rewritten between the snapshot and its COPY' => sub {
	my ($move, $tables) = hold_definition('--verify', '0');
	$one->safe_psql('postgres', $_) foreach $one->safe_psql('postgres', 'SHOW server_version_num') >= 190000
		? 'REPACK (CONCURRENTLY) insta5.comments'
		: map { "ALTER TABLE insta5.comments SET ACCESS METHOD $_" } 'other_heap', 'heap';
	$tables->quit;
	is(end_command($move), 3, 'the same definition, whatever --verify says: exit code 3');
	like($move->{err}, qr/table insta5\.comments was emptied or rewritten before its rows were copied.*all rows are compared/,
		'the table is named at once');
	like($move->{err}, qr/the rows differ, and nothing was opened\. Start anew: --abort\n    table insta5\.comments: /,
		'its rows are missed');
	unlike($move->{err}, qr/fence$|target: open$/m, 'nothing was blocked');
	abort_move('a rewritten table');
};

subtest 'statements that leave the definition as it is stop nothing' => sub {
	my ($move, $gate) = hold_rows();
	$one->safe_psql('postgres', $_)
		foreach 'ANALYZE insta5.users', 'VACUUM (FULL, ANALYZE) insta5.photos', 'REFRESH MATERIALIZED VIEW insta5.top_users',
		'TRUNCATE insta5."Audit Log"';
	# Its rows come by replication.
	$one->safe_psql('postgres', 'BEGIN; CREATE TEMP TABLE kept AS TABLE insta5.comments; TRUNCATE insta5.comments; '
		. 'INSERT INTO insta5.comments TABLE kept; COMMIT');
	$gate->quit;
	# This waits for the snapshot of the copy.
	await_text($move, 'target: indexes');
	$one->safe_psql('postgres', 'REINDEX TABLE CONCURRENTLY insta5.users');
	is(end_command($move), 0, 'commands that leave the definition as it is, during the copy') or diag($move->{err});
	like($move->{err}, qr/table insta5\.comments was emptied or rewritten(?!.*table .* was emptied)/s,
		'a table that was emptied and filled again is named, and no other');
	is((run_shard($program, 'run', $one, $two, '--shards', '5', '--sql', 'CREATE TABLE behind ()'))[0], 0,
		'run changes a shard whose move is done');
	my ($status, undef, $err) = run_shard($program, 'move', @way, '--complete');
	is($status, 0, '--complete') or diag($err);
	unlike($err, qr/NOTICE/, 'no notice of a server is printed');
};

$_->stop foreach $one, $two;
done_testing();
