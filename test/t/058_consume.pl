# The programs of examples/consume read every new row while writers commit late and roll back, while the programs are
# killed, the server restarts and the shard moves to another server: feed.py exactly once and in the order of the IDs,
# print.js at least once. A standby and a subscriber that have the primary's WAL have every row up to a settled ID.
# drawing.sql names the transactions that are waited for.
#
#   SNOWFLAKE_TEST_LONG     100 kills of each program in each of the three parts, instead of 2
#   SNOWFLAKE_TEST_CYCLES   the number of kills
#   SNOWFLAKE_TEST_SEED     as an earlier run has printed it

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ClientTest;
use FaultTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

seed_random();
my $kills = trials(2, 100);
my $programs = "$FindBin::RealBin/../../examples/consume";
my $folder = PostgreSQL::Test::Utils::tempdir();
$ENV{PYTHONDONTWRITEBYTECODE} = 1;

my $conf = "wal_level = logical\nmax_prepared_transactions = 2\nmax_wal_senders = 10\nmax_replication_slots = 10\n";
my ($one, $two) = map { new_server($_, conf => $conf, init => { allows_streaming => 1 }) } qw(one two);

# The tables move with the shard, and with them the last ID of feed.py.
$one->safe_psql('postgres', "SELECT snowflake_create_shard(5, 'insta5')");
$one->safe_psql('postgres', slurp_file("$programs/tables.sql"));

subtest 'transactions that are waited for' => sub {
	$one->safe_psql('postgres', slurp_file("$programs/drawing.sql"));
	$one->safe_psql('postgres', "BEGIN; SELECT insta5.next_id(); PREPARE TRANSACTION 'of nobody'");
	my $open = $one->background_psql('postgres');
	$open->query_safe('BEGIN; INSERT INTO insta5.photos DEFAULT VALUES');
	my $pid = $open->query_safe('SELECT pg_backend_pid()');
	is($one->safe_psql('postgres', 'SELECT pid, gid, state, age > interval \'0\' FROM insta5.drawing'),
		"|of nobody||t\n$pid||idle in transaction|t", 'a prepared one, and one of a session');
	$open->query_safe('ROLLBACK');    # a session ends after its psql
	$open->quit;
	$one->safe_psql('postgres', "ROLLBACK PREPARED 'of nobody'");
	is($one->safe_psql('postgres', 'SELECT count(*) FROM insta5.drawing'), '0', 'none after their end');
};

# The feed is slow, so that kills and the restart meet a program between two of its steps.
$one->safe_psql('postgres', q{
	CREATE FUNCTION insta5.delay() RETURNS trigger LANGUAGE plpgsql
		AS 'BEGIN IF random() < 0.05 THEN PERFORM pg_sleep(0.01); END IF; RETURN new; END';
	CREATE TRIGGER delay AFTER INSERT ON insta5.feed FOR EACH ROW EXECUTE FUNCTION insta5.delay();
});

# The alias of the shard: a socket that is a link to that of its server. It has the port of the first one.
my $alias = PostgreSQL::Test::Utils::tempdir_short();
my $port = $one->port;

sub lead_alias_to
{
	my ($node) = @_;
	symlink $node->host . '/.s.PGSQL.' . $node->port, "$alias/new" or die "symlink: $!";
	rename "$alias/new", "$alias/.s.PGSQL.$port" or die "rename: $!";
	return;
}

# A transaction ends up to 40 ms after it has drawn.
my %scripts = (
	single => [ 8, 'INSERT INTO insta5.photos (caption) VALUES (\'one\');', 'COMMIT;' ],
	batch => [ 2, 'INSERT INTO insta5.photos (caption) SELECT \'many\' FROM generate_series(1, 10);', 'COMMIT;' ],
	rollback => [ 1, 'INSERT INTO insta5.photos (caption) VALUES (\'none\');', 'ROLLBACK;' ],
);
my @files;
foreach my $name (sort keys %scripts)
{
	my ($weight, $begin, $end) = @{ $scripts{$name} };
	append_to_file("$folder/$name.sql", "\\set late random(0, 40)\nBEGIN;\n$begin\n\\sleep :late ms\n$end\n");
	push @files, '-f', "$folder/$name.sql\@$weight";
}

# Their server stops, or their shard leaves: then pgbench ends with an error, which does not matter.
sub start_writers
{
	return IPC::Run::start([ 'pgbench', '-n', '-c', 6, '-T', 600, @files, "host=$alias port=$port dbname=postgres" ],
		'<', '/dev/null', '>', '/dev/null', '2>', '/dev/null');
}

my ($home, @consumers) = ($one);

sub start_consumer
{
	my ($consumer) = @_;
	local %ENV = (%ENV, PGHOST => $alias, PGPORT => $port, PGDATABASE => 'postgres', PGUSER => scalar getpwuid($<));
	$consumer->{run} = IPC::Run::start($consumer->{command}, '<', '/dev/null',
		'>>', $consumer->{out}, '2>>', "$consumer->{out}.err", init => sub { chdir $consumer->{folder} or die });
	return;
}

# A program that has ended before the kill has failed: its status is not that of the signal.
sub kill_consumer
{
	my ($consumer) = @_;
	$consumer->{run}->signal('KILL');
	$consumer->{run}->finish;
	my $status = $consumer->{run}->full_result(0);
	push @{ $consumer->{failures} }, $status if $status != 9;
	return;
}

# If the test dies, they would run on.
END
{
	my $status = $?;
	$_->{run}->kill_kill foreach grep { $_->{run} } @consumers;
	$? = $status;
}

sub position
{
	my ($consumer) = @_;
	return $home->safe_psql('postgres', q{SELECT last_id FROM insta5.consumers WHERE name = 'feed'})
	  if $consumer->{name} eq 'feed.py';
	return -e "$consumer->{folder}/last_id" ? slurp_file("$consumer->{folder}/last_id") : 0;
}

# Each kill is at a random time after the program has read something.
sub kill_at_random
{
	foreach my $n (1 .. $kills)
	{
		show_progress('kills', $n, $kills);
		my %before = map { ($_->{name} => position($_)) } @consumers;
		foreach my $consumer (@consumers)
		{
			await("$consumer->{name} reads", sub { position($consumer) > $before{ $consumer->{name} } });
		}
		foreach my $consumer (@consumers)
		{
			usleep(int(rand(100_000)));
			kill_consumer($consumer);
			start_consumer($consumer);
		}
	}
	return;
}

SKIP:
{
	my $python = python_with('psycopg') or skip 'psycopg is not installed for python3', 1;
	push @consumers, { name => 'feed.py', command => [ $python, "$programs/feed.py" ], folder => $folder,
		out => "$folder/feed" };
}
SKIP:
{
	my ($installed, $reason) = install_node('print.js', $programs);
	skip $reason, 1 unless defined $installed;
	push @consumers, { name => 'print.js', command => [ 'node', "$installed/print.js" ], folder => $installed,
		out => "$folder/print" };
}
$_->{failures} = [] foreach @consumers;

lead_alias_to($one);
my $writers = start_writers();
start_consumer($_) foreach @consumers;

subtest 'kills' => sub {
	kill_at_random();
	ok($writers->pumpable, 'the writers are writing');
};

subtest 'a restart of the server' => sub {
	$one->restart;
	$writers->finish;
	$writers = start_writers();
	kill_at_random();
	ok($writers->pumpable, 'the writers are writing');
};

# The primary says up to which ID, and the copies are read when they have its WAL.
subtest 'a standby and a subscriber' => sub {
	$one->backup('copy');
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($one, 'copy', has_streaming => 1);
	$standby->start;
	$one->safe_psql('postgres', 'CREATE PUBLICATION copy FOR TABLE insta5.photos');
	$two->safe_psql('postgres', 'CREATE DATABASE copy');
	$two->safe_psql('copy', 'CREATE SCHEMA insta5; CREATE TABLE insta5.photos (id bigint PRIMARY KEY, caption text)');
	my $publisher = $one->connstr('postgres') =~ tr{'}{}dr;
	$two->safe_psql('copy', qq{CREATE SUBSCRIPTION copy CONNECTION '$publisher' PUBLICATION copy});
	await('the subscriber has the first rows',
		sub { $two->safe_psql('copy', 'SELECT srsubstate FROM pg_subscription_rel') eq 'r' });
	my %rows;
	foreach (1 .. 3)
	{
		my $settled = $one->safe_psql('postgres', 'SELECT insta5.settled_id()');
		my $lsn = $one->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
		my $count = "SELECT count(*) FROM insta5.photos WHERE id <= $settled";
		await('the standby has replayed',
			sub { $standby->safe_psql('postgres', "SELECT pg_last_wal_replay_lsn() >= '$lsn'") eq 't' });
		my @counts = ($standby->safe_psql('postgres', $count));
		await('the subscriber has applied', sub { $one->safe_psql('postgres',
			"SELECT replay_lsn >= '$lsn' FROM pg_stat_replication WHERE application_name = 'copy'") eq 't' });
		push @counts, $two->safe_psql('copy', $count);
		$rows{$settled} = \@counts;
	}
	my %expected;
	foreach my $settled (keys %rows)
	{
		my $count = $one->safe_psql('postgres', "SELECT count(*) FROM insta5.photos WHERE id <= $settled");
		$expected{$settled} = [ $count, $count ];
	}
	is_deeply(\%rows, \%expected, 'they have every row up to the settled ID');
	$two->safe_psql('copy', 'DROP SUBSCRIPTION copy');
	$one->safe_psql('postgres', 'DROP PUBLICATION copy');
	$standby->stop;
};

# Both programs keep their connection to the old server until it refuses, and then come through the alias.
subtest 'a move of the shard' => sub {
	my $program = shard_program_if_built();
	plan skip_all => 'snowflake-shard was not built' unless defined $program;
	my ($status, undef, $err) = run_shard($program, 'move', 'insta5', '--from', $one, '--to', $two);
	is($status, 0, 'the shard is moved') or diag($err);
	foreach my $consumer (@consumers)
	{
		await("$consumer->{name} is refused", sub { slurp_file("$consumer->{out}.err") =~ /makes no IDs here/ });
	}
	$home = $two;
	lead_alias_to($two);
	$writers->finish;
	$writers = start_writers();
	kill_at_random();
	ok($writers->pumpable, 'the writers are writing');
};

$writers->signal('TERM');
$writers->finish;
my $settled = $home->safe_psql('postgres', 'SELECT insta5.settled_id()');
my $photos = $home->safe_psql('postgres', 'SELECT count(*) FROM insta5.photos');
note("$photos photos");

foreach my $consumer (@consumers)
{
	subtest $consumer->{name} => sub {
		await('it has read all', sub { position($consumer) == $settled });
		kill_consumer($consumer);
		is(join(' ', @{ $consumer->{failures} }), '', 'it ends by nothing else than kills');
		if ($consumer->{name} eq 'feed.py')
		{
			is($home->safe_psql('postgres', q{
				SELECT (SELECT count(*) FROM insta5.photos WHERE id NOT IN (SELECT photo_id FROM insta5.feed)),
				       (SELECT count(*) - count(DISTINCT photo_id) FROM insta5.feed),
				       (SELECT count(*) FROM (SELECT photo_id < lag(photo_id) OVER (ORDER BY n) AS is_back
				                              FROM insta5.feed) AS f WHERE is_back)}),
				'0|0|0', 'it misses no row, has none twice, and all in their order');
			return;
		}
		my %times;
		my $lines = () = map { $times{$_}++ } slurp_file($consumer->{out}) =~ /"id":"(\d+)"/g;
		note("$lines lines");
		my @missed = grep { !delete $times{$_} }
			split /\n/, $home->safe_psql('postgres', 'SELECT id FROM insta5.photos');
		is(scalar @missed, 0, 'it misses no row');
		is(join(' ', keys %times), '', 'it prints no row that was not committed');
	};
}

$_->stop foreach $one, $two;
done_testing();
