# The workers of a subscription run code that the owner of the shard has planted in its tables: with the rights of the
# owner, from PostgreSQL 16 on as the owner, before as a role of the move's own that is a member of the owner and of no
# other role. Where that is not possible, the move is refused, with the statement that mends it.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PlantedTest;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();

# Two servers with an operator, and owners of shards.
my ($one, $two) = my @nodes = map { new_server($_, conf => "wal_level = logical\nmax_wal_senders = 10\n") } qw(one two);
my $works_as_owner = $one->pg_version >= 16;
my ($status, $out, $err);
foreach my $node (@nodes)
{
	$node->safe_psql('postgres', q{CREATE ROLE super LOGIN SUPERUSER; CREATE ROLE hostile LOGIN; CREATE ROLE "O'Hara";
		GRANT CREATE ON DATABASE postgres TO hostile});
}
our @ways = map { ($_->[0] => $_->[1]->connstr('postgres') . ' user=super') } [ '--from', $one ], [ '--to', $two ];
my @server = map { $_->host . ':' . $_->port . '/postgres' } @nodes;

sub move
{
	my @arguments = @_;
	($status, $out, $err) = run_shard($program, 'move', 'moved', @ways, @arguments);
	return $status;
}

sub as_hostile
{
	my ($sql, $node) = @_;
	my ($code, $stdout, $stderr) = ($node // $one)->psql('postgres', $sql, extra_params => [ '-U', 'hostile' ]);
	return $code == 0 ? $stdout : die "$sql: $stderr";
}

as_hostile(q{
	SELECT snowflake_create_shard(15, 'moved'); SET search_path = moved, public;
	CREATE FUNCTION ran(place text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		-- replica: in a worker
		RAISE LOG 'PLANTED % (%) as %', place,
			coalesce(NULLIF(current_setting('session_replication_role'), 'origin'), session_user), current_user;
		RETURN 1;
	END $$;
	CREATE TABLE t (id bigint PRIMARY KEY DEFAULT next_id(), x integer CHECK (moved.ran('check') = 1), body text);
	-- What the owner may not do, tried for each row that a worker writes.
	CREATE FUNCTION climbs(way text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		EXECUTE way;
		RAISE LOG 'PLANTED climbed as %', current_user;
		RETURN true;
	EXCEPTION WHEN OTHERS THEN
		RETURN true;
	END $$;
	CREATE INDEX ON t ((x + ran('index')));
	CREATE STATISTICS planted ON (x + ran('statistics')), body FROM t;
	INSERT INTO t (x) VALUES (1)});
my $force = 'ALTER TABLE moved.t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY';
my $release = 'ALTER TABLE moved.t NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY';
my $hidden = qr/workers on \Q$server[1]\E cannot write the rows as the owner of their table, because row security is forced on table moved\.t/;
planted_code_run(@nodes);

# Each role of a move, and the roles of which it is a member.
sub worker_roles
{
	my ($node) = @_;
	return $node->safe_psql('postgres', q{SELECT coalesce(string_agg(concat_ws(' ', r.rolsuper, r.rolconnlimit, o.rolname), ', '), 'none')
		FROM pg_roles AS r LEFT JOIN pg_auth_members ON member = r.oid LEFT JOIN pg_roles AS o ON o.oid = roleid
		WHERE r.rolname ~ '^snowflake_'});
}

sub worker_name
{
	my ($node) = @_;
	return $node->safe_psql('postgres', q{SELECT rolname FROM pg_roles WHERE rolname ~ '^snowflake_'});
}

sub run_as_another
{
	my @run = split /, /, planted_code_run(@nodes);
	return join ', ', grep { !/\(hostile\) as hostile$/ && !/\(replica\) as (?:hostile$|snowflake_move_)/ } @run;
}

subtest 'a table to which workers cannot write as its owner' => sub {
	as_hostile($force);
	is(move('--dry-run', '--reversible'), 1, 'row security is forced') or diag($out);
	like($out, qr/^\Q$server[0]\E: $hidden\n    HINT:  ALTER TABLE moved\.t NO FORCE ROW LEVEL SECURITY;$/m, 'an obstacle with its remedy');
	is(move(), 1, 'no move begins');
	as_hostile($release);
	$one->safe_psql('postgres', q{CREATE TABLE moved.others (id bigint PRIMARY KEY); ALTER TABLE moved.others OWNER TO "O'Hara";
		GRANT ALL ON SCHEMA moved TO "O'Hara"});
	is(move('--dry-run'), 1, 'a table of another role') or diag("$out$err");
	like($out, qr/must be (?:member of role|able to SET ROLE) "O'Hara"\n +HINT:  Give the object to role "hostile"/,
		'the owner of the shard may not give it away') if $works_as_owner;
	like($out, qr/the tables belong to several: "?O'Hara"? and hostile\n    HINT:  Move the shards of each role by themselves/, 'nor write to it')
		if !$works_as_owner;
	$one->safe_psql('postgres', 'DROP TABLE moved.others');
	$_->safe_psql('postgres', 'ALTER DATABASE postgres OWNER TO hostile') foreach @nodes;
	$one->safe_psql('postgres', 'ALTER SCHEMA moved OWNER TO pg_database_owner');
	is(move('--dry-run', '--reversible'), 0, 'the owner of the database owns a schema of pg_database_owner') or diag("$out$err");
	$two->safe_psql('postgres', 'ALTER DATABASE postgres OWNER TO CURRENT_USER');
	is(move('--dry-run'), 1, 'unless that role is a superuser on the target alone');
	like($out, qr/role pg_database_owner has the rights of a superuser, and not on \S+, and owns schema moved$/m, 'which is told');
	$one->safe_psql('postgres', 'ALTER SCHEMA moved OWNER TO hostile; ALTER DATABASE postgres OWNER TO CURRENT_USER');
	is(move('--dry-run', '--reversible'), 0, 'the schema belongs to another role') or diag("$out$err");
	is(run_as_another(), '', 'nothing has run as another role');
};

subtest 'the tables are looked at again before a subscription is made' => sub {
	my $holder = $one->background_psql('postgres');
	$holder->query_safe('BEGIN; SELECT pg_current_xact_id()');
	my $run = start_command('move', 'the slot waits', 'moved', @ways);
	as_hostile($force);
	$holder->query_safe('COMMIT');
	$holder->quit;
	is(end_command($run), 3, 'it changes during the move: no subscription is made');
	like($run->{err}, qr/$hidden\n.*NO FORCE ROW LEVEL SECURITY;.*--resume goes on/s, 'and the error says why');
	is($two->safe_psql('postgres', 'SELECT count(*) FROM pg_subscription') . worker_roles($two), '0none', 'there is none');
	as_hostile($release);
	is(run_as_another(), '', 'nothing has run as another role');
	is(move('--hold'), 0, 'the move goes on') or diag("$out$err");
};

# While the set is held, the owner of the shard owns the table on the target, too.
subtest 'an owner adds code on the target' => sub {
	is(worker_roles($two), $works_as_owner ? 'none' : 'f 0 hostile', 'whose rights a worker has');
	foreach my $way ('ALTER ROLE hostile SUPERUSER', 'SET ROLE super', 'SET SESSION AUTHORIZATION super', 'RESET ROLE; ALTER ROLE hostile SUPERUSER',
		q{SELECT pg_read_file('PG_VERSION')}, q{COPY moved.t TO PROGRAM 'cat'}, 'DELETE FROM public.kept')
	{
		$two->safe_psql('postgres', 'CREATE TABLE IF NOT EXISTS public.kept AS SELECT 1 AS n');
		my ($code, undef, $error) = $two->psql('postgres', sprintf(q{ALTER TABLE moved.t DROP CONSTRAINT IF EXISTS climbs;
			ALTER TABLE moved.t ADD CONSTRAINT climbs CHECK (moved.climbs(%s)) NOT VALID}, "'" . $way =~ s/'/''/gr . "'"),
			extra_params => [ '-U', 'hostile' ]);
		is($code, 0, $way) or diag($error);
		my $rows = as_hostile('INSERT INTO moved.t (x) VALUES (1); SELECT count(*) FROM moved.t');
		await('the row is there', sub { as_hostile('SELECT count(*) FROM moved.t', $two) == $rows });
	}
	my ($code) = $two->psql('postgres', 'SELECT 1', extra_params => [ '-U', worker_name($two) ]);
	isnt($code, 0, 'no client connects as the role of the move') if !$works_as_owner;
	is($two->safe_psql('postgres', q{SELECT rolsuper, (SELECT count(*) FROM public.kept) FROM pg_roles WHERE rolname = 'hostile'}),
		'f|1', 'it gains nothing');
	unlike(planted_code_run(@nodes), qr/climbed/, 'nothing of it succeeds');
	$two->safe_psql('postgres', 'ALTER TABLE moved.t DROP CONSTRAINT climbs');
};

subtest 'the role goes with its subscription' => sub {
	is(move('--cutover', '--reversible'), 0, 'the move ends') or diag("$out$err");
	is(worker_roles($two) . ' ' . worker_roles($one), 'none ' . ($works_as_owner ? 'none' : 'f 0 hostile'), 'reverse replication has its own');
	as_hostile('INSERT INTO moved.t (x) VALUES (2)', $two);
	await('the row follows', sub { as_hostile('SELECT count(*) FROM moved.t WHERE x = 2') == 1 });
	is(move('--undo'), 0, 'it is undone') or diag("$out$err");
	is(move('--complete'), 0, '--complete') or diag("$out$err");
	is(worker_roles($two) . worker_roles($one), 'nonenone', 'no role is left');
	is(move('--hold'), 0, 'held again') or diag("$out$err");
	is(move('--abort'), 0, '--abort') or diag("$out$err");
	is(worker_roles($two), 'none', 'no role is left');
	is(run_as_another(), '', 'nothing has run as another role');
};

subtest 'reverse replication of a move begins after the cutover' => sub {
	is(move('--reversible', '--switch-command',
		'psql -XAtq -d "' . $one->connstr('postgres') =~ s/'//gr . qq(" -c "$force")), 1,
		'row security is forced in the cutover: no reverse replication') or diag($out);
	like($err, qr/reverse replication is not possible: .*row security is forced on table moved\.t/, 'and why');
	is($one->safe_psql('postgres', 'SELECT count(*) FROM pg_subscription') . worker_roles($one), '0none', 'no subscription is left');
	is(run_as_another(), '', 'nothing has run as another role');
};

$_->stop foreach @nodes;
done_testing();
