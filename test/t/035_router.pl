# examples/router as docs/scale-out.md shows it: an application writes through PgBouncer while shards
# move. No statement fails, no acknowledged write is lost, and PL/Proxy's answers are right after it.

use strict;
use warnings;

use Cwd qw(abs_path);
use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $examples = abs_path("$FindBin::RealBin/../../examples/router");
plan skip_all => 'pgbouncer is not installed' unless grep { -x "$_/pgbouncer" } split /:/, $ENV{PATH};
plan skip_all => 'python3-psycopg is not installed' if system('python3 -c "import psycopg" 2>/dev/null') != 0;

# The path of a socket is short.
my $dir = PostgreSQL::Test::Utils::tempdir_short() . '/r';
local $ENV{PATH} = "$ENV{PATH}:/usr/sbin";
delete local @ENV{qw(PGHOST PGPORT PGDATABASE PGUSER)};

sub router
{
	my (@arguments) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $output = '';
	my $done = IPC::Run::run([ "$examples/router", @arguments, $dir ], '<', \undef, '>&', \$output);
	ok($done, "router @arguments") or diag($output);
	return $output;
}

sub ask_proxy
{
	my ($sql) = @_;
	my $answer = '';
	IPC::Run::run([ 'psql', '-XAt', '-d', "host=$dir/db1 port=5432 dbname=proxy", '-c', $sql ], '>', \$answer);
	chomp $answer;
	return $answer;
}

router('up');
my $user = getpwuid($<);
my $said = '';
my $application = IPC::Run::start(
	[ "$examples/app.py", "host=$dir port=6432 user=$user", '--seconds', '10' ], '<', \undef, '>&', \$said);
foreach my $way ([ 5, 'db2' ], [ 17, 'db1' ])
{
	like(router('move', @$way), qr/PgBouncer held its clients for \d+ ms/, 'the pause is printed');
}
$application->finish;
is($application->result(0), 0, 'no statement of the application failed, and no write is lost') or diag($said);
like($said, qr/^\d{3,} writes, 0 errors, 0 lost/, 'it wrote while the shards moved');

my ($status, $found) = shard_json($program, 'verify', map { "host=$dir/$_ port=5432 dbname=app" } qw(db1 db2 db3));
is(join("\n", map { "$_->{object}: $_->{problem}" } @$found), '', 'verify finds nothing');

SKIP:
{
	skip 'the extension plproxy is not installed', 2
	  if ask_proxy("SELECT count(*) FROM pg_extension WHERE extname = 'plproxy'") ne '1';
	my $total = 0;
	my @moved;
	foreach my $server (qw(db1 db2 db3))
	{
		my $rows = '';
		IPC::Run::run([ 'psql', '-XAt', '-d', "host=$dir/$server port=5432 dbname=app", '-c',
				"SELECT count FROM count_photos() AS count" ], '>', \$rows);
		$total += $_ foreach split /\n/, $rows;
	}
	IPC::Run::run([ 'psql', '-XAt', '-d', "host=$dir/db2 port=5432 dbname=app", '-c',
			'SELECT id, caption FROM insta5.photos ORDER BY id DESC LIMIT 1' ], '>', \my $photo);
	my ($id, $caption) = $photo =~ /^(\d+)\|(.*)$/;
	is(ask_proxy('SELECT count_all_photos()'), $total, 'RUN ON ALL adds up over the servers');
	is(ask_proxy("SELECT photo_caption($id)"), $caption, 'RUN ON the shard of an ID that has moved');
}

router('down');
ok(!-e $dir, 'nothing is left');
done_testing();
