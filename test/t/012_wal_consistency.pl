# Replaying a record of the extension gives the same sequence page as the primary has. With
# wal_consistency_checking each record carries an image of its page, and the standby compares; a
# difference is a FATAL error there. The regression and isolation tests run under it, and a load of
# several sessions with checkpoints.
#
# The records of nextval() are checked in the same way, in those tests and in the load. All records of the
# extension that change a page are of the resource manager Sequence. In the tests the others have no
# image, because those of tables and catalogs are gigabytes.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Cwd qw(abs_path);
use FaultTest;
use File::Basename qw(basename);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

seed_random();

my $primary = new_server(
	'primary',
	init => { allows_streaming => 1, extra => [ '--encoding', 'UTF8' ] },
	conf => "wal_consistency_checking = sequence\nmax_prepared_transactions = 5\nmax_wal_size = 1GB\n");
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
# The slot keeps WAL that the standby does not have yet: the tests write much and make checkpoints.
$primary->safe_psql('postgres', q{SELECT pg_create_physical_replication_slot('standby', true)});
$standby->append_conf('postgresql.conf', "primary_slot_name = 'standby'");
$standby->start;

# Waits until the standby has replayed everything. Ends the test if the standby is gone.
sub await_standby
{
	my $end = $primary->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	await('the standby has replayed everything', sub {
			my ($status, $replayed) =
				$standby->psql('postgres', "SELECT pg_last_wal_replay_lsn() >= '$end'");
			give_up() if $status != 0;
			return $replayed eq 't'; });
	return;
}

sub give_up
{
	fail('the standby replays everything');
	diag($_) foreach grep { /FATAL|PANIC|CONTEXT/ } split /\n/, slurp_file($standby->logfile);
	$standby->kill9;    # it is dead; this updates the node's state
	die 'the standby is gone';
}

# The sequences whose position on the standby is behind the primary's. There should be none: the
# logged position is ahead, by the lease or by the values that nextval() logs ahead.
sub sequences_behind
{
	my ($database) = @_;
	my $query = $primary->safe_psql($database, q{
		SELECT string_agg(format('SELECT %1$L, last_value, is_called FROM %1$s', oid::regclass),
			' UNION ALL ')
		FROM pg_class WHERE relkind = 'S' AND relpersistence = 'p'});
	my %position = map { /^(.*)\|(-?\d+)\|(.)$/ ? ($1 => [ $2, $3 ]) : die $_ }
		split /\n/, $primary->safe_psql($database, $query);
	my @behind;
	foreach my $line (split /\n/, $standby->safe_psql($database, $query))
	{
		my ($sequence, $position, $is_called) = $line =~ /^(.*)\|(-?\d+)\|(.)$/;
		my $on_primary = delete $position{$sequence};
		push @behind, $line if $position < $on_primary->[0] || $is_called ne $on_primary->[1];
	}
	return join "\n", @behind, sort keys %position;
}

# These two take half of the time of all, for the code that they read and not for records: of sequences they write what
# other tests write, too.
my %left_out = map { $_ => 1 } qw(adopt_forms security);

# pg_regress and pg_isolation_regress, run as PGXS's installcheck runs them, each in a new database
# of this name.
my $database = 'contrib_regression';
my $build = abs_path("$FindBin::RealBin/../..");
my $regress = $ENV{PG_REGRESS};
(my $isolation = $regress) =~ s{regress/pg_regress$}{isolation/pg_isolation_regress};
my %harnesses = (
	'regression tests' => {
		program => $regress,
		inputdir => $build,
		tests => [ grep { !$left_out{ basename($_, '.sql') } } glob("$build/sql/*.sql") ] },
	'isolation tests' => {
		program => $isolation,
		inputdir => "$build/test/isolation",
		tests => [ glob("$build/test/isolation/specs/*.spec") ] });

subtest 'the tests pass, and a standby replays their WAL' => sub {
	foreach my $name (sort keys %harnesses)
	{
		my $harness = $harnesses{$name};
		SKIP:
		{
			skip "$harness->{program} is not there", 1 unless -x $harness->{program};
			my $output = PostgreSQL::Test::Utils::tempdir();
			local %ENV = (%ENV, PGHOST => $primary->host, PGPORT => $primary->port, PGUSER => getpwuid($<));
			my $status = PostgreSQL::Test::Utils::system_log(
				$harness->{program},
				'--bindir=' . $primary->config_data('--bindir'),
				"--inputdir=$harness->{inputdir}", "--outputdir=$output",
				"--dbname=$database", '--load-extension=snowflake',
				map { basename($_) =~ s/\.\w+$//r } @{ $harness->{tests} });
			diag(slurp_file("$output/regression.diffs"))
				if $status != 0 && -s "$output/regression.diffs";
			is($status, 0, "$name pass on the primary");
			await_standby();
			is(sequences_behind($database), '', "$name: no sequence is behind on the standby");
		}
	}
};

# Under load: leases are renewed, and logged again after checkpoints. A session draws from one
# sequence natively and by nextval() in turn, and the sequence's page is replaced.
subtest 'a load of draws, beside changes of the sequence' => sub {
	my $fault = 'wal_consistency_checking = all, with a standby';
	my $rounds = trials(3, 100);
	$primary->append_conf('postgresql.conf', 'wal_consistency_checking = all');
	$primary->reload;
	$primary->safe_psql('postgres', 'CREATE SEQUENCE core_s');
	my $native = observe($primary, clients => [ 'mixed:300', 'mixed:300', 'single' ],
		arguments => [ '--checkpoint', 100 ]);
	my $core = observe($primary, generator => 'nextval', sequence => 'core_s', clients => ['mixed:300']);
	foreach my $round (1 .. $rounds)
	{
		show_progress($fault, $round, $rounds);
		await_draws($_, 20) foreach $native, $core;
		$primary->safe_psql('postgres', q{
			CREATE TABLE IF NOT EXISTS t (id bigserial);
			SELECT snowflake_next_id(5, 't_id_seq'), nextval('t_id_seq'), snowflake_next_id(5, 't_id_seq');
			SELECT snowflake_advance('t_id_seq', snowflake_encode(now() + interval '5 min', 5, 0));
			ALTER SEQUENCE t_id_seq SET UNLOGGED;
			ALTER SEQUENCE t_id_seq SET LOGGED;
			SELECT snowflake_next_id(5, 't_id_seq');
			TRUNCATE t RESTART IDENTITY;
			SELECT snowflake_next_id(5, 't_id_seq')});
		await_standby();
	}
	report_beside_core($fault, $rounds, [ $native, $core ]);
	await_standby();
	is(sequences_behind('postgres'), '', 'load: no sequence is behind on the standby');
};

$standby->stop;
$primary->stop;
done_testing();
