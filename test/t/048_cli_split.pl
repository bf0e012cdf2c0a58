# snowflake-shard split: a standby is promoted and takes half of the shards, while clients write through PgBouncer and
# directly. No client behind PgBouncer meets an error, a direct one gets 25006; no acknowledged row is lost, no ID comes
# twice over both servers, and neither server writes or draws for a shard of the other.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PostgreSQL::Test::Utils;
use ShardTest;
use ShardWriters;
use SnowflakeTest;
use SplitTest;
use Test::More;

my $program = shard_program();
pgbouncer();
seed_random();
my ($status, $out, $err, $rows);
my $shards = 6;
my $one = new_split_server('one', $shards);
$one->safe_psql('postgres', q{
	CREATE SEQUENCE insta3.down INCREMENT -1; CREATE SEQUENCE insta3.round AS smallint CYCLE;
	SELECT nextval('insta3.down'), nextval('insta3.round'), nextval('insta3.round')});
my $two = new_standby($one, 'two');
my $pooler = new_pooler($one, $shards);
my @servers = ('--from', $one, '--standby', $two);
my @arguments = (@servers, '--shards', '3-5', '--pgbouncer', $pooler->{dsn}, '--config', $pooler->{file});

sub split_server
{
	return run_shard($program, 'split', @_);
}

# Writers of shard 1, which stays, and shard 4, which leaves, through PgBouncer; and direct ones to shard 3.
my $user = getpwuid($<);
sub through
{
	return "host=$pooler->{dir} port=6432 dbname=shard$_[0] user=$user";
}
my %writers = (1 => start_writers(2, 'insta1', [], through(1)), 4 => start_writers(2, 'insta4', [], through(4)),
	3 => start_writers(2, 'insta3', [], map { $_->connstr('postgres') } $one, $two));

($status, $rows, $err) = shard_json($program, 'split', @arguments, '--dry-run');
is("$status " . join("\n", map { $_->{obstacle} } @$rows), '0 ', '--dry-run: nothing is in the way') or diag($err);
is($one->safe_psql('postgres', "SELECT count(*) FROM pg_namespace WHERE nspname = 'snowflake_split'"), '0', 'and nothing is made');
($status, $out, $err) = split_server(@arguments);
is($status, 0, 'split') or diag($err);
like($out, qr/^3 shards moved: 3-5$/m, 'it names the shards');
like($err, qr/writes were blocked for \d+ ms/, 'and for how long writes were blocked');
note($err);
is($two->safe_psql('postgres', 'SELECT pg_is_in_recovery()'), 'f', 'the standby was promoted');
is(open_shards($one, $two), '(0,1,2) (3,4,5)', 'each shard is open on one server');
is(join(' ', map { alias_of($pooler, $_) } 0 .. 5), join(' ', ($one->port) x 3, ($two->port) x 3), 'the aliases lead there');

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
		"DELETE FROM insta$shard.events_rest", "TRUNCATE insta$shard.bookings", "COPY insta$shard.follows FROM PROGRAM 'echo 1 2'",
		"SELECT insta$shard.next_id()", "SELECT snowflake_next_id($shard, 'insta$shard.table_id_seq')")
	{
		is(sqlstate($node, $sql), '25006', "$name: $sql");
		is(sqlstate($node, "SET session_replication_role = replica; SET snowflake.max_drift = -1; $sql"), '25006', "$name: $sql, as a replica");
	}
	my @sequences = split /\n/, $node->safe_psql('postgres',
		"SELECT oid::regclass FROM pg_class WHERE relkind = 'S' AND relnamespace = 'insta$shard'::regnamespace");
	isnt(sqlstate($node, "SELECT nextval('$_')"), '', "$name: nextval('$_')") foreach @sequences;
}
is($two->safe_psql('postgres', q{SELECT nextval('insta3.down'), nextval('insta3.round')}), '-2|3', 'other sequences go on where they were');
is(sqlstate($two, $_), '', "two: $_") foreach 'SELECT insta3.next_id()', q{INSERT INTO insta5.users (name) VALUES ('new')};
is(sqlstate($one, $_), '', "one: $_") foreach 'SELECT insta0.next_id()', q{INSERT INTO insta2.users (name) VALUES ('new')};

# What the other commands make of it.
($status, $rows) = shard_json($program, 'verify', $one, $two);
is(join("\n", map { "$_->{object}: $_->{problem}" } @$rows), '', 'verify finds nothing');
($status, $rows) = shard_json($program, 'list', $one, $two);
is(join(' ', map { "$_->{shard} $_->{state}" } @$rows), '0 open 1 open 2 open 3 open 4 open 5 open', 'list shows each shard once');
is((run_shard($program, 'diff', $one, $two, '--template', 'insta0'))[0] & 2, 0, 'diff compares all shards');
($status, $out, $err) = run_shard($program, 'clone', $one, '--template', 'insta0', '--shards', '9', '--schema', 'insta{}');
ok($status == 3 && $err =~ /was split, and each table has a trigger/, 'clone would clone the triggers, and refuses');
is((run_shard($program, 'run', $one, $two, '--shards', '0-5', '--sql', 'SELECT count(*) FROM users'))[0], 0, 'run finds all shards');

# Nothing goes back.
($status, $out, $err) = split_server(@servers, '--abort');
ok($status == 3 && $err =~ /\d+ rows of its shards have been written there/, '--abort is refused, and says what was written') or diag($err);
is((split_server(@servers, '--resume'))[0], 0, '--resume after the end does nothing');
($status, $out, $err) = split_server(@arguments);
ok($status == 3 && $err =~ /has been split\nHINT:  --drop-rest/, 'a second split is refused') or diag($err);

# The rows.
my %journals = map { ($_ => [ stop_writers($writers{$_}) ]) } keys %writers;
foreach my $shard (sort keys %journals)
{
	my @journal = @{ $journals{$shard} };
	my @lost = lost_writes($shard == 1 ? $one : $two, 'postgres', "insta$shard", @journal);
	is(@lost, 0, "shard $shard: each acknowledged transaction is there once, of " . @journal) or diag(join "\n", @lost[0 .. 4]);
	is(grep({ $_->{doubt} || $_->{error} } @journal), 0, "shard $shard: no error behind PgBouncer") if $shard != 3;
}

# The rest. A view keeps it.
$two->safe_psql('postgres', 'CREATE VIEW public.v AS SELECT * FROM insta1.users');
($status, $out, $err) = split_server(@servers, '--drop-rest');
ok($status == 3 && $err =~ /view (public\.)?v/, '--drop-rest names what depends on a schema') or diag($err);
$two->safe_psql('postgres', 'DROP VIEW public.v');
is((split_server(@servers, '--drop-rest'))[0], 0, '--drop-rest') or diag($err);
foreach my $node ($one, $two)
{
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_namespace WHERE nspname ~ 'insta|split'"), '3', $node->name . ' has its shards alone');
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_trigger WHERE tgname ~ 'split'"), '0', 'and no trigger');
}
is((split_server(@servers, '--drop-rest'))[0], 0, '--drop-rest again does nothing');
is((run_shard($program, 'verify', $one, $two))[0], 0, 'verify finds nothing');
$_->stop foreach $one, $two;
done_testing();
