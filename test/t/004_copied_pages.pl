# A lease is not valid on a copy of its page: the first draw from a copied or replaced page writes a
# record.
#
# The page of a sequence is copied, or replaced, by SET LOGGED, by a transaction whose WAL is
# skipped (wal_level=minimal), by CREATE DATABASE and by RESTART. Nothing was logged ahead for the
# new page, so without that record a crash would repeat the ID. The clock goes back across each
# crash; otherwise it would keep the IDs apart. nextval() goes through the same commands, where they
# are meant to keep its value.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

plan skip_all => 'libfaketime is not installed: with the right clock nothing could fail here'
	unless libfaketime();

my $clock = new_clock();
my $node = new_server('copies', clock => $clock);

# Each script runs in one session and takes less time than a lease. The client has seen all its IDs
# when the script is over. %1$s stands for the sequence.
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

# The row of the table that a script belongs to, if any.
sub fault_of
{
	my ($way, $wal_level) = @_;
	return 'a sequence set LOGGED, then a crash' if $way =~ /LOGGED/;
	return 'a sequence made and used in one transaction, wal_level=minimal, then a crash'
		if $way =~ /^made and used/ && $wal_level eq 'minimal';
	return;
}

my %trials_of;

sub take_down
{
	my ($fault, $native, $core) = @_;
	push @{ $trials_of{$fault}{native} }, findings_from($native);
	push @{ $trials_of{$fault}{core} }, findings_from($core);
	return;
}

sub ids_in { return grep { /^\d+$/ } split /\n/, $_[0] }

subtest 'no ID is repeated across a crash, whatever was done with the sequence' => sub {
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
			my $fault = fault_of($way, $wal_level);
			(my $core_script = $ways{$way}) =~ s/snowflake_next_id\(5, /nextval(/g;
			$drawn{$sequence} = {
				way => $way,
				fault => $fault,
				ids => [ ids_in($node->safe_psql('postgres', sprintf $ways{$way}, lc $sequence)) ],
				core_ids => $fault
				? [ ids_in($node->safe_psql('postgres', sprintf $core_script, lc "core_$sequence")) ]
				: [] };
		}
		crash($node);
		set_clock($clock, $clock->{offset} - 600);
		start_server($node, $clock);
		foreach my $sequence (sort keys %drawn)
		{
			my ($way, $fault, $ids, $core_ids) = @{ $drawn{$sequence} }{qw(way fault ids core_ids)};
			push @$ids, draw($node, lc $sequence);
			is_strictly_increasing("wal_level=$wal_level, $way: no ID repeated across a crash", $ids);
			next if !$fault;
			push @$core_ids, $node->safe_psql('postgres', "SELECT nextval('core_$sequence')");
			take_down($fault, $ids, $core_ids);
		}
	}
};

# A copied database has the positions of its template, but not the leases. Copy and template are
# checked apart, each together with the ID that was drawn before the copy.
subtest 'a copied database and its template repeat no ID' => sub {
	foreach my $strategy (qw(wal_log file_copy))
	{
		$node->safe_psql('postgres', "CREATE DATABASE template_$strategy");
		$node->safe_psql("template_$strategy",
			'CREATE EXTENSION snowflake; CREATE SEQUENCE s; CREATE SEQUENCE core_s');
		my $core_draw = q{SELECT nextval('core_s')};
		my $before = draw($node, 's', "template_$strategy");
		my $core_before = $node->safe_psql("template_$strategy", $core_draw);
		$node->safe_psql('postgres',
			"CREATE DATABASE copy_$strategy TEMPLATE template_$strategy STRATEGY $strategy");
		my @ids = map { draw($node, 's', "copy_$strategy") } 1 .. 2;
		my @core_ids = map { $node->safe_psql("copy_$strategy", $core_draw) } 1 .. 2;
		my $in_template = draw($node, 's', "template_$strategy");
		crash($node);
		set_clock($clock, $clock->{offset} - 600);
		start_server($node, $clock);
		push @ids, draw($node, 's', "copy_$strategy");
		push @core_ids, $node->safe_psql("copy_$strategy", $core_draw);
		is_strictly_increasing("CREATE DATABASE ... STRATEGY $strategy: the copy repeats no ID",
			[ $before, @ids ]);
		is_strictly_increasing("CREATE DATABASE ... STRATEGY $strategy: nor does its template",
			[ $before, $in_template, draw($node, 's', "template_$strategy") ]);
		take_down("CREATE DATABASE ... STRATEGY $strategy, then a crash",
			[ $before, @ids ], [ $core_before, @core_ids ]);
	}
};

subtest 'the same faults with nextval()' => sub {
	foreach my $fault (sort keys %trials_of)
	{
		my ($native, $core) = @{ $trials_of{$fault} }{qw(native core)};
		report_fault(
			fault => $fault,
			trials => scalar @$native,
			native => $native,
			rival => 'nextval()',
			rival_findings => $core);
	}
};

$node->stop;
done_testing();
