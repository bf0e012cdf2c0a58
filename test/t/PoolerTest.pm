# PgBouncers of a test, each in a folder of its own.

package PoolerTest;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Utils;
use SnowflakeTest;

our @EXPORT = qw(
  pgbouncer_program
  alias_to
  new_pooler
  start_pooler
  kill_pooler
  console
  alias_of
  led_to
  shard5_of
);

my $user = getpwuid($<);
my @running;

# Nothing, where it is not installed.
sub pgbouncer_program
{
	my ($program) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
	return $program;
}

sub alias_to
{
	my ($node, $host) = @_;
	my $place = sprintf('host=%s port=%s dbname=postgres', $host // $node->host, $node->port);
	return "shard5 = $place user=$user connect_query='SELECT ''host=x port=1''' pool_size=4\n";
}

# A PgBouncer in a folder of its own, whose pgbouncer.ini includes databases.ini.
sub new_pooler
{
	my ($aliases) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir_short();
	my $pooler = { dir => $dir, file => "$dir/databases.ini", main => "$dir/pgbouncer.ini" };
	$pooler->{dsn} = "host=$dir port=6432 dbname=pgbouncer password=hushed user=$user";
	append_to_file($pooler->{file}, "; kept\n[databases]\nshard55 = host=/x\n$aliases");
	append_to_file("$dir/users", qq("$user" ""\n"stats" ""\n));
	append_to_file($pooler->{main}, join("\n", "%include $pooler->{file}", '[pgbouncer]', 'listen_addr =',
			"unix_socket_dir = $dir", 'listen_port = 6432', 'auth_type = trust', "auth_file = $dir/users",
			'pool_mode = transaction', 'server_login_retry = 1', "admin_users = $user", 'stats_users = stats',
			"pidfile = $dir/pid", "logfile = $dir/log", ''));
	start_pooler($pooler);
	return $pooler;
}

sub start_pooler
{
	my ($pooler) = @_;
	$pooler->{run} =
		IPC::Run::start([ pgbouncer_program(), '-q', $pooler->{main} ], '<', \undef, '>', '/dev/null', '2>', '/dev/null');
	push @running, $pooler->{run};
	await('PgBouncer listens', sub { eval { console($pooler, 'SHOW VERSION') } });
	return;
}

sub kill_pooler
{
	my ($pooler) = @_;
	$pooler->{run}->kill_kill(grace => 0);
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
	my @psql = ('psql', '-XAtq', '-d', $pooler->{dsn}, '-c', $sql);
	IPC::Run::run(\@psql, '>', \$answer, '2>', \$problem) or die "$sql: $problem";
	return $answer;
}

# "/tmp/x|5432|postgres|0": where the alias leads, and whether it is paused.
sub alias_of
{
	my ($pooler) = @_;
	my ($line) = console($pooler, 'SHOW DATABASES') =~ /^(shard5\|.*)$/m;
	return join('|', (split /\|/, $line)[ 1, 2, 3, -2 ]);
}

sub led_to
{
	my ($node, $is_paused) = @_;
	return join('|', $node->host, $node->port, 'postgres', $is_paused // 0);
}

sub shard5_of
{
	my ($pooler) = @_;
	return "host=$pooler->{dir} port=6432 dbname=shard5 user=$user";
}

1;
