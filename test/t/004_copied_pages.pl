# A lease does not travel with a copy of its page. The page of a sequence is copied, or replaced, by
# SET LOGGED, by a transaction whose WAL is skipped (wal_level=minimal), by CREATE DATABASE and by
# RESTART: nothing was logged ahead for the new page, so what is drawn from it at once has to be
# logged, or a crash brings it back.
#
# The clock goes back across each crash, or it would keep the IDs apart by itself.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

plan skip_all => 'libfaketime is not installed: with the right clock nothing could fail here'
  unless libfaketime();

my $clock = new_clock();
my $node = new_server('copies', clock => $clock);

# Each is run in one session, at once, so that a lease lasts to its end. All of its IDs are shown to
# the client when their transaction has committed. For %1$s stands the sequence.
my $draw = q{SELECT snowflake_next_id(5, '%1$s');};
my %ways = (
	'UNLOGGED to LOGGED' => qq{
		CREATE UNLOGGED SEQUENCE %1\$s; $draw
		ALTER SEQUENCE %1\$s SET LOGGED; $draw $draw},
	'LOGGED to UNLOGGED and back' => qq{
		CREATE SEQUENCE %1\$s; $draw
		ALTER SEQUENCE %1\$s SET UNLOGGED;
		ALTER SEQUENCE %1\$s SET LOGGED; $draw $draw},
	'LOGGED to UNLOGGED and back, used in between' => qq{
		CREATE SEQUENCE %1\$s; $draw
		ALTER SEQUENCE %1\$s SET UNLOGGED; $draw
		ALTER SEQUENCE %1\$s SET LOGGED; $draw $draw},
	'made, used and set LOGGED in one transaction' => qq{
		BEGIN; CREATE UNLOGGED SEQUENCE %1\$s; $draw
		ALTER SEQUENCE %1\$s SET LOGGED; $draw COMMIT; $draw},
	'made and used in one transaction' => qq{
		BEGIN; CREATE SEQUENCE %1\$s; $draw COMMIT;},
	'made and used in one transaction, used after it' => qq{
		BEGIN; CREATE SEQUENCE %1\$s; $draw COMMIT; $draw $draw},
	'RESTART' => qq{
		CREATE SEQUENCE %1\$s; $draw
		SELECT pg_sleep(0.002); ALTER SEQUENCE %1\$s RESTART; $draw $draw},
	'RESTART in a transaction' => qq{
		CREATE SEQUENCE %1\$s; $draw
		BEGIN; SELECT pg_sleep(0.002); ALTER SEQUENCE %1\$s RESTART; $draw COMMIT; $draw},
	'RESTART rolled back' => qq{
		CREATE SEQUENCE %1\$s; $draw
		BEGIN; SELECT pg_sleep(0.002); ALTER SEQUENCE %1\$s RESTART; $draw ROLLBACK; $draw},
	'CACHE changed' => qq{
		CREATE SEQUENCE %1\$s; $draw
		ALTER SEQUENCE %1\$s CACHE 10; $draw $draw},
	'TRUNCATE RESTART IDENTITY' => qq{
		CREATE TABLE of_%1\$s (id bigserial); ALTER SEQUENCE of_%1\$s_id_seq RENAME TO %1\$s; $draw
		SELECT pg_sleep(0.002); TRUNCATE of_%1\$s RESTART IDENTITY; $draw $draw},
	'TRUNCATE RESTART IDENTITY in a transaction' => qq{
		CREATE TABLE of_%1\$s (id bigserial); ALTER SEQUENCE of_%1\$s_id_seq RENAME TO %1\$s; $draw
		BEGIN; SELECT pg_sleep(0.002); TRUNCATE of_%1\$s RESTART IDENTITY; $draw COMMIT; $draw},
	"core's setval and nextval in between" => qq{
		CREATE SEQUENCE %1\$s; $draw
		SELECT FROM nextval('%1\$s'); $draw
		SELECT FROM setval('%1\$s', (SELECT last_value + 1 FROM %1\$s)); $draw $draw});

sub ids_in { return grep { /^\d+$/ } split /\n/, $_[0] }

foreach my $wal_level (qw(minimal replica))
{
	$node->append_conf('postgresql.conf',
		"wal_level = $wal_level\nmax_wal_senders = " . ($wal_level eq 'minimal' ? 0 : 2));
	$node->stop;
	start_server($node, $clock);

	my %drawn;
	foreach my $way (sort keys %ways)
	{
		(my $sequence = "${wal_level}_$way") =~ s/\W+/_/g;
		$drawn{$sequence} = {
			way => $way,
			ids => [ ids_in($node->safe_psql('postgres', sprintf $ways{$way}, lc $sequence)) ] };
	}
	crash($node);
	set_clock($clock, $clock->{offset} - 600);
	start_server($node, $clock);
	foreach my $sequence (sort keys %drawn)
	{
		my ($way, $ids) = @{ $drawn{$sequence} }{qw(way ids)};
		is_strictly_increasing("wal_level=$wal_level, $way: no ID repeated across a crash",
			[ @$ids, draw($node, lc $sequence) ]);
	}
}

# A copied database starts with the positions, and without the leases, of its template. Its IDs are
# compared with each other: what the template made, both databases know.
foreach my $strategy (qw(wal_log file_copy))
{
	$node->safe_psql('postgres', "CREATE DATABASE template_$strategy");
	$node->safe_psql("template_$strategy", 'CREATE EXTENSION snowflake; CREATE SEQUENCE s');
	my $before = draw($node, 's', "template_$strategy");
	$node->safe_psql('postgres',
		"CREATE DATABASE copy_$strategy TEMPLATE template_$strategy STRATEGY $strategy");
	my @ids = map { draw($node, 's', "copy_$strategy") } 1 .. 2;
	my $in_template = draw($node, 's', "template_$strategy");
	crash($node);
	set_clock($clock, $clock->{offset} - 600);
	start_server($node, $clock);
	is_strictly_increasing("CREATE DATABASE ... STRATEGY $strategy: the copy repeats no ID",
		[ $before, @ids, draw($node, 's', "copy_$strategy") ]);
	is_strictly_increasing("CREATE DATABASE ... STRATEGY $strategy: nor does its template",
		[ $before, $in_template, draw($node, 's', "template_$strategy") ]);
}

$node->stop;
done_testing();
