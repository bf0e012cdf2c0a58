# snowflake-shard move: what is in its way is listed all at once; it goes on beside another move, from
# one database to another of the same server, to a server whose clock is slow, and through PgBouncer
# without an error; Ctrl-C stops it; a difference of the rows is found.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $program = shard_program();
seed_random();
my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\nmax_connections = 60\n";
note('libfaketime is not installed: the clock of the target is not slow') unless libfaketime();
my $clock = libfaketime() ? new_clock() : undef;
my $one = new_server('one', conf => $conf);
my $two = new_server('two', conf => $conf, clock => $clock);
my ($status, $out, $err, $rows);
make_template($one);
$two->safe_psql('postgres', 'CREATE ROLE app');
$one->safe_psql('postgres', 'INSERT INTO insta0.users (name) SELECT n FROM generate_series(1, 30000) AS n');
$one->safe_psql('postgres', q{
	INSERT INTO insta0.log (id) VALUES (snowflake_encode(now() + '1 minute', 0, 0));
	SELECT snowflake_advance('insta0.log_id_seq', max(id)) FROM insta0.log});

sub move
{
	my ($schema, $from, $to, @arguments) = @_;
	return run_shard($program, 'move', $schema, '--from', $from, '--to', $to, @arguments);
}

# Starts a move, and waits until it has printed the text.
sub start_move
{
	my ($text, @arguments) = @_;
	my $move = { err => '' };
	$move->{run} = IPC::Run::start([ $program, 'move', shard_command(@arguments) ], '<', \undef, '>', '/dev/null', '2>', \$move->{err});
	await("the move prints \"$text\"", sub { $move->{run}->pump_nb; $move->{err} =~ /$text/ || !$move->{run}->pumpable });
	return $move;
}

sub end_move
{
	my ($move) = @_;
	$move->{run}->finish;
	return $move->{run}->result(0);
}

# Obstacles: what makes it, what is said, what mends it.
my @obstacles = (
	[ $one, 'CREATE TABLE insta0.o (n integer)', qr/table insta0\.o has no replica identity/, 'DROP TABLE insta0.o' ],
	[ $one, 'CREATE UNLOGGED TABLE insta0.u (n integer PRIMARY KEY)', qr/table insta0\.u is unlogged/, 'DROP TABLE insta0.u' ],
	[ $one, 'CREATE TABLE insta0.f (n integer PRIMARY KEY); CREATE TABLE public.f (n integer REFERENCES insta0.f)', qr/f_n_fkey on table (public\.)?f needs table insta0\.f/, 'DROP TABLE public.f, insta0.f' ],
	[ $one, "CREATE TYPE public.e AS ENUM ('a'); CREATE TABLE insta0.e (e public.e PRIMARY KEY)", qr/table insta0\.e needs type (public\.)?e/, 'DROP TABLE insta0.e' ],
	[ $one, 'CREATE FUNCTION public.g() RETURNS integer LANGUAGE sql RETURN 1; CREATE TABLE insta0.g (g integer PRIMARY KEY DEFAULT public.g())', qr/table insta0\.g needs function (public\.)?g\(\)/, 'DROP TABLE insta0.g' ],
	[ $one, 'ALTER TABLE insta0.users ENABLE ALWAYS TRIGGER touch', qr/trigger touch of table insta0\.users/, 'ALTER TABLE insta0.users ENABLE TRIGGER touch' ],
	[ $one, 'CREATE DOMAIN insta0.lo AS oid; CREATE TABLE insta0.l (n integer PRIMARY KEY, l insta0.lo)', qr/column insta0\.l\.l points to large objects/, 'DROP TABLE insta0.l; DROP DOMAIN insta0.lo' ],
	[ $one, 'CREATE ROLE here; GRANT SELECT ON insta0.users TO here', qr/role here is missing/, 'REVOKE ALL ON insta0.users FROM here' ],
	[ $two, 'CREATE SCHEMA insta0', qr/schema insta0 is there already/, 'DROP SCHEMA insta0' ],
	[ $two, "SELECT snowflake_create_shard(0, 'zero')", qr/shard 0 is there already, as schema zero/, 'DROP SCHEMA zero CASCADE' ]);
$_->[0]->safe_psql('postgres', $_->[1]) foreach @obstacles;
my $said;
($status, $rows, $said) = shard_json($program, 'move', 'insta0', '--from', $one, '--to', $two, '--dry-run');
is($status, 1, '--dry-run: exit code 1');
like($said, qr/schema insta0 has \d+ \w+: the target needs as much free space/, '--dry-run: the size is said');
foreach my $obstacle (@obstacles)
{
	ok(scalar(grep { $_->{obstacle} =~ $obstacle->[2] } @$rows), "--dry-run: $obstacle->[2]");
	$obstacle->[0]->safe_psql('postgres', $obstacle->[3]);
}
($status, $rows) = shard_json($program, 'move', 'insta0', '--from', $one, '--to', $two, '--dry-run', '--source', 'host=/nonexistent');
ok(@$rows == 1 && $rows->[0]{obstacle} =~ /cannot connect to the source/, '--dry-run: the target\'s server cannot connect');
set_clock($clock, -600) if $clock;
($status, $rows, $err) = shard_json($program, 'move', 'insta0', '--from', $one, '--to', $two, '--dry-run');
is("$status " . @$rows, '0 0', '--dry-run: nothing left');
like($err, qr/the clock of .* is \d+ s behind/, '--dry-run: the clocks are apart') if $clock;

# Two moves at once; Ctrl-C; a table that is made meanwhile.
my @way = ('insta0', '--from', $one, '--to', $two);
my $first = start_move('target: definition', @way);
kill 'STOP', $first->{run}{KIDS}[0]{PID};
($status, $out, $err) = move('insta0', $one, $two);
like($err, qr/another snowflake-shard is moving the shard/, 'two moves at once: the second one says so');
$first->{run}->signal('INT');
kill 'CONT', $first->{run}{KIDS}[0]{PID};
is(end_move($first), 3, 'Ctrl-C: exit code 3');
like($first->{err}, qr/stopped\nHINT: .*--resume goes on/, 'Ctrl-C: says how to go on');
($status, $rows) = shard_json($program, 'verify', $one, $two);
ok($status == 1 && (grep { $_->{hint} =~ /--resume, or --abort/ } @$rows) == @$rows, 'verify names what is left and the command that goes on');
$one->safe_psql('postgres', 'CREATE TABLE insta0.late (n integer PRIMARY KEY)');
($status, $out, $err) = move('insta0', $one, $two, '--resume');
ok($status == 3 && $err =~ /table insta0\.late was made during the move/, 'a table that was made meanwhile is not lost');
is(sqlstate($one, 'INSERT INTO insta0.late VALUES (1)'), '', 'and the source is open');
is((move('insta0', $one, $two, '--abort'))[0], 0, '--abort');
is((move('insta0', $one, $two, '--abort'))[0], 0, '--abort again');
is((run_shard($program, 'verify', $one, $two))[0], 0, 'verify: nothing is left');
$one->safe_psql('postgres', 'DROP TABLE insta0.late');

# A difference, made on the target before the switch.
my $largest = $one->safe_psql('postgres', 'SELECT max(id) FROM insta0.users');
$first = start_move('target: rows', @way);
kill 'STOP', $first->{run}{KIDS}[0]{PID};
await('rows are there', sub { $two->safe_psql('postgres', 'SELECT (SELECT count(*) FROM insta0.users) + (SELECT count(*) FROM insta0.log)') == 30001 });
($status, $rows) = shard_json($program, 'verify', $one, $two);
is(join("\n", map { "$_->{object}: $_->{problem}" } grep { $_->{hint} !~ /--resume, or --abort/ } @$rows), '',
	'verify says nothing of IDs that are ahead of a target that is not open');
$two->safe_psql('postgres', "SET session_replication_role = replica; UPDATE insta0.users SET name = 'other' WHERE id = $largest");
kill 'CONT', $first->{run}{KIDS}[0]{PID};
is(end_move($first), 1, 'a difference: exit code 1');
like($first->{err}, qr/table insta0\.users: the source has 10000 rows from key \(\d+\), .* not the same/, 'table and range are named');
ok($largest < $two->safe_psql('postgres', "INSERT INTO insta0.users (name) VALUES ('new') RETURNING id"), 'a target with a slow clock makes larger IDs');
is((move('insta0', $one, $two, '--drop-source'))[0], 0, '--drop-source');

# Two databases of one server, while pgbench writes through PgBouncer.
$two->safe_psql('postgres', 'CREATE DATABASE other');
$two->safe_psql('other', 'CREATE EXTENSION snowflake');
SKIP:
{
	my ($bouncer) = grep { -x } '/usr/sbin/pgbouncer', '/usr/bin/pgbouncer';
	skip 'pgbouncer is not installed', 5 unless $bouncer;
	my $dir = PostgreSQL::Test::Utils::tempdir_short();
	my $user = getpwuid($<);
	my $line = sprintf 'shard0 = host=%s port=%s dbname=postgres user=%s pool_size=4', $two->host, $two->port, $user;
	append_to_file("$dir/databases.ini", "; kept\n[databases]\nshard01 = host=/x\n$line\n");
	append_to_file("$dir/pgbouncer.ini", join("\n", "%include $dir/databases.ini", '[pgbouncer]', 'listen_addr =',
			"unix_socket_dir = $dir", 'listen_port = 6432', 'auth_type = any', 'pool_mode = transaction',
			"admin_users = $user", "pidfile = $dir/pid", "logfile = $dir/log", ''));
	my $pooler = IPC::Run::start([ $bouncer, '-q', "$dir/pgbouncer.ini" ], '<', \undef, '>', '/dev/null', '2>', '/dev/null');
	await('PgBouncer listens', sub { -S "$dir/.s.PGSQL.6432" });
	append_to_file("$dir/load.sql", "INSERT INTO insta0.users (name) VALUES ('load');\n");
	my ($load_out, $load_err) = ('', '');
	my $load = IPC::Run::start([ 'pgbench', '-n', '-c', '4', '-T', '4', '-f', "$dir/load.sql", "host=$dir port=6432 dbname=shard0" ],
		'<', \undef, '>', \$load_out, '2>', \$load_err);
	usleep(500_000);
	my $to = $two->connstr('other');
	($status, $out, $err) = move('insta0', $two, $to, '--pgbouncer', "host=$dir port=6432 dbname=pgbouncer", '--config', "$dir/databases.ini");
	is($status, 0, 'a move between two databases of one server, through PgBouncer') or diag("$out$err");
	like($err, qr/PgBouncer held its clients for \d+ ms/, 'the pause is printed');
	$load->finish;
	is($load->result(0), 0, 'pgbench ends well') or diag($load_err);
	unlike("$load_out$load_err", qr/ERROR|aborted/, 'no client has met an error');
	my ($count) = $load_out =~ /actually processed: (\d+)/;
	is($two->safe_psql('other', "SELECT count(*) FROM insta0.users WHERE name = 'load'"), $count, 'each of its rows is there');
	is(slurp_file("$dir/databases.ini"),
		sprintf("; kept\n[databases]\nshard01 = host=/x\nshard0 = host=%s port=%s dbname=other user=%s pool_size=4\n", $two->host, $two->port, $user),
		'one line of the file has changed');
	$pooler->signal('TERM');
	$pooler->finish;
}
$_->stop foreach $one, $two;
done_testing();
