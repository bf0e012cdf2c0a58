# Public names of IDs, examples/public-ids: SQL and the programs in other languages give the same names, each ID
# has one name, and a name leads back to its ID. A role that may make and read names gets no key, neither from an error
# nor by planted functions, and a role without rights gets nothing.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ClientTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

seed_random();
my $node = new_server('public_ids');
plan skip_all => 'the extension pgcrypto is not installed'
	if $node->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'pgcrypto'}) == 0;

my $examples = "$FindBin::RealBin/../../examples/public-ids";
my @vectors = vectors_of(slurp_file("$examples/vectors.txt"));
my $files = PostgreSQL::Test::Utils::tempdir();
$ENV{PYTHONDONTWRITEBYTECODE} = 1;

sub vectors_of
{
	return map { [ split / /, $_, 5 ] } grep { /^[^#]/ } split /\n/, $_[0];
}

sub sql
{
	return $node->safe_psql('postgres', @_);
}

# The output and the messages of a role's statements, with all that psql shows of an error.
sub as
{
	my ($role, $sql) = @_;
	my (undef, $out, $err) = $node->psql('postgres', $sql, extra_params => [ '-U', $role, '-v', 'VERBOSITY=verbose' ]);
	return "$out$err";
}

sub is_refused
{
	my ($role, $sql, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(sqlstate($node, $sql, params => [ '-U', $role ]), '42501', $name);
}

sub runs_file
{
	my ($file, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $settings = 'SET ROLE public_ids; SET search_path = planted, pg_catalog, public';
	return $node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'),
			'-c', $settings, '-f', "$examples/$file" ], $name);
}

# --- the functions in SQL ------------------------------------------------------------------------

# A hostile role has a function or an operator in the place of each that the bodies call. Each of them says so in the
# server's log, which a ROLLBACK does not take back.
my @planted = map { [ split / -> / ] } (
	'encrypt(bytea, bytea, text) -> bytea', 'decrypt(bytea, bytea, text) -> bytea',
	'encrypt_block(bytea, bytea) -> bytea', 'decrypt_block(bytea, bytea) -> bytea',
	'checked_key(text, bytea) -> bytea', 'checked_name(text) -> text', 'zeros(bytea) -> bytea',
	'int8send(bigint) -> bytea', 'repeat(text, integer) -> text', 'substr(bytea, integer) -> bytea',
	'substring(bit, integer, integer) -> bit', 'length(bytea) -> integer',
	'encode(bytea, text) -> text', 'decode(text, text) -> bytea', 'translate(text, text, text) -> text',
	'left(text, integer) -> text', 'substr(text, integer) -> text', 'length(text) -> integer',
	'octet_length(bytea) -> integer', 'now() -> timestamptz');
my @operators = ('||', '<>', '!~', '=', '<=');

sub plant
{
	my $language = q{LANGUAGE plpgsql AS 'BEGIN RAISE LOG ''planted code has run''; RETURN NULL; END'};
	return join "\n",
		(map { "CREATE FUNCTION planted.$_->[0] RETURNS $_->[1] $language;" } @planted),
		"CREATE FUNCTION planted.join(text, text) RETURNS text $language;",
		"CREATE FUNCTION planted.compare(text, text) RETURNS boolean $language;",
		"CREATE FUNCTION planted.compare(timestamptz, timestamptz) RETURNS boolean $language;",
		"CREATE FUNCTION planted.compare(integer, integer) RETURNS boolean $language;",
		(map { "CREATE OPERATOR planted.$_ (LEFTARG = text, RIGHTARG = text, FUNCTION = planted."
				. ($_ eq '||' ? 'join' : 'compare') . ');' } @operators),
		'CREATE OPERATOR planted.<= (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = planted.compare);',
		'CREATE OPERATOR planted.<> (LEFTARG = integer, RIGHTARG = integer, FUNCTION = planted.compare);';
}

sub planted_code_runs
{
	my ($sql) = @_;
	my $offset = -s $node->logfile;
	my $shown = as('hostile', "SET search_path = planted, pg_temp, pg_catalog; $sql");
	return (slurp_file($node->logfile, $offset) =~ /LOG:  planted code has run/ ? 1 : 0, $shown);
}

subtest 'the files run' => sub {
	sql(q{
		CREATE ROLE public_ids NOLOGIN;
		CREATE ROLE app LOGIN;
		CREATE ROLE stranger LOGIN;
		CREATE ROLE hostile LOGIN;
		GRANT public_ids TO CURRENT_USER;
		CREATE SCHEMA public_ids AUTHORIZATION public_ids;
		CREATE SCHEMA planted AUTHORIZATION hostile;
		GRANT USAGE ON SCHEMA planted TO PUBLIC;
	});
	as('hostile', plant());
	is(sql(q{SELECT count(*) FROM pg_proc WHERE pronamespace = 'planted'::regnamespace}), @planted + 4,
		'every function is planted');
	my (undef, undef, $message) = $node->psql('postgres', "\\i $examples/functions.sql");
	like($message, qr/does not have the extension pgcrypto\nHINT:  CREATE EXTENSION pgcrypto;/,
		'without pgcrypto the message says so');
	sql(q{
		CREATE SCHEMA "the ciphers";
		CREATE EXTENSION pgcrypto SCHEMA "the ciphers";
		GRANT USAGE ON SCHEMA "the ciphers" TO PUBLIC;
	});
	runs_file('functions.sql', 'functions.sql runs while a hostile schema is first in the search_path');
	runs_file('keys.sql', 'keys.sql runs while a hostile schema is first in the search_path');
	unlike(slurp_file($node->logfile), qr/LOG:  planted code has run/, 'nothing of that schema was run');
	sql('GRANT USAGE ON SCHEMA public_ids TO app, hostile;
		GRANT EXECUTE ON FUNCTION public_ids.name_of(bigint), public_ids.id_of(text) TO app, hostile');
};

# What SQL makes of the vectors, in the form of the file.
sub sql_answer
{
	my ($kind, $version, $key, $value, $result) = @{ $_[0] };
	if ($kind eq 'made')
	{
		return sql("SELECT 'made', '$version', '$key', public_ids.id_of('$result', '$version', '\\x$key'),
			public_ids.name_of($value, '$version', '\\x$key')") =~ tr/|/ /r;
	}
	my (undef, undef, $error) = $node->psql('postgres', "SELECT public_ids.id_of('$value', '$version', '\\x$key')");
	my ($message) = $error =~ /ERROR:  (.*)/;
	return join ' ', $kind, $version, $key, $value, $message // 'no error';
}

subtest 'SQL gives the names of vectors.txt' => sub {
	is(sql_answer($_), join(' ', @$_), "@$_[0, 1, 3]") foreach @vectors;
	cmp_ok(scalar(grep { $_->[0] eq 'made' } @vectors), '>=', 40, 'there are names');
	cmp_ok(scalar(grep { $_->[0] eq 'refused' } @vectors), '>=', 40, 'there are refusals');
	is(sql(q{SELECT public_ids.name_of(NULL, 'a', '\x00'), public_ids.id_of(NULL, 'a', '\x00')}), '|',
		'NULL gives NULL');
};

# Key a is one of AES first, then one of 3DES.
subtest 'an ID has one name, which leads back to it' => sub {
	my $seed = rand();
	sql(qq{
		SELECT setseed($seed);
		CREATE TABLE random_ids AS
			SELECT (random() * 2147483647)::bigint << 32 | (random() * 4294967295)::bigint AS id
			FROM generate_series(1, 10000)
			UNION SELECT snowflake_encode('2026-01-01', 5, n % 1024) + (n / 1024 << 23)
			FROM generate_series(0, 9999) AS n;
		CREATE TABLE names (id bigint, name text);
	});
	my %length_of = (32 => 23, 24 => 12);
	foreach my $bytes (32, 24)
	{
		sql(qq{
			DELETE FROM public_ids.keys;
			INSERT INTO public_ids.keys (version, key) VALUES ('a', "the ciphers".gen_random_bytes($bytes));
			TRUNCATE names;
			INSERT INTO names SELECT id, public_ids.name_of(id) FROM random_ids;
		});
		is(sql(q{SELECT count(*) > 19990, count(DISTINCT name COLLATE "C") = count(*),
			bool_and(public_ids.id_of(name) = id), min(length(name)), max(length(name)) FROM names}),
			"t|t|t|$length_of{$bytes}|$length_of{$bytes}", "of 20,000 IDs, half of them neighbours: $bytes bytes");
		is(sql(q{SELECT count(*) FROM names, public_ids.keys AS k WHERE name <> public_ids.name_of(id, version, key)}),
			'0', "the key of the table and the same key as a parameter give the same names: $bytes bytes");
	}
};

subtest 'AES: a name with a changed bit, or of another key, is refused' => sub {
	sql(q{
		CREATE FUNCTION id_or_null(name text, key bytea) RETURNS bigint LANGUAGE plpgsql AS $$
		BEGIN
			RETURN public_ids.id_of(name, 'a', key);
		EXCEPTION WHEN invalid_text_representation THEN
			RETURN NULL;
		END $$;
		CREATE TABLE two_keys AS
			SELECT "the ciphers".gen_random_bytes(32) AS key, "the ciphers".gen_random_bytes(32) AS other;
	});
	is(sql(q{
		SELECT count(DISTINCT changed), count(id_or_null(changed, key)), count(id_or_null(name, key))
		FROM two_keys, public_ids.name_of(5, 'a', key) AS name,
			decode(translate(substr(name, 2), '-_', '+/') || '==', 'base64') AS block, generate_series(0, 127) AS bit,
			encode(set_bit(block, bit, 1 - get_bit(block, bit)), 'base64') AS text,
			concat('a', translate(text, '+/=', '-_')) AS changed
	}), '128|0|128', 'each of the 128 bits');
	is(sql(q{
		SELECT count(id_or_null(public_ids.name_of(id, 'a', key), key)),
			count(id_or_null(public_ids.name_of(id, 'a', other), key))
		FROM two_keys, generate_series(1, 10000) AS id
	}), '10000|0', '10,000 names of another key');
};

# --- programs ------------------------------------------------------------------------------------

# Names of other IDs and keys than those of the file, and a file with an error.
my $random = "$files/random.txt";
append_to_file($random, sql(q{
	SELECT format('made %s %s %s %s', version, encode(key, 'hex'), id, public_ids.name_of(id, version, key))
	FROM (VALUES ('r', "the ciphers".gen_random_bytes(32)), ('s', "the ciphers".gen_random_bytes(24)))
		AS k (version, key), (SELECT id FROM random_ids LIMIT 300) AS i
}) . "\n");
my $wrong = "$files/wrong.txt";
append_to_file($wrong, slurp_file("$examples/vectors.txt") =~ s/^(made b \S+ 1) \S+/$1 bAAAAAAAAAAAAAAAAAAAAAA/mr);

sub gives_the_same_names
{
	my ($language, @command) = @_;
	my ($status, $out, $err) = run(@command, "$examples/vectors.txt");
	my $count = @vectors;
	like($out, qr/^\Q$language\E \d\S*.*: $count vectors hold\n\z/, "$language gives the names of vectors.txt");
	is($status, 0, "$language: the program ends with 0") or diag($err);
	note($out);
	($status, $out, $err) = run(@command, $random);
	like($out, qr/: 600 vectors hold\n\z/, "$language gives the names of random IDs") or diag($err);
	($status, $out, $err) = run(@command, $wrong);
	ok($status == 1 && $err =~ /bAAAAAAAAAAAAAAAAAAAAAA/, "$language: the program finds a wrong name")
		or diag("$status: $out$err");
	return;
}

subtest 'programs give the same names' => sub {
	SKIP:
	{
		my $python = python_with('cryptography') or skip 'cryptography is not installed for python3', 1;
		gives_the_same_names('python', $python, '-W', 'error', "$examples/public_ids.py");
	}
	my %command_of = (
		node => [ 'node', "$examples/public_ids.js" ],
		javac => [ java_command(), "$examples/PublicIds.java" ],
		go => [ 'go', 'run', "$examples/public_ids.go" ],
		php => [ 'php', "$examples/public_ids.php" ],
		ruby => [ 'ruby', '-w', "$examples/public_ids.rb" ]);
	local %ENV = (%ENV, GOCACHE => "$files/go", GO111MODULE => 'off', GOTOOLCHAIN => 'local');
	foreach my $program (qw(node javac go php ruby))
	{
		SKIP:
		{
			skip "$program is not installed", 1 unless has_program($program);
			gives_the_same_names($program eq 'javac' ? 'java' : $program, @{ $command_of{$program} });
		}
	}
};

# --- keys and rights -----------------------------------------------------------------------------

subtest 'a new key, of AES after one of 3DES' => sub {
	my $old = sql('SELECT public_ids.name_of(1)');
	sql(q{INSERT INTO public_ids.keys VALUES ('b', "the ciphers".gen_random_bytes(32), now() + interval '1 day')});
	is(sql('SELECT public_ids.name_of(1)'), $old, 'before its start it makes no names');
	sql(q{INSERT INTO names SELECT 1, public_ids.name_of(1, version, key) FROM public_ids.keys WHERE version = 'b'});
	is(sql(q{SELECT public_ids.id_of(name) FROM names WHERE name ~ '^b'}), '1', 'before its start it reads names');
	sql(q{UPDATE public_ids.keys SET starts_at = now() WHERE version = 'b'});
	my $new = sql('SELECT public_ids.name_of(1)');
	ok($new =~ /^b/ && $old =~ /^a/, 'from its start on it makes names') or diag("$old $new");
	is(sql("SELECT public_ids.id_of('$old'), public_ids.id_of('$new')"), '1|1', 'names of both keys are read');
	sql(q{DELETE FROM public_ids.keys WHERE version = 'a'});
	is(sqlstate($node, "SELECT public_ids.id_of('$old')"), '22023', 'names of a deleted key are refused');
	is(sqlstate($node, q{INSERT INTO public_ids.keys VALUES ('c', '\x0102')}), '22023', 'a short key is refused');
	is(sqlstate($node, q{INSERT INTO public_ids.keys VALUES ('c', decode(repeat('01', 24), 'hex'))}), '22023',
		'a weak key is refused');
	is(sqlstate($node, 'BEGIN; DELETE FROM public_ids.keys; SELECT public_ids.name_of(1)'), '55000',
		'no key is an error');
};

subtest 'rights' => sub {
	is_refused('stranger', $_, "a stranger: $_") foreach 'SELECT public_ids.name_of(1)',
		q{SELECT public_ids.id_of('bAAAAAAAAAAA')}, 'SELECT FROM public_ids.keys';
	sql('GRANT USAGE ON SCHEMA public_ids TO stranger');
	is_refused('stranger', $_, "a stranger with USAGE on the schema: $_") foreach 'SELECT public_ids.name_of(1)',
		q{SELECT public_ids.id_of('bAAAAAAAAAAA')}, 'SELECT FROM public_ids.keys';
	is_refused('app', $_, "the application: $_") foreach 'SELECT key FROM public_ids.keys',
		'SELECT count(*) FROM public_ids.keys', 'UPDATE public_ids.keys SET starts_at = now()',
		'COPY public_ids.keys TO STDOUT', 'CREATE TABLE public_ids.t ()', 'SET ROLE public_ids',
		q{CREATE OR REPLACE FUNCTION public_ids.encrypt_block(bytea, bytea) RETURNS bytea RETURN $2};
	like(as('app', 'SELECT public_ids.name_of(1), public_ids.id_of(public_ids.name_of(1))'), qr/^b\S{22}\|1\n?\z/,
		'the application makes and reads names');
	is(sql(q{SELECT proname FROM pg_proc WHERE pronamespace = 'public_ids'::regnamespace AND prosecdef
		AND has_function_privilege('stranger', oid, 'EXECUTE')}), '',
		'no function with the rights of the owner is for all');
	sql('CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader');
	like(as('reader', 'SELECT count(*) FROM public_ids.keys'), qr/^1$/m,
		'pg_read_all_data reads the keys, as docs/public-ids.md says');
};

# In hexadecimal digits, as psql shows it, or in the form of debug_print_plan.
sub has_key
{
	my ($text, $key) = @_;
	my $numbers = join '\s+', unpack 'c*', pack 'H*', $key;
	return $text =~ /$key|$numbers/;
}

subtest 'the application does not see a key' => sub {
	my $key = sql(q{SELECT encode(key, 'hex') FROM public_ids.keys});
	my $offset = -s $node->logfile;
	sql(q{
		ALTER ROLE app SET session_preload_libraries = 'auto_explain';
		ALTER ROLE app SET auto_explain.log_min_duration = 0;
		ALTER ROLE app SET auto_explain.log_nested_statements = on;
		ALTER ROLE app SET auto_explain.log_verbose = on;
	});
	my $all = 'SET client_min_messages = debug5; SET debug_print_parse = on; SET debug_print_rewritten = on;
		SET debug_print_plan = on; SET debug_pretty_print = off; ';
	like(as('app', "$all SELECT public_ids.name_of(1)"), qr/LOG:.*PLANNEDSTMT.*duration: .*Query Text: SELECT/s,
		'the application sees plans and nested statements');
	foreach my $call (
		'SELECT public_ids.name_of(1)',
		'SELECT public_ids.id_of(public_ids.name_of(1))',
		q{SELECT public_ids.id_of('bAAAAAAAAAAAAAAAAAAAAAA')},
		q{SELECT public_ids.id_of('bAA')},
		q{SELECT public_ids.id_of('bAAAAAAAAAAB')},
		q{SELECT public_ids.id_of('zAAAAAAAAAAA')},
		'EXPLAIN (ANALYZE, VERBOSE) SELECT public_ids.name_of(1)',
		'SELECT * FROM pg_stat_activity; SELECT * FROM pg_stats; SELECT prosrc FROM pg_proc')
	{
		my $shown = as('app', $all . $call);
		ok(length $shown > 100 && !has_key($shown, $key), $call);
	}
	ok(!has_key(slurp_file($node->logfile, $offset), $key), 'the log of the server does not have it');
	like(as('app', q{SELECT public_ids.id_of('bAA')}),
		qr/ERROR:  22P02: a public name has 23 characters, or 12 with 3DES, not 3\n/,
		'a name of a wrong length is an error with a message');

	# docs/public-ids.md says this of a key that is a parameter.
	sql("ALTER SYSTEM SET log_min_duration_statement = 0; SELECT pg_reload_conf()");
	await('the setting is in use', sub { sql('SHOW log_min_duration_statement') eq '0' });
	sql("SELECT public_ids.name_of(1, 'b', '\\x$key')");
	ok(has_key(slurp_file($node->logfile, $offset), $key), 'a key as a parameter stands in the log');
	ok(has_key(as('app', "$all SELECT pg_sleep(0), '\\x$key'::bytea") =~ s/\Q$key\E//gr, $key),
		'a plan would show a key');
	sql('ALTER SYSTEM RESET log_min_duration_statement; SELECT pg_reload_conf()');
};

subtest 'another session does not see a key that is a parameter' => sub {
	my $key = unpack 'H*', pack 'C*', 1 .. 32;
	my $session = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') . ' application_name=with_key',
			'-c', "SELECT public_ids.name_of(1, 'b', '\\x$key'), pg_sleep(600)" ], '>', \my $out, '2>', \my $err);
	my $query = q{SELECT query FROM pg_stat_activity WHERE application_name = 'with_key' AND query <> ''};
	await('the session runs', sub { has_key(sql($query), $key) });
	is(as('app', 'SELECT DISTINCT query FROM pg_stat_activity WHERE pid <> pg_backend_pid()') =~ s/\n\z//r,
		'<insufficient privilege>', 'pg_stat_activity shows it to no other role');
	sql('GRANT pg_read_all_stats TO stranger');
	ok(has_key(as('stranger', $query), $key), 'but to one with pg_read_all_stats, as docs/public-ids.md says');
	sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'with_key'});
	$session->finish;
};

subtest 'planted functions are not called' => sub {
	my $name = sql('SELECT public_ids.name_of(1)');
	foreach my $sql ('SELECT public_ids.name_of(1)', "SELECT public_ids.id_of('$name')",
		q{CREATE TEMPORARY TABLE keys AS SELECT 'b'::text AS version, '\x00'::bytea AS key;
			SELECT public_ids.name_of(1)})
	{
		my ($has_run, $shown) = planted_code_runs($sql);
		ok(!$has_run && $shown =~ /^(\Q$name\E|1)\n?\z/, $sql) or diag($shown);
	}
	my ($has_run) = planted_code_runs(q{SELECT public_ids.id_of('bAA')});
	ok(!$has_run, 'a refused name');

	# The same functions without their search_path are fooled: so the planted ones are in the right places.
	my %call_of = ('name_of(bigint)' => 'name_of(1)', 'id_of(text)' => "id_of('$name')");
	foreach my $function (sort keys %call_of)
	{
		sql("ALTER FUNCTION public_ids.$function RESET search_path");
		($has_run) = planted_code_runs("SELECT public_ids.$call_of{$function}");
		ok($has_run, "$function without its search_path calls planted code");
		sql("ALTER FUNCTION public_ids.$function SET search_path = pg_catalog, pg_temp");
	}
};

subtest 'a dump has the keys' => sub {
	my $name = sql('SELECT public_ids.name_of(1)');
	$node->safe_psql('postgres', 'CREATE DATABASE restored');
	$node->command_ok([ 'pg_dump', '-Fc', '-f', "$files/dump", $node->connstr('postgres') ], 'pg_dump');
	$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('restored'), "$files/dump" ],
		'pg_restore');
	is($node->safe_psql('restored', "SELECT public_ids.name_of(1), public_ids.id_of('$name')"), "$name|1",
		'names after a restore are the same');
};

$node->stop;
done_testing();
