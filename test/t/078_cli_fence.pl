# Behind the fence of a move nobody draws an ID, whatever the sequence is, and each sequence goes on where it was, on either side. A
# trigger that does not fire always is made anew.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my ($one, $two) =
	map { new_server($_, conf => "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\n") } qw(one two);
$_->safe_psql('postgres', 'CREATE ROLE app LOGIN; CREATE ROLE other LOGIN') foreach $one, $two;
# huge: at its end snowflake_next_id() would read an ID of 2016.
$one->safe_psql('postgres', q{
	SELECT snowflake_create_shard(5, 'insta5');
	CREATE TABLE insta5.users (id bigint PRIMARY KEY DEFAULT insta5.next_id(), number serial, v text);
	CREATE TABLE insta5.log (id bigint PRIMARY KEY DEFAULT insta5.next_id());
	CREATE SEQUENCE insta5.huge MAXVALUE 1152921504606846976;
	CREATE SEQUENCE insta5.direct;
	CREATE SEQUENCE insta5.down INCREMENT -1;
	CREATE SEQUENCE insta5.round AS smallint MINVALUE 3 MAXVALUE 5 CYCLE;
	CREATE SEQUENCE insta5.unused START 7;
	CREATE UNLOGGED SEQUENCE insta5.unlogged;
	ALTER SCHEMA insta5 OWNER TO app; GRANT USAGE ON SCHEMA insta5 TO app;
	ALTER TABLE insta5.users OWNER TO app; ALTER TABLE insta5.log OWNER TO app;
	GRANT ALL ON ALL SEQUENCES IN SCHEMA insta5 TO app;
	INSERT INTO insta5.users (v) VALUES ('a'), ('b'); INSERT INTO insta5.log DEFAULT VALUES;
	SELECT nextval('insta5.down'), nextval('insta5.round'), snowflake_next_id(5, 'insta5.huge'),
		snowflake_next_id(5, 'insta5.direct'), nextval('insta5.unlogged')});

my @move = ('insta5', '--from', $one, '--to', $two);
my @plain = qw(down round unused unlogged users_number_seq);
my @native = qw(table_id_seq huge direct);
my $bounds = q{SELECT seqrelid::regclass, seqstart, seqincrement, seqmax, seqmin, seqcycle FROM pg_sequence
	WHERE seqrelid::regclass::text ~ '^insta5' ORDER BY seqrelid::regclass::text};
my $defined = $one->safe_psql('postgres', $bounds);

sub move
{
	return run_shard($program, 'move', @move, @_);
}

# A move that waits before the fence, because somebody has locked the table that gets its trigger last; and the other table.
sub hold_move
{
	my ($node) = ref $_[0] ? shift : $one;
	my ($first, $last) = split /\n/, $node->safe_psql('postgres',
		q{SELECT oid::regclass FROM pg_class WHERE relnamespace = 'insta5'::regnamespace AND relkind = 'r' ORDER BY oid});
	my $holder = $node->background_psql('postgres');
	$holder->query_safe("BEGIN; LOCK TABLE $last IN ROW EXCLUSIVE MODE");
	my $move = start_command('move', 'source: triggers of the fence', @move, @_);
	await('the first trigger is there', sub { $node->safe_psql('postgres', "SELECT count(*) FROM pg_trigger
		WHERE tgrelid = '$first'::regclass AND tgname = 'snowflake_move'") eq '1' });
	return ($move, $holder, $first);
}

# Whoever asks, and with all settings.
sub nothing_is_drawn
{
	my ($node) = @_;
	my $name = $node->name;
	my @draws = ('insta5.next_id()', map({ "snowflake_next_id(5, 'insta5.$_')" } @native), map({ "nextval('insta5.$_')" } @native, @plain));
	my $sql = join "\n", 'SET snowflake.max_drift = -1;', map { "SELECT \$\$$_\$\$, $_;" } @draws;
	foreach my $role (undef, 'app')
	{
		my (undef, $drawn, $errors) = $node->psql('postgres', $sql, on_error_stop => 0, extra_params => $role ? [ '-U', $role ] : []);
		is($drawn, '', "$name: nothing is drawn" . ($role ? " as $role" : ''));
		is(scalar(() = $errors =~ /ERROR:  /g), @draws, 'each is an error') or diag($errors);
	}
	is(sqlstate($node, 'SELECT insta5.settled_id()'), '25006', "$name: settled_id()");
	is(sqlstate($node, 'INSERT INTO insta5.log DEFAULT VALUES'), '25006', "$name: INSERT");
	return;
}

# The numbers that come next, which are the first to be drawn.
sub go_on
{
	my ($node, $numbers) = @_;
	is($node->safe_psql('postgres', "SELECT nextval('insta5.down'), nextval('insta5.round'), nextval('insta5.unused'), "
		. "nextval('insta5.unlogged'), nextval('insta5.users_number_seq')"), $numbers, $node->name . ': the sequences go on');
	is(sqlstate($node, $_), '', $node->name . ": $_") foreach 'SELECT insta5.next_id()', 'INSERT INTO insta5.log DEFAULT VALUES',
		map { "SELECT snowflake_next_id(5, 'insta5.$_')" } @native;
	is($node->safe_psql('postgres', $bounds), $defined, $node->name . ': the sequences are as they were defined');
	return;
}

subtest 'a command that is killed behind the fence' => sub {
	my ($move, $holder) = hold_move('--timeout', '60s');
	$two->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 DISABLE');
	$holder->quit;
	await_text($move, 'waiting for the last write');
	kill_command($move->{run});
	nothing_is_drawn($_) foreach $one, $two;
	is(sqlstate($one, 'SET session_replication_role = replica; DELETE FROM insta5.log'), '25006', 'nor does a replica write');
	is((move('--abort'))[0], 0, '--abort');
	go_on($one, '-2|4|7|2|3');
};

# Its session ends at once, but not if it hangs. It would replace the position that the next command keeps.
subtest 'a session of a killed command that still keeps positions' => sub {
	my ($move, $holder) = hold_move('--timeout', '60s');
	my $locker = $one->background_psql('postgres');
	$locker->query_safe('BEGIN; LOCK TABLE snowflake_move_5.positions IN SHARE MODE');
	$holder->quit;
	my $pid;
	await('the positions are to be kept', sub { $pid = $one->safe_psql('postgres', q{SELECT pid FROM pg_locks
		WHERE relation = 'snowflake_move_5.positions'::regclass AND NOT granted}) });
	kill 'STOP', $pid;
	kill_command($move->{run});
	$locker->quit;
	my ($status, $out, $err) = move('--resume');
	kill 'CONT', $pid;
	is($status, 3, '--resume is refused');
	like($err, qr/it has locked snowflake_move_5\.positions on .*process $pid\b/s, 'and names the session');
	await('the session ends', sub { $one->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid") eq '0' });
	is((move('--abort'))[0], 0, '--abort');
	is(sqlstate($one, 'INSERT INTO insta5.log DEFAULT VALUES'), '', 'the shard is open');
};

subtest 'a trigger that was disabled when the command was dead' => sub {
	my ($move, $holder) = hold_move('--timeout', '60s');
	$two->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 DISABLE');
	$holder->quit;
	await_text($move, 'waiting for the last write');
	kill_command($move->{run});
	$one->safe_psql('postgres', 'ALTER TABLE insta5.log DISABLE TRIGGER ALL; INSERT INTO insta5.log VALUES (77)');
	$two->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 ENABLE');
	my ($status, undef, $err) = move('--resume');
	like("$status $err", qr/^0 .*table insta5\.log has no trigger of the fence(?s:.*)the source is open again/s, '--resume closes again');
	is($two->safe_psql('postgres', 'SELECT id FROM insta5.log WHERE id = 77'), '77', 'and the row is on the target');
	is((move('--complete'))[0], 0, '--complete');
	@move = (@move[ 0, 1, 4, 3, 2 ]);
	($one, $two) = ($two, $one);
};

subtest 'a trigger that was disabled, or fires no more in a replica' => sub {
	foreach my $change ('DISABLE TRIGGER snowflake_move', 'ENABLE TRIGGER ALL')
	{
		my ($move, $holder, $table) = hold_move();
		$one->safe_psql('postgres', "ALTER TABLE $table $change");
		$holder->quit;
		is(end_command($move), 0, "move: $change") or diag($move->{err});
		like($move->{err}, qr/table $table has no trigger of the fence that always fires(?s:.*)the source is open again/,
			'the first try of the cutover finds it');
		is(sqlstate($one, "SET session_replication_role = replica; INSERT INTO $table DEFAULT VALUES"), '25006',
			'the second one has made it anew');
		is((move('--complete'))[0], 0, '--complete');
		@move = (@move[ 0, 1, 4, 3, 2 ]);
		($one, $two) = ($two, $one);
	}
};

subtest 'a reader of sequences is not in the way' => sub {
	foreach my $object ('insta5.huge', 'insta5.log')
	{
		is(sqlstate($one, "SELECT snowflake_internal.lock_sequence('$object'::regclass)",
			params => [ '-U', $object eq 'insta5.huge' ? 'other' : 'app' ]), '42501', "lock_sequence() of $object is refused");
	}
	my $reader = $one->background_psql('postgres');
	$reader->query_safe($_) foreach 'BEGIN', map { "SELECT last_value FROM insta5.$_" } @plain, @native;
	my ($status, $out, $err) = move();
	is($status, 0, 'move') or diag($err);
	unlike($err, qr/open again/, 'by the first try');
	$reader->quit;
	is((move('--complete'))[0], 0, '--complete');
	@move = (@move[ 0, 1, 4, 3, 2 ]);
	($one, $two) = ($two, $one);
};

subtest 'there, back by --undo, and there again' => sub {
	is((move('--reversible'))[0], 0, 'move --reversible');
	nothing_is_drawn($one);
	go_on($two, '-3|5|8|3|4');
	is((move('--undo', '--reversible'))[0], 0, '--undo --reversible');
	nothing_is_drawn($two);
	go_on($one, '-4|3|9|4|5');
	is(($one->psql('postgres', 'SELECT count(DISTINCT id) = count(*) FROM insta5.log'))[1], 't', 'no ID came twice');
	@move = (@move[ 0, 1, 4, 3, 2 ]);
	is((move('--undo'))[0], 0, '--undo of that');
	go_on($two, '-5|4|10|5|6');
};

# What verify finds about fences: the object, and the statement of the hint.
sub fences
{
	my (undef, $found) = shard_json($program, 'verify', $one, $two);
	return map { $_->{finding} eq 'fence' ? [ $_->{object}, $_->{hint} =~ /^(.*TRIGGER snowflake_move;)/ ] : () } @$found;
}

subtest 'rows that were written behind the fence are not dropped' => sub {
	is_deeply([ fences() ], [], 'nothing is found before');
	foreach my $verb ([], ['--complete'])
	{
		$one->safe_psql('postgres', 'ALTER TABLE insta5.log DISABLE TRIGGER ALL; INSERT INTO insta5.log VALUES (1), (2)');
		like((fences())[0][0], qr/^table insta5\.log$/, 'verify names the table');
		my ($status, undef, $err) = move(@$verb);
		like("$status $err", qr/^3 .*table insta5\.log is not closed to every write/, "move @$verb refuses");
		$one->safe_psql('postgres', $_) foreach 'ALTER TABLE insta5.log ENABLE TRIGGER ALL', 'VACUUM FREEZE insta5.log';
		$one->safe_psql('postgres', (fences())[0][1]);
		is_deeply([ fences() ], [], 'verify finds the trigger until the statement of its hint has made it anew');
		($status, undef, $err) = move(@$verb);
		like("$status $err", qr/^3 .*rows were written after the shards were closed there, and would be dropped:\n    2 rows: .*SELECT/,
			"move @$verb finds the rows");
		my ($rows) = $err =~ /(FROM ONLY insta5\.log WHERE .*);/;
		is($one->safe_psql('postgres', "SELECT id $rows"), "1\n2", 'and shows them');
		my $owner = $one->safe_psql('postgres', q{SELECT relowner::regrole FROM pg_class WHERE oid = 'insta5.log'::regclass});
		$one->safe_psql('postgres', 'CREATE ROLE keeper LOGIN; GRANT USAGE ON SCHEMA insta5 TO keeper; ALTER TABLE insta5.log OWNER TO keeper');
		($status, undef, $err) = move(@$verb);
		like($err, qr/2 rows: as role keeper, because code of that role can run: SELECT/, 'for the owner of the table');
		$one->safe_psql('postgres', "ALTER TABLE insta5.log OWNER TO $owner; REVOKE USAGE ON SCHEMA insta5 FROM keeper; DROP ROLE keeper");
		is(sqlstate($one, "DELETE $rows"), '25006', 'the table is closed');
		$one->safe_psql('postgres', "BEGIN; ALTER TABLE insta5.log DISABLE TRIGGER snowflake_move; DELETE $rows;
			ALTER TABLE insta5.log ENABLE ALWAYS TRIGGER snowflake_move; COMMIT");
	}
	my ($status, undef, $err) = move('--complete');
	like("$status $err", qr/^0 .*table insta5\.log could be written to for a time/, '--complete says that it sees no deleted rows');
};

subtest 'a trigger of a server that follows' => sub {
	is((move('--reversible'))[0], 0, 'move --reversible');
	is_deeply([ fences() ], [], 'it does not fire for the worker, and that is right');
	$two->safe_psql('postgres', 'ALTER TABLE insta5.log DISABLE TRIGGER ALL');
	$two->safe_psql('postgres', (fences())[0][1]);
	is_deeply([ fences() ], [], 'a disabled one is found');
	is(sqlstate($two, 'INSERT INTO insta5.log DEFAULT VALUES'), '25006', 'the statement of the hint makes it anew');
	is((move('--undo'))[0], 0, 'and the shard is moved back') or diag($move[0]);
};

subtest 'privileges on next_id()' => sub {
	my $acl = q{SELECT proacl FROM pg_proc WHERE oid = 'insta5.next_id()'::regprocedure};
	$two->safe_psql('postgres', 'REVOKE EXECUTE ON FUNCTION insta5.next_id() FROM PUBLIC; GRANT EXECUTE ON FUNCTION insta5.next_id() TO app');
	my $granted = $two->safe_psql('postgres', $acl);
	unlike($granted, qr/[{,]=X/, 'PUBLIC has none');
	is((move('--reversible'))[0], 0, 'move --reversible');
	is($one->safe_psql('postgres', $acl), $granted, 'they move with the shard');
	is((move('--undo', '--reversible'))[0], 0, '--undo');
	is($_->safe_psql('postgres', $acl), $granted, 'and back: ' . $_->name) foreach $two, $one;
	my ($move, $holder) = hold_move($two);
	$two->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION insta5.next_id() TO other');
	$holder->quit;
	is(end_command($move), 3, 'a GRANT during the cutover stops it');
	like($move->{err}, qr/the definition has changed.*^\+ GRANT .* insta5\.next_id\(\) TO other/ms, 'which names it') or diag($move->{err});
	$two->safe_psql('postgres', 'REVOKE EXECUTE ON FUNCTION insta5.next_id() FROM other');
	is((move())[0], 0, 'without it the shard moves') or diag($move[0]);
};

# A statement that names the parent fires no trigger of the table.
subtest 'a parent outside of the shard' => sub {
	$_->safe_psql('postgres', 'CREATE TABLE public.logs (id bigint NOT NULL) PARTITION BY RANGE (id); CREATE TABLE public.base (v text)')
		foreach $one, $two;
	my @attached = ('ALTER TABLE public.logs ATTACH PARTITION insta5.log DEFAULT',
		'table insta5.log is a partition of table public.logs, and the fence does not stop writes to that one',
		'ALTER TABLE public.logs DETACH PARTITION insta5.log;');
	my @inherited = ('ALTER TABLE insta5.users INHERIT public.base',
		'table insta5.users inherits from table public.base, and the fence does not stop writes to that one',
		'ALTER TABLE insta5.users NO INHERIT public.base;');
	my $findings = sub {
		my (undef, $found) = shard_json($program, 'verify', $one, $two);
		return join "\n", map { "$_->{finding}: $_->{problem}: $_->{hint}" } @$found;
	};
	my ($from, $to) = @move[ 2, 4 ];
	$from->safe_psql('postgres', $attached[0]);
	is($findings->(), "fence: $attached[1]: $attached[2]", 'verify finds that of a closed table');
	$from->safe_psql('postgres', $attached[2]);
	is($findings->(), '', 'until the statement of the hint has run');
	is((move('--complete'))[0], 0, '--complete');
	@move = (@move[ 0, 1, 4, 3, 2 ]);
	is((move('--hold', '--reversible'))[0], 0, 'move --hold');
	foreach ([ $to, '--cutover', @attached ], [ $from, '--undo', @inherited ])
	{
		my ($closing, $verb, $attach, $problem, $mend) = @$_;
		$closing->safe_psql('postgres', $attach);
		my ($status, undef, $err) = move($verb);
		like("$status $err", qr/^3 .*: \Q$problem\E\nHINT:  \Q$mend\E/s, "$verb is refused");
		unlike($err, qr/: fence$|blocked/m, 'before anything is blocked');
		$closing->safe_psql('postgres', $mend);
		is((move($verb))[0], 0, "$verb after the statement of the hint") or diag($move[0]);
	}
};

# No other session sees the table before the transaction ends.
subtest 'a transaction that has made a table' => sub {
	my $from = $move[2];
	is((move('--hold'))[0], 0, 'move --hold') or diag($move[0]);
	foreach my $make ('CREATE TABLE insta5.made AS SELECT 1 AS n', 'CREATE TABLE made AS SELECT 1 AS n; ALTER TABLE made SET SCHEMA insta5')
	{
		my $maker = $from->background_psql('postgres');
		$maker->query_safe("BEGIN; $make");
		my ($status, undef, $err) = move('--cutover', '--timeout', '300ms');
		like("$status $err", qr/^3 .*process \d+ \(role .* writes to the shard, and did not end in time/s, "is waited for: $make");
		$maker->query_safe('ROLLBACK');
		$maker->quit;
	}
	# Functions of the extension lock the schema for a reader, too.
	my $reader = $from->background_psql('postgres');
	$reader->query_safe(q{BEGIN; SELECT snowflake_internal.session_begin('insta5', 'BEGIN READ ONLY');
		SELECT * FROM snowflake_internal.session_query('SELECT 1');
		SELECT * FROM snowflake_internal.session_fetch(1) AS r (n text)});
	is((move('--cutover'))[0], 0, 'then the shard moves, and a reader is not in the way');
	$reader->quit;
	is((move('--complete'))[0], 0, '--complete');
};

# Its XID is from before the closing. A savepoint has an XID of its own, of which a snapshot knows nothing.
subtest 'transactions of before the closing that write behind the fence' => sub {
	@move = (@move[ 0, 1, 4, 3, 2 ]);
	my $from = $move[2];
	is((move('--hold'))[0], 0, 'move --hold') or diag($move[0]);
	my @writers = map { $from->background_psql('postgres') } 1, 2;
	$writers[0]->query_safe('BEGIN; SELECT pg_current_xact_id()');
	$writers[1]->query_safe('BEGIN; SELECT pg_current_xact_id(); SAVEPOINT s; CREATE TEMP TABLE t ()');
	is((move('--cutover'))[0], 0, '--cutover does not wait for them');
	my $write = sub {
		my ($id) = @_;
		return "ALTER TABLE insta5.log DISABLE TRIGGER ALL; INSERT INTO insta5.log VALUES ($id); "
			. 'ALTER TABLE insta5.log ENABLE ALWAYS TRIGGER snowflake_move; COMMIT';
	};
	foreach my $id (1, 2)
	{
		my $writer = shift @writers;
		$writer->query_safe($write->($id));
		$writer->quit;
	}
	my $found = sub {
		my ($ids, $text) = @_;
		my ($status, undef, $err) = move('--complete');
		like("$status $err", qr/^3 .*rows were written after the shards were closed there/s, $text) or diag($err);
		my ($rows) = $err =~ /(FROM ONLY insta5\.log WHERE .*);/;
		is($from->safe_psql('postgres', "SELECT id $rows ORDER BY id"), $ids, 'and finds these rows');
		$from->safe_psql('postgres', "BEGIN; ALTER TABLE insta5.log DISABLE TRIGGER snowflake_move; DELETE $rows;
			ALTER TABLE insta5.log ENABLE ALWAYS TRIGGER snowflake_move; COMMIT");
	};
	$found->("1\n2", '--complete refuses');
	$from->safe_psql('postgres', 'ALTER TABLE snowflake_move_5.closings DROP COLUMN running');
	$from->safe_psql('postgres', 'BEGIN; ' . $write->(3));
	$found->('3', '--complete of a record of version 1.1.0, too');
	is((move('--complete'))[0], 0, '--complete');
};

$_->stop foreach $one, $two;
done_testing();
