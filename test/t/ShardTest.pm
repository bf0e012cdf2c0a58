# Helpers of the tests of snowflake-shard: they run the program, read its JSON, compare schemas, and
# write into a shard with a journal of what was acknowledged.

package ShardTest;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use IPC::Open3;
use POSIX ();
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(
  shard_program
  shard_program_if_built
  shard_command
  run_shard
  shard_json
  states
  dump_of
  make_template
  make_real_database
  make_real_shard
  psql_file
  start_writers
  stop_writers
  lost_writes
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

# Exit code, standard output, standard error.
sub run_shard
{
	my ($program, @arguments) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run([ $program, shard_command(@arguments) ],
		'<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	return ($? >> 8, $out, $err);
}

# Exit code, and what --json printed.
sub shard_json
{
	my ($status, $out, $err) = run_shard(@_, '--json');
	my $json = eval { decode_json($out) };
	diag("no JSON: $out $err") unless defined $json;
	return ($status, $json // [], $err);
}

# "made 5,6; there already 1": the rows of clone and run.
sub states
{
	my %states;
	push @{ $states{ $_->{state} } }, $_->{shard} foreach @{ $_[0] };
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
		$text =~ s/(snowflake_next_ids?\(|shard => |next ID of shard |snowflake_shard\(id\) = )$options{from}\b/$1$options{to}/g;
	}
	return $text;
}

# The shard of the documentation, insta0: four tables with an enum, a domain, a view, a trigger, a policy.
sub make_template
{
	my ($node) = @_;
	$node->safe_psql('postgres', q{
		CREATE ROLE app;
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
		ALTER TABLE log OWNER TO app;
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

# Starts processes that insert, update and delete rows in the tables, which have the columns id and v,
# one statement a transaction. Each goes to the next connection string when a server is lost or says
# that the shard is not there.
sub start_writers
{
	my ($count, $tables, @connstrs) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $writers = { stop => "$dir/stop" };
	foreach my $number (1 .. $count)
	{
		my $journal = "$dir/journal$number";
		my $pid = fork() // die "fork: $!";
		if ($pid == 0)
		{
			write_rows($number, $journal, $writers->{stop}, $tables, @connstrs);
			POSIX::_exit(0);
		}
		push @{ $writers->{pids} }, $pid;
		push @{ $writers->{journals} }, $journal;
	}
	return $writers;
}

# A line of the journal: what was acknowledged (I, U, D), what may have been done or not (?), a row
# that was acknowledged and not found (L), an error that no move should cause (E).
sub write_rows
{
	my ($number, $journal, $stop, $tables, @connstrs) = @_;
	open(my $log, '>', $journal) or die "$journal: $!";
	$log->autoflush(1);
	local $SIG{PIPE} = 'IGNORE';
	my ($place, $session, %mine) = (0, undef);
	srand($number);
	my $parent = getppid();
	for (my $n = 0; !-e $stop && getppid() == $parent; $n++)
	{
		until (-e $stop || getppid() != $parent || $session)
		{
			my $new = {};
			$new->{pid} = open3($new->{in}, $new->{out}, undef,
				'psql', '-XAtq', '-v', 'VERBOSITY=sqlstate', '-d', $connstrs[$place]);
			my ($answer) = ask($new, '');
			if (defined $answer) { $session = $new; last }
			close_session($new);
			$place = ($place + 1) % @connstrs;
			usleep(20_000);
		}
		last unless $session;
		my $table = $tables->[ rand @$tables ];
		my @ids = keys %{ $mine{$table} };
		my $id = @ids && rand() < 0.5 ? $ids[ rand @ids ] : undef;
		my $kind = !defined $id ? 'I' : rand() < 0.7 ? 'U' : 'D';
		my ($answer, $error) = ask($session,
			$kind eq 'I' ? "INSERT INTO $table (v) VALUES ('$number.$n') RETURNING id;"
			: $kind eq 'U' ? "UPDATE $table SET v = '$number.$n' WHERE id = $id RETURNING id;"
			: "DELETE FROM $table WHERE id = $id RETURNING id;");
		if (!defined $answer)
		{
			print $log join(' ', '?', $table, $id // '-', "$number.$n"), "\n";
			delete $mine{$table}{$id} if defined $id;
		}
		elsif ($error)
		{
			print $log "E $error\n" unless $error =~ /25006|42P01/;    # not the server, or no such table there
		}
		elsif ($answer eq '')
		{
			print $log "L $table $id\n";
			delete $mine{$table}{$id};
		}
		else
		{
			print $log join(' ', $kind, $table, $answer, "$number.$n"), "\n";
			$kind eq 'D' ? delete $mine{$table}{$answer} : ($mine{$table}{$answer} = 1);
		}
		next if defined $answer && !$error;
		close_session($session);
		$session = undef;
		$place = ($place + 1) % @connstrs;
		usleep(5_000);
	}
	close_session($session) if $session;
	return;
}

# What a statement returns, and its error; undef if the session was lost before it ended.
sub ask
{
	my ($session, $sql) = @_;
	my ($answer, $error) = ('', undef);
	print { $session->{in} } "$sql\n\\echo done\n" or return;
	$session->{in}->flush or return;
	while (defined(my $line = readline $session->{out}))
	{
		chomp $line;
		return ($answer, $error) if $line eq 'done';
		if ($line =~ /^ERROR:/) { $error = $line }
		elsif ($line =~ /^\d+$/) { $answer = $line }
		else { return }    # FATAL, WARNING: the session ends
	}
	return;
}

sub close_session
{
	my ($session) = @_;
	close $session->{in};
	close $session->{out};
	waitpid $session->{pid}, 0;
	return;
}

# The lines of all journals.
sub stop_writers
{
	my ($writers) = @_;
	append_to_file($writers->{stop}, '');
	waitpid $_, 0 foreach @{ $writers->{pids} };
	return map { [split] } map { split /\n/, slurp_file($_) } @{ $writers->{journals} };
}

# What the journal says and the server has not, and IDs that came twice. (Two sequences of a shard may
# make the same ID.)
sub lost_writes
{
	my ($node, $database, @journal) = @_;
	my (%rows, %doubtful, %inserted, @faults);
	foreach my $line (@journal)
	{
		my ($kind, $table, $id, $v) = @$line;
		push @faults, "@$line" if $kind eq 'E' || $kind eq 'L';
		push @faults, "$table $id twice" if $kind eq 'I' && $inserted{"$table $id"}++;
		$doubtful{"$table $id"} = 1 if $kind eq '?';
		$rows{"$table $id"} = $v if $kind eq 'I' || $kind eq 'U';
		$rows{"$table $id"} = undef if $kind eq 'D';
	}
	my %found;
	foreach my $table (keys %{ { map { ($_->[1] => 1) } grep { $_->[0] eq 'I' } @journal } })
	{
		foreach my $row (split /\n/, $node->safe_psql($database, "SELECT id, v FROM $table"))
		{
			my ($id, $v) = split /\|/, $row;
			push @faults, "$table $id is there twice" if exists $found{"$table $id"};
			$found{"$table $id"} = $v;
		}
	}
	foreach my $key (grep { !$doubtful{$_} } keys %rows)
	{
		my ($is, $is_to_be) = ($found{$key} // 'no row', $rows{$key} // 'no row');
		push @faults, "$key is $is, not $is_to_be" if $is ne $is_to_be;
	}
	return @faults;
}

1;
