# snowflake-shard query --since: each run prints what is new in all shards. It is killed at random under load: the file that it
# appends to has each row once. What it refuses; a shard that waits too long; rights of the owner; an extension of an earlier
# version; several sequences. 089_query_since_kinds.pl has the kinds of tables.
#
#   SNOWFLAKE_TEST_CYCLES   the number of kills (50)
#   SNOWFLAKE_TEST_SEED     as an earlier run has printed it

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ClientTest;
use FaultTest;
use IPC::Run;
use JSON::PP;
use POSIX ();
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

my $program = shard_program();
seed_random();
my $kills = trials(50, 1000);
my $shards = 4;

my $node = new_server('since', conf => "max_connections = 60\n");
$node->safe_psql('postgres', 'CREATE ROLE app LOGIN');
foreach my $shard (0 .. $shards - 1)
{
	$node->safe_psql('postgres', qq{
		SELECT snowflake_create_shard($shard, 'insta$shard');
		CREATE TABLE insta$shard.photos (id bigint PRIMARY KEY DEFAULT insta$shard.next_id(), caption text)});
}
# With this one the rows are read with the rights of its owner.
$node->safe_psql('postgres', 'ALTER SCHEMA insta1 OWNER TO app; ALTER TABLE insta1.photos OWNER TO app;
	ALTER SEQUENCE insta1.table_id_seq OWNER TO app');

my $dir = PostgreSQL::Test::Utils::tempdir;
my $file = "$dir/photos.json";
my $output = "$dir/photos.csv";
my $sql = 'SELECT id, caption FROM photos WHERE id > $1 AND id <= $2 ORDER BY id';
my @query = ('query', $node->connstr('postgres'), '--since', $file, '--sql', $sql, '--jobs', '2');

sub ids_printed
{
	my @lines = split /\n/, slurp_file($output);
	return map { /^\d,insta\d,(\d{19}),x$/ ? $1 : () } @lines;
}

subtest 'a run prints what has come since the last one' => sub {
	my ($status, $out, $err) = run_shard($program, @query, '--format', 'csv');
	is("$status $out", "0 shard,schema,id,caption\n", 'nothing is there') or diag($err);
	$node->safe_psql('postgres', "INSERT INTO insta$_.photos (caption) VALUES ('first')") foreach 0 .. $shards - 1;
	($status, $out) = run_shard($program, @query, '--format', 'csv');
	is(() = $out =~ /^\d,insta\d,\d+,first$/mg, $shards, 'a row of each shard, without a second heading');
	is((run_shard($program, @query, '--format', 'csv'))[1], '', 'and none again');
	my @lines = map { decode_json($_) } split /\n/, slurp_file($file);
	is(join(' ', map { $_->{shard} } @lines), '0 1 2 3', 'the file has a line for each shard');
	is($lines[1]{id}, $node->safe_psql('postgres', 'SELECT max(id) FROM insta1.photos'), 'with the last ID, as text');
	$node->safe_psql('postgres', "INSERT INTO insta2.photos (caption) VALUES ('json')");
	($status, $out) = run_shard($program, @query, '--format', 'json');
	is(decode_json($out)->[0]{caption}, 'json', 'JSON');
};

subtest 'the line that a killed run has left' => sub {
	local $ENV{OUTPUT} = "$dir/torn.csv";
	append_to_file($ENV{OUTPUT}, '0,insta0,40375');
	$node->safe_psql('postgres', "INSERT INTO insta0.photos (caption) VALUES ('whole')");
	command_ok([ 'sh', '-c', 'exec "$0" "$@" >>"$OUTPUT"', $program, @query, '--format', 'csv' ], 'the next run appends');
	like(slurp_file($ENV{OUTPUT}), qr/^0,insta0,40375\n0,insta0,\d+,whole\n\z/, 'and begins a line of its own');
};

subtest 'what it refuses' => sub {
	my $refused = sub {
		my ($message, @arguments) = @_;
		my ($status, $out, $err) = run_shard($program, @query[ 0, 1 ], @arguments);
		ok($status == 2 && $out eq '' && $err =~ $message, "$message") or diag("$status $out$err");
	};
	$refused->(qr/the SQL has no \$1 and \$2/, '--since', $file, '--sql', 'SELECT 1');
	$refused->(qr/--settle-timeout/, '--settle-timeout', '1s', '--sql', 'SELECT 1');
	foreach my $text ('x', '{"shard": 9000, "id": "1"}', '{"shard": 1, "id": 1}', '{"shard": 1, "id": "-1"}',
		qq({"shard": 1, "id": "1"}\n{"shard": 1, "id": "2"}), '{"output": 1}')
	{
		PostgreSQL::Test::Utils::append_to_file("$dir/bad.json", $text);
		$refused->(qr/bad.json, line \d: /, '--since', "$dir/bad.json", '--sql', $sql);
		unlink "$dir/bad.json";
	}
	my ($status, undef, $err) = run_shard($program, @query[ 0 .. 2 ], "$dir/none/f.json", '--sql', $sql);
	ok($status == 3 && $err =~ /cannot open .*none\/f\.json: No such file or directory/, 'a folder that is not there');
	my $before = slurp_file($file);
	$node->safe_psql('postgres', "INSERT INTO insta0.photos (caption) VALUES ('full')");
	IPC::Run::run([ 'sh', '-c', '"$0" "$@" >/dev/full', $program, @query, '--format', 'csv' ], '2>', \$err);
	like($err, qr/the output cannot be written: .*\nThe file of --since is unchanged/, 'a full disk');
	is(slurp_file($file), $before, 'the file is as it was');
	like((run_shard($program, @query, '--format', 'csv'))[1], qr/,full$/m, 'and the row is printed by the next run');
};

# Others may have put a link or a FIFO into a folder where they may write. The command runs as the owner of the folder.
subtest 'a file that is none' => sub {
	my $shared = PostgreSQL::Test::Utils::tempdir;
	append_to_file("$shared/precious", "precious\n");
	symlink 'precious', "$shared/link.json" or die $!;
	POSIX::mkfifo("$shared/fifo.json", 0600) or die $!;
	mkdir "$shared/folder.json" or die $!;
	foreach my $case ([ 'link', 2, qr/link\.json is a symbolic link/ ], [ 'fifo', 2, qr/fifo\.json is no regular file/ ],
		[ 'folder', 3, qr/folder\.json: Is a directory/ ])
	{
		my ($name, $wanted, $message) = @$case;
		my ($status, $out, $err) = run_shard($program, @query[ 0 .. 2 ], "$shared/$name.json", '--sql', $sql);
		ok($status == $wanted && $out eq '' && $err =~ $message, "a $name is refused") or diag("$status $out$err");
	}
	symlink 'precious', "$shared/f.json.new" or die $!;
	is((run_shard($program, 'query', $node->connstr('postgres'), '--since', "$shared/f.json", '--sql', $sql))[0], 0,
		'a link in the place of the new file');
	is(slurp_file("$shared/precious"), "precious\n", 'is not written through');
	ok(!-l "$shared/f.json" && -s "$shared/f.json", 'and the file is a file');
};

subtest 'two commands with one file' => sub {
	my $writer = $node->background_psql('postgres');
	$writer->query_safe("BEGIN; INSERT INTO insta2.photos (caption) VALUES ('locked')");
	my $first = background(@query, '--settle-timeout', '100s');
	await('the first waits', sub { has_ended($first) || $node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'virtualxid'}) });
	my ($status, $out, $err) = run_shard($program, @query);
	ok($status == 3 && $out eq '' && $err =~ /another command works with .*photos\.json just now/, 'the second is refused')
	  or diag("$status $out$err");
	kill_command($first->{h});
	$writer->query_safe('COMMIT');
	$writer->quit;
	($status, $out, $err) = run_shard($program, @query, '--format', 'csv');
	ok($status == 0 && $out =~ /,locked$/m, 'a killed one leaves no lock') or diag("$status $err");
	chmod 0640, $file;
	run_shard($program, @query);
	is((stat $file)[2] & 0777, 0640, 'the file keeps its permissions');
};

subtest 'a shard that waits is left out' => sub {
	my $writer = $node->background_psql('postgres');
	$writer->query_safe("BEGIN; INSERT INTO insta2.photos (caption) VALUES ('open')");
	$node->safe_psql('postgres', "INSERT INTO insta$_.photos (caption) VALUES ('others')") foreach 1, 2;
	my ($status, $out, $err) = run_shard($program, @query, '--format', 'csv', '--settle-timeout', '200ms');
	is($status, 3, 'exit code 3');
	like($err, qr/shard 2: a transaction that has drawn an ID did not end within --settle-timeout\nHINT: .*pg_locks/, 'it is named');
	my ($query) = $err =~ /HINT:  (SELECT pid.*?);/;
	is(() = split(/\n/, $node->safe_psql('postgres', $query)), 1, 'and the query of the hint shows who holds it up');
	like($out, qr/^1,insta1,\d+,others\n\z/, 'the rows of the others are printed');
	$writer->query_safe('COMMIT');
	$writer->quit;
	($status, $out) = run_shard($program, @query, '--format', 'csv');
	like($out, qr/^2,insta2,\d+,open\n2,insta2,\d+,others\n\z/, 'its rows come later, in their order');
};

subtest 'an extension of version 1.0' => sub {
	$node->safe_psql('postgres', 'CREATE DATABASE old');
	$node->safe_psql('old', "CREATE EXTENSION snowflake VERSION '1.0'; SELECT snowflake_create_shard(9, 'insta9')");
	my ($status, undef, $err) = run_shard($program, 'query', $node->connstr('old'), @query[ 2 .. 5 ]);
	ok($status == 3 && $err =~ /has version 1\.0, and .*ALTER EXTENSION snowflake UPDATE TO/s, 'it is told to be updated');
};

subtest 'several sequences, several shards' => sub {
	$node->safe_psql('postgres', q{
		CREATE SCHEMA insta8 AUTHORIZATION app; CREATE SEQUENCE insta8.s; CREATE SEQUENCE insta8.t;
		CREATE SEQUENCE public.counts; SELECT nextval('counts');
		CREATE TABLE insta8.photos (id bigint DEFAULT snowflake_next_id(8, 'insta8.s'), caption text);
		CREATE TABLE insta8.likes (id bigint DEFAULT snowflake_next_id(8, 'insta8.t'));
		ALTER SEQUENCE insta8.s OWNER TO app; ALTER SEQUENCE insta8.t OWNER TO app;
		ALTER TABLE insta8.photos OWNER TO app; ALTER TABLE insta8.likes OWNER TO app;
		INSERT INTO insta8.photos (caption) VALUES ('one')});
	my @eight = (@query, '--shards', '8', '--format', 'csv');
	my ($status, $out, $err) = run_shard($program, @eight);
	like("$status $out", qr/^0 8,insta8,\d+,one$/m, 'a sequence that is not used holds nothing up') or diag($err);
	$node->safe_psql('postgres', "INSERT INTO insta8.likes DEFAULT VALUES; INSERT INTO insta8.photos (caption) VALUES ('two')");
	like((run_shard($program, @eight))[1], qr/\A8,insta8,\d+,two\n\z/, 'nor one that is behind');
	# The owner names a sequence of another role in a DEFAULT.
	$node->safe_psql('postgres', q{SET ROLE app;
		CREATE TABLE insta8.trap (id bigint DEFAULT public.snowflake_next_id(8, 'public.counts'));
		INSERT INTO insta8.photos (caption) VALUES ('three')});
	($status, $out, $err) = run_shard($program, @eight);
	ok($status == 3 && $err =~ /shard 8: .*: column id of table insta8\.trap draws from sequence public\.counts, and role app may not\n/,
		'the rights are those of the owner') or diag("$status $out$err");
	is($node->safe_psql('postgres', 'SELECT last_value FROM counts'), 1, 'who cannot change sequences of others');
	foreach my $case ([ q{9, 'insta8.t'} => qr/make IDs of several shards, or with several epochs/ ],
		[ q{1 + (random() < 2)::int, 'insta8.t'} => qr/is no constant in column id of table insta8.trap/ ])
	{
		$node->safe_psql('postgres', "ALTER TABLE insta8.trap ALTER id SET DEFAULT snowflake_next_id($case->[0])");
		($status, $out, $err) = run_shard($program, @eight);
		ok($status == 3 && $out eq '' && $err =~ /shard 8: .*$case->[1]/, "a DEFAULT with $case->[0]") or diag("$status $out$err");
	}
	$node->safe_psql('postgres', 'DROP SCHEMA insta8 CASCADE; DROP SEQUENCE counts');
};

# The owner of the schema may use it, and so the session that advances sequences.
subtest 'a sequence that the owner of a table may not use' => sub {
	$node->safe_psql('postgres', q{
		SELECT snowflake_create_shard(7, 'insta7'); GRANT USAGE ON SCHEMA insta7 TO app;
		CREATE TABLE insta7.photos (id bigint PRIMARY KEY DEFAULT insta7.next_id(), caption text);
		CREATE TABLE insta7.notes (id bigint); ALTER TABLE insta7.notes OWNER TO app;
		CREATE SEQUENCE public.counts; SELECT nextval('counts'); INSERT INTO insta7.photos (caption) VALUES ('one');
		CREATE ROLE shop LOGIN; GRANT USAGE, UPDATE ON SEQUENCE counts TO shop; ALTER SCHEMA insta7 OWNER TO shop;
		ALTER TABLE insta7.photos OWNER TO shop; ALTER SEQUENCE insta7.table_id_seq OWNER TO shop;
		SET ROLE app; ALTER TABLE insta7.notes ALTER id SET DEFAULT public.snowflake_next_id(7, 'public.counts')});
	my @seven = (@query, '--shards', '7', '--format', 'csv');
	my ($status, $out, $err) = run_shard($program, @seven);
	ok($status == 3 && $out !~ /one/, 'is not advanced');
	like($err, qr/shard 7: .* not advanced .*: column id of table insta7\.notes draws from sequence public\.counts, and role app may not\n/,
		'and named');
	is($node->safe_psql('postgres', 'SELECT last_value FROM counts'), 1, 'and is where it was');
	$node->safe_psql('postgres', 'GRANT USAGE ON SEQUENCE counts TO app');
	($status, $out, $err) = run_shard($program, @seven);
	like("$status $out", qr/^0 (?:shard.*\n)?7,insta7,\d+,one$/m, 'with the right it is') or diag($err);
	$node->safe_psql('postgres', 'DROP TABLE insta7.notes; DROP SEQUENCE counts');
};

# The command would not wait for a row whose ID is of a sequence that it does not know.
subtest 'a function whose body is text' => sub {
	my @seven = (@query, '--shards', '7', '--format', 'csv');
	my $body = q{LANGUAGE plpgsql AS $$ BEGIN RETURN snowflake_next_id(7, 'insta7.other'); END $$};
	$node->safe_psql('postgres', 'CREATE SEQUENCE insta7.other; ALTER SEQUENCE insta7.other OWNER TO shop');
	foreach my $case (
		[ 'insta7.new_id', "CREATE FUNCTION insta7.new_id() RETURNS bigint $body" ],
		[ 'public.new_id', "CREATE FUNCTION new_id() RETURNS bigint $body;
			CREATE TABLE insta7.notes (id bigint DEFAULT new_id())" ],
		[ 'public.fill', "CREATE FUNCTION fill() RETURNS trigger ${\($body =~ s/RETURN (.*?;)/NEW.id := $1 RETURN NEW;/r)};
			CREATE TRIGGER fill BEFORE INSERT ON insta7.photos FOR EACH ROW EXECUTE FUNCTION fill()" ])
	{
		my ($name, $sql) = @$case;
		$node->safe_psql('postgres', $sql);
		my ($status, $out, $err) = run_shard($program, @seven);
		ok($status == 3 && $out eq '' && $err =~ /shard 7: the body of function \Q$name\E\(\) is text that names snowflake_next_id/,
			"$name is refused") or diag("$status $out$err");
		$node->safe_psql('postgres', "DROP FUNCTION $name CASCADE");
	}
	$node->safe_psql('postgres', q{
		CREATE FUNCTION insta7.new_id() RETURNS bigint LANGUAGE sql RETURN snowflake_next_id(7, 'insta7.other');
		INSERT INTO insta7.photos VALUES (insta7.new_id(), 'two')});
	my ($status, $out, $err) = run_shard($program, @seven);
	like("$status $out", qr/^0 7,insta7,\d+,two$/, 'not one that PostgreSQL has parsed') or diag($err);
	$node->safe_psql('postgres', 'DROP SCHEMA insta7 CASCADE');
};

# The rows above the limit, and those below the ID in the file, would never be printed.
subtest 'rows that would be left out' => sub {
	my $query = sub { my ($text) = @_; run_shard($program, @query[ 0 .. 3 ], '--format', 'csv', '--sql', $text) };
	$node->safe_psql('postgres', "INSERT INTO insta0.photos (caption) VALUES ('of two'), ('rows')");
	foreach my $text ("$sql LIMIT 1", "SELECT * FROM ($sql FETCH FIRST ROW ONLY) AS p", "$sql OFFSET 1")
	{
		my ($status, $out, $err) = $query->($text);
		ok($status == 3 && $out eq '' && $err =~ /shards 0-3: ERROR:  a query of new rows has a LIMIT/, $text) or diag($err);
	}
	$node->safe_psql('postgres', q{CREATE FUNCTION insta0.two(bigint, bigint) RETURNS SETOF insta0.photos LANGUAGE sql STABLE
		BEGIN ATOMIC SELECT id, caption FROM insta0.photos WHERE id > $1 AND id <= $2; END});
	my ($status, $out, $err) = run_shard($program, @query[ 0 .. 3 ], '--shards', '0', '--format', 'csv', '--sql', q{
		SELECT id, c FROM two($1, $2), LATERAL (SELECT caption AS c FROM photos p WHERE p.id = two.id LIMIT 1) AS c ORDER BY id});
	like($out, qr/^0,insta0,\d+,of two\n0,insta0,\d+,rows\n\z/m, 'a LIMIT of other rows, and a STABLE function') or diag($err);

	my $before = slurp_file($file);
	my $text = $before =~ s/("shard": 3, "id": ")\d+/${1}9007199254740993000/r;
	unlink $file;
	append_to_file($file, $text);
	($status, $out, $err) = run_shard($program, @query);
	ok($status == 3 && $err =~ /shard 3: file .*photos.json has the ID 9007199254740993000, .* have reached \d+ only/,
		'a file that is ahead of the shard') or diag("$status $out$err");
	like(slurp_file($file), qr/"shard": 3, "id": "9007199254740993000"/, 'keeps its line');
	unlink $file;
	append_to_file($file, $before);
};

subtest 'an output that a run was ended in' => sub {
	my $text = "shard,schema,id,caption\n0,insta0,1,done\n";
	my $torn = $ENV{OUTPUT} = "$dir/quoted.csv";
	append_to_file($torn, "${text}0,insta0,2,torn\n0,insta0,3,\"with a\nquo");
	my ($device, $inode) = stat $torn;
	append_to_file($file, sprintf qq({"output": "%d:%d", "complete": %d}\n), $device, $inode, length $text);
	my $ids = slurp_file($file);
	my @append = ('sh', '-c', 'exec "$0" "$@" >>"$OUTPUT"', $program, @query, '--format', 'csv');
	$node->safe_psql('postgres', qq{INSERT INTO insta0.photos (caption) VALUES ('with a\nquote')});
	my ($status, undef, $err) = ClientTest::run(@append);
	like($err, qr/was ended while it printed: its last 38 bytes were cut off the output/, 'is cut, and it is told');
	like(slurp_file($torn), qr/\A\Q$text\E0,insta0,\d+,"with a\nquote"\n\z/, 'the rows come once');
	unlike(slurp_file($file), qr/output/, 'the file has no length when the run has ended');

	$node->safe_psql('postgres', "INSERT INTO insta0.photos (caption) VALUES ('elsewhere')");
	append_to_file($file, qq({"output": "1:1", "complete": 100}\n));
	(undef, undef, $err) = ClientTest::run(@append);
	like($err, qr/printed into another file: the rows behind its first 100 bytes are printed again/, 'another output is told');
	like(slurp_file($torn), qr/quote"\n0,insta0,\d+,elsewhere\n\z/, 'and is not cut');
	delete $ENV{OUTPUT};
};

subtest 'a file that cannot be replaced, a pipe that fails' => sub {
	mkdir "$dir/locked" or die $!;
	my @locked = (@query[ 0, 1, 4 .. $#query ], '--since', "$dir/locked/f.json");
	run_shard($program, @locked);
	$node->safe_psql('postgres', "INSERT INTO insta0.photos (caption) VALUES ('not yet')");
	chmod 0555, "$dir/locked";
	my ($status, $out, $err) = run_shard($program, @locked);
	ok($status == 3 && $out eq '' && $err =~ m{cannot write .*/locked/f.json.new: Permission denied}, 'is told before the rows')
	  or diag("$status $out$err");
	chmod 0755, "$dir/locked";
	# As docs/command/query.md has it: the file is of a pipe that has ended well.
	my $pipe = 'set -o pipefail; cp "$FILE" "$FILE.next"; "$0" "$@" --since "$FILE.next" --format jsonl | sh -c "$PROGRAM" &&
		mv "$FILE.next" "$FILE"';
	local @ENV{qw(FILE PROGRAM)} = ("$dir/locked/f.json", 'cat >/dev/null; false');
	my $before = slurp_file($ENV{FILE});
	isnt((ClientTest::run('bash', '-c', $pipe, $program, @locked[ 0 .. $#locked - 2 ]))[0], 0, 'a pipe that fails');
	is(slurp_file($ENV{FILE}), $before, 'leaves the file as it was');
	$ENV{PROGRAM} = 'cat';
	($status, $out, $err) = ClientTest::run('bash', '-c', $pipe, $program, @locked[ 0 .. $#locked - 2 ]);
	is(join(' ', map { decode_json($_)->{caption} } split /\n/, $out), 'not yet', 'so its rows come again') or diag($err);
};

subtest 'killed at random' => sub {
	my $script = "$dir/write.sql";
	append_to_file($script, join "\n", '\\set shard random(0, ' . ($shards - 1) . ')', '\\set late random(0, 20)',
		"BEGIN; INSERT INTO insta:shard.photos (caption) SELECT 'x' FROM generate_series(1, 5);",
		'\\sleep :late ms', "COMMIT;\n");
	my $written = '';
	my $writers = IPC::Run::start([ 'pgbench', '-n', '-c', 8, '-j', 2, '-T', 600, '-f', $script, $node->connstr('postgres') ],
		'<', '/dev/null', '>&', \$written);
	# Each run appends to the output, as a job would.
	unlink $file;
	my @append = ('sh', '-c', 'exec "$0" "$@" >>"$OUTPUT"', $program, @query, '--format', 'csv');
	local $ENV{OUTPUT} = $output;
	foreach my $kill (1 .. $kills)
	{
		show_progress('since', $kill, $kills);
		my $run = IPC::Run::start(\@append, '<', '/dev/null', '2>', '/dev/null');
		usleep(int rand 120_000);
		kill_command($run);
	}
	$writers->signal('TERM');
	$writers->finish;
	command_ok(\@append, 'the last run ends');
	my %seen;
	$seen{$_}++ foreach ids_printed();
	my @rows = split /\n/, $node->safe_psql('postgres',
		join ' UNION ALL ', map { "SELECT id FROM insta$_.photos WHERE caption = 'x'" } 0 .. $shards - 1);
	is(scalar(grep { !$seen{$_} } @rows), 0, 'no row is lost');
	is(scalar(grep { $seen{$_} > 1 } keys %seen), 0, 'and none comes twice');
	note(scalar(@rows) . " rows, $kills kills");
};

$node->stop;
done_testing();
