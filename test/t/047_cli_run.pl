# snowflake-shard run over two servers: a shard records a change that has a name, and has it exactly once,
# whatever is run at the same time, is in the way, or is lost in the middle. What run reports is what happened.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my ($status, $out, $err, $rows);

# Four shards on each of two servers.
my ($one, $two) = map { new_server($_) } 'one', 'two';
make_template($one);
$one->safe_psql('postgres', 'ALTER TABLE insta0.log OWNER TO CURRENT_USER');    # the schema is a superuser's
$two->safe_psql('postgres', 'CREATE ROLE app LOGIN');
is((run_shard($program, 'clone', $one, '--template', 'insta0', '--shards', '1-3', '--schema', 'insta{}'))[0], 0,
	'four shards on one server');
is((run_shard($program, 'clone', $one, '--template', 'insta0', '--shards', '4-7', '--schema', 'insta{}', '--to', $two))[
	0], 0, 'and four on another');
my @run = ('run', $one, $two, '--shards', '0-7');
my $folder = PostgreSQL::Test::Utils::tempdir();

# What a statement returns in each of the shards.
sub in_shards
{
	my ($sql) = @_;
	return join(' ',
		map { ($_ < 4 ? $one : $two)->safe_psql('postgres', "SET search_path = insta$_, public; $sql") } 0 .. 7);
}

sub file
{
	my ($name, $text) = @_;
	unlink "$folder/$name";
	append_to_file("$folder/$name", $text);
	return "$folder/$name";
}

# --- once ----------------------------------------------------------------------------------------

subtest '--once makes a change once in each shard' => sub {
	my @place = ('--once', 'photos.place', '--sql', 'ALTER TABLE photos ADD place text');
	($status, $rows) = shard_json($program, @run, @place, '--jobs', 2);
	is("$status " . states($rows), '0 done 0,1,2,3,4,5,6,7', '--once: every shard');
	is_deeply((grep { $_->{shard} == 5 } @$rows)[0],
		{ shard => 5, schema => 'insta5', server => $two->host . ':' . $two->port . '/postgres', state => 'done',
			sqlstate => undef, message => undef },
		'--json: a line for each shard');
	($status, $rows) = shard_json($program, @run, @place);
	is("$status " . states($rows), '0 had it already 0,1,2,3,4,5,6,7', '--once: a second time');
	is((run_shard($program, @run, @place))[1], "8 shards had it already: 0-7\n", 'which is told');
	is(in_shards('SELECT snowflake_changes()'), join(' ', ('{photos.place}') x 8), 'snowflake_changes() has its name');
	is($one->safe_psql('postgres', q{SELECT concat_ws(' ', provolatile, lanname, prorettype::regtype, proowner::regrole)
		FROM pg_proc JOIN pg_language ON pg_language.oid = prolang WHERE proname = 'snowflake_changes'
			AND pronamespace = 'insta0'::regnamespace}),
		'i sql text[] ' . $one->safe_psql('postgres', q{SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'insta0'}),
		'it is as documented');
	($status, $out, $err) =
		run_shard($program, @run, '--once', 'photos.place', '--sql', 'ALTER TABLE photos ADD place varchar');
	is($status, 3, '--once: another text of the same name is an error');
	my $another_text = qr/it has had change photos\.place with another text: SHA-256 was \w{64}, is \w{64}/;
	like($err,
		qr/shard 0, schema insta0: $another_text\nHINT: .* name of its own/,
		'which says so');
	($status, $rows) = shard_json($program, @run, '--once', 'fails', '--sql',
		q{CREATE TABLE IF NOT EXISTS albums (); SELECT 1 / ('x' || current_schema() = 'xinsta2')::int});
	is($rows->[0]{sqlstate}, '22012', 'an SQLSTATE');
	is(in_shards("SELECT to_regclass('albums') IS NULL AND snowflake_changes() = '{photos.place}'"), join(' ', ('t') x 8),
		'a change that fails is not recorded');
	($status, $rows) = shard_json($program, 'clone', $one, '--template', 'insta0', '--shards', '8', '--schema', 'insta{}');
	is($one->safe_psql('postgres', 'SELECT insta8.snowflake_changes()'), '{photos.place}', 'a clone has the record');
	is((run_shard($program, 'run', $one, '--shards', '3', '--once', 'late', '--sql', 'SELECT 1'))[0], 0,
		'a change of one shard');
	($status, $out) = run_shard($program, 'diff', $one, $two, '--template', 'insta0');
	my $compared = qr/8 shards compared with insta0, different: 3/;
	ok($status == 1
		&& $out =~ /^shard 3, schema insta3:\n(.*\n)*\+     'late' -- \w{64}\n(.*\n)*$compared\n$/m,
		'diff shows it')
		or diag($out);
	is((run_shard($program, 'run', $one, '--shards', '3', '--once', $_, '--sql', 'SELECT 1'))[0], 2,
		"a name that cannot be: $_") foreach "a'b", "a\nb", 'a\\b';
	($status, $out, $err) = run_shard($program, @run, '--no-transaction', '--once', 'x', '--sql', 'VACUUM');
	ok($status == 2 && $err =~ /--no-transaction has none\nHINT:  Run it without --once\..*DROP INDEX CONCURRENTLY IF EXISTS/, '--once --no-transaction is refused')
		or diag($err);
};

# --- the files of a folder -----------------------------------------------------------------------

subtest '--dir makes the changes of a folder in the order of its files' => sub {
	file('1_first.sql', 'CREATE TABLE first (n integer)');
	file('2_fill.sql', "INSERT INTO first VALUES (1);\n");
	file('.3.sql', 'not SQL');
	file('readme', 'not SQL');
	($status, $rows) = shard_json($program, @run, '--dir', $folder);
	is("$status " . states($rows), '0 done 0,1,2,3,4,5,6,7', '--dir: all files');
	file('10_more.sql', 'INSERT INTO first VALUES (10)');
	is((run_shard($program, @run, '--dir', $folder))[1], "8 shards done: 0-7\n", '--dir: a file more');
	is((run_shard($program, @run, '--dir', $folder))[1], "8 shards had it already: 0-7\n", '--dir: nothing new');
	is(in_shards('SELECT string_agg(n::text, $$,$$) FROM first'), join(' ', ('1,10') x 8), '--dir: each file once');
	like(in_shards('SELECT snowflake_changes()'), qr/^\{photos\.place,1_first\.sql,2_fill\.sql,10_more\.sql\} /,
		'recorded in order');
	file('4_wrong.sql', 'CREATE TABLE fourth (); SELECT 1 / 0');
	($status, $out, $err) = run_shard($program, @run, '--dir', $folder);
	ok($status == 3 && $err =~ /change 4_wrong\.sql: ERROR:  division by zero/, '--dir: an error names the file')
		or diag($err);
	file('4_wrong.sql', 'CREATE TABLE fourth ()');
	file('2_fill.sql', 'INSERT INTO first VALUES (2)');
	($status, $out, $err) = run_shard($program, @run, '--dir', $folder);
	ok($status == 3 && $out eq "8 shards failed: 0-7\n" && $err =~ /has had change 2_fill\.sql with another text/,
		'--dir: a file that has changed');
	is(in_shards(q{SELECT to_regclass('fourth') IS NULL}), join(' ', ('t') x 8), 'is found before anything runs');
	is((run_shard($program, @run, '--dir', "$folder/none"))[0], 2, '--dir: no such folder');
};

# As Django, Flyway and others write them.
subtest 'files of migration tools' => sub {
	$folder = PostgreSQL::Test::Utils::tempdir;
	file("$_.sql", "COMMENT ON TABLE first IS '$_'") foreach qw(V2__b V10__c V002__a V1.10__e V1.9__d V1__z V1_1__y);
	is((run_shard($program, @run, '--dir', $folder))[1], "8 shards done: 0-7\n", 'numbers count by their value');
	like(in_shards('SELECT snowflake_changes()'),
		qr/,V1__z\.sql,V1\.9__d\.sql,V1\.10__e\.sql,V1_1__y\.sql,V002__a\.sql,V2__b\.sql,V10__c\.sql\} /,
		'in this order');
	file('V11.sql', 'CREATE TABLE eleventh ()');
	foreach my $case ([ "--\n-- Raw Python operation\n--\n/* THIS OPERATION CANNOT BE WRITTEN AS SQL */;" => qr/has comments alone/ ],
		[ 'BEGIN; CREATE TABLE twelfth (); COMMIT' => qr/begins or ends a transaction\nHINT: .*remove BEGIN/ ])
	{
		file('V12.sql', $case->[0]);
		($status, $out, $err) = run_shard($program, @run, '--dir', $folder);
		ok($status == 2 && $out eq '' && $err =~ /change V12\.sql $case->[1]/, $case->[0]) or diag("$status $out$err");
	}
	unlink "$folder/V12.sql";
	foreach my $case ([ 'U11__drop.sql', 'undoes a change' ], [ '11_drop.down.sql', 'undoes a change' ],
		[ 'R__views.sql', 'is repeatable' ])
	{
		file($case->[0], 'DROP TABLE first');
		($status, $out, $err) = run_shard($program, @run, '--dir', $folder);
		ok($status == 2 && $out eq '' && $err =~ /file \Q$case->[0] $case->[1]\E by its name/, $case->[0])
		  or diag("$status $out$err");
		unlink "$folder/$case->[0]";
	}
	is(in_shards(q{SELECT to_regclass('eleventh') IS NULL}), join(' ', ('t') x 8), 'found before anything runs');
	is((run_shard($program, @run, '--once', 'x', '--sql', '-- nothing'))[0], 2, 'comments with --once');
};

# --- the owner of a shard goes on where a superuser has begun ---------------------------------------

subtest 'the record of changes belongs to the shard' => sub {
	$one->safe_psql('postgres',
		q{CREATE ROLE owner LOGIN; GRANT CREATE ON DATABASE postgres TO owner; SET ROLE owner;
			SELECT snowflake_create_shard(20, 'owned')});
	is((run_shard($program, 'run', $one->connstr('postgres') . $_, '--shards', '20', '--once', "by$_", '--sql',
		'SELECT 1'))[0], 0, "a change by role:$_")
		foreach ' ', ' user=owner';
	# A function of that name that is none of ours.
	$one->safe_psql('postgres',
		q{DROP FUNCTION owned.snowflake_changes;
			CREATE FUNCTION owned.snowflake_changes() RETURNS text[] LANGUAGE sql RETURN '{x}'::text[]});
	($status, $out, $err) =
		run_shard($program, 'run', $one, '--shards', '1,20', '--keep-going', '--once', 'x', '--sql', 'SELECT 1');
	ok($status == 3 && $out eq "1 shard done: 1\n1 shard failed: 20\n"
		&& $err =~ /snowflake_changes\(\) of its schema is no record/, 'a record that run has not written')
		or diag("$out$err");
};

# --- others are in the way -----------------------------------------------------------------------

# Two runs at once, both in insta1, where a lock holds the first.
sub locked
{
	my ($table) = @_;
	my $session = $one->background_psql('postgres', on_error_stop => 1);
	$session->query_safe("BEGIN; LOCK TABLE $table");
	return $session;
}

subtest 'two runs at once make a change once' => sub {
	my $waiting =
		q{SELECT count(*) FROM pg_stat_activity WHERE application_name ~ '^snowflake-shard' AND wait_event_type = 'Lock'};
	my @insert = ('--once', 'counted', '--sql', 'INSERT INTO first VALUES (100)', '--lock-timeout', '60s');
	my $lock = locked('insta1.first');
	my @both = map { background(@run, @insert) } 1, 2;
	await('two runs wait in a shard', sub { $one->safe_psql('postgres', $waiting) eq '2' });
	$lock->quit;
	$_->{h}->finish foreach @both;
	is(join(' ', map { $_->{h}->result(0) } @both), '0 0', 'two runs at once') or diag(map { $_->{err} } @both);
	is(in_shards('SELECT count(*) FROM first WHERE n = 100'), join(' ', (1) x 8), 'make a change once');
	like($both[0]{out} . $both[1]{out}, qr/had it already/, 'and one of them says so');
};

subtest 'a lock is waited for, and the change is tried again' => sub {
	my $lock = locked('insta2.users');
	my @busy = ('--shards', '1-2', '--sql', 'ALTER TABLE users ADD busy integer', '--lock-timeout', '50ms');
	($status, $rows) = shard_json($program, 'run', $one, @busy, '--tries', 3);
	is(join(' ', $status, map { "$_->{shard} $_->{state} " . ($_->{sqlstate} // '') } @$rows), '3 1 done  2 failed 55P03',
		'--lock-timeout');
	is(() = slurp_file($one->logfile) =~ /\[\d+\] ERROR:  canceling statement due to lock timeout/g, 3,
		'is tried as often as --tries says');
	my $late = background('run', $one, '--shards', '2', @busy[ 2 .. 5 ], '--tries', 1000);
	await('another try', sub { (() = slurp_file($one->logfile) =~ /\[\d+\] ERROR:  canceling statement due to lock timeout/g) > 3 });
	$lock->quit;
	$late->{h}->finish;
	is($late->{out}, "1 shard done: 2\n", 'a try after the lock is free succeeds');
};

subtest 'the holder of the lock of a record is named' => sub {
	# Any role can take the lock of a record.
	my $holder = $one->background_psql('postgres', on_error_stop => 1);
	my $pid =
		$holder->query_safe(
			q{SET application_name = 'stranger'; SELECT pg_backend_pid()
				FROM pg_advisory_lock(hashtextextended('snowflake_changes insta1', 0))});
	($status, $out, $err) = run_shard($program, 'run', $one, '--shards', '1', '--once', 'held', '--sql', 'SELECT 1',
		'--lock-timeout', '50ms', '--tries', 2);
	is($status, 3, 'the wait for the record of a shard has an end');
	my $locked_record = qr/another session has locked the record of changes of the shard, as a run does/;
	my $holder_of_lock = qr/The lock is held by process $pid, role [^,]+, application stranger/;
	like($err,
		qr/$locked_record\n$holder_of_lock.*\nHINT: .*SELECT pg_terminate_backend\($pid\);/,
		'and the error names the holder');
	$holder->quit;
};

# --- connections and a server that is lost ----------------------------------------------------------

subtest '--canary changes some shards first, and the others if these are well' => sub {
	my $fails_in = sub { my ($shards) = @_;
		"CREATE TABLE canary AS SELECT 1 / (NOT 'x' || current_schema() ~ '^xinsta[$shards]\$')::int AS a" };
	my @all = ('run', $one, $two, '--shards', 'all', '--canary', 3, '--sql');
	($status, $rows, $err) = shard_json($program, @all, $fails_in->(2));
	is("$status " . states($rows), '3 done 0,1; failed 2; not done 3,4,5,6,7,8,20', 'a canary fails: the others are not changed')
		or diag($err);
	($status, $rows) = shard_json($program, @all, 'DROP TABLE IF EXISTS canary', '--keep-going');
	is("$status " . states($rows), '0 done 0,1,2,3,4,5,6,7,8,20', 'none fails: all of both servers are changed');
	($status, $rows) = shard_json($program, @all, $fails_in->(6), '--keep-going');
	is("$status " . states($rows), '3 done 0,1,2,3,4,5,7,8,20; failed 6', 'another one fails');
	in_shards('DROP TABLE IF EXISTS canary');
};

subtest '--max-failures stops after so many' => sub {
	my $sql = q{CREATE TABLE counted AS SELECT 1 / (current_schema() !~ '[1367]')::int AS a};
	($status, $rows) = shard_json($program, 'run', $one, '--shards', 'all', '--max-failures', 2, '--sql', $sql);
	is("$status " . states($rows), '3 done 0,2; failed 1,3; not done 8,20', 'the second failure ends it');
	in_shards('DROP TABLE IF EXISTS counted');
	($status, $rows) = shard_json($program, 'run', $two, '--shards', '4-7', '--max-failures', 1, '--sql', $sql);
	is("$status " . states($rows), '3 done 4,5; failed 6; not done 7', 'the first failure ends it, as without the option');
	in_shards('DROP TABLE IF EXISTS counted');
};

subtest '--jobs opens as many connections to each server' => sub {
	$_->safe_psql('postgres', 'CREATE TABLE public.seen (n bigint); CREATE TABLE public.go ()') foreach $one, $two;
	# The statements wait until three connections are there.
	is((run_shard($program, @run, '--jobs', 3, '--sql', q{DO $$
		DECLARE connections bigint := 0;
		BEGIN
			FOR i IN 1 .. 6000 LOOP
				EXIT WHEN connections >= 3 OR EXISTS (SELECT FROM public.go);
				PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
				SELECT count(*) INTO connections FROM pg_stat_activity WHERE application_name = 'snowflake-shard';
			END LOOP;
			INSERT INTO public.seen VALUES (connections);
			INSERT INTO public.go DEFAULT VALUES;
		END $$}))[0], 0, '--jobs 3');
	is($_->safe_psql('postgres', 'SELECT max(n) FROM public.seen'), 3, 'three connections to ' . $_->name)
		foreach $one, $two;
	$_->safe_psql('postgres', 'TRUNCATE public.go') foreach $one, $two;
};

subtest 'the other servers go on when one is lost, and the same command does the rest' => sub {
	# A third database has shards 100 and 101.
	$one->safe_psql('postgres', 'CREATE DATABASE third');
	$one->safe_psql('third', 'CREATE EXTENSION snowflake; CREATE TABLE public.go ()');
	my $third = $one->connstr('third');
	($status, $out, $err) = run_shard($program, 'clone', $one, '--template', 'insta0', '--shards', '100,101', '--schema',
		'insta{}', '--to', $third);
	is($status, 0, 'two shards in a third database') or diag($err);
	@run = ('run', $one, $two, $third, '--shards', '0-7,100,101');
	my @wait =
		('--once', 'lost', '--sql',
			'DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM public.go) LOOP PERFORM pg_sleep(0.01); END LOOP; END $$');
	foreach my $keep_going ([], ['--keep-going'])
	{
		$one->safe_psql($_, 'TRUNCATE public.go') foreach 'postgres', 'third';
		my $lost = background(@run, @wait, '--json', @$keep_going);
		$_->[0]->poll_query_until($_->[1],
			q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'DO%public.go%' AND state = 'active'
			AND datname = current_database()}) foreach [ $one, 'postgres' ], [ $two, 'postgres' ], [ $one, 'third' ];
		$two->stop('immediate');
		$one->safe_psql($_, 'INSERT INTO public.go DEFAULT VALUES') foreach 'postgres', 'third';
		$lost->{h}->finish;
		my @lines = map { JSON::PP::decode_json($_) } split /\n/, $lost->{out};
		my %state = map { $_->{shard} => $_->{state} } @lines;
		is($lost->{h}->result(0), 3, "a server is lost @$keep_going: exit code 3");
		is(join(' ', map { "$_ $state{$_}" } 4 .. 7), '4 not done 5 not done 6 not done 7 not done',
			'its shards are not done');
		is(scalar(grep { $_->{message} } @lines), 1, 'one of them has the error');
		my $reported = join(' ', map { $state{$_} =~ /^(done|had it already)$/ ? 't' : 'f' } 0 .. 7, 100, 101);
		start_server($two);
		my $has_it = q{SELECT 'lost' = ANY (snowflake_changes())};
		is(join(' ', in_shards($has_it), map { $one->safe_psql('third', "SET search_path = insta$_, public; $has_it") } 100,
			101), $reported,
			'what is reported is what happened');
		is($reported, 't t t t f f f f t t', 'the other servers go on') if @$keep_going;
	}
	is((run_shard($program, @run, @wait[ 0 .. 2 ], $wait[3] =~ s/NOT EXISTS.*LOOP PERFORM/false LOOP PERFORM/r))[0], 3,
		'another text of the change is still an error');
	$two->safe_psql('postgres', 'INSERT INTO public.go DEFAULT VALUES');
	is((run_shard($program, @run, @wait))[1], "4 shards done: 4-7\n6 shards had it already: 0-3,100-101\n",
		'the same command again does the rest');
};

$_->stop foreach $one, $two;
done_testing();
