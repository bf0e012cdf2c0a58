# Base backup, recovery to a point in time and pg_upgrade, under load, onto a server whose clock is
# slow: no ID that was committed before the backup's end, the recovery target or the shutdown is
# repeated, and later IDs are greater. The IDs that the old server made after that are lost on purpose, like
# the rows that it wrote; only the clock protects these IDs.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use File::Path qw(rmtree);
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

seed_random();
plan skip_all => 'libfaketime is not installed' unless libfaketime();

my @clients = (clients => [ 'single', 'mixed:300' ], arguments => [ '--rest', 5 ]);
my $archived = "wal_level = replica\nmax_wal_senders = 4\n";

# Two observers on the node, or on the first of several that accepts writes: one of our clients on
# sequence s, one of nextval().
sub observe_both
{
	my ($node, %options) = @_;
	my @observers = (
		observe($node, @clients, %options),
		observe($node, @clients, %options, generator => 'nextval', sequence => 'core_s'));
	await_draws($_) foreach @observers;
	return @observers;
}

sub start_slow
{
	my ($node) = @_;
	$node->{clock} //= new_clock();
	set_clock($node->{clock}, -rand 40 * 60);
	start_server($node, $node->{clock});
	return;
}

# Two servers take turns: one is under load and crashes, the other is restored from the backup that
# $save->($node, $directory, @observers) leaves in the directory, with the settings that it returns
# and with a slow clock. Then that clock is set right.
sub restorations
{
	my ($fault, $trials, $not_promised, $save) = @_;
	my ($name) = $fault =~ /(\w+)$/;
	my $directory = PostgreSQL::Test::Utils::tempdir();
	my @nodes = (
		new_server("old_$name", conf => $archived,
			init => { allows_streaming => 1, has_archiving => 1, extra => ['--wal-segsize=1'] }),
		PostgreSQL::Test::Cluster->new("new_$name"));
	mkdir $nodes[1]->archive_dir;
	$nodes[0]->safe_psql('postgres', 'CREATE SEQUENCE core_s');
	my @observers = observe_both($nodes[0], nodes => [@nodes]);
	foreach my $trial (1 .. $trials)
	{
		show_progress($fault, $trial, $trials);
		my ($old, $new) = @nodes;
		my $settings = $save->($old, "$directory/backup", @observers);
		await_draws($_) foreach @observers;
		crash($old);

		rmtree($new->data_dir);
		rename "$directory/backup", $new->data_dir or die "could not rename the backup: $!";
		$new->append_conf('postgresql.conf', sprintf "port = %d\narchive_command = 'cp %%p %s/%%f'\n%s",
			$new->port, $new->archive_dir, $settings);
		start_slow($new);
		$new->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()')
			or die 'recovery does not end';
		unlink glob($old->archive_dir . '/*');

		await_sessions($new, @observers);
		await_draws($_, 10) foreach @observers;
		set_clock($new->{clock}, 0);
		@nodes = reverse @nodes;
	}
	report_beside_core($fault, $trials, \@observers, not_promised => $not_promised);
	foreach my $node (@nodes)
	{
		$node->stop('immediate');
		$node->clean_node;
	}
	return;
}

sub start_base_backup
{
	my ($node, $directory, @arguments) = @_;
	return IPC::Run::start(
		[
			'pg_basebackup', '--checkpoint=fast', '--no-sync', '-D', $directory, '-d', $node->connstr,
			@arguments
		]);
}

# A base backup. The clients are forsaken at a random moment before its end, which its manifest
# tells; if the end came first, it is taken again.
sub base_backup
{
	my ($node, $directory, @observers) = @_;
	for (;;)
	{
		my $backup = start_base_backup($node, $directory, '--max-rate=32M');
		usleep(int rand 700_000);
		forsake($_) foreach @observers;
		my $seen = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
		$backup->finish or die 'pg_basebackup failed';
		my $manifest = decode_json(slurp_file("$directory/backup_manifest"));
		my $end = $manifest->{'WAL-Ranges'}[-1]{'End-LSN'};
		return ''
			if $node->safe_psql('postgres', "SELECT '$seen'::pg_lsn <= '$end'::pg_lsn") eq 't';
		rmtree($directory);
	}
}

subtest 'a base backup' => sub {
	restorations(
		'restored from a base backup',
		trials(1, 20),
		'made after the end of the backup',
		\&base_backup);
};

# Three kinds of recovery target, in turn.
my %target = (
	time => 'SELECT clock_timestamp()',
	lsn  => 'SELECT pg_current_wal_insert_lsn()',
	name => q{SELECT 'point' FROM pg_create_restore_point('point')});
my @kinds = sort keys %target;

sub backup_and_target
{
	my ($node, $directory, @observers) = @_;
	start_base_backup($node, $directory)->finish or die 'pg_basebackup failed';
	usleep(int rand 500_000);
	forsake($_) foreach @observers;
	my $kind = $kinds[0];
	my $target = $node->safe_psql('postgres', $target{$kind});
	push @kinds, shift @kinds;

	# Recovery to a time ends before the first commit after that time, so there must be one.
	await_draws($_) foreach @observers;
	$node->safe_psql('postgres', 'SELECT pg_current_xact_id()');
	my $segment = $node->safe_psql('postgres', 'SELECT pg_walfile_name(pg_switch_wal())');
	await('the last WAL is archived', sub { -e $node->archive_dir . "/$segment" });
	append_to_file("$directory/recovery.signal", '');
	return sprintf "restore_command = 'cp %s/%%f %%p'\nrecovery_target_action = promote\n"
		. join('', map { sprintf "recovery_target_%s = '%s'\n", $_, $_ eq $kind ? $target : '' } @kinds),
		$node->archive_dir;
}

subtest 'recovery to a target' => sub {
	restorations(
		'recovered to a time, an LSN or a restore point',
		trials(3, 20),
		'made after the recovery target',
		\&backup_and_target);
};

# The old server is stopped and not crashed, so all IDs that were seen are promised. It is of the
# same version, or of the installation in the environment variable "oldinstall", as in PostgreSQL's
# own tests, which must have the extension.
subtest 'pg_upgrade' => sub {
	my $fault = 'upgraded by pg_upgrade';
	my $trials = trials(1, 20);
	my @found = ([], []);
	foreach my $trial (1 .. $trials)
	{
		show_progress($fault, $trial, $trials);
		my %init = (extra => [ '--wal-segsize=1', '--locale=C', '--encoding=UTF8' ]);
		my $old = new_server("old_$trial", init => \%init, install_path => $ENV{oldinstall});
		my $new = PostgreSQL::Test::Cluster->new("upgraded_$trial");
		$new->init(%init);
		$old->safe_psql('postgres', 'CREATE SEQUENCE core_s');
		my @observers = observe_both($old, nodes => [ $old, $new ]);
		usleep(int rand 500_000);
		$old->stop;

		# The sockets of pg_upgrade are in a directory where no client looks.
		my $home = PostgreSQL::Test::Utils::tempdir_short();
		my $upgraded = IPC::Run::run(
			[
				'pg_upgrade', '--no-sync',
				'-d', $old->data_dir, '-b', $old->config_data('--bindir'), '-p', $old->port,
				'-D', $new->data_dir, '-B', $new->config_data('--bindir'), '-P', $new->port,
				'-s', $home
			],
			'>', \my $output, '2>&1', init => sub { chdir $home });
		die "pg_upgrade failed: $output" if !$upgraded;
		start_slow($new);
		await_sessions($new, @observers);
		await_draws($_, 10) foreach @observers;
		push @{ $found[$_] }, findings_of($observers[$_]) foreach 0, 1;
		$new->stop('immediate');
		$_->clean_node foreach $old, $new;
	}
	report_fault(
		fault          => $fault,
		trials         => $trials,
		native         => $found[0],
		rival          => 'nextval()',
		rival_findings => $found[1]);
};

done_testing();
