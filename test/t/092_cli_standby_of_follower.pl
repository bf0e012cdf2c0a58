# A failover of the server that follows, in a move or in reverse replication: its synchronous standby lacks no change that
# the slot has passed; an asynchronous one can, and the differences are found before the target is opened.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use MoveTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
seed_random();

my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\nwal_retrieve_retry_interval = 200ms\n";
my ($one, $two) = map { new_server($_, init => { allows_streaming => 1 }, conf => $conf) } qw(one two);

sub new_standby
{
	my ($primary, $name) = @_;
	$primary->backup("of_$name");
	my $standby = PostgreSQL::Test::Cluster->new($name);
	$standby->init_from_backup($primary, "of_$name", has_streaming => 1);
	$standby->start;
	return $standby;
}

# Its WAL ends here. It could have a later end of the WAL than the primary has sent to it, but not a transaction.
sub cut_off
{
	my ($primary, $standby) = @_;
	$primary->wait_for_catchup($standby);
	$standby->stop;
	return;
}

# The standby takes the port of its primary.
sub fail_over
{
	my ($primary, $standby) = @_;
	$primary->stop('immediate');
	my ($port, $host) = ($primary->port, $primary->host);
	$standby->append_conf('postgresql.conf',
		"port = $port\nunix_socket_directories = '$host'\nsynchronous_standby_names = ''");
	@{$standby}{qw(_port _host)} = ($port, $host);
	$standby->start;
	$standby->promote;
	return $standby;
}

sub findings
{
	my (undef, $found) = shard_json($program, 'verify', $one, $two, @_);
	return join "\n", map { "$_->{finding}: $_->{problem}: $_->{hint}" } @$found;
}

sub set_synchronous
{
	my ($node, $names) = @_;
	$node->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = '$names'");
	$node->reload;
	await("synchronous_standby_names of $names",
		sub { $node->safe_psql('postgres', 'SHOW synchronous_standby_names') eq $names
			&& ($names eq '' || $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") eq '1') });
	return;
}

# Whether the slot of this server has passed a change that is made now, when the worker of the other one has it.
sub passes
{
	my ($publisher, $follower) = @_;
	$publisher->safe_psql('postgres', "INSERT INTO insta5.t (v) VALUES ('x')");
	my $at = $publisher->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	my $passed = sub { $publisher->safe_psql('postgres',
		"SELECT confirmed_flush_lsn >= '$at' FROM pg_replication_slots WHERE slot_name ~ '^snowflake_move_5_'") eq 't' };
	my $waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_type ~ '^logical replication'";
	await('the change is there', sub { $passed->() || $follower->safe_psql('postgres', $waits) ne '0' });
	return $passed->() ? 1 : 0;
}

my $insert = "INSERT INTO insta5.t (v) SELECT 'x' FROM generate_series(1, 100)";
my $count = 'SELECT count(*) FROM insta5.t';
$one->safe_psql('postgres', "SELECT snowflake_create_shard(5, 'insta5');
	CREATE TABLE insta5.t (id bigint PRIMARY KEY DEFAULT insta5.next_id(), v text); $insert");

subtest 'a synchronous standby of the target' => sub {
	my $standby = new_standby($two, 'standby2');
	set_synchronous($two, 'standby2');
	moves([ $one, $two, '--hold' ], 'held', 'held');
	is(findings(), '', 'verify finds nothing');
	cut_off($two, $standby);
	is(passes($one, $two), 0, 'the slot does not pass a change that the standby lacks');
	$two = fail_over($two, $standby);
	$one->safe_psql('postgres', $insert);
	moves([ $one, $two, '--cutover', '--reversible' ], 'moved with reverse replication', '--cutover after the failover');
	is($two->safe_psql('postgres', $count), '201', 'all rows are there');
};

subtest 'a synchronous standby of the server that follows, which comes later' => sub {
	is(findings(), '', 'verify finds nothing where no standby is awaited');
	my $standby = new_standby($one, 'standby1');
	set_synchronous($one, 'standby1');
	is(findings(), "reverse replication: subscription snowflake_move_5 does not wait for the synchronous standby, which can "
		. "lack changes after a failover: ALTER SUBSCRIPTION snowflake_move_5 SET (synchronous_commit = on);", 'verify tells');
	$one->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 SET (synchronous_commit = on)');
	is(findings(), '', 'nothing after the statement of the hint');
	cut_off($one, $standby);
	is(passes($two, $one), 0, 'the slot does not pass a change that the standby lacks');
	$one = fail_over($one, $standby);
	moves([ $one, $two, '--undo' ], 'undone', '--undo after the failover');
	is($one->safe_psql('postgres', $count), '202', 'all rows are there');
};

# Both servers have two rows that the follower's standby lacks, and a row that it has.
sub lose_changes
{
	my ($publisher, $follower, $name) = @_;
	my $standby = new_standby($follower, $name);
	cut_off($follower, $standby);
	is(passes($publisher, $follower), 1, 'the slot passes a change that an asynchronous standby lacks');
	$standby = fail_over($follower, $standby);
	$publisher->safe_psql('postgres', $insert);
	return $standby;
}

my $id = qr/system \d+, timeline \w{8}, subscription \d+ with \d tables of transaction \d+/;
my $lacks = qr/has changed since it began to follow, and may lack changes that are not sent again: it was $id, and is $id/;
my $differs = qr/the rows differ, and nothing was opened\..*\n    table insta5\.t: \S+ has 1 row, key \(\d+\), \S+ has no row/;

subtest 'an asynchronous standby of the target' => sub {
	moves([ $one, $two, '--complete' ], 'dropped', 'the old copy is dropped');
	moves([ $one, $two, '--hold' ], 'held', 'held');
	$two = lose_changes($one, $two, 'standby3');
	like(findings(), qr/^held: the server $lacks: \S+ move insta5 .* --hold compares all rows\.$/, 'verify tells');
	is_refused([ $one, $two, '--cutover', '--verify', '0' ], $differs, '--cutover is refused, whatever --verify says');
	like($move_error, $lacks, 'and says why all rows were compared');
	is_refused([ $one, $two, '--hold' ], $differs, 'so is --hold');
	$two->safe_psql('postgres', 'COMMENT ON TABLE snowflake_move_5.state IS NULL');
	like(findings(), qr/^held: .*: it was not noted, and is $id: .* --hold compares all rows\.$/, 'version 1.1 has noted nothing');
	is_refused([ $one, $two, '--cutover', '--verify', '0' ], $differs, 'so rows are compared');
	moves([ $one, $two, '--abort' ], 'aborted', '--abort');
	moves([ $one, $two, '--hold' ], 'held', 'held anew');
	my $standby = new_standby($two, 'standby4');
	cut_off($two, $standby);
	$two = fail_over($two, $standby);
	moves([ $one, $two, '--hold' ], 'held', '--hold after a failover that has lost nothing');
	is(findings(), '', 'verify is content');
	moves([ $one, $two, '--cutover', '--reversible' ], 'moved with reverse replication', '--cutover');
	unlike($move_error, $lacks, 'needs no reason to compare all rows');
};

subtest 'an asynchronous standby of the server that follows in reverse replication' => sub {
	$one = lose_changes($two, $one, 'standby5');
	my $note = qr/COMMENT ON TABLE snowflake_move_5\.state IS '$id; it follows system \d+, timeline \w{8}';/;
	like(findings(), qr/^reverse replication: the server $lacks: verify --rows compares them, .* If they are equal: $note$/,
		'verify tells');
	like(findings('--rows'), qr/^rows: table insta5\.t: .* has no row: --undo would open these rows\. .* --complete/m,
		'verify --rows finds the difference');
	is_refused([ $one, $two, '--undo' ], $differs, '--undo is refused');
	like($move_error, qr/--complete stops reverse replication.* moves the shard back, with a copy of the rows/, 'and says what to do');
	is(sqlstate($two, $insert), '', 'the shard is open on');
	$one->safe_psql('postgres', 'SET session_replication_role = replica; DELETE FROM insta5.t');
	my $rows = join '', map { "$_\n" } $two->safe_psql('postgres', 'COPY insta5.t TO STDOUT');
	my $loaded = 'SET session_replication_role = replica; COPY insta5.t FROM STDIN';
	is($one->psql('postgres', "$loaded;\n$rows\\.\n"), 0, 'the rows are made equal');
	moves([ $one, $two, '--undo' ], 'undone', '--undo then');
};

# What pg_upgrade before 17 and pg_dump leave: a subscription without tables, disabled.
sub restore_subscription
{
	my ($follower, $publisher) = @_;
	my $made = $follower->safe_psql('postgres', q{SELECT format('CREATE SUBSCRIPTION snowflake_move_5 CONNECTION %L
		PUBLICATION snowflake_move_5 WITH (connect = false, slot_name = %I)', subconninfo, subslotname) FROM pg_subscription});
	$follower->safe_psql('postgres', $_) foreach 'ALTER SUBSCRIPTION snowflake_move_5 DISABLE',
		'ALTER SUBSCRIPTION snowflake_move_5 SET (slot_name = NONE); DROP SUBSCRIPTION snowflake_move_5';
	await('nobody reads the slot', sub {
		$publisher->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_slots WHERE active') eq '0' });
	$follower->safe_psql('postgres', $made);
	return;
}

my $update = "UPDATE insta5.t SET v = v || '+' WHERE id IN (SELECT id FROM insta5.t LIMIT 100)";
my $refresh = 'ALTER SUBSCRIPTION snowflake_move_5 REFRESH PUBLICATION WITH (copy_data = false);';
my $differ = qr/the rows differ, and nothing was opened\..*\n    table insta5\.t: .* and \d\d more differences$/m;

# The statements of the finding, while the publisher has 100 acknowledged UPDATEs that the subscription passes over.
sub follow_hint
{
	my ($publisher, $follower) = @_;
	my $problem = qr/subscription snowflake_move_5 lacks 2 tables of the set, and passes over changes of these: \S+, \S+/;
	like(findings(), qr/: $problem: ALTER SUBSCRIPTION snowflake_move_5 ENABLE; \Q$refresh\E$/m, 'verify has the statements');
	$publisher->safe_psql('postgres', $update);
	my $at = $publisher->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	$follower->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 ENABLE');
	await('the slot passes the changes', sub { $publisher->safe_psql('postgres',
		"SELECT confirmed_flush_lsn >= '$at' FROM pg_replication_slots WHERE slot_name ~ '^snowflake_move_5_'") eq 't' });
	like(findings(), qr/: $problem: \Q$refresh\E$/m, 'and tells of it while it follows');
	return $problem;
}

subtest 'a target that was upgraded' => sub {
	moves([ $one, $two, '--complete' ], 'dropped', 'the old copy is dropped');
	moves([ $one, $two, '--hold' ], 'held', 'held');
	restore_subscription($two, $one);
	my $problem = follow_hint($one, $two);
	is_refused([ $one, $two, $_, '--verify', '0' ], qr/$problem\nHINT:  \Q$refresh\E/, $_) foreach '--cutover', '--hold';
	$two->safe_psql('postgres', $refresh);
	like(findings(), qr/^held: the server $lacks: \S+ move insta5 .* --hold compares all rows\.$/, 'after it verify tells');
	is_refused([ $one, $two, '--cutover', '--verify', '0' ], $differ, '--cutover finds the 100 UPDATEs');
	moves([ $one, $two, '--abort' ], 'aborted', '--abort');
};

subtest 'a table that leaves the subscription for a while' => sub {
	moves([ $one, $two, '--hold' ], 'held', 'held');
	$one->safe_psql('postgres', 'ALTER PUBLICATION snowflake_move_5 DROP TABLE insta5.t');
	$two->safe_psql('postgres', $refresh);
	like(findings(), qr/lacks 1 table of the set, and passes over changes of these: insta5\.t: \Q$refresh\E/, 'verify tells');
	$one->safe_psql('postgres', "$insert; ALTER PUBLICATION snowflake_move_5 ADD TABLE insta5.t");
	$two->safe_psql('postgres', $refresh);
	is_refused([ $one, $two, '--cutover', '--verify', '0' ], qr/$lacks(?s:.*)the rows differ, and nothing was opened/, '--cutover');
	moves([ $one, $two, '--abort' ], 'aborted', '--abort');
};

subtest 'a server that follows in reverse replication, restored by pg_dump' => sub {
	moves([ $one, $two, '--reversible' ], 'moved with reverse replication', 'moved');
	my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump';
	$one->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 DISABLE');
	$one->command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $one->connstr('postgres') ], 'dumped');
	$one->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 SET (slot_name = NONE); DROP SUBSCRIPTION snowflake_move_5');
	$one->safe_psql('template1', $_) foreach 'DROP DATABASE postgres WITH (FORCE)', 'CREATE DATABASE postgres TEMPLATE template0';
	$one->command_ok([ 'pg_restore', '-d', $one->connstr('postgres'), $dump ], 'restored');
	my $problem = follow_hint($two, $one);
	is_refused([ $one, $two, '--undo' ], qr/$problem\nHINT:  \Q$refresh\E/, '--undo');
	$one->safe_psql('postgres', $refresh);
	is_refused([ $one, $two, '--undo' ], $differ, '--undo finds the 100 UPDATEs');
	like($move_error, $lacks, 'and says why all rows were compared');
	moves([ $one, $two, '--complete' ], 'dropped', '--complete');
	moves([ $two, $one ], 'moved', 'the shard moves back');
	moves([ $two, $one, '--complete' ], 'dropped', '--complete');
};

# Its walreceiver stops, so that it streams, and gets nothing.
subtest 'the cutover waits until the standby of the source has the fence' => sub {
	moves([ $one, $two, '--hold' ], 'held', 'held');
	my $standby = new_standby($one, 'standby_of_source');
	await('it streams', sub { $one->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_replication WHERE replay_lsn IS NOT NULL') eq '2' });
	my $archive = IPC::Run::start([ 'pg_receivewal', '-D', PostgreSQL::Test::Utils::tempdir(), '-d', $one->connstr ],
		'>', '/dev/null', '2>', '/dev/null');
	my $receiver = $standby->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
	my $late = qr/:${\$one->port}\/postgres: standby standby_of_source has flushed the WAL up to \S+, and not up to \S+\. It could take over without the fence$/m;
	my @cutover = ('insta5', '--from', $one, '--to', $two, '--cutover', '--timeout', '1s');
	kill 'STOP', $receiver;
	my $cutover = start_command('move', $late, @cutover);
	kill_command($cutover->{run});
	unlike($cutover->{err}, qr/fence$.*$late/ms, 'one that is far behind is awaited while clients write');
	kill 'CONT', $receiver;
	my $holder = $one->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta5.t IN ROW EXCLUSIVE MODE');
	$cutover = start_command('move', 'source: fence\n', @cutover);
	kill 'STOP', $receiver;
	$holder->quit;
	await_text($cutover, $late);
	unlike($cutover->{err}, qr/target: open$/m, 'the target is not opened before it has the fence');
	kill 'CONT', $receiver;
	is(end_command($cutover), 0, '--cutover then; pg_receivewal is no standby') or diag($cutover->{err});
	$archive->kill_kill;
	$standby->stop;
	moves([ $one, $two, '--complete' ], 'dropped', '--complete');
	moves([ $two, $one ], 'moved', 'moved back');
	moves([ $two, $one, '--complete' ], 'dropped', '--complete');
};

# The subscription is disabled, so that the last write does not come. A lock holds the fence up until then.
subtest 'a failover of the target while the source is fenced' => sub {
	moves([ $one, $two, '--hold' ], 'held', 'held');
	my $standby = new_standby($two, 'standby6');
	my $holder = $one->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta5.t IN ROW EXCLUSIVE MODE');
	my $cutover = start_command('move', 'source: triggers of the fence',
		'insta5', '--from', $one, '--to', $two, '--cutover', '--timeout', '60s');
	$two->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 DISABLE');
	cut_off($two, $standby);
	$holder->quit;
	await('the move waits for the last write', sub { goes_on($cutover->{run}); $cutover->{err} =~ /waiting for the last write/ });
	kill_command($cutover->{run});
	$two = fail_over($two, $standby);
	is_refused([ $one, $two, '--resume' ], qr/$lacks\. Rows are compared before the fence alone: give --abort first/, '--resume');
	is(sqlstate($one, $insert), '25006', 'the source is closed');
	moves([ $one, $two, '--abort' ], 'aborted', '--abort');
	is(sqlstate($one, $insert), '', 'the source is open');
};

# The blocks of statements of a section.
sub by_hand
{
	my ($title) = @_;
	my $page = slurp_file("$FindBin::RealBin/../../docs/move-failures.md");
	my ($section) = $page =~ /^## \Q$title\E\n(.*?)(?=^## |\z)/ms;
	return $section =~ /^```sql\n(.*?)^```$/msg;
}

# The shard moves, and the target comes back as it was before the opening.
sub lose_opening
{
	my ($name, $end) = @_;
	my $standby = new_standby($two, $name);
	cut_off($two, $standby);
	moves([ $one, $two, '--cutover' ], $end, '--cutover');
	$two->safe_psql('postgres', $insert);
	my $rows = $two->safe_psql('postgres', $count);
	await('the source has followed', sub { $one->safe_psql('postgres', $count) eq $rows }) if $end ne 'moved';
	return fail_over($two, $standby);
}

foreach my $kind ([ 'moved' ], [ 'moved with reverse replication', '--reversible' ])
{
	my ($end, @options) = @$kind;
	subtest "a target that lacks the opening: $end" => sub {
		moves([ $one, $two, '--hold', @options ], 'held', 'held');
		$two = lose_opening('after_' . scalar(@options), $end);
		is(sqlstate($_, $insert), '25006', 'closed on ' . $_->name) foreach $one, $two;
		my $rows = $one->safe_psql('postgres', $count);
		my $closed = qr/^shard: it is closed here since its move to \S+:${\$two->port}\/postgres, and is not open there: .*move-failures\.md/m;
		like(findings(), $closed, 'verify tells');
		is(move($one, $two, $_), 'exit code 3', "$_ is refused") foreach '--resume', '--cutover', '--abort', '--undo', '--complete';
		my ($open, $unsubscribe) = by_hand('The target is lost for good');
		$one->safe_psql('postgres', $_) foreach @options ? $unsubscribe : (), $open;
		is(sqlstate($one, $insert), '', 'the statements of docs/move-failures.md open the source');
		is($one->safe_psql('postgres', $count), $rows + 100, 'with the rows that the source has');
		unlike(findings(), $closed, 'verify does not tell of it any more');
		moves([ $one, $two, '--abort' ], 'aborted', '--abort removes the copy on the target');
		is(findings(), '', 'and nothing is left');
	};
}

foreach my $kind ([ 'moved' ], [ 'moved with reverse replication', '--reversible' ])
{
	my ($end, @options) = @$kind;
	subtest "a schema that is dropped on the target: $end" => sub {
		moves([ $one, $two, @options ], $end, 'a move');
		my $rows = $one->safe_psql('postgres', $count);
		$two->safe_psql('postgres', 'DROP SCHEMA insta5 CASCADE');
		my $closed = qr/it is closed here since its move to \S+:${\$two->port}\/postgres, and is not open there/;
		like(findings(), qr/^shard: $closed: .*move-failures\.md/m, 'verify tells');
		my (undef, $listed, $why) = shard_json($program, 'list', $one, $two);
		is(join('|', map { "$_->{state}, next: " . ($_->{next} // 'none') } @$listed), 'closed everywhere, next: none', 'list names no command');
		like($why, qr/shard 5, schema insta5: $closed\nHINT:  .*move-failures\.md/, 'but the page');
		is(move($one, $two, $_), 'exit code 3', "$_ is refused") foreach '--undo', '--complete';
		is((shard_json($program, 'list', $one))[1][0]{state}, @options ? 'moved, follows' : 'moved', 'list of one server does not know');
		my ($open, $unsubscribe) = by_hand('The target is lost for good');
		$one->safe_psql('postgres', $_) foreach @options ? $unsubscribe : (), $open;
		$one->safe_psql('postgres', $insert);
		is($one->safe_psql('postgres', $count), $rows + 100, 'the statements of docs/move-failures.md open the source');
		$two->safe_psql('postgres', $open =~ s/BEGIN.*COMMIT;//sr) if @options;
		is(findings(), '', 'and nothing is left');
	};
}

subtest 'a source that is lost while the set is held' => sub {
	moves([ $one, $two, '--hold' ], 'held', 'held');
	my $rows = $one->safe_psql('postgres', $count);
	$one->stop('immediate');
	is(sqlstate($two, $insert), '25006', 'the target is closed');
	$two->safe_psql('postgres', $_) foreach by_hand('The source is lost for good');
	$two->safe_psql('postgres', $insert);
	is($two->safe_psql('postgres', $count), $rows + 100, 'the statements of docs/move-failures.md open it with its rows');
	is((run_shard($program, 'verify', $two))[1], "1 shard on 1 server, 0 findings\n", 'verify finds nothing');
};

$two->stop;
done_testing();
