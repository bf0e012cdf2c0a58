# snowflake-shard clones a template into many shards, changes them, finds those that differ, and finds
# every fault that verify promises to find; it reports its failures, with the documented exit
# code, and nothing is half done: a shard is changed as a whole or not at all, and a clone that was
# killed is resumed.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use OpenMetrics;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
seed_random();

# A template, on the first of two servers, and the number of its clones.
my $count = $ENV{SNOWFLAKE_TEST_LONG} ? 200 : 10;
my $node = new_server('one');
my $other = new_server('two');
make_template($node);
$node->safe_psql('postgres', 'ALTER TABLE insta0.log OWNER TO CURRENT_USER');    # the schema is a superuser's
my ($status, $out, $err, $rows);

# The completions of bash behind these words, the last of which is not complete.
sub completions
{
	my @words = ($program, @_);
	my $script = 'COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _snowflake_shard "$1"; echo "${COMPREPLY[*]}"';
	IPC::Run::run([ 'bash', '-c', "source $FindBin::RealBin/../../cli/snowflake-shard.bash; $script", 'bash', @words ],
		'>', \my $completed);
	return $completed;
}

# A shell other than bash, with a stub of each function that the completion calls.
sub completions_of
{
	my ($shell, @words) = @_;
	my $file = "$FindBin::RealBin/../../cli/snowflake-shard.$shell";
	my %script = (
		fish => "source $file; complete -C \"\$argv\"",
		zsh => 'compadd() { shift; print -l -- ${(M)@:#$PREFIX*} }; compset() { [[ $PREFIX == @* ]] }; _files() { print a file };'
			. "words=(\"\$@\"); CURRENT=\$#; PREFIX=\$words[-1]; source $file");
	IPC::Run::run([ $shell, $shell eq 'zsh' ? ('-fc', $script{zsh}, 'zsh') : ('--no-config', '-c', $script{fish}), $program, @words ],
		'>', \my $completed);
	return join ' ', sort split /\n/, $completed;
}

subtest 'the exit code says what went wrong' => sub {
	is((run_shard($program))[0], 2, 'no verb: exit code 2');
	is((run_shard($program, 'clone', $node, '--template', 'insta0', '--schema', 'x{}', '--shards', '5-4'))[0], 2,
		'a range that ends before it begins: 2');
	is((run_shard($program, 'clone', $node, '--template', 'insta0', '--schema', 'x{}', '--shards', '1-8192'))[0], 2,
		'a shard out of range: 2');
	is((run_shard($program, 'clone', $node, '--template', 'insta0', '--schema', 'x', '--shards', '1-2'))[0], 2,
		'a pattern without {}: 2');
	is((run_shard($program, 'run', $node, '--shards', '0'))[0], 2, 'run without SQL: 2');
	is((run_shard($program, 'list', 'host=/tmp nonsense'))[0], 2, 'a connection string that cannot be read: 2');
	is((run_shard($program, 'list', 'host=/nonexistent'))[0], 3, 'a server that cannot be reached: 3');
	is((run_shard($program, 'list', 'dbname=template1 ' . $node->connstr('template1')))[0], 3,
		'a database without the extension: 3');
};

subtest 'wrong usage is named, with the help to read' => sub {
	my @wrong_usage = (
		[ 'a verb is missing', 'snowflake-shard' ],
		[ 'no verb moove, did you mean move?', 'snowflake-shard', qw(moove insta5 --from x --to y) ],
		[ 'no verb frobnicate', 'snowflake-shard', 'frobnicate' ],
		[ 'no option --jobs', 'snowflake-shard', qw(--jobs 4 clone) ],
		[ 'clone: no option --shard, did you mean --shards?', 'snowflake-shard clone',
			qw(clone dbname=app insta5 --shard 6-7) ],
		[ 'move: no option --dryrun, did you mean --dry-run?', 'snowflake-shard move',
			qw(move insta5 --dryrun=1 --from x --to y) ],
		[ 'list: no option -x', 'snowflake-shard list', qw(list -x dbname=app) ],
		[ 'clone: --template is required', 'snowflake-shard clone', qw(clone dbname=app insta5 --shards 6 --schema x{}) ],
		[ 'move: one argument too many: insta6', 'snowflake-shard move', qw(move insta5 insta6 --from x --to y) ],
		[ 'global: a verb is missing', 'snowflake-shard global', 'global' ],
		[ 'global: no verb veryfy, did you mean verify?', 'snowflake-shard global', qw(global veryfy x) ],
		[ 'global add: no option --onn, did you mean --on?', 'snowflake-shard global add', qw(global add a.b --on x y --onn z) ],
		[ 'global add: --on is required', 'snowflake-shard global add', qw(global add a.b) ],
		[ 'move: --from and --to are needed', 'snowflake-shard move', qw(move -- insta5) ]);
	foreach my $wrong_usage (@wrong_usage)
	{
		my ($problem, $help, @arguments) = @$wrong_usage;
		($status, $out, $err) = run_shard($program, @arguments);
		like("$status $err", qr/^2 snowflake-shard: \Q$problem\E\nHINT:  \Q$help\E --help shows /, "wrong usage: @arguments");
	}
};

subtest 'each verb has examples in its help, and a completion' => sub {
	foreach my $verb (qw(list clone run query diff verify map plan))
	{
		($status, $out) = run_shard($program, $verb, '--help');
		ok($status == 0 && $out =~ /Examples: *\n *snowflake-shard $verb /, "$verb --help has examples");
		ok(completions('') =~ /\b$verb\b/ && completions($verb, '--j') =~ /^--json\b/,
			"bash completes $verb and its options");
		ok(!(grep { length > 100 } split /\n/, $out), "the lines of $verb --help have at most 100 characters");
		is((run_shard($program, 'help', $verb))[1], $out, "help $verb is the same");
	}
	like((run_shard($program, 'help'))[1], qr/^  move +Moves a shard to another server while it is written to\.$/m,
		'the list of verbs has the first sentence of each');
	like((run_shard($program, 'version'))[1], qr/^snowflake-shard \d+(?:\.\d+)+\n$/, 'version');
	is(completions('list', "\@$FindBin::RealBin/030_cl"), "\@$FindBin::RealBin/030_cli.pl\n", 'bash completes a file behind @');
	is(completions('global', ''), "add run verify remove\n", 'bash completes the verbs of global');
	like(completions('global', 'remove', '--'), qr/^--help --json --on --force$/, 'and their options');
};

foreach my $shell (qw(zsh fish))
{
	subtest "$shell completes verbs, options and files" => sub {
		plan skip_all => "$shell is not installed" unless grep { -x "$_/$shell" } split /:/, $ENV{PATH};
		is(completions_of($shell, 'mo'), 'move', 'a verb');
		is(completions_of($shell, 'global', ''), 'add remove run verify', 'the verbs of global');
		is(completions_of($shell, 'global', 'remove', '--'), '--force --help --json --on', 'and their options');
		is(completions_of($shell, 'list', '--format', 'js'), 'json jsonl', 'formats');
		my $file = "$FindBin::RealBin/030_cli.pl";
		is(completions_of($shell, 'move', '--plan', $file =~ s/i\.pl$//r), $shell eq 'zsh' ? 'a file' : $file, 'a file');
		is(completions_of($shell, 'list', "\@" . $file =~ s/i\.pl$//r), $shell eq 'zsh' ? 'a file' : "\@$file", 'a file behind @');
	};
}

my $shard;
subtest 'clone --dry-run makes nothing' => sub {
	my @clone = ('clone', $node, '--template', 'insta0', '--dry-run', '--schema');
	($status, $rows) = shard_json($program, @clone, 'insta{}', '--shards', '0-2');
	is("$status " . states($rows), '0 there already 0; to be made 1,2', 'it shows the shards that would be made');
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_namespace WHERE nspname ~ 'insta[12]|snowflake_copy'"), 0,
		'there are none');
	($status, $out, $err) = run_shard($program, @clone, 'other{}', '--shards', '0-2');
	like("$status $err", qr/^3 .*shard 0 is schema insta0 on .*, and cannot be made as schema other0$/s, 'a number that is taken');
	$node->safe_psql('postgres', 'CREATE SCHEMA other1');
	($status, $out, $err) = run_shard($program, @clone, 'other{}', '--shards', '1-2');
	like("$status $err", qr/^3 .*schema other1 is there already on .*, and is not shard 1$/s, 'a schema that is no shard');
	$node->safe_psql('postgres', 'DROP SCHEMA other1');
};

subtest 'a schema that is misspelled' => sub {
	($status, $out, $err) = run_shard($program, 'clone', $node, '--template', 'isnta0', '--shards', '1', '--schema', 'insta{}');
	like("$status $err", qr/^3 .*schema isnta0 is no shard of .*, did you mean insta0\?\nHINT/s, 'the shard with the same number');
	($status, $out, $err) = run_shard($program, 'clone', $node, '--template', 'insta1', '--shards', '1', '--schema', 'insta{}');
	unlike($err, qr/did you mean/, 'another number is no misspelled one');
};

subtest 'clone makes shards that are as the template' => sub {
	($status, $rows) =
		shard_json($program, 'clone', $node, '--template', 'insta0', '--shards', "1-$count", '--schema', 'insta{}');
	is($status, 0, 'clone: exit code 0');
	is(states($rows), 'made ' . join(',', 1 .. $count), 'clone: every shard is made');
	is(dump_of($node, 'insta3', name => 'insta0', from => 3, to => 0), dump_of($node, 'insta0'),
		'clone: pg_dump -s equals the template\'s');
	$shard = 1 + int(rand($count));
	is($node->safe_psql('postgres', "INSERT INTO insta$shard.users (name) VALUES ('a') RETURNING snowflake_shard(id)"),
		$shard, "clone: insta$shard.users makes IDs of shard $shard");
	is($node->safe_psql('postgres', "INSERT INTO insta$shard.log (t) VALUES ('a') RETURNING snowflake_shard(id)"),
		$shard, "clone: a direct DEFAULT, too");
	is($node->safe_psql('postgres',
		"INSERT INTO insta$shard.photos (user_id) SELECT id FROM insta$shard.users RETURNING snowflake_shard(id)"),
		$shard, 'clone: a CHECK on snowflake_shard(id) has the new number');
	is($node->safe_psql('postgres', "SELECT count(*) FROM snowflake_check() WHERE severity <> 'notice'"), 0,
		'clone: nothing to complain of for snowflake_check()');
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^snowflake_copy'"), 0,
		'clone: no schema is left behind');
};

my $more = $count + 5;

subtest 'clone resumes a range' => sub {
	($status, $rows) = shard_json($program, 'clone', $node, '--template', 'insta0', '--shards', "1-$more", '--schema',
		'insta{}', '--jobs', 3);
	is("$status " . states($rows),
		"0 made " . join(',', $count + 1 .. $more) . '; there already ' . join(',', 1 .. $count),
		'clone: a range is resumed, over three connections');
};

my ($host, $port);
subtest 'list and map show every shard' => sub {
	($status, $rows) = shard_json($program, 'list', $node);
	is(scalar @$rows, $more + 1, 'list: every shard');
	my ($listed) = grep { $_->{shard} == $shard } @$rows;
	is("$listed->{schema} $listed->{tables}", "insta$shard 4", 'list: schema and number of tables');
	like($listed->{last_id_at}, qr/^20\d\d-\d\d-\d\dT/, 'list: the time of the last ID');
	ok($listed->{size} > 0 && $listed->{server} =~ /:\d+\/postgres$/, 'list: size and server');
	my ($bytes, $largest) = (0, 0);
	($bytes, $largest) = ($bytes + $_, $_ > $largest ? $_ : $largest) foreach map { $_->{size} } @$rows;
	my $server = $listed->{server};
	($status, $out) = run_shard($program, 'list', $node);
	like($out, qr/^\Q$server\E: ${\($more + 1)} shards, \d+ (?:kB|MB)\n\z/m,
		'list: the total of the server is the last line');
	($status, $out) = run_shard($program, 'list', $node, '--format', 'prometheus');
	my $samples = samples_of($out);
	is(join(' ', map { sample($samples, "snowflake_$_", server => $server) }
			qw(shards shards_size_bytes largest_shard_size_bytes)),
		$more + 1 . " $bytes $largest", 'list: number and sizes as metrics');
	is(sample($samples, 'snowflake_last_id_timestamp_seconds', server => $server) - 0,
		$node->safe_psql('postgres', 'SELECT extract(epoch FROM max(last_id_at)) FROM snowflake_sequences') - 0,
		'list: the time of the last ID as a metric');
	is(scalar(split /^snowflake/m, $out), 5, 'list: no metric of each shard');
	like((run_shard($program, 'map', $node, '--format', 'pgbouncer', '--user', 'an app'))[1],
		qr/\nshard\d+ = host=\S+ port=\d+ dbname=postgres user='an app'\n/, 'map: the user of PgBouncer');
	($status, $out) = run_shard($program, 'map', $node, '--format', 'pgbouncer');
	($host, $port) = ($node->host, $node->port);
	like($out, qr/^shard$shard = host=\Q$host\E port=$port dbname=postgres$/m, 'map: a line of PgBouncer');
	($status, $out) = run_shard($program, 'map', $node, '--format', 'csv');
	is(scalar(split /\n/, $out), $more + 2, 'map: CSV has a line for each shard and a heading');
	($status, $out) = run_shard($program, 'map', $node, '--format', 'plproxy');
	like($out, qr/\('p$shard', 'host=\Q$host\E port=$port dbname=postgres'\)/, 'map: a partition of PL/Proxy');
};

subtest 'output that cannot be written is an error' => sub {
	# Of the end of the command, with a redirection of the shell.
	my $end = sub {
		my ($redirection, @arguments) = @_;
		local $SIG{PIPE} = 'DEFAULT';
		IPC::Run::run([ 'sh', '-c', $redirection, $program, shard_command(@arguments) ],
			'<', \undef, '>', \my $out, '2>', \my $err);
		return ($? >> 8) . " $err";
	};
	my @verbs = (
		[ 'map', $node, '--format', 'pgbouncer' ], [ 'list', $node, '--format', 'prometheus' ], [ 'list', $node, '--json' ],
		[ 'query', $node, '--sql', 'SELECT 1', '--format', 'csv' ], [ 'verify', $node ], ['--version'], [ 'move', '--help' ]);
	foreach my $verb (@verbs)
	{
		my $name = join ' ', map { ref $_ ? () : $_ } @$verb;
		is($end->('exec "$0" "$@" >/dev/full', @$verb),
			"3 snowflake-shard: the output cannot be written: No space left on device\n", "$name: a full disk");
		is($end->('exec "$0" "$@" >&-', @$verb),
			"3 snowflake-shard: the output cannot be written: Bad file descriptor\n", "$name: a closed output");
	}
	my @long = ('query', $node, '--jobs', 1, '--format', 'csv', '--sql', 'SELECT generate_series(1, 100000)');
	is($end->('"$0" "$@" | true', @long), '0 ', 'a pipe that ends early ends the command without a word');
	my $broken = qr/: the output cannot be written: Broken pipe\n/;
	like($end->('trap "" PIPE; { "$0" "$@"; echo $? >&2; } | true', @long),
		qr/^0 snowflake-shard: shards 0-$more$broken(?:snowflake-shard$broken)3\n$/, 'or is an error, where SIGPIPE is ignored');
	# Not a byte more than a file may have, in the middle of the rows.
	my $file = PostgreSQL::Test::Utils::tempdir() . '/cut';
	like($end->("trap '' XFSZ; ulimit -f 1; exec \"\$0\" \"\$@\" >$file",
			'query', $node, '--jobs', 1, '--format', 'csv', '--sql', "SELECT generate_series(1, 300)"),
		qr/^3 snowflake-shard: shards \d+-$more: the output cannot be written: File too large\n/, 'a file that is cut');
};

subtest 'timeouts of a database hold for SQL of the user alone' => sub {
	my @timeouts = ('statement_timeout', $node->pg_version < 17 ? () : 'transaction_timeout');
	# All verbs read this catalogue.
	my $holder = $node->background_psql('postgres', on_error_stop => 1);
	$holder->query_safe('BEGIN; LOCK TABLE pg_catalog.pg_sequence IN ACCESS EXCLUSIVE MODE');
	$node->safe_psql('template1', "ALTER DATABASE postgres SET $_ = '100ms'") foreach @timeouts;
	my @verbs = ([ 'list', $node ], [ 'verify', $node ], [ 'plan', $node ],
		[ 'diff', $node, '--template', 'insta0', '--shards', $shard ]);
	my @runs = map { background(@$_) } @verbs;
	await('the verbs wait for longer', sub { (grep { has_ended($_) } @runs) || $node->safe_psql('template1', q{
		SELECT count(*) FROM pg_locks WHERE NOT granted AND waitstart < clock_timestamp() - interval '200 ms'}) >= @verbs });
	$holder->quit;
	is(join(' ', map { $_->{h}->finish; $_->{h}->result(0) } @runs), '0 0 0 0', 'list, verify, plan and diff')
	  or diag(map { $_->{err} } @runs);
	foreach my $run ([ 'query', $node ], [ 'run', $node ], [ 'run', $node, '--no-transaction' ])
	{
		($status, $out, $err) = run_shard($program, @$run, '--shards', $shard, '--sql', 'SELECT pg_sleep(60)');
		like("$status $out $err", qr/^3 .*(?:statement timeout|transaction timeout)/s, join(' ', grep { !ref } @$run) . ' ends');
	}
	$node->safe_psql('template1', "ALTER DATABASE postgres RESET $_") foreach @timeouts;
};

my $odd = 1 + int(rand($count));

subtest 'diff and clone name a shard that differs' => sub {
	is((run_shard($program, 'diff', $node, '--template', 'insta0'))[0], 0, 'diff: no difference, exit code 0');
	$node->safe_psql('postgres', "ALTER TABLE insta$odd.users DROP COLUMN m");
	($status, $rows) = shard_json($program, 'diff', $node, '--template', 'insta0');
	is($status, 1, 'diff: a difference, exit code 1');
	is(join(' ', map { "$_->{schema} $_->{change} $_->{object}" } @$rows),
		"insta$odd missing TABLE users insta$odd added TABLE users", 'diff: names the shard and the object');
	like($rows->[0]{statement}, qr/m insta$odd\.mood/, 'diff: shows the statement');
	my $another = $odd % $count + 1;
	is((run_shard($program, 'diff', $node, '--template', 'insta0', '--shards', $another))[0], 0,
		'diff: only the shards that are asked for');
	($status, $out, $err) =
		run_shard($program, 'clone', $node, '--template', 'insta0', '--shards', '1-' . ($more + 1), '--schema', 'insta{}');
	is($status, 3, 'clone: a shard that differs is an error');
	like($err, qr/insta$odd: TABLE users/, 'clone: names it');
	is($node->safe_psql('postgres', "SELECT to_regnamespace('insta" . ($more + 1) . "') IS NULL"), 't',
		'clone: makes nothing then');
	$node->safe_psql('postgres', "ALTER TABLE insta$odd.users ADD COLUMN m insta$odd.mood");
};

subtest 'diff goes on without a shard that is locked' => sub {
	$node->safe_psql('postgres', "ALTER TABLE insta$odd.users DROP COLUMN m");
	my $locked = $odd % $count + 1;
	my $holder = $node->background_psql('postgres');
	$holder->query_safe("BEGIN; LOCK TABLE insta$locked.users");
	local $ENV{PGOPTIONS} = '-c lock_timeout=100ms';
	($status, $out, $err) = run_shard($program, 'diff', $node, '--template', 'insta0', '--shards', "1-$count");
	is($status, 3, 'diff: a shard is locked, exit code 3');
	like($out, qr/^${\($count - 1)} shards compared with insta0, different: $odd$/m, 'diff: the others are compared');
	like($err, qr/^snowflake-shard: shard $locked: \S+: pg_dump failed: .*LOCK TABLE .*\binsta$locked\.users\b/m,
		'diff: the shard is named, with the table');
	$holder->quit;
	$node->safe_psql('postgres', "ALTER TABLE insta$odd.users ADD COLUMN m insta$odd.mood");
};

subtest 'diff finds references to the template, and takes texts as they are' => sub {
	is((run_shard($program, 'diff', $node, '--template', 'insta0'))[0], 0, 'diff: the shard is mended');
	my @wrong = (
		[ 'a DEFAULT with the number of the template', 'TABLE log',
			"ALTER TABLE insta$odd.log ALTER id SET DEFAULT snowflake_next_id(0, 'insta$odd.log_id_seq')",
			"snowflake_next_id($odd, 'insta$odd.log_id_seq')" ],
		[ 'a DEFAULT with a sequence of the template', 'TABLE log',
			"ALTER TABLE insta$odd.log ALTER id SET DEFAULT snowflake_next_id($odd, 'insta0.log_id_seq')",
			"snowflake_next_id($odd, 'insta$odd.log_id_seq')" ],
		[ 'a foreign key to a table of the template', 'FK CONSTRAINT likes likes_user_id_fkey',
			"ALTER TABLE insta$odd.likes DROP CONSTRAINT likes_user_id_fkey, ADD FOREIGN KEY (user_id) "
			. "REFERENCES insta0.users" ]);
	foreach my $wrong (@wrong)
	{
		my ($name, $object, $statement, $default) = @$wrong;
		$node->safe_psql('postgres', $statement);
		($status, $rows) = shard_json($program, 'diff', $node, '--template', 'insta0');
		is(join(' ', $status, map { "$_->{schema} $_->{change} $_->{object}" } grep { $_->{shard} == $odd } @$rows),
			"1 insta$odd missing $object insta$odd added $object", "diff: $name");
		$node->safe_psql('postgres', defined $default ? "ALTER TABLE insta$odd.log ALTER id SET DEFAULT $default"
			: "ALTER TABLE insta$odd.likes DROP CONSTRAINT likes_user_id_fkey, ADD FOREIGN KEY (user_id) REFERENCES "
			. "insta$odd.users");
	}
	$node->safe_psql('postgres', join ';', map { sprintf q{COMMENT ON TABLE %1$s.log IS 'of %2$s';
		CREATE FUNCTION %1$s.users() RETURNS bigint
			LANGUAGE plpgsql AS 'BEGIN RETURN count(*) FROM %2$s.users; END'}, "insta$_",
		$_ % 2 ? "insta$_" : 'insta0' } 0 .. $more);
	is((run_shard($program, 'diff', $node, '--template', 'insta0'))[0], 0,
		'diff: a comment and a body may name the template or the shard');
	$node->safe_psql('postgres',
		join ';', map { "COMMENT ON TABLE insta$_.log IS NULL; DROP FUNCTION insta$_.users" } 0 .. $more);
};

subtest 'clone stops at a number that is taken' => sub {
	$node->safe_psql('postgres', q{SELECT snowflake_create_shard(1001, 'taken');
		CREATE FUNCTION insta0.users() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN count(*) FROM insta0.users; END'});
	($status, $rows, $err) =
		shard_json($program, 'clone', $node, '--template', 'insta0', '--shards', '1000-1002', '--schema', 'insta{}');
	is("$status " . states($rows), '3 failed 1001; made 1000; not done 1002', 'clone: a number that is taken stops it');
	like($rows->[1]{error}, qr/shard 1001/, 'clone: and is named');
	like($err, qr/FUNCTION users\(\) names schema insta0/, 'clone: a text that names the template is a warning');
	$node->safe_psql('postgres', 'DROP FUNCTION insta0.users; DROP SCHEMA insta1000 CASCADE; DROP SCHEMA taken CASCADE');
};

subtest 'two clones at once, and one that is killed' => sub {
	my @both = map { my %run = (err => ''); $run{h} = IPC::Run::start(
		[ $program, shard_command('clone', $node, '--template', 'insta0', '--shards', $_, '--schema', 'insta{}') ],
		'>', \$run{out}, '2>', \$run{err}); \%run } '1100-1104', '1105-1109';
	$_->{h}->finish foreach @both;
	is(join(' ', map { $_->{h}->result(0) } @both), '0 0', 'two clones at once: both succeed');
	diag($_->{err}) foreach grep { $_->{h}->result(0) } @both;
	my $killed =
		IPC::Run::start(
			[ $program, shard_command('clone', $node, '--template', 'insta0', '--shards', '1200-1209', '--schema', 'insta{}',
				'--jobs', 2) ],
		'>', \my $ignored, '2>', \my $ignored_too);
	my $made = q{SELECT count(*) FROM pg_namespace WHERE nspname ~ '^insta12'};
	my $enough = int(rand(7));
	await('some clones are there', sub { $node->safe_psql('postgres', $made) >= $enough });
	kill_command($killed);
	await('its sessions have ended', sub { $node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'snowflake-shard'}) eq '0' });
	note('killed with ' . $node->safe_psql('postgres', $made) . ' of 10 made');
	($status, $out, $err) =
		run_shard($program, 'clone', $node, '--template', 'insta0', '--shards', '1200-1209', '--schema', 'insta{}');
	is($status, 0, 'clone: after kill -9 it is resumed') or diag($err);
	is((run_shard($program, 'diff', $node, '--template', 'insta0'))[0], 0, 'clone: and every shard is as the template');
	# Each of the many runs of verify below reads all shards.
	$node->safe_psql('postgres',
		'SET client_min_messages = warning; ' . join ';', map { "DROP SCHEMA insta$_ CASCADE" } 1100 .. 1109, 1200 .. 1209);
};

subtest 'run changes every shard, and stops at the first error' => sub {
	my $all = "0-$more";
	my $columns =
		q{SELECT string_agg(DISTINCT table_schema, ',' ORDER BY table_schema) FROM information_schema.columns
			WHERE column_name = 'place'};
	my @run = ('run', $node, '--shards', $all, '--sql', 'ALTER TABLE photos ADD COLUMN place text');
	($status, $rows) = shard_json($program, @run, '--dry-run');
	is("$status " . states($rows), '0 to be done ' . join(',', 0 .. $more), 'run --dry-run: every shard');
	is($node->safe_psql('postgres', $columns), '', 'run --dry-run: no shard has the column');
	($status, $rows) = shard_json($program, @run);
	is("$status " . states($rows), '0 done ' . join(',', 0 .. $more), 'run: every shard');
	is(scalar(split /,/, $node->safe_psql('postgres', $columns)), $more + 1, 'run: the column is in every shard');
	$node->safe_psql('postgres', "CREATE TABLE insta3.stone ()");
	my $sql = 'ALTER TABLE users ADD COLUMN stone int; CREATE TABLE stone ()';
	($status, $rows) = shard_json($program, 'run', $node, '--shards', '0-5', '--sql', $sql);
	is("$status " . states($rows), '3 done 0,1,2; failed 3; not done 4,5', 'run: stops at the first error');
	my $stones =
		q{SELECT string_agg(table_schema, ',' ORDER BY table_schema) FROM information_schema.columns
			WHERE column_name = 'stone'};
	is($node->safe_psql('postgres', $stones), 'insta0,insta1,insta2', 'run: the shard that failed is as it was');
	append_to_file((my $file = PostgreSQL::Test::Utils::tempdir() . '/change.sql'), "-- a file\n$sql;\n");
	($status, $rows) = shard_json($program, 'run', $node, '--shards', '3-5', '--file', $file, '--keep-going');
	is("$status " . states($rows), '3 done 4,5; failed 3', 'run: --keep-going, from a file');
};

subtest 'SQL of run does not end its transaction' => sub {
	foreach my $ended ('COMMIT', 'COMMIT; BEGIN', 'ROLLBACK AND CHAIN', 'COMMIT; SELECT 1 / 0')
	{
		($status, $rows) = shard_json($program, 'run', $node, '--shards', '0-1', '--keep-going', '--sql', "SELECT 1; $ended");
		is("$status " . states($rows), '3 failed 0,1', "run: SQL with $ended is refused in each shard");
		like($rows->[0]{message}, qr/the SQL begins or ends a transaction itself.*\nHINT: .*remove BEGIN, COMMIT/s,
			'run: and it is said why');
	}
	($status, $out, $err) = run_shard($program, 'run', $node, '--shards', '0', '--no-transaction', '--sql', 'BEGIN');
	is($status, 3, 'run: nor may a transaction stay open with --no-transaction');
};

subtest 'run copies no data to or from the client' => sub {
	foreach my $copy ('COPY users (name) FROM STDIN', 'COPY users TO STDOUT')
	{
		foreach my $options ([], ['--no-transaction'])
		{
			($status, $out, $err) = run_shard('timeout', 60, $program, 'run', $node, '--shards', '0', @$options, '--sql', $copy);
			ok($status == 3 && $err =~ /COPY FROM STDIN and COPY TO STDOUT are not possible/, "run: $copy is an error @$options")
				or diag("exit code $status: $err");
		}
	}
	is($node->safe_psql('postgres', 'SELECT count(*) FROM insta0.users'), 0, 'run: and copies nothing');
};

subtest 'run takes SQL that fits into a transaction, or one statement without' => sub {
	($status, $out, $err) = run_shard($program, 'run', $node, '--shards', '0', '--sql', '\d users');
	ok($status == 3 && $err =~ /syntax error/, 'run: a command of psql is a syntax error');
	is((run_shard($program, 'run', $node, '--shards', '0', '--sql', " ;\n"))[0], 2, 'run: no statement is wrong usage');
	is((run_shard($program, 'run', $node, '--shards', '0', '--sql', 'SAVEPOINT a; ROLLBACK TO a'))[0], 3,
		'run: nor may it set a savepoint');
	($status, $out, $err) =
		run_shard($program, 'run', $node, '--shards', '0-1', '--sql', 'CREATE INDEX CONCURRENTLY ON photos (caption)');
	is($status, 3, 'run: what cannot run in a transaction is refused');
	like($err, qr/use --no-transaction/, 'run: with the option to use');
	my $outside = 'CREATE INDEX CONCURRENTLY odd ON photos (caption);';
	($status, $rows) = shard_json($program, 'run', $node, '--shards', '0-1', '--no-transaction', '--keep-going', '--sql',
		"$outside VACUUM photos");
	is("$status " . states($rows), '3 failed 0,1', 'run: --no-transaction with two statements is refused by the server');
	like($rows->[0]{message}, qr/the text is not one statement/, 'run: and it is said why');
	($status, $rows) = shard_json($program, 'run', $node, '--shards', '0-1', '--no-transaction', '--sql', $outside);
	is("$status " . states($rows), '0 done 0,1', 'run: --no-transaction with one runs it');
};

# A signal while the run is in its first shard, which ends when there is a row in public.go.
$node->safe_psql('postgres', 'CREATE TABLE public.go ()');
sub run_with_signal
{
	my ($signal, $disposition) = @_;
	local $SIG{$signal} = $disposition;
	$node->safe_psql('postgres', 'TRUNCATE public.go');
	my $wait = 'DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM public.go) LOOP PERFORM pg_sleep(0.01); END LOOP; END $$';
	my $run = IPC::Run::start([ $program, shard_command('run', $node, '--shards', '0-1', '--sql', $wait) ], '<', \undef,
		'>', \my $said);
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'DO%public.go%' AND state = 'active'");
	$run->signal($signal);
	$node->safe_psql('postgres', 'INSERT INTO public.go DEFAULT VALUES');
	$run->finish;
	return $said;
}

subtest 'a signal ends run after a shard' => sub {
	is(run_with_signal($_, 'DEFAULT'), "1 shard done: 0\n1 shard not done: 1\n",
		"run: $_ ends it after the shard, and it says so") foreach qw(INT TERM);
	is(run_with_signal('HUP', 'IGNORE'), "2 shards done: 0-1\n", 'run: under nohup it goes on');
};

subtest 'run refuses a shard that is not on the server' => sub {
	($status, $out, $err) = run_shard($program, 'run', $node, '--shards', '0,8000', '--sql', 'SELECT 1');
	like("$status $err", qr/^3 .*1 shard not on .*: 8000\n/, 'run: a number that is not on the server is refused');
	is($out, '', 'run: and nothing runs');
};

subtest 'verify finds each fault, and its hint mends it' => sub {
	($status, $rows) = shard_json($program, 'verify', $node, $other);
	is("$status " . @$rows, '0 0', 'verify: nothing found, exit code 0');
	# The statements that make a fault, the finding of verify, the statements that mend it: none where they are the hint.
	my $id = $node->safe_psql('postgres', "SELECT snowflake_encode(now(), 7, 1)");
	my $largest = $node->safe_psql('postgres', "SELECT snowflake_encode(now() + '1 minute', 6, 0)");
	my @faults = (
		[ 'an ID of another shard', "INSERT INTO insta6.users (id) VALUES ($id)",
			qr/^id insta6\.users\.id 1 ID not of shard 6, the smallest is $id/, "DELETE FROM insta6.users" ],
		[ 'one in a column of a domain over a domain',
			"CREATE DOMAIN insta6.inner_id AS bigint; CREATE DOMAIN insta6.outer_id AS insta6.inner_id;
			CREATE TABLE insta6.of_domain (id insta6.outer_id DEFAULT insta6.next_id());
			INSERT INTO insta6.of_domain VALUES ($id)",
			qr/^id insta6\.of_domain\.id 1 ID not of shard 6, the smallest is $id/,
			'DROP TABLE insta6.of_domain; DROP DOMAIN insta6.outer_id; DROP DOMAIN insta6.inner_id' ],
		[ 'a copy of a table of another shard', "CREATE TABLE insta6.copied (LIKE insta7.log INCLUDING ALL);
			INSERT INTO insta6.copied (t) VALUES ('x')", qr/^id insta6\.copied\.id 1 ID not of shard 6,/, 'DROP TABLE insta6.copied' ],
		[ 'a table that was one of another shard', "CREATE TABLE insta7.taken (id bigint PRIMARY KEY DEFAULT insta7.next_id());
			INSERT INTO insta7.taken DEFAULT VALUES; ALTER TABLE insta7.taken SET SCHEMA insta6",
			qr/^id insta6\.taken\.id 1 ID not of shard 6,/, 'DROP TABLE insta6.taken' ],
		[ 'a sequence below its IDs', "INSERT INTO insta6.users (id) VALUES ($largest)",
			qr/^check insta6\.users\.id it holds $largest, above sequence insta6\.table_id_seq/ ],
		[ 'a shard twice',
			"CREATE SCHEMA b; CREATE SEQUENCE b.s; CREATE TABLE b.t (id bigint DEFAULT snowflake_next_id(6, 'b.s'))",
			qr/^check shard 6 schemas b, insta6 make IDs of the same shard/, "DROP SCHEMA b CASCADE" ],
		[ 'a clone that was killed', "CREATE SCHEMA snowflake_copy_1_1",
			qr/^leftover schema snowflake_copy_1_1 a clone was killed/ ],
		[ 'an index that CREATE INDEX CONCURRENTLY has left',
			"INSERT INTO insta6.log (t) VALUES ('a'), ('a'); \\! psql -qX -d '"
			. $node->connstr('postgres') . "' -c 'CREATE UNIQUE INDEX CONCURRENTLY \"Left 1\" ON insta6.log (t)' 2>&1
			DELETE FROM insta6.log", qr/^index insta6\."Left 1" it is invalid: queries/,
			'DROP INDEX insta6."Left 1"' ],
		[ 'an index of a partitioned table',
			'CREATE TABLE insta6.parts (n integer) PARTITION BY LIST (n);
			CREATE TABLE insta6.part PARTITION OF insta6.parts DEFAULT;
			CREATE INDEX lacking ON ONLY insta6.parts
				(n)', qr/^index insta6\.lacking it is invalid: a partition has no such index/,
			'CREATE INDEX added ON insta6.part (n); ALTER INDEX insta6.lacking ATTACH PARTITION insta6.added; '
			. 'DROP TABLE insta6.parts' ],
		[ 'a publication of no move', "CREATE PUBLICATION snowflake_move_7", qr/^leftover publication snowflake_move_7 / ]);
	foreach my $fault (@faults)
	{
		my ($name, $make, $finding, $mend) = @$fault;
		$node->safe_psql('postgres', $make);
		($status, $rows) = shard_json($program, 'verify', $node, $other);
		my @found = map { "$_->{finding} $_->{object} $_->{problem}" } @$rows;
		is($status, 1, "verify: $name, exit code 1");
		ok(@found == 1 && $found[0] =~ $finding, "verify: $name is named") or diag("found: @found");
		$node->safe_psql('postgres', $mend // $rows->[0]{hint});
		is((run_shard($program, 'verify', $node, $other))[0], 0, "verify: $name is mended");
	}
	$node->safe_psql('postgres', 'CREATE TABLE insta6.copied (LIKE insta7.log INCLUDING ALL); CREATE TABLE insta6."A copy" (LIKE insta7.users INCLUDING ALL)');
	($status, $rows, $err) = shard_json($program, 'verify', $node, $other);
	my ($port, $query) = ($node->port, $err =~ /HINT:  (.*)/);
	my @warnings = split /\n/, $node->safe_psql('postgres', $query);
	is(scalar(grep { /^warning\|insta6\.("A copy"|copied)\.id\|it draws from schema insta7: / } @warnings), 2, 'verify: how to see warnings');
	like("$status $err", qr/^0 \S+: \S+:$port\/postgres: ${\scalar @warnings} warnings of snowflake_check\(\), /, 'verify: how many there are');
	$node->safe_psql('postgres', 'DROP TABLE insta6.copied, insta6."A copy"');
};

my $reader;
subtest 'verify reads as far as the rights of a role go' => sub {
	$node->safe_psql('postgres', 'CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader');
	$reader = $node->connstr('postgres') . ' user=reader';
	my $foreign = $node->safe_psql('postgres', 'SELECT snowflake_encode(now(), 7, 1)');
	$node->safe_psql('postgres', "INSERT INTO insta6.log (id) VALUES ($foreign)");
	($status, $out, $err) = run_shard($program, 'verify', $reader);
	is($status, 3, 'verify: rows that a policy hides are an error');
	my $owner = $node->safe_psql('postgres', q{SELECT relowner::regrole FROM pg_class WHERE oid = 'insta6.users'::regclass});
	my $hidden = qr/ERROR:  query would be affected by row-level security policy for table "users"\nSERVER:.*/;
	like($err, qr/^snowflake-shard: shard $_, schema insta$_: IDs are not looked at in insta$_\.users: $hidden
HINT:  Run it as role $owner, the owner, or as a role with BYPASSRLS, to read all rows of insta$_\.users\.$/m,
		"verify: of shard $_, and who reads them") foreach 1, 6;
	like($out, qr/^\S+: insta6\.log\.id: 1 ID not of shard 6, the smallest is $foreign$/m,
		'verify: the findings of other tables are told') or diag($err);
	$node->safe_psql('postgres', "DELETE FROM insta6.log WHERE id = $foreign");
	$node->safe_psql('postgres', 'ALTER ROLE reader BYPASSRLS');
	is((run_shard($program, 'verify', $reader))[0], 0, 'verify: by a role that is no superuser');
	$node->safe_psql('postgres', q{
		CREATE ROLE all_but_one LOGIN BYPASSRLS;
		DO $$ DECLARE c record; BEGIN
			FOR c IN SELECT relnamespace::regnamespace AS schema, oid::regclass AS name FROM pg_class
			         WHERE relnamespace::regnamespace::text LIKE 'insta%' AND relkind IN ('r', 'p', 'S')
			           AND oid <> 'insta6.table_id_seq'::regclass
			LOOP
				EXECUTE format('GRANT USAGE ON SCHEMA %s TO all_but_one; GRANT SELECT ON %s TO all_but_one', c.schema, c.name);
			END LOOP;
		END $$});
	my $some = $node->connstr('postgres') . ' user=all_but_one';
	($status, $rows) = shard_json($program, 'verify', $some);
	is("$status " . join('; ', map { "$_->{object}: $_->{problem}" } @$rows),
		'1 schema insta6: not looked at: role all_but_one may not read insta6.table_id_seq',
		'verify: a sequence that it may not read is a finding');
	$node->safe_psql('postgres', $rows->[0]{hint});
	is((run_shard($program, 'verify', $some))[0], 0, 'verify: the hint mends it');
	$node->safe_psql('postgres', 'REVOKE SELECT ON insta6.log FROM all_but_one');
	($status, $out, $err) = run_shard($program, 'verify', $some);
	ok($status == 3 && $err =~ /in insta6\.log: ERROR:  permission denied for table log\nSERVER:.*\nHINT:  (GRANT .*)/,
		'verify: a table that it may not read is an error') or diag($err);
	is($1, 'GRANT SELECT ON insta6.log TO all_but_one;', 'verify: with the missing right');
	like($out, qr/^\d+ shards on 1 server, /m, 'verify: and the other tables are looked at');
	$node->safe_psql('postgres', 'DROP OWNED BY all_but_one; DROP ROLE all_but_one');
};

subtest 'an index that is being built is no finding' => sub {
	# The progress view shows the index to those who may read all statistics.
	my $writer = $node->background_psql('postgres');
	$writer->query_safe('BEGIN; INSERT INTO insta6.log DEFAULT VALUES');
	my $build =
		IPC::Run::start([ 'psql', '-Xq', '-d', $node->connstr('postgres'), '-c',
			'CREATE INDEX CONCURRENTLY growing ON insta6.log (t)' ], '<', \undef);
	$node->poll_query_until('postgres',
		q{SELECT count(*) = 1 FROM pg_stat_progress_create_index WHERE phase LIKE 'waiting for%'
			AND index_relid = to_regclass('insta6.growing')});
	is((run_shard($program, 'verify', $_))[0], 0, 'verify: an index that is being built is no finding')
		foreach $node, $reader;
	$writer->query_safe('ROLLBACK');
	$writer->quit;
	$build->finish;
	$node->safe_psql('postgres', 'DROP INDEX insta6.growing');
};

subtest 'verify --full reads every row' => sub {
	# In the middle of a table that is said to be large, so that the sample is of no page; the next one is numbered as
	# before an attach.
	my $middle = $node->safe_psql('postgres', q{
		INSERT INTO insta6.log (t) SELECT 'x' FROM generate_series(1, 30000);
		UPDATE pg_class SET reltuples = 1e12 WHERE oid = 'insta6.log'::regclass;
		UPDATE insta6.log SET id = id + 1024 WHERE id = (SELECT id FROM insta6.log
			ORDER BY id OFFSET 15000 LIMIT 1) RETURNING id});
	is((run_shard($program, 'verify', $node, '--full'))[0], 1, 'verify: --full finds one ID in 30,000');
	$node->safe_psql('postgres',
		"DELETE FROM insta6.log WHERE id = $middle; INSERT INTO insta6.log (id) VALUES (1), (2), (4711)");
	is((run_shard($program, 'verify', $node, '--full'))[0], 0, 'verify: keys from before an attach are no findings');
};

subtest 'verify looks at thousands of columns' => sub {
	$node->safe_psql('postgres', q{
		DO $$ BEGIN
			FOR n IN 1..3 LOOP
				EXECUTE format('CREATE TABLE insta6.wide%s (%s)', n,
					(SELECT string_agg(format('c%s bigint DEFAULT insta6.next_id()', i), ', ') FROM generate_series(1, 600) AS i));
				EXECUTE format('INSERT INTO insta6.wide%s DEFAULT VALUES', n);
			END LOOP;
		END $$;
		UPDATE insta6.wide1 SET c600 = c600 + 1024; UPDATE insta6.wide3 SET c1 = c1 + 2048});
	foreach my $jobs ([], [ '--jobs', 3 ])
	{
		($status, $rows) = shard_json($program, 'verify', $node, @$jobs);
		is("$status " . join(' ', map { $_->{object} } @$rows), '1 insta6.wide1.c600 insta6.wide3.c1',
			"verify @$jobs: the columns with an ID of another shard, in order");
	}
	$node->safe_psql('postgres', 'DROP TABLE insta6.wide1, insta6.wide2, insta6.wide3');
};

subtest 'a shard on two servers is a finding' => sub {
	my $dump = dump_of($node, 'insta6');
	$other->safe_psql('postgres', "CREATE ROLE app LOGIN; $dump");
	($status, $rows) = shard_json($program, 'verify', $node, $other);
	is("$status " . join(' ', map { "$_->{finding} $_->{object}" } @$rows), '1 shard shard 6',
		'verify: a shard on two servers');
	like($rows->[0]{problem}, qr/open as schema insta6 here and as schema insta6 at \S+:$port\/postgres/,
		'verify: with both places');
	like($rows->[0]{hint}, qr/SELECT \* FROM snowflake_sequences WHERE shard = 6; shows/,
		'verify: and a query to decide by');
	unlike($rows->[0]{hint}, qr/DROP/, 'verify: no hint drops a shard');
	is((run_shard($program, 'map', $node, $other, '--format', 'pgbouncer'))[0], 3,
		'map: a router gets no shard at two places');
	$node->safe_psql('postgres', 'DROP SCHEMA insta6 CASCADE');
	($status, $rows) = shard_json($program, 'map', $node, $other);
	is(join(' ', map { $_->{port} } grep { $_->{shard} == 6 } @$rows), $other->port, 'map: a shard that was moved');
};

subtest 'a setting on two servers is a finding if both make IDs with it, and if it is a shard elsewhere' => sub {
	$_->safe_psql('postgres', 'ALTER DATABASE postgres SET snowflake.shard = 100') foreach $node, $other;
	$node->safe_psql('postgres', 'CREATE TABLE without_arguments (id bigint DEFAULT snowflake_next_id())');
	is((run_shard($program, 'verify', $node, $other))[0], 0,
		'verify: the same setting on two servers, one of which makes IDs with it');
	$other->safe_psql('postgres', 'SELECT snowflake_next_id()');
	($status, $rows) = shard_json($program, 'verify', $node, $other);
	is("$status " . join(' ', map { "$_->{finding} $_->{object}" } @$rows), '1 shard shard 100',
		'verify: two servers make IDs with the same setting');
	like("$rows->[0]{problem} $rows->[0]{hint}",
		qr/as the setting snowflake\.shard here and as the setting snowflake\.shard at \S+:$port\/postgres .*ALTER SYSTEM/,
		'verify: with both places, and the statement for each server');
	is((run_shard($program, 'verify', $node, $node))[0], 0, 'verify: a server that is given twice');
	$other->safe_psql('postgres', 'ALTER DATABASE postgres SET snowflake.shard = 1');
	($status, $rows) = shard_json($program, 'verify', $node, $other);
	like($rows->[0]{problem}, qr/as the setting snowflake\.shard here and as schema insta1 at/,
		'verify: the setting of a server is the shard of another');
	$other->safe_psql('postgres', 'ALTER DATABASE postgres SET snowflake.shard = 101');
	is((run_shard($program, 'verify', $node, $other))[0], 0, 'verify: a setting for each server');
	$other->safe_psql('postgres', 'CREATE ROLE reader; ALTER ROLE reader SET snowflake.shard = 100');
	is((run_shard($program, 'verify', $node, $other))[0], 1, 'verify: the setting of a role');
};

# --- the version of the extension -------------------------------------------------------------------

subtest 'each verb names another version of the extension before it does anything' => sub {
	my @verbs = (
		[ 'list', $node ], [ 'map', $node ], [ 'plan', $node, $other ], [ 'verify', $node ],
			[ 'diff', $node, '--template', 'insta1' ],
		[ 'query', $node, '--sql', 'SELECT 1' ], [ 'run', $node, '--shards', '1', '--sql', 'SELECT 1' ],
		[ 'clone', $node, '--template', 'insta1', '--shards', '90', '--schema', 'insta{}' ],
		[ 'clone', $other, '--template', 'insta6', '--shards', '90', '--schema', 'insta{}', '--to', $node ],
		[ 'move', 'insta1', '--from', $node, '--to', $other, '--dry-run' ],
		[ 'split', '--from', $node, '--standby', $other, '--shards', '1' ]);
	my $version = $node->safe_psql('postgres', q{SELECT extversion FROM pg_extension WHERE extname = 'snowflake'});
	my $server = $node->host . ':' . $node->port . '/postgres';
	$node->safe_psql('postgres', q{UPDATE pg_extension SET extversion = '0.9' WHERE extname = 'snowflake'});
	foreach my $verb (@verbs)
	{
		($status, undef, $err) = run_shard($program, @$verb);
		my $versions = qr/extension snowflake has version 0\.9, and this command works with .*\Q$version\E/;
		my $update = qr/ALTER EXTENSION snowflake UPDATE TO '\Q$version\E'; or/;
		ok($status == 3
			&& $err =~ /^(?:snowflake-shard: )?\Q$server\E: $versions\nHINT:  $update/m,
			"@$verb[0]: another version of the extension") or diag("$status $err");
	}
};

$node->stop;
$other->stop;
done_testing();
