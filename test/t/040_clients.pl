# Real clients keep what docs/clients.md says of them. Each program of examples/clients makes a table in a
# database of its own, and checks what it sees. Then the rows are looked at from here.
#
#   SNOWFLAKE_TEST_LONG      TypeORM and Drizzle, too, which npm takes long to install

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ClientTest;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $clients = "$FindBin::RealBin/../../examples/clients";
my $built = PostgreSQL::Test::Utils::tempdir();
my $jdbc_driver = '/usr/share/java/postgresql.jar';

# JDBC has no Unix sockets. Over TCP the server wants a password, because every user of the machine can
# reach it.
my $node = new_server('clients',
	init => { extra => [ '--auth-host=scram-sha-256', '--encoding=UTF8' ] },
	conf => "listen_addresses = '127.0.0.1'\n");
my $user = getpwuid($<);
my $password = join '', map { chr(97 + int(rand(26))) } 1 .. 20;
$node->safe_psql('postgres', qq{ALTER ROLE "$user" PASSWORD '$password'});
$ENV{PYTHONDONTWRITEBYTECODE} = 1;

# The program runs in a new database. Its first line says which version of the client ran.
sub run_client
{
	my ($name, $table, @command) = @_;
	my $database = $name =~ tr/-/_/r;
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	local %ENV = (%ENV,
		PGHOST => $node->host, PGPORT => $node->port, PGUSER => $user, PGDATABASE => $database);
	my ($status, $out, $err) = run(@command);
	is($status, 0, "$name: the program ends with 0") or return diag("$out$err");
	like($out, qr/^\Q$name\E \d\S*: /, "$name: the program says what it did");
	note($out);
	# One program installs the extension into a schema of its own.
	local $ENV{PGOPTIONS} = '-c search_path=public,snowflake';
	is($node->safe_psql($database,
		"SELECT count(*) > 35, count(*) = count(DISTINCT id), min(id) >= 1::bigint << 53 FROM $table"),
		't|t|t', "$name: every row has an ID of its own, and none has a position");
	is($node->safe_psql($database, 'SELECT * FROM snowflake_check()'), '', "$name: snowflake_check() finds nothing");
	return;
}

sub run_python
{
	my ($name, $table, $file, @modules) = @_;
	SKIP:
	{
		my $python = python_with(@modules) or skip join(' or ', @modules) . ' is not installed for python3', 1;
		run_client($name, $table, $python, "$clients/$file");
	}
	return;
}

sub run_node
{
	my ($name) = @_;
	SKIP:
	{
		my ($folder, $reason) = install_node($name, "$clients/$name");
		skip $reason, 1 unless defined $folder;
		run_client($name, 'photos', 'node', "$folder/photos.js");
	}
	return;
}

subtest 'programs in Python' => sub {
	run_python('psycopg', 'photos', 'psycopg/photos.py', 'psycopg');
	run_python('sqlalchemy', 'photos', 'sqlalchemy/photos.py', 'sqlalchemy', 'psycopg2');
	run_python('alembic', 'photos', 'alembic/run.py', 'alembic', 'sqlalchemy', 'psycopg2');
	run_python('django', 'photos_photo', 'django/run.py', 'django', 'psycopg2');
};

subtest 'a program with libpq' => sub {
	chomp(my $includedir = qx(pg_config --includedir));
	chomp(my $libdir = qx(pg_config --libdir));
	$node->command_ok([ 'c++', '-std=c++17', '-Wall', '-Wextra', '-Werror', "-I$includedir", "$clients/libpq/photos.cpp",
			'-o', "$built/photos", "-L$libdir", "-Wl,-rpath,$libdir", '-lpq' ],
		'libpq: the program is compiled without a warning');
	run_client('libpq', 'photos', "$built/photos");
};

subtest 'programs in Node.js' => sub {
	run_node($_) foreach 'node-postgres', 'knex', 'kysely', 'sequelize', 'mikro-orm';
	if ($ENV{SNOWFLAKE_TEST_LONG})
	{
		run_node($_) foreach 'typeorm', 'drizzle';
	}
};

subtest 'a program with JDBC' => sub {
	SKIP:
	{
		skip 'no JDK is installed', 1 unless has_program('javac');
		skip 'the JDBC driver is not installed', 1 unless -e $jdbc_driver;
		run_client('jdbc', 'photos', java_command(), '-cp', $jdbc_driver, "$clients/jdbc/Photos.java",
			'jdbc:postgresql://127.0.0.1:' . $node->port . "/jdbc?user=$user&password=$password");
	}
};

subtest 'the extension in a schema of its own' => sub {
	# A DEFAULT is bound to the function itself. Only a call by name needs the search_path, and USAGE on the schema.
	$node->safe_psql('postgres', 'CREATE DATABASE own_schema');
	$node->safe_psql('own_schema', q{
		CREATE SCHEMA snowflake;
		CREATE EXTENSION snowflake SCHEMA snowflake;
		CREATE TABLE photos (id bigserial PRIMARY KEY, caption text);
		SELECT snowflake.snowflake_attach('photos', shard => 0);
		CREATE ROLE writer;
		GRANT INSERT, SELECT ON photos TO writer;
		GRANT USAGE ON SEQUENCE photos_id_seq TO writer;
});
	is($node->safe_psql('own_schema',
		'SET ROLE writer; INSERT INTO photos DEFAULT VALUES RETURNING id >= 1::bigint << 53'), 't',
		'in a schema of its own: a DEFAULT needs neither the search_path nor a privilege on the schema');
	my (undef, undef, $by_name) =
		$node->psql('own_schema', "SET ROLE writer; SELECT snowflake.snowflake_next_id(0, 'photos_id_seq')");
	like($by_name, qr/permission denied for schema snowflake/,
		'in a schema of its own: a call by name needs USAGE on the schema');
	my (undef, undef, $moved) = $node->psql('own_schema', 'ALTER EXTENSION snowflake SET SCHEMA public');
	like($moved, qr/extension "snowflake" does not support SET SCHEMA/, 'an installed extension stays in its schema');
};

$node->stop;
done_testing();
