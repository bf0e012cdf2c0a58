# examples/application as docs/application.md shows it: from two servers to a service with 16 shards in few commands.
# Clients with psycopg, SQLAlchemy, Django, Active Record, node-postgres and Drizzle, as far as they are installed,
# write through PgBouncer while shards move, one returns, and standbys are promoted and take shards. One move is without
# PgBouncer's file. No acknowledged write is lost or doubled, no row is in a wrong shard, and all languages find the
# same shard for a name.

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
use SplitTest;
use Test::More;

my $program = shard_program();
plan skip_all => 'PgBouncer is not installed' unless defined pgbouncer_program();
my $source = abs_path("$FindBin::RealBin/../..");
my $python = python_with('psycopg');
plan skip_all => 'python3-psycopg is not installed' unless defined $python;
seed_random();

my $conf = "wal_level = logical\nmax_connections = 200\nmax_wal_senders = 10\nmax_replication_slots = 10\n"
  . "wal_retrieve_retry_interval = 100ms\n";
my @nodes = map { new_server($_, conf => $conf, init => { allows_streaming => 1 }) } qw(one two);
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

subtest "Django's own apps, in a database beside the shards" => sub {
	plan skip_all => 'Django is not installed' unless $runs{dj};
	$nodes[0]->safe_psql('postgres', 'CREATE DATABASE accounts');
	append_to_file('pgbouncer.ini', '[databases]' . "\naccounts = " . $nodes[0]->connstr('accounts') =~ tr/'//dr . "\n");
	said('psql', '-q', '-d', "host=$dir port=6432 dbname=pgbouncer", '-c', 'RELOAD');
	is(said('python3', 'photos_django.py', 'migrate'), '', 'migrate');
	is(said('python3', '-c', q{
import photos_django
from django.contrib.auth import authenticate, get_user_model
from django.contrib.sessions.backends.db import SessionStore
from django.db import ProgrammingError
get_user_model().objects.create_user("ada", password="x", is_staff=True)
session = SessionStore()
session["account"] = authenticate(username="ada", password="x").pk
session.save()
print(SessionStore(session.session_key)["account"])
try:
    photos_django.Photo.objects.count()
except ProgrammingError as error:
    print(str(error).splitlines()[0])
}), qq{1\nrelation "photos" does not exist}, 'an account, a session, and no query without a shard');
	is($nodes[0]->safe_psql('app', "SELECT count(*) FROM pg_class WHERE relname = 'auth_user'"), 0, 'the shards have none of it');
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
from route import hash_of_name, shard_of_id, shard_of_name
assert [shard_of_id(row_id) for row_id in (19999, 2**53 - 1, 2**53, 1922949326347663701)] == [0, 0, 0, 478]
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
		is(said('node', '-e', "const { hashOfName, shardOfId, shardOfName } = require('$node_folder/route');" . q{
require('node:assert').deepEqual(['19999', '9007199254740991', '1922949326347663701'].map(shardOfId), [0, 0, 478]);
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
		is(said(@run, 'timeline', 'nobody'), 'exit code 1: there is no user nobody', "$language: an unknown user");
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

# Services that write until the end. Each prints into a file: a pipe would be full if a command of this test took long.
my @loads =
	map { { name => $_, file => "$dir/$_.out", command => [ @{ $runs{$_} }, 'load', 600, 2 ] } } sort keys %runs;
my @router = ('--pgbouncer', "host=$dir port=6432 dbname=pgbouncer", '--config', "$dir/databases.ini");

# What a command prints that must succeed. Without it nothing else would come.
sub succeed
{
	my ($name, @command) = @_;
	my ($status, $out, $err) = run_shard($program, @command);
	is($status, 0, $name) or die "$out$err";
	return "$out$err";
}

sub move
{
	my ($name, @arguments) = @_;
	succeed($name, 'move', @arguments);
	await_writes();
	return;
}

# Waits until a client has been refused by the server, and tells PgBouncer where the shards are.
sub tell_pgbouncer_later
{
	my ($node, $offset, $shards) = @_;
	await('a client is refused', sub { require_services(); refused($node, $offset, $shards) });
	my ($status, $out) = run_shard($program, qw(map @servers --format pgbouncer --search-path));
	unlink 'databases.ini';
	append_to_file('databases.ini', $out);
	said('psql', '-d', "host=$dir port=6432 dbname=pgbouncer", '-c', 'RELOAD');
	return;
}

# How many statements the server has refused because a shard is elsewhere.
sub refused
{
	my ($node, $offset, $shards) = @_;
	return scalar(() = slurp_file($node->logfile, $offset) =~ /ERROR:  shard ($shards), schema insta\1, has moved/g);
}

subtest 'no write is lost while shards move' => sub {
	$_->{h} = IPC::Run::start($_->{command}, '<', '/dev/null', '>', $_->{file}, '2>&1') foreach @loads;
	await_writes();
	move('a move', 'insta3', '--from', $db1, '--to', $db2, @router, '--reversible');
	move('and back', 'insta3', '--from', $db1, '--to', $db2, @router, '--undo');
	move('a move from the other server', 'insta11', '--from', $db2, '--to', $db1, @router);
	# PgBouncer is told later. Until then, writes to this shard are refused, and tried again.
	my $offset = -s $nodes[0]->logfile;
	succeed('a move without PgBouncer', 'move', 'insta4', '--from', $db1, '--to', $db2);
	tell_pgbouncer_later($nodes[0], $offset, 4);
	await_writes() foreach 1, 2;
	succeed("the end of the move of $_->[0]", 'move', $_->[0], '--from', $_->[1], '--to', $_->[2], '--complete')
	  foreach [ 'insta3', $db2, $db1 ], [ 'insta11', $db2, $db1 ], [ 'insta4', $db1, $db2 ];
	check_writes();
};

# The longest requests of the services since their files had these sizes.
sub longest_requests
{
	my @since = @_;
	my @longest;
	foreach my $load (running())
	{
		my ($longest) = sort { $b <=> $a } slurp_file($load->{file}, shift @since) =~ /^waited (\d+) /mg;
		push @longest, "$load->{name} " . ($longest // 'less than 20');
	}
	return join ', ', @longest;
}

# A standby takes shards of a server. docs/application.md has the figures that are noted here.
sub split_off
{
	my ($node, $name, $shards) = @_;
	my $standby = new_standby($node, $name);
	push @nodes, $standby;
	my @servers = ('--from', $node->connstr('app'), '--standby', $standby->connstr('app'));
	my @since = map { -s $_->{file} } running();
	my $offset = -s $node->logfile;
	my $said = succeed("$name takes shards $shards", 'split', @servers, '--shards', $shards, @router);
	append_to_file('servers', $standby->connstr('app') . "\n");
	await_writes();
	my ($blocked) = $said =~ /writes were blocked for (\d+) ms/;
	my ($held) = $said =~ /held its clients for (\d+) ms/;
	my $refused = refused($node, $offset, '\d+') + refused($standby, 0, '\d+');
	note("writes blocked: $blocked ms; clients held: $held ms; longest requests in ms: ", longest_requests(@since));
	is($refused, 0, 'no client is refused: PgBouncer holds them');
	succeed('the shards of the other server are dropped on each', 'split', @servers, '--complete');
	await_writes();
	return;
}

subtest 'no write is lost while standbys are promoted and take shards' => sub {
	# It connects anew for each transaction. A login between RELOAD and RESUME lets PgBouncer begin a connection to the
	# server and end it. It takes that for a failed login of its own, and refuses the clients that wait.
	end_services(grep { $_->{name} eq 'sa' } @loads);
	split_off($nodes[0], 'three', '5,6,7,11');
	split_off($nodes[1], 'four', '4,12,13,14,15');
	my %shards;
	my $aliases = slurp_file('databases.ini');
	push @{ $shards{$2} }, $1 while $aliases =~ /^shard(\d+) = .*?port=(\d+)/mg;
	is(join(' ', map { join ',', @{ $shards{ $_->port } } } @nodes), '0,1,2,3 8,9,10 5,6,7,11 4,12,13,14,15',
		"the aliases of PgBouncer's file lead there");
	check_writes();
};

subtest 'the test can fail' => sub {
	end_services(running());
	is(said($program, qw(verify @servers)), '16 shards on 4 servers, 0 findings', 'verify');
	my %written = acknowledged();
	is(faults(%written), '0 wrong, 0 lost, 0 doubled', 'when the services have ended, too');
	my ($photo, $other) = map { /^(\d+)/ } (sort keys %{ $written{photo} })[ 0, 1 ];
	my ($shard, $wrong_shard) = map { ($_ >> 10 & 8191, (($_ >> 10 & 8191) + 1) % 16) } $photo;
	my $alias = "host=$dir port=6432 dbname=shard";
	said('psql', '-d', "$alias$shard", '-c', "UPDATE photos SET caption = 'another' WHERE id = $photo");
	said('psql', '-d', "$alias$wrong_shard", '-c', "INSERT INTO photos SELECT $photo, id, 'another' FROM users LIMIT 1");
	is(faults(%written), '1 wrong, 1 lost, 1 doubled', 'a row that was changed, and one of a wrong shard');
};

# The services go on meanwhile.
sub check_writes
{
	my %written = acknowledged();
	my $writes = 0;
	$writes += keys %$_ foreach values %written;
	cmp_ok($writes, '>', 1000, "$writes writes were acknowledged");
	is(faults(%written), '0 wrong, 0 lost, 0 doubled', 'all rows are there once, each in its shard');
	return;
}

# The writes of all services, by kind and by the text of their columns.
sub acknowledged
{
	my (%written, @faults);
	foreach my $load (@loads)
	{
		foreach my $line (split /\n/, slurp_file($load->{file}) =~ s/[^\n]*\z//r)
		{
			next if $line =~ /^waited /;
			$line =~ /^(user|photo|like) (\d+) (\S+)$/ ? $written{$1}{"$2 $3"}++ : push @faults, "$load->{name}: $line";
		}
	}
	is(join("\n", @faults), '', 'no error, and each photo was found at once');
	return %written;
}

# Acknowledged writes, compared with the rows of all shards.
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
sub require_services
{
	foreach my $load (grep { !$_->{h}->pumpable } running())
	{
		die "$load->{name} has ended: " . join("\n", (split /\n/, slurp_file($load->{file}))[ -25 .. -1 ]);
	}
	return;
}

sub await_writes
{
	my @before = writes();
	await('clients write', sub {
		require_services();
		my @now = writes();
		return !grep { $now[$_] < $before[$_] + 30 } 0 .. $#now });
	return;
}

sub writes
{
	return map { scalar(() = slurp_file($_->{file}) =~ /^(?:user|photo|like) /mg) } running();
}

sub running
{
	return grep { !$_->{has_ended} } @loads;
}

sub end_services
{
	$_->{h}->signal('TERM') foreach @_;
	$_->{h}->finish foreach @_;
	$_->{has_ended} = 1 foreach @_;
	return;
}

$_->stop foreach @nodes;
done_testing();
