# docs/upgrade.md: shards move from a server with an earlier major version of PostgreSQL to one with this version, back,
# and there again, while clients write through PgBouncer. The commands are those of the page, which shows such outputs.
# No acknowledged write is lost or doubled. On a server with another collation, indexes are right, rows that violate a
# partition or a CHECK there keep a move waiting, and the comparison names generated columns that differ.
#
# Needs both versions in Debian's folders, each with the extension: script/test with SNOWFLAKE_TEST_FROM=15.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PoolerTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use ShardWriters;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my ($bindir) = qx(pg_config --bindir) =~ /(.*)/;
my ($versions, $version) = $bindir =~ m{^(.*)/(\d+)/bin$}
	or plan skip_all => 'PostgreSQL is not in folders as on Debian';
my ($earlier) = grep { $_ < $version && -e "$versions/$_/lib/snowflake.so" }
	sort { $a <=> $b } map { m{/(\d+)/bin/postgres$} } glob "$versions/*/bin/postgres";
plan skip_all => "no PostgreSQL before $version has the extension" unless defined $earlier;
plan skip_all => 'pgbouncer is not installed' unless pgbouncer_program();
note("from $earlier to $version");

my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\nmax_connections = 60\n";
my $old = new_server('old', conf => $conf, install_path => "$versions/$earlier");
my $new = new_server('new', conf => $conf, init => { extra => ['--data-checksums'] });
my $user = getpwuid($<);
my @shards = 0 .. 2;

# Three shards of an application, which refer to a table in the schema public.
make_real_database($old, 'app');
make_real_shard($old, 'app', 0, 'insta0');
$old->safe_psql('app', 'CREATE TABLE insta0.log (id bigint PRIMARY KEY DEFAULT insta0.next_id(), v text)');
is((run_shard($program, 'clone', $old->connstr('app'), qw(--template insta0 --shards 1-2 --schema insta{})))[0], 0,
	'three shards');
# The clients of shard 2 get its schema by search_path.
my $pooler = new_pooler((run_shard($program, 'map', '--format', 'pgbouncer', $old->connstr('app')))[1]
	=~ s/^(shard2 = .*)$/$1 connect_query='SET search_path = insta2'/mr);

# docs/pgbouncer.md#pgbouncer-126
my ($pooler_version) = console($pooler, 'SHOW VERSION') =~ /^PgBouncer (\d+\.\d+)/;
my ($major, $minor) = split /\./, $pooler_version;
my $keeps_settings = $major > 1 || $minor >= 26;
my $leave_there = $keeps_settings && $earlier < 18 && $version >= 18 ? 1 : 0;    # for those of shard 2
my $leave_back = $keeps_settings && $earlier < 16 ? 1 : 0;
note("PgBouncer $pooler_version");

my $folder = PostgreSQL::Test::Utils::tempdir();
my %real = (
	'/usr/lib/postgresql/17/bin' => $bindir,
	'/etc/pgbouncer/shards/databases.ini' => $pooler->{file},
	'host=pool port=6432 dbname=pgbouncer' => $pooler->{dsn},
	map { 'host=' . $_->name => 'host=' . $_->host . ' port=' . $_->port } $old, $new);

# The blocks of the page below a heading: pairs of commands and the output that is shown.
my $page = slurp_file("$FindBin::RealBin/../../docs/upgrade.md");
my $mark = qr/<!-- not run: two versions of PostgreSQL; test\/t\/066_server_upgrade\.pl runs it -->/;

sub blocks_of
{
	my ($heading) = @_;
	my ($text) = $page =~ /^#+ \Q$heading\E\n(.*?)(?=^#|\z)/ms or die "$heading: no such heading";
	return map { [ $_->[0], $_->[1] // '' ] } pairs_of($text);
}

sub pairs_of
{
	my ($text) = @_;
	my @pairs;
	push @pairs, [ $1, $2 ] while $text =~ /^$mark\n```sh\n(.*?)^```\n(?:```\n(.*?)^```\n)?/msg;
	return @pairs;
}

my ($definitions) = map { $_->[0] } blocks_of('Steps');

my @disconnected;

# Runs the commands below a heading, and compares their outputs with those of the page.
sub follow
{
	my ($heading) = @_;
	my $whole = '';
	foreach my $block (blocks_of($heading))
	{
		my $commands = "$definitions$block->[0]";
		$commands =~ s/\Q$_\E/$real{$_}/g foreach sort keys %real;
		my $output = '';
		IPC::Run::run([ 'bash', '-e', '-o', 'pipefail', '-c', "cd $folder\n$commands" ], '<', \undef, '>&', \$output);
		is($? >> 8, 0, "$heading: the commands succeed")
			or diag($output . join '', map { slurp_file($_) } glob "$folder/*.log");
		$output = without_times($output);
		# Some versions of PgBouncer say more.
		push @disconnected, $output =~ /Clients are disconnected when they are led from PostgreSQL (\d+ to \d+): it would/g;
		$output =~ s/^snowflake-shard: PgBouncer .* Clients are disconnected .*\nHINT: .*\n//mg;
		$output = shown($output);
		is(shape($output), shape($block->[1]), "$heading: the page shows such an output") or diag($output);
		$whole .= $output;
	}
	return $whole;
}

# As the page names the servers and the superuser.
sub shown
{
	my ($text) = @_;
	foreach my $node ($old, $new)
	{
		my $address = $node->host . ':' . $node->port . '/app';
		my $uri = $address =~ s/\//%2F/gr =~ s/%2Fapp$/\/app/r;
		$text =~ s/\Q$_\E/${\$node->name}:5432\/app/g foreach $address, $uri;
	}
	return $text =~ s/role "\Q$user\E"/role "postgres"/r;
}

sub shape
{
	my ($text) = @_;
	return $text =~ s/\d[\d.:-]*\d|\d/N/gr =~ s/ +/ /gr =~ s/ $//mgr =~ s/N (?:bytes|kB|MB)/SIZE/gr;
}

# The version that a client of each shard meets.
sub versions_met
{
	my %met;
	foreach my $shard (@shards)
	{
		my ($answer, $problem);
		my @psql = ('psql', '-XAtq', '-d', alias($shard), '-c', 'SHOW server_version_num');
		IPC::Run::run(\@psql, '>', \$answer, '2>', \$problem) or die $problem;
		$met{ int($answer / 10000) }++;
	}
	return join ',', %met;
}

sub alias
{
	my ($shard) = @_;
	return "host=$pooler->{dir} port=6432 dbname=shard$shard user=$user";
}

my %writers = map { $_ => start_writers(1, "insta$_", ['log'], alias($_)) } @shards;

sub await_writes
{
	my @journals = map { @{ $_->{journals} } } values %writers;
	my %before = map { $_ => -s $_ // 0 } @journals;
	return await('all clients write', sub { !grep { (-s $_ // 0) < $before{$_} + 1000 } @journals });
}

# In the transaction pooling of shard 2, a client that was connected before finds its tables, or has to connect again.
sub path_of
{
	my ($client) = @_;
	my $path = eval { $client->query_safe('SHOW search_path') } // 'lost';
	eval { $client->quit } if $path eq 'lost';
	return $path;
}

sub client_of_shard2
{
	return $new->background_psql('app', extra_params => [ '-d', alias(2) ]);
}

my @pauses;
sub note_pauses
{
	push @pauses, map { /^ +\d+ +insta\d+ +[a-z ]+ (\d+)\s*$/ } split /\n/, $_[0];
	return;
}

await_writes();
subtest 'there' => sub {
	follow('Roles, database, objects outside of shards');
	follow('Plan and check');
	is(join(', ', sort @disconnected), join(', ', ("$earlier to $version") x $leave_there, ("$version to $earlier") x $leave_back),
		'--dry-run says which clients are disconnected');
	is(versions_met(), "$earlier,3", 'clients are served by the earlier version');
	my $client = client_of_shard2();
	is(path_of($client), 'insta2', 'a client of shard 2 has its schema');
	note_pauses(follow('Move'));
	is(versions_met(), "$version,3", 'clients are served by the new version');
	is(path_of($client), $leave_there ? 'lost' : 'insta2', 'it keeps it, or has to connect again');
	is(path_of(client_of_shard2()), 'insta2', 'a new client has it');
	await_writes();
	follow('Look');
};

subtest 'back' => sub {
	my $client = client_of_shard2();
	is(path_of($client), 'insta2', 'a client of shard 2 has its schema');
	note_pauses(follow('Go back'));
	is(versions_met(), "$earlier,3", 'clients are served by the earlier version');
	is(path_of($client), $leave_back ? 'lost' : 'insta2', 'it keeps it, or has to connect again');
	is(path_of(client_of_shard2()), 'insta2', 'a new client has it');
	await_writes();
};

subtest 'there again' => sub {
	note_pauses(follow('Once more'));
	is(versions_met(), "$version,3", 'clients are served by the new version');
	await_writes();
	follow('End');
	await_writes();
};

subtest 'no acknowledged write is lost or doubled' => sub {
	my ($count, @faults) = 0;
	my %journals = map { $_ => [ stop_writers($writers{$_}) ] } @shards;
	foreach my $shard (@shards)
	{
		push @faults, lost_writes($new, 'app', "insta$shard", @{ $journals{$shard} });
		$count += @{ $journals{$shard} };
	}
	my $doubled = grep { /twice|in two tables/ } @faults;
	my $lost = @faults - $doubled;
	is(join("\n", @faults), '', "$count transactions were acknowledged, $lost are lost, $doubled doubled");
	my @lost = map { scalar grep { $_->{doubt} } @{ $journals{$_} } } @shards;
	is("@lost", join(' ', ($leave_back + 2 * $leave_there) x 3),
		'no session was lost but those that PgBouncer could not keep for one shard of the set');
	is(scalar @pauses, 9, 'nine moves; writes were blocked for ' . join(', ', sort { $a <=> $b } @pauses) . ' ms');
	# The test can fail.
	$new->safe_psql('app', q{DELETE FROM insta0.log WHERE v ~ '^w' AND id = (SELECT max(id) FROM insta0.log)});
	is(scalar(lost_writes($new, 'app', 'insta0', @{ $journals{0} })), 1, 'a row that is gone is found');
};

# The order of ICU has Z after a, that of C has it before a.
subtest 'another collation' => sub {
	$old->safe_psql('postgres', q{CREATE DATABASE sorted TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'});
	$new->safe_psql('postgres',
		q{CREATE DATABASE sorted TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'und' LOCALE 'C'});
	$_->safe_psql('sorted', 'CREATE EXTENSION snowflake') foreach $old, $new;
	$old->safe_psql('sorted', q{
		SELECT snowflake_create_shard(5, 'insta5');
		CREATE TABLE insta5.names (id bigint PRIMARY KEY DEFAULT insta5.next_id(), name text UNIQUE);
		CREATE TABLE insta5.folded (name text PRIMARY KEY, folded text GENERATED ALWAYS AS (lower(name)) STORED);
		INSERT INTO insta5.folded VALUES ('a'), (chr(196));
		INSERT INTO insta5.names (name)
			SELECT chr(n) || m FROM unnest(ARRAY[65, 90, 97, 122]) AS n, generate_series(1, 500) AS m;
		CREATE TABLE insta5.parts (id bigint DEFAULT insta5.next_id(), name text PRIMARY KEY) PARTITION BY RANGE (name);
		CREATE TABLE insta5.parts_a PARTITION OF insta5.parts FOR VALUES FROM (MINVALUE) TO ('a');
		CREATE TABLE insta5.parts_b PARTITION OF insta5.parts FOR VALUES FROM ('a') TO (MAXVALUE);
		CREATE TABLE insta5.checked (name text PRIMARY KEY CHECK (name < 'a'));
		INSERT INTO insta5.parts (name) VALUES ('Z');
		INSERT INTO insta5.checked VALUES ('Z')});
	my @move = ('move', 'insta5', '--from', $old->connstr('sorted'), '--to', $new->connstr('sorted'));
	my ($status, undef, $err) = run_shard($program, @move);
	like("$status $err", qr/^3 .*table insta5\.(?:parts_a|checked): .* violates (?:partition|check) constraint/s,
		'a row that is wrong in the new order ends the move at once, and is named');
	is(sqlstate($old, q{INSERT INTO insta5.names (name) VALUES ('written')}, database => 'sorted'), '',
		'clients write on the old server');
	is((run_shard($program, @move, '--abort'))[0], 0, '--abort ends it');
	$old->safe_psql('sorted', 'DROP TABLE insta5.parts, insta5.checked');
	($status, undef, $err) = run_shard($program, @move);
	is($status, 3, 'a row that is another one ends the move before the cutover');
	my $difference = qr/table insta5\.folded: \S+ has 1 row, key \(\S+\), \S+ has .*, which is not the same/;
	like($err, $difference, 'the comparison names a generated column that is computed in another way') or diag($err);
	is((run_shard($program, @move, '--resume', '--verify', '1'))[0], 0, 'with --verify 1 rows are only counted');
	is(sqlstate($new, q{INSERT INTO insta5.names (name) VALUES ('there')}, database => 'sorted'), '', 'it is open there');
	my $order = q{SET enable_seqscan = off; SET enable_sort = off; SELECT name FROM insta5.names ORDER BY name LIMIT 1};
	is(join(' ', map { $_->safe_psql('sorted', $order) } $old, $new), 'A1 a1', 'an index has the order of its server');
	is($new->safe_psql('sorted', q{CREATE EXTENSION amcheck; SELECT bt_index_check('insta5.names_name_key', true)}), '',
		'amcheck finds no error in it');
};

$_->stop foreach $old, $new;

# Four servers on one machine, with the application of the example.
subtest 'examples/router: a second day' => sub {
	local $ENV{PATH} = "$ENV{PATH}:/usr/sbin";
	plan skip_all => 'python3-psycopg is not installed' if system('python3 -c "import psycopg" 2>/dev/null') != 0;
	local $ENV{ROUTER_DIR} = PostgreSQL::Test::Utils::tempdir_short() . '/r';
	delete local @ENV{qw(PGHOST PGPORT PGDATABASE PGUSER)};
	my $example = "$FindBin::RealBin/../../examples/router";
	my $said = '';
	IPC::Run::run([ "$example/second-day", "$versions/$earlier/bin", $bindir ], '<', \undef, '>&', \$said);
	is($? >> 8, 0, 'shards go to the new version, back, and there again') or diag($said);
	like($said, qr/^24 moves; .*\n\d{3,} writes, 0 errors, 0 lost, 0 doubled/m, 'no write failed, is lost or doubled');
	is(join(' ', $said =~ /^(\d+)\.\d/mg), "$version $earlier", 'the version that a client met');
	IPC::Run::run([ "$example/router", 'down' ], '>&', \$said);
	is($?, 0, "router down: $said");
};

done_testing();
