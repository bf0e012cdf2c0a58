# docs/migrations.md with the files of examples/migrations: Django, Prisma and Flyway by snowflake-shard run --dir,
# Alembic and Active Record by themselves. Each makes a table, a column, values of rows and an index in 20 shards, fails
# in shard 7 and continues, changes a clone, and continues after a squash. The commands are those of the page.
# Prisma and Flyway need not be installed: their files are enough.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ClientTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

shard_program();
my $source = "$FindBin::RealBin/../..";
my $page = slurp_file("$source/docs/migrations.md");
my $node = new_server('migrations');
$node->safe_psql('postgres', 'CREATE ROLE app LOGIN');
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $python = python_with('psycopg2');
$ENV{PATH} = join ':', "$dir/bin", defined $python ? $python =~ s/\/python3$//r : (), $ENV{PATH};
$ENV{PYTHONDONTWRITEBYTECODE} = 1;
delete @ENV{qw(PGHOST PGPORT PGDATABASE PGUSER)};

# Debian has the command in a package of its own.
mkdir "$dir/bin";
append_to_file("$dir/bin/alembic", "#!/bin/sh\nexec python3 -m alembic \"\$\@\"\n");
chmod 0755, "$dir/bin/alembic";

# The script of the page makes the shards. Each tool has copies of both databases.
{
	mkdir "$dir/begin";
	chdir "$dir/begin";
	$node->safe_psql('postgres', "CREATE DATABASE $_") foreach 'begin', 'begin_2';
	local @ENV{qw(DB1 DB2)} = map { $node->connstr($_) } 'begin', 'begin_2';
	my ($status, $out, $err) = run("$source/examples/migrations/begin");
	is("$status $out", "0 19 shards made: 1-19\n", '20 shards') or die $err;
}

my @databases;    # of the tool at work: of the shards, and of the clone

# 20 shards without tables, and the files of the tool in the current folder.
sub begin
{
	my ($tool) = @_;
	@databases = ($tool, "${tool}_2");
	$node->safe_psql('postgres', "CREATE DATABASE $_ TEMPLATE " . s/^\Q$tool/begin/r) foreach @databases;
	@ENV{qw(DB1 DB2)} = map { $node->connstr($_) } @databases;
	system('cp', '-r', "$source/examples/migrations/$tool", $dir) == 0 or die "could not copy the files of $tool";
	chdir "$dir/$tool" or die "$dir/$tool: $!";
	does('servers', 'printf "%s\n" "$DB1" "$DB2" > servers; snowflake-shard map @servers --format json > shards.json');
	return;
}

# Runs commands, and compares the output, without addresses of servers and names of files.
sub does
{
	my ($name, $commands, $expected) = @_;
	my ($status, $out) = run('bash', '-c', "set -e\nexec 2>&1\n$commands");
	is($status, 0, "$name: $commands") or diag($out);
	is(without_names($out), without_names($expected), "$name: its output") if defined $expected;
	return $out;
}

sub without_names { my ($text) = @_; return $text =~ s/^SERVER:.*\n//mgr =~ s/(?<=change )\S+(?=\.sql:)/NAME/r }

# The blocks of the page below a heading: pairs of commands and the output that is shown.
my $mark = qr{<!-- not run: [^\n]*test/t/090_migrations\.pl runs it -->};

sub blocks_of
{
	my ($heading) = @_;
	my ($text) = $page =~ /^#+ \Q$heading\E\n(.*?)(?=^##|\z)/ms or die "$heading: no such heading";
	my @blocks;
	push @blocks, [ $1, $2 ] while $text =~ /^$mark\n```sh\n(.*?)^```\n(?:```\n(.*?)^```\n)?/msg;
	return @blocks;
}

# Of all shards, or of those given, in the database that has them.
sub in_shards
{
	my ($sql, @shards) = @_;
	my @script = ('', '');
	$script[ $_ == 20 ] .= "SET search_path = insta$_;\n$sql;\n" foreach @shards;
	return join "\n", grep { $_ ne '' } map { $node->safe_psql($databases[$_], $script[$_]) } 0, 1;
}

sub one_each
{
	my ($row, @shards) = @_;
	return join "\n", ($row) x @shards;
}

# What the application does before the second step, and before the third one.
sub insert_rows { return insert("photos (user_id, caption) VALUES (1, 'Photo')", 0 .. 19) }
sub insert_without_slug { return insert("photos (user_id, caption) VALUES (2, 'Late')", 7) }
sub insert { my ($row, @shards) = @_; return in_shards("SET ROLE app; INSERT INTO $row", @shards) }

# After all steps.
sub check_shards
{
	is(in_shards('SELECT slug, (id >> 10) & 8191, id > 1::bigint << 53 FROM photos WHERE user_id = 1', 0 .. 19),
		join("\n", map { "photo|$_|t" } 0 .. 19), 'rows, with IDs of their shards');
	insert("albums (title, place) VALUES ('new', 'here')", 0 .. 20);
	is(in_shards('SELECT (id >> 10) & 8191, id > 1::bigint << 53 FROM albums', 0 .. 20),
		join("\n", map { "$_|t" } 0 .. 20), 'those of the new table, too');
	is(in_shards(q{SELECT indisvalid FROM pg_index WHERE indexrelid = 'photos_user'::regclass}, 0 .. 20),
		one_each('t', 0 .. 20), 'the index');
	my $of_shard = 'relnamespace = current_schema()::regnamespace';
	is(in_shards("SELECT DISTINCT relowner::regrole FROM pg_class WHERE $of_shard", 0 .. 20),
		one_each('app', 0 .. 20), 'all of it belongs to the owner of the shards');
	does('diff', 'snowflake-shard diff @servers --template insta0', "20 shards compared with insta0, different: none\n");
	does('verify', 'snowflake-shard verify @servers', "21 shards on 2 servers, 0 findings\n");
	return;
}

# A key that no function of ours makes is found by the query of the page.
sub check_keys
{
	my ($keys) = blocks_of('Keys');
	is(does('keys', $keys->[0]) =~ tr/\n//, 1, 'no key of another kind');
	in_shards('SET ROLE app; CREATE TABLE wrong (id bigserial PRIMARY KEY)', 4);
	like(does('keys', $keys->[0]), qr/^\s*4 .* wrong .* id /m, 'a bigserial');
	in_shards('DROP TABLE wrong', 4);
	return;
}

# The files of each step, of the tools whose files run --dir takes. Django and Prisma print that of the index, too.
my @steps = ('photos', 'slug fill_slug', 'slug_not_null', 'albums', 'index', 'place');
my %numbers = (
	django => [ map { "000${_}_" } 1 .. 7 ],
	prisma => [ map { "2026010${_}000000_" } 1 .. 7 ],
	flyway => [ map { "V${_}__" } 1, 1.1, 2, 3, 10, '', 11 ]);
my %files;
foreach my $tool (keys %numbers)
{
	my @left = @{ $numbers{$tool} };
	$files{$tool} = [ map { [ map { shift(@left) . $_ } split / / ] } @steps ];
}

sub provide
{
	my ($tool, $step) = @_;
	my @names = @{ $files{$tool}[$step] };
	return does($tool, join(' ', './print-sql', @names), '') if $tool ne 'flyway';
	does($tool, "cp release/$_.sql sql", '') foreach @names;
	return;
}

sub run_folder
{
	my ($tool) = @_;
	begin($tool);
	if ($tool eq 'flyway')
	{
		rename 'sql', 'release';
		mkdir 'sql';
	}
	my ($run, $fails, $fix, $clone, $squash) = blocks_of('By snowflake-shard run');
	provide($tool, 0);
	does('a table', @$run);
	insert_rows();
	provide($tool, 1);
	does('a column, and its values', @$run);
	insert_without_slug();
	provide($tool, 2);
	does('a step that fails in shard 7', @$fails);
	does('it continues', @$fix);
	provide($tool, 3);
	does('a clone', @$clone);
	my ($index) = blocks_of('An index without a lock');
	if ($tool eq 'flyway')
	{
		append_to_file('index.sql', 'CREATE INDEX CONCURRENTLY photos_user ON photos (user_id)');
	}
	else
	{
		provide($tool, 4);
		rename "sql/$files{$tool}[4][0].sql", 'index.sql';
	}
	does('an index', @$index);
	does('a squash', $page =~ /`(python3 manage.py squashmigrations [^`]+)`/) if $tool eq 'django';
	does('a squash', $squash->[0]);
	provide($tool, 5);
	does('a step after it', $run->[0], "21 shards done: 0-20\n");
	is(in_shards('SELECT snowflake_changes()', 20), in_shards('SELECT snowflake_changes()', 0), 'a clone has the record');
	check_shards();
	return;
}

subtest 'Django' => sub {
	plan skip_all => 'python3-django or python3-psycopg2 is not installed'
	  unless python_with('django', 'psycopg2');
	run_folder('django');
	check_keys();
	insert('albums_photos (album_id, photo_id) SELECT a.id, p.id FROM albums AS a, photos AS p WHERE user_id = 1', 3);
	is(in_shards('SELECT (id >> 10) & 8191 FROM albums_photos', 3), 3, 'a table of a ManyToManyField');
	append_to_file('photos/migrations/0008_python.py', q{
from django.db import migrations, models

class Migration(migrations.Migration):
    dependencies = [("photos", "0007_place")]
    operations = [migrations.AddField("Album", "year", models.IntegerField(null=True)),
                  migrations.RunPython(lambda apps, editor: None)]
});
	is((run('./print-sql', '0008_python'))[2], "0008_python: a step of it is Python\n",
		'RunPython is refused, also beside other steps');
	unlink 'photos/migrations/0008_python.py';
	my $models = does('makemigrations', 'python3 manage.py makemigrations --check --dry-run 2>&1 | tail -n 1');
	is($models, "No changes detected\n", 'the models are those of the migrations');
};

subtest 'Prisma' => sub { run_folder('prisma') };

subtest 'Flyway' => sub {
	run_folder('flyway');
	my ($repeatable) = blocks_of('Flyway');
	does('a repeatable file', @$repeatable) foreach 1, 2;
	is(in_shards('SELECT slug FROM newest WHERE slug = \'late\'', 7), 'late', 'its view');
};

# Alembic and Rails keep a record of their own in each shard.
sub run_natively
{
	my ($heading, $record, $again) = @_;
	my ($first, $fails, $last) = blocks_of($heading);
	my ($table, $column) = split /^/m, $first->[0];
	my (undef, $fix, $clone, $stamp, $squash) = split /^# .*\n/m, $last->[0];
	begin(lc $heading);
	does('a table', $table);
	insert_rows();
	does('a column, and its values', $column);
	insert_without_slug();
	does('a step that fails in shard 7', @$fails);
	is(in_shards($record, 6, 7, 8), "6\n3\n3", 'the shards before it are done');
	does('it continues', $fix);
	is(in_shards($record, 0 .. 19), one_each(6, 0 .. 19), 'all of them');
	does('a clone', $clone);
	is(in_shards($record, 20), '', 'its version table is empty');
	like(does('without a stamp', "$again || true"), qr/^shard 20: .*relation "photos" already exists/ms,
		'all would be made again');
	does('a stamp', $stamp);
	does('a squash', $squash);
	is(in_shards($record, 0 .. 20), one_each(7, 0 .. 20), 'a step after it');
	check_shards();
	return;
}

subtest 'Alembic' => sub {
	plan skip_all => 'python3-alembic or python3-psycopg2 is not installed'
	  unless python_with('alembic', 'psycopg2');
	run_natively('Alembic', 'SELECT version_num::int FROM alembic_version', 'PGUSER=app alembic -x shards=20 upgrade head');
	does('autogenerate', 'PGUSER=app alembic -x shards=0 revision --autogenerate --rev-id 0008 -m check');
	like(slurp_file(glob 'versions/0008*'), qr/upgrade\(\):\n(?: +#.*\n)* +pass$/m, 'the models are those of the migrations');
};

subtest 'Rails' => sub {
	plan skip_all => 'ruby-activerecord, ruby-pg or rake is not installed'
	  unless has_program('ruby')
	  && has_program('rake')
	  && (run('ruby', '-e', 'require "active_record"; gem "pg"'))[0] == 0;
	run_natively('Rails', 'SELECT substr(max(version), 8, 1) FROM schema_migrations HAVING count(*) > 0',
		"PGUSER=app rake 'shards:migrate[20]'");
};

chdir '/';
$node->stop;
done_testing();
