# A commit makes durable every lease under which its transaction drew IDs, even if another session
# wrote it. If an ID is ahead of the clock, its lease is flushed before a client sees the ID. The same holds for a
# settled ID.
#
# The commit flushes the lease and waits until the synchronous standby has it, so the ID of a
# committed transaction is never repeated. Here nothing else flushes the lease: the WAL writer
# sleeps, and session A, which wrote the lease, keeps its transaction open. nextval() makes no such
# promise; its result is shown beside it.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $quiet_wal_writer = "wal_writer_delay = 10s\n";

# "t" or "f": whether the last record of a sequence's page is on disk.
sub is_flushed
{
	my ($node, $sequence) = @_;
	return $node->safe_psql('postgres', qq{
		SELECT pg_current_wal_flush_lsn() >= lsn
		FROM page_header(get_raw_page('$sequence', 0))});
}

# A new sequence, and a session A that has called $call on it in a transaction that is still open,
# so that the record on the sequence's page is not flushed. If the WAL writer has flushed it
# meanwhile, try again with another sequence.
my $sequences = 0;
sub open_lease
{
	my ($node, $call) = @_;
	foreach (1 .. 10)
	{
		my $sequence = 'lease_' . ++$sequences;
		$node->safe_psql('postgres',
			"SET synchronous_commit = local; CREATE SEQUENCE $sequence");
		my $a = $node->background_psql('postgres');
		$a->query_safe('SET client_min_messages = error; BEGIN');
		$a->query_safe(sprintf $call, $sequence);
		return ($sequence, $a) if is_flushed($node, $sequence) eq 'f';
		$a->quit;
	}
	die 'A never left a record that was not flushed';
}

my $clock = libfaketime() ? new_clock() : undef;
note('libfaketime is not installed: the clock alone would keep IDs apart after the crash')
	unless $clock;

my $node = new_server('single', conf => $quiet_wal_writer, clock => $clock);
if ($node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_available_extensions WHERE name = 'pageinspect'}) eq '0')
{
	$node->stop;
	plan skip_all => 'pageinspect is not installed (it is one of the contrib modules)';
}
$node->safe_psql('postgres', 'CREATE EXTENSION pageinspect');

# Otherwise the first session that reads the catalog would prune it, and write WAL of its own.
$node->safe_psql('postgres', 'VACUUM');

my $draw = q{SELECT snowflake_next_id(5, '%s')};

# The statements of session B.
my @ways_to_commit = (
	[ 'a single SELECT' => q{SELECT snowflake_next_id(5, '%1$s')} ],
	[ 'a block'         => q{SELECT max(id) FROM snowflake_next_ids(5, '%1$s', 10) AS id} ],
	[ 'a transaction of two draws' =>
		q{BEGIN; SELECT snowflake_next_id(5, '%1$s'); SELECT snowflake_next_id(5, '%1$s'); COMMIT} ],
	[ 'a transaction that has an XID, but has written nothing' =>
		q{BEGIN; SELECT pg_current_xact_id(); SELECT snowflake_next_id(5, '%1$s'); COMMIT} ],
	[ 'a transaction that has written before' =>
		q{BEGIN; CREATE TEMP TABLE t (); SELECT snowflake_next_id(5, '%1$s'); COMMIT} ],
	[ 'a draw in a subtransaction' =>
		q{BEGIN; SAVEPOINT a; SELECT snowflake_next_id(5, '%1$s'); RELEASE a; COMMIT} ],
	[ 'a draw in a subtransaction that is rolled back' =>
		q{BEGIN; SAVEPOINT a; SELECT snowflake_next_id(5, '%1$s'); ROLLBACK TO a; COMMIT} ],
	[ 'a draw in a DO block with a commit of its own' =>
		q{DO $$ BEGIN COMMIT; PERFORM snowflake_next_id(5, '%1$s'); COMMIT; END $$} ]);

my @sessions;

subtest 'a commit flushes the lease of another session, in each way to commit' => sub {
	foreach my $way (@ways_to_commit)
	{
		my ($name, $script) = @$way;
		my ($sequence, $a) = open_lease($node, $draw);
		$node->safe_psql('postgres', sprintf $script, $sequence);
		is(is_flushed($node, $sequence), 't', "$name: the lease is flushed by the commit");
		push @sessions, $a;
	}
};

# An advance() that finds the position already there relies on the record of the earlier one.
subtest 'an advance() that finds the position there already' => sub {
	my $later = q{SELECT snowflake_advance('%s', snowflake_encode('2040-01-01', 5, 0))};
	my ($sequence, $a) = open_lease($node, $later);
	$node->safe_psql('postgres', sprintf $later, $sequence);
	is(is_flushed($node, $sequence),
		't', 'an advance() that finds the position there already: flushed by the commit');
	push @sessions, $a;
};

# The same promise, seen from outside: the server crashes right after the commit, and its clock goes
# back.
sub crash_with_clock_going_back
{
	crash($node);
	set_clock($clock, $clock->{offset} - 600) if $clock;
	start_server($node, $clock);
	return;
}
my @drawn;

subtest 'a crash right after the commit' => sub {
	my ($sequence, $a) = open_lease($node, $draw);
	push @drawn, draw($node, $sequence);
	crash_with_clock_going_back();
	push @drawn, map { draw($node, $sequence) } 1 .. 2;
	are_later('after a crash the sequence goes on after the ID that was committed',
		[ $drawn[0] ], [ $drawn[1] ]);
};

# The transaction has not committed, but its IDs are ahead of the clock.
subtest 'IDs ahead of the clock are flushed before they are seen' => sub {
	$node->safe_psql('postgres', 'CREATE SEQUENCE burst');
	my $a = $node->background_psql('postgres');
	$a->query_safe('BEGIN');
	my $seen = $a->query_safe(q{SELECT max(id) FROM snowflake_next_ids(5, 'burst', 300000) AS id});
	is(is_flushed($node, 'burst'), 't',
		'IDs ahead of the clock: the lease is flushed before they are seen, in an open transaction');
	crash_with_clock_going_back();
	are_later('after a crash the sequence goes on after IDs that ran ahead of the clock',
		[$seen], [ draw($node, 'burst') ]);
};

# A consumer has read up to the settled ID: no row may appear at or below it later.
subtest 'a settled ID ahead of the clock is flushed before it is seen' => sub {
	my ($sequence, $a) = open_lease($node, q{SELECT snowflake_advance('%s', snowflake_encode(now() + interval '1 min', 5, 0))});
	$a->query_safe('ROLLBACK');
	my $reader = $node->background_psql('postgres');
	$reader->query_safe('BEGIN');
	my $seen = $reader->query_safe("SELECT snowflake_settled_id(5, '$sequence')");
	is(is_flushed($node, $sequence), 't', 'the record of an advance that was rolled back, in an open transaction');
	crash_with_clock_going_back();
	are_later('after a crash the sequence goes on after it', [$seen], [ draw($node, $sequence) ]);
};

subtest 'a settled ID is flushed by the commit' => sub {
	my ($sequence, $a) = open_lease($node, $draw);
	$a->query_safe('ROLLBACK');
	my $seen = $node->safe_psql('postgres', "SELECT snowflake_settled_id(5, '$sequence')");
	is(is_flushed($node, $sequence), 't', 'the record of a draw that was rolled back');
	crash_with_clock_going_back();
	are_later('after a crash the sequence goes on after it', [$seen], [ draw($node, $sequence) ]);
};

subtest 'the same crash with nextval()' => sub {
	# For comparison: nextval(). Its result is not asserted.
	my @core_drawn;
	{
		my ($sequence, $a) = open_lease($node, q{SELECT nextval('%s')});
		push @core_drawn, $node->safe_psql('postgres', "SELECT nextval('$sequence')");
		note("core's nextval(), flushed by the commit: " . is_flushed($node, $sequence));
		crash_with_clock_going_back();
		push @core_drawn, map { $node->safe_psql('postgres', "SELECT nextval('$sequence')") } 1 .. 2;
	}
	report_fault(
		fault => "a commit under another session's record, not flushed, then a crash",
		trials => 1,
		native => findings_from(\@drawn),
		rival => 'nextval()',
		rival_findings => findings_from(\@core_drawn));
};

$node->stop;

# The synchronous standby does not exist, so each wait for it lasts forever.
my $primary = new_server(
	'primary',
	conf => $quiet_wal_writer,
	init => { allows_streaming => 1 });
$primary->safe_psql('postgres', 'CREATE EXTENSION pageinspect');

# The outcome of B's call: "waits" for the standby, or "returned".
sub outcome_of_call
{
	my ($call) = @_;
	my $b = $primary->background_psql('postgres');
	my $pid = $b->query_safe('SELECT pg_backend_pid()');
	$b->query_until(qr/sent/, "\\echo sent\n$call;\n");
	my $outcome = '';
	await('B waits for the standby, or returns', sub {
			$outcome = $primary->safe_psql('postgres', qq{
				SELECT CASE WHEN wait_event = 'SyncRep' THEN 'waits'
					WHEN state = 'idle' AND query !~ 'pg_backend_pid' THEN 'returned' END
				FROM pg_stat_activity WHERE pid = $pid});
			return $outcome ne ''; });
	return ($outcome, $b);
}

$primary->append_conf('postgresql.conf', "synchronous_standby_names = 'absent'");
$primary->reload;
my @waiting;
await('the setting has reached all processes, so that an ordinary commit waits', sub {
		my ($outcome, $b) = outcome_of_call('CREATE TABLE ordinary_' . @waiting . ' ()');
		push @waiting, $b;
		return $outcome eq 'waits'; });

subtest 'a commit waits for the synchronous standby' => sub {
	my ($sequence, $a) = open_lease($primary, $draw);
	my ($outcome, $b) = outcome_of_call("SELECT snowflake_next_id(5, '$sequence')");
	is($outcome, 'waits', "under another session's lease a commit waits for the standby");
	push @waiting, $a, $b;
};

# The same if another commit, or the WAL writer, has flushed the lease on this server: the standby
# may still lack it.
subtest 'a lease that only the primary has flushed' => sub {
	my ($sequence, $a) = open_lease($primary, $draw);
	$primary->safe_psql('postgres',
		'SET synchronous_commit = local; CREATE TABLE flushed_here_only ()');
	is(is_flushed($primary, $sequence), 't', 'the lease is flushed on the primary');
	my ($outcome, $b) = outcome_of_call("SELECT snowflake_next_id(5, '$sequence')");
	is($outcome, 'waits', 'a lease that only the primary has flushed: a commit waits for the standby');
	push @waiting, $a, $b;
};

# No standby is required any more, so the waiting sessions return.
$primary->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$primary->reload;
$_->quit foreach @waiting;

$primary->stop;
done_testing();
