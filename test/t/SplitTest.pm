# Helpers of the tests of snowflake-shard split: a server of several shards of test/real with its standby, PgBouncer
# with an alias for each shard.

package SplitTest;

use strict;
use warnings;

use Exporter 'import';
use PoolerTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;

our @EXPORT = qw(
  new_split_server
  new_standby
  new_split_pooler
  port_of_alias
  open_shards
);

my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_connections = 60\nwal_retrieve_retry_interval = 100ms\n"
  . "max_prepared_transactions = 5\nhot_standby_feedback = on\n";

# A server with shards 0 ... of test/real.
sub new_split_server
{
	my ($name, $shards, %options) = @_;
	my $node = new_server($name, conf => $conf . ($options{conf} // ''), init => { allows_streaming => 1 });
	make_real_database($node, 'postgres');
	make_real_shard($node, 'postgres', $_, "insta$_") foreach 0 .. $shards - 1;
	return $node;
}

my $backups = 0;

sub new_standby
{
	my ($primary, $name) = @_;
	my $backup = 'backup' . $backups++;
	$primary->backup($backup);
	my $standby = PostgreSQL::Test::Cluster->new($name);
	$standby->init_from_backup($primary, $backup, has_streaming => 1);
	$standby->start;
	# On a busy machine the first look at obstacles would come before.
	await("$name streams", sub { $primary->safe_psql('postgres',
		"SELECT state FROM pg_stat_replication WHERE application_name = '$name'") eq 'streaming' });
	return $standby;
}

# A PgBouncer with aliases shard0 ... to a server.
sub new_split_pooler
{
	my ($node, $shards) = @_;
	my $place = sprintf 'host=%s port=%s', $node->host, $node->port;
	return new_pooler(join '', map { "shard$_ = $place dbname=postgres pool_size=4\n" } 0 .. $shards - 1);
}

# "5432": the port to which the alias leads; "5432 paused".
sub port_of_alias
{
	my ($pooler, $shard) = @_;
	my ($line) = console($pooler, 'SHOW DATABASES') =~ /^(shard$shard\|.*)$/m;
	my @columns = split /\|/, $line;
	return $columns[2] . ($columns[-2] ? ' paused' : '');
}

# "0,1,2 at the first; 3 at the second": where map finds each shard. A server that does not answer has none.
sub open_shards
{
	my (@nodes) = @_;
	return join(' ', map {
			my ($status, $rows) = shard_json(shard_program_if_built(), 'map', $_);
			'(' . join(',', sort { $a <=> $b } map { $_->{shard} } @$rows) . ')'
	} @nodes);
}

1;
