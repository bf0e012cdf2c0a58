# snowflake-shard global: tables that one server writes and the others follow. Each kind of drift is found, and a fleet
# without drift has no finding, also while clients write. Followers refuse writes, and nothing keeps a slot.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PlantedTest;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my @all = map { new_server($_, conf => "wal_level = logical\nmax_wal_senders = 10\n") } qw(writer one two);
my ($writer, $one, $two) = @all;
my ($status, $out, $err);

sub global
{
	my ($verb, @arguments) = @_;
	($status, $out, $err) = run_shard($program, 'global', $verb, @arguments);
	return $status;
}

sub value
{
	my ($node, $sql) = @_;
	return $node->safe_psql('postgres', $sql);
}

sub slots { return value($writer, 'SELECT count(*) FROM pg_replication_slots') }
sub publications { return value($writer, 'SELECT count(*) FROM pg_publication') }
sub subscriptions { return value($_[0], 'SELECT count(*) FROM pg_subscription') }

# Those of verify.
sub findings
{
	my (@servers) = @_;
	my ($code, $rows, $errors) = shard_json($program, 'global', 'verify', @servers);
	diag($errors) if $code > 1;
	return $rows;
}

# The change is a finding of this kind, with a hint; it is found on no other server. Then it is undone, by the hints if
# nothing else is given, and nothing is left.
my $kinds = 0;

sub drifts
{
	my ($name, $expected, $seed, $mend) = @_;
	subtest "drift: $name" => sub {
		ref $seed ? $seed->() : $one->safe_psql('postgres', $seed);
		my $rows = findings(@all);
		my @found = map { "$_->{finding}: $_->{object}: $_->{problem}" } grep { $_->{hint} ne '' } @$rows;
		like(join("\n", @found), $expected, 'it is found');
		is(scalar(grep { $_->{server} !~ /:${\$one->port}\// } @$rows), 0, 'on this server alone') unless ref $seed;
		$kinds++ if join("\n", @found) =~ $expected;
		ref $mend ? $mend->() : $one->safe_psql('postgres', $_) foreach $mend // map { $_->{hint} } @$rows;
		is_deeply(findings(@all), [], 'and nothing when it is mended') or diag(explain($rows));
	};
	return;
}

my $written = 'BEGIN; SET LOCAL session_replication_role = replica;';    # as a disabled trigger

$writer->safe_psql('postgres', q{
	CREATE ROLE mallory LOGIN; CREATE ROLE app LOGIN;
	CREATE TYPE kind AS ENUM ('soft', 'hard');
	CREATE TABLE filters (id integer PRIMARY KEY, name text COLLATE "C" UNIQUE, kind kind,
		amount integer CHECK (amount > 0));
	CREATE INDEX filters_amount ON filters (amount);
	CREATE TABLE "My Filters" ("Key" text PRIMARY KEY, "a.b" integer NOT NULL);
	INSERT INTO filters SELECT i, 'filter ' || i, 'soft', i FROM generate_series(1, 1000) AS i;
	INSERT INTO "My Filters" VALUES ('x', 1);
	CREATE TABLE keyless (id integer); CREATE UNLOGGED TABLE unlogged (id integer PRIMARY KEY);
	CREATE TABLE deferred (id integer PRIMARY KEY DEFERRABLE);
	CREATE TABLE nothing (id integer PRIMARY KEY); ALTER TABLE nothing REPLICA IDENTITY NOTHING});
$_->safe_psql('postgres', q{CREATE ROLE mallory LOGIN; CREATE ROLE app LOGIN; CREATE TYPE kind AS ENUM ('soft', 'hard')})
	foreach $one, $two;
my @tables = ('public.filters', 'public."My Filters"');

subtest 'tables that cannot be global' => sub {
	is(global('add', 'filters', '--on', @all), 2, 'a name without a schema is wrong usage');
	like($err, qr/"filters" is no name of a table with its schema\nHINT: /, 'with a hint');
	is(global('add', 'public.keyless', 'public.unlogged', 'public.deferred', 'public.nothing', 'public.gone', '--on', @all), 1, 'others are obstacles');
	like($out, qr/keyless has neither a primary key .*unlogged is no ordinary .*deferred_pkey as replica identity, which is DEFERRABLE.*nothing has no replica identity\n.*ALTER TABLE (public\.)?nothing REPLICA IDENTITY DEFAULT;.*gone is not there/s,
		'each with its reason');
	is(publications(), '0', 'nothing is made');
};

subtest 'a writer whose standbys may have any name' => sub {
	my $set = sub {
		my ($names) = @_;
		$writer->safe_psql('postgres', $_) foreach "ALTER SYSTEM SET synchronous_standby_names = '$names'", 'SELECT pg_reload_conf()';
		await('the setting is loaded', sub { value($writer, 'SHOW synchronous_standby_names') eq $names });
	};
	$set->('ANY 1 (*)');
	is(global('add', $tables[0], '--on', @all), 1, 'is an obstacle');
	like($out, qr/synchronous_standby_names = 'ANY 1 \(\*\)': a subscription counts as a standby by \*, /, 'because a follower would be one');
	$set->('');
};

subtest 'a writer that does not let slots use pgoutput' => sub {
	my $setting = 'output_plugin_libraries';
	plan skip_all => "there is no $setting" if value($writer, "SELECT current_setting('$setting', true) IS NULL") eq 't';
	$writer->safe_psql('postgres', "ALTER DATABASE postgres SET $setting = test_decoding");
	is(global('add', $tables[0], '--on', @all), 1, 'is an obstacle');
	like($out, qr/$setting = 'test_decoding' does not name pgoutput.*\n +HINT:  ALTER DATABASE postgres SET $setting = 'test_decoding', 'pgoutput';$/m,
		'with the statement that mends it');
	$writer->safe_psql('postgres', "ALTER DATABASE postgres RESET $setting");
};

subtest 'a planted publication is not used' => sub {
	$writer->safe_psql('postgres', 'CREATE TABLE salaries (id integer PRIMARY KEY); ALTER TABLE salaries OWNER TO mallory;
		GRANT CREATE ON DATABASE postgres TO mallory');
	is(sqlstate($writer, 'CREATE PUBLICATION snowflake_global FOR TABLE salaries', params => [ '-U', 'mallory' ]), '',
		'any role may make one');
	is(global('add', $tables[0], '--on', @all), 3, 'it is refused');
	like($err, qr/publication snowflake_global is of role mallory, .*\nHINT:  DROP PUBLICATION snowflake_global;/,
		'by its role');
	$writer->safe_psql('postgres', 'DROP PUBLICATION snowflake_global;
		CREATE PUBLICATION snowflake_global FOR TABLE filters WHERE (id > 5)');
	is(global('add', $tables[0], '--on', @all), 3, 'one that has not all rows, too');
	like($err, qr/sends not all rows .*\nHINT:  ALTER PUBLICATION snowflake_global SET TABLE public\.filters;/,
		'with a hint');
	$writer->safe_psql('postgres', 'DROP PUBLICATION snowflake_global');
};

subtest 'what a table needs on a follower' => sub {
	$writer->safe_psql('postgres', q{CREATE SCHEMA palette; CREATE DOMAIN palette.hue AS text; CREATE ROLE painter;
		CREATE TABLE palette.hues (hue palette.hue PRIMARY KEY); GRANT SELECT ON palette.hues TO painter});
	my $obstacles = sub {
		global('add', 'palette.hues', '--on', $writer, $one);
		return join("\n", map { s/^\S+: //r } grep { !/^\s+HINT/ } split /\n/, $out) =~ s/ on \S+;/;/gr;
	};
	is($obstacles->(), join("\n", map { "$_ does not exist, and table palette.hues needs it" } 'role painter', 'schema palette', 'domain type palette.hue'),
		'all that is missing is told');
	$one->safe_psql('postgres', q{CREATE ROLE painter; CREATE SCHEMA palette; CREATE DOMAIN palette.hue AS text CHECK (VALUE <> '');
		ALTER DOMAIN palette.hue OWNER TO mallory});
	like($obstacles->(), qr/^domain type palette\.hue belongs to role mallory, and to role \S+ table palette\.hues needs it$/,
		'and what belongs to another role, whose code the worker would run');
	$_->safe_psql('postgres', 'DROP SCHEMA palette CASCADE; DROP ROLE painter') foreach $writer, $one;
};

subtest 'code of other roles on a follower' => sub {
	$one->safe_psql('postgres', q{
		CREATE TABLE filters (id integer PRIMARY KEY, name text COLLATE "C" UNIQUE, kind kind,
			amount integer CHECK (amount > 0));
		CREATE INDEX filters_amount ON filters (amount);
		CREATE FUNCTION evil() RETURNS trigger LANGUAGE plpgsql AS
			$$BEGIN RAISE LOG 'PLANTED trigger as %', current_user; RETURN new; END$$;
		CREATE TRIGGER evil BEFORE INSERT ON filters FOR EACH ROW EXECUTE FUNCTION evil();
		ALTER TABLE filters ENABLE ALWAYS TRIGGER evil;
		ALTER TABLE filters OWNER TO mallory; ALTER FUNCTION evil() OWNER TO mallory});
	SKIP: {
		skip 'from 16 on the workers write as the owner', 3 if value($one, 'SHOW server_version_num') >= 160000;
		is(global('add', @tables, '--on', @all), 1, 'the table of another role is an obstacle');
		like($out, qr/table public\.filters belongs to role mallory\. .*HINT:  ALTER TABLE public\.filters OWNER TO/s,
			'with a hint');
		is(publications() . subscriptions($one), '00', 'nothing is made');
	}
	is(planted_code_run($one), '', 'its code has not run');
	$one->safe_psql('postgres', 'DROP TABLE filters; DROP FUNCTION evil();
		CREATE FUNCTION filters_check(integer) RETURNS boolean LANGUAGE sql AS $$SELECT true$$;
		CREATE SCHEMA snowflake_global AUTHORIZATION mallory');
	is(global('add', @tables, '--on', @all), 3, 'a planted schema');
	like($err, qr/schema snowflake_global on \S+ belongs to role mallory/, 'is not used');
	$one->safe_psql('postgres', 'DROP SCHEMA snowflake_global');
};

subtest 'the tables get followers' => sub {
	is(global('add', @tables, '--on', $writer, $one), 0, 'one follower') or diag($out . $err);
	is(value($one, 'SELECT count(*) FROM filters') . value($one, 'TABLE "My Filters"'), '1000x|1', 'its rows are there');
	is(global('add', @tables, '--on', $writer, @all), 0, 'the same command with one more, and the writer among them')
		or diag($out . $err);
	like($out, qr/public\.filters +\S+:${\$one->port}\/postgres +there already\n/, 'the first has them already');
	like($out, qr/public\."My Filters" +\S+:${\$two->port}\/postgres +added\n/, 'the second gets them');
	is(slots(), '2', 'a slot for each');
	is(global('verify', @all), 0, 'no finding') or diag($out . $err);
	like($out, qr/^2 global tables on 3 servers, 0 findings$/, 'in one line');
};

subtest 'one more table' => sub {
	$writer->safe_psql('postgres', 'CREATE TABLE tags (id integer PRIMARY KEY); INSERT INTO tags VALUES (7)');
	is(global('add', 'public.tags', '--on', $writer, $one), 1, 'not without all followers');
	like($out, qr/slot snowflake_global_\w+ is of a follower that is not given/, 'because the others would fail');
	$writer->safe_psql('postgres', 'ALTER TABLE tags OWNER TO app');
	SKIP: {
		skip 'from 16 on the workers write as the owner', 1 if value($one, 'SHOW server_version_num') >= 160000;
		is(global('add', 'public.tags', '--on', @all), 1, 'not with an owner that is not trusted');
	}
	is(global('add', 'public.tags', '--trust-owners', '--on', @all), 1, 'nor with one that may not make the table');
	my @hints = $out =~ /role app, which owns a table of schema public, may not make it there\n +HINT:  (GRANT CREATE ON SCHEMA public TO app;)/g;
	is(@hints, 2, 'on each follower') or diag($out);
	$_->safe_psql('postgres', $hints[0]) foreach $one, $two;
	is(global('add', 'public.tags', '--trust-owners', '--on', @all), 0, 'with all of them') or diag($out . $err);
	is(join(',', map { value($_, 'TABLE tags') } $one, $two), '7,7', 'its rows are there');
	is(global('remove', 'public.tags', '--on', @all), 0, 'and it is global no more') or diag($out . $err);
	is(sqlstate($one, 'INSERT INTO tags VALUES (1)'), '', 'so it can be written');
	is(global('verify', @all), 0, 'no finding') or diag($out . $err);
};

subtest 'a follower refuses writes' => sub {
	is(sqlstate($one, $_), '25006', $_)
		foreach 'INSERT INTO filters VALUES (0)', 'UPDATE filters SET amount = 1', 'DELETE FROM filters', 'TRUNCATE filters',
		'DELETE FROM "My Filters"';
	my (undef, undef, $error) = $one->psql('postgres', 'DELETE FROM filters');
	like($error, qr/public\.filters is a global table, .*\nHINT:  It is written on \S+:${\$writer->port}\/postgres\./,
		'the error names the writer');
	$one->safe_psql('postgres', q{SELECT snowflake_create_shard(5, 'insta5');
		CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), filter integer REFERENCES filters);
		INSERT INTO insta5.photos (filter) VALUES (1)});
	is(sqlstate($one, 'INSERT INTO insta5.photos (filter) VALUES (0)'), '23503', 'a foreign key of a shard works');
};

subtest 'a server that is drained' => sub {
	like((run_shard($program, 'plan', @all, '--drain', $one))[2], qr/ follows global tables\nHINT:  .* global remove /,
		'plan names what a follower leaves');
	like((run_shard($program, 'plan', @all, '--drain', $writer))[2], qr/ writes the global tables\nHINT: /,
		'and the writer');
	unlike((run_shard($program, 'plan', @all))[2], qr/global/, 'and nothing without --drain');
};

drifts('a missing row', qr/^rows: table public\.filters: \S+ has 1 row, key \(5\), \S+ has no row$/,
	"$written DELETE FROM filters WHERE id = 5; COMMIT",
	"$written INSERT INTO filters (id, name, kind, amount) VALUES (5, 'filter 5', 'soft', 5); COMMIT");
drifts('a changed value', qr/^rows: table public\.filters: \S+ has 1 row, key \(6\), .*, which is not the same$/,
	"$written UPDATE filters SET kind = 'hard' WHERE id = 6; COMMIT",
	"$written UPDATE filters SET kind = 'soft' WHERE id = 6; COMMIT");
drifts('a column more', qr/^definition: table public\.filters: column more: it is only here: integer$/,
	'ALTER TABLE filters ADD more integer');
drifts('a missing column', qr/^definition: table public\.filters: column kind: it is missing here: public\.kind$/,
	'ALTER TABLE filters DROP kind',
	"ALTER TABLE filters ADD kind kind; $written UPDATE filters SET kind = 'soft'; COMMIT");
drifts('NULLs', qr/^definition: table public\."My Filters": NOT NULL of column "a\.b": it is missing here/,
	'ALTER TABLE "My Filters" ALTER "a.b" DROP NOT NULL');
drifts('a missing index',
	qr/^definition: table public\.filters: index public\.filters_amount: it is missing here: CREATE/,
	'DROP INDEX filters_amount');
drifts('another type', qr/^definition: table public\.filters: column amount: it is bigint here, and integer on /,
	'ALTER TABLE filters ALTER amount TYPE bigint');
drifts('another collation',
	qr/^definition: table public\.filters: column name: it is text here, and text COLLATE "C" on /,
	'ALTER TABLE filters ALTER name TYPE text');
drifts('a missing constraint',
	qr/^definition: table public\.filters: constraint filters_amount_check: it is missing here/,
	'ALTER TABLE filters DROP CONSTRAINT filters_amount_check');
drifts('an unlogged table', qr/^definition: table public\."My Filters": kind: it is an unlogged table here/,
	'ALTER TABLE "My Filters" SET UNLOGGED');
drifts('a renamed table',
	qr/^table: table public\.filters: it is not there\ntable: table public\.renamed: the subscription has it/,
	'ALTER TABLE filters RENAME TO renamed', 'ALTER TABLE renamed RENAME TO filters');

my $subscription = value($one, 'SELECT subname FROM pg_subscription');
drifts('a disabled subscription', qr/^subscription: subscription $subscription: it is disabled$/,
	"ALTER SUBSCRIPTION $subscription DISABLE");
drifts('a standby that is not waited for', qr/^subscription: subscription $subscription: .* does not wait for the synchronous standby/,
	sub {
		$one->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = 'gone'");
		$one->reload;
		await('the setting is there', sub { value($one, 'SHOW synchronous_standby_names') eq 'gone' });
	},
	sub {
		$one->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
		$one->reload;
		await('the setting is gone', sub { value($one, 'SHOW synchronous_standby_names') eq '' });
	});
drifts('a follower that was written', qr/trigger: table public\.filters: writes to it are not refused/,
	q{ALTER TABLE filters DISABLE TRIGGER snowflake_global;
		INSERT INTO filters (id, name, kind, amount) VALUES (2000, 'mine', 'soft', 1)},
	'DELETE FROM filters WHERE id = 2000; ALTER TABLE filters ENABLE TRIGGER snowflake_global');
drifts('a worker that fails', qr/^worker: subscription $subscription: .*; its workers have failed \d+ times?$/m,
	sub {
		$one->safe_psql('postgres', "$written INSERT INTO filters (id) VALUES (4000); COMMIT");
		$writer->safe_psql('postgres', 'INSERT INTO filters (id) VALUES (4000)');
	},
	sub { value($one, "$written DELETE FROM filters WHERE id = 4000; COMMIT") });
drifts('a table that is global on the writer alone', qr/^rows: table public\.tags: the subscription does not have it$/m,
	sub { $writer->safe_psql('postgres', 'ALTER PUBLICATION snowflake_global ADD TABLE tags') },
	sub { $writer->safe_psql('postgres', 'ALTER PUBLICATION snowflake_global DROP TABLE tags') });
drifts('a planted publication', qr/^publication: publication snowflake_global: .* is of role mallory/,
	'GRANT CREATE ON DATABASE postgres TO mallory; SET ROLE mallory; CREATE PUBLICATION snowflake_global');
drifts('the slot of another server', qr/^slot: slot snowflake_global_gone: it is of no server that is given/,
	sub { value($writer, q{SELECT pg_create_logical_replication_slot('snowflake_global_gone', 'pgoutput')}) },
	sub { value($writer, q{SELECT pg_drop_replication_slot('snowflake_global_gone')}) });

# The subscription cannot go on, but the rows that shards refer to can stay.
drifts('a lost slot', qr/^slot: slot $subscription: it is not on \S+, or has lost WAL/m,
	sub {
		$one->safe_psql('postgres', "ALTER SUBSCRIPTION $subscription DISABLE");
		await('the slot is free', sub { value($writer,
			"SELECT active FROM pg_replication_slots WHERE slot_name = '$subscription'") eq 'f' });
		$writer->safe_psql('postgres', "SELECT pg_drop_replication_slot('$subscription'); DELETE FROM filters WHERE id = 9");
	},
	sub {
		is(global('add', '--on', $writer, $one), 1, 'add does not hide it');
		is(global('remove', '--on', $writer, $one), 0, 'the follower is taken away') or diag($out . $err);
		is(global('add', '--on', $writer, $one), 1, 'rows that differ are an obstacle');
		like($out, qr/table public\.filters: \S+ has no row, \S+ has 1 row, key \(9\)/, 'with their keys');
		$one->safe_psql('postgres', 'DELETE FROM filters WHERE id = 9');
		is(global('add', '--on', $writer, $one), 0, 'equal rows stay, and follow') or diag($out . $err);
		$writer->safe_psql('postgres', 'UPDATE filters SET amount = 99 WHERE id = 8');
	});
cmp_ok($kinds, '>=', 10, "$kinds kinds of drift were found");

subtest 'rows that are there already' => sub {
	# A change that is in the new slot and in the rows: it would be applied twice if the subscription began at the slot.
	is(global('remove', '--on', $writer, $one), 0, 'removed');
	my $holder = $writer->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE filters IN ROW EXCLUSIVE MODE');
	my $run = background('global', 'add', '--on', $writer, $one);
	await('the slot is made', sub { value($writer,
		'SELECT count(*) FROM pg_replication_slots WHERE confirmed_flush_lsn IS NOT NULL') eq '2' });
	my $insert = q{INSERT INTO filters (id, name, kind, amount) VALUES (3000, 'late', 'hard', 1); COMMIT};
	$one->safe_psql('postgres', "$written $insert");
	$holder->query_safe($insert);
	$holder->quit;
	$run->{h}->finish;
	is($run->{h}->result(0), 0, 'they stay, and follow') or diag($run->{out} . $run->{err});
	$writer->safe_psql('postgres', 'DELETE FROM filters WHERE id = 3000');
	is(global('verify', @all), 0, 'from where they were compared') or diag($out . $err);
};

subtest 'a table that was removed, and has equal rows' => sub {
	is(global('remove', 'public.filters', '--on', @all), 0, 'removed') or diag($out . $err);
	$writer->safe_psql('postgres', 'DELETE FROM filters WHERE id = 6');
	is(global('add', 'public.filters', '--on', @all), 1, 'rows that differ are an obstacle');
	like($out, qr/table public\.filters: \S+ has no row, \S+ has 1 row, key \(6\)/, 'with their keys');
	$_->safe_psql('postgres', 'DELETE FROM filters WHERE id = 6') foreach $one, $two;
	# A change that is in the rows, and that the worker of a follower has not passed yet.
	my $insert = q{INSERT INTO filters (id, name, kind, amount) VALUES (3001, 'late', 'hard', 1)};
	my ($on_writer, $on_one) = map { $_->background_psql('postgres') } $writer, $one;
	$on_writer->query_safe('BEGIN; LOCK TABLE filters IN ROW EXCLUSIVE MODE');
	$on_one->query_safe('BEGIN; LOCK TABLE "My Filters" IN SHARE MODE');
	$writer->safe_psql('postgres', 'INSERT INTO "My Filters" VALUES (-1, -1)');
	my $run = background('global', 'add', 'public.filters', '--on', @all);
	await('the table is published', sub { value($writer, q{SELECT count(*) FROM pg_publication_tables WHERE tablename = 'filters'}) eq '1' });
	$_->safe_psql('postgres', "$written $insert; COMMIT") foreach $one, $two;
	$on_writer->query_safe("$insert; COMMIT");
	await('the command waits for the worker', sub {
		value($writer, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE query ~ 'confirmed_flush_lsn >=' AND pid <> pg_backend_pid()}) eq 't'
			|| value($one, q{SELECT count(*) FROM pg_subscription_rel WHERE srrelid = 'filters'::regclass}) eq '1' });
	$_->quit foreach $on_one, $on_writer;
	$run->{h}->finish;
	is($run->{h}->result(0), 0, 'it is added again') or diag($run->{out} . $run->{err});
	$writer->safe_psql('postgres', 'DELETE FROM filters WHERE id = 3001; DELETE FROM "My Filters" WHERE "a.b" = -1');
	is(global('verify', @all), 0, 'and followed from there') or diag($out . $err);
};

subtest 'a killed command is completed by the same one' => sub {
	is(global('remove', '--on', $writer, $two), 0, 'removed');
	$two->safe_psql('postgres', 'DROP TABLE filters, "My Filters"');
	my $holder = $writer->background_psql('postgres');
	$holder->query_safe('BEGIN; INSERT INTO keyless VALUES (1)');    # the slot waits for it
	foreach ([ TERM => 0 ], [ KILL => 1 ])
	{
		my ($signal, $left) = @$_;
		my $run = background('global', 'add', '--on', $writer, $two);
		await('the slot waits', sub { value($writer, q{SELECT count(*) FROM pg_stat_activity
			WHERE wait_event_type = 'Lock' AND query ~ 'pg_create_logical'}) eq '1' });
		$run->{h}->signal($signal);
		$run->{h}->finish;
		is(subscriptions($two), $left, "subscriptions that are left by $signal");
	}
	$holder->query_safe('COMMIT');
	$holder->quit;
	is(global('add', '--on', $writer, $two), 0, 'completed') or diag($out . $err);
	is(slots() . subscriptions($two), '21', 'no slot and no subscription is left over');
};

subtest 'a change that was skipped' => sub {
	plan skip_all => 'PostgreSQL 18 counts them' if value($writer, 'SHOW server_version_num') < 180000;
	$one->safe_psql('postgres', "$written DELETE FROM filters WHERE id = 7; COMMIT");
	$writer->safe_psql('postgres', 'DELETE FROM filters WHERE id = 7');
	my $found;
	await('verify finds it', sub { ($found) = grep { $_->{finding} eq 'subscription' } @{ findings(@all) } });
	like($found->{problem}, qr/has skipped 1 change of rows that are missing here/, 'with the number');
	$one->safe_psql('postgres', $found->{hint} =~ /(SELECT .*;)/);
	is(global('verify', @all), 0, 'until the statement of the hint') or diag($out . $err);
};

subtest 'no finding while clients write' => sub {
	my $writes = IPC::Run::start([ 'psql', '-Xq', '-d', $writer->connstr('postgres'), '-c', q{
		DO $$ DECLARE stop CONSTANT timestamptz := clock_timestamp() + interval '1.5 s'; BEGIN
			FOR i IN 1 .. 1000000 LOOP
				UPDATE filters SET amount = amount + 1 WHERE id = i % 1000;
				INSERT INTO "My Filters" VALUES (i, i) ON CONFLICT DO NOTHING;
				DELETE FROM "My Filters" WHERE "a.b" = i - 5;
				COMMIT;
				EXIT WHEN clock_timestamp() > stop;
			END LOOP; END $$}]);
	await('the writes have begun', sub { value($writer, 'SELECT count(*) > 3 FROM "My Filters"') eq 't' });
	is_deeply(findings(@all), [], 'none');
	$writes->finish;
	is_deeply(findings(@all), [], 'and none behind them');
};

subtest 'followers are taken away' => sub {
	is(global('remove', '--on', $writer, $one), 0, 'one') or diag($out . $err);
	is(sqlstate($one, 'UPDATE filters SET amount = 5 WHERE id = 5'), '', 'its tables can be written');
	is(value($one, q{SELECT count(*) FROM pg_namespace WHERE nspname = 'snowflake_global'}), '0', 'no function is left');
	is(slots() . publications(), '11', 'the publication stays for the other');
	is(findings($writer, $one)->[0]{problem} =~ s/ \S+$//r, 'no subscription follows', 'verify misses the one');
	is(global('remove', '--on', $writer, $two), 0, 'the other, too');
	is(global('add', @tables, '--on', $two, $writer), 0, 'and it becomes the writer') or diag($out . $err);
	is(sqlstate($writer, 'DELETE FROM filters') . sqlstate($two, 'DELETE FROM filters WHERE id = 1'), '25006',
		'so that it alone can be written');
	is(global('verify', $writer, $two), 0, 'no finding') or diag($out . $err);
	is(global('remove', '--on', $two, $writer), 0, 'removed') or diag($out . $err);
	is(global('add', @tables, '--on', $writer, $two), 0, 'and back') or diag($out . $err);
	my $slot = value($two, 'SELECT subslotname FROM pg_subscription');
	my $connstr = $writer->connstr('postgres');
	$writer->stop;
	is(global('remove', '--on', $connstr, $two), 3, 'the last one, without the writer');
	is(global('remove', '--on', $connstr, $two, '--force'), 0, 'with --force') or diag($out . $err);
	like($err, qr/the slot is left .*\nHINT:  SELECT pg_drop_replication_slot\('$slot'\);/, 'the slot is named');
	is(subscriptions($two), '0', 'no subscription is left');
	$writer->start;
	$writer->safe_psql('postgres', "SELECT pg_drop_replication_slot('$slot')");
	is(global('remove', '--on', @all), 0, 'again, with the writer') or diag($out . $err);
	is(slots() . publications(), '00', 'nothing is left');
};

$_->stop foreach @all;
done_testing();
