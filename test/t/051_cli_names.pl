# A connection string that cannot be read is an error that repeats nothing of it.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $node = new_server('one', conf => "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\n");
my ($status, $out, $err, $rows);

# psql sends a statement from its standard input, so no name is an argument.
sub sql
{
	my ($dsn, $sql) = @_;
	my ($answer, $problem);
	IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $dsn ], '<', \$sql, '>', \$answer, '2>', \$problem) or die "$sql: $problem";
	return $answer =~ s/\n\z//r;
}

# --- passwords -------------------------------------------------------------------------------------

# Each has SECRET, or both halves of it.
my @strings = (
	'postgresql://u:SEC%RET@h/db', 'postgresql://u:SEC@RET@h/db', 'postgresql://u:SEC/RET@h/db', 'postgresql://u:SEC/RET', 'postgresql://u:SECRET',
	'postgres://u:x@h:SECRET/db', 'postgresql://u:x@[SECRET/db', 'postgresql:/u:SECRET@h/db', 'postgre://u:SECRET@h/db?sslmode=x',
	'postgresql://u:x@h/db?SECRET', 'postgresql://u:x@h/db?password=SEC%zzRET', 'host=h password=x SECRET', 'host=h password=SEC RET=x',
	q{host=h password='SECRET}, 'u:SECRET@h', 'SECRET@h');
my $file = "$dir/servers";
my %places = (
	(map { my $verb = $_; ($verb => sub { $verb, @_ }) } qw(list verify map plan)),
	'query'        => sub { 'query', @_, '--sql', 'SELECT 1' },
	'run'          => sub { 'run', @_, '--sql', 'SELECT 1' },
	'move --from'  => sub { 'move', 'x', '--from', @_, '--to', $node },
	'move --to'    => sub { 'move', 'x', '--from', $node, '--to', @_ },
	'--source'     => sub { 'move', 'x', '--from', $node, '--to', $node, '--source', @_ },
	'--target'     => sub { 'move', 'x', '--from', $node, '--to', $node, '--target', @_ },
	'--pgbouncer'  => sub { 'move', 'x', '--from', $node, '--to', $node, '--config', $file, '--pgbouncer', @_ },
	'split --from' => sub { 'split', '--shards', '5', '--standby', $node, '--from', @_ },
	'--standby'    => sub { 'split', '--shards', '5', '--from', $node, '--standby', @_ },
	'clone --to'   => sub { 'clone', $node, '--template', 'x', '--schema', 'x{}', '--shards', '9', '--to', @_ },
	'--drain'      => sub { 'plan', $node, '--drain', @_ },
	'a verb'       => sub { @_ },
	'too many'     => sub { 'move', 'x', @_, '--from', $node, '--to', $node },
	'an option'    => sub { 'move', 'x', "--frm@_", '--to', $node },
	'a number'     => sub { 'clone', $node, '--template', 'x', '--schema', 'x{}', '--shards', '9', '--jobs', @_ },
	'a file'       => sub { write_file($file, "\n# servers\n@_\n"); 'list', "\@$file" },
	'environment'  => sub { write_file($file, "\n@_\n"); 'list' },
	'a plan'       => sub { write_file($file, encode_json([ { shard => 5, schema => 'x', from => 'dbname=x', to => $_[0] } ])); 'move', '--plan', $file });

sub write_file
{
	my ($name, $text) = @_;
	unlink $name;
	append_to_file($name, $text);
	return;
}

foreach my $place (sort keys %places)
{
	my @wrong;
	# One function reads them all, so other places get one of each kind.
	foreach my $string ($place eq 'list' || $place eq 'a verb' ? @strings : @strings[ 0, 2, 4, 11, -1 ])
	{
		my @arguments = $places{$place}->($string);
		local $ENV{SNOWFLAKE_SERVERS} = $file;
		($status, $out, $err) = run_shard($program, @arguments);
		push @wrong, "$string: $status $out$err" if $status != 2 || "$out$err" =~ /SEC|ECR|CRE|RET/;
	}
	is(join("\n", @wrong), '', "$place: a string that cannot be read is not repeated");
}
write_file($file, "dbname=x\n\nhost=h x\n");
like((run_shard($program, 'list', "\@$file"))[2], qr/^snowflake-shard: file \Q$file\E, line 3: a connection string cannot be read: missing "\.\.\."/, 'its place is told: a line of a file');
like((run_shard($program, 'list', 'dbname=x', 'host=h x'))[2], qr/^snowflake-shard: DSN 2: a connection/, 'an argument');
like((run_shard($program, 'move', 'x', '--from', 'dbname=x', '--to', 'u@h'))[2], qr/^snowflake-shard: --to: .*\nHINT:  .* %40 for @/, 'an option');
is(sql("postgresql:///postgres?host=${\$node->host}&port=${\$node->port}&application_name=a\@b", 'SELECT 1'), 1, 'an @ behind the database');
is((run_shard($program, 'list', "postgresql:///postgres?host=${\$node->host}&port=${\$node->port}&application_name=a\@b"))[0], 0, 'can be read');

$node->stop;
done_testing();
