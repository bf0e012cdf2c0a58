# Helpers of the tests of snowflake-shard split: a server of several shards of test/real with its standby, PgBouncer with
# an alias for each shard, and the command.

package SplitTest;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

our @EXPORT = qw(
  new_split_server
  new_standby
  pgbouncer
  new_pooler
  start_pooler
  console
  alias_of
  start_split
  await_text
  end_split
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
	return $standby;
}

# The program; the test is skipped without it.
sub pgbouncer
{
	my ($program) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
	plan skip_all => 'pgbouncer is not installed' unless $program;
	return $program;
}

my @running;

# A PgBouncer with aliases shard0 ... to a server.
sub new_pooler
{
	my ($node, $shards) = @_;
	my $user = getpwuid($<);
	my $dir = PostgreSQL::Test::Utils::tempdir_short();
	my $pooler = { dir => $dir, file => "$dir/databases.ini", main => "$dir/pgbouncer.ini" };
	$pooler->{dsn} = "host=$dir port=6432 dbname=pgbouncer user=$user";
	append_to_file($pooler->{file}, join("\n", '[databases]',
			(map { sprintf 'shard%d = host=%s port=%s dbname=postgres pool_size=4', $_, $node->host, $node->port } 0 .. $shards - 1), ''));
	append_to_file("$dir/users", qq("$user" ""\n));
	append_to_file($pooler->{main}, join("\n", "%include $pooler->{file}", '[pgbouncer]', 'listen_addr =',
			"unix_socket_dir = $dir", 'listen_port = 6432', 'auth_type = trust', "auth_file = $dir/users",
			'pool_mode = transaction', 'server_login_retry = 1', "admin_users = $user", "pidfile = $dir/pid",
			"logfile = $dir/log", ''));
	start_pooler($pooler);
	return $pooler;
}

sub start_pooler
{
	my ($pooler) = @_;
	unlink "$pooler->{dir}/.s.PGSQL.6432", "$pooler->{dir}/pid";
	$pooler->{run} = IPC::Run::start([ pgbouncer(), '-q', $pooler->{main} ], '<', \undef, '>', '/dev/null', '2>', '/dev/null');
	push @running, $pooler->{run};
	await('PgBouncer listens', sub { eval { console($pooler, 'SHOW VERSION') } });
	return;
}

# Also when the test dies.
END
{
	my $status = $?;
	$_->kill_kill(grace => 0) foreach grep { eval { $_->pumpable } } @running;
	$? = $status;
}

sub console
{
	my ($pooler, $sql) = @_;
	my ($answer, $problem);
	IPC::Run::run([ 'psql', '-XAtq', '-d', $pooler->{dsn}, '-c', $sql ], '>', \$answer, '2>', \$problem)
	  or die "$sql: $problem";
	return $answer;
}

# "5432": the port to which the alias leads; "5432 paused".
sub alias_of
{
	my ($pooler, $shard) = @_;
	my ($line) = console($pooler, 'SHOW DATABASES') =~ /^(shard$shard\|.*)$/m;
	my @columns = split /\|/, $line;
	return $columns[2] . ($columns[-2] ? ' paused' : '');
}

# Starts the command, and waits until it has printed the text.
sub start_split
{
	my ($text, @arguments) = @_;
	my $split = { err => '' };
	local $SIG{INT} = 'DEFAULT';    # a shell that starts tests in the background has it ignored
	$split->{run} = IPC::Run::start([ shard_program_if_built(), 'split', shard_command(@arguments) ],
		'<', \undef, '>', '/dev/null', '2>', \$split->{err});
	await_text($split, $text);
	return $split;
}

sub await_text
{
	my ($split, $text) = @_;
	await("the split prints \"$text\"", sub { $split->{run}->pump_nb; $split->{err} =~ /$text/ || !$split->{run}->pumpable });
	return;
}

# Its exit code.
sub end_split
{
	my ($split) = @_;
	$split->{run}->finish;
	return $split->{run}->result(0);
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
