# A consumer that reads up to settled_id() through PgBouncer gets every row once and in the order of the IDs, while the shard
# moves to another server and back, and 8 writers commit late; so do the programs of examples/consume. They read no row again
# after a RESTART of the sequence.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ClientTest;
use IPC::Run;
use PoolerTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

plan skip_all => 'PgBouncer is not installed' unless defined pgbouncer_program();
my $program = shard_program();
seed_random();

my $programs = "$FindBin::RealBin/../../examples/consume";
my $folder = PostgreSQL::Test::Utils::tempdir();
my $conf = "wal_level = logical\nmax_connections = 60\nmax_wal_senders = 10\nmax_replication_slots = 10\n";
my @nodes = map { new_server($_, conf => $conf) } qw(one two);
$nodes[0]->safe_psql('postgres', "SELECT snowflake_create_shard(5, 'insta5')");
$nodes[0]->safe_psql('postgres', slurp_file("$programs/tables.sql"));
$nodes[0]->safe_psql('postgres', q{
	CREATE TABLE insta5.likes (id bigint PRIMARY KEY DEFAULT insta5.next_id());
	CREATE VIEW insta5.rows AS SELECT id FROM insta5.photos UNION ALL SELECT id FROM insta5.likes});
my $pooler = new_pooler(alias_to($nodes[0]));

my $script = PostgreSQL::Test::Utils::tempdir . '/write.sql';
append_to_file($script, join "\n", '\\set late random(0, 40)', "BEGIN; INSERT INTO insta5.photos (caption) VALUES ('x');",
	'\\sleep :late ms', "INSERT INTO insta5.likes DEFAULT VALUES; COMMIT;\n");
my $written = '';
my $writers = IPC::Run::start([ 'pgbench', '-n', '-c', 8, '-j', 2, '-T', 600, '-f', $script, shard5_of($pooler) ],
	'<', '/dev/null', '>&', \$written);

my %consumers;
if (my $python = python_with('psycopg'))
{
	$consumers{'feed.py'} = { command => [ $python, "$programs/feed.py" ], folder => $folder };
}
my ($installed) = install_node('print.js', $programs);
$consumers{'print.js'} = { command => [ 'node', "$installed/print.js" ], folder => $installed } if defined $installed;
foreach my $consumer (values %consumers)
{
	local %ENV = (%ENV, PGHOST => $pooler->{dir}, PGPORT => 6432, PGDATABASE => 'shard5', PGUSER => scalar getpwuid($<));
	$consumer->{run} = IPC::Run::start($consumer->{command}, '<', '/dev/null', '>', \$consumer->{out}, '2>', \$consumer->{err},
		init => sub { chdir $consumer->{folder} or die });
}

# If the test dies, they would run on.
END
{
	my $status = $?;
	$_->{run}->kill_kill foreach values %consumers;
	$? = $status;
}

# Each statement can be on either server. One that fails is repeated with the same last ID. Only the numbers are of the
# statement: psql also prints notifications, because PgBouncer gives it connections on which feed.py has run LISTEN.
my ($last, @seen) = (0);

sub ask
{
	my ($sql) = @_;
	my ($out, $err);
	my $is_done = IPC::Run::run([ 'psql', '-XAtq', '-d', shard5_of($pooler), '-c', $sql ], '>', \$out, '2>', \$err);
	return $is_done ? [ $out =~ /^(\d+)$/mg ] : undef;
}

sub consume
{
	my $settled = ask('SELECT insta5.settled_id()') // return;
	my $rows = ask("SELECT id FROM insta5.rows WHERE id > $last AND id <= $settled->[0] ORDER BY id") // return;
	push @seen, @$rows;
	$last = $settled->[0];
	return;
}

my @move = ('move', 'insta5', '--from', $nodes[0], '--to', $nodes[1], '--pgbouncer', $pooler->{dsn}, '--config', $pooler->{file});
foreach my $step ([ '--reversible' ], [ '--undo', '--reversible' ], [ '--undo' ])
{
	subtest "the consumer reads over move @$step" => sub {
		# The third one goes back from the second: its servers are those of the second, exchanged twice.
		my @line = @$step == 1 && $step->[0] eq '--undo' ? @move[ 0, 1, 2, 5, 4, 3, 6 .. $#move ] : @move;
		my ($out, $err) = ('', '');
		my $run = IPC::Run::start([ shard_command($program, @line, @$step) ], '<', \undef, '>', \$out, '2>', \$err);
		consume() while goes_on($run);
		$run->finish;
		is($run->result(0), 0, 'exit status') or diag("$out$err");
		consume() foreach 1 .. 5;
	};
}

subtest 'the consumer has each row once' => sub {
	$writers->signal('TERM');
	$writers->finish;
	consume();
	my @rows = split /\n/, $nodes[1]->safe_psql('postgres', 'SELECT id FROM insta5.rows ORDER BY id');
	cmp_ok(scalar @rows, '>', 1000, scalar(@rows) . ' rows were written');
	is(join(' ', @seen) eq join(' ', @rows) ? '' : scalar(@seen) . ' of ' . scalar(@rows), '', 'all of them, in their order');
};

my $home = $nodes[1];

sub position
{
	my ($name) = @_;
	return $home->safe_psql('postgres', q{SELECT last_id FROM insta5.consumers WHERE name = 'feed'}) if $name eq 'feed.py';
	return -e "$installed/last_id" ? slurp_file("$installed/last_id") : 0;
}

sub captions_read
{
	my ($name) = @_;
	return $home->safe_psql('postgres', q{SELECT string_agg(caption, '' ORDER BY n) FROM insta5.feed}) if $name eq 'feed.py';
	goes_on($consumers{$name}{run});
	return join '', $consumers{$name}{out} =~ /"caption":"(\w)"/g;
}

# A RESTART sets the settled ID to 0. A program that begins its second look has stored the position of the first one.
my %look = ('feed.py' => qr/ FOR UPDATE/, 'print.js' => qr/ AS settled/);
$home->safe_psql('postgres', q{ALTER DATABASE postgres SET log_statement = 'all'});
console($pooler, 'RECONNECT');
foreach my $name (sort keys %consumers)
{
	subtest "$name over the moves, and a RESTART" => sub {
		my $goes_on_until = sub {
			my ($condition) = @_;
			await("$name is there", sub { !goes_on($consumers{$name}{run}) || $condition->() });
			return ok(goes_on($consumers{$name}{run}), 'it goes on') || diag($consumers{$name}{err});
		};
		$goes_on_until->(sub { position($name) == $last });
		$home->safe_psql('postgres', 'ALTER SEQUENCE insta5.table_id_seq RESTART');
		my $size = -s $home->logfile;
		$goes_on_until->(sub { (() = slurp_file($home->logfile, $size) =~ /$look{$name}/g) >= 2 });
		cmp_ok(position($name), '>=', $last, 'the position does not go back');
		my $letter = substr $name, 0, 1;
		$home->safe_psql('postgres', "INSERT INTO insta5.photos (caption) VALUES ('$letter')");
		$goes_on_until->(sub { captions_read($name) =~ /$letter/ });
		$last = $home->safe_psql('postgres', 'SELECT max(id) FROM insta5.photos');
		my $captions = $home->safe_psql('postgres', q{SELECT string_agg(caption, '' ORDER BY id) FROM insta5.photos});
		is(length captions_read($name), length $captions, 'each row is read once');
	};
}

$_->stop foreach @nodes;
done_testing();
