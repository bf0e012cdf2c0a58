# snowflake-shard move --reversible and --undo: the old server follows the new one, closed to everybody else, and takes
# the shard back in a moment, there and back and there again, while clients write and whatever is killed.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use IPC::Run;
use MoveTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use ShardWriters;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $program = shard_program();
seed_random();

# Two servers, and the same way in the other direction.
my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\nmax_connections = 60\n"
	. "max_worker_processes = 12\nmax_logical_replication_workers = 8\nmax_sync_workers_per_subscription = 6\n";
my @nodes = map { new_server($_, conf => $conf) } qw(one two);
my @back = reverse @nodes;
my ($status, $out, $err);

# Where the shard is open, and what verify finds.
sub place
{
	my (undef, $rows) = shard_json($program, 'map', @nodes);
	my (undef, $found) = shard_json($program, 'verify', @nodes);
	return join "\n", (map { $_->{port} == $nodes[0]->port ? 0 : 1 } grep { $_->{schema} eq 'insta5' } @$rows),
		map { "$_->{finding}: $_->{object}: $_->{problem}" } @$found;
}

# The states of the shard, in the order of the servers.
sub listed
{
	my (undef, $rows) = shard_json($program, 'list', @nodes);
	return join '|', map { $_->{state} } grep { $_->{schema} eq 'insta5' } @$rows;
}

sub await_equal
{
	my ($table) = @_;
	my $sql = "SELECT md5(coalesce(string_agg(t::text, ',' ORDER BY t::text), '')) FROM insta5.$table AS t";
	await("$table is equal on both servers",
		sub { $nodes[0]->safe_psql('postgres', $sql) eq $nodes[1]->safe_psql('postgres', $sql) });
	return;
}

make_written_shard(@nodes);
my $definition = dump_of($nodes[0], 'insta5');
my $writers = start_writers(4, 'insta5', [qw(log part)], map { $_->connstr('postgres') } @nodes);

# The target publishes, and the source reaches it.
my $port;
subtest 'the source follows the target' => sub {
	$nodes[1]->append_conf('postgresql.conf', 'wal_level = replica');
	$nodes[1]->restart;
	is(move(@nodes, '--dry-run'), 'exit code 0', 'a move without reverse replication needs no wal_level on the target')
		or diag($move_error);
	$port = $nodes[1]->port;
	# From PostgreSQL 19 on the slot raises the level.
	my $low = $nodes[1]->safe_psql('postgres', 'SHOW server_version_num') < 190000;
	like(move(@nodes, '--dry-run', '--reversible'), $low ? qr/^1 \S+:$port\/postgres: wal_level = replica\n/ : qr/^exit code 0$/,
		'one with reverse replication needs it before 19');
	$nodes[1]->append_conf('postgresql.conf', 'wal_level = logical');
	$nodes[1]->restart;
	like(move(@nodes, '--dry-run', '--reversible', '--target', 'host=/nonexistent'),
		qr/^1 \S+:${\$nodes[0]->port}\/postgres: SUBSCRIPTION snowflake_move_5: .*nonexistent.*\n    HINT: .* --target/,
		'and a way from the source to the target');
	moves([ @nodes, '--reversible' ], 'moved with reverse replication', 'move --reversible');
	is(place(), '1', 'it is open on the target, and verify finds nothing');
	is(listed(), 'open with reverse replication', 'list shows it once');
	my $table = $nodes[0]->safe_psql('postgres', q{SELECT min(oid)::regclass FROM pg_class
		WHERE relnamespace = 'insta5'::regnamespace AND relkind = 'r'});
	$nodes[0]->safe_psql('postgres', "CREATE VIEW public.report AS SELECT * FROM $table");
	my ($refused, undef, $why) = run_shard($program, 'move', 'insta5', '--from', $nodes[0], '--to', $nodes[1], '--complete');
	like("$refused $why", qr/^3 .*objects of other schemas would be dropped, too:\n    .*view public\.report needs table/s,
		'--complete drops nothing of other schemas of the source');
	is(listed(), 'open with reverse replication', 'and reverse replication goes on');
	$nodes[0]->safe_psql('postgres', 'DROP VIEW public.report; CREATE EXTENSION pg_trgm SCHEMA insta5');
	($refused, undef, $why) = run_shard($program, 'move', 'insta5', '--from', $nodes[0], '--to', $nodes[1], '--complete');
	like("$refused $why",
		qr/^3 .*extension pg_trgm is installed in schema insta5, and is of the whole database\nHINT:  ALTER EXTENSION pg_trgm SET SCHEMA public;$/s,
		'nor an extension');
	is(listed(), 'open with reverse replication', 'before reverse replication ends');
	$nodes[0]->safe_psql('postgres', 'DROP EXTENSION pg_trgm');
	my $terminal = sub { my ($columns) = @_;
		local $ENV{SHELL} = '/bin/sh'; # else that of the account, which may be nologin
		my $words = join ' ', map { "'$_'" } $program, 'list', map { $_->connstr('postgres') =~ s/'//gr } @nodes;
		return (run_command([ 'script', '-qec', "stty cols $columns; $words", '/dev/null' ]))[0] =~ s/\r//gr; };
	like($terminal->(120), qr/^shard .* behind\n.*^shard 5, next: snowflake-shard move insta5 .*--complete$/ms,
		'on a narrow terminal the next command stands below the table');
	like($terminal->(1000), qr/^shard .* next\n 5 .*--complete$|^shard .* next\n\s*5 .*--complete/m, 'on a wide one in it');
	($status, $out, $err) = run_shard($program, 'run', @nodes, '--shards', '5', '--sql', 'CREATE TABLE only_there ()');
	my $command = qr/\S+ move insta5 --from \S+:${\$nodes[0]->port}\S* --to \S+:$port\S* --complete/;
	like("$status $err",
		qr/^3 .*shard 5, schema insta5, has reverse replication\nHINT:  $command stops reverse replication/,
		'run refuses a shard that has reverse replication, and names what ends it');
	($status, $out, $err) =
		run_shard($program, 'clone', $nodes[1], '--template', 'insta5', '--shards', '6', '--schema', 'insta{}');
	like("$status $err",
		qr/^3 .*schema insta5, has reverse replication\nHINT: .* --complete stops reverse replication, and drops the old rows for good\. .*Nothing was made/,
		'clone refuses a template with triggers of a move');
	is(sqlstate($nodes[0], "INSERT INTO insta5.log (v) VALUES ('x')"), '25006', 'the source is closed');
	$nodes[1]->safe_psql('postgres', 'INSERT INTO insta5.empty DEFAULT VALUES; INSERT INTO insta5.empty DEFAULT VALUES');
	await_equal('empty');
	$nodes[1]->safe_psql('postgres', 'TRUNCATE insta5.empty');
	await_equal('empty');
	is($nodes[0]->safe_psql('postgres', 'SELECT count(*) FROM insta5.empty'), '0', 'the source follows a TRUNCATE');
};

subtest 'verify --rows compares the copy with the shard while clients write' => sub {
	# Its rows are compared while clients write.
	my $rows;
	($status, $rows, $err) = shard_json($program, 'verify', '--rows', @nodes);
	is("$status " . @$rows, '0 0', 'verify --rows: the copy has the rows of the shard') or diag(explain($rows));
	$nodes[0]->safe_psql('postgres', 'SET session_replication_role = replica; INSERT INTO insta5.empty VALUES (1)');
	($status, $rows) = shard_json($program, 'verify', '--rows', @nodes);
	my $too_many = qr/\S+:${\$nodes[0]->port}\/postgres has 1 row, key \(1\)/;
	ok(@$rows == 1 && "$status $rows->[0]{finding} $rows->[0]{problem}" =~
			/^1 rows table insta5\.empty: \S+:$port\/postgres has no row, $too_many$/,
		'verify --rows: a row too many') or diag(explain($rows));
	like($rows->[0]{hint},
		qr/^--undo would open these rows\. snowflake-shard move insta5 --from .* --complete stops reverse replication/,
		'with what it is for reverse replication');
	is((run_shard($program, 'verify', @nodes))[0], 0, 'verify alone does not compare');
	(undef, undef, $err) = run_shard($program, 'verify', '--rows', $nodes[1]);
	like($err, qr/shard 5: rows are not compared: give verify server \S+, too/, 'verify --rows: one server alone');
	$nodes[0]->safe_psql('postgres', 'SET session_replication_role = replica; DELETE FROM insta5.empty');
};

subtest 'back, there again and back again' => sub {
	moves([ @nodes, '--undo', '--reversible' ], 'undone with reverse replication', 'back');
	unlike($move_error, qr/comparing rows(?s:.*)fence$/m, 'no rows are compared before the fence');
	is(place(), '0', 'open there');
	moves([ @nodes, '--reversible' ], 'moved with reverse replication', 'a new move uses it');
	like($move_error, qr/follows the shard, and has its rows: nothing is copied/, 'and says so');
	$nodes[1]->safe_psql('postgres', 'REINDEX TABLE CONCURRENTLY insta5.empty');
	moves([ @nodes, '--undo', '--reversible' ], 'undone with reverse replication', 'back again');
	like($move_error, qr/all rows are compared(?s:.*)fence$/m, 'all rows are compared if the catalogue was written');
	moves([ @back, '--undo', '--reversible' ], 'undone with reverse replication', 'the undo is undone');
	is(place(), '1', 'open there');
};

subtest 'reverse replication is used once' => sub {
	moves([ @nodes, $_ ], 'moved with reverse replication', "$_ does nothing") foreach '--resume', '--reversible';
	like($move_error, qr/shard 5, schema insta5, is at \S+ already/, 'and says so');
	is_refused([ @nodes, '--abort' ], qr/no move of shard 5, schema insta5, to be aborted.*--undo moves the shard back/s, '--abort');
	is_refused([ @back, '--resume' ], qr/has reverse replication\nHINT: .*--undo/, '--resume in the other direction');
	# As a command that was killed between the two commits that begin reverse replication.
	$nodes[1]->safe_psql('postgres', q{UPDATE snowflake_move_5.state SET step = 'open', is_reverse = false});
	moves([ @nodes, '--undo' ], 'undone', '--undo');
	like($move_error, qr/writes were blocked for \d+ ms/, 'the pause is printed');
	is($nodes[1]->safe_psql('postgres', 'SELECT step, is_reverse, is_equal FROM snowflake_move_5.state'), 'moved|t|t',
		'the record of the target has been that of reverse replication');
	is(place(), '0', 'it is open on the source');
	is(dump_of($nodes[0], 'insta5'), $definition, 'the definition is what it was');
	moves([ @nodes, '--undo' ], 'undone', 'a second --undo does nothing');
	is_refused([ @back, '--undo' ], qr/no reverse replication.*was made without --reversible/s,
		'after an undo there is none');
	moves([ @back, '--complete' ], 'dropped', '--complete of the target');
	moves([ @back, '--complete' ], 'dropped', 'which does nothing then');
};

# There and back, and somebody is killed each time. The same command line goes on.
my @steps = ('target: publication', 'target: waiting until', 'source: triggers', 'source: fence', 'target: waiting for',
	'target: open',
	'both: comparing', 'both: subscription', 'source: subscription');
my $from = 0;
my $step = int(rand(@steps));
my $trials = trials(2, 200);
my @faults;

subtest 'the same command line goes on after any kill' => sub {
	foreach my $trial (1 .. $trials)
	{
		show_progress('there and back', $trial, $trials);
		$step = ($step + 1) % @steps;
		my $victim = (qw(command source target))[ rand 3 ];
		my @way = ($nodes[$from], $nodes[ 1 - $from ]);
		# The one or the other way is disturbed; two times of three the shard comes back at once.
		my $is_undone = rand() < 0.5;
		my $comes_back = $is_undone || rand() < 0.33;
		push @faults, "move: $move_error" if $is_undone && move(@way, '--reversible', '--timeout', '5s') !~ /^0/;
		my @command = $is_undone ? (@way, '--undo') : (@way, '--reversible');
		my @victims = $is_undone ? reverse @way : @way;
		my $run = start_command('move', $steps[$step], 'insta5', '--from', $command[0], '--to', $command[1], $command[2],
			'--timeout', '5s');
		usleep(rand(30_000));
		kill_command($run->{run}) if $victim eq 'command';
		foreach my $node ($victim eq 'source' ? $victims[0] : $victim eq 'target' ? $victims[1] : ())
		{
			crash($node);
			start_server($node);
		}
		eval { end_command($run) };
		my $what = ($is_undone ? 'undo' : 'move') . ", $victim killed at \"$steps[$step]\"";
		my $begun = $is_undone || listed() ne 'open' ? 1 : 0;
		my $end = move(@command[ 0, 1 ], $is_undone ? '--undo' : $begun ? '--resume' : '--reversible', '--timeout', '10s');
		push @faults, "$what: $end: $move_error" if $end !~ /^0/;
		push @faults, "$what: --undo: $move_error"
			if $comes_back && !$is_undone && move(@way, '--undo', '--timeout', '10s') !~ /^0/;
		$from = 1 - $from if !$comes_back;
		my @last = ($nodes[ 1 - $from ], $nodes[$from]);
		push @faults, "$what, --complete: $move_error" if move(@last, '--complete') !~ /^0/;
		push @faults, "$what: " . place() if place() ne $from;
		last if @faults;
	}
	is(join("\n", @faults), '', "$trials kills: the same command line goes on, and verify finds nothing");
};

subtest 'no acknowledged write is lost' => sub {
	my @journal = stop_writers($writers);
	my @lost = lost_writes($nodes[$from], 'postgres', 'insta5', @journal);
	is(@lost, 0, 'each acknowledged transaction is there exactly once, ' . @journal . ' transactions')
		or diag(join "\n", @lost[0 .. 4]);
	is(dump_of($nodes[$from], 'insta5'), $definition, 'the definition is the same after all');
};

# --- the states of reverse replication: a shard of few tables shows them; a test writes to it between two commands ---

my $write = 'INSERT INTO insta5.users DEFAULT VALUES';

sub write_row
{
	my ($node) = @_;
	return is(sqlstate($node, $write), '', 'the shard is written to');
}

sub await_slot
{
	my ($node, $is_active) = @_;
	return await("active = $is_active",
		sub { $node->safe_psql('postgres', 'SELECT active FROM pg_replication_slots') eq $is_active });
}

$nodes[$from]->safe_psql('postgres', 'DROP SCHEMA insta5 CASCADE');
$nodes[0]->safe_psql('postgres', q{SELECT snowflake_create_shard(5, 'insta5');
	CREATE TABLE insta5.users (id bigint PRIMARY KEY DEFAULT insta5.next_id(), name text);
	CREATE TABLE insta5.empty (id bigint PRIMARY KEY DEFAULT insta5.next_id())});
write_row($nodes[0]);

subtest 'an undo that ended before its rows were compared, and again before its last step' => sub {
	moves([ @nodes, '--reversible' ], 'moved with reverse replication', 'there');
	is(move(@nodes, '--undo', '--switch-command', 'false'), 'exit code 3', 'clients are not led');
	my $reader = $nodes[0]->background_psql('postgres');
	$reader->query_safe('BEGIN; SELECT FROM insta5.users LIMIT 1');
	is_refused([ @nodes, '--undo', '--switch-command', 'true', '--timeout', '100ms' ],
		qr/the rows are not compared.*\nHINT: [^\n]*--undo goes on/s, 'a reader is in the way of the last step');
	$reader->quit;
	write_row($nodes[0]);
	is($nodes[1]->safe_psql('postgres', 'SELECT step, is_equal FROM snowflake_move_5.state'), 'moved|f',
		'the source says that it has moved');
	moves([ @nodes, '--undo' ], 'undone', 'the same command goes on');
	is(place(), '0', 'it is open on the source');
	like(move(@nodes), qr/^1 .*has moved to .*--complete drops the closed copy/s,
		'a new move does not drop rows that were not compared');
	moves([ @back, '--complete' ], 'dropped', 'as it says');
};

subtest 'the shard stays' => sub {
	moves([ @nodes, '--reversible' ], 'moved with reverse replication', 'again: there');
	my $holder = $nodes[0]->background_psql('postgres');
	$holder->query_safe('BEGIN; SELECT pg_current_xact_id()');
	my $undo = start_command('move', 'the slot waits for', 'insta5', '--from', $nodes[0], '--to', $nodes[1], '--undo', '--reversible');
	kill_command($undo->{run});
	$holder->quit;
	is($nodes[0]->safe_psql('postgres', 'SELECT count(*) FROM pg_publication'), '1', 'an undo that is killed has begun');
	moves([ @nodes, '--complete' ], 'dropped', '--complete stops reverse replication');
	is(place(), '1', 'the shard is where it was');
	is($nodes[0]->safe_psql('postgres',
		q{SELECT (SELECT count(*) FROM pg_namespace WHERE nspname ~ 'insta5|move') + (SELECT count(*) FROM pg_subscription)
		+ (SELECT count(*) FROM pg_publication) + (SELECT count(*) FROM pg_replication_slots)}),
		'0', 'nothing is left on the source');
	is($nodes[1]->safe_psql('postgres',
		q{SELECT (SELECT count(*) FROM pg_namespace WHERE nspname ~ 'move') + (SELECT count(*) FROM pg_publication)
		+ (SELECT count(*) FROM pg_replication_slots) + (SELECT count(*) FROM pg_trigger
			WHERE tgname = 'snowflake_move')}), '0', 'nor on the target');
	moves([ @nodes ], 'moved', 'a move that is done says so');
	is_refused([ @nodes, '--undo' ], qr/no reverse replication/, '--undo then');
};

subtest 'what harms reverse replication' => sub {
	moves([ @back, '--reversible' ], 'moved with reverse replication', 'the other way round');
	$nodes[1]->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 DISABLE');
	await_slot($nodes[0], 'f');
	write_row($nodes[0]);
	like(place(),
		qr/^0\nreverse replication: schema snowflake_move_5: .* does not follow shard 5: it does not read slot \w+$/,
		'verify finds that nobody follows');
	$nodes[1]->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 ENABLE');
	await_slot($nodes[0], 't');
	is(place(), '0', 'it follows again');
	$nodes[0]->safe_psql('postgres', 'ALTER TABLE insta5.users ADD extra text');
	is_refused([ @back, '--undo' ], qr/definition has changed.*\+ +extra text/s, 'the definition has changed: --undo');
	unlike($move_error, qr/--resume/, 'and nobody is sent in a circle');
	like(place(), qr/^0/, 'the shard is open on');
	$nodes[0]->safe_psql('postgres', 'ALTER TABLE insta5.users DROP extra');
	# The new values are not replicated, and the definition is the same.
	$nodes[0]->safe_psql('postgres', "ALTER TABLE insta5.users ALTER name TYPE text USING 'new'");
	is_refused([ @back, '--undo', '--verify', '0' ], qr/the rows differ, and nothing was opened(?s:.*)HINT: .*--complete stops reverse replication/,
		"a table was rewritten: --undo, try $_") foreach 1, 2;
	unlike($move_error, qr/fence$|blocked|--resume/m, 'nothing was blocked');
	like(place(), qr/^0/, 'the shard is open on');
	# The rows of such a child are not published.
	$nodes[0]->safe_psql('postgres', 'CREATE SCHEMA outside; CREATE TABLE outside.users () INHERITS (insta5.users)');
	is_refused([ @back, '--undo' ], qr/\n    table outside\.users needs table insta5\.users\n/, 'a child in another schema: --undo');
	unlike($move_error, qr/fence$|blocked/m, 'nothing was blocked');
	$nodes[0]->safe_psql('postgres', 'DROP SCHEMA outside CASCADE');
	# Its worker may come back between the two statements.
	my @drop = ('SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots WHERE active',
		'SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots');
	await('the slot can be dropped', sub { $nodes[0]->psql('postgres', join '; ', @drop) == 0 });
	like(place(), qr/^0\nreverse replication: schema snowflake_move_5: .* does not follow shard 5: slot \w+ is gone$/,
		'verify finds that its slot is gone');
	is_refused([ @back, '--undo' ], qr/slot \w+ is gone/, '--undo then');
	is(sqlstate($nodes[0], "INSERT INTO insta5.empty DEFAULT VALUES"), '', 'the shard is written to on');
	moves([ @back, '--complete' ], 'dropped', '--complete ends it');
};

subtest 'what prevents reverse replication, between the cutover and that' => sub {
	my @ways =
		([ @nodes, 'CREATE INDEX extra ON insta5.users (id)',
			qr/reverse replication is not possible: the definition of the shard has been changed on/ ],
		[ @back,
			q{SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name ~ 'move_5' AND NOT active},
			qr/reverse replication is not possible: slot \w+ on \S+ has lost WAL, or is gone/ ]);
	foreach my $way (@ways)
	{
		my ($source, $target, $sql, $text) = @$way;
		is(move($source, $target, '--reversible', '--switch-command',
			qq(psql -XAtq -h "\$HOST" -p "\$PORT" -d "\$DBNAME" -c "$write" -c "$sql")),
			'exit code 1', "no reverse replication after: $sql") or diag($move_error);
		like($move_error, $text, 'and why');
		moves([ $source, $target, '--complete' ], 'dropped', '--complete');
	}
	$nodes[0]->safe_psql('postgres', 'DROP INDEX insta5.extra');
};

$_->stop foreach @nodes;
done_testing();
