# A program that decodes the WAL, such as Debezium, sees each change of a shard once, and in its order, while the shard
# moves, is moved back and moves again under writers: it reads the source to its end and then the target. The target is
# read from the position that the move prints, or, from PostgreSQL 16 on, without rows that have an origin.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ChangeData;
use MoveTest;
use POSIX ();
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();

# Both servers publish all tables and have a slot, as Debezium makes them.
my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\n";
my @nodes = map { new_server($_, conf => $conf) } qw(one two);
my @back = reverse @nodes;
foreach my $node (@nodes)
{
	$node->safe_psql('postgres', 'CREATE PUBLICATION debezium FOR ALL TABLES');
	$node->safe_psql('postgres', q{SELECT pg_create_logical_replication_slot('debezium', 'pgoutput')});
}
$nodes[0]->safe_psql('postgres', q{
	SELECT snowflake_create_shard(5, 'insta5');
	CREATE TABLE insta5.counters (id integer PRIMARY KEY, n integer NOT NULL);
	CREATE TABLE insta5.log (id bigint PRIMARY KEY DEFAULT insta5.next_id(), counter integer, n integer);
	INSERT INTO insta5.counters VALUES (1, 0), (2, 0)});
my $has_origin = $nodes[0]->safe_psql('postgres', 'SHOW server_version_num') >= 160000;

# A writer counts up, one transaction after the other, on the server that takes it.
my $stop = PostgreSQL::Test::Utils::tempdir . '/stop';
my @writers;
foreach my $counter (1, 2)
{
	my $parent = $$;
	my $pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		my $place = 0;
		# Not die(), which would stop the servers.
		eval {
			while (!-e $stop && getppid() == $parent)
			{
				$place = 1 - $place if $nodes[$place]->psql('postgres', qq{
					BEGIN;
					UPDATE insta5.counters SET n = n + 1 WHERE id = $counter;
					INSERT INTO insta5.log (counter, n) SELECT id, n FROM insta5.counters WHERE id = $counter;
					DELETE FROM insta5.log AS l USING insta5.counters AS c
					WHERE c.id = $counter AND l.counter = c.id AND l.n = c.n - 3;
					COMMIT}, stderr => \my $error) != 0;
			}
		};
		POSIX::_exit(0);
	}
	push @writers, $pid;
}

# The counters that both writers have reached.
my $written = 0;

sub await_writers
{
	my ($node) = @_;
	await("writers go on at " . $node->name,
		sub { ($node->safe_psql('postgres', 'SELECT min(n) FROM insta5.counters')) > $written + 5 });
	$written = $node->safe_psql('postgres', 'SELECT max(n) FROM insta5.counters');
	return;
}

# The changes of the shard: [ counter, change ]. function: get or peek; end: up to which position.
my %log;    # [ counter, n ] by the ID

sub decode
{
	my ($node, $function, $name, $end, %options) = @_;
	my @changes;
	foreach (decoded_changes($node, $function, $name, $name, $end, %options))
	{
		my ($kind, $table, @row) = @$_;
		next if $table !~ s/^insta5\.//;
		$log{ $row[0] } = [ @row[ 1, 2 ] ] if "$kind $table" eq 'I log';
		my ($counter, $n) = $table eq 'log' ? @{ $log{ $row[0] } // [ 0, "unknown $row[0]" ] } : @row;
		push @changes, [ $counter, "$kind $table $n" ];
	}
	return @changes;
}

# The reader takes all that is there now. begin: where a server begins that has just got the shard. end: where one ends
# that the shard has left; the rows of reverse replication follow there.
my %seen = map { $_ => [] } 0 .. 2;

sub read_changes
{
	my ($node, $begin, $end) = @_;
	$node->safe_psql('postgres', "SELECT pg_replication_slot_advance('debezium', '$begin')") if $begin && !$has_origin;
	my @changes = decode($node, 'get', 'debezium', $has_origin ? (undef, origin => 'none') : $end);
	push @{ $seen{ $_->[0] } }, $_->[1] foreach @changes;
	return scalar @changes;
}

# Those of the changes that the reader has seen already.
sub seen_before
{
	my %is_seen;
	foreach my $counter (keys %seen)
	{
		$is_seen{"$counter $_"} = 1 foreach @{ $seen{$counter} };
	}
	return grep { $is_seen{"@$_"} } @_;
}

# The positions that a move has printed, of the server that the shard has left and of the other one.
sub positions
{
	my ($from, $to) = map { $_->port } @_;
	my @positions = $move_error =~ m{changes of the shard: on \S+:$from/postgres before (\S+), on \S+:$to/postgres from (\S+) on};
	diag($move_error) if !@positions;
	return @positions;
}

# The shard has moved; follows: it has reverse replication. The reader ends with the source, and begins with the target.
sub follow
{
	my ($from, $to, $follows) = @_;
	await_writers($to);
	my ($closed, $opened) = positions($from, $to);
	ok($opened, 'the move prints both positions') or return;
	is($from->safe_psql('postgres', 'SELECT other_at FROM snowflake_move_5.state'), $opened, 'the record has them');
	read_changes($from, undef, $closed);
	ok(seen_before(decode($to, 'peek', 'debezium')) > 0, 'a reader of all of the target gets changes again');
	ok(read_changes($to, $opened) > 0, 'the reader goes on at the target');
	is(read_changes($from), 0, 'and the source has nothing more') if $has_origin || !$follows;
	return;
}

subtest 'a move names publications and slots' => sub {
	my ($one, $two) = map { qr/\S+:${\$_->port}\/postgres/ } @nodes;
	# As REPACK (CONCURRENTLY) of PostgreSQL 19 has one while it runs.
	$nodes[0]->safe_psql('postgres', q{SELECT pg_create_logical_replication_slot('pg_repack_4711', 'test_decoding')});
	is(move(@nodes, '--dry-run', '--trust-readers'), 'exit code 0', 'they are no obstacles') or diag($move_error);
	$nodes[0]->safe_psql('postgres', q{SELECT pg_drop_replication_slot('pg_repack_4711')});
	my $readers = qr/publication debezium, slot debezium/;
	like($move_error, qr/$one: $readers: changes of the shard come from there until .*, and then from $two/, 'source');
	like($move_error, qr/$two: $readers: the copied rows come from there, too/, 'target');
};

subtest 'there' => sub {
	await_writers($nodes[0]);
	ok(read_changes($nodes[0]) > 0, 'the reader is at the source');
	my $local = q{pg_logical_slot_get_changes('local', NULL, NULL, 'only-local', '1', 'skip-empty-xacts', '1')};
	$nodes[1]->safe_psql('postgres', q{SELECT pg_create_logical_replication_slot('local', 'test_decoding')});
	moves([ @nodes, '--reversible', '--trust-readers' ], 'moved with reverse replication', 'move --reversible');
	follow(@nodes, 'follows');
	is($nodes[1]->safe_psql('postgres', "SELECT count(*), count(*) FILTER (WHERE data ~ 'insta5.counters: INSERT') > 0
		FROM $local") =~ s/^[1-9]\d*/n/r, 'n|f', 'a reader of what is written there gets no copied row');
	$nodes[1]->safe_psql('postgres', q{SELECT pg_drop_replication_slot('local')});
};

subtest 'back' => sub {
	moves([ @nodes, '--undo' ], 'undone', '--undo');
	follow(@back);
	moves([ @back, '--complete' ], 'dropped', '--complete');
};

# The command is killed when the target is open. A publication that lists its tables gets those of the shard then.
subtest 'there again, when the command was killed after the opening' => sub {
	$nodes[1]->safe_psql('postgres', 'CREATE PUBLICATION listed');
	$nodes[1]->safe_psql('postgres', q{SELECT pg_create_logical_replication_slot('listed', 'pgoutput')});
	move(@nodes, '--trust-readers', '--switch-command', 'kill -9 $PPID');
	unlike($move_error, qr/changes of the shard: on/, 'the killed command has not printed positions');
	my $sql = 'ALTER PUBLICATION listed ADD TABLE $SCHEMA.counters, $SCHEMA.log';
	my $command = qq{psql -XAtq -h "\$HOST" -p "\$PORT" -d "\$DBNAME" -c "$sql"};
	moves([ @nodes, '--resume', '--switch-command', $command ], 'moved', '--resume');
	read_changes($nodes[0]);
	is(seen_before(decode($nodes[1], 'peek', 'listed')), 0, 'no copied row is in the other publication');
	follow(@nodes);
	ok(decode($nodes[1], 'peek', 'listed') > 0, 'but the new ones are');
};

subtest 'each change was seen once' => sub {
	append_to_file($stop, '');
	waitpid $_, 0 foreach @writers;
	read_changes($nodes[1]);
	foreach my $counter (1, 2)
	{
		my $last = $nodes[1]->safe_psql('postgres', "SELECT n FROM insta5.counters WHERE id = $counter");
		my @expected = ('I counters 0',
			map { ("U counters $_", "I log $_", $_ > 3 ? 'D log ' . ($_ - 3) : ()) } 1 .. $last);
		is(join("\n", @{ $seen{$counter} }), join("\n", @expected), "counter $counter, up to $last");
	}
	is("@{ $seen{0} }", '', 'no row was deleted that had not been seen');
};

$_->stop foreach @nodes;
done_testing();
