# What is done in a gap. A file of exchange/ or change/ is SQL in parts: the first runs in the gap, that behind "-- at
# the next gap" in the next one, and that behind "-- carried over if" is a question to be answered by t in the end, if
# need be after the statement behind "-- told as", which the command must print. A kind of kill or stall is a function
# here.

package Actions;

use strict;
use warnings;

use PoolerTest;
use PostgreSQL::Test::Utils;

# kind => [ names ]
sub names
{
	my ($dir) = @_;
	my %names = (kill => [qw(command sessions server_one server_two pooler)], stall => ['server']);
	foreach my $kind (qw(exchange change)) { $names{$kind} = [ map { m{(\w+)\.sql$} } sort glob "$dir/$kind/*.sql" ] }
	return %names;
}

# first, next, question, told: the parts of a file.
sub parts_of
{
	my ($file) = @_;
	my $text = slurp_file($file);
	my ($parts, $told) = split /^-- told as\n/m, $text;
	my ($rest, $question) = split /^-- carried over if\n/m, $parts;
	my ($first, $next) = split /^-- at the next gap\n/m, $rest;
	return { first => $first, next => $next, question => $question, told => $told };
}

# What the application does, where the shard is open; on server one if it is closed on both. A table that is locked by
# the command on server two, after the opening, is open. The server, if the change was acknowledged.
sub change
{
	my ($fleet, $parts) = @_;
	my ($one, $two) =
	  map { $fleet->try_sql($_, 'mallory', q{INSERT INTO insta5.users (name) VALUES ('probe')}) } qw(one two);
	my $server = $one ne '' && ($two eq '' || $two =~ /lock timeout/) ? 'two' : 'one';
	return $server if $fleet->try_sql($server, 'mallory', $parts->{first}) eq '';
	# CREATE INDEX CONCURRENTLY that fails leaves an index that verify finds.
	$fleet->try_sql($server, 'mallory', 'DROP INDEX IF EXISTS insta5.users_name');
	return;
}

# Of each table by itself, on both servers. How often it worked: an object may be locked, or not there.
sub exchange
{
	my ($fleet, $sql, @tables) = @_;
	my $done = 0;
	foreach my $table (defined $sql ? @tables : ())
	{
		my ($schema, $name) = split /\./, $table;
		my $text = $sql =~ s/\@schema\@/$schema/gr =~ s/\@table\@/$name/gr;
		$done += grep { $fleet->try_sql($_, 'mallory', $text) eq '' } qw(one two);
	}
	return $done;
}

my %kills = (
	command => sub { my ($fleet, $run) = @_; kill 'KILL', $run->{pid}; 1 },
	sessions => sub {
		my ($fleet) = @_;
		foreach my $name (qw(one two))
		{
			eval { $fleet->session($name, database => 'postgres')->do(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE application_name = 'snowflake-shard' AND backend_type = 'client backend'}) };
		}
		return 0;
	},
	server_one => sub { $_[0]->restart('one'); 0 },
	server_two => sub { $_[0]->restart('two'); 0 },
	pooler => sub { kill_pooler($_[0]{pooler}); start_pooler($_[0]{pooler}); 0 });

# True if the command is dead.
sub kill_part
{
	my ($name, $fleet, $run) = @_;
	return $kills{$name}->($fleet, $run);
}

1;
