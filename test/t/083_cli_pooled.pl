# snowflake-shard and PgBouncer: no verb works through a pooler, because clients would share its session.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PoolerTest;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
plan skip_all => 'pgbouncer is not installed' unless pgbouncer_program();

my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\n";
my ($one, $two) = map { new_server($_, conf => $conf) } qw(one two);
$one->safe_psql('postgres', q{
	SELECT snowflake_create_shard(5, 'insta5');
	CREATE TABLE insta5.users (id bigint PRIMARY KEY DEFAULT insta5.next_id(), name text)});
my ($status, $err);

# The verbs that need no more than a server, and a move.
subtest 'a server behind a pooler is refused before its session is changed' => sub {
	foreach my $mode (qw(transaction session))
	{
		my $pooler = new_pooler(alias_to($one) =~ s/pool_size=4/pool_size=1 pool_mode=$mode/r);
		my $pooled = shard5_of($pooler);
		my $refused = qr/\Q$pooler->{dir}\E:6432\/shard5 is a connection pooler: other clients would get the session/;
		my $remedy = qr/HINT:  Give the address of the server itself\. .*SHOW DATABASES has host, port and database of shard5\./;
		foreach my $verb ([ 'list', $pooled ], [ 'query', $pooled, '--sql', 'SELECT 1' ],
			[ 'move', 'insta5', '--from', $pooled, '--to', $two ], [ 'move', 'insta5', '--from', $two, '--to', $pooled ])
		{
			($status, undef, $err) = run_shard($program, @$verb);
			is($status, 3, "$mode: $verb->[0]: exit code 3");
			like($err, qr/$refused.*\s$remedy/, "$mode: $verb->[0]: the pooler is named, and the remedy");
		}
		my ($path) = qx(psql -XAt -d "$pooled" -c 'SHOW search_path') =~ /(.*)/;
		is($path, '"$user", public', "$mode: the next client has its own search_path");
	}
};

$_->stop foreach $one, $two;
done_testing();
