# Texts of other roles in the command: NOTICEs that code of a shard raises, names that look like the headings of pg_dump,
# names that are not UTF-8.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
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

# Only a database of encoding SQL_ASCII takes them. Its server does not send them to a client of another encoding.
subtest 'names that are not UTF-8' => sub {
	my $dsn = $node->connstr('ascii');
	my $script = PostgreSQL::Test::Utils::tempdir . '/names.sql';
	my $run = sub {
		open my $file, '>:raw', $script or die $!;
		print $file @_;
		close $file;
		command_ok([ 'psql', '-Xqc', 'SET client_encoding = SQL_ASCII', '-v', 'ON_ERROR_STOP=1', '-f', $script, $dsn ], 'psql');
	};
	$node->safe_psql('postgres', q{CREATE DATABASE ascii ENCODING SQL_ASCII LOCALE 'C' TEMPLATE template0});
	$run->('CREATE EXTENSION snowflake;', map { "SELECT snowflake_create_shard($_, 'insta$_');" } 5, 6);
	$run->(qq{SELECT snowflake_create_shard(7, 'gr\xc3\xbcn')});
	# Names of that kind, in objects that are no shard, in a shard, and as its owner.
	foreach my $case (
		[ qq{CREATE SCHEMA "x\xff"; CREATE TABLE "x\xff".t ()}, '5-7', '' ],
		[ qq{SELECT snowflake_create_shard(8, 'insta8\xff')}, '5-7', qr/left out, .* not UTF-8: insta8\\377 of shard 8\nHINT/ ],
		[ qq{CREATE ROLE "r\xff"; ALTER SCHEMA insta6 OWNER TO "r\xff"}, '5, 7', qr/insta6 of shard 6, insta8\\377 of shard 8\n/ ])
	{
		my ($sql, $shards, $warning) = @$case;
		$run->($sql);
		foreach my $verb ([ 'list' ], [ 'query', '--sql', 'SELECT 1' ], [ 'verify' ], [ 'diff', '--template', 'insta5' ])
		{
			my ($status, $out, $err) = run_shard($program, $verb->[0], $dsn, @$verb[ 1 .. $#$verb ]);
			my $is_missed = $warning && $verb->[0] eq 'query';    # its rows would be taken for those of all
			ok($status == ($is_missed ? 3 : 0) && ($warning ? $err =~ $warning && $err !~ /left out.*left out/s : $err eq ''),
				"$verb->[0] works on the others") or diag("$status $out$err");
		}
		my ($status, $rows, $err) = shard_json($program, 'query', $dsn, '--sql', 'SELECT 1');
		is(join(', ', map { $_->{shard} } @$rows), $shards eq '5-7' ? '5, 6, 7' : $shards, 'these have answered') or diag($err);
		like($err, qr/^snowflake-shard: shards? [68]\S*(, 8)?: the name of its schema, or of the owner, is not UTF-8$/m,
			'the others are named') if $warning;
	}
	# An object of such a name that takes the number of another shard.
	$run->(qq{CREATE SCHEMA twin; CREATE SEQUENCE twin.s;
		CREATE TABLE twin."t\xff" (id bigint DEFAULT snowflake_next_id(5, 'twin.s'))});
	my ($status, $rows, $err) = shard_json($program, 'query', $dsn, '--sql', 'SELECT 1');
	is(join(', ', map { $_->{shard} } @$rows), 7, 'the others answer') or diag($err);
	like($err, qr/shard 5 has several schemas .*twin\."t\?"/s, 'the object is shown');
};

$node->stop;
done_testing();
