# examples/from-one-database as docs/distribute-users.md shows it: the tables of a database become those of shards on
# another server, while an application writes. No acknowledged write is lost or doubled, no row is in a wrong shard: after
# the cutover, after an undo, and after commands that were killed. script/test --faults: a million rows over 16 shards.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ClientTest;
use Cwd qw(abs_path);
use FaultTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

my $program = shard_program();
my $python = python_with('psycopg');
plan skip_all => 'python3-psycopg is not installed' unless defined $python;
seed_random();

my $folder = abs_path("$FindBin::RealBin/../../examples/from-one-database");
my $is_long = $ENV{SNOWFLAKE_TEST_LONG};    # script/test --faults
my $shards = $is_long ? 16 : 4;
my $users = $is_long ? 20_000 : 1_000;
my $photos = $is_long ? 500_000 : 10_000;
my $conf = "wal_level = logical\nwal_retrieve_retry_interval = 100ms\nautovacuum = on\n";
my ($old, $new) = map { new_server($_, conf => $conf, init => { allows_streaming => 1 }) } qw(old new);
$_->safe_psql('postgres', 'CREATE DATABASE app') foreach $old, $new;
$ENV{PYTHONDONTWRITEBYTECODE} = 1;
$ENV{PATH} = join ':', $python =~ s/\/python3$//r, $ENV{PATH};
$ENV{SHARDS} = $shards;
@ENV{qw(OLD NEW)} = map { $_->connstr('app') } $old, $new;
delete @ENV{qw(PGHOST PGPORT PGDATABASE PGUSER)};
my @servers = ('--old', $ENV{OLD}, '--new', $ENV{NEW});
my @tables = qw(users=id photos=user_id likes=user_id comments=user_id filters);

sub distribute_command
{
	my ($verb, @arguments) = @_;
	push @arguments, '--timeout', 30 if $verb =~ /cutover|undo/ && !@arguments;    # on a busy machine
	return ('python3', "$folder/distribute", $verb, @servers, @arguments);
}

# All that was printed, for the comparison with the page.
my $printed = '';

# Exit code, and what it prints.
sub distribute
{
	my ($status, $out, $err) = run(distribute_command(@_));
	$printed .= $out;
	return ($status, "$out$err");
}

sub begin { return distribute('begin', '--shards', $shards, @tables) }
sub check { return distribute('check', '--shards', $shards, @_) }

sub done
{
	my ($verb, @arguments) = @_;
	my ($status, $said) = $verb eq 'begin' ? begin() : distribute($verb, @arguments);
	is($status, 0, $verb) or diag($said);
	note("$verb: $1") if $said =~ /(writes were blocked for .*)/;
	return $said;
}

sub in_old { my ($sql) = @_; return $old->safe_psql('app', $sql) }
sub in_new { my ($sql) = @_; return $new->safe_psql('app', $sql) }

$old->safe_psql('app', slurp_file("$folder/old.sql"));
in_old(qq{
	INSERT INTO filters VALUES ('plain', 1), ('lo-fi', 5);
	INSERT INTO users (name) SELECT 'user' || n FROM generate_series(1, $users) AS n;
	INSERT INTO photos (user_id, filter, caption)
		SELECT n % $users + 1, 'plain', repeat('x', 50) FROM generate_series(1, $photos) AS n;
	INSERT INTO likes SELECT n, n * 7 % $users + 1 FROM generate_series(1, $photos, 2) AS n;
	INSERT INTO comments (photo_id, body) SELECT n, 'nice' FROM generate_series(1, $photos, 2) AS n});

subtest 'a key for the table that has none, and the shards' => sub {
	is((run('psql', '-qX', '-d', $ENV{OLD}, '-v', 'ON_ERROR_STOP=1', '-f', "$folder/add-key.sql"))[0], 0, 'add-key.sql');
	my ($status, $out, $err) = run("$folder/make-shards");
	is($status, 0, 'make-shards') or diag($err);
	is($out, sprintf("%d shards made: 1-%d\n", $shards - 1, $shards - 1), 'makes the shards');
	is((run($program, 'diff', $ENV{NEW}, '--template', 'insta0'))[0], 0, 'diff');
};

# Changes, the lines that the check prints then, and the changes back.
my @changes_of_old = (
	[ 'ALTER user_id DROP NOT NULL', 'obstacle: column user_id of table comments can be NULL, ', 'ALTER user_id SET NOT NULL' ],
	[ 'DROP CONSTRAINT comments_pkey', 'obstacle: table comments has no primary key: ', 'ADD PRIMARY KEY (id)' ],
	[ 'REPLICA IDENTITY NOTHING', 'obstacle: table comments: its replica identity ', 'REPLICA IDENTITY DEFAULT' ],
	[ 'OWNER TO mallory', 'obstacle: the tables belong to several roles: ', 'OWNER TO CURRENT_USER' ]);
my @changes_of_new = (
	[ 'ALTER TABLE insta1.comments ADD note text', 'obstacle: new: table insta1.comments has not ',
		'ALTER TABLE insta1.comments DROP note' ],
	[ 'ALTER TABLE insta0.likes ADD CONSTRAINT likes_photo_id_fkey FOREIGN KEY (photo_id) REFERENCES insta0.photos',
		'obstacle: foreign key likes_photo_id_fkey of likes does not hold over shards: ',
		'ALTER TABLE insta0.likes DROP CONSTRAINT likes_photo_id_fkey' ],
	[ q{INSERT INTO insta1.users (name) VALUES ('ada')}, 'obstacle: new: table insta1.users has rows', 'DELETE FROM insta1.users' ],
	[ 'ALTER TABLE insta0.users ALTER member TYPE bigint', 'note: users.member is too narrow for IDs of the shards: ',
		'ALTER TABLE insta0.users ALTER member TYPE integer' ]);

sub are_told
{
	my ($server, $alter, @changes) = @_;
	$server->safe_psql('app', join ';', map { "$alter $_->[0]" } @changes);
	my ($status, $said) = check(@tables);
	is($status, 1, 'obstacles');
	like($said, qr/^\Q$_->[1]\E/m, $_->[0]) foreach @changes;
	is(() = $said =~ /^obstacle: /mg, grep({ $_->[1] =~ /^obstacle/ } @changes), 'and no others') or diag($said);
	$server->safe_psql('app', join ';', map { "$alter $_->[2]" } @changes);
	return;
}

subtest 'obstacles are told before anything is changed' => sub {
	my ($status, $said) = check(@tables);
	is($status, 0, 'no obstacle') or diag($said);
	my $key = qr/^note: foreign key likes_photo_id_fkey of likes does not hold over shards: [1-9]\d* rows/m;
	like($said, $key, 'a foreign key over shards');
	like($said, qr/^note: public.users_name_key will be unique within a shard only$/m, 'a unique constraint');
	($status, $said) = check('users=name', 'photos', 'comments=author', 'nothing');
	like($said, qr/^obstacle: $_/m, $_)
	  foreach 'table filters is not named', 'there is no table public.nothing', 'column name of table users is no integer: it is text',
	  'table comments has no column author';
	like((check('likes', grep { !/likes/ } @tables))[1], qr/^obstacle: foreign key likes_photo_id_fkey: likes is shared/m,
		'a shared table that refers to one with a key');
	in_old('CREATE ROLE mallory');
	are_told($old, 'ALTER TABLE comments', @changes_of_old);
	are_told($new, '', @changes_of_new);
	is((distribute('begin', '--shards', $shards + 1, @tables))[0], 3, 'begin looks, too');
	is(in_old(q{SELECT to_regnamespace('distribute') IS NULL}), 't', 'nothing is changed');
};

# The application writes until the end.
my $writes = PostgreSQL::Test::Utils::tempdir() . '/writes';
my @load = ('python3', "$folder/app.py", @ENV{qw(OLD NEW)}, $shards, $users, $is_long ? (4, 0.01) : (3, 0.1));
my $application = IPC::Run::start(\@load, '<', '/dev/null', '>', $writes, '2>&1');

sub await_writes
{
	my $before = written();
	await('the application writes', sub {
		die 'the application has ended: ' . (slurp_file($writes) =~ /^(error.*)/m ? $1 : '') unless $application->pumpable;
		return written() > $before + 20 });
	return;
}

sub written { return scalar(() = slurp_file($writes) =~ /^photo /mg) }

# Acknowledged writes and the rows that are there. A client can write meanwhile: what it had
# written before the rows were read is looked for, and a photo that has been edited since is not.
sub faults
{
	my ($place) = @_;
	my $acknowledged = slurp_file($writes) =~ s/[^\n]*\z//r;
	my (%found, %like, $doubled, $wrong);
	foreach my $schema ($place eq 'old' ? 'public' : map { "insta$_" } 0 .. $shards - 1)
	{
		my $server = $place eq 'old' ? $old : $new;
		my $photos = $server->safe_psql('app', "SELECT id, user_id, caption FROM $schema.photos WHERE caption LIKE 'app%'");
		foreach my $row (map { [ split /\|/ ] } split /\n/, $photos)
		{
			my ($id, $user, $caption) = @$row;
			$doubled++ if $found{$id};
			$found{$id} = "$user $caption";
			my $shard = $user < 2**53 ? $user % $shards : $user >> 10 & 8191;
			$wrong++ if $place ne 'old' && $schema ne "insta$shard";
		}
		$doubled += grep { $like{$_}++ } split /\n/, $server->safe_psql('app', "SELECT photo_id, user_id FROM $schema.likes");
		my $users = $server->safe_psql('app', "SELECT id, name FROM $schema.users WHERE name LIKE 'app%'");
		$doubled += grep { $like{$_}++ } split /\n/, $users;
	}
	my $later = slurp_file($writes) =~ s/[^\n]*\z//r;
	my %changed = map { (/^(?:photo|unlike) (\d+)/ ? ($1 => 1) : ()) } split /\n/, substr $later, length $acknowledged;
	my (%photo, %gone, %user);
	foreach (split /\n/, $acknowledged)
	{
		$photo{$1} = "$2 $3" if /^photo (\d+) (\d+) (\S+)$/;
		$gone{"$1|$2"} = 1 if /^unlike (\d+) (\d+)$/;
		$user{"$1|$2"} = 1 if /^user (\d+) (\S+)$/;
	}
	my @photos = grep { !$changed{$_} } keys %photo;
	my $lost = grep { ($found{$_} // '') !~ /^\Q$photo{$_}\E\+?$/ } @photos;
	# A user likes his photo, unless he takes it back, as the application does with every third.
	foreach my $id (@photos)
	{
		my ($user, $number) = $photo{$id} =~ /^(\d+) .*_(\d+)/;
		$lost++ if $number % 3 != 1 && !$like{"$id|$user"};
	}
	$lost += grep { !$like{$_} } keys %user;
	$doubled += grep { $like{$_} } keys %gone;
	cmp_ok(scalar @photos, '>', 20, scalar(@photos) . ' photos were acknowledged');
	return sprintf '%d lost, %d doubled, %d in a wrong shard', $lost, $doubled // 0, $wrong // 0;
}

my $none = '0 lost, 0 doubled, 0 in a wrong shard';
await_writes();

# Killed at any time, and run again until it succeeds.
sub kill_and_repeat
{
	my ($verb) = @_;
	my $command = IPC::Run::start([ distribute_command($verb) ], '<', '/dev/null', '>&', \my $said);
	usleep(rand(1_200_000));
	$command->kill_kill(grace => 0);
	# Its session has the lock that keeps a second command away.
	await("$verb goes on", sub { $said = (distribute($verb))[1]; return $said !~ /another distribute/ });
	note("$verb after a kill: $said");
	return $said;
}

subtest 'writers that do not end, a cutover, and an undo' => sub {
	done('begin');
	in_old("UPDATE likes SET user_id = user_id % $users + 1 WHERE photo_id <= 50");    # the key: rows go to other shards
	my $writer = $old->background_psql('app');
	$writer->query_safe(q{BEGIN; UPDATE filters SET strength = 2 WHERE name = 'plain'});
	my ($status, $said) = distribute('cutover', '--timeout', '0.3');
	is($status, 3, 'a transaction that goes on') or diag($said);
	like($said, qr/waited 0.3 s until the transactions that write to old have ended/, 'is named');
	$writer->query_safe('COMMIT');
	$writer->quit;
	await_writes();
	isnt(in_old('SELECT to_regclass($$distribute.open$$) IS NULL'), 't', 'the old database is written again');

	is(sqlstate($old, 'TRUNCATE comments', database => 'app'), '55000', 'TRUNCATE is refused');
	my $older = $old->background_psql('app', on_error_stop => 0);
	$older->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM filters');
	# Replicated rows are late, so that the cutover has to wait for them while writes are blocked.
	in_new(q{CREATE FUNCTION public.late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.1); RETURN NEW; END';
		CREATE TRIGGER late BEFORE INSERT ON insta1.photos FOR EACH ROW EXECUTE FUNCTION public.late();
		ALTER TABLE insta1.photos ENABLE REPLICA TRIGGER late});
	await_writes();
	kill_and_repeat('cutover');
	in_new('DROP FUNCTION public.late CASCADE');
	$older->query('UPDATE filters SET strength = 3');
	like($older->{stderr}, qr/table public.filters is not written here/, 'an older transaction is refused');
	$older->quit;
	like((distribute('abort'))[1], qr/the shards are written/, 'abort is refused');
	await_writes();
	is(faults('new'), $none, 'the application writes to the shards');
	$said = done('undo');
	like($said, qr/^$_: \d+ rows, equal$/m, $_) foreach qw(comments filters likes photos users);
	await_writes();
	is(faults('old'), $none, 'the undo loses nothing');
	# An abort that ends between two tables: a table that is detached then refers to one that is not.
	in_new(q{
		CREATE FUNCTION public.stop() RETURNS event_trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF (SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass('public.comments')) < 2 THEN
				RAISE 'stopped between two tables';
			END IF;
		END $$;
		CREATE EVENT TRIGGER stop ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION public.stop()});
	my ($stopped, $why) = distribute('abort');
	like("$stopped $why", qr/^3 .*stopped between two tables/s, 'abort stops between two tables');
	in_new('DROP EVENT TRIGGER stop; DROP FUNCTION public.stop');
	kill_and_repeat('abort');
	is(in_new(join ' UNION ALL ', map { "SELECT id FROM insta$_.photos" } 0 .. $shards - 1), '', 'the shards are empty');
};

# Further trials of the long form.
subtest 'commands that are killed' => sub {
	my $trials = trials(0, 20);
	plan skip_all => 'a trial of each is in the other subtests' if !$trials;
	foreach my $trial (1 .. $trials)
	{
		show_progress('distribute', $trial, $trials);
		done('begin');
		kill_and_repeat('cutover');
		await_writes();
		is(faults('new'), $none, 'cutover');
		kill_and_repeat('undo');
		await_writes();
		is(faults('old'), $none, 'undo');
		kill_and_repeat('abort');
	}
};

subtest 'from the cutover to shards on their own' => sub {
	done('begin');
	in_new(q{ALTER TABLE filters DISABLE TRIGGER distribute; UPDATE filters SET strength = 7 WHERE name = 'lo-fi';
		ALTER TABLE filters ENABLE ALWAYS TRIGGER distribute});
	my ($status, $out) = distribute('cutover');
	is($status, 3, 'a row that differs') or diag($out);
	like($out, qr/the rows of these tables differ: filters: distribute undo/, 'is found');
	await_writes();
	my $insert = q{INSERT INTO filters VALUES ('sutro', 9)};
	is(sqlstate($old, $insert, database => 'app'), '25006', 'the old database refuses writes');
	my $member = in_new(q{INSERT INTO insta1.users (name) VALUES ('mia') RETURNING member});
	cmp_ok($member, '>', $users, 'a sequence that is no key continues');
	like(kill_and_repeat('complete'), qr/ refuses writes to these tables, which can be dropped: comments, /, 'complete');
	await_writes();
	$application->signal('TERM');
	$application->finish;
	is(join("\n", slurp_file($writes) =~ /^(error .*)/mg), '', 'no request has failed');
	my ($longest) = sort { $b <=> $a } slurp_file($writes) =~ /^waited (\d+)$/mg;
	note("the longest request: $longest ms; photos: " . written());
	is(faults('new'), $none, 'no acknowledged write is lost or doubled');
	my @orphans = map { "SELECT photo_id FROM insta$_.comments EXCEPT SELECT id FROM insta$_.photos" } 0 .. $shards - 1;
	is(in_new($_), '', 'foreign keys hold') foreach @orphans;
	($status, $out) = run($program, 'diff', $ENV{NEW}, '--template', 'insta0');
	is($status, 0, 'the shards are as they were made') or diag($out);
	my $verified = (run($program, 'verify', $ENV{NEW}))[1];
	is($verified, "$shards shards on 1 server, 0 findings\n", 'verify');
	$printed .= "$out$verified";
	is(in_new('SELECT object, problem FROM snowflake.snowflake_check()'), '', 'snowflake_check');
	my $left = q{SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind <> 'i'};
	is(in_new($left), 'filters', 'nothing is left');
	is($_->safe_psql('app', 'SELECT slot_name FROM pg_replication_slots'), '', 'no slot') foreach $old, $new;
};

# Without numbers.
sub shape { my ($line) = @_; return $line =~ s/\d+/N/gr }

subtest 'docs/distribute-users.md shows the outputs of such a run' => sub {
	my $page = slurp_file("$folder/../../docs/distribute-users.md");
	my @shown = grep { $_ ne '...' } map { split /\n/ } $page =~ /082_from_one_database.pl checks it -->\n```\n(.*?)\n```/sg;
	my %shapes = map { (shape($_) => 1) } split /\n/, $printed;
	cmp_ok(scalar @shown, '>', 10, 'lines');
	is(join("\n", grep { !$shapes{ shape($_) } } @shown), '', 'of such a run');
};

subtest 'the test can fail' => sub {
	my ($id, $user) = slurp_file($writes) =~ /^photo (\d+) (\d+) /m;
	my $shard = $user % $shards;
	my $other = ($shard + 1) % $shards;
	in_new("INSERT INTO insta$other.users VALUES ($user, 'again')");
	in_new("INSERT INTO insta$other.photos SELECT * FROM insta$shard.photos WHERE id = $id");
	is(faults('new'), '0 lost, 1 doubled, 1 in a wrong shard', 'a row that is in two shards');
	in_new("DELETE FROM insta$_.photos WHERE id = $id") foreach $shard, $other;
	is(faults('new'), '1 lost, 0 doubled, 0 in a wrong shard', 'a row that is in none');
};

done_testing();
