# Servers whose OpenSSL is in FIPS mode: a move and a split work there, because no SQL of the command calls md5().
# Where OpenSSL has no FIPS provider, md5() fails as it does there. An error of the command's own SQL says what was
# done, and has no SQL. A split tries all that it does after the promotion before it begins.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use SplitTest;
use Test::More;

my $program = shard_program();
my ($status, $out, $err, $rows);

# The provider's self-test writes its part of the configuration. Servers and the command take it from the environment.
sub has_provider
{
	my $folder = PostgreSQL::Test::Utils::tempdir();
	$ENV{OPENSSL_MODULES} //= qx(openssl version -m) =~ /"(.*)"/ ? $1 : '';
	my $module = "$ENV{OPENSSL_MODULES}/fips.so";
	return 0 unless -e $module;
	IPC::Run::run([ 'openssl', 'fipsinstall', '-quiet', '-module', $module, '-out', "$folder/module.cnf" ]) or return 0;
	append_to_file("$folder/openssl.cnf", <<"CONF");
openssl_conf = all
.include $folder/module.cnf
[all]
providers = providers
alg_section = algorithms
[providers]
fips = fips_sect
base = base
[base]
activate = 1
[algorithms]
default_properties = fips=yes
CONF
	$ENV{OPENSSL_CONF} = "$folder/openssl.cnf";
	return 1;
}

# Puts a function that fails, as one of OpenSSL does, in the place of one of PostgreSQL, which gets another name.
sub break_digest
{
	my ($node, $name, $argument, $result, $problem) = @_;
	return $node->safe_psql('postgres', "ALTER FUNCTION pg_catalog.$name($argument) RENAME TO whole;
		CREATE FUNCTION pg_catalog.$name($argument) RETURNS $result LANGUAGE plpgsql AS
		'BEGIN RAISE ''could not compute $problem hash: unsupported''; END'");
}

my $is_real = has_provider();
note($is_real ? 'with the FIPS provider of OpenSSL' : 'without a FIPS provider: md5() is made to fail');
my $conf = "wal_level = logical\nwal_retrieve_retry_interval = 100ms\n";
my ($one, $three) = map { new_server($_, conf => $conf, init => { allows_streaming => 1 }) } 'one', 'three';
make_template($one);
$three->safe_psql('postgres', 'CREATE ROLE app');
if (!$is_real) { break_digest($_, qw(md5 text text MD5)) foreach $one, $three }
like(($one->psql('postgres', q{SELECT md5('')}))[2], qr/could not compute MD5 hash: unsupported/, 'md5() fails');
run_shard($program, 'clone', $one, '--template', 'insta0', '--shards', '1-3', '--schema', 'insta{}');
$one->safe_psql('postgres', "INSERT INTO insta$_.users (name) SELECT 'u' FROM generate_series(1, 10)") foreach 0 .. 3;

subtest 'a move' => sub {
	my @move = ('move', 'insta1', '--from', $one, '--to', $three);
	($status, $out, $err) = run_shard($program, @move, '--dry-run');
	is("$status $out", '0 ', 'the dry run finds no obstacle') or diag($err);
	($status, $out, $err) = run_shard($program, @move, '--reversible');
	is($status, 0, 'the shard moves') or diag($err);
	is((run_shard($program, @move, '--undo'))[0], 0, 'and back');
	is($one->safe_psql('postgres', 'SELECT count(*) FROM insta1.users'), '10', 'with its rows');
};

my $two = new_standby($one, 'two');
my @split = ('split', '--from', $one, '--standby', $two, '--shards', '2-3');

# SQL of the command is broken by a function that it calls.
subtest 'an error of SQL of the command' => sub {
	break_digest($one, qw(sha256 bytea bytea SHA256));
	($status, $out, $err) = run_shard($program, 'move', 'insta0', '--from', $one, '--to', $three, '--dry-run');
	my $problem = qr/while the fingerprint of the definition was computed: ERROR:  could not compute SHA256 hash/;
	like("$status $err", qr/^3 (?:.* belongs to superuser .*\n)?snowflake-shard: $problem: unsupported\n/, 'move says what was done');
	unlike($err, qr/concat_ws|SELECT|string_agg/, 'and has no SQL');
	cmp_ok($err =~ tr/\n//, '<', 8, 'in a few lines');
	$one->wait_for_catchup($two);
	($status, $out, $err) = run_shard($program, @split, '--dry-run');
	like("$status $out", qr/^1 (?:.*\n)*\S+:${\$one->port}\/postgres: $problem/, 'split finds it before it begins')
	  or diag($err);
	unlike($out, qr/concat_ws|SELECT|string_agg/, 'without SQL');
	$one->safe_psql('postgres', 'DROP FUNCTION sha256(bytea); ALTER FUNCTION whole(bytea) RENAME TO sha256');
};

subtest 'a role that could not open the shards after the promotion' => sub {
	$one->safe_psql('postgres', q{CREATE ROLE reader LOGIN REPLICATION;
		GRANT pg_read_all_data, pg_read_all_stats TO reader;
		GRANT ALTER SYSTEM ON PARAMETER default_transaction_read_only TO reader;
		GRANT EXECUTE ON FUNCTION pg_promote(boolean, integer), pg_reload_conf() TO reader});
	$one->wait_for_catchup($two);
	my @as_reader = @split;
	$as_reader[4] = $two->connstr('postgres') . ' user=reader';
	($status, $out, $err) = run_shard($program, @as_reader, '--dry-run');
	is($status, 1, 'an obstacle') or diag($err);
	my $role = qr/role reader has not the rights of role (\S+), of --from.*\n.*Connect to the standby as role \1, too\./;
	like($out, qr/:${\$two->port}\/postgres: $role/, 'is its role');
};

subtest 'a split' => sub {
	($status, $out, $err) = run_shard($program, @split, '--dry-run');
	is("$status $out", '0 ', 'the dry run finds no obstacle') or diag($err);
	is($one->safe_psql('postgres', q{SELECT count(*) FROM pg_namespace WHERE nspname = 'snowflake_split'}), '0',
		'and leaves nothing');
	($status, $out, $err) = run_shard($program, @split);
	is($status, 0, 'the server is split') or diag("$out$err");
	is(open_shards($one, $two), '(0,1) (2,3)', 'and each half is open');
	is((run_shard($program, @split, '--complete'))[0], 0, '--complete');
	is((run_shard($program, 'verify', $one, $two, $three))[0], 0, 'verify finds nothing');
};

done_testing();
