# examples/application as docs/application.md shows it: from two servers to a service with 16 shards in few commands.
# Clients with psycopg, SQLAlchemy, Django, Active Record, node-postgres and Drizzle, as far as they are installed, write
# through PgBouncer while a shard moves and returns, and others move, one of them without PgBouncer's file. No
# acknowledged write is lost or doubled, no row is in a wrong shard, and all languages find the same shard for a name.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ClientTest;
use Cwd qw(abs_path);
use IPC::Run;
use JSON::PP;
use PoolerTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
plan skip_all => 'PgBouncer is not installed' unless defined pgbouncer_program();
my $source = abs_path("$FindBin::RealBin/../..");
my $python = python_with('psycopg');
plan skip_all => 'python3-psycopg is not installed' unless defined $python;
seed_random();

my $conf = "wal_level = logical\nmax_connections = 200\nmax_wal_senders = 10\nmax_replication_slots = 10\n";
my @nodes = map { new_server($_, conf => $conf) } qw(one two);
$_->safe_psql('postgres', 'CREATE DATABASE app') foreach @nodes;
my ($db1, $db2) = map { $_->connstr('app') } @nodes;

# The path of a socket is short.
my $dir = PostgreSQL::Test::Utils::tempdir_short();
system('cp', '-r', "$source/examples/application/.", $dir) == 0 or die 'could not copy examples/application';
chdir $dir or die "$dir: $!";
$ENV{PYTHONDONTWRITEBYTECODE} = 1;
$ENV{PATH} = join ':', $python =~ s/\/python3$//r, $ENV{PATH}, '/usr/sbin';
$ENV{PGBOUNCER} = "host=$dir port=6432";
@ENV{qw(PGBOUNCER_HOST PGBOUNCER_PORT)} = ($dir, 6432);
delete @ENV{qw(PGHOST PGPORT PGDATABASE PGUSER)};

# Exit code and output.
sub output_of
{
	my (@command) = @_;
	my $output = '';
	IPC::Run::run(\@command, '<', \undef, '>&', \$output);
	chomp $output;
	return ($? >> 8, $output);
}

# The output, if it succeeds.
sub said
{
	my ($status, $output) = output_of(@_);
	return $status == 0 ? $output : "exit code $status: $output";
}

sub photos
{
	return said('python3', 'photos.py', @_);
}

# The service in each language and library that is installed.
my %runs = (py => [ 'python3', 'photos.py' ]);
$runs{sa} = [ 'python3', 'photos_sqlalchemy.py' ] if succeeds('python3', '-c', 'import sqlalchemy, psycopg2');
$runs{dj} = [ 'python3', 'photos_django.py' ] if succeeds('python3', '-c', 'import django, psycopg2');
$runs{rb} = [ 'ruby', 'photos.rb' ] if has_program('ruby') && succeeds('ruby', '-e', 'require "active_record"; gem "pg"');

sub succeeds
{
	my ($status) = output_of(@_);
	return $status == 0;
}

# PgBouncer is a daemon, which this test ends also when it dies.
END
{
	my $status = $?;
	if (defined $dir && -e "$dir/pgbouncer.pid")
	{
		chomp(my $pid = slurp_file("$dir/pgbouncer.pid"));
		kill 'INT', $pid;
	}
	chdir '/';
	$? = $status;
}

subtest 'from two servers to a service in few commands' => sub {
	local @ENV{qw(DB1 DB2)} = ($db1, $db2);
	my ($status, $output) = output_of('./begin');
	is($status, 0, 'all commands succeed') or diag($output);
	like($output, qr/^\d+\n\d+\n\d+ first light \d{4}-\d\d-\d\d .*\z/m, 'the timeline has the photo');
	note($output);
	my ($commands) = slurp_file('begin') =~ /^DB2=.*?\n\n(.*)/ms;
	$commands =~ s/^(cat > pgbouncer.ini) <<CONF\n.*?^CONF\n/$1\n/ms;
	my $count = () = $commands =~ /\n/g;
	cmp_ok($count, '<=', 15, "it takes $count commands");
	is(said($program, qw(verify @servers)), '16 shards on 2 servers, 0 findings', 'verify');
};

my ($node_folder, $node_problem) = install_node('application', $dir);
($runs{js}, $runs{dz}) = map { [ 'node', "$node_folder/$_.js" ] } 'photos', 'photos_drizzle' if defined $node_folder;
note('with ' . join(', ', sort keys %runs));

# The model has one more column. Other languages do not look at it.
subtest "Django's migration, in every shard" => sub {
	plan skip_all => 'Django is not installed' unless $runs{dj};
	mkdir 'migrations';
	append_to_file('migrations/0002_place.sql', said('python3', 'photos_django.py', 'sqlmigrate', '0002') . "\n");
	my @run = ($program, 'run', '@servers', '--shards', '0-15', '--dir', 'migrations');
	is(said(@run), '16 shards done: 0-15', 'once');
	is(said(@run), '16 shards had it already: 0-15', 'not a second time');
};

subtest 'a name leads to the same shard in every language' => sub {
	my $vectors = slurp_file('vectors.tsv');
	my @names = map { (split /\t/)[0] } split /\n/, $vectors;
	my $hash = q{('x' || left(encode(sha256(convert_to(name, 'UTF8')), 'hex'), 16))::bit(64)::bigint};
	like(slurp_file($_), qr/\Q${\($hash =~ s{convert_to\(name}{convert_to(name}r)}\E/, "$_ says how SQL does it")
		foreach qw(route.py route.js photos.rb);
	my $list = join ', ', map { my $name = $_; utf8::decode($name); "'" . $name . "'" } @names;
	utf8::encode($list);
	local $ENV{PGCLIENTENCODING} = 'UTF8';
	my $hashes = "SELECT name, $hash AS hash FROM unnest(ARRAY[$list]) AS name";
	my $shards = "SELECT name, hash, snowflake_shard_for(hash, 16), snowflake_shard_for(hash, 2000) FROM ($hashes) AS h";
	is(said('psql', '-XAt', '-F', "\t", '-d', $db1, '-c', $shards) . "\n", $vectors, 'SQL');
	is(said('python3', '-c', q{
import sys; sys.stdout.reconfigure(encoding="utf-8")
from route import hash_of_name, shard_of_name
for line in open("vectors.tsv", encoding="utf-8"):
    name = line.split("\t")[0]
    print(name, hash_of_name(name), shard_of_name(name), shard_of_name(name, 2000), sep="\t")}) . "\n",
		$vectors, 'Python');
	SKIP:
	{
		skip 'Active Record is not installed', 1 unless $runs{rb};
		is(said(@{ $runs{rb} }, 'hash', @names) . "\n", $vectors, 'Ruby');
	}
	SKIP:
	{
		skip $node_problem, 1 if defined $node_problem;
		is(said('node', '-e', "const { hashOfName, shardOfName } = require('$node_folder/route');" . q{
for (const line of require('node:fs').readFileSync('vectors.tsv', 'utf8').split('\n').slice(0, -1)) {
  const name = line.split('\t')[0];
  console.log([name, hashOfName(name), shardOfName(name), shardOfName(name, 2000)].join('\t'));
}}) . "\n",
			$vectors, 'Node.js');
	}
};

# The service as one language has written it is that of the other.
subtest 'the service' => sub {
	my ($ada) = photos('timeline', 'ada') =~ /^(\d+)/;
	foreach my $language (sort keys %runs)
	{
		my @run = @{ $runs{$language} };
		my $name = "bob_$language";
		my $user = said(@run, 'sign-up', $name);
		my $photo = said(@run, 'post', $name, 'at noon');
		like("$user $photo", qr/^\d+ \d+$/, "$language: a user and a photo");
		is($photo >> 10 & 8191, $user >> 10 & 8191, "$language: in one shard");
		like(said(@run, 'sign-up', $name), qr/exit code 1: the name $name is taken/, "$language: a name is there once");
		said(@run, 'like', $name, $ada);
		like(said(@run, 'photo', $ada), qr/^$ada \d+ first light \d$/, "$language: a photo of another shard by its ID");
	}
	my $later = photos('post', 'bob_py', 'later');
	like(photos('timeline', 'bob_py'), qr/^$later later .*\n\d+ at noon .*\z/, 'the newest photo is first');
	photos('like', 'bob_py', $ada);
	is((split / /, photos('photo', $ada))[-1], scalar keys %runs, 'each user likes a photo once');
	is(photos('deliver'), scalar keys %runs, 'the second step of the likes');
	is(photos('deliver'), 0, 'is done once');
	is(photos('rename', 'ada', 'lovelace'), '', 'a rename');
	like(photos('timeline', 'lovelace'), qr/first light/, 'leads to the same user');
	like(photos('rename', 'lovelace', 'bob_py'), qr/is taken/, 'not to a name of another user');
	like(photos('sign-up', 'ada'), qr/^\d+$/, 'the old name is free');
};

# Rows of all shards: shard, columns.
sub rows_of
{
	my ($sql) = @_;
	my ($status, $out, $err) = run_shard($program, 'query', '@servers', '--format', 'csv', '--sql', $sql);
	is($status, 0, $sql) or diag($err);
	my (undef, @lines) = split /\n/, $out;
	return map { [ (split /,/)[ 0, 2 .. 9 ] ] } @lines;
}

subtest 'no write is lost while shards move' => sub {
	my @loads = map { { name => $_, out => '', command => [ @{ $runs{$_} }, 'load', 600, 2 ] } } sort keys %runs;
	$_->{h} = IPC::Run::start($_->{command}, '<', \undef, '>', \$_->{out}, '2>&1') foreach @loads;
	my $await_writes = sub {
		my @before = writes_of(@loads);
		await('clients write', sub {
			read_output(@loads);
			my @now = writes_of(@loads);
			return !grep { $now[$_] < $before[$_] + 30 } 0 .. $#now }) };
	my @router = ('--pgbouncer', "host=$dir port=6432 dbname=pgbouncer", '--config', "$dir/databases.ini");
	my $move = sub {
		my ($name, @arguments) = @_;
		my ($status, $out, $err) = run_shard($program, 'move', @arguments);
		is($status, 0, $name) or diag("$out$err");
		$await_writes->() };
	$await_writes->();
	$move->('a move', 'insta3', '--from', $db1, '--to', $db2, @router, '--reversible');
	$move->('and back', 'insta3', '--from', $db1, '--to', $db2, @router, '--undo');
	$move->('a move from the other server', 'insta11', '--from', $db2, '--to', $db1, @router);
	# PgBouncer is told later. Until then, writes to this shard are refused, and tried again.
	my ($status, $out, $err) = run_shard($program, 'move', 'insta4', '--from', $db1, '--to', $db2);
	is($status, 0, 'a move without PgBouncer') or diag("$out$err");
	await('a client is refused', sub {
		read_output(@loads);
		slurp_file($nodes[0]->logfile) =~ /ERROR:  shard 4, schema insta4, has moved/ });
	($status, $out) = run_shard($program, qw(map @servers --format pgbouncer --search-path));
	unlink 'databases.ini';
	append_to_file('databases.ini', $out);
	said('psql', '-d', "host=$dir port=6432 dbname=pgbouncer", '-c', 'RELOAD');
	$await_writes->() foreach 1, 2;
	$_->{h}->signal('TERM') foreach @loads;
	$_->{h}->finish foreach @loads;

	my (%written, @faults);
	foreach my $load (@loads)
	{
		foreach my $line (split /\n/, $load->{out} =~ s/[^\n]*\z//r)
		{
			next if $line =~ /^waited /;
			$line =~ /^(user|photo|like) (\d+) (\S+)$/ ? $written{$1}{"$2 $3"}++ : push @faults, "$load->{name}: $line";
		}
	}
	is(join("\n", @faults), '', 'no error, and each photo was found at once');
	my $writes = 0;
	$writes += keys %$_ foreach values %written;
	cmp_ok($writes, '>', 1000, "$writes writes were acknowledged");
	is(faults(%written), '0 wrong, 0 lost, 0 doubled', 'all rows are there once, each in its shard');
	is(said($program, qw(verify @servers)), '16 shards on 2 servers, 0 findings', 'verify');

	# The test can fail.
	my ($photo, $other) = map { /^(\d+)/ } (sort keys %{ $written{photo} })[ 0, 1 ];
	my ($shard, $wrong_shard) = map { ($_ >> 10 & 8191, (($_ >> 10 & 8191) + 1) % 16) } $photo;
	my $alias = "host=$dir port=6432 dbname=shard";
	said('psql', '-d', "$alias$shard", '-c', "UPDATE photos SET caption = 'another' WHERE id = $photo");
	said('psql', '-d', "$alias$wrong_shard", '-c', "INSERT INTO photos SELECT $photo, id, 'another' FROM users LIMIT 1");
	is(faults(%written), '1 wrong, 1 lost, 1 doubled', 'the test can fail');
};

# Acknowledged writes, by kind and by the text of their columns, compared with the rows of all shards.
sub faults
{
	my (%written) = @_;
	my %queries = (
		user => 'SELECT u.id, name FROM users AS u',
		photo => 'SELECT id, caption FROM photos',
		like => 'SELECT photo_id, user_id FROM likes');
	my ($wrong, $lost, $doubled) = (0, 0, 0);
	foreach my $kind (sort keys %queries)
	{
		my %found;
		foreach my $row (rows_of($queries{$kind}))
		{
			my ($shard, $id, $what) = @$row;
			$wrong++ if ($id >> 10 & 8191) != $shard;
			$found{"$id $what"}++;
		}
		$lost += grep { !$found{$_} } keys %{ $written{$kind} };
		$doubled += grep { $_ > 1 } values %found;
	}
	my %of_name = map { ($_->[1] => $_->[2]) } rows_of('SELECT name, user_id FROM names');
	$lost += grep { my ($id, $name) = split / /; ($of_name{$name} // 0) != $id } keys %{ $written{user} };
	return "$wrong wrong, $lost lost, $doubled doubled";
}

# Each goes on until it gets a signal.
sub read_output
{
	foreach my $load (@_)
	{
		$load->{h}->pump_nb if $load->{h}->pumpable;
		die "$load->{name} has ended: " . join("\n", (split /\n/, $load->{out})[ -25 .. -1 ]) unless $load->{h}->pumpable;
	}
	return;
}

sub writes_of
{
	return map { my $load = $_; scalar(() = $load->{out} =~ /\n/g) } @_;
}

$_->stop foreach @nodes;
done_testing();
