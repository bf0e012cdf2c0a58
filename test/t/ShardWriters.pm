# Clients that write to a shard of test/real while it is moved or its servers are killed: transactions over
# several tables, with a journal of each that was acknowledged; and the comparison of the journal with the rows.

package ShardWriters;

use strict;
use warnings;

use Digest::MD5 'md5_hex';
use Exporter 'import';
use IPC::Open3;
use IPC::Run;
use JSON::PP;
use POSIX ();
use PostgreSQL::Test::Utils;
use ShardTest;
use Test::More;
use Time::HiRes qw(usleep);

my $writers_started = 0;

# The longest waits of a writer, in microseconds: after a transaction, and between two statements of one. Most of the
# time of a test that moves shards goes into its writers, so those of a short test begin fewer transactions. These are
# longer, so that a cutover meets as many of them.
my ($pause, $pause_within) = $ENV{SNOWFLAKE_TEST_LONG} ? (20_000, 0) : (200_000, 100_000);

our @EXPORT = qw(
  make_written_shard
  start_writers
  stop_writers
  lost_writes
);

# A shard of an application, and the kinds of tables that a move treats in other ways. It comes by a dump and a restore,
# because PostgreSQL writes some expressions otherwise after one.
sub make_written_shard
{
	my ($node, $scratch) = @_;
	make_real_database($_, 'postgres') foreach $node, $scratch;
	make_real_shard($scratch, 'postgres', 5, 'insta5');
	psql_file($scratch, 'postgres', 'rows', schema => 'insta5', n => 200);
	$scratch->safe_psql('postgres', q{
		SET ROLE app; SET search_path = insta5, public;
		CREATE SEQUENCE log_id_seq;
		CREATE TABLE log (id bigint PRIMARY KEY DEFAULT snowflake_next_id(5, 'insta5.log_id_seq'), v text CHECK (v !~ '\s'));
		CREATE TABLE part (id bigint DEFAULT insta5.next_id() PRIMARY KEY, v text) PARTITION BY HASH (id);
		CREATE TABLE part0 PARTITION OF part FOR VALUES WITH (MODULUS 2, REMAINDER 0);
		CREATE TABLE part1 PARTITION OF part FOR VALUES WITH (MODULUS 2, REMAINDER 1);
		CREATE TABLE counted (n integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text);
		CREATE TABLE keyless (v text);
		ALTER TABLE keyless REPLICA IDENTITY FULL;
		CREATE TABLE empty (id bigint PRIMARY KEY DEFAULT insta5.next_id());
		CREATE SEQUENCE unused;
		CREATE SEQUENCE down INCREMENT -1 CYCLE;
		SELECT nextval('insta5.down'), nextval('insta5.down');
		CREATE MATERIALIZED VIEW m AS SELECT count(*) FROM counted;
		INSERT INTO counted (v) VALUES ('a'), ('b');
		INSERT INTO keyless SELECT 'k' FROM generate_series(1, 10);
	});
	IPC::Run::run([ 'pg_dump', '-n', 'insta5', '-d', $scratch->connstr('postgres') ],
		'|', [ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres') ], '>', \my $ignored)
			or die 'pg_dump or psql failed';
	$scratch->safe_psql('postgres', 'DROP SCHEMA insta5 CASCADE');
	return;
}

# Starts processes that write to the schema, and to two more tables in it, which have the columns id and v. Each goes to
# the next connection string when a server is lost or says that the shard is not there. With one string, which leads to
# the open shard always, they also look for what they wrote last.
sub start_writers
{
	my ($count, $schema, $tables, @connstrs) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $writers = { stop => "$dir/stop" };
	foreach (1 .. $count)
	{
		my $number = ++$writers_started;    # in the tokens of all writers
		my $journal = "$dir/journal$number";
		my $pid = fork() // die "fork: $!";
		if ($pid == 0)
		{
			write_rows({ number => $number, schema => $schema, tables => $tables, users => {} }, $journal, $writers->{stop},
				@connstrs);
			POSIX::_exit(0);
		}
		push @{ $writers->{pids} }, $pid;
		push @{ $writers->{journals} }, $journal;
	}
	return $writers;
}

# The entries of all journals, in the order of each.
sub stop_writers
{
	my ($writers) = @_;
	append_to_file($writers->{stop}, '');
	waitpid $_, 0 foreach @{ $writers->{pids} };
	return map { decode_json($_) } map { split /\n/, slurp_file($_) } @{ $writers->{journals} };
}

# A line of the journal is a transaction: rows that it has made, changed (a value) or deleted (null); "doubt",
# if the session was lost before its end; "error", one that no move should cause.
sub write_rows
{
	my ($writer, $journal, $stop, @connstrs) = @_;
	open(my $log, '>', $journal) or die "$journal: $!";
	$log->autoflush(1);
	local $SIG{PIPE} = 'IGNORE';
	my ($place, $session) = (0, undef);
	$writer->{reads} = @connstrs == 1;
	srand($writer->{number});
	my $parent = getppid();
	my $goes_on = sub { !-e $stop && getppid() == $parent };
	for (my $n = 0; $goes_on->(); $n++)
	{
		while ($goes_on->() && !$session)
		{
			$session = open_session($connstrs[$place]) and last;
			$place = ($place + 1) % @connstrs;
			usleep(20_000);
		}
		last unless $session;
		my $entry = transaction($writer, $n);
		my ($values, $error) = ask($session, @{ delete $entry->{sql} });
		my $after = delete $entry->{after};
		if (!defined $values) { $entry->{doubt} = JSON::PP::true; delete $writer->{users}{ $entry->{user} // '' } }
		elsif ($error) { $entry = { token => $entry->{token}, error => $error } }
		else { $after->($entry, @$values) }
		# No errors: a server that is not the shard's, has no such shard, or has a copy without indexes yet.
		print $log encode_json($entry), "\n" unless $error && $error =~ /25006|42P01|42P10|3F000/;
		usleep(rand($pause));
		next if defined $values && !$error;
		close_session($session);
		$session = undef;
		$place = ($place + 1) % @connstrs;
		usleep(5_000);
	}
	close_session($session) if $session;
	return;
}

# A transaction of some kind: user, rows (of those known before), sql, and after() for what it returned.
# The statements after the first leave counts of rows, which must be 1, in n1 and n2.
sub transaction
{
	my ($writer, $n) = @_;
	my $token = "w$writer->{number}_$n";
	return look($writer, $token) if $writer->{reads} && $writer->{last} && rand() < 0.3;
	my @users = sort keys %{ $writer->{users} };
	return new_user($writer, $token) if !@users || rand() < 0.1;
	return delete_user($writer, $token, $users[0]) if @users > 30;    # else the copies of a long test grow
	my $user = $users[ rand @users ];
	my $photos = $writer->{users}{$user};
	my @photos = sort grep { defined $photos->{$_} } keys %$photos;
	return post($writer, $token, $user) if !@photos || rand() < 0.5;
	return edit($writer, $token, $user, $photos[ rand @photos ]) if rand() < 0.7;
	return delete_photo($writer, $token, $user, $photos[ rand @photos ]) if rand() < 0.8;
	return delete_user($writer, $token, $user);
}

# The row that was made last.
sub look
{
	my ($writer, $token) = @_;
	return { token => $token, rows => {},
		sql => [ "SELECT count(*) AS n1 FROM $writer->{schema}.log WHERE id = $writer->{last} \\gset" ],
		after => sub {
			my ($entry, $id1, $id2, $id3, $number, @counts) = @_;
			$entry->{missed} = "its last row $writer->{last}" if !$counts[0]; } };
}

# ON CONFLICT on an expression, with a row that all writers want.
sub new_user
{
	my ($writer, $token) = @_;
	my $schema = $writer->{schema};
	my @tables = @{ $writer->{tables} };
	my $number = 2;
	return { token => $token, rows => {},
		sql => [
			"INSERT INTO $schema.users (name) VALUES ('hot') ON CONFLICT (lower(name::text)) DO UPDATE SET settings = '{}';",
			"INSERT INTO $schema.users (name, settings) VALUES ('$token', '{\"v\": \"$token\"}') RETURNING id AS id1 \\gset",
			map { "INSERT INTO $schema.$_ (v) VALUES ('$token') RETURNING id AS id" . $number++ . ' \gset' } @tables ],
		after => sub {
			my ($entry, $id, @ids) = @_;
			$entry->{rows} = { "users $id" => $token, map { ("$tables[$_] $ids[$_]" => $token) } 0 .. $#tables };
			$entry->{made} = [ keys %{ $entry->{rows} } ];
			$writer->{last} = $ids[0];
			$writer->{users}{$id} = {}; } };
}

# Locks a user; a photo counts itself in the user's row, and notes a change in the log; an identity column; a
# partitioned table; now and then a value of 10 MB.
sub post
{
	my ($writer, $token, $user) = @_;
	my $schema = $writer->{schema};
	my $times = $writer->{number} == 1 && $writer->{posts}++ % 300 == 10 ? int(9_900_000 / length $token) : 1;
	return { token => $token, user => $user, rows => {}, photo => $token,
		sql => [
			"SELECT count(*) AS n1 FROM (SELECT FROM $schema.users WHERE id = $user FOR UPDATE) AS u \\gset",
			"INSERT INTO $schema.photos (user_id, caption) VALUES ($user, '$token') RETURNING id AS id1, number \\gset",
			"INSERT INTO $schema.comments (photo_id, user_id, body)"
			  . " VALUES (:id1, $user, '$token ' || repeat('$token', $times)) RETURNING id AS id2 \\gset",
			"UPDATE $schema.photos SET seen_by = 'friends' WHERE id = :id1;",
			"SELECT count(*) AS n2 FROM $schema.\"Audit Log\" WHERE at >= now() AND (old->>'id')::bigint = :id1 \\gset",
			"INSERT INTO $schema.follows VALUES ($user, :id1) ON CONFLICT DO NOTHING;",
			"INSERT INTO $schema.events (kind, data) VALUES ('$token', '{}') RETURNING id AS id3 \\gset" ],
		after => sub {
			my ($entry, $photo, $comment, $event, $number, @counts) = @_;
			$entry->{made} = [ "photos $photo", "comments $comment", "events $event", "number $number" ];
			$entry->{rows} = { "photos $photo" => $token, "comments $comment" => md5_hex("$token " . $token x $times),
				"follows $photo" => $user, "events $event" => $token };
			$entry->{rows}{"audit $photo"} = 1 if $counts[1];    # none if two were made in a microsecond
			$entry->{missed} = 'the user' if !$counts[0];
			$writer->{users}{$user}{$photo} = $comment; } };
}

# The user first, then a photo: the other order than that of a post.
sub edit
{
	my ($writer, $token, $user, $photo) = @_;
	return { token => $token, user => $user, rows => { "users $user" => $token, "photos $photo" => $token },
		sql => [
			count_rows('n1', "UPDATE $writer->{schema}.users SET settings = '{\"v\": \"$token\"}' WHERE id = $user"),
			count_rows('n2', "UPDATE $writer->{schema}.photos SET caption = '$token' WHERE id = $photo") ],
		after => \&expect_rows };
}

# Its comment goes with it.
sub delete_photo
{
	my ($writer, $token, $user, $photo) = @_;
	my $comment = $writer->{users}{$user}{$photo};
	return { token => $token, user => $user, rows => { "photos $photo" => undef, "comments $comment" => undef },
		sql => [ count_rows('n1', "DELETE FROM $writer->{schema}.photos WHERE id = $photo"), '\set n2 1' ],
		after => sub { expect_rows(@_); $writer->{users}{$user}{$photo} = undef } };
}

# All photos and comments go with it, and the rows of follows, also those for photos that are gone.
sub delete_user
{
	my ($writer, $token, $user) = @_;
	my $photos = $writer->{users}{$user};
	my %rows = ("users $user" => undef, map { ("follows $_" => undef) } keys %$photos);
	@rows{ "photos $_", "comments $photos->{$_}" } = () foreach grep { defined $photos->{$_} } keys %$photos;
	return { token => $token, user => $user, rows => \%rows,
		sql => [
			# The order in which foreign keys were made decides whether this check comes before the cascade over photos.
			"DELETE FROM $writer->{schema}.comments WHERE user_id = $user;",
			count_rows('n1', "DELETE FROM $writer->{schema}.users WHERE id = $user"), '\set n2 1' ],
		after => sub { expect_rows(@_); delete $writer->{users}{$user} } };
}

# The statement, and how many rows it changed in a variable.
sub count_rows
{
	my ($variable, $statement) = @_;
	return "WITH w AS ($statement RETURNING 1) SELECT count(*) AS $variable FROM w \\gset";
}

sub expect_rows
{
	my ($entry, $id1, $id2, $id3, $number, @counts) = @_;
	$entry->{missed} = 'one of its rows' if "@counts" ne '1 1';
	return;
}

sub open_session
{
	my ($connstr) = @_;
	my $session = {};
	$session->{pid} =
		open3($session->{in}, $session->{out}, undef, 'psql', '-XAtq', '-v', 'VERBOSITY=sqlstate', '-d', $connstr);
	my ($values) = ask($session, map { "\\set $_ 0" } qw(id1 id2 id3 number n1 n2));
	$session->{pause} = $pause_within;
	return $session if defined $values;
	close_session($session);
	return;
}

# Runs the statements in a transaction. Returns the values of the variables, and its first error; nothing if
# the session was lost before the transaction ended.
sub ask
{
	my ($session, @statements) = @_;
	my $error;
	my @lines = ('BEGIN;', @statements, 'COMMIT;', '\echo done :id1 :id2 :id3 :number :n1 :n2');
	if ($session->{pause})
	{
		send_lines($session, splice @lines, 0, 2 + rand @statements) or return;
		usleep(rand($session->{pause}));
	}
	send_lines($session, @lines) or return;
	while (defined(my $line = readline $session->{out}))
	{
		chomp $line;
		return ([ split ' ', $1 ], $error) if $line =~ /^done (.*)/;
		return unless $line =~ /^ERROR:/;    # FATAL, WARNING: the session ends
		$error //= $line;
	}
	return;
}

sub send_lines
{
	my ($session, @lines) = @_;
	return print({ $session->{in} } map { "$_\n" } @lines) && $session->{in}->flush;
}

sub close_session
{
	my ($session) = @_;
	close $session->{in};
	close $session->{out};
	waitpid $session->{pid}, 0;
	return;
}

# What the journal says and the server does not have; what the server has and nobody wrote; half a transaction; IDs and
# numbers that came twice; what a trigger should have written.
sub lost_writes
{
	my ($node, $database, $schema, @journal) = @_;
	my (%rows, %doubtful, %made, %doubtful_token);
	my @faults;
	foreach my $entry (@journal)
	{
		push @faults, "$entry->{error} in $entry->{token}" if $entry->{error};
		push @faults, "$entry->{token} did not find $entry->{missed}" if $entry->{missed};
		push @faults, map { "$_ twice" } grep { $made{$_}++ } @{ $entry->{made} // [] };
		my $rows = $entry->{rows} // {};
		@doubtful{ keys %$rows } = (1) x keys %$rows if $entry->{doubt};
		$doubtful_token{ $entry->{token} } = 1 if $entry->{doubt};
		@rows{ keys %$rows } = values %$rows unless $entry->{doubt};
	}
	my %found = read_written($node, $database, $schema, [ map { /^(\w+)/ } keys %rows ], \@faults);
	# One sequence makes the IDs of these tables.
	my %places;
	push @faults, map { "ID $_ is in two tables" } grep { $places{$_}++ }
	  map { /^(?:users|photos|comments|events) (\d+)/ } keys %found;
	foreach my $key (grep { !$doubtful{$_} } keys %rows)
	{
		my ($is, $is_to_be) = ($found{$key} // 'no row', $rows{$key} // 'no row');
		push @faults, "$key is $is, not $is_to_be" if $is ne $is_to_be;
	}
	push @faults, map { "$_ is $found{$_}, which nobody wrote" }
	  grep { !exists $rows{$_} && !/^(comments|follows|audit)/ && !$doubtful_token{ $found{$_} } } keys %found;
	push @faults, half_done(\%found, grep { $_->{doubt} } @journal);
	my $miscounted = $node->safe_psql($database, "SELECT id, photo_count FROM $schema.users AS u
		WHERE photo_count <> (SELECT count(*) FROM $schema.photos WHERE user_id = u.id)");
	push @faults, "photo_count is wrong: $miscounted" if $miscounted ne '';
	return @faults;
}

# The rows of the writers, and their values.
sub read_written
{
	my ($node, $database, $schema, $tables, $faults) = @_;
	my %queries = (
		(map { ($_ => "SELECT id, v FROM $schema.$_ WHERE v LIKE 'w%'") } @$tables),
		audit => qq{SELECT old->>'id', count(*) FROM $schema."Audit Log" GROUP BY 1},
		users => "SELECT id, settings->>'v' FROM $schema.users WHERE name LIKE 'w%'",
		photos => "SELECT id, caption FROM $schema.photos WHERE caption LIKE 'w%'",
		comments => "SELECT id, md5(body) FROM $schema.comments WHERE body LIKE 'w%'",
		follows => "SELECT followed, follower FROM $schema.follows WHERE followed NOT IN (SELECT id FROM $schema.users)",
		events => "SELECT id, kind FROM $schema.events WHERE kind LIKE 'w%'");
	my %found;
	foreach my $table (sort keys %queries)
	{
		foreach my $row (split /\n/, $node->safe_psql($database, $queries{$table}))
		{
			my ($id, $value) = split /\|/, $row;
			push @$faults, "$table $id is there twice" if exists $found{"$table $id"};
			$found{"$table $id"} = $value;
		}
	}
	return %found;
}

# Transactions that have done some of their changes: either all are there or none.
sub half_done
{
	my ($found, @doubts) = @_;
	my %values = map { ("$_ $found->{$_}" =~ /^(\w+) \d+ (.*)/ ? ("$1 $2" => 1) : ()) } keys %$found;
	my @faults;
	foreach my $entry (@doubts)
	{
		my $rows = $entry->{rows};
		my @wanted = map { ($found->{$_} // '') eq ($rows->{$_} // '') ? 1 : 0 } keys %$rows;
		@wanted = map { $values{$_} ? 1 : 0 } "photos $entry->{token}", "events $entry->{token}" if $entry->{photo};
		my $count = grep { $_ } @wanted;
		push @faults, "$entry->{token} is there by half" if $count > 0 && $count < @wanted;
	}
	return @faults;
}

1;
