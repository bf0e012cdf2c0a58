# Helpers of the tests of snowflake-shard: they run the program, read its JSON, make shards and compare schemas.

package ShardTest;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

# From 19 on, libpq first asks for a protocol version that does not exist. PgBouncer 1.18 refuses that.
$ENV{PGMAXPROTOCOLVERSION} //= '3.0';

# Cluster.pm sets it in INIT, too. The sessions of the command have the name that it gives them.
INIT
{
	delete $ENV{PGAPPNAME};
}

our @EXPORT = qw(
  shard_program
  shard_program_if_built
  shard_command
  without_times
  run_shard
  shard_json
  background
  goes_on
  has_ended
  states
  dump_of
  make_template
  make_real_database
  make_real_shard
  psql_file
  start_command
  await_text
  end_command
  kill_command
);

# The program beside the server's; the test is skipped where it was not built.
sub shard_program
{
	my $program = shard_program_if_built();
	plan skip_all => 'snowflake-shard was not built: its headers are not here' unless defined $program;
	return $program;
}

sub shard_program_if_built
{
	my ($bindir) = qx(pg_config --bindir) =~ /(.*)/;
	my $program = "$bindir/snowflake-shard";
	return -x $program ? $program : undef;
}

# Arguments in which a server stands for its connection string.
sub shard_command
{
	return map { ref $_ ? $_->connstr('postgres') : $_ } @_;
}

# Without the time of day, which move and split write into a log.
sub without_times { my ($text) = @_; return $text =~ s/^\d\d:\d\d:\d\d (?=\S)//mgr }

# Exit code, standard output, standard error.
sub run_shard
{
	my ($program, @arguments) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run([ $program, shard_command(@arguments) ],
		'<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	return ($? >> 8, $out, without_times($err));
}

# Exit code, and what --json printed: an array, or a line for each shard.
sub shard_json
{
	my ($status, $out, $err) = run_shard(@_, '--json');
	my $json = eval { $out =~ /^\[/ ? decode_json($out) : [ map { decode_json($_) } split /\n/, $out ] };
	diag("no JSON: $out $err") unless defined $json;
	return ($status, $json // [], $err);
}

# Starts the program: h, and what it prints in out and err.
sub background
{
	my (@arguments) = @_;
	my %started = (out => '', err => '');
	$started{h} = IPC::Run::start([ shard_program_if_built(), shard_command(@arguments) ],
		'<', \undef, '>', \$started{out}, '2>', \$started{err}, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	return \%started;
}

# Takes in what the process has printed. False if it has ended: pump_nb() dies when it ends after a look at it.
sub goes_on
{
	my ($run) = @_;
	eval { $run->pump_nb; 1 } or $@ =~ /^process ended prematurely/ or die $@;
	return $run->pumpable;
}

# For a wait, which would never end then.
sub has_ended
{
	my ($started) = @_;
	return !goes_on($started->{h});
}

# Starts a verb, and waits until it has printed the text.
sub start_command
{
	my ($verb, $text, @arguments) = @_;
	my $command = { err => '' };
	local $SIG{INT} = 'DEFAULT';    # a shell that starts tests in the background has it ignored
	$command->{run} = IPC::Run::start([ shard_program_if_built(), $verb, shard_command(@arguments) ],
		'<', \undef, '>', '/dev/null', '2>', \$command->{err}, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	await_text($command, $text);
	return $command;
}

# Returns also when the command has ended.
sub await_text
{
	my ($command, $text) = @_;
	await("the command prints \"$text\"", sub { !goes_on($command->{run}) || $command->{err} =~ /$text/ });
	return;
}

# Its exit code.
sub end_command
{
	my ($command) = @_;
	$command->{run}->finish;
	$command->{err} = without_times($command->{err});
	return $command->{run}->result(0);
}

# kill -9 of a process that IPC::Run has started. Its kill_kill() sends SIGTERM first, which the command answers.
sub kill_command
{
	my ($run) = @_;
	$run->signal('KILL');
	eval { $run->finish };
	return;
}

# "made 5,6; there already 1": the rows of clone and run.
sub states
{
	my %states;
	push @{ $states{ $_->{state} } }, $_->{shard} foreach sort { $a->{shard} <=> $b->{shard} } @{ $_[0] };
	return join('; ', map { "$_ " . join(',', @{ $states{$_} }) } sort keys %states);
}

# The text of pg_dump -s, without comments, with another name and number in place of the schema's.
sub dump_of
{
	my ($node, $schema, %options) = @_;
	my $text = '';
	IPC::Run::run(
		[ 'pg_dump', '-s', '-n', "\"$schema\"", '-d', $node->connstr('postgres') ], '>', \$text)
	  or die 'pg_dump failed';
	$text =~ s/^(--|\\).*\n//mg;
	if (defined $options{name})
	{
		$text =~ s/\b\Q$schema\E\b/$options{name}/g;
		my $before = qr/snowflake_(?:next_ids?|settled_id)\(|shard => |next ID of shard |snowflake_shard\(id\) = /;
		$text =~ s/($before)$options{from}\b/$1$options{to}/g;
	}
	return $text;
}

# The shard of the documentation, insta0: four tables with an enum, a domain, a view, a trigger, a policy.
sub make_template
{
	my ($node) = @_;
	$node->safe_psql('postgres', q{
		CREATE ROLE app LOGIN;
		SELECT snowflake_create_shard(0, 'insta0');
		SET search_path = insta0, public;
		CREATE TYPE mood AS ENUM ('glad', 'sad');
		CREATE DOMAIN email AS text CHECK (VALUE ~ '@');
		CREATE TABLE users (id bigint PRIMARY KEY DEFAULT insta0.next_id(), name text, e email, m mood);
		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT insta0.next_id() CHECK (snowflake_shard(id) = 0),
			user_id bigint REFERENCES users ON DELETE CASCADE, caption text);
		CREATE INDEX ON photos (user_id, id);
		CREATE TABLE likes (photo_id bigint REFERENCES photos, user_id bigint REFERENCES users,
			PRIMARY KEY (photo_id, user_id));
		CREATE SEQUENCE log_id_seq;
		CREATE TABLE log (id bigint PRIMARY KEY DEFAULT snowflake_next_id(0, 'insta0.log_id_seq'), t text);
		CREATE VIEW counts AS SELECT name, count(*) FROM users JOIN photos ON user_id = users.id GROUP BY 1;
		CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN new; END$$;
		CREATE TRIGGER touch BEFORE UPDATE ON users FOR EACH ROW
			WHEN (old.name IS DISTINCT FROM new.name) EXECUTE FUNCTION touch();
		ALTER TABLE users ENABLE ROW LEVEL SECURITY;
		CREATE POLICY own ON users USING (name = current_user);
		GRANT SELECT ON photos TO app;
	});
	return;
}

# A file of test/real, with variables for psql.
sub psql_file
{
	my ($node, $database, $file, %variables) = @_;
	my @variables = map { ('-v', "$_=$variables{$_}") } sort keys %variables;
	my ($out, $err);
	IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', @variables, '-d', $node->connstr($database),
			'-f', "$FindBin::RealBin/../real/$file.sql" ], '<', \undef, '>', \$out, '2>', \$err)
	  or die "$file.sql: $err";
	return;
}

# What a shard of an application needs of other schemas; then one or more shards.
sub make_real_database
{
	my ($node, $database) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $database") if $database ne 'postgres';
	return psql_file($node, $database, 'globals');
}

sub make_real_shard
{
	my ($node, $database, $shard, $schema) = @_;
	return psql_file($node, $database, 'shard', shard => $shard, schema => $schema);
}

1;
