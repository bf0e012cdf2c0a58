# The page of a sequence is corrupted. snowflake_check() and the views show nothing of it, and go on with all else.
# A draw from it fails.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

# A wrong checksum would be found before the page is looked at.
my $node = new_server('corrupted', conf => 'ignore_checksum_failure = on');
$node->safe_psql('postgres', q{
	CREATE SCHEMA one;
	CREATE SEQUENCE one.zeros;
	CREATE SEQUENCE one.no_magic;
	CREATE SEQUENCE one.sound;
	CREATE TABLE one.t (
		zeros bigint PRIMARY KEY DEFAULT snowflake_next_id(1, 'one.zeros'),
		no_magic bigint UNIQUE DEFAULT snowflake_next_id(1, 'one.no_magic'),
		sound bigint UNIQUE DEFAULT snowflake_next_id(1, 'one.sound'));
	INSERT INTO one.t DEFAULT VALUES;
	CHECKPOINT;
});
my %corrupted = (zeros => [ 0, 8192 ], no_magic => [ 8192 - 8, 8 ]);
my %path;
$path{$_} = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('one.$_')")
	foreach keys %corrupted;
$node->stop;
foreach my $name (keys %corrupted)
{
	my ($offset, $length) = @{ $corrupted{$name} };
	open my $file, '+<:raw', $path{$name} or die "$path{$name}: $!";
	seek $file, $offset, 0 or die $!;
	print $file "\0" x $length;
	close $file or die $!;
}
$node->start;

subtest 'the views and snowflake_check() go on' => sub {
	is($node->safe_psql('postgres', 'SELECT seq, last_id_at IS NOT NULL FROM snowflake_sequences ORDER BY seq::text'),
		"one.no_magic|f\none.sound|t\none.zeros|f", 'the view shows the time of the sound sequence alone');
	is(sqlstate($node, 'SELECT * FROM snowflake_check()'), '', 'snowflake_check() goes on');
};

subtest 'only draws from the corrupted sequences fail' => sub {
	foreach my $name (sort keys %corrupted)
	{
		is(sqlstate($node, "SELECT snowflake_next_id(1, 'one.$name')"), 'XX000', "a draw from the sequence $name fails");
		is( sqlstate($node, qq{
				DO \$\$ BEGIN
					PERFORM snowflake_next_id(1, 'one.$name');
				EXCEPTION WHEN internal_error THEN
					PERFORM last_value FROM one.sound;
				END \$\$}),
			'', '... and its page is not locked when a subtransaction has caught that');
	}
	is(sqlstate($node, "SELECT snowflake_next_id(1, 'one.sound')"), '', 'a draw from the sound one does not');
};

$node->stop;
done_testing();
