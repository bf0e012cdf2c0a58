# A checkpoint between a draw's comparison with the redo pointer and its change of the page loses no
# ID.
#
# A draw under a lease finds that the page's LSN is after the redo pointer, so it writes no record,
# and then changes the page. If the page were clean at the comparison, a checkpoint that begins and
# ends right after it would not write the page, and no record after its redo pointer would have the
# ID: a crash would take the ID back. So a draw marks the page dirty before the comparison, and the
# checkpoint waits for the draw. nextval() marks it afterwards.
#
# Debuggers hold a draw and a nextval() at that point. IDs are minutes ahead of the clock all the
# time, so after the crash the clock protects none of them.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Debugger;
use FaultTest;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

# Lets the session run $sql until the draw has the result of GetRedoRecPtr(). False if it does not
# call that.
sub run_into_comparison
{
	my ($session, $sql, $caller) = @_;
	return 0 if !run_into($session, $sql, 'GetRedoRecPtr', $caller);
	finish_function($session);
	return 1;
}

# Whether a sequence's page has changes in shared buffers that are not in its file: 1 or 0.
sub is_dirty
{
	my ($node, $sequence) = @_;
	return $node->safe_psql('postgres', qq{
		SELECT count(*) FROM pg_buffercache
		WHERE isdirty AND relfilenode = pg_relation_filenode('$sequence')
		  AND reldatabase = (SELECT oid FROM pg_database WHERE datname = 'postgres')});
}

sub page_lsn
{
	my ($node, $sequence) = @_;
	return $node->safe_psql('postgres', "SELECT lsn FROM page_header(get_raw_page('$sequence', 0))");
}

# Reads more pages than there are buffers until the pages are evicted. By the index, because a
# sequential scan would use only a few buffers.
sub evict
{
	my ($node, @sequences) = @_;
	foreach (1 .. 20)
	{
		$node->safe_psql('postgres',
			'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(filler) FROM other WHERE n > 0');
		return if !grep { is_dirty($node, $_) } @sequences;
	}
	die 'a page does not leave the buffers';
}

# Few buffers, so that a page is soon evicted, but enough for the statements between a draw and the
# crash. The background writer writes no pages, so that in between only the checkpoint does.
my $node = new_server('race', conf => q{
shared_buffers = 4MB
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
max_wal_size = 10GB
});
if ($node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_available_extensions WHERE name IN ('pageinspect', 'pg_buffercache')}
	) ne '2')
{
	$node->stop;
	plan skip_all => 'pageinspect or pg_buffercache is not installed (they are contrib modules)';
}
if (my $reason = why_no_debugger($node))
{
	$node->stop;
	plan skip_all => $reason;
}
$node->safe_psql('postgres', q{
	CREATE EXTENSION pageinspect;
	CREATE EXTENSION pg_buffercache;
	CREATE SEQUENCE core_s;
	CREATE TABLE other (n integer PRIMARY KEY, filler text) WITH (fillfactor = 10);
	INSERT INTO other SELECT n, repeat('x', 1000) FROM generate_series(1, 4000) AS n;
	VACUUM other;
	SELECT snowflake_advance('s', snowflake_encode(now() + interval '30 min', 5, 0));
});

my $fault = 'a checkpoint between the comparison with the redo pointer and the change';
my $trials = trials(1, 20);
my (@drawn, @core_drawn);

subtest 'a checkpoint between the comparison and the change' => sub {
	foreach my $trial (1 .. $trials)
	{
		show_progress($fault, $trial, $trials);

		# A record after the redo pointer, and the page in its file as that record's draw left it.
		$node->safe_psql('postgres', 'CHECKPOINT');
		push @drawn, draw($node);
		push @core_drawn, $node->safe_psql('postgres', q{SELECT nextval('core_s')});
		evict($node, 's', 'core_s');
		my $lsn = page_lsn($node, 's');

		my $native = debugged_session($node);
		my $core = debugged_session($node);
		ok(run_into_comparison($native, q{SELECT snowflake_next_id(5, 's')}, qr/snowflake/),
			'the draw compares');
		my $core_compares = run_into_comparison($core, q{SELECT nextval('core_s')}, qr/nextval/);

		my $checkpoint = start_program('psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', 'CHECKPOINT');
		my $waits = '';
		await('the checkpoint waits for the page, or is over', sub {
				$checkpoint->{run}->pump_nb if $checkpoint->{run}->pumpable;
				$waits = $node->safe_psql('postgres', q{
					SELECT wait_event FROM pg_stat_activity
					WHERE backend_type = 'checkpointer' AND wait_event LIKE 'Buffer%'});
				return $waits || !$checkpoint->{run}->pumpable; });
		isnt($waits, '', 'the checkpoint waits for the page');
		push @drawn, let_go($native);
		$checkpoint->{run}->finish;
		push @core_drawn, let_go($core) if $core_compares;
		is(page_lsn($node, 's'), $lsn, 'the draw wrote no record');
		is( $node->safe_psql('postgres', "SELECT redo_lsn > '$lsn' FROM pg_control_checkpoint()"),
			't', 'recovery begins after its lease');

		crash($node);
		$node->start;
		push @drawn, draw($node);
		push @core_drawn, $node->safe_psql('postgres', q{SELECT nextval('core_s')});
		end_session($_) foreach $native, $core;
	}
	report_fault(
		fault          => $fault,
		trials         => $trials,
		native         => findings_from(\@drawn),
		rival          => 'nextval()',
		rival_findings => findings_from(\@core_drawn));
};

$node->stop;
done_testing();
