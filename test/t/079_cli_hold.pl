# snowflake-shard move --hold ends when the target follows and all rows were compared; --cutover does the rest, later. A
# set that is held blocks nobody, is watched by list and verify, and is compared again before its cutover.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use MoveTest;
use OpenMetrics;
use PostgreSQL::Test::Utils;
use ShardTest;
use ShardWriters;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
seed_random();

my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\nmax_connections = 60\n"
	. "max_worker_processes = 12\nmax_logical_replication_workers = 8\nwal_retrieve_retry_interval = 200ms\n";
my @nodes = map { new_server($_, conf => $conf) } qw(one two);
my ($one, $two) = @nodes;
my $port = $two->port;
my ($status, $out, $err);

# What list shows of the shards that are in transit.
sub listed
{
	my (undef, $rows) = shard_json($program, 'list', @nodes);
	return map { $_->{next} // '' ? $_ : () } @$rows;
}

sub findings
{
	my (undef, $found) = shard_json($program, 'verify', @nodes);
	return join "\n", map { "$_->{finding}: $_->{problem}: $_->{hint}" } @$found;
}

# Objects of moves on both servers.
sub leftovers
{
	return join ' ', map { $_->safe_psql('postgres', q{
		SELECT nspname FROM pg_namespace WHERE nspname ~ '^snowflake_move'
		UNION ALL SELECT pubname FROM pg_publication UNION ALL SELECT subname FROM pg_subscription
		UNION ALL SELECT slot_name FROM pg_replication_slots}) } @nodes;
}

make_written_shard(@nodes);
# May run verify.
$_->safe_psql('postgres', 'CREATE ROLE onlooker LOGIN BYPASSRLS') foreach @nodes;
$one->safe_psql('postgres', "GRANT USAGE ON SCHEMA insta5 TO onlooker; GRANT SELECT ON ALL $_ IN SCHEMA insta5 TO onlooker")
	foreach 'TABLES', 'SEQUENCES';
my $definition = dump_of($one, 'insta5');
my $writers = start_writers(3, 'insta5', [qw(log part)], map { $_->connstr('postgres') } @nodes);
my $by_hand = 'SET session_replication_role = replica; ';

subtest 'a set is held while clients write' => sub {
	moves([ @nodes, '--hold' ], 'held', 'move --hold');
	unlike($move_error, qr/fence$|blocked/m, 'nothing is blocked');
	my ($shard) = listed();
	like("$shard->{state} $shard->{server} $shard->{compared_at} $shard->{next}",
		qr/^following \S+:${\$one->port}\/postgres \d{4}-\S+Z snowflake-shard move insta5 --from .* --cutover$/,
		'list: it follows, the time of the comparison, and the next command');
	like($shard->{behind}, qr/^\d+$/, 'how far it is behind');
	like((run_shard($program, 'list', @nodes))[1], qr/\bfollowing\b.* (?:bytes|kB|MB) +\d{4}-\S+Z/, 'the same in the table');
	($status, $out) = run_shard($program, 'list', @nodes, '--format', 'prometheus');
	my $samples = samples_of($out);
	my %labels = (shard => 5, schema => 'insta5', server => $shard->{server}, other => $shard->{other});
	is(sample($samples, 'snowflake_shard_in_transit', %labels, state => 'following'), 1, 'a metric of the shard in transit');
	like(sample($samples, 'snowflake_shard_follower_lag_bytes', %labels), qr/^\d+$/, 'and of how far it is behind');
	is(sample($samples, 'snowflake_shards', server => $shard->{other}, state => 'open'), 0, 'a server without shards');
	is($one->safe_psql('postgres', q{SELECT oid::regclass FROM pg_class WHERE relkind = 'S' AND relnamespace::regnamespace::text ~ '^snowflake'}),
		'', 'the record has no sequence, which FOR ALL SEQUENCES (PostgreSQL 19) would publish');
	is(findings(), '', 'verify finds nothing');
	is((run_shard($program, 'verify', '--rows', @nodes))[0], 0, 'nor does verify --rows');
	my @onlooker = map { $_->connstr('postgres') . ' user=onlooker' } @nodes;
	($status, $out, $err) = run_shard($program, 'verify', @onlooker);
	is($status, 0, 'verify by another role') or diag("$out$err");
	like($err, qr/schema snowflake_move_5: the definition is not compared, because only the role of the move/, 'tells of the rest');
	foreach my $verb ([], ['--resume'], ['--undo'], ['--complete'])
	{
		is_refused([ @nodes, @$verb ], qr/--cutover opens the target and closes the source\. .* --abort undoes the move/,
			"refused: move @$verb");
	}
	($status, $out, $err) = run_shard($program, 'move', '--shards', '5', '--from', $one, '--to', $two);
	like("$status $out", qr/^1 .*shard 5, schema insta5, is held before the cutover\n    HINT: .* --cutover/,
		'a list of moves does not cut it over');
	($status, $out, $err) = run_shard($program, 'run', @nodes, '--shards', '5', '--sql', 'CREATE TABLE only_here ()');
	like("$status $err", qr/^3 .*is held before the cutover\nHINT: .* --cutover/, 'run refuses a held shard');
};

subtest 'a row that was changed by hand on the target' => sub {
	$two->safe_psql('postgres', "$by_hand UPDATE insta5.counted SET v = 'x' WHERE n = 1");
	my $differs = qr/the rows differ, and nothing was opened\. Start anew: --abort\n    table insta5\.counted: \S+ has 1 row, key \(1\), \S+:$port\/postgres has 1 row, key \(1\), which is not the same/;
	is_refused([ @nodes, '--hold' ], $differs, 'another --hold finds it');
	is_refused([ @nodes, '--cutover' ], $differs, 'and so does --cutover, before anything is blocked');
	unlike($move_error, qr/fence$|blocked/m, 'nothing was blocked');
	$two->safe_psql('postgres', "$by_hand UPDATE insta5.counted SET v = 'a' WHERE n = 1");
	moves([ @nodes, '--hold' ], 'held', 'without it, the set is held again');
};

# A session that runs statements again and again, each time in a transaction of their own. Each try of a comparison takes longer
# than its pause.
sub start_loop
{
	my ($sql) = @_;
	$one->safe_psql('postgres', 'CREATE TABLE go ()');
	my $session = $one->background_psql('postgres');
	$session->query_until(qr/begun/, qq{\\echo begun
		DO \$\$BEGIN WHILE EXISTS (SELECT FROM pg_class WHERE relname = 'go') LOOP $sql; COMMIT; PERFORM pg_sleep(0.002); END LOOP; END\$\$;
	});
	return $session;
}

sub end_loop
{
	my ($session) = @_;
	$one->safe_psql('postgres', 'DROP TABLE go');
	return $session->quit;
}

# Each state of the row is on the target a moment later. With the trigger none is, so that nothing tells whether the row is right.
subtest 'a row that is written to all the time' => sub {
	my $writer = start_loop(q{UPDATE insta5.counted SET v = clock_timestamp() WHERE n = 1});
	moves([ @nodes, '--hold' ], 'held', 'is compared');
	unlike($move_error, qr/compared: /, 'and not left out');
	$two->safe_psql('postgres', q{
		CREATE FUNCTION public.other() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.v := 'x'; RETURN NEW; END$$;
		CREATE TRIGGER other BEFORE UPDATE ON insta5.counted FOR EACH ROW EXECUTE FUNCTION public.other();
		ALTER TABLE insta5.counted ENABLE REPLICA TRIGGER other});
	my $unknown = qr/rows were written to at each of \d+ tries, and 1 of \d+ parts of the table could not be compared: 1 row, key \(1\)/;
	is_refused([ @nodes, '--hold' ], qr/not all rows could be compared, and nothing was opened\n    table insta5\.counted: $unknown/,
		'one that cannot be compared is not equal');
	($status, $out, $err) = run_shard($program, 'verify', '--rows', @nodes);
	is($status, 3, 'verify --rows: exit code 3') or diag($out);
	like($err, qr/^snowflake-shard: shard 5: table insta5\.counted: $unknown/m, 'and the row is named');
	$two->safe_psql('postgres', 'DROP FUNCTION public.other CASCADE');
	end_loop($writer);
	$one->safe_psql('postgres', q{UPDATE insta5.counted SET v = 'a' WHERE n = 1});
	moves([ @nodes, '--hold' ], 'held', 'without the trigger it is held again');
};

# All rows get other versions, as by REPACK (CONCURRENTLY), so that each could have been written to.
subtest 'a table that is rewritten all the time' => sub {
	$one->safe_psql('postgres', 'CREATE ACCESS METHOD other_heap TYPE TABLE HANDLER heap_tableam_handler');
	$two->safe_psql('postgres', "$by_hand DELETE FROM insta5.counted");
	my $owner = start_loop(join '; ', map { "ALTER TABLE insta5.counted SET ACCESS METHOD $_" } 'other_heap', 'heap');
	is_refused([ @nodes, '--hold' ], qr/not all rows could be compared, and nothing was opened
    table insta5\.counted: the table was rewritten at each of \d+ tries/, 'an empty copy is not equal');
	end_loop($owner);
	is_refused([ @nodes, '--hold' ], qr/the rows differ, and nothing was opened/, 'and then it is known to differ');
	$two->safe_psql('postgres', "$by_hand INSERT INTO insta5.counted OVERRIDING SYSTEM VALUE VALUES " . $one->safe_psql('postgres',
		q{SELECT string_agg(format('(%s, %L)', n, v), ', ') FROM insta5.counted}));
	moves([ @nodes, '--hold' ], 'held', 'with its rows it is held again');
};

subtest 'a table that is locked while verify compares rows' => sub {
	my $holder = $one->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta5.counted IN ACCESS EXCLUSIVE MODE');
	local $ENV{PGOPTIONS} = '-c lock_timeout=500ms';
	($status, $out, $err) = run_shard($program, 'verify', '--rows', @nodes);
	is($status, 3, 'exit code 3');
	my $holds = "\\S+:${\$one->port}/postgres has it locked by process \\d+ \\(role .*\\): .*LOCK TABLE";
	like($err, qr/^snowflake-shard: shard 5: rows are not compared: $holds/m,
		'the process is named') or diag($out);
	is(scalar(() = $err =~ /key users_country_fkey .* was not checked/g), 1, 'a key between owners is told once');
	$holder->quit;
	delete $ENV{PGOPTIONS};
	is((run_shard($program, 'verify', '--rows', @nodes))[0], 0, 'then all rows are compared');
};

subtest 'verify --rows by a role without a right' => sub {
	$two->safe_psql('postgres', 'REVOKE SELECT ON insta5.counted FROM onlooker');
	($status, $out, $err) = run_shard($program, 'verify', '--rows', map { $_->connstr('postgres') . ' user=onlooker' } @nodes);
	is($status, 3, 'exit code 3');
	like($err, qr/^snowflake-shard: shard 5: rows are not compared: ERROR:  permission denied for table counted\nSERVER:.*
HINT:  GRANT SELECT ON insta5\.counted TO onlooker;$/m, 'the shard and the missing right are named');
	like($out, qr/^1 shard on 2 servers, \d findings?$/m, 'and the findings are told') or diag($err);
	$two->safe_psql('postgres', 'GRANT SELECT ON insta5.counted TO onlooker');
};

subtest 'a comparison that was interrupted is continued' => sub {
	# As a command leaves it that was killed behind these tables.
	$one->safe_psql('postgres', q{
		INSERT INTO snowflake_move_5.compared
		SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'insta5'::regnamespace AND relkind = 'r' AND relname <> 'log'});
	$two->safe_psql('postgres', "$by_hand UPDATE insta5.counted SET v = 'x' WHERE n = 1");
	moves([ @nodes, '--hold' ], 'held', 'tables that were compared are not read again');
	$two->safe_psql('postgres', "$by_hand UPDATE insta5.counted SET v = 'a' WHERE n = 1");
	is($one->safe_psql('postgres', 'SELECT count(*) FROM snowflake_move_5.compared'), '0', 'at its end none is noted');
};

# The values change without a change in the WAL that is replicated, and pg_dump writes the same definition.
subtest 'a table is rewritten while the set is held' => sub {
	my $rewrite = "ALTER TABLE insta5.counted ALTER v TYPE text USING 'x'";
	my $back = "ALTER TABLE insta5.counted ALTER v TYPE text USING CASE n WHEN 1 THEN 'a' ELSE 'b' END";
	my $differs = qr/may have been rewritten, so all rows are compared(?s:.*)the rows differ, and nothing was opened\. Start anew: --abort\n    table insta5\.counted: /;
	$one->safe_psql('postgres', $rewrite);
	$one->safe_psql('postgres', "INSERT INTO snowflake_move_5.compared VALUES ('insta5.counted')"); # as of a command that was killed before
	is_refused([ @nodes, '--cutover', '--verify', '0' ], $differs, "--cutover, try $_, whatever --verify says") foreach 1, 2;
	unlike($move_error, qr/fence$|blocked/m, 'nothing was blocked');
	$one->safe_psql('postgres', $back);
	moves([ @nodes, '--hold' ], 'held', 'with the values of before it is held again');
	is(findings(), '', 'and verify is content');
	my $holder = $one->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta5.log IN ROW EXCLUSIVE MODE');
	my $move = start_command('move', 'source: triggers of the fence', 'insta5', '--from', $one, '--to', $two, '--cutover',
		'--verify', '0', '--timeout', '60s');
	$one->safe_psql('postgres', $rewrite);
	$holder->quit;
	is(end_command($move), 3, 'between the comparison and the fence: --cutover fails');
	like($move->{err}, $differs, 'for the same reason');
	unlike($move->{err}, qr/target: open$/m, 'nothing is opened');
	$one->safe_psql('postgres', $back);
	moves([ @nodes, '--hold' ], 'held', 'held again');
};

subtest 'the definition changes while the set is held' => sub {
	$one->safe_psql('postgres', 'REINDEX TABLE CONCURRENTLY insta5.log');
	like(findings(), qr/^held: the definition of shard 5 has changed.*: snowflake-shard move insta5 .* --hold compares it/,
		'verify tells that the catalogue was written');
	moves([ @nodes, '--hold' ], 'held', '--hold finds the same definition');
	is(findings(), '', 'and verify is content');
	$one->safe_psql('postgres', 'ALTER TABLE insta5.log ADD COLUMN more text');
	# A row with the column stops the worker of the target.
	like(findings(), qr/^held: the definition of shard 5 has changed/m, 'a column that was added');
	is_refused([ @nodes, '--cutover' ], qr/the definition has changed since it was copied.*\+ .*more text/s,
		'--cutover ends before anything is blocked');
	unlike($move_error, qr/fence$|blocked/m, 'nothing was blocked');
	moves([ @nodes, '--abort' ], 'aborted', '--abort removes the copy');
	is(leftovers(), ' ', 'nothing is left');
	$one->safe_psql('postgres', 'ALTER TABLE insta5.log DROP COLUMN more');
};

subtest 'a partition in another schema is made while the set is held' => sub {
	$one->safe_psql('postgres', 'CREATE SCHEMA outside; CREATE TABLE insta5.kinds (n integer PRIMARY KEY) PARTITION BY LIST (n);
		ALTER TABLE insta5.kinds OWNER TO app');
	moves([ @nodes, '--hold' ], 'held', 'held');
	$one->safe_psql('postgres', 'CREATE TABLE outside.counted () INHERITS (insta5.counted)');
	like(findings(), qr/^held: the definition of shard 5 has changed/m, 'verify tells of a child');
	$one->safe_psql('postgres', 'DROP TABLE outside.counted');
	is(findings(), '', 'not when it is dropped');
	my $partition = 'CREATE TABLE outside.kinds PARTITION OF insta5.kinds DEFAULT; INSERT INTO insta5.kinds VALUES (1)';
	my $needs = qr/:${\$one->port}\/postgres: objects of other schemas need the shard.*:\n    table outside\.kinds needs table insta5\.kinds\n/;
	$one->safe_psql('postgres', $partition);
	is_refused([ @nodes, $_ ], qr/${needs}HINT: .* SET SCHEMA/, $_) foreach '--hold', '--cutover';
	unlike($move_error, qr/fence$|blocked/m, 'nothing was blocked');
	$one->safe_psql('postgres', 'DROP TABLE outside.kinds');
	my $holder = $one->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta5.log IN ROW EXCLUSIVE MODE');
	my $move = start_command('move', 'source: triggers of the fence', 'insta5', '--from', $one, '--to', $two, '--cutover',
		'--timeout', '60s');
	$one->safe_psql('postgres', $partition);
	$holder->quit;
	is(end_command($move), 3, 'one that comes before the fence: --cutover fails');
	like($move->{err}, qr/$needs(?s:.*)the source is open again/, 'and the source is open');
	$one->safe_psql('postgres', 'DROP SCHEMA outside CASCADE');
	$two->safe_psql('postgres', 'CREATE VIEW public.report AS SELECT * FROM insta5.counted');
	is_refused([ @nodes, '--abort' ], qr/:$port\/postgres: objects of other schemas would be dropped, too:\n    .*view public\.report needs table insta5\.counted/,
		'--abort drops nothing of other schemas of the target');
	$two->safe_psql('postgres', 'DROP VIEW public.report');
	moves([ @nodes, '--abort' ], 'aborted', '--abort');
	$one->safe_psql('postgres', 'DROP TABLE insta5.kinds');
};

subtest 'the target stops following' => sub {
	moves([ @nodes, '--hold', '--reversible' ], 'held', 'held again, to be reversible');
	$two->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 DISABLE');
	await('the sender has ended', sub {
		$one->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_slots WHERE active') eq '0' });
	like(findings(), qr/^held: server \S+:$port\/postgres does not follow shard 5: it does not read slot \S+: .* --cutover /,
		'verify tells');
	$two->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 ENABLE');
};

subtest 'a sequence is altered while the set is held' => sub {
	foreach ([ 'SEQUENCE insta5.unused %s', 'MAXVALUE 1000', 'NO MAXVALUE' ], [ 'SEQUENCE insta5.unused %s', 'START 7', 'START 1' ],
		[ 'SEQUENCE insta5.down %s', 'NO CYCLE', 'CYCLE' ], [ 'TABLE insta5.counted ALTER n SET %s', 'CYCLE', 'NO CYCLE' ])
	{
		my ($object, $change, $back) = @$_;
		$one->safe_psql('postgres', 'ALTER ' . sprintf $object, $change);
		like(findings(), qr/^held: the definition of shard 5 has changed/m, "$change of $object: verify tells");
		is_refused([ @nodes, '--cutover' ], qr/the definition has changed since it was copied/, '--cutover');
		unlike($move_error, qr/fence$|blocked/m, 'nothing was blocked');
		$one->safe_psql('postgres', 'ALTER ' . sprintf $object, $back);
	}
	unlike(findings(), qr/definition/, 'without the changes nothing is found');
};

subtest 'a subscription would be a synchronous standby' => sub {
	my $names = sub {
		my ($node, $names) = @_;
		$node->safe_psql('postgres', $_) foreach "ALTER SYSTEM SET synchronous_standby_names = '$names'", 'SELECT pg_reload_conf()';
		await('the setting is loaded', sub { $node->safe_psql('postgres', 'SHOW synchronous_standby_names') eq $names });
	};
	my $any = q{synchronous_standby_names = '\*': a subscription counts as a standby by \*, };
	$names->($one, '*');
	like(findings(), qr/^held: $any.*: ALTER SYSTEM SET .* with the names of the standbys in place of \*/, 'verify tells');
	$names->($one, '');
	$names->($two, '*');
	my $standby = IPC::Run::start([ 'pg_receivewal', '-D', PostgreSQL::Test::Utils::tempdir(), '-d', $two->connstr, '--synchronous' ],
		'>', '/dev/null', '2>', '/dev/null');
	await('the target has a standby', sub { $two->safe_psql('postgres', 'SELECT sync_state FROM pg_stat_replication') eq 'sync' });
	is_refused([ @nodes, '--cutover' ], qr/:$port\/postgres: $any.*\nHINT: .* with pg_receivewal in place of \*/,
		'reverse replication would be one of the target');
	unlike($move_error, qr/fence$|blocked/m, 'nothing was blocked');
	$names->($two, '');
	$standby->kill_kill;
};

subtest 'the cutover' => sub {
	my $killed = start_command('move', 'comparing rows', 'insta5', '--from', $one, '--to', $two, '--cutover');
	kill_command($killed->{run});
	moves([ @nodes, '--cutover' ], 'moved with reverse replication', '--cutover, after one that was killed');
	like($move_error, qr/writes were blocked for \d+ ms/, 'writes were blocked now');
	moves([ @nodes, '--cutover' ], 'moved with reverse replication', 'it can be given again');
	is((listed())[0]{state}, 'open with reverse replication', 'list');
	moves([ @nodes, '--undo' ], 'undone', 'undone');
	moves([ @nodes, '--hold' ], 'held', 'and held again, which drops the closed rows');
	moves([ @nodes, '--cutover' ], 'moved', 'and moved');
	my @lost = lost_writes($two, 'postgres', 'insta5', stop_writers($writers));
	is("@lost[0 .. ($#lost > 5 ? 5 : $#lost)]", '', 'no write was lost');
	is(dump_of($two, 'insta5'), $definition, 'the definition is the same');
	moves([ @nodes, '--complete' ], 'dropped', '--complete');
	is(leftovers(), ' ', 'nothing is left');
};

subtest 'a list is held as a whole, and cut over set by set' => sub {
	$one->safe_psql('postgres', "SELECT snowflake_create_shard($_, 'insta$_');
		CREATE TABLE insta$_.t (id bigint PRIMARY KEY DEFAULT insta$_.next_id(), v text); INSERT INTO insta$_.t (v) VALUES ('a')")
		foreach 1 .. 4;
	my @list = ('--from', $one, '--to', $two, '--together', 2);
	my $move = sub { (run_shard($program, 'move', @_))[0] };
	is($move->('--shards', '1-4', @list, '--hold'), 0, 'move --shards 1-4 --hold');
	is(join(' ', map { "$_->{shard} $_->{state}" } listed()), join(' ', map { "$_ following" } 1 .. 4), 'all follow');
	is($move->('--shards', '1-2', @list, '--cutover'), 0, 'the first set');
	is(join(' ', map { "$_->{shard} $_->{state}" } listed()), '3 following 4 following 1 open 2 open', 'it is moved');
	is($move->('--shards', '1-4', @list, '--hold'), 0, 'another --hold leaves it');
	is($move->('--shards', '1-4', @list, '--cutover'), 0, '--cutover of all');
	is(join(' ', map { "$_->{shard} $_->{state}" } listed()), '1 open 2 open 3 open 4 open', 'all are moved');
	is($move->('--shards', '1-4', @list, '--complete'), 0, '--complete');
};

subtest 'a rehearsal' => sub {
	my @move = ('move', '--shards', '1-2', '--from', $two, '--to', $one, '--together', 1);
	($status, my $rows, $err) = shard_json($program, @move, '--rehearse', '--reversible');
	is($status, 0, 'move --rehearse') or diag($err);
	my @items = ('definition', 'rows', 'indexes, keys, triggers', 'catching up', 'comparison', 'expected pause', 'WAL kept',
		'behind', 'cutover', 'retreat before it', 'retreat after it');
	is(join('; ', map { "$_->{shards} $_->{item}" } @$rows), join('; ', map { my $n = $_; map { "$n $_" } @items } 1, 2),
		'a line for each step of each set');
	my %of_second = map { $_->{item} => $_ } grep { $_->{shards} eq '2' } @$rows;
	like($of_second{rows}{bytes}, qr/^[1-9]/, 'the bytes that were copied');
	is($of_second{comparison}{text}, '1 row', 'the rows that were compared');
	like("$of_second{'expected pause'}{ms} $of_second{'expected pause'}{text}", qr/^\d+ measured with 1 table and 1 sequence; /,
		'the pause');
	like(join(' ', map { $_->{text} =~ /(--\w+)$/ } @of_second{ @items[ 8 .. 10 ] }), qr/^--cutover --abort --undo$/,
		'the commands of the day');
	unlike(leftovers(), qr/rehears/, 'nothing is left of it but the sets');
	is(join(' ', map { "$_->{shard} $_->{state}" } listed()), '1 following 2 following', 'which are held');
	($status, $out, $err) = run_shard($program, 'move', 'insta2', '--from', $two, '--to', $one, '--cutover');
	is("$status $out", "0 1 shard moved with reverse replication: 2\n", 'the cutover of one');
	my $killed = start_command('move', 'rehearsal of shard 1: .*target: rows', 'insta1', '--from', $two, '--to', $one, '--rehearse');
	kill_command($killed->{run});
	is((run_shard($program, 'move', 'insta1', '--from', $two, '--to', $one, '--abort'))[0], 0, '--abort of a rehearsal that was killed');
	is((run_shard($program, 'move', 'insta2', '--from', $two, '--to', $one, '--complete'))[0], 0, '--complete');
	is(leftovers(), ' ', 'nothing is left');
};

subtest '--resume of a command with --hold ends before the cutover' => sub {
	my @move = ('insta3', '--from', $two, '--to', $one);
	my $killed = start_command('move', 'target: rows', @move, '--hold');
	kill_command($killed->{run});
	is((run_shard($program, 'move', @move, '--cutover'))[0], 3, '--cutover is refused before the end of the comparison');
	$one->safe_psql('postgres', 'CREATE VIEW public.report AS SELECT * FROM insta3.t');
	like((run_shard($program, 'move', @move, '--resume'))[2], qr/would be dropped, too:\n    .*view public\.report needs table insta3\.t/,
		'a copy that begins again drops nothing of other schemas');
	$one->safe_psql('postgres', 'DROP VIEW public.report');
	like((run_shard($program, 'move', @move, '--resume'))[1], qr/^1 shard held: 3/, '--resume');
	is((run_shard($program, 'move', @move, '--abort'))[0], 0, '--abort');
	is(leftovers(), ' ', 'nothing is left');
};

$_->stop foreach @nodes;
done_testing();
