# snowflake-shard move finds its objects by their names. A role that is no superuser makes objects of these names, or
# takes its lock: it gains nothing by that, and the command names the role and the statement that removes them.

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
my ($one, $two) = my @nodes = map { new_server($_, conf => "wal_level = logical\nmax_wal_senders = 10\n") } qw(one two);
my @back = reverse @nodes;

sub as_mallory
{
	my ($node, $sql) = @_;
	return sqlstate($node, $sql, params => [ '-U', 'mallory' ]);
}

# Role mallory may create objects in the database of either server. Shard 5 is on the first.
my %slot;
foreach my $node (@nodes)
{
	$node->safe_psql('postgres', q{
		CREATE ROLE mallory LOGIN; CREATE ROLE vic;
		GRANT CREATE ON DATABASE postgres TO mallory;
		CREATE SCHEMA vic; CREATE TABLE vic.salaries (id bigint PRIMARY KEY, amount integer)});
	$slot{ $node->name } = 'snowflake_move_5_'
		. $node->safe_psql('postgres', 'SELECT oid FROM pg_database WHERE datname = current_database()');
}
$one->safe_psql('postgres', q{
	SELECT snowflake_create_shard(5, 'insta5');
	CREATE TABLE insta5.users (id bigint PRIMARY KEY DEFAULT insta5.next_id(), name text);
	INSERT INTO insta5.users (name) VALUES ('a'), ('b');
	ALTER TABLE vic.salaries OWNER TO mallory; GRANT USAGE ON SCHEMA vic TO mallory;
	ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO mallory; ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO mallory});

subtest 'objects of the names of a move are obstacles, each with what removes it' => sub {
	# Before a move, objects of its names are obstacles on both servers, each with what removes it.
	foreach my $node (@nodes)
	{
		is(as_mallory($node,
			'CREATE SCHEMA snowflake_move_5; CREATE TABLE snowflake_move_5.state (); CREATE PUBLICATION snowflake_move_5'), '',
			'any role that may create in the database can plant objects');
		$node->safe_psql('postgres',
			q{CREATE SUBSCRIPTION snowflake_move_5 CONNECTION 'host=/nonexistent' PUBLICATION p WITH (connect = false)});
		$node->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('$slot{ $node->name }')");
	}
	is_refused([ @nodes, $_ ],
		qr/schema snowflake_move_5 on \S+ belongs to role mallory, .*DROP SCHEMA snowflake_move_5 CASCADE;$/s,
		"a planted schema: $_")
		foreach qw(--resume --abort --undo --complete);
	my (undef, $rows) = shard_json($program, 'move', 'insta5', '--from', $one, '--to', $two, '--dry-run', '--reversible');
	foreach my $node (@nodes)
	{
		my @obstacles = grep { /^\S+:${\$node->port}\// } map { $_->{obstacle} } @$rows;
		is(join("\n", sort map { /^\S+: (.*) is there already/ ? $1 : $_ } @obstacles),
			join("\n", 'publication snowflake_move_5 of role mallory', 'schema snowflake_move_5', "slot $slot{ $node->name }",
				'subscription snowflake_move_5 of role ' . $node->safe_psql('postgres', 'SELECT quote_ident(current_user)')),
			'each is an obstacle on ' . $node->name);
		$node->safe_psql('postgres', $_) foreach map { /HINT: +(?:.*Else: )?(.*;)$/ ? split /(?<=;) /, $1 : () } @obstacles;
	}
	is(move(@nodes, '--dry-run', '--reversible'), 'exit code 0', 'the hints remove them');
};

subtest 'the functions and tables of a move are not for others, whatever default privileges say' => sub {
	moves([ @nodes, '--reversible' ], 'moved with reverse replication', 'a move with reverse replication');
	is(as_mallory($one, $_), '42501', "not for others: $_")
		foreach 'SELECT snowflake_move_5.lift()', 'CREATE TABLE snowflake_move_5.mine ()',
		'DELETE FROM snowflake_move_5.bounds',
		'UPDATE snowflake_move_5.noted SET at = NULL',
		'CREATE TEMP TABLE t (); CREATE TRIGGER t BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION '
		. 'snowflake_move_5.leaving()';
	is(as_mallory($one, 'SELECT step FROM snowflake_move_5.state'), '', 'but for the record, which anybody may read');
};

subtest 'a record in which another role owns something is not trusted' => sub {
	$two->safe_psql('postgres',
		q{CREATE FUNCTION snowflake_move_5.extra() RETURNS void LANGUAGE sql AS '';
			ALTER FUNCTION snowflake_move_5.extra() OWNER TO mallory});
	is_refused([ @nodes, '--undo' ],
		qr/function snowflake_move_5\.extra\(\) on \S+:${\$two->port}\/postgres belongs to role mallory/,
		'a function of another role in the schema');
	my $unread = qr/the record in schema snowflake_move_5 is not read, because function \S+ belongs to role mallory, .*
HINT:  .* Else: DROP SCHEMA snowflake_move_5 CASCADE;/;
	like((run_shard($program, @$_))[2], $unread, "$_->[0] warns of it")
		foreach [ 'list', $two ], [ 'run', $two, '--shards', '5', '--sql', 'SELECT 1' ];
	$two->safe_psql('postgres', 'DROP FUNCTION snowflake_move_5.extra()');
};

subtest 'a planted publication is not used' => sub {
	# A publication of that name would send the rows of another table, and the apply worker writes as a superuser.
	is(as_mallory($one, 'CREATE PUBLICATION snowflake_move_5 FOR TABLE vic.salaries'), '', 'a planted publication');
	my $of_mallory = qr/publication snowflake_move_5 on \S+:${\$one->port}\/postgres is of role mallory/;
	is_refused([ @nodes, '--undo', '--reversible' ],
		qr/$of_mallory, .*DROP PUBLICATION snowflake_move_5;/,
		'it does not become that of reverse replication');
	is(move(@back, '--abort'), '0 1 shard aborted: 5', '--abort') or diag($move_error);
	like($move_error, qr/publication snowflake_move_5 on \S+ is of role mallory/, 'it leaves it alone, with a warning');
	is($one->safe_psql('postgres', 'SELECT pubowner::regrole FROM pg_publication'), 'mallory', 'and so it does');
	$one->safe_psql('postgres', 'DROP PUBLICATION snowflake_move_5');
};

subtest 'a planted slot is replaced' => sub {
	# Slots have no owner: one that is there before anybody subscribes is made anew.
	$one->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('$slot{one}', true)");
	moves([ @nodes, '--undo', '--reversible' ], 'undone with reverse replication', 'a planted slot is replaced');
	is($one->safe_psql('postgres', 'SELECT plugin FROM pg_replication_slots'), 'pgoutput', 'by one of the move');
	is($two->safe_psql('postgres', q{SELECT string_agg(srrelid::regclass::text, ' ' ORDER BY 1) FROM pg_subscription_rel}),
		'insta5.users snowflake_move_5.marker',
		'reverse replication has the tables of the shard');
};

subtest 'a subscription of another role is not dropped' => sub {
	# A subscription of that name is not dropped if it is of somebody else.
	$two->safe_psql('postgres',
		'ALTER ROLE mallory SUPERUSER; ALTER SUBSCRIPTION snowflake_move_5 OWNER TO mallory; ALTER ROLE mallory NOSUPERUSER');
	my $of_mallory = qr/subscription snowflake_move_5 on \S+:${\$two->port}\/postgres is of role mallory/;
	is_refused([ @back, '--complete' ],
		qr/$of_mallory, .*DROP SUBSCRIPTION snowflake_move_5;/,
		'a subscription of another role');
	$two->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 OWNER TO CURRENT_USER');
};

my ($mallory, $pid);
subtest 'a trigger of a temporary table is no trigger of the shard' => sub {
	# A trigger of a temporary table is no trigger of the shard. The wait for its table has an end.
	$one->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION snowflake_move_5.leaving() TO mallory');
	$mallory = $one->background_psql('postgres', extra_params => [ '-U', 'mallory' ]);
	$mallory->query_safe(
		q{SET application_name = 'billing'; CREATE TEMP TABLE t ();
			CREATE TRIGGER t BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION snowflake_move_5.leaving()});
	$pid = $mallory->query_safe('BEGIN; INSERT INTO t DEFAULT VALUES; SELECT pg_backend_pid()');
	is_refused([ @back, '--complete', '--timeout', '1s' ],
		qr/waited for process $pid \(role mallory, database postgres, application billing, transaction \S+ old\)/,
		'a trigger of a temporary table that is in use');
	$mallory->query_safe('COMMIT');
	moves([ @back, '--complete' ], 'dropped', 'and one that is not');
};

subtest 'the holder of the lock of a move is named' => sub {
	# Anybody can take an advisory lock.
	$mallory->query_safe(q{SELECT pg_advisory_lock(hashtextextended('snowflake_move_5', 0))});
	my $holder = qr/process $pid, role mallory, application billing, connected since 20/;
	my $lock = qr/snowflake_move_5 on \S+:${\$one->port}\/postgres\n/;
	is_refused([ @nodes, '--abort' ],
		qr/it has locked $lock.* $holder.*\nHINT: .*SELECT pg_terminate_backend\($pid\);$/,
		'the lock of a move: its holder is named');
	$mallory->quit;
};

subtest 'a publication that is changed after it was made' => sub {
	# The publication is changed after it was made: the subscription would have a table of somebody else.
	is(move(@nodes, '--reversible', '--switch-command',
		'psql -XAtq -h "$HOST" -p "$PORT" -d "$DBNAME" -c "ALTER PUBLICATION snowflake_move_5 ADD TABLE vic.salaries"'),
		'exit code 1', 'reverse replication with the table of somebody else') or diag($move_error);
	like($move_error,
		qr/reverse replication is not possible: the publication on \S+ has table vic\.salaries, which is not of the shard/,
		'is not made');
	is($one->safe_psql('postgres', 'SELECT count(*) FROM pg_subscription'), '0', 'no subscription is left');
	moves([ @nodes, '--complete' ], 'dropped', '--complete');
};

subtest 'a published table that gets another name' => sub {
	# The owner of a table gives it another name when it is published. The slot waits for a transaction until then.
	$two->safe_psql('postgres', q{
		CREATE TABLE insta5.trap (id bigint PRIMARY KEY, amount integer); INSERT INTO insta5.trap VALUES (1, 1000000);
		ALTER TABLE insta5.trap OWNER TO mallory; ALTER TABLE insta5.users OWNER TO mallory; ALTER SCHEMA insta5 OWNER TO mallory;
		DROP TABLE vic.salaries;
		ALTER SCHEMA vic OWNER TO mallory});
	$one->safe_psql('postgres',
		'ALTER TABLE vic.salaries OWNER TO vic; ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM mallory; '
		. 'ALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM mallory');
	my $holder = $two->background_psql('postgres');
	$holder->query_safe('BEGIN; SELECT pg_current_xact_id()');
	my $run = start_command('move', 'the slot waits', 'insta5', '--from', $two, '--to', $one);
	$two->safe_psql('postgres',
		q{CREATE FUNCTION snowflake_move_5.extra() RETURNS void LANGUAGE sql AS '';
			ALTER FUNCTION snowflake_move_5.extra() OWNER TO mallory});
	$holder->query_safe('COMMIT');
	is(end_command($run), 3, 'a record that another role gets a part of meanwhile');
	like($run->{err}, qr/function snowflake_move_5\.extra\(\) on \S+ belongs to role mallory/, 'is not read on');
	$two->safe_psql('postgres', 'DROP FUNCTION snowflake_move_5.extra()');
	$holder->query_safe('BEGIN; SELECT pg_current_xact_id()');
	$run = start_command('move', 'the slot waits', 'insta5', '--from', $two, '--to', $one, '--resume');
	is(as_mallory($two, 'ALTER TABLE insta5.trap SET SCHEMA vic; ALTER TABLE vic.trap RENAME TO salaries'), '',
		'a published table becomes vic.salaries');
	$holder->query_safe('COMMIT');
	$holder->quit;
	is(end_command($run), 3, 'its rows are not written to the table of that name');
	like($run->{err}, qr/table vic\.salaries is published, and not of the shard\. Start anew: --abort$/m,
		'and the error names it');
	is($one->safe_psql('postgres', 'SELECT count(*) FROM vic.salaries'), '0', 'the table has no row of it');
	is(move(@back, '--abort'), '0 1 shard aborted: 5', '--abort') or diag($move_error);
	is((run_shard($program, 'verify', @nodes))[0], 0, 'verify finds nothing');
};

$_->stop foreach @nodes;
done_testing();
