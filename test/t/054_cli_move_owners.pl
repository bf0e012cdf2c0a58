# The workers of a subscription run code that the owner of the shard has planted in its tables: with the rights of the
# owner from PostgreSQL 16 on, as a rule. Where they would run it with those of the role of a move, and the shards
# belong to several roles, the move is refused until the operator says that he trusts the owners.

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

# On a later server, row security that is forced keeps the workers from writing as the owner. Any owner can force it.
sub as_hostile
{
	my ($sql) = @_;
	my ($code, $stdout, $stderr) = $one->psql('postgres', $sql, extra_params => [ '-U', 'hostile' ]);
	return $code == 0 ? $stdout : die "$sql: $stderr";
}

as_hostile(q{
	SELECT snowflake_create_shard(15, 'moved'); SET search_path = moved, public;
	CREATE FUNCTION ran(place text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		-- replica: in a worker
		RAISE LOG 'PLANTED % (%) as %', place, current_setting('session_replication_role'), current_user;
		RETURN 1;
	END $$;
	CREATE TABLE t (id bigint PRIMARY KEY DEFAULT next_id(), x integer CHECK (moved.ran('check') = 1), body text);
	CREATE INDEX ON t ((x + ran('index')));
	CREATE STATISTICS planted ON (x + ran('statistics')), body FROM t;
	INSERT INTO t (x) VALUES (1)});
my $force = 'ALTER TABLE moved.t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY';
my $release = 'ALTER TABLE moved.t NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY';
my $cause = $works_as_owner ? 'because row security is forced on table moved.t'
	: 'as all workers before PostgreSQL 16 do';
planted_code_run(@nodes);

subtest 'all shards belong to one role, and the operator is told' => sub {
	as_hostile($force) if $works_as_owner;
	is(move('--dry-run', '--reversible'), 0, 'a fleet of one owner: no obstacle') or diag("$out$err");
	$one->safe_psql('postgres', 'ALTER DATABASE postgres OWNER TO hostile; ALTER SCHEMA moved OWNER TO pg_database_owner');
	is(move('--dry-run', '--reversible'), 0, 'the owner of the database owns a schema of pg_database_owner') or diag("$out$err");
	$one->safe_psql('postgres', 'ALTER SCHEMA moved OWNER TO hostile; ALTER DATABASE postgres OWNER TO CURRENT_USER');
	my $ran = qr/run function moved.ran\(text\) of role hostile \(constraint t_check on table moved.t\)/;
	like($err,
		qr/^snowflake-shard: \Q$server[1]\E: workers will write the rows as role super, $cause, and so $ran\. Move/m,
		'the function is told');
};

my $remedy;
subtest 'another role has a shard on the target' => sub {
	$two->safe_psql('postgres', q{SELECT snowflake_create_shard(16, 'others'); ALTER SCHEMA others OWNER TO "O'Hara"});
	is(move('--dry-run', '--reversible'), 1, 'a fleet of two owners');
	$remedy = $works_as_owner ? 'ALTER TABLE moved.t NO FORCE ROW LEVEL SECURITY; Or ' : '';
	my $danger = 'and so run code of hostile with the rights of super. '
		. 'The shards of both servers belong to several roles';
	is($out, join('', map { <<"END" } @server[ 1, 0 ]), 'an obstacle on each server to which workers write');
$_: workers would write the rows as role super, $cause, $danger: O'Hara, hostile
    HINT:  $remedy--trust-owners, if hostile may use all rights of role super on that server.
END
	is(move(), 1, 'no move begins');
	is(move('--dry-run', '--reversible', '--trust-owners'), 0, '--trust-owners: no obstacle') or diag("$out$err");
	like($err, qr/run function moved.ran/, 'and the function is told');
	as_hostile($release);
	is(move('--dry-run'), $works_as_owner ? 0 : 1, 'workers write as the owner, if the server can do that')
		or diag("$out$err");
	unlike(planted_code_run(@nodes), qr/ as super/, 'nothing has run as the superuser');
};

subtest 'the owners are looked at again before a subscription is made' => sub {
	# There was one owner, or the workers could write as the owner, when the obstacles were looked for.
	$two->safe_psql('postgres', 'ALTER SCHEMA others OWNER TO hostile');
	my $holder = $one->background_psql('postgres');
	$holder->query_safe('BEGIN; SELECT pg_current_xact_id()');
	my $run = start_command('move', 'the slot waits', 'moved', @ways);
	$two->safe_psql('postgres', q{ALTER SCHEMA others OWNER TO "O'Hara"});
	as_hostile($force) if $works_as_owner;
	$holder->query_safe('COMMIT');
	$holder->quit;
	is(end_command($run), 3, 'it changes during the move: no subscription is made');
	my $workers = qr/\Q$server[1]\E: workers would write the rows as role super, $cause/;
	like($run->{err},
		qr/^snowflake-shard: $workers, .*^HINT:  $remedy--trust-owners, if hostile .*--resume goes on/ms,
		'and the error says why');
	is($two->safe_psql('postgres', 'SELECT count(*) FROM pg_subscription'), '0', 'there is none');
	unlike(planted_code_run(@nodes), qr/ as super/, 'nothing has run as the superuser');
	as_hostile($release) if $works_as_owner;
	is(move('--resume', $works_as_owner ? () : '--trust-owners'), 0, 'the move goes on') or diag("$out$err");
	my @run = split /, /, planted_code_run(@nodes);
	my @by_copy = grep { /\(replica\)/ } @run;
	like("@by_copy", qr/check \(replica\) as hostile\b/, 'the rows are copied as their owner');
	is(join(', ', grep { !/ as hostile$/ } @by_copy), '', 'all of them');
	like("@run", qr/index \(origin\) as hostile/, 'the command compares the rows as their owner');
	is(join(', ', grep { !/\(replica\)/ && !/ as hostile$/ } @run), '', 'and runs nothing as the superuser');
	is(move('--complete'), 0, '--complete') or diag($err);
};

# The owners are trusted: workers write also where row security is forced.
my @back = map { ($_->[0] => $_->[1]->connstr('postgres') . ' user=super') } [ '--from', $two ], [ '--to', $one ];

subtest 'the owners are trusted' => sub {
	{
		local @ways = @back;
		$two->safe_psql('postgres', "$force; REVOKE USAGE ON SCHEMA moved FROM hostile");
		is(move('--reversible', '--trust-owners'), 0, 'a shard of several owners moves with reverse replication')
		  or diag("$out$err");
		$one->safe_psql('postgres', 'INSERT INTO moved.t (x) VALUES (2)');
		await('the row follows', sub { $two->safe_psql('postgres', 'SELECT count(*) FROM moved.t') == 2 });
		is(move('--undo', '--trust-owners'), 0, 'it is undone') or diag("$out$err");
		$two->safe_psql('postgres', "$release; GRANT USAGE ON SCHEMA moved TO hostile");
	}
	is(move('--complete'), 0, '--complete') or diag($err);
	is(join(', ', grep { /\(origin\) as super/ } split /, /, planted_code_run(@nodes)), '',
		'the rows are compared as their owner, also if he may not use the schema');
};

subtest 'reverse replication of a move begins after the cutover' => sub {
	@ways = @back;
	SKIP:
	{
		skip 'on this server the workers of both directions are looked at before', 4 if !$works_as_owner;
		is(move('--reversible', '--switch-command',
			'psql -XAtq -d "' . $two->connstr('postgres') =~ s/'//gr . qq(" -c "$force")), 1,
			'row security is forced in the cutover: no reverse replication') or diag($out);
		like($err, qr/reverse replication is not possible: \Q$server[1]\E: workers would write the rows as role super, $cause/,
			'and why');
		is($two->safe_psql('postgres', 'SELECT count(*) FROM pg_subscription'), '0', 'no subscription is left');
		unlike(planted_code_run(@nodes), qr/ as super/, 'nothing has run as the superuser');
	}
};

$_->stop foreach @nodes;
done_testing();
