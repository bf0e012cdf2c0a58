# snowflake-shard split: a standby is promoted and takes half of the shards, while clients write through PgBouncer and
# directly. No client behind PgBouncer meets an error, a direct one gets 25006; no acknowledged row is lost, no ID comes
# twice over both servers, and neither server writes or draws for a shard of the other.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ChangeData;
use IPC::Run;
use PoolerTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use ShardWriters;
use SnowflakeTest;
use SplitTest;
use Test::More;

my $program = shard_program();
plan skip_all => 'pgbouncer is not installed' unless pgbouncer_program();
seed_random();
my ($status, $out, $err, $rows);

# A server with six shards, its standby, and two PgBouncers.
my $shards = 6;
my $one = new_split_server('one', $shards, conf => "archive_mode = on\narchive_command = 'true'\n");
$one->safe_psql('postgres', q{
	CREATE SEQUENCE insta3.down INCREMENT -1; CREATE SEQUENCE insta3.round AS smallint CYCLE;
	SELECT nextval('insta3.down'), nextval('insta3.round'), nextval('insta3.round')});
# With FOR ALL TABLES an UPDATE needs a replica identity, also of the record of the split.
$one->safe_psql('postgres', 'CREATE PUBLICATION everything FOR ALL TABLES');
my $two = new_standby($one, 'two');
my ($pooler, $second_pooler) = map { new_split_pooler($one, $shards) } 1, 2;

# The command that splits off shards 3 to 5.
my $environment = PostgreSQL::Test::Utils::tempdir() . '/environment';
my @servers = ('--from', $one, '--standby', $two);
my @command = ('--switch-command', "env | grep -E '^(SHARDS|HOST|PORT|DBNAME)=' | sort > $environment");
my @arguments = (@servers, '--shards', '3-5',
	(map { ('--pgbouncer', $_->{dsn}, '--config', $_->{file}) } $pooler, $second_pooler), @command);

sub split_server
{
	return run_shard($program, 'split', @_);
}

# What is in the way, all at once, each with what mends it.
my $other = new_server('other', init => { allows_streaming => 1 });
my $obstacles = sub {
	my ($standby, %is) = @_;
	my ($status, $rows) =
		shard_json($program, 'split', '--from', $is{from} // $one, '--standby', $standby, '--shards', '3-5', '--dry-run',
		@{ $is{arguments} // [] });
	my $text = join("\n", map { $_->{obstacle} } @$rows);
	is($status, 1, 'obstacles: exit code 1');
	like($text, $_, "obstacle: $_") foreach @{ $is{texts} };
	unlike($text, $_, "no obstacle: $_") foreach @{ $is{absent} // [] };
	unlike($text, qr/HINT:\s*$/m, 'each has a hint');
};

subtest 'servers that are not a primary and its standby' => sub {
	$obstacles->($other, texts => [ qr/it is no standby of the server: its system identifier is \d+, not \d+/,
		qr/it is no standby: it is not in recovery/ ]);
	foreach my $end ('--resume', '--abort')
	{
		($status, $out, $err) = split_server(@servers, $end);
		ok($status == 3 && $err =~ /there is no split of \S+ to be/, "$end without a split") or diag($err);
	}
	(my $again = $one->connstr('postgres')) =~ s/host=(\S+)/host=$1\//;
	foreach my $itself ($one, $again)
	{
		($status, $out, $err) = split_server('--from', $one, '--standby', $itself, '--shards', '3');
		ok($status == 2 && $err =~ /--from and --standby are the same/, 'a server is not its own standby') or diag($err);
	}
	$one->safe_psql('postgres',
		q{CREATE SEQUENCE insta0.nine; CREATE TABLE insta0.of_nine (id bigint DEFAULT snowflake_next_id(9, 'insta0.nine'))});
	like((split_server(@servers, '--shards', '3'))[2], qr/schema insta0 makes IDs of several shards: \d, \d/,
		'a schema of two shards is named');
	$one->safe_psql('postgres', 'DROP TABLE insta0.of_nine; DROP SEQUENCE insta0.nine');
	$obstacles->($one, from => $two, texts => [ qr/it is a standby itself/ ]);
	my $astray = new_split_pooler($two, $shards);
	$obstacles->($two, arguments => [ '--pgbouncer', $astray->{dsn}, '--config', $astray->{file} ],
		texts => [ qr/aliases shard3, shard4 and 1 more lead to \S+:${\$two->port}\/postgres, which is not the source/ ]);
	$obstacles->($two->connstr('template1'), texts => [ qr/it is another database: template1\n/ ]);
};

my $holder;
subtest 'all obstacles are told at once, each with what mends it' => sub {
	$one->append_conf('postgresql.conf', "synchronous_standby_names = 'two'");
	$one->reload;
	await('the standby is synchronous',
		sub { $one->safe_psql('postgres', q{SELECT sync_state FROM pg_stat_replication}) eq 'sync' });
	$one->safe_psql('template1', q{SELECT pg_create_logical_replication_slot('logical', 'pgoutput')});
	$one->safe_psql('postgres', q{
		SELECT count(pg_create_physical_replication_slot('full' || n)) FROM generate_series((SELECT count(*)
			FROM pg_replication_slots) + 1,
			current_setting('max_replication_slots')::integer) AS n});
	$holder = $one->background_psql('postgres');
	$holder->query_safe(q{BEGIN; INSERT INTO insta0.users (name) VALUES ('long')});
	my $reader = $one->background_psql('postgres');
	$reader->query_safe('BEGIN; SELECT 1');
	$one->safe_psql('postgres', $_) foreach 'CREATE UNLOGGED TABLE insta4.fast ()',
		'CREATE UNLOGGED SEQUENCE insta4.fast_ids', 'CREATE UNLOGGED TABLE public.fast ()',
		'CREATE TABLE public.parts (n integer) PARTITION BY LIST (n)',
		'CREATE TABLE insta4.part PARTITION OF public.parts FOR VALUES IN (4)', 'CREATE TABLE insta4.base ()',
		'CREATE TABLE public.no_side () INHERITS (insta4.base)', 'CREATE TABLE insta4.by_n (n integer) PARTITION BY LIST (n)',
		'CREATE TABLE public."by N" PARTITION OF insta4.by_n DEFAULT PARTITION BY LIST (n)',
		'CREATE TABLE public.leaf PARTITION OF public."by N" DEFAULT',
		'CREATE TABLE insta5.same_side () INHERITS (insta4.base)', 'CREATE TABLE insta0.other_side () INHERITS (insta4.base)', 'CREATE SCHEMA snowflake_move_9',
		'CREATE SCHEMA snowflake_split', 'CREATE EXTENSION pg_trgm SCHEMA insta4',
		'ALTER ROLE web SET default_transaction_read_only = off',
		q{ALTER ROLE app IN DATABASE postgres SET default_transaction_read_only = 'F'},
		'ALTER ROLE report IN DATABASE template1 SET default_transaction_read_only = off',
		'ALTER ROLE report SET default_transaction_read_only = on',
		q{CREATE SUBSCRIPTION disabled CONNECTION 'host=/nonexistent' PUBLICATION p WITH (connect = false, slot_name = NONE)},
		q{CREATE SUBSCRIPTION sub CONNECTION 'host=/nonexistent' PUBLICATION p WITH (connect = false, slot_name = sub)},
		'ALTER SUBSCRIPTION sub ENABLE',
		q{BEGIN; INSERT INTO insta0.users (name) VALUES ('two'); PREPARE TRANSACTION 'two phases'},
		'CREATE ROLE weak LOGIN';
	$one->safe_psql('template1', $_)
		foreach q{CREATE SUBSCRIPTION distant CONNECTION 'host=/nonexistent' PUBLICATION p WITH (connect = false,
			slot_name = distant)},
		'ALTER SUBSCRIPTION distant ENABLE';
	$two->append_conf('postgresql.conf', "recovery_min_apply_delay = '1min'\ndefault_transaction_read_only = on");
	$two->reload;
	await('the standby has its settings', sub { $two->safe_psql('postgres', 'SHOW recovery_min_apply_delay') eq '1min' });
	$two->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
	$one->safe_psql('postgres',
		q{SELECT count(pg_logical_emit_message(false, 'x', repeat('x', 1000000))) FROM generate_series(1, 20)});
	my $disable = qr/ALTER SUBSCRIPTION distant DISABLE; in database template1/;
	$obstacles->($two, arguments => [ '--timeout', '1ms' ], texts => [
		qr/schema snowflake_split is there already.*\n.*--complete/, qr/schema snowflake_move_9: a move is not at its end/,
		qr/insta4.fast is unlogged, so it is empty on a standby\n.*ALTER TABLE insta4.fast SET LOGGED/,
		qr/insta4.fast_ids is unlogged.*\n.*ALTER SEQUENCE insta4.fast_ids SET LOGGED/,
		qr/table insta4\.part is a partition of table public\.parts, and the fence.*\n.*ALTER TABLE public\.parts DETACH PARTITION insta4\.part;/,
		qr/table insta0\.other_side inherits from table insta4\.base, and .*\n.*ALTER TABLE insta0\.other_side NO INHERIT insta4\.base;/,
		qr/table public\.no_side inherits from table insta4\.base, and is in no shard, so .*\n.*ALTER TABLE public\.no_side SET SCHEMA insta4;/,
		qr/table public\."by N" is a partition of table insta4\.by_n, and is in no shard.*\n.*ALTER TABLE public\."by N" SET SCHEMA insta4;/,
		qr/table public\.leaf is a partition of table public\."by N", and is in no shard.*\n.*ALTER TABLE public\.leaf SET SCHEMA insta4;/,
		qr/extension pg_trgm is installed in schema insta4, and.*\n.*ALTER EXTENSION pg_trgm SET SCHEMA public;/,
		qr/a transaction of process \d+ in database postgres has been running/,
		qr/transaction 'two phases' of database postgres is prepared/,
		qr/max_replication_slots = \d+, all in use/,
		qr/logical slot logical of database template1 would be on this server alone/,
		qr/subscription sub of database postgres would be on both servers/,
		qr/subscription distant of database template1 would be.*\n.*$disable/,
		qr/ROLE web has default_transaction_read_only = off.*\n.*ALTER ROLE web RESET default_transaction_read_only;/,
		qr/ROLE app IN DATABASE postgres has.*\n.*ALTER ROLE app IN DATABASE postgres RESET/,
		qr/synchronous_standby_names = 'two' wants the standby two/,
		qr/recovery_min_apply_delay = 1min/, qr/its replay is paused\n.*pg_wal_replay_resume/,
		qr/default_transaction_read_only = on: it could not be/,
		qr/it is behind by \d+ MB of WAL/ ],
		absent => [ qr/public\.fast/, qr/same_side/, qr/ROLE report/, qr/subscription disabled/,
			qr/has been running(?s:.*)has been running/ ]);
	$one->safe_psql('postgres', 'ALTER SCHEMA snowflake_split OWNER TO weak');
	my $of_weak = qr/schema snowflake_split on \S+:${\$one->port}\/postgres belongs to role weak, /;
	like((split_server(@servers, '--abort'))[2],
		qr/$of_weak.*DROP SCHEMA snowflake_split CASCADE;$/s,
		'a record of another role is not taken');
	$obstacles->($two, texts => [
		qr/schema snowflake_split is there already: it belongs to role weak\n.*DROP SCHEMA snowflake_split CASCADE;/ ]);
	$two->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
	$two->adjust_conf('postgresql.conf', $_, undef) foreach 'recovery_min_apply_delay', 'default_transaction_read_only';
	$one->adjust_conf('postgresql.conf', 'synchronous_standby_names', undef);
	$_->reload foreach $one, $two;
	$_->quit foreach $holder, $reader;
	$one->safe_psql('postgres', $_) foreach 'DROP TABLE insta4.fast, public.fast',
		'DROP TABLE public.parts', 'DROP TABLE insta4.base CASCADE', 'DROP TABLE insta4.by_n', 'DROP SEQUENCE insta4.fast_ids',
		'DROP SCHEMA snowflake_move_9', 'DROP SCHEMA snowflake_split', 'DROP EXTENSION pg_trgm',
		q{SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name ~ '^(logical|full)'},
		'ALTER ROLE web RESET default_transaction_read_only',
		'ALTER ROLE app IN DATABASE postgres RESET default_transaction_read_only', 'DROP SUBSCRIPTION disabled',
		'ALTER SUBSCRIPTION sub DISABLE', 'ALTER SUBSCRIPTION sub SET (slot_name = NONE)', 'DROP SUBSCRIPTION sub',
		q{ROLLBACK PREPARED 'two phases'};
	$one->safe_psql('template1', $_) foreach 'ALTER SUBSCRIPTION distant DISABLE',
		'ALTER SUBSCRIPTION distant SET (slot_name = NONE)', 'DROP SUBSCRIPTION distant';
	$one->wait_for_catchup($two);
};

subtest 'rights that are missing' => sub {
	my $weak = sub { my ($node) = @_; $node->connstr('postgres') . ' user=weak' };
	await('the standby has the role',
		sub { $two->safe_psql('postgres', q{SELECT count(*) FROM pg_roles WHERE rolname = 'weak'}) });
	$one->safe_psql('postgres', q{CREATE ROLE landlord; SELECT snowflake_create_shard(77, 'insta77');
		ALTER SCHEMA insta77 OWNER TO landlord});
	($status, $rows, $err) =
		shard_json($program, 'split', '--from', $weak->($one), '--standby', $weak->($two), '--shards', '3-5,77', '--dry-run');
	$one->safe_psql('postgres', 'DROP SCHEMA insta77 CASCADE; DROP ROLE landlord');
	like(join("\n", map { $_->{obstacle} } @$rows), $_, "obstacle: $_")
		foreach qr/role weak may make no schema in database postgres\n.*GRANT CREATE ON DATABASE/,
		qr/role weak is no member of role app, who owns/, qr/role weak is no member of role landlord, who owns shards/,
		qr/role weak may make no replication slot.*\n.*ALTER ROLE weak REPLICATION/,
		qr/role weak may not call pg_promote\(boolean, integer\)\n.*GRANT EXECUTE/,
		qr/role weak may not call pg_reload_conf\(\)/,
		qr/role weak may not set default_transaction_read_only by ALTER SYSTEM/;
	my $no_statistics = qr/role weak may not read the statistics of other roles' sessions/;
	my $blind =
		qr/$no_statistics\n +HINT:  GRANT pg_read_all_stats TO weak; on the server of --from/;
	is(grep({ $_->{obstacle} =~ $blind } @$rows), 2, 'role weak may not read the statistics of either server');
	unlike(join("\n", map { $_->{obstacle} } @$rows), qr/no standby follows it|it does not stream WAL/,
		'so those of the replication are not judged');
};

subtest 'obstacles of replication and of connections, and what is only told' => sub {
	$one->safe_psql('postgres', q{SET allow_system_table_mods = on; INSERT INTO pg_extension
		SELECT 99999, 'pg_cron', extowner, extnamespace, false, '1', NULL, NULL FROM pg_extension WHERE extname = 'plpgsql'});
	system_or_bail('psql', '-XAtq', '-h', $pooler->{dir}, '-p', 6432, '-d', "shard$_", '-c', 'SELECT', '-o', '/dev/null')
		foreach 3 .. 5;
	$two->append_conf('postgresql.conf', 'superuser_reserved_connections = 57');
	$two->safe_psql('postgres', q{ALTER SYSTEM SET primary_conninfo = ''});
	$two->restart;
	await('no standby follows', sub { $one->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_replication}) eq '0' });
	($status, $rows, $err) = shard_json($program, 'split', @arguments, '--dry-run');
	my $connections = qr/max_connections = 60, of which 57 are reserved; \d+ are in use, and the aliases have 3/;
	like(join("\n", map { $_->{obstacle} } @$rows), $_, "obstacle: $_")
		foreach qr/no standby follows it/, qr/it does not stream WAL: pg_stat_wal_receiver has no row/,
		qr/$connections\n.*ALTER SYSTEM SET max_connections = \d+; and restart/;
	$two->adjust_conf('postgresql.conf', 'superuser_reserved_connections', undef);
	$two->safe_psql('postgres', sprintf q{ALTER SYSTEM SET primary_conninfo = '%s application_name=twin'}, $one->connstr);
	$two->append_conf('postgresql.conf', "archive_command = '/bin/true'");
	$two->restart;
	$one->append_conf('postgresql.conf', "synchronous_standby_names = 'twin'");
	$one->reload;
	await('the standby is synchronous by another name',
		sub { $one->safe_psql('postgres', q{SELECT sync_state FROM pg_stat_replication}) eq 'sync' });
	$obstacles->($two, texts => [ qr/synchronous_standby_names = 'twin' wants the standby twin/ ]);
	$one->adjust_conf('postgresql.conf', 'synchronous_standby_names', undef);
	$one->reload;
	$two->safe_psql('postgres', 'ALTER SYSTEM RESET primary_conninfo');
	$two->reload;
	await('the standby has its own name',
		sub { $one->safe_psql('postgres',
			q{SELECT application_name FROM pg_stat_replication WHERE state = 'streaming'}) eq 'two' });
	like($err, $_, "told: $_") foreach qr/pg_cron: its jobs will run on both servers/,
		qr/both servers archive by the same command/;
	$one->safe_psql('postgres', q{SET allow_system_table_mods = on; DELETE FROM pg_extension WHERE extname = 'pg_cron'});
	like((split_server(@servers, '--shards', '3-9'))[2], qr/4 shards not on \S+: 6-9\nNothing was done/,
		'a shard that is not there is named');
};

# Settings of the standby that have an effect when it is promoted. pg_basebackup copies those of ALTER SYSTEM.
my $slots = 'synchronized_standby_slots';
my $plugins = 'output_plugin_libraries';
my $has = sub { $two->safe_psql('postgres', "SELECT count(*) FROM pg_settings WHERE name = '$_[0]'") };
my @settings = (
	[ 'synchronous_standby_names', q{'FIRST 1 ("Third", fourth)'},
		qr/synchronous_standby_names = 'FIRST 1 \("Third", fourth\)', and 0 of 1 such standbys follow it: each COMMIT/ ],
	$has->($slots) ? [ $slots, q{'of_three, of_four'},
		qr/$slots = 'of_three, of_four', and it has no slot of_three, of_four: logical replication from it would wait/ ] : (),
	$has->($plugins) ? [ $plugins, 'pgoutput', qr/$plugins = 'pgoutput' does not name test_decoding: no slot/ ] : (),
	[ 'snowflake.max_drift', q{'1min'},
		qr/its clock is \d+ s behind the last ID of the old server, and snowflake\.max_drift is 60 s: a draw would be/ ]);
my $reload = sub {
	my ($node, $statement) = @_;
	return $node->safe_psql('postgres', "LOAD 'snowflake'; $statement; SELECT pg_reload_conf()");
};
# A reload takes a moment.
my $await_obstacles = sub {
	my ($name, $test) = @_;
	await($name, sub {
		(undef, $rows) = shard_json($program, 'split', @servers, '--shards', '3-5', '--dry-run');
		return $test->(join "\n", map { $_->{obstacle} } @$rows) });
};

subtest 'settings that have an effect at the promotion' => sub {
	$one->safe_psql('postgres', $_) foreach q{SELECT pg_create_logical_replication_slot('feed', 'test_decoding')},
		q{SELECT pg_create_physical_replication_slot('of_two')},
		q{SELECT snowflake_advance('insta4.table_id_seq', snowflake_encode(now() + '30 minutes', 4, 0))};
	$reload->($two, q{ALTER SYSTEM SET primary_slot_name = 'of_two'});
	await('the standby uses its slot', sub { $one->safe_psql('postgres',
		q{SELECT active FROM pg_replication_slots WHERE slot_name = 'of_two'}) eq 't' });
	$reload->($two, "ALTER SYSTEM SET $_->[0] = $_->[1]") foreach @settings;
	$reload->($one, "ALTER SYSTEM SET $slots = 'of_two, of_five'") if $has->($slots);
	my $of_old = qr/$slots = 'of_two, of_five' has slot of_two of the standby.*\n.*SET $slots = 'of_five';/;
	$await_obstacles->("obstacle: $_->[0]", sub { $_[0] =~ /:${\$two->port}\/postgres: $_->[2]/ }) foreach @settings;
	$await_obstacles->('the slot of the standby on the old server', sub { $_[0] =~ /:${\$one->port}\/postgres: $of_old/ })
		if $has->($slots);
	like($rows->[-1]{obstacle}, qr/HINT:  Set .* If it is right: snowflake\.max_drift = 3600000, as on the old server\./,
		'a standby with another limit');
	unlike((shard_json($program, 'split', @servers, '--shards', '3', '--dry-run'))[1][-1]{obstacle}, qr/its clock/,
		'positions of a shard that stays do not count');
	my @found = @$rows;
	my $follower = IPC::Run::start([ 'pg_receivewal', '-D', PostgreSQL::Test::Utils::tempdir(), '-d',
			$two->connstr . ' application_name=THIRD' ], '>', '/dev/null', '2>', '/dev/null');
	$await_obstacles->('a standby of the standby that has such a name', sub { $_[0] !~ /synchronous_standby_names/ });
	$follower->kill_kill;
	foreach my $row (@found)
	{
		my ($port, $statement) = $row->{obstacle} =~ /:(\d+)\/postgres: .*\n +HINT: +(ALTER SYSTEM [^;]*)/ or next;
		$reload->($_, $statement) foreach grep { $_->port == $port } $one, $two;
	}
	$reload->($two, 'ALTER SYSTEM RESET snowflake.max_drift');
	$await_obstacles->('the statements of the hints are enough', sub { $_[0] eq '' });
	$reload->($two, 'ALTER SYSTEM RESET primary_slot_name');
	$reload->($_, "ALTER SYSTEM RESET $slots") foreach $has->($slots) ? $one : ();
	await('the slot is free', sub { $one->psql('postgres', q{SELECT pg_drop_replication_slot('of_two')}) == 0 });
};

my $written = "SELECT count(*) FROM insta3.users WHERE name = 'late'";

subtest 'a transaction that does not end in time: the old server is open again, three times' => sub {
	($status, $out, $err) = split_server(@arguments, '--timeout', '1ms');
	is($status, 3, 'too short a --timeout: exit code 3') or diag($err);
	$holder = $one->background_psql('postgres');
	$holder->query_safe(q{BEGIN; INSERT INTO insta3.users (name) VALUES ('late')});
	my $split = start_command('split', 'open on the old server again', @servers, '--resume', @command, '--timeout', '1s');
	is(sqlstate($one, q{INSERT INTO insta3.users (name) VALUES ('between')}), '', 'a writer goes on');
	is(port_of_alias($pooler, 3), $one->port, 'clients behind PgBouncer, too');
	is(end_command($split), 3, 'a transaction that stays open: exit code 3');
	like($split->{err},
		qr/process \d+ \(role .*, transaction \S+ old\) writes to the shard, and did not end in time\n(?s:.*)did not succeed within --timeout, 3 times tried/,
		'it is told');
	is(open_shards($one), '(0,1,2,3,4,5)', 'all shards are open');
	($status, $rows) = shard_json($program, 'verify', $one);
	like($rows->[0]{problem}, qr/a split was interrupted, or is running now: prepared/, 'verify names it');
	($status, $rows) = shard_json($program, 'list', $one);
	is(join(' ', map { $_->{state} } @$rows), 'open open open moving moving moving', 'list, too');
	is((run_shard($program, 'run', $one, '--shards', '3', '--sql', 'SELECT 1'))[0], 3, 'run refuses such a shard');
	($status, $out, $err) = split_server(@servers, '--complete');
	ok($status == 3 && $err =~ /the split is not at its end/, '--complete is refused before the end') or diag($err);
	foreach my $end ([ '--resume', @command ], ['--abort'])
	{
		($status, $out, $err) = split_server('--from', $one, '--standby', $other, @$end);
		ok($status == 3 && $err =~ /is no standby of .*different system identifiers/,
			"$end->[0] with another server is refused") or diag($err);
	}
	$other->stop;
};

subtest 'obstacles that come when the split has begun' => sub {
	foreach (
		[ 'CREATE TABLE insta3.fast (); ALTER TABLE insta3.fast SET UNLOGGED', qr/insta3\.fast is unlogged/, 'DROP TABLE insta3.fast' ],
		[ 'CREATE TABLE public.child () INHERITS (insta3.users)', qr/table public\.child inherits/, 'DROP TABLE public.child' ],
		[ 'CREATE TABLE public.base (); CREATE TABLE insta3.child () INHERITS (public.base)', qr/table insta3\.child inherits/,
			'DROP TABLE public.base CASCADE' ],
		[ "BEGIN; CREATE TABLE public.t (); PREPARE TRANSACTION 'late'", qr/transaction 'late' of database postgres is prepared/,
			"ROLLBACK PREPARED 'late'" ])
	{
		my ($make, $problem, $drop) = @$_;
		$one->safe_psql('postgres', $make);
		($status, $out, $err) = split_server(@servers, '--resume', @command, '--timeout', '1s');
		like("$status $err", qr/^3 .*\/postgres: $problem.*\nHINT: .*\nThen --resume goes on/s, "--resume after: $make");
		unlike($err, qr/clients are held|open on the old server again/, 'it is found before clients are held');
		$one->safe_psql('postgres', $drop);
	}
	foreach my $setting (@settings)
	{
		my ($name, $value, $problem) = @$setting;
		$reload->($two, "ALTER SYSTEM SET $name = $value");
		await("$name is loaded", sub { $two->safe_psql('postgres', "LOAD 'snowflake'; SELECT source FROM pg_settings
			WHERE name = '$name'") eq 'configuration file' });
		($status, $out, $err) = split_server(@servers, '--resume', @command, '--timeout', '1s');
		like("$status $err", qr/^3 .*:${\$two->port}\/postgres: $problem.*\nHINT: .*\nThen --resume goes on/s,
			"--resume after: $name");
		unlike($err, qr/clients are held|open on the old server again/, 'it is found before clients are held');
		$reload->($two, "ALTER SYSTEM RESET $name");
	}
	$reload->($one, q{SELECT pg_drop_replication_slot('feed')});
};

# A standby that lags is waited for while clients write. Ctrl-C while it waits for a transaction.
my $replay = $two->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'startup'");

subtest 'a standby that lags is waited for, and Ctrl-C' => sub {
	kill 'STOP', $replay;
	$one->safe_psql('postgres',
		q{SELECT pg_logical_emit_message(false, '', repeat('x', 1000000)) FROM generate_series(1, 20)});
	my $split = start_command('split', 'standby: waiting, it is behind by \d+ MB', @servers, '--resume', @command,
		'--timeout', '60s');
	is(sqlstate($one, q{INSERT INTO insta3.users (name) VALUES ('lag')}), '', 'a standby that lags: a writer goes on');
	kill 'TERM', $two->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
	await_text($split, 'receives no WAL; its log says why');
	kill 'CONT', $replay;
	await_text($split, 'clients are held');
	is(port_of_alias($_, 3), $one->port . ' paused', '--resume knows both PgBouncers without being told again')
		foreach $pooler, $second_pooler;
	is($two->safe_psql('postgres', 'SHOW default_transaction_read_only'), 'on',
		'nobody can draw on the standby when it is promoted');
	$split->{run}->signal('INT');
	is(end_command($split), 3, 'Ctrl-C before the promotion: exit code 3');
	like($split->{err}, qr/The shards are open on the old server/, 'it goes back');
	is(port_of_alias($pooler, 3), $one->port, 'no alias is paused');
};

subtest 'a standby that stops to replay in the cutover' => sub {
	my $split = start_command('split', 'clients are held', @servers, '--resume', @command, '--timeout', '1s');
	kill 'STOP', $replay;
	$holder->query_safe('COMMIT');
	$holder->quit;
	await_text($split, ' did not (?:replay the last write|answer) in time');
	await_text($split, 'are open on the old server again');
	is(open_shards($one), '(0,1,2,3,4,5)', 'a standby that does not replay: clients write');
	$split->{run}->signal('INT');
	is(end_command($split), 3, 'and Ctrl-C ends the wait: exit code 3');
	unlike($split->{err}, qr/the last write is there/, 'and no step that has failed');
	is(open_shards($one), '(0,1,2,3,4,5)', 'all shards are open again');
	kill 'CONT', $replay;
};

my $stays;
subtest 'a promotion that was requested may still come, until the standby is started again' => sub {
	$one->safe_psql('postgres',
		sprintf(q{SELECT snowflake_split.close(); UPDATE snowflake_split.state SET step = 'promoting', standby_start = '%s'},
			$two->safe_psql('postgres', 'SELECT extract(epoch FROM pg_postmaster_start_time())')));
	is(open_shards($one), '(0,1,2)', 'the shards that leave are closed');
	($status, $out, $err) = run_shard($program, 'query', $one, '--sql', 'SELECT count(*) FROM users', '--format', 'csv');
	is("$status " . join(' ', $out =~ /^(\d+),/mg), '3 0 1 2', 'query asks the others, and fails');
	like($err, qr/moving, and open on none of the servers just now: 3-5/, 'it names those that are missing');
	$one->safe_psql('postgres', q{
		SELECT snowflake_split.keep_positions(sequences, last_values, are_called, at_end)
		FROM snowflake_split.read_sequences(snowflake_split.sequences_of(true));
		SELECT snowflake_split.end_sequences(snowflake_split.sequences_of(true))});
	is(sqlstate($one, 'SELECT insta3.next_id()'), '25006', 'and their sequences');
	$holder = $one->background_psql('postgres');
	$holder->query_safe('BEGIN; ALTER SEQUENCE insta3.down SET LOGGED');
	is(sqlstate($one, 'SELECT snowflake_split.release_sequences(snowflake_split.sequences_of(true))'), '55P03',
		'a sequence that is locked is not passed over');
	$holder->quit;
	# A standby that crashes in its promotion can start as a primary on the old timeline: then standby.signal is gone, and
	# pg_control is as it was.
	my $three = new_standby($one, 'three');
	$three->stop;
	unlink $three->data_dir . '/standby.signal';
	$three->start;
	is($three->safe_psql('postgres', 'SELECT pg_is_in_recovery(), timeline_id FROM pg_control_checkpoint()'), 'f|1',
		'a primary on the old timeline');
	is(sqlstate($three, "BEGIN READ WRITE; INSERT INTO insta$_.users (name) VALUES ('both')"), '25006',
		"shard $_ is closed there") foreach 1, 3;
	is(sqlstate($one, q{INSERT INTO insta1.users (name) VALUES ('home')}), '', 'and open on the old server if it stays');
	($status, $out, $err) = split_server('--from', $three, '--standby', $two, '--resume', @command);
	ok($status == 3 && $err =~ /lacks the replication slot that was made when its shards were closed/,
		'it is not taken for the old server') or diag($err);
	foreach my $end ([ '--resume', @command ], ['--abort'])
	{
		($status, $out, $err) = split_server('--from', $one, '--standby', $three, @$end);
		ok($status == 3
			&& $err =~ /the split is that of standby \S+:${\$two->port}\/postgres, not of \S+\nHINT:  Give the standby/,
			"$end->[0] with another standby is refused") or diag($err);
	}
	my $set_standby =
		sub {
			$one->safe_psql('postgres', sprintf q{UPDATE snowflake_split.state SET seal = %s, new_server = '%s:%s/postgres'},
				$_[1], $_[0]->host, $_[0]->port) };
	$set_standby->($three, 'gen_random_uuid()');
	($status, $out, $err) = split_server('--from', $one, '--standby', $three, '--resume', @command);
	ok($status == 3 && $err =~ /was promoted without the last writes of the shards, and stays closed/,
		'nor is it opened without the last writes') or diag($err);
	is(sqlstate($three, q{INSERT INTO insta3.users (name) VALUES ('both')}), '25006', 'and shard 3 stays closed there');
	$set_standby->($two, 'NULL');
	$three->stop;
	($status, $out, $err) = split_server(@servers, '--abort');
	ok($status == 3 && $err =~ /was requested, and may still come\nHINT: .*--resume finishes/,
		'--abort: the promotion may still come') or diag($err);
	$two->stop;
	($status, $out, $err) = split_server(@servers, '--abort');
	ok($status == 3 && $err =~ /the standby cannot be reached/,
		'--abort: nor is it known if the standby cannot be reached') or diag($err);
	$two->start;
	# It is started again. Its startup process is stopped, so the promotion that --resume requests does not come.
	kill 'STOP', $two->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'startup'");
	my $resumed = start_command('split', '^', @servers, '--resume', @command);
	await('the promotion is requested', sub { -e $two->data_dir . '/promote' });
	kill_command($resumed->{run});
	($status, $out, $err) = split_server(@servers, '--abort');
	ok($status == 3 && $err =~ /was requested, and may still come/,
		'--abort: the promotion that was requested after the start may still come') or diag($err);
	$two->stop('immediate');
	my $read_only = qr/\S+:${\$two->port}\/postgres still has default_transaction_read_only = on after 5 s/;
	my $remove = qr/HINT:  Remove it there, and SELECT pg_reload_conf\(\);/;
	$stays =
		qr/$read_only, from configuration file \S+\/postgresql\.conf\n$remove/;
	$two->append_conf('postgresql.conf', 'default_transaction_read_only = on');
	$two->start;
	($status, $out, $err) = split_server(@servers, '--abort');
	ok($status == 3 && $err =~ $stays, '--abort does not wait for ever until the standby can be written to') or diag($err);
	$two->adjust_conf('postgresql.conf', 'default_transaction_read_only', undef);
	$two->reload;
	($status, $out, $err) = split_server(@servers, '--abort');
	is($status, 0, '--abort, when it was started again') or diag($err);
	is($one->safe_psql('postgres',
		q{SELECT (SELECT count(*) FROM pg_namespace WHERE nspname ~ 'split') + (SELECT count(*) FROM pg_replication_slots)}),
			'0',
		'nothing is left');
	is($one->safe_psql('postgres', $written), '1', 'all rows are there');
	is($one->safe_psql('postgres', q{SELECT nextval('insta3.down'), nextval('insta3.round')}), '-2|3',
		'sequences go on where they were');
	is($two->safe_psql('postgres', 'SHOW default_transaction_read_only'), 'off', 'the standby has its settings again');
	$one->wait_for_catchup($two);
	# "three" in the place of a standby that was promoted when the shards had been closed.
	my $begun = start_command('split', 'old: triggers', @servers, '--shards', '3-5', @command, '--timeout', '60s');
	kill_command($begun->{run});
	$three->start;
	$three->safe_psql('postgres', 'ALTER SYSTEM SET default_transaction_read_only = on');
	$three->reload;
	$one->safe_psql('postgres', q{SELECT snowflake_split.close()});
	$set_standby->($three, 'NULL');
	($status, $out, $err) = split_server('--from', $one, '--standby', $three, '--abort');
	ok($status == 0 && $err =~ /was promoted by somebody else, and stays read-only/, '--abort names such a server') or diag($err);
	is($three->safe_psql('postgres', 'SHOW default_transaction_read_only'), 'on', 'and no ID is drawn there');
	$three->stop;
	$two->safe_psql('postgres', 'ALTER SYSTEM RESET default_transaction_read_only');
	$two->reload;
	$one->wait_for_catchup($two);
};

# Writers of shard 1, which stays, and shards 4 and 5, which leave, through either PgBouncer; and direct ones to shard
# 3.
my $user = getpwuid($<);
sub through
{
	my ($shard, $by) = @_;
	return "host=$by->{dir} port=6432 dbname=shard$shard user=$user";
}
$one->safe_psql('postgres', 'CREATE PUBLICATION photos FOR TABLE ' . join(', ', map { "insta$_.photos" } 1, 3 .. 5));
$one->safe_psql('postgres', q{SELECT pg_create_logical_replication_slot('reader', 'pgoutput')});
# As REPACK (CONCURRENTLY) of PostgreSQL 19 has one while it runs.
$one->safe_psql('postgres', q{SELECT pg_create_logical_replication_slot('pg_repack_4711', 'test_decoding')});
my %writers =
	(1 => start_writers(2, 'insta1', [], through(1, $pooler)), 4 => start_writers(2, 'insta4', [], through(4, $pooler)),
	5 => start_writers(2, 'insta5', [], through(5, $second_pooler)),
	3 => start_writers(2, 'insta3', [], map { $_->connstr('postgres') } $one, $two));

# A reader of their photos. Its slot on the old server begins before the writers.
sub read_photos
{
	my ($node) = @_;
	return decoded_changes($node, 'get', 'reader', 'photos');
}

# The standby has a slot of its own.
$one->safe_psql('postgres', q{SELECT pg_create_physical_replication_slot('two')});
$two->safe_psql('postgres', q{ALTER SYSTEM SET primary_slot_name = 'two'});
$two->reload;
await('the standby uses its slot',
	sub { $one->safe_psql('postgres', q{SELECT active FROM pg_replication_slots WHERE slot_name = 'two'}) eq 't' });

subtest 'a split while clients write' => sub {
	($status, $rows, $err) = shard_json($program, 'split', @arguments, '--dry-run');
	like(join("\n", map { $_->{obstacle} } @$rows), qr/^\S+: publication everything is FOR ALL TABLES, .*slot reader/,
		'a slot that may read the record');
	push @arguments, '--trust-readers';
	($status, $rows, $err) = shard_json($program, 'split', @arguments, '--dry-run');
	is("$status " . join("\n", map { $_->{obstacle} } @$rows), '0 ', '--dry-run: nothing is in the way') or diag($err);
	unlike($err, qr/both servers archive/, 'each server archives by its own command');
	like($err, qr/slot reader: changes of the shards that leave come from \S+ until the cutover/, 'the slot is named');
	is($one->safe_psql('postgres', "SELECT count(*) FROM pg_namespace WHERE nspname = 'snowflake_split'"), '0',
		'and nothing is made');
	($status, $rows, $err) = shard_json($program, 'split', @arguments);
	is($status, 0, 'split') or diag($err);
	is(join(' ', map { "$_->{shard} $_->{state}" } @$rows), '3 moved 4 moved 5 moved', 'it names the shards');
	like($rows->[0]{next}, qr/^snowflake-shard split --from \S+ --standby \S+ --complete$/, 'and the next command');
	like($err, qr/writes were blocked for \d+ ms/, 'and for how long writes were blocked');
	like($err, qr/keeps WAL for the standby that was promoted: SELECT pg_drop_replication_slot\('two'\);/,
		'and the slot that nobody uses any more');
	note($err);
	is($two->safe_psql('postgres', 'SELECT pg_is_in_recovery()'), 'f', 'the standby was promoted');
	is(open_shards($one, $two), '(0,1,2) (3,4,5)', 'each shard is open on one server');
	is($two->safe_psql('postgres', q{SELECT string_agg(slot_name, ' ') FROM pg_replication_slots WHERE slot_type = 'logical'}), 'reader',
		'the new server has a slot for each reader, and none of REPACK');
	$one->safe_psql('postgres', q{SELECT pg_drop_replication_slot('pg_repack_4711')});
	is($two->safe_psql('postgres', q{SELECT count(*) FROM pg_logical_slot_peek_binary_changes('reader', NULL, 1,
		'proto_version', '1', 'publication_names', 'everything') WHERE encode(data, 'escape') ~ 'snowflake_split\\\\000(state|bounds)'}),
		'1', 'the slot of the new server begins with the opening');
	foreach my $by ($pooler, $second_pooler)
	{
		is(join(' ', map { port_of_alias($by, $_) } 0 .. 5), join(' ', ($one->port) x 3, ($two->port) x 3),
			'the aliases lead there');
	}
	is(slurp_file($environment), sprintf("DBNAME=postgres\nHOST=%s\nPORT=%s\nSHARDS=3-5\n", $two->host, $two->port),
		'--switch-command has the shards and their new server in its environment');
};

subtest 'both servers are closed for what is not theirs' => sub {
	# Both are closed for what is not theirs.
	my $at_two = qr/shard 3, schema insta3, has moved\nDETAIL:  It is at \S*:${\$two->port}\/postgres now/;
	like(($one->psql('postgres', 'DELETE FROM insta3.users'))[2] // '', $at_two, 'the error names the new server');
	like(($two->psql('postgres', 'DELETE FROM insta1.users'))[2] // '',
		qr/shard 1, schema insta1, has stayed\nDETAIL:  It is at \S*:${\$one->port}\/postgres/, 'and the old one');
	foreach my $closed ([ $one, 3 ], [ $two, 1 ])
	{
		my ($node, $shard) = @$closed;
		my $name = $node->name;
		foreach my $sql ("INSERT INTO insta$shard.users (name) VALUES ('x')", "UPDATE insta$shard.users SET country = NULL",
			"DELETE FROM insta$shard.events_rest", "TRUNCATE insta$shard.bookings",
			"COPY insta$shard.follows FROM PROGRAM 'echo 1 2'",
			"SELECT insta$shard.next_id()", "SELECT snowflake_next_id($shard, 'insta$shard.table_id_seq')")
		{
			is(sqlstate($node, $sql), '25006', "$name: $sql");
			is(sqlstate($node, "SET session_replication_role = replica; SET snowflake.max_drift = -1; $sql"), '25006',
				"$name: $sql, as a replica");
		}
		my @sequences = split /\n/, $node->safe_psql('postgres',
			"SELECT oid::regclass FROM pg_class WHERE relkind = 'S' AND relnamespace = 'insta$shard'::regnamespace");
		isnt(sqlstate($node, "SELECT nextval('$_')"), '', "$name: nextval('$_')") foreach @sequences;
	}
	is($two->safe_psql('postgres', q{SELECT nextval('insta3.down'), nextval('insta3.round')}), '-3|4',
		'other sequences go on where they were');
	is(sqlstate($two, $_), '', "two: $_") foreach 'SELECT insta3.next_id()',
		q{INSERT INTO insta5.users (name) VALUES ('new')};
	is(sqlstate($one, $_), '', "one: $_") foreach 'SELECT insta0.next_id()',
		q{INSERT INTO insta2.users (name) VALUES ('new')};
};

subtest 'the other verbs on servers that were split' => sub {
	# What the other commands make of it.
	($status, $rows) = shard_json($program, 'verify', $one, $two);
	is(join("\n", map { "$_->{object}: $_->{problem}" } @$rows), '', 'verify finds nothing');
	($status, $rows) = shard_json($program, 'list', $one, $two);
	is(join(' ', map { "$_->{shard} $_->{state}" } @$rows), '0 open 1 open 2 open 3 open 4 open 5 open',
		'list shows each shard once');
	is((run_shard($program, 'diff', $one, $two, '--template', 'insta0'))[0] & 2, 0, 'diff compares all shards');
	($status, $out, $err) =
		run_shard($program, 'clone', $one, '--template', 'insta0', '--shards', '9', '--schema', 'insta{}');
	ok($status == 3 && $err =~ /insta0, is of a split that still has its triggers and old rows\nHINT: .* --complete /,
		'clone would clone the triggers, and refuses');
	foreach my $move ([ 3, $two, $one ], [ 0, $one, $two ])
	{
		my ($shard, $from, $to) = @$move;
		($status, $rows) = shard_json($program, 'move', "insta$shard", '--from', $from, '--to', $to, '--dry-run', '--trust-readers');
		my $complete = qr/--from \S+:${\$one->port}\S+ --standby \S+:${\$two->port}\S+ --complete/;
		like(join("\n", map { $_->{obstacle} } @$rows),
			qr/:${\$_->port}\/postgres: schema insta$shard is of a split.*\n +HINT:  .*$complete/,
			"until --complete, no move of shard $shard from " . $from->name . ': the split of ' . $_->name) foreach $from, $to;
		is(grep({ $_->{obstacle} !~ /is of a split/ } @$rows), 0,
			'and no hint that would open the triggers of the split or drop its rows');
	}
	is((run_shard($program, 'run', $one, $two, '--shards', '0-5', '--sql', 'SELECT count(*) FROM users'))[0], 0,
		'run finds all shards');
};

subtest 'nothing goes back' => sub {
	($status, $out, $err) = split_server(@servers, '--abort');
	ok($status == 3 && $err =~ /\d+ rows of its shards have been written there/,
		'--abort is refused, and says what was written') or diag($err);
	is((split_server(@servers, '--resume'))[0], 0, '--resume after the end does nothing');
	foreach my $end ([ '--resume', '--from is the new server of the split' ],
		[ '--complete', '--from is the new server of the split' ])
	{
		($status, $out, $err) = split_server('--from', $two, '--standby', $one, $end->[0]);
		ok($status == 3 && $err =~ /$end->[1]/, "$end->[0] with the servers exchanged is refused") or diag($err);
	}
	($status, $out, $err) = split_server(@arguments);
	ok($status == 3 && $err =~ /has been split\nHINT: .*--complete/, 'a second split is refused') or diag($err);
};

subtest 'no acknowledged write is lost' => sub {
	my %journals = map { ($_ => [ stop_writers($writers{$_}) ]) } keys %writers;
	foreach my $shard (sort keys %journals)
	{
		my @journal = @{ $journals{$shard} };
		my @lost = lost_writes($shard == 1 ? $one : $two, 'postgres', "insta$shard", @journal);
		is(@lost, 0, "shard $shard: each acknowledged transaction is there once, of " . @journal)
			or diag(join "\n", @lost[0 .. 4]);
		is(grep({ $_->{doubt} || $_->{error} } @journal), 0, "shard $shard: no error behind PgBouncer") if $shard != 3;
	}
};

# Both slots, the old one first, lead from the rows of the beginning, which no writer changes, to those of the end.
subtest 'a reader of the old and then of the new slot sees each change once' => sub {
	my ($id, $caption) = (0, 2);    # columns
	my (%photos, @faults);
	foreach my $change (read_photos($one), read_photos($two))
	{
		my ($kind, $table, @row) = @$change;
		my $photo = "$table $row[$id]";
		push @faults, "$kind $photo" if exists $photos{$photo} ? $kind eq 'I' : $kind ne 'I';
		$photos{$photo} = $row[$caption];
		delete $photos{$photo} if $kind eq 'D';
	}
	foreach my $shard (1, 3 .. 5)
	{
		my $rows = ($shard == 1 ? $one : $two)->safe_psql('postgres',
			"SELECT id, caption FROM insta$shard.photos WHERE caption LIKE 'w%' ORDER BY id");
		my $read = join "\n", map { /^insta$shard\S+ (.*)/ ? "$1|$photos{$_}" : () } sort keys %photos;
		is($read, $rows, "shard $shard: " . ($rows =~ tr/\n//) . ' photos');
	}
	is("@faults", '', 'no change comes twice');
};

subtest 'a new server that cannot be written to' => sub {
	# The new server cannot be written to. Its clients are led there all the same: they can read, and a write fails at
	# once.
	$one->safe_psql('postgres', q{UPDATE snowflake_split.state SET step = 'promoting'});
	$two->append_conf('postgresql.conf', 'default_transaction_read_only = on');
	$two->reload;
	await('the new server is read-only',
		sub { $two->safe_psql('postgres', 'SHOW default_transaction_read_only') eq 'on' });
	console($pooler, 'PAUSE shard3');
	($status, $out, $err) = split_server(@servers, '--resume', @command);
	ok($status == 3 && $err =~ /the shards are open, and clients are led there, but $stays\nThen --resume finishes/,
		'--resume says that the new server is read-only') or diag($err);
	is(port_of_alias($pooler, 3), $two->port, 'no alias stays paused');
	$two->adjust_conf('postgresql.conf', 'default_transaction_read_only', undef);
	$two->reload;
	is((split_server(@servers, '--resume', @command))[0], 0, '--resume goes on when it was mended');
};

subtest 'the positions are kept for reverse replication by hand' => sub {
	is($one->safe_psql('postgres',
		q{BEGIN; DO 'BEGIN PERFORM snowflake_split.reopen(); END'; SELECT nextval('insta3.down'), nextval('insta3.round');
		SELECT insta3.next_id() IS NOT NULL, (SELECT count(*) > 0 FROM insta3.users); DELETE FROM insta3.events_rest;
		ROLLBACK}),
		"-3|4\nt|t", 'reopen() leads the old server back');
};

subtest '--complete' => sub {
	my $id = $two->safe_psql('postgres', 'SELECT id FROM snowflake_split.state');
	$two->safe_psql('postgres', 'UPDATE snowflake_split.state SET id = gen_random_uuid()');
	($status, $out, $err) = split_server(@servers, '--complete');
	ok($status == 3 && $err =~ /the servers are not those of one split/, '--complete of two splits is refused')
		or diag($err);
	$two->safe_psql('postgres', "UPDATE snowflake_split.state SET id = '$id'");
	# Rows that were written behind the fence.
	foreach ([ $one, 'insta3.events' ], [ $two, 'insta1.events' ])
	{
		my ($node, $table) = @$_;
		$node->safe_psql('postgres', "ALTER TABLE $table DISABLE TRIGGER ALL; UPDATE $table SET id = id");
		my @found = map { "$_->{finding} $_->{object}" } @{ (shard_json($program, 'verify', $node))[1] };
		is("@found", "fence table $table", 'verify finds a table whose trigger is disabled');
		($status, $out, $err) = split_server(@servers, '--complete');
		like("$status $err", qr/^3 .*table $table is not closed to every write/s, 'and so does --complete');
		$node->safe_psql('postgres', "ALTER TABLE $table ENABLE ALWAYS TRIGGER snowflake_split");
		($status, $out, $err) = split_server(@servers, '--complete');
		like("$status $err", qr/^3 .*would be dropped:\n    \d+ rows?: as role app, because code of that role can run: SELECT \* FROM ONLY ${table}_/s, 'which names the rows')
			or diag($err);
		$node->safe_psql('postgres', "ALTER TABLE $table DISABLE TRIGGER ALL; DELETE FROM $table;
			ALTER TABLE $table ENABLE ALWAYS TRIGGER snowflake_split");
	}
	# A view keeps it.
	$two->safe_psql('postgres', 'CREATE VIEW public.v AS SELECT * FROM insta1.users');
	($status, $out, $err) = split_server(@servers, '--complete');
	ok($status == 3 && $err =~ /view (public\.)?v/, '--complete names what depends on a schema') or diag($err);
	# So does an extension.
	$two->safe_psql('postgres', 'DROP VIEW public.v; CREATE EXTENSION "uuid-ossp" SCHEMA insta1');
	($status, $out, $err) = split_server(@servers, '--complete');
	like("$status $err", qr/^3 .*extension "uuid-ossp" is installed in schema insta1, and /s, 'and an extension there');
	$two->safe_psql('postgres', 'ALTER EXTENSION "uuid-ossp" SET SCHEMA public');
	# So did a trigger of another role, whose table is temporary.
	is(sqlstate($two,
		'CREATE TEMP TABLE t (); CREATE TRIGGER t BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION '
		. 'snowflake_split.leaving()',
		params => [ '-U', 'weak' ]), '42501', 'the functions of a split are not for others');
	$two->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION snowflake_split.leaving() TO weak');
	my $planter = $two->background_psql('postgres', extra_params => [ '-U', 'weak' ]);
	$planter->query_safe(
		'CREATE TEMP TABLE t (); CREATE TRIGGER t BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION '
			. 'snowflake_split.leaving()');
	is((split_server(@servers, '--complete'))[0], 0, '--complete') or diag($err);
	foreach my $node ($one, $two)
	{
		is($node->safe_psql('postgres', "SELECT count(*) FROM pg_namespace WHERE nspname ~ 'insta|split'"), '3',
			$node->name . ' has its shards alone');
		is($node->safe_psql('postgres', "SELECT count(*) FROM pg_trigger WHERE tgname ~ 'split'"), '0', 'and no trigger');
	}
	$planter->quit;
	is((split_server(@servers, '--complete'))[0], 0, '--complete again does nothing');
	is((run_shard($program, 'verify', $one, $two))[0], 0, 'verify finds nothing');
};

$_->stop foreach $one, $two;
done_testing();
