# The programs of examples/feeds, as docs/feeds.md shows them, with 16 shards on two servers and PgBouncer. Pages over
# shards, newest first, have each row once and in the order of IDs. A late commit is missed below a cursor, but not
# below the bound. A shard that does not answer is named, and a standby shows what it has replayed. Each job is done
# once, by several programs and over a move.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ClientTest;
use Cwd qw(abs_path);
use IPC::Run;
use PoolerTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use SplitTest;
use Test::More;

my $program = shard_program();
plan skip_all => 'PgBouncer is not installed' unless defined pgbouncer_program();
my $python = python_with('psycopg');
plan skip_all => 'python3-psycopg is not installed' unless defined $python;

my $source = abs_path("$FindBin::RealBin/../..") . '/examples';
my $user = getpwuid($<);
my $conf = "wal_level = logical\nmax_connections = 200\nmax_wal_senders = 10\nmax_replication_slots = 10\n";
my ($one, $two) = map { new_server($_, conf => $conf, init => { allows_streaming => 1 }) } qw(one two);
$one->safe_psql('postgres', slurp_file("$source/$_")) foreach 'application/shard.sql', 'feeds/tables.sql';
succeed('clone', 'clone', $one, '--template', 'insta0', '--shards', '1-7', '--schema', 'insta{}');
succeed('clone', 'clone', $one, $two, '--template', 'insta0', '--shards', '8-15', '--schema', 'insta{}', '--to', $two);

my $dir = PostgreSQL::Test::Utils::tempdir();
system('cp', glob("$source/feeds/* $source/application/route.*"), $dir) == 0 or die 'could not copy the examples';
chdir $dir or die "$dir: $!";
my $standby = new_standby($one, 'standby');
my $pooler = new_pooler(aliases());
@ENV{qw(PGBOUNCER_HOST PGBOUNCER_PORT)} = ($pooler->{dir}, 6432);
$ENV{PGBOUNCER} = "host=$pooler->{dir} port=6432";
$ENV{PYTHONDONTWRITEBYTECODE} = 1;
delete @ENV{qw(PGHOST PGPORT PGDATABASE)};
my ($node_folder, $node_problem) = install_node('feeds', $dir);

# What a command prints that must succeed.
sub succeed
{
	my ($name, @command) = @_;
	my ($status, $out, $err) = run_shard($program, @command);
	is($status, 0, $name) or die "$out$err";
	return $out;
}

sub aliases
{
	my $lines =
		succeed('map', 'map', $one, $two, qw(--format pgbouncer --search-path --user), $user, '--replicas', $standby);
	return $lines =~ s/^\[databases\]\n//r;
}

# The output of a program in Python that has imported feed.py, and that of one in Node.js.
sub python
{
	my ($code, @arguments) = @_;
	my ($status, $out, $err) = run($python, '-c', "from feed import *\n$code", @arguments);
	return $status ? $err : $out;
}

sub node
{
	my ($code, @arguments) = @_;
	my $program = "const { feed, router } = require('$node_folder/feed'); (async () => { $code; router.end(); })()";
	my ($status, $out, $err) = run('node', '-e', $program, '--', @arguments);
	return $status ? $err : $out;
}

sub server_of { return $_[0] < 8 ? $one : $two }

# IDs, one a line.
sub post
{
	my ($user_id, $caption, $count) = @_;
	my $shard = $user_id >> 10 & 8191;
	return $1 if server_of($shard)->safe_psql('postgres', sprintf(q{
		INSERT INTO insta%d.photos (user_id, caption) SELECT %s, '%s' FROM generate_series(1, %d) RETURNING id},
		$shard, $user_id, $caption, $count // 1)) =~ /(.*)/s;
}

# Photos of these users, newest first, as psql reads them.
sub photos_of
{
	my $list = join ', ', @_;
	my $query = "SELECT id FROM insta%s.photos WHERE user_id IN ($list)";
	my @photos = map { split /\n/, server_of($_)->safe_psql('postgres', sprintf $query, $_) } 0 .. 15;
	return join '', map { "$_\n" } sort { $b <=> $a } @photos;
}

# One user in each shard but the last, and a second one in the first.
my $sign_up = q{INSERT INTO insta%s.users (name) VALUES ('u') RETURNING id};
my @users = map { server_of($_)->safe_psql('postgres', sprintf $sign_up, $_) } 0, 0 .. 14;
foreach my $round (1 .. 4)
{
	post($_, 'early', 3) foreach @users;
}

subtest 'pages over shards' => sub {
	my $expected = photos_of(@users);
	is(scalar(() = $expected =~ /\n/g), 16 * 12, 'photos');
	my $pages = q{
before = END
while (page := feed([int(user) for user in sys.argv[1:]], before, limit=7))[0]:
    print(*[photo[0] for photo in page[0]], *page[1].values(), sep="\n")
    before = page[0][-1][0]};
	is(python($pages, @users), $expected, 'Python: all photos once, newest first');
	my ($status, $out) = run($python, 'feed.py', @users[ 3, 4 ]);
	is($out =~ s/ .*//mgr, photos_of(@users[ 3, 4 ]), 'feed.py itself');
	unlike(console($pooler, 'SHOW SERVERS'), qr/shard15\b/, 'a shard without such users is not asked');
	SKIP:
	{
		skip $node_problem, 2 if defined $node_problem;
		is(node(q{
			const users = process.argv.slice(1);
			for (let [page] = await feed(users, undefined, 7); page.length; [page] = await feed(users, page.at(-1).id, 7))
				for (const { id } of page) console.log(id)}, @users), $expected, 'Node.js: all photos once, newest first');
		($status, $out) = run('node', "$node_folder/feed.js", @users[ 3, 4 ]);
		is($out =~ s/ .*//mgr, photos_of(@users[ 3, 4 ]), 'feed.js itself');
	}
};

# The IDs of a page, below an ID.
sub page
{
	my ($before, $limit) = @_;
	my $code = "print(*[photo[0] for photo in feed([int(user) for user in sys.argv[1:]], $before, $limit)[0]])";
	return python($code, @users) =~ s/\n//r;
}

sub bound_in_background
{
	my ($out, $err) = ('', '');
	my $command = $_[0] eq 'Python' ? [ $python, '-c', 'from feed import *; print(bound(range(15)))' ]
	  : [ 'node', '-e', "const { bound, router } = require('$node_folder/feed');"
		  . 'bound([...Array(15).keys()]).then((id) => { console.log(String(id)); router.end(); })' ];
	return { out => \$out, err => \$err, run => IPC::Run::start($command, '<', \undef, '>', \$out, '2>', \$err) };
}

sub waiting_for_draws
{
	return $one->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity
		WHERE query LIKE 'SELECT settled_id()%' AND wait_event_type = 'Lock'});
}

my $insert_late = "INSERT INTO insta1.photos (user_id, caption) VALUES ($users[2], 'late') RETURNING id";

subtest 'a late commit' => sub {
	my $writer = $one->background_psql('postgres');
	my $late = $writer->query_safe("BEGIN; $insert_late");
	post($_, 'after it') foreach @users[ 8 .. 15 ];
	my $first = page('END', 5);
	$writer->query_safe('COMMIT');
	my ($last) = $first =~ /(\d+)$/;
	cmp_ok($last, '>', $late, 'is not on a page that was read, whose last row is newer');
	like(page($last, 20), qr/\b$late\b/, 'is on a later page');
	$writer->quit;
};

subtest 'the bound' => sub {
	foreach my $language ('Python', defined $node_problem ? () : 'Node.js')
	{
		my $writer = $one->background_psql('postgres');
		my $late = $writer->query_safe("BEGIN; $insert_late");
		my $bound = bound_in_background($language);
		await("it waits for the writer", sub { waiting_for_draws() == 1 });
		my @more = map { post($_, 'meanwhile') } @users;
		$writer->query_safe('COMMIT');
		$writer->quit;
		$bound->{run}->finish;
		my ($id) = ${ $bound->{out} } =~ /^(\d+)$/ or die ${ $bound->{err} };
		cmp_ok($id, '>', $late, "$language: is above the late row");
		my @first = split / /, page("$id + 1", 5);
		is($first[0], $late, "$language: the first page below it begins with the late row");
		my @less = grep { $_ <= $id } map { post($_, 'later') } @users;
		is("@less", '', "$language: later rows are above it, in each shard");
	}
};


subtest 'a shard that does not answer' => sub {
	my $ask = q{
photos, missing = feed([int(user) for user in sys.argv[1:]])
print(len({photo[0] >> 10 & 8191 for photo in photos}), *missing.items())};
	is(python($ask, @users), "15\n", 'all shards answer');
	my $holder = $two->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta9.photos');
	$holder->query_safe("SELECT set_config('statement_timeout', '0', false)");
	$two->safe_psql('postgres', qq{ALTER ROLE "$user" SET statement_timeout = '3s'});
	console($pooler, 'RECONNECT');
	is(python($ask, @users), "14 ('9', 'late')\n", 'Python: one is named, and the others are shown');
	like(node(q{
		const [photos, missing] = await feed(process.argv.slice(1));
		console.log(new Set(photos.map((photo) => (BigInt(photo.id) >> 10n) & 8191n)).size, missing.join(' '))}, @users),
		qr/^14 9,late$/, 'Node.js') unless defined $node_problem;
	$holder->quit;
	$two->safe_psql('postgres', qq{ALTER ROLE "$user" RESET statement_timeout});
};

subtest 'a standby' => sub {
	my $lsn = $one->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	await('it has replayed', sub { $standby->safe_psql('postgres', "SELECT pg_last_wal_replay_lsn() >= '$lsn'") eq 't' });
	my $ask = q{print(*[photo[0] for photo in feed([int(user) for user in sys.argv[1:]], limit=5, suffix="_ro")[0]])};
	my $newest = sub { join(' ', (split /\n/, photos_of(@users[ 0 .. 3 ]))[ 0 .. 4 ]) . "\n" };
	is(python($ask, @users[ 0 .. 3 ]), $newest->(), 'shows the rows');
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
	post($users[1], 'not there yet');
	isnt(python($ask, @users[ 0 .. 3 ]), $newest->(), 'but those that it has replayed alone');
	is(sqlstate($standby, "SELECT insta0.$_()"), $_ eq 'next_id' ? '25006' : '55000', "and $_() is refused")
	  foreach qw(next_id settled_id);
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
};

# The IDs that everyone.py prints.
sub everyone
{
	my ($map) = @_;
	my ($status, $out, $err) = run($python, 'everyone.py', $map);
	return $status ? $err : $out =~ s/ .*//mgr;
}

append_to_file('map.json', succeed('map --json', 'map', $one, $two, '--json'));
is(everyone('map.json'), join('', map { "$_\n" } (split /\n/, photos_of(@users))[ 0 .. 49 ]),
	'one statement for each database');

# Two programs, whose messages do not matter. If the test dies, they would run on.
my @programs;

END
{
	my $status = $?;
	$_->kill_kill(grace => 0) foreach grep { eval { $_->pumpable } } @programs;
	chdir '/';
	$? = $status;
}

subtest 'jobs' => sub {
	@programs = map { IPC::Run::start([ $python, 'jobs.py' ], '<', \undef, '>', '/dev/null', '2>>', 'jobs.err') } 1, 2;
	my $make = 'INSERT INTO insta%1$d.jobs (photo_id) SELECT id FROM insta%1$d.photos';
	server_of($_)->safe_psql('postgres', sprintf $make, $_) foreach 0 .. 15;
	my $before = $one->safe_psql('postgres', 'SELECT coalesce(max(id), 0) FROM insta2.settled');
	await('the jobs of shard 2 have begun',
		sub { $one->safe_psql('postgres', 'SELECT count(*) > 0 FROM insta2.thumbnails') eq 't' });
	succeed('a move while they run', 'move', 'insta2', '--from', $one, '--to', $two);
	unlink $pooler->{file};
	append_to_file($pooler->{file}, "[databases]\n" . aliases());
	console($pooler, 'RELOAD');
	my $new = $two->safe_psql('postgres',
		"INSERT INTO insta2.photos (user_id, caption) VALUES ($users[3], 'new') RETURNING id");
	unlike(everyone('map.json'), qr/$new/, 'with the map from before, everyone.py shows the rows of the old server');
	append_to_file('new.json', succeed('map --json', 'map', $one, $two, '--json'));
	like(everyone('new.json'), qr/^$new$/m, 'with a new map those of the new one');
	$two->safe_psql('postgres', sprintf $make, 2);
	my $left = sub { join ' + ', map { "(SELECT count(*) FROM insta$_.jobs)" } @_ };
	await('no job is left', sub {
		$one->safe_psql('postgres', 'SELECT ' . $left->(0, 1, 3 .. 7)) == 0
		  && $two->safe_psql('postgres', 'SELECT ' . $left->(2, 8 .. 15)) == 0 });
	my $settled = '(TABLE insta2.settled UNION ALL TABLE insta15.settled) AS s';
	await('the settled ID increases in each shard',
		sub { $two->safe_psql('postgres', "SELECT count(*) = 2 AND min(id) > $before FROM $settled") eq 't' });
	# A standby that is behind: the bound is as old as its rows.
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
	my ($hidden) = post($users[1], 'not there yet') =~ /(\d+)/;
	await('the primary has settled it',
		sub { $one->safe_psql('postgres', "SELECT id >= $hidden FROM insta0.settled") eq 't' });
	my ($bound, $rows) = split / /, python(q{
bound = bound_of_standbys([0, 1, 3])
photos, missing = feed([int(user) for user in sys.argv[1:]], bound + 1, 1000, "_ro")
print(bound, ",".join(str(photo[0]) for photo in photos))}, @users[ 0 .. 2, 4 ]);
	cmp_ok($bound, '<', $hidden, 'the bound of a standby that is behind is not that of the primary');
	my @rows = grep { $_ <= $bound } split /\n/, photos_of(@users[ 0 .. 2, 4 ]);
	is($rows, join(',', @rows) . "\n", 'it has all rows up to there');
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
	ok($_->pumpable, 'a program runs') foreach @programs;
	$_->kill_kill(grace => 0) foreach @programs;
	is($two->safe_psql('postgres', 'SELECT count(*) = 2 * count(DISTINCT photo_id) - 1 FROM insta2.thumbnails'), 't',
		'each job of the shard that has moved is done once');
	is($one->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT photo_id) FROM insta3.thumbnails'),
		0, 'of another, too');
};

$_->stop foreach $standby, $one, $two;
done_testing();
