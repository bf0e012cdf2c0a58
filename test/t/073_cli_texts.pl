# Texts of other roles in the command: NOTICEs that code of a shard raises, names that look like the headings of pg_dump.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $node = new_server('texts');
$node->safe_psql('postgres', "SELECT snowflake_create_shard($_, 'insta$_')") foreach 5 .. 7;

subtest 'NOTICEs of a shard' => sub {
	$node->safe_psql('postgres', q{
		CREATE FUNCTION insta5.loud(n integer) RETURNS integer LANGUAGE plpgsql AS $$
		BEGIN
			FOR i IN 1..37 LOOP RAISE NOTICE E'red \x1b[31m\nsnowflake-shard: forged'; END LOOP;
			FOR i IN 1..n LOOP RAISE WARNING 'number %', i; END LOOP;
			RETURN n;
		END $$;
		CREATE FUNCTION insta6.loud(n integer) RETURNS integer LANGUAGE plpgsql AS $$
			BEGIN RAISE NOTICE '%', repeat('long ', 100000); RETURN n; END $$;
		CREATE FUNCTION insta7.loud(n integer) RETURNS integer LANGUAGE sql RETURN n});
	foreach my $verb ([ 'query' ], [ 'run', '--shards', '5-7' ])
	{
		my ($status, undef, $err) = run_shard($program, @$verb, $node, '--sql', 'SELECT loud(0)');
		is($status, 0, "$verb->[0] succeeds") or diag($err);
		unlike($err, qr/\e\[31m/, 'a control character is not sent to the terminal');
		is(() = $err =~ /^snowflake-shard: shard 5: NOTICE:  red \\x1B\[31m, \d+ times$/mg, 1, 'equal ones are one message');
		unlike($err, qr/^snowflake-shard: forged/m, 'a line of it does not look like one of the command');
		like($err, qr/^snowflake-shard: shard 6: NOTICE:  long /m, 'the shard is named');
		ok(length($err) < 10000, 'a long one is cut');
		unlike($err, qr/shard 7/, 'nothing of a shard without notices');
	}
	my (undef, undef, $err) = run_shard($program, 'query', $node, '--shards', '5', '--sql', 'SELECT loud(1000)');
	is(() = $err =~ /: WARNING:  number /g, 19, 'at most 20 different ones are printed');
	like($err, qr/^snowflake-shard: shard 5: and \d+ more notices$/m, 'the others are counted');
};

# pg_dump writes "-- Name: photos; Type: TABLE; Schema: insta5; Owner: app" above each object.
subtest 'names that look like headings of a dump' => sub {
	my @forging = ('e; Schema: insta7', 'f; Type: TABLE; Schema: insta7', 'g; Schema: insta7; Owner: x');
	foreach my $i (0 .. 2)
	{
		$node->safe_psql('postgres', sprintf(q{
			SELECT snowflake_create_shard(%d, '%s');
			CREATE TABLE "%2$s".forged ();
			CREATE TABLE "%2$s"."x; Type: ACL; Schema: insta7; Owner: x" ()}, 8 + $i, $forging[$i]));
	}
	my ($status, $rows, $err) = shard_json($program, 'diff', $node, '--template', 'insta7');
	my %added;
	push @{ $added{ $_->{shard} } }, $_->{object} foreach grep { $_->{change} eq 'added' && $_->{object} =~ /^TABLE / } @$rows;
	foreach my $shard (8 .. 10)
	{
		is(join(', ', sort @{ $added{$shard} // [] }), 'TABLE forged, TABLE x; Type: ACL; Schema: insta7; Owner: x',
			"the tables of shard $shard are its own") or diag($err);
	}
	($status, $rows, $err) = shard_json($program, 'diff', $node, '--template', 'insta6', '--shards', '7-10');
	is(join(', ', map { $_->{object} } grep { $_->{shard} == 7 && $_->{object} =~ /TABLE/ } @$rows), '', 'shard 7 has none of them')
	  or diag($err);
	$node->safe_psql('postgres', 'CREATE ROLE "a; Type: ACL; Schema: insta7; Owner: b"');
	($status, undef, $err) = run_shard($program, 'diff', $node, '--template', 'insta7');
	is($status, 3, 'a role of such a name is refused');
	like($err, qr/role "a; Type: ACL; Schema: insta7; Owner: b".*\nHINT:  .*another name/, 'and named') or diag($err);
	$node->safe_psql('postgres', 'DROP ROLE "a; Type: ACL; Schema: insta7; Owner: b"');
};

$node->stop;
done_testing();
