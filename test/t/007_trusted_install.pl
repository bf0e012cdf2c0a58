# The owner of a database, if not a superuser, can install the extension there, use it, and let
# others use it, and set the shard for the database. Nobody gets more rights by that: the limits take
# a superuser or GRANT SET, and other roles' sequences stay protected.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $node = new_server('trusted');
$node->safe_psql('postgres', q{
	CREATE ROLE owner LOGIN;
	CREATE ROLE other LOGIN;
	CREATE DATABASE owned OWNER owner;
	ALTER DATABASE owned SET snowflake.shard = 7;
});

sub as
{
	my ($role, $sql) = @_;
	return sqlstate($node, $sql, database => 'owned', params => [ '-U', $role ]);
}

my $insufficient_privilege = '42501';
my $default_call = 'SELECT snowflake_next_id()';

subtest 'a role with CREATE on the database installs' => sub {
	is(as('other', 'CREATE EXTENSION snowflake'),
		$insufficient_privilege, 'a role without CREATE on the database cannot install');
	is(as('owner', 'CREATE EXTENSION snowflake'), '', 'the owner of the database can');
};

subtest 'the owner uses what it has installed' => sub {
	is(as('owner', $default_call), '', 'the owner makes IDs from snowflake_id_seq');
	is($node->safe_psql('owned', 'SELECT snowflake_shard(snowflake_next_id())'),
		'7', 'of the shard that was set for the database');
	is(as('owner', q{SELECT snowflake_advance('snowflake_id_seq', 1)}), '', 'and advances it');
	is(as('owner', q{CREATE SEQUENCE s; SELECT snowflake_next_id(5, 's')}),
		'', 'the owner makes IDs from a sequence of their own');
	is(as('other', 'SELECT * FROM snowflake_decode(1)'), '', 'everybody can read IDs');
};

subtest 'other roles need privileges on the sequences' => sub {
	is(as('other', $default_call), $insufficient_privilege, 'nobody else draws from snowflake_id_seq');
	is(as('other', q{SELECT snowflake_next_ids(5, 's', 1)}),
		$insufficient_privilege, "nor from the owner's sequence");
	is(as('owner', 'GRANT USAGE ON SEQUENCE snowflake_id_seq, s TO other'), '', 'the owner can allow it');
	is(as('other', "$default_call; SELECT snowflake_next_ids(5, 's', 1)"), '', 'then they draw');
	is(as('other', q{SELECT snowflake_advance('snowflake_id_seq', 1)}),
		$insufficient_privilege, 'but advancing needs UPDATE');
};

subtest 'any role sets the shard for its sessions, and the owner for the database' => sub {
	# Any role sets the shard, for a session or for a database of its own. The server accepts ALTER
	# DATABASE ... SET from an ordinary role only in a session that has loaded the library.
	is(as('owner', "$default_call; ALTER DATABASE owned SET snowflake.shard = 5"),
		'', 'the owner sets the shard for the database');
	is($node->safe_psql('owned', 'SELECT snowflake_shard(snowflake_next_id())'),
		'5', 'a new session makes IDs of that shard');
	is(as('other', "SET snowflake.shard = 6; $default_call"), '', 'other roles set it for a session');
	is(as('other', "$default_call; ALTER DATABASE owned SET snowflake.shard = 6"),
		$insufficient_privilege, 'but not for the database');
};

subtest 'the limits take a superuser, or GRANT SET' => sub {
	foreach my $setting (qw(snowflake.max_lead snowflake.max_drift))
	{
		is(as('owner', "$default_call; SET $setting = 1"),
			$insufficient_privilege, "the owner cannot set $setting");
		is(as('owner', "$default_call; ALTER DATABASE owned SET $setting = 1"),
			$insufficient_privilege, "nor set $setting for the database");
	}
	$node->safe_psql('owned', 'GRANT SET ON PARAMETER snowflake.max_lead TO owner');
	is(as('owner', "$default_call; SET snowflake.max_lead = 1"),
		'', 'unless that was granted with GRANT SET');
};

subtest 'the owner drops the extension' => sub {
	is(as('other', 'DROP EXTENSION snowflake'), $insufficient_privilege, 'others cannot drop it');
	is(as('owner', 'DROP EXTENSION snowflake'), '', 'the owner can drop it');
};

subtest 'the role that installed is dropped' => sub {
	$node->safe_psql('postgres', 'CREATE ROLE gone LOGIN; GRANT CREATE ON DATABASE owned TO gone');
	is(as('gone', 'CREATE SCHEMA gone; CREATE EXTENSION snowflake SCHEMA gone'), '', 'it has installed the extension');
	is(as('gone', 'GRANT USAGE ON SEQUENCE gone.snowflake_id_seq TO other'), '', 'and lets others use its sequence');
	$node->safe_psql('owned', 'REASSIGN OWNED BY gone TO owner; DROP OWNED BY gone; DROP ROLE gone');
	my ($dump) = run_command([ 'pg_dump', '--schema-only', $node->connstr('owned') ]);
	like($dump, qr/^GRANT USAGE ON SEQUENCE gone\.snowflake_id_seq TO other;$/m, 'a dump has the grant to others');
	unlike($dump, qr/"\d+"/, 'and no role that is a number');
};

subtest 'the schema of the extension is renamed' => sub {
	my $name = q{a'b "%s" $$ \c};
	(my $quoted = $name) =~ s/"/""/g;
	is( as('owner', qq{
			DROP EXTENSION snowflake;
			CREATE SCHEMA "was $quoted";
			CREATE EXTENSION snowflake SCHEMA "was $quoted";
			ALTER SCHEMA "was $quoted" RENAME TO "$quoted"}),
		'', 'its owner renames it');
	is( as('owner', qq{
			SET search_path = "$quoted", public;
			SELECT snowflake_create_shard(15, 'insta15');
			CREATE TABLE insta15.words (id serial PRIMARY KEY, word text);
			INSERT INTO insta15.words (word) VALUES ('a');
			SELECT snowflake_attach('insta15.words');
			INSERT INTO insta15.words (word) VALUES ('b');
			CREATE TABLE insta15.likes (id bigint PRIMARY KEY DEFAULT insta15.next_id()) PARTITION BY RANGE (id);
			SELECT snowflake_create_partitions('insta15.likes', date_trunc('month', now()), now() + '1 month', '1 month');
			SELECT b.* FROM pg_inherits, snowflake_partition_bounds(inhrelid) AS b WHERE inhparent = 'insta15.likes'::regclass;
			INSERT INTO insta15.likes DEFAULT VALUES;
			CREATE SCHEMA insta16;
			CREATE SEQUENCE insta16.table_id_seq;
			CREATE FUNCTION insta16.next_id() RETURNS bigint LANGUAGE plpgsql AS \$\$ BEGIN RETURN
				(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23 | (16 << 10)
				| nextval('insta16.table_id_seq') % 1024; END \$\$;
			SELECT snowflake_adopt('insta16.next_id()', 16);
			SELECT insta16.next_id(), insta15.settled_id();
			SELECT 1 / (count(*) = 0)::integer FROM snowflake_check()}),
		'', 'shards, attach, adopt, partitions and the check go on');
};

$node->stop;
done_testing();
