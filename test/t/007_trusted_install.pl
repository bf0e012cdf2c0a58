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

$node->stop;
done_testing();
