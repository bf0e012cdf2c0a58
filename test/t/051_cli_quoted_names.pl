# Each text that leaves snowflake-shard is quoted for its destination. Schemas, databases, roles and aliases have names
# with quotes, a backslash, a newline, an escape sequence and text that a shell would run: commands in hints give these
# names back to a shell, URIs and PgBouncer lead to these databases, and no name begins a line on a terminal. A
# connection string that cannot be read is an error that repeats nothing of it.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use JSON::PP;
use OpenMetrics;
use PoolerTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $node = new_server('one', conf => "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\n");
my ($status, $out, $err, $rows);

my $hostile = "'\"\\ \n\$(touch pwned);`touch pwned`;%s%n \e[31m~";
my $option = '--switch-command=touch pwned';
my $quotes = q{a' host=evil port=1 user='b};
my $lines = "b'\"\\ :5/%41\n\$snowflake\$ \e[2J";

# A name for SQL.
sub name
{
	return '"' . ($_[0] =~ s/"/""/gr) . '"';
}

sub literal
{
	return "E'" . ($_[0] =~ s/(['\\])/\\$1/gr) . "'";
}

# psql sends a statement from its standard input, so no name is an argument.
sub sql
{
	my ($dsn, $sql) = @_;
	my ($answer, $problem);
	IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $dsn ], '<', \$sql, '>', \$answer, '2>', \$problem)
		or die "$sql: $problem";
	return $answer =~ s/\n\z//r;
}

sub dsn
{
	my ($database, $user) = @_;
	return $node->connstr($database) . (defined $user ? " user='" . ($user =~ s/(['\\])/\\$1/gr) . "'" : '');
}

# The words of a command as a shell reads them, up to an option.
sub words_of
{
	my ($text, $end) = @_;
	my ($command) = $text =~ /(snowflake-shard (?:move|split) .*?$end)/;
	return diag("no command in: $text") unless defined $command;
	IPC::Run::run([ 'bash', '-c', "cd $dir; printf '%s\\0' $command" ], '>', \my $words, '2>', \my $problem);
	diag($problem) if $problem ne '';
	return split /\0/, $words;
}

# Neither an escape sequence nor another control character; and each line is one of the command.
sub is_clean
{
	my ($text, $line, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @wrong = grep { /[^\t\x20-\x7E\x80-\xFF]/ || !/$line/ } split /\n/, $text;
	ok($text ne '' && !@wrong, $name) or diag("$text\nwrong: @wrong");
	return;
}

# Shards and databases with hostile names.
foreach my $database ($quotes, $lines)
{
	$node->safe_psql('postgres', 'CREATE DATABASE ' . name($database));
	sql(dsn($database), 'CREATE EXTENSION snowflake');
}
sql(dsn($quotes),
	"SELECT snowflake_create_shard(5, ${\literal($hostile)}); SELECT snowflake_create_shard(6, ${\literal($option)});
	CREATE TABLE ${\name($hostile)}.${\name($hostile)} (id bigint PRIMARY KEY
		DEFAULT ${\name($hostile)}.next_id(), t text);
	INSERT INTO ${\name($hostile)}.${\name($hostile)} (t) VALUES (${\literal($hostile)})");
sql(dsn($lines), 'SELECT snowflake_create_shard(7, \'insta7\')');

# --- a terminal ------------------------------------------------------------------------------------

subtest 'a terminal gets no control character, and no line that looks like one of the command' => sub {
	($status, $out, $err) = run_shard($program, 'list', dsn($quotes), dsn($lines));
	is("$status $err", '0 ', 'list');
	my $server = $node->host . ':';
	is_clean($out, qr/^(?:shard | +[5-7] |\Q$server\E)/, 'list: a line for each shard and server, without control characters');
	like($out, qr/ \\n\$\(touch.*\\x1B\[31m~ .*\n.*\n.*%41\\n\$snowflake\$ \\x1B\[2J$/m, 'and their escapes');
	($status, $out) = run_shard($program, 'list', '--format', 'prometheus', dsn($quotes), dsn($lines));
	my $samples = samples_of($out);
	is(join(' ', map { sample($samples, 'snowflake_shards', state => 'open', server => $server . $node->port . "/$_") }
			$quotes, $lines), '2 1', 'metrics have the names of the databases');
	($status, $rows) = shard_json($program, 'list', dsn($quotes), dsn($lines));
	is("$rows->[0]{schema}|$rows->[2]{server}", "$hostile|" . join(':', $node->host, $node->port) . "/$lines",
		'JSON has the names');
	my $values = "SELECT E'a\\nshard 9' AS ${\name($hostile)}, E'\\x1b]0;x\\x07\\u009b2J\\x7f\\r' AS x";
	($status, $out, $err) = run_shard($program, 'query', dsn($quotes), '--shards', '5', '--sql', $values);
	is_clean($out, qr/^(?:shard +schema| +5 )/, 'query: a line for each row');
	like($out, qr/a\\nshard 9 +\\x1B\]0;x\\x07\\x9B2J\\x7F\\r$/m, 'values have escapes');
	($status, $out) = run_shard($program, 'query', dsn($quotes), '--shards', '5', '--format', 'csv', '--sql', $values);
	like($out, qr/,"a\nshard 9","?\e\]0;x\a\xC2\x9B2J\x7F\r"?\n\z/, 'CSV has the values');
	($status, $out, $err) = run_shard($program, 'run', dsn($quotes), '--shards', '5',
		'--sql', "DO \$\$BEGIN RAISE EXCEPTION E'x\\nsnowflake-shard: forged\\nHINT:  \\x1b[2J\\r'; END\$\$");
	is_clean($err, qr/^(?:snowflake-shard: shard 5, schema .*ERROR:  x$|    snowflake-shard: forged$|    HINT:  \\x1B|CONTEXT:  |SERVER:  )/,
		'run: a message of a shard is no message of the command');
	is_clean($out, qr/^1 shard failed: 5$/, 'run: the result');
	($status, $out, $err) = run_shard($program, 'diff', dsn($quotes), '--template', $option);
	is_clean($out, qr/^(?:shard 5, schema |[-+] |1 shard compared with )/, 'diff');
	sql(dsn($quotes), "INSERT INTO ${\name($hostile)}.${\name($hostile)} VALUES (${\name($option)}.next_id())");
	($status, $out) = run_shard($program, 'verify', dsn($quotes));
	is_clean($out, qr/^(?:\/.*: |    HINT:  |2 shards on 1 server, 1 finding$)/, 'verify');
	sql(dsn($quotes), "DELETE FROM ${\name($hostile)}.${\name($hostile)} WHERE snowflake_shard(id) = 6");
	($status, $out) = run_shard($program, 'plan', dsn($quotes), dsn($lines), '--drain', dsn($quotes));
	is_clean($out =~ s/\n\n/\n/gr, qr/^(?:shard|server| +[56] |\/| +after| |2 moves|balanced|.*at the limit|.*: )/,
		'plan');
	($status, $out, $err) = run_shard($program, 'diff', dsn($quotes), '--template', "$hostile?");
	is_clean($err, qr/^(?:snowflake-shard: schema|HINT:)/, 'a schema that is not there');
};

# --- PgBouncer and PL/Proxy ------------------------------------------------------------------------

subtest 'the map for PgBouncer and PL/Proxy' => sub {
	($status, $out, $err) = run_shard($program, 'map', dsn($lines), '--format', 'pgbouncer');
	is("$status $out", '3 ', 'map: PgBouncer\'s file cannot hold a newline') or diag($err);
	is_clean($err, qr/^snowflake-shard: PgBouncer's file cannot hold the value "b'"\\ :5\/%41\\n\$snowflake\$ \\x1B\[2J"$/,
		'and the name is told');
	($status, $out, $err) =
		run_shard($program, 'map', dsn($quotes), '--format', 'pgbouncer', '--alias', "x = host=evil;{}\n");
	ok("$status $out" eq '3 ' && $err =~ /cannot hold the alias "x = host=evil;5\\n"/,
		'an alias that would be another line') or diag("$out$err");
	($status, my $plproxy) = run_shard($program, 'map', dsn($lines), '--format', 'plproxy', '--cluster', $hostile);
	sql($node->connstr('postgres'), "CREATE FOREIGN DATA WRAPPER plproxy;\n$plproxy");
	my $partition = $node->safe_psql('postgres',
		q{SELECT encode(convert_to(substr(o, 4), 'UTF8'), 'hex') FROM pg_foreign_server, unnest(srvoptions) AS o
		WHERE o LIKE 'p7=%' AND srvname = } . literal($hostile));
	is(sql(pack('H*', $partition), 'SELECT current_database()'), $lines,
		'map: a partition of PL/Proxy leads to the database');
};

subtest 'PgBouncer leads to a database of such a name, also after a move' => sub {
	SKIP:
	{
		skip 'pgbouncer is not installed', 5 unless pgbouncer_program();
		($status, $out) = run_shard($program, 'map', dsn($quotes), '--format', 'pgbouncer');
		my $pooler = new_pooler($out =~ s/\[databases\]\n//r);
		my $through = "host=$pooler->{dir} port=6432 dbname=shard5 user=" . getpwuid($<);
		is(sql($through, 'SELECT current_database()'), $quotes, 'map: PgBouncer leads to the database');
		# The file is edited in the same way.
		my $other = q{c' host=evil port=2 user='d};
		$node->safe_psql('postgres', 'CREATE DATABASE ' . name($other));
		sql(dsn($other), 'CREATE EXTENSION snowflake');
		my @arguments = ('--from', dsn($quotes), '--pgbouncer', $pooler->{dsn}, '--config', $pooler->{file});
		($status, $out, $err) = run_shard($program, 'move', $option =~ s/^/.\//r, @arguments, '--to', dsn($other));
		isnt($status, 0, 'a schema that is not there');
		($status, $out, $err) =
			run_shard($program, 'move', @arguments, '--to', dsn($other), '--alias', 'shard{}', '--', $hostile);
		is($status, 0, 'move: a schema with such a name') or diag("$out$err");
		is(sql($through, "SELECT current_database(), count(*) FROM ${\name($hostile)}.${\name($hostile)}"), "$other|1",
			'move: PgBouncer leads to the target');
		is_clean($err, qr/^(?:snowflake-shard: )/, 'move: messages');

		# An obstacle: the schema is there already. Its hint is a command.
		($status, $out) =
			run_shard($program, 'move', @arguments[ 0, 1 ], '--to', dsn($other), '--complete', '--', $hostile);
		is($status, 0, 'move --complete');
		($status, $out, $err) =
			run_shard($program, 'move', '--from', dsn($other), '--to', dsn($quotes), @arguments[ 2 .. 5 ], '--', $hostile);
		is($status, 0, 'move: back') or diag("$out$err");
		is((run_shard($program, 'move', '--from', dsn($other), '--to', dsn($quotes), '--complete', '--', $hostile))[0], 0,
			'move --complete');
	}
};

# --- a shell ---------------------------------------------------------------------------------------

subtest 'the hint of a dry run has the name' => sub {
	sql(dsn($lines), "CREATE SCHEMA ${\name($hostile)}; CREATE TABLE ${\name($hostile)}.t (); CREATE SCHEMA ${\name($option)}");
	foreach my $schema ($hostile, $option)
	{
		($status, $out, $err) =
			run_shard($program, 'move', '--from', dsn($quotes), '--to', dsn($lines), '--dry-run', '--', $schema);
		is_clean($out, qr/^(?:\S.*: schema .* is there already$|    HINT:  )/, 'move --dry-run: an obstacle');
		my ($statement) = $out =~ /(?:Decide by|It is empty:) ((?:SELECT|DROP) .*;)$/m;
		is(sql(dsn($lines), $statement), $schema eq $hostile ? 't|-1' : '', 'the hint is a statement with the name');
	}
	is(sql(dsn($lines), "SELECT to_regnamespace('${\name($option)}') IS NULL"), 't', 'the one that was empty is dropped');
	sql(dsn($lines), "DROP SCHEMA ${\name($hostile)} CASCADE");
};

subtest 'the hints about a move that was killed have the name' => sub {
	# Moves that were killed at the fence, where locks kept them. The hints of other verbs name the next command.
	sql(dsn($quotes), "CREATE TABLE ${\name($option)}.held (id bigint PRIMARY KEY)");
	foreach my $schema ($hostile, $option)
	{
		my $shard = $schema eq $hostile ? 5 : 6;
		my $holder = $node->background_psql($quotes);
		my $table = $schema eq $hostile ? $hostile : 'held';
		$holder->query_safe("BEGIN; LOCK TABLE ${\name($schema)}.${\name($table)} IN ROW EXCLUSIVE MODE");
		my @move = ('--from', dsn($quotes), '--to', dsn($lines));
		my $move = start_command('move', 'source: triggers of the fence', @move, '--timeout', '60s', '--', $schema);
		kill_command($move->{run});
		# The last command may still have its locks.
		await('the move can be gone on with', sub {
			($status, $out, $err) = run_shard($program, 'move', @move, '--resume', '--timeout', '100ms', '--', $schema);
			$err !~ /another snowflake-shard/ });
		is($status, 3, 'a move that is not at its end') or diag("$out$err");
		my @words = words_of($err, '(?= goes on)');
		is(scalar(grep { $_ eq $schema } @words), 1, 'move: its hint has the name');
		is(sql($words[ 1 + (grep { $words[$_] eq '--to' } 0 .. $#words)[0] ], 'SELECT current_database()'), $lines,
			'move: and its connection strings');
		is_clean($err, qr/^(?:snowflake-shard: |HINT:  |[A-Z]+:  |process |It has waited for process )/, 'move: messages of it');
		foreach my $verb ([ 'verify', 'goes on with', ' ' ],
			[ 'run', 'goes on with', ' ', '--shards', $shard, '--sql', 'SELECT 1' ])
		{
			my ($name, $behind, $between, @options) = @$verb;
			($status, $out, $err) = run_shard($program, $name, dsn($quotes), @options);
			my $moving = qr/snowflake-shard: shard \d, schema .* is moving$/;
			is_clean("$out$err",
				qr/^(?:\/.*: |    HINT:  |HINT:  |2 shards on 1 server, |$moving|Nothing was done\.$)/,
				"$name: messages of a move");
			@words = words_of("$out$err", "(?=$between$behind)");
			is(scalar(grep { $_ eq $schema } @words), 1, "$name: the hint has the name");
			my ($from, $to) = map { my $option = $_; $words[ 1 + (grep { $words[$_] eq $option } 0 .. $#words)[0] ] } '--from',
				'--to';
			is(sql($from, 'SELECT current_database()') . sql($to, 'SELECT current_database()'), "$quotes$lines",
				"$name: its URIs lead to the databases");
		}
		$holder->quit;
		$words[$_] =~ s/^--resume$/--abort/ foreach 0 .. $#words;
		shift @words;
		is((run_shard($program, @words))[0], 0, 'the command of the hint is one');
	}
	ok(!-e "$dir/pwned" && !-e 'pwned', 'no shell ran a part of a name');
};

subtest 'a role that has few rights, and a name with a newline' => sub {
	my $role = "r'\"\n\e[31m;\$(touch pwned)";
	$node->safe_psql('postgres', "CREATE ROLE ${\name($role)} LOGIN");
	($status, $out, $err) =
		run_shard($program, 'move', '--from', dsn($quotes, $role), '--to', dsn($lines, $role), '--dry-run', '--', $option);
	is($status, 1, 'move --dry-run by a role without rights') or diag($err);
	is_clean($out, qr/^(?:\/\S+:\d+\/.*: |    HINT:  )/, 'its obstacles are lines of the command');
	sql(dsn($quotes), "GRANT USAGE ON SCHEMA ${\name($hostile)} TO ${\name($role)}");
	($status, $out, $err) = run_shard($program, 'diff', dsn($quotes, $role), '--template', $hostile);
	is_clean($err, qr//, 'pg_dump names a table');
	like($err, qr/pg_dump failed: .*permission denied for table '"\\ \\n/, 'and its message is printed');
	($status, $out, $err) = run_shard($program, 'list', dsn("\e[2J\nno"));
	is_clean($err, qr/^snowflake-shard: /, 'a database that is not there');
};

# --- passwords -------------------------------------------------------------------------------------

# Each has SECRET, or both halves of it.
my @strings = (
	'postgresql://u:SEC%RET@h/db', 'postgresql://u:SEC@RET@h/db', 'postgresql://u:SEC/RET@h/db', 'postgresql://u:SEC/RET',
		'postgresql://u:SECRET',
	'postgres://u:x@h:SECRET/db', 'postgresql://u:x@[SECRET/db', 'postgresql:/u:SECRET@h/db',
	'postgre://u:SECRET@h/db?sslmode=x',
	'postgresql://u:x@h/db?SECRET', 'postgresql://u:x@h/db?password=SEC%zzRET', 'host=h password=x SECRET',
	'host=h password=SEC RET=x',
	q{host=h password='SECRET}, 'u:SECRET@h', 'SECRET@h');
my $file = "$dir/servers";
my %places = (
	(map { my $verb = $_; ($verb => sub { $verb, @_ }) } qw(list verify map plan)),
	'query'        => sub { 'query', @_, '--sql', 'SELECT 1' },
	'run'          => sub { 'run', @_, '--sql', 'SELECT 1' },
	'move --from'  => sub { 'move', 'x', '--from', @_, '--to', $node },
	'move --to'    => sub { 'move', 'x', '--from', $node, '--to', @_ },
	'--source'     => sub { 'move', 'x', '--from', $node, '--to', $node, '--source', @_ },
	'--target'     => sub { 'move', 'x', '--from', $node, '--to', $node, '--target', @_ },
	'--pgbouncer'  => sub { 'move', 'x', '--from', $node, '--to', $node, '--config', $file, '--pgbouncer', @_ },
	'split --from' => sub { 'split', '--shards', '5', '--standby', $node, '--from', @_ },
	'--standby'    => sub { 'split', '--shards', '5', '--from', $node, '--standby', @_ },
	'clone --to'   => sub { 'clone', $node, '--template', 'x', '--schema', 'x{}', '--shards', '9', '--to', @_ },
	'--drain'      => sub { 'plan', $node, '--drain', @_ },
	'a verb'       => sub { @_ },
	'too many'     => sub { 'move', 'x', @_, '--from', $node, '--to', $node },
	'an option'    => sub { 'move', 'x', "--frm@_", '--to', $node },
	'a number'     => sub { 'clone', $node, '--template', 'x', '--schema', 'x{}', '--shards', '9', '--jobs', @_ },
	'a file'       => sub { write_file($file, "\n# servers\n@_\n"); 'list', "\@$file" },
	'environment'  => sub { write_file($file, "\n@_\n"); 'list' },
	'a plan'       => sub { write_file($file,
		encode_json([ { shard => 5, schema => 'x', from => 'dbname=x', to => $_[0] } ])); 'move', '--plan', $file });

sub write_file
{
	my ($name, $text) = @_;
	unlink $name;
	append_to_file($name, $text);
	return;
}

subtest 'a connection string that cannot be read is not repeated' => sub {
	foreach my $place (sort keys %places)
	{
		my @wrong;
		# One function reads them all, so other places get one of each kind.
		foreach my $string ($place eq 'list' || $place eq 'a verb' ? @strings : @strings[ 0, 2, 4, 11, -1 ])
		{
			my @arguments = $places{$place}->($string);
			local $ENV{SNOWFLAKE_SERVERS} = $file;
			($status, $out, $err) = run_shard($program, @arguments);
			push @wrong, "$string: $status $out$err" if $status != 2 || "$out$err" =~ /SEC|ECR|CRE|RET/;
		}
		is(join("\n", @wrong), '', "$place: a string that cannot be read is not repeated");
	}
};

subtest 'the place of such a string is told' => sub {
	write_file($file, "dbname=x\n\nhost=h x\n");
	like((run_shard($program, 'list', "\@$file"))[2],
		qr/^snowflake-shard: file \Q$file\E, line 3: a connection string cannot be read: missing "\.\.\."/,
		'its place is told: a line of a file');
	like((run_shard($program, 'list', 'dbname=x', 'host=h x'))[2], qr/^snowflake-shard: DSN 2: a connection/,
		'an argument');
	like((run_shard($program, 'move', 'x', '--from', 'dbname=x', '--to', 'u@h'))[2],
		qr/^snowflake-shard: --to: .*\nHINT:  .* %40 for @/, 'an option');
	is(sql("postgresql:///postgres?host=${\$node->host}&port=${\$node->port}&application_name=a\@b", 'SELECT 1'), 1,
		'an @ behind the database');
	# libpq 18 takes no space in a URI.
	my $encoded = $quotes =~ s/(\W)/sprintf '%%%02X', ord $1/ger;
	is((run_shard($program, 'list',
		"postgresql:///$encoded?host=${\$node->host}&port=${\$node->port}&application_name=a\@b"))[0], 0, 'can be read');
};

$node->stop;
done_testing();
