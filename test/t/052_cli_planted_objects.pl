# snowflake-shard move finds its objects by their names. A role that is no superuser makes objects of these names, or takes
# its lock: it gains nothing by that, and the command names the role and the statement that removes them.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my ($one, $two) = my @nodes = map { new_server($_, conf => "wal_level = logical\nmax_wal_senders = 10\n") } qw(one two);
my @back = reverse @nodes;
my ($status, $out, $err);

sub move
{
	my ($from, $to, @arguments) = @_;
	($status, $out, $err) = run_shard($program, 'move', 'insta5', '--from', $from, '--to', $to, @arguments);
	chomp $out;
	return $out eq '' ? "exit code $status" : "$status $out";
}

sub moves
{
	my ($arguments, $end, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(move(@$arguments), "0 1 shard $end: 5", $name) || diag($err);
}

sub is_refused
{
	my ($arguments, $text, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(move(@$arguments), 'exit code 3', $name);
	return like($err, $text, "$name: the error");
}

sub as_mallory
{
	my ($node, $sql) = @_;
	return sqlstate($node, $sql, params => [ '-U', 'mallory' ]);
}

my %slot;
foreach my $node (@nodes)
{
	$node->safe_psql('postgres', q{
		CREATE ROLE mallory LOGIN; CREATE ROLE vic;
		GRANT CREATE ON DATABASE postgres TO mallory;
		CREATE SCHEMA vic; CREATE TABLE vic.salaries (id bigint PRIMARY KEY, amount integer)});
	$slot{ $node->name } = 'snowflake_move_5_' . $node->safe_psql('postgres', 'SELECT oid FROM pg_database WHERE datname = current_database()');
}
$one->safe_psql('postgres', q{
	SELECT snowflake_create_shard(5, 'insta5');
	CREATE TABLE insta5.users (id bigint PRIMARY KEY DEFAULT insta5.next_id(), name text);
	INSERT INTO insta5.users (name) VALUES ('a'), ('b');
	ALTER TABLE vic.salaries OWNER TO mallory; GRANT USAGE ON SCHEMA vic TO mallory;
	ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO mallory; ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO mallory});

# A record in a schema of another role is not taken.
is(as_mallory($_, 'CREATE SCHEMA snowflake_move_5; CREATE TABLE snowflake_move_5.state ()'), '', 'any role that may create in the database can plant a record') foreach @nodes;
is_refused([ @nodes, $_ ], qr/schema snowflake_move_5 on \S+ belongs to role mallory, .*DROP SCHEMA snowflake_move_5 CASCADE;$/s, "a planted schema: $_")
  foreach qw(--resume --abort --undo --drop-source);
$_->safe_psql('postgres', 'DROP SCHEMA snowflake_move_5 CASCADE') foreach @nodes;

# The functions and tables of a move are not for others, whatever default privileges say.
moves([ @nodes, '--reversible' ], 'moved with a way back', 'a move with a way back');
is(as_mallory($one, $_), '42501', "not for others: $_") foreach 'SELECT snowflake_move_5.reopen()', 'CREATE TABLE snowflake_move_5.mine ()',
  q{INSERT INTO snowflake_move_5.undo (statement) VALUES ('ALTER ROLE mallory SUPERUSER')}, 'UPDATE snowflake_move_5.noted SET at = NULL',
  'CREATE TEMP TABLE t (); CREATE TRIGGER t BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION snowflake_move_5.fence()';
is(as_mallory($one, 'SELECT step FROM snowflake_move_5.state'), '', 'but for the record, which anybody may read');

# A record in which another role owns something is not trusted.
$two->safe_psql('postgres', q{CREATE FUNCTION snowflake_move_5.extra() RETURNS void LANGUAGE sql AS ''; ALTER FUNCTION snowflake_move_5.extra() OWNER TO mallory});
is_refused([ @nodes, '--undo' ], qr/function snowflake_move_5\.extra\(\) on \S+:${\$two->port}\/postgres belongs to role mallory/, 'a function of another role in the schema');
$two->safe_psql('postgres', 'DROP FUNCTION snowflake_move_5.extra()');

$_->stop foreach @nodes;
done_testing();
