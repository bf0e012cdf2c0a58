# The owner of one shard cannot stop snowflake-shard for the shards of others: by ending the session, by catching a
# cancel, by a lock, or by large rows.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time);

my $program = shard_program();
my $node = new_server('one', conf => "dynamic_shared_memory_type = mmap\n");    # so each segment is a file
my ($status, $out, $err);

# Shards 0 to 3, each of a role of its own: o0 to o3.
$node->safe_psql('postgres', qq{CREATE ROLE o$_ LOGIN; GRANT CREATE ON DATABASE postgres TO o$_}) foreach 0 .. 3;
as_owner($_, qq{
	SELECT snowflake_create_shard($_, 's$_');
	CREATE TABLE s$_.t (id bigint PRIMARY KEY DEFAULT s$_.next_id(), text text);
	INSERT INTO s$_.t (text) VALUES ('a')}) foreach 0 .. 3;

sub as_owner
{
	my ($shard, $sql) = @_;
	return $node->safe_psql('postgres', $sql, extra_params => [ '-U', "o$shard" ]);
}

# The function s0.n() of all shards returns 1, but for those that are given.
sub behave
{
	my (%body) = @_;
	as_owner($_, "CREATE OR REPLACE FUNCTION s$_.n() RETURNS integer LANGUAGE plpgsql AS \$f\$"
		. ($body{$_} // 'BEGIN RETURN 1; END') . '$f$') foreach 0 .. 3;
	return;
}

sub query
{
	return run_shard($program, 'query', $node, '--format', 'csv', @_);
}

my @n = ('--sql', 'SELECT n()');
my $end_session = q{BEGIN SET LOCAL exit_on_error = on; RAISE 'the end'; END};
my $go_on = q{BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN END; END LOOP; END};
my $server = $node->host . ':' . $node->port . '/postgres';

# The process of a shard's session, by its role.
my $worker = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'snowflake session' AND usename = 'o1'};

subtest 'a session that the code of a shard ends' => sub {
	behave(1 => $end_session);
	foreach my $jobs (1, 2)
	{
		($status, $out, $err) = query(@n, '--jobs', $jobs);
		is("$status $out", "3 shard,schema,n\n0,s0,1\n2,s2,1\n3,s3,1\n", "query --jobs $jobs: the rows of all others");
		is($err, "snowflake-shard: shard 1: ERROR:  the session of role o1 has ended\nDETAIL:  the end.\nSERVER:  $server\n",
			"query --jobs $jobs: the shard is named, with the error");
	}
	my @run = ('run', $node, '--shards', '0-3', '--sql', 'CREATE TABLE c AS SELECT n()');
	my ($code, $rows) = shard_json($program, @run);
	is("$code " . states($rows), '3 done 0; failed 1; not done 2,3', 'run: stops at the shard');
	as_owner(0, 'DROP TABLE s0.c');
	($code, $rows) = shard_json($program, @run, '--keep-going');
	is("$code " . states($rows), '3 done 0,2,3; failed 1', 'run --keep-going: all others are done');
	like($rows->[1]{message}, qr/^ERROR:  the session of role o1 has ended\nDETAIL:  the end/, 'and the message says why');
	is($rows->[1]{sqlstate}, '08006', 'with its SQLSTATE');
	as_owner($_, "DROP TABLE s$_.c") foreach 0, 2, 3;
};

subtest 'a session that an administrator ends' => sub {
	behave(1 => $go_on);
	my $end = sub {
		await('the code of the shard runs', sub { $node->safe_psql('postgres', "$worker AND wait_event = 'PgSleep'") ne '' });
		$node->safe_psql('postgres', "SELECT pg_terminate_backend(($worker))");
	};
	my $query = background('query', $node, '--format', 'csv', @n);
	$end->();
	$query->{h}->finish;
	is($query->{h}->result(0) . $query->{out}, "3shard,schema,n\n0,s0,1\n2,s2,1\n3,s3,1\n", 'query: the rows of all others');
	like($query->{err}, qr/^snowflake-shard: shard 1: ERROR:  the session of role o1 has ended\nDETAIL:  terminating /,
		'the shard is named');
	my $run = background('run', $node, '--shards', '0-3', '--keep-going', @n);
	$end->();
	$run->{h}->finish;
	is($run->{out}, "3 shards done: 0,2-3\n1 shard failed: 1\n", 'run: all others are done');
	unlike($run->{err}, qr/can be there or not/, 'the change is rolled back');
	# A cancel of the statement is an error of it.
	$query = background('query', $node, '--shards', '1', '--sql', 'SELECT pg_sleep(600)');
	await('the query runs', sub { $node->safe_psql('postgres', "$worker AND wait_event = 'PgSleep'") ne '' });
	$node->safe_psql('postgres', "SELECT pg_cancel_backend(($worker))");
	$query->{h}->finish;
	like($query->{err}, qr/^snowflake-shard: shard 1: ERROR:  canceling statement due to user request\nSERVER/, 'a cancel is told');
	# COMMIT, which a deferred trigger holds up.
	as_owner(1, q{CREATE TABLE s1.slow (id bigint); CREATE FUNCTION s1.wait() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN PERFORM pg_sleep(600); RETURN NULL; END'; CREATE CONSTRAINT TRIGGER last AFTER INSERT ON s1.slow
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION s1.wait()});
	$run = background('run', $node, '--shards', '1-2', '--keep-going', '--json', '--sql',
		q{DO $$ BEGIN IF current_schema() = 's1' THEN INSERT INTO slow VALUES (1); END IF; END $$});
	$end->();
	$run->{h}->finish;
	my %state = map { $_->{shard} => $_ } map { JSON::PP::decode_json($_) } split /\n/, $run->{out};
	is(join(' ', map { "$_ $state{$_}{state}" } 1, 2), '1 failed 2 done', 'COMMIT: the other is done');
	like($state{1}{message}, qr/the session was lost, and the change can be there or not: ERROR: +the session of role o1 has ended/,
		'and the outcome of the first is not known');
	as_owner(1, 'DROP TABLE s1.slow');
};

subtest 'query --timeout ends code that catches the cancel' => sub {
	behave(1 => $go_on);
	my $start = time();
	($status, $out, $err) = query(@n, '--timeout', '500ms');
	is("$status $out", "3 shard,schema,n\n0,s0,1\n2,s2,1\n3,s3,1\n", 'the rows of all others');
	is($err, "snowflake-shard: shard 1: ERROR:  canceling statement due to statement timeout\nSERVER:  $server\n", 'the shard is named');
	cmp_ok(time() - $start, '<', 10, 'in time');
	ok($node->poll_query_until('postgres', "SELECT NOT EXISTS ($worker)"), 'and its session has ended');
};

my $sessions = q{SELECT count(*) FROM pg_stat_activity WHERE application_name ~ '^snowflake-shard' OR backend_type = 'snowflake session'};

# The segments of sessions, by their size: a queue of 1 MB and one of 64 kB.
sub segments
{
	return scalar grep { my $size = -s $_ // 0; $size > 1_048_576 && $size < 1_310_720 } glob $node->data_dir . '/pg_dynshmem/mmap.*';
}

sub nothing_is_left
{
	my ($name) = @_;
	ok($node->poll_query_until('postgres', $sessions, '0'), "$name: no session is left");
	await('the shared memory of sessions is gone', sub { segments() == 0 });
	return;
}

# A backend in the code of a shard, which has set the check for a lost client off.
subtest 'no session stays after the command' => sub {
	behave(1 => $go_on =~ s/BEGIN/BEGIN SET LOCAL client_connection_check_interval = 0;/r);
	foreach my $signal ('INT', 'TERM')
	{
		local $SIG{INT} = 'DEFAULT';
		my $query = background('query', $node, @n);
		$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'});
		$query->{h}->signal($signal);
		eval { $query->{h}->finish };
		is($query->{h}->full_result(0), $signal eq 'INT' ? 2 : 15, "SIG$signal ends the command");
		nothing_is_left("SIG$signal");
	}
	foreach my $verb ([ 'query', $node ], [ 'run', $node, '--shards', '1' ],
		[ 'run', $node, '--shards', '1', '--no-transaction' ])
	{
		my $command = background(@$verb, @n);
		$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'});
		my $start = time();
		kill_command($command->{h});
		is(segments(), 1, "$verb->[0]: the session has shared memory");
		nothing_is_left("kill -9 of $verb->[0]");
		cmp_ok(time() - $start, '<', 5, 'soon');    # client_connection_check_interval is half a second
	}
};

# The process that the command talks to, while the code of shard 1 goes on.
subtest 'an administrator ends the backend of the command' => sub {
	behave(1 => $go_on);
	my $backend = q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'snowflake-shard'};
	foreach my $verb ([ 'query', $node ], [ 'run', $node, '--shards', '0-3', '--keep-going' ],
		[ 'run', $node, '--shards', '0-3', '--keep-going', '--no-transaction' ])
	{
		my $command = background(@$verb, @n);
		await('the code of the shard runs', sub { $node->safe_psql('postgres', "$worker AND wait_event = 'PgSleep'") ne '' });
		$node->safe_psql('postgres', $backend);
		$command->{h}->finish;
		is($command->{h}->result(0), 3, "@$verb[0, -1]: an error") or diag($command->{out});
		like($command->{err}, qr/terminating connection due to administrator command/, 'which says why');
		like($command->{out}, $verb->[0] eq 'run' ? qr/3 shards done: 0,2-3/ : qr/2\s+s2\s+1\n\s*3\s+s3\s+1/,
			'and the others are done');
		nothing_is_left($verb->[0]);
	}
};

# The two processes of a session of psql: that of the caller, and that of the owner.
sub psql_with_session
{
	my $psql = $node->background_psql('postgres', on_error_stop => 0);
	my $caller = $psql->query_safe('SELECT pg_backend_pid()');
	$psql->query_safe(q{BEGIN; SELECT snowflake_internal.session_begin('s1'::regnamespace, 'BEGIN');
		SELECT snowflake_internal.session_script('LOCK TABLE t')});
	return ($psql, $caller, $node->safe_psql('postgres', $worker));
}

sub begin_again
{
	my ($psql, $schema) = @_;
	return $psql->query_safe("ROLLBACK; BEGIN; SELECT snowflake_internal.session_begin('$schema'::regnamespace, 'BEGIN')");
}

# Runs a statement that fails; returns the error. query_safe() dies if there is one.
sub error_of
{
	my ($psql, $sql) = @_;
	$psql->query($sql);
	my $error = $psql->{stderr};
	$psql->{stderr} = '';
	return $error;
}

subtest 'either process ends while the other waits for its user' => sub {
	behave();
	my ($psql, $caller, $session) = psql_with_session();
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($caller)");
	nothing_is_left('the caller');
	$node->safe_psql('postgres', 'BEGIN; LOCK TABLE s1.t NOWAIT; COMMIT');
	eval { $psql->quit };
	($psql, $caller, $session) = psql_with_session();
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($session)");
	$node->poll_query_until('postgres', "SELECT NOT EXISTS ($worker)");
	like(error_of($psql, q{SELECT snowflake_internal.session_run('COMMIT')}),
		qr/the session of role o1 has ended\nDETAIL:  terminating /, 'the session, with the reason');
	is(segments(), 0, 'its shared memory ends with the next call');
	is(begin_again($psql, 's1'), '', 'and the caller gets another one');
	$psql->quit;
	nothing_is_left('both');
};

# prlimit permits the process some megabytes more than it has.
subtest 'memory is out' => sub {
	plan skip_all => 'there is no prlimit' if system('prlimit --version >/dev/null 2>&1') != 0;
	my $limit = sub {
		my ($pid) = @_;
		my ($kb) = slurp_file("/proc/$pid/status") =~ /VmSize:\s+(\d+) kB/;
		return system('prlimit', "--pid=$pid", '--as=' . 1024 * ($kb + 20_000) . ':'); };
	my ($psql, $caller, $session) = psql_with_session();
	is($limit->($session), 0, 'a limit for the session');
	like(error_of($psql, q{SELECT snowflake_internal.session_script($$ SELECT length(repeat('x', 100000000)) $$)}),
		qr/ERROR:  out of memory/, 'its error is one of the statement');
	is(begin_again($psql, 's1'), '', 'it is used again');
	is($node->safe_psql('postgres', $worker), $session, 'the same process');
	is($limit->($caller), 0, 'a limit for the caller');
	begin_again($psql, 's2');
	$psql->query_safe(q{SELECT FROM snowflake_internal.session_query($$ SELECT repeat('x', 40000000) $$)});
	like(error_of($psql, 'SELECT length(a) FROM snowflake_internal.session_fetch(1) AS r (a text)'),
		qr/ERROR:  out of memory/, 'the caller has no memory for a row');
	ok($node->poll_query_until('postgres',
		q{SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'snowflake session')}), 'so the session ends');
	is(segments(), 0, 'with its shared memory');
	is(begin_again($psql, 's1'), '', 'the caller gets another one');
	$psql->quit;
	nothing_is_left('memory');
};

subtest 'each connection has a session of the owner whose shard it is at' => sub {
	behave();
	($status, $out, $err) = query('--jobs', '4', '--sql', 'SELECT session_user, current_user, n()');
	is("$status $out", "0 shard,schema,session_user,current_user,n\n" . join('', map { "$_,s$_,o$_,o$_,1\n" } 0 .. 3), 'query');
	my ($code, $rows) = shard_json($program, 'run', $node, '--shards', '0-3', '--jobs', '4', '--sql', 'CREATE TABLE c ()');
	is("$code " . states($rows), '0 done 0,1,2,3', 'run');
	is($node->safe_psql('postgres', q{SELECT string_agg(relowner::regrole::text, ' ' ORDER BY relowner::regrole::text)
		FROM pg_class WHERE relname = 'c'}), 'o0 o1 o2 o3', 'what it makes is of the owners');
	as_owner($_, "DROP TABLE s$_.c") foreach 0 .. 3;
};

subtest 'a lock of one owner delays no other shard' => sub {
	behave();
	as_owner(1, 'CREATE TABLE s1.without_index (id bigint DEFAULT s1.next_id(), t text)');
	my $holder = $node->background_psql('postgres');
	$holder->query_safe('SET ROLE o1; BEGIN; REINDEX TABLE s1.without_index');
	my $pid = $holder->query_safe('SELECT pg_backend_pid()');
	my $by = qr/because it is locked by process $pid \(role "?[\w-]+"?\)/;
	my $shard = qr/\Q$server\E: shard 1, schema s1/;
	($status, $out, $err) = run_shard($program, 'plan', $node);
	is("$status $err", '0 ', 'plan waits for no lock');
	$holder->query_safe('LOCK TABLE s1.t');
	my ($code, $rows);
	($code, $rows, $err) = shard_json($program, 'list', $node);
	my $sizes = $node->safe_psql('postgres', q{
		SELECT string_agg(size::text, ' ' ORDER BY shard)
		FROM (SELECT relnamespace::regnamespace::text AS shard, sum(pg_total_relation_size(oid)) AS size
		      FROM pg_class WHERE relkind IN ('r', 'm') AND relnamespace::regnamespace::text IN ('s0', 's2', 's3')
		      GROUP BY 1) AS s});
	is("$code " . join(' ', map { $_->{size} } grep { $_->{shard} != 1 } @$rows), "0 $sizes", 'list: sizes');
	ok((grep { $_->{shard} == 1 } @$rows)[0]->{size} > 0, 'and that of the locked tables');
	is((run_shard($program, 'plan', $node))[0], 0, 'plan');
	local $ENV{PGOPTIONS} = '-c lock_timeout=300ms';    # in place of 10 s
	($status, $out, $err) = query('--sql', 'SELECT count(*) FROM t');
	is("$status $out", "3 shard,schema,count\n0,s0,1\n2,s2,1\n3,s3,1\n", 'query: the rows of all others');
	like($err,
		qr/\Asnowflake-shard: shard 1: ERROR: .* lock timeout.*^DETAIL:  It is locked by process $pid .*: LOCK TABLE s1\.t/ms,
		'and the shard is named');
	($status, $out, $err) = run_shard($program, 'verify', $node);
	is("$status $out", "3 4 shards on 1 server, 0 findings\n", 'verify: looks at the others');
	like($err, qr/^snowflake-shard: $shard: its IDs are not all looked at, $by/m,
		'and the shard is named');
	$holder->quit;
};

subtest 'wide rows need little memory' => sub {
	my $wide = q{SELECT repeat('x', 8000000) FROM generate_series(1, 16)};
	my ($kb) = $node->safe_psql('postgres', qq{
		BEGIN; SELECT snowflake_internal.session_begin('s1'::regnamespace, 'BEGIN');
		SELECT FROM snowflake_internal.session_query(\$\$$wide\$\$);
		SELECT count(*) FROM snowflake_internal.session_fetch(16) AS r (a text); COMMIT;
		SELECT pg_read_file('/proc/self/status')}) =~ /VmHWM:\s+(\d+) kB/;
	cmp_ok($kb, '<', 100_000, 'the server: 16 rows of 8 MB');

	# A sanitizer needs more than this before it begins.
	my @limited = ('sh', '-c', 'ulimit -v 262144 && "$@" | wc -c', 'sh', $program);
	IPC::Run::run([ @limited, '--version' ], '>', \$out, '2>', \$err);
	plan skip_all => 'the program does not start with so little memory' if $out == 0;
	IPC::Run::run([ @limited, shard_command('query', $node, '--shards', 1, '--sql', $wide) ], '>', \$out, '2>', \$err);
	cmp_ok($out, '>', 128_000_000, 'query') or diag($err);
};

subtest 'no background worker is free' => sub {
	behave();
	$node->append_conf('postgresql.conf', 'max_worker_processes = 2');    # the launcher of logical replication takes one
	$node->restart;
	($status, $out, $err) = query(@n);
	is($status, 0, 'one connection has one') or diag($err);
	my $full = qr/no background worker is free for a session of role o\d: max_worker_processes is 2\nHINT:  Use fewer connections \(--jobs\), or ALTER SYSTEM SET max_worker_processes = 10;/;
	foreach my $verb ([ 'query', @n ], [ 'run', '--shards', '0-3', '--sql', 'CREATE TABLE c ()' ])
	{
		my ($name, @arguments) = @$verb;
		($status, $out, $err) = run_shard($program, $name, $node, @arguments, '--jobs', '2');
		is("$status $out", '3 ', "$name --jobs 2: is refused");
		like($err, $full, 'with the numbers');
	}
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'c'}), 0, 'before anything runs');
};

done_testing();
