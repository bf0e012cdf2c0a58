# pg_buffercache_mark_dirty_relation(), from PostgreSQL 19 on, marks a page dirty that nothing has
# changed since a checkpoint published its redo pointer. A draw compares the page's LSN with the redo
# pointer all the same, so a crash takes no ID back.
#
# IDs are half an hour ahead of the clock all the time: the clock protects none of them.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

seed_random();

my $node = new_server('marked', conf => "bgwriter_lru_maxpages = 0\n");
if ($node->safe_psql('postgres', q{
		SELECT count(*) FROM pg_available_extension_versions
		WHERE name = 'pg_buffercache' AND version::numeric >= 1.7}) eq '0')
{
	$node->stop;
	plan skip_all => 'pg_buffercache cannot mark pages (from PostgreSQL 19 on it can; it is a contrib module)';
}
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_buffercache;
	SELECT snowflake_advance('s', snowflake_encode(now() + interval '30 min', 5, 0));
});

# The page is clean and holds a lease, and its record is before the redo pointer; then it is marked.
# A transaction of many draws, and one of a single draw.
subtest 'draws after the mark are not made again' => sub {
	foreach my $draws (1, 1000)
	{
		my @drawn = draw($node);
		$node->safe_psql('postgres', 'CHECKPOINT');
		is($node->safe_psql('postgres', q{SELECT buffers_dirtied FROM pg_buffercache_mark_dirty_relation('s')}), '1',
			'a clean page is marked');
		push @drawn, split /\n/,
			$node->safe_psql('postgres', "SELECT snowflake_next_id(5, 's') FROM generate_series(1, $draws)");
		crash($node);
		$node->start;
		push @drawn, draw($node);
		is_strictly_increasing("$draws draws after the mark are not made again", \@drawn);
	}
};

# Marks and checkpoints without a pause, beside clients that draw.
sub start_marking
{
	my $script = q{
		DO $$
		BEGIN
			LOOP
				PERFORM pg_buffercache_mark_dirty_relation('s');
				PERFORM pg_sleep(random() * 0.005);
				IF random() < 0.3 THEN CHECKPOINT; END IF;
			END LOOP;
		END $$};
	return IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $script ],
		'<', '/dev/null', '>', '/dev/null', '2>', '/dev/null');
}

subtest 'crashes while clean pages are marked' => sub {
	my $fault = 'kill -9 of the server, while clean pages are marked dirty';
	my $cycles = trials(5, 50);
	my $native = observe($node, clients => [ 'single', 'single', 'mixed:300' ]);
	foreach my $cycle (1 .. $cycles)
	{
		show_progress($fault, $cycle, $cycles);
		my $marking = start_marking();
		await_draws($native);
		usleep(int rand 400_000);
		crash($node);
		$marking->finish;
		$node->start;
	}
	await_draws($native);
	report_fault(
		fault  => $fault,
		trials => $cycles,
		native => findings_of($native),
		rival  => 'nextval() is not asked: it logs after each checkpoint');
};

$node->stop;
done_testing();
