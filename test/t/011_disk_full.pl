# If the disk of the WAL is full, the server stops, as PostgreSQL does if it cannot write WAL. When
# there is space again it is started, and no ID is repeated or out of order, although the clock was
# set back in the meantime. nextval() goes through the same.
#
# The small disk is the directory in SNOWFLAKE_TEST_SMALL_DISK; without it, a tmpfs in a mount
# namespace of this test, if the system lets an ordinary user create one.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

# Before any other module, because the modules start the test's output: the test starts itself again
# in a namespace of its own, where it mounts the disk as root and goes on as the same user as
# before.
my $small_disk;
BEGIN
{
	$small_disk = $ENV{SNOWFLAKE_TEST_SMALL_DISK};
	my $folder = 'tmp_check/small_disk';
	my @as_root = ('unshare', '--user', '--map-root-user', '--mount', 'sh', '-c');
	my $mount = "mkdir -p $folder && mount -t tmpfs -o size=48m small_disk $folder";
	if (!$small_disk && system('sh', '-c', '"$@" 2>/dev/null', 'sh', @as_root, $mount) == 0)
	{
		local $ENV{SNOWFLAKE_TEST_SMALL_DISK} = $folder;
		local $ENV{PERL5LIB} = join q{:}, @INC;
		my $as_before = "unshare --user --map-user=$> --map-group=" . (split ' ', $))[0];
		exec @as_root, "$mount && exec $as_before -- \"\$@\"", 'sh', $^X, $0;
	}
}

use Cwd qw(abs_path);
use FaultTest;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

plan skip_all => 'no small disk: SNOWFLAKE_TEST_SMALL_DISK is not set, and none can be mounted'
	unless $small_disk;
$small_disk = abs_path($small_disk);
my $kilobytes = (split ' ', qx(df -Pk '$small_disk' | tail -n 1))[3];
die "$small_disk is no small disk: the test would fill all $kilobytes kB that are free there"
	if $kilobytes > 200_000;
seed_random();

# Writes a file that takes all the space left.
sub fill_disk
{
	open my $file, '>', "$small_disk/ballast" or die "could not open $small_disk/ballast: $!";
	my $block = "\0" x 65536;
	while (length $block)
	{
		my $written = syswrite $file, $block;
		substr($block, int(length($block) / 2)) = '' if !defined $written || $written < length $block;
	}
	close $file;
	return;
}

sub give_space
{
	unlink "$small_disk/ballast" or die "could not remove $small_disk/ballast: $!";
	return;
}

# A large max_wal_size keeps WAL files while the disk is filled; a small one lets a checkpoint
# remove them afterwards.
sub set_max_wal_size
{
	my ($node, $size) = @_;
	$node->append_conf('postgresql.conf', "max_wal_size = '$size'");
	return;
}

my $clock = libfaketime() ? new_clock() : undef;
note('libfaketime is not installed: the clock stays right') unless $clock;
my $node = new_server(
	'full',
	clock => $clock,
	init => { extra => [ '--waldir', "$small_disk/wal", '--wal-segsize', 1 ] },
	conf => "min_wal_size = 2MB\ncheckpoint_timeout = 1h\nsnowflake.max_drift = -1\n");
$node->safe_psql('postgres', 'CREATE SEQUENCE core_s; CREATE TABLE filler (n integer, text text)');

my $fault = 'the disk is full, then space again, and the clock goes back';
my $trials = trials(1, 50);
my @tolerate = ('--tolerate', '53100');
my $native = observe($node,
	clients => [ 'single', 'mixed:300', 'next_ids:20000' ], arguments => \@tolerate);
my $core = observe($node, generator => 'nextval', sequence => 'core_s',
	clients => [ 'single', 'mixed:300' ], arguments => \@tolerate);

subtest 'the disk is full, then space again' => sub {
	my $full = 0;
	foreach my $trial (1 .. $trials)
	{
		show_progress($fault, $trial, $trials);
		set_max_wal_size($node, '1GB');
		$node->reload;
		await_draws($_) foreach $native, $core;

		my $log_before = -s $node->logfile;
		fill_disk();
		await('the server stops', sub {
				$node->psql('postgres',
					q{INSERT INTO filler SELECT n, repeat('x', 500) FROM generate_series(1, 1000) AS n});
				return !-e $node->data_dir . '/postmaster.pid'; });
		$node->kill9;    # it is dead; this updates the node's state
		$full++ if slurp_file($node->logfile, $log_before) =~ /PANIC:.*No space left on device/;

		give_space();
		set_clock($clock, $clock->{offset} - 60 - rand 300) if $clock;
		set_max_wal_size($node, '4MB');
		start_server($node, $clock);
		$node->safe_psql('postgres', 'TRUNCATE filler; CHECKPOINT');
		await_draws($_) foreach $native, $core;
	}
	is($full, $trials, 'each time it was the full disk that stopped the server');
	report_beside_core($fault, $trials, [ $native, $core ], only_committed => defined $clock);
};

$node->stop;
done_testing();
