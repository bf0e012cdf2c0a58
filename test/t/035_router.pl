# examples/router as README and docs/scale-out.md show it: an application writes through PgBouncer while an operator adds a
# server, moves shards, changes them, takes a server away and splits one. No statement fails, no acknowledged write is
# lost or doubled, the shards are where the plans say, and the page shows such outputs. The application's own check can
# fail.

use strict;
use warnings;

use Cwd qw(abs_path);
use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $source = abs_path("$FindBin::RealBin/../..");
local $ENV{PATH} = "$ENV{PATH}:/usr/sbin:$source/examples/router";
plan skip_all => 'pgbouncer is not installed' unless grep { -x "$_/pgbouncer" } split /:/, $ENV{PATH};
plan skip_all => 'python3-psycopg is not installed' if system('python3 -c "import psycopg" 2>/dev/null') != 0;

# The path of a socket is short.
my $dir = PostgreSQL::Test::Utils::tempdir_short() . '/r';
local $ENV{ROUTER_DIR} = $dir;
delete local @ENV{qw(PGHOST PGPORT PGDATABASE PGUSER)};

# Exit code and output.
sub output_of
{
	my (@command) = @_;
	my $output = '';
	IPC::Run::run(\@command, '<', \undef, '>&', \$output);
	return ($? >> 8, $output);
}

sub sql
{
	my ($server, $sql, $database) = @_;
	my (undef, $answer) = output_of('psql', '-XAt', '-d', dsn($server, $database), '-c', $sql);
	chomp $answer;
	return $answer;
}

sub dsn
{
	my ($server, $database) = @_;
	return "host=$dir/$server port=5432 dbname=" . ($database // 'app');
}

# Without what a run does not repeat: numbers, bars, and the widths of columns.
sub shape
{
	my ($line) = @_;
	$line =~ s/\Q$dir\E/\/tmp\/app/g;
	$line =~ s/ +[#| ]+$//;
	$line =~ s/\b\d+ (?:bytes|kB|MB)\b/N size/g;
	$line =~ s/\d+/N/g;
	$line =~ s/N(?:[-,]N)+/N/g;
	return $line =~ s/ +/ /gr;
}

# The outputs that the page shows behind lines of the script, or says that this test checks.
sub shown_lines
{
	my ($page) = @_;
	my $text = slurp_file($page);
	my $checked = qr/test\/t\/035_router.pl checks it/;
	my $kind =
		qr/part of examples\/router\/play -->\n```sh\n(?:(?!```).)*```\n|not run: an output; $checked -->\n/s;
	my @blocks = $text =~ /<!-- $kind```\n(.*?)\n```/sg;
	return grep { /\S/ } map { split /\n/ } @blocks;
}

subtest 'the demo moves shards and moves them back, and README shows its last lines' => sub {
	my ($status, $said) = output_of('demo');
	is($status, 0, 'no write fails') or diag($said);
	like($said, qr/^4 shards moved to a new server: writes were blocked for \d+ ms$/m, 'shards moved');
	like($said, qr/^4 shards moved back by --undo: writes were blocked for \d+ ms$/m, 'and moved back');
	like($said, qr/^\d{3,} writes, 0 errors, 0 lost, 0 doubled; /m, 'no write is lost or doubled');
	like($said, qr/Index Cond: \(\(id >= /, 'a range of time uses the primary key');
	my @shown = shown_lines("$source/README.md");
	cmp_ok(scalar @shown, '>', 5, 'README shows lines');
	my @last = (grep { /\S/ } split /\n/, $said)[ -@shown .. -1 ];
	is(join("\n", map { shape($_) } @last), join("\n", map { shape($_) } @shown), 'which are the last ones');
	ok(!-e $dir, 'nothing is left');
};

my ($status, $said) = output_of('play', '--pause', 30);

my @moves;
subtest 'every move is made, and no write fails' => sub {
	is($status, 0, 'an operator adds a server, moves shards, changes them, takes a server away, and splits one')
		or diag($said, map { "$_:\n" . slurp_file($_) } grep { -e } "$dir/moves.log", "$dir/split.log");
	my ($grow, $drain) = map { decode_json(slurp_file("$dir/$_.json")) } qw(grow drain);
	# How many depends on the sizes, and so on what the application has written.
	cmp_ok(scalar @$grow, '>', 0, 'the plan for a new server has moves');
	is(scalar @$drain, 8 - grep({ $_->{from} eq dsn('db2') } @$grow), 'the plan that empties db2 has the rest of its shards');
	@moves = (@$grow, @$drain);
	my $count = @moves;
	my ($figures) = $said =~ /^(\d+ moves; .*)/m;
	note($figures // 'no figures');
	my $figures_of_writes = qr/1 split; writes were blocked for \d+ ms\n\d{3,} writes, 0 errors, 0 lost, 0 doubled/;
	my $blocked = qr/writes were blocked for \d+ ms \(median\), \d+ ms \(largest\)/;
	like($said,
		qr/^$count moves; $blocked\n$figures_of_writes; the slowest took/m,
		'every move was made, and no write failed, is lost or doubled');
};

# The rest would wait for what the script did not do.
if ($status != 0)
{
	output_of('router', 'down');
	done_testing();
	exit;
}

my %place;
subtest 'each shard is where the plans and the split say' => sub {
	my @servers = map { dsn($_) } qw(db1 db3 db4 db5);
	is(slurp_file("$dir/servers"), join('', map { "$_\n" } @servers), 'four servers are left');
	my (undef, $map) = shard_json($program, 'map', @servers);
	%place = map { $_->{shard} => "host=$_->{host} port=$_->{port} dbname=$_->{dbname}" } @$map;
	is(scalar keys %place, 24, 'with all shards');
	my ($half) = $said =~ /^\d shards moved: ([-\d,]+)$/m;
	my %planned = map { $_->{shard} => $_->{to} } @moves;    # the later plan decides
	$planned{$_} = dsn('db5') foreach map { /(\d+)-(\d+)/ ? $1 .. $2 : $_ } split /,/, $half;
	is_deeply({ map { $_ => $place{$_} } keys %planned }, \%planned, 'which are where the plans and the split say');
	my (undef, $found) = shard_json($program, 'verify', @servers);
	is(join("\n", map { "$_->{object}: $_->{problem}" } @$found), '', 'verify finds nothing');
};

subtest 'docs/scale-out.md shows the outputs of such a run' => sub {
	my @shown = shown_lines("$source/docs/scale-out.md");
	my %shapes = map { (shape($_) => 1) } split /\n/, $said;
	cmp_ok(scalar @shown, '>', 40, 'docs/scale-out.md shows outputs');
	is(join("\n", grep { !$shapes{ shape($_) } } @shown), '', 'of such a run');
};

subtest 'global tables and PL/Proxy' => sub {
	is(sql('db1', q{SELECT string_agg(slot_name, ' ' ORDER BY slot_name) FROM pg_replication_slots}),
		'global_db3 global_db4 global_db5', 'a slot for each other server');
	sql('db1', q{INSERT INTO filters VALUES ('valencia')});
	foreach my $server (qw(db3 db4 db5))
	{
		await("$server has the row", sub { sql($server, q{SELECT count(*) FROM filters WHERE name = 'valencia'}) eq '1' });
	}
	like((output_of('router', 'remove', 'db3'))[1], qr/^db3 has shards:\n\d+,insta\d+,/,
		'a server with shards is not removed');

	SKIP:
	{
		skip 'the extension plproxy is not installed', 2
			if sql('db1', q{SELECT count(*) FROM pg_extension WHERE extname = 'plproxy'}, 'proxy') ne '1';
		my $total = 0;
		$total += $_ foreach map { split /\n/, sql($_, 'SELECT count_photos()') } qw(db1 db3 db4 db5);
		is(sql('db1', 'SELECT count_all_photos()', 'proxy'), $total, 'RUN ON ALL adds up over the servers');
		my ($server) = $place{ $moves[0]{shard} } =~ /(db\d)/;
		my ($id, $caption) = split /\|/,
			sql($server, "SELECT id, caption FROM $moves[0]{schema}.photos ORDER BY id DESC LIMIT 1");
		is(sql('db1', "SELECT photo_caption($id)", 'proxy'), $caption, 'RUN ON the shard of an ID that has moved');
	}
};

subtest 'the application finds a row that is taken away behind its back, and one that is put there' => sub {
	my $user = getpwuid($<);
	my ($home) = $place{0} =~ /(db\d)/;
	my $application =
		IPC::Run::start([ 'app.py', "host=$dir port=6432 user=$user", '--seconds', '600', '--pause', '10' ],
			'<', \undef, '>&', \my $told);
	my $before = sql($home, 'SELECT max(id) FROM insta0.photos');
	await('the application writes', sub { sql($home, 'SELECT max(id) FROM insta0.photos') gt $before });
	sql($home, q{DELETE FROM insta0.photos WHERE id = (SELECT min(id) FROM insta0.photos)});
	sql($home, q{INSERT INTO insta0.photos (user_id, caption) VALUES (24, 'by nobody')});
	$application->signal('TERM');
	$application->finish;
	is($application->result(0), 1, 'the application finds a lost write and a doubled one');
	like($told, qr/^\d+ writes, 0 errors, 1 lost, 1 doubled; /, 'and counts them');
};

subtest 'router down leaves nothing' => sub {
	# Also where PATH has none of PostgreSQL's programs.
	local $ENV{PATH} = "/usr/bin:/bin:$source/examples/router";
	my ($status, $told) = output_of('router', 'down');
	is("$status $told", '0 ', 'router down');
	ok(!-e $dir, 'nothing is left');
};

done_testing();
