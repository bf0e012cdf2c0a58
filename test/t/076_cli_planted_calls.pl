# The command calls functions of PostgreSQL and of the extension, and no other. A role that may create in the schema
# of the extension has made a better match for every call in the sources of the command, operators and casts, and the
# search_path of the command's role begins with that schema. No verb runs any of it.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PlantedTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use SplitTest;
use Test::More;

my $program = shard_program();
my @nodes =
  map { new_server($_, conf => "max_wal_senders = 10\n", init => { allows_streaming => 'logical' }) } qw(one two);
my ($one, $two) = @nodes;

# --- what the command calls ----------------------------------------------------------------------

# The words before a parenthesis in the strings of a source file.
sub calls_of
{
	my ($file) = @_;
	my %names;
	my $text = slurp_file($file);
	$text = qq{R"sql($text)sql"} if $file =~ /\.sql$/;
	while ($text =~ m{/\*.*?\*/|//[^\n]*|'(?:[^'\\]|\\.)'|R"(\w*)\((.*?)\)\1"|"((?:[^"\\]|\\.)*)"}gs)
	{
		my $sql = $2 // $3 // next;
		$names{$_} = 1 foreach $sql =~ /([a-z_]\w*)\s*\(/g;
	}
	return keys %names;
}

my @sources = map { glob "$FindBin::RealBin/../../cli/$_" } '*.cpp', '*/*.cpp', '*/*.h', 'sql/*.sql';
my %calls = map { $_ => 1 } map { calls_of($_) } @sources;
my $calls = join ',', sort keys %calls;
like(",$calls,", qr/,$_,/, "the sources call $_()")
  foreach qw(session_begin set_config pg_get_functiondef format count session_rename_schema);

# --- what mallory makes --------------------------------------------------------------------------

# A type of mallory's, with implicit casts.
my $mine = q{
CREATE TYPE public.mine AS ENUM ('a');
DO $do$
DECLARE
	body CONSTANT text := 'BEGIN RAISE LOG ''PLANTED cast as %'', current_user; RETURN NULL; END';
	t text;
BEGIN
	FOREACH t IN ARRAY '{integer,bigint,oid,text,name,regclass}'::text[] LOOP
		EXECUTE format('CREATE FUNCTION public.mine_of(%1$s) RETURNS public.mine LANGUAGE plpgsql AS %2$L;
			CREATE CAST (%1$s AS public.mine) WITH FUNCTION public.mine_of(%1$s) AS IMPLICIT;
			CREATE FUNCTION public.%1$s_of(public.mine) RETURNS %1$s LANGUAGE plpgsql AS %2$L;
			CREATE CAST (public.mine AS %1$s) WITH FUNCTION public.%1$s_of(public.mine) AS IMPLICIT', t, body);
	END LOOP;
END $do$};

# For each real function: each argument as each type, and all arguments as one type. Only a function in C can have an
# argument of type "any", and none can have one of type unknown.
my $functions = q{
DO $do$
DECLARE
	types CONSTANT text[] := '{integer,bigint,oid,text,name,regclass,anyelement,public.mine}';
	f record;
BEGIN
	FOR f IN
		WITH called AS (
			SELECT proname, prorettype, proretset, n,
				   ARRAY(SELECT format_type(t, NULL) FROM unnest((proargtypes::oid[])[0:n - 1]) AS t) AS taken
			FROM pg_proc, generate_series(pronargs::integer - pronargdefaults, pronargs) AS n
			WHERE proname = ANY ('{CALLS}'::name[])
			AND pronamespace::regnamespace::text IN ('pg_catalog', 'public', 'snowflake_internal')),
		lists AS (
			SELECT proname, prorettype, proretset, taken AS list FROM called
			UNION ALL
			SELECT proname, prorettype, proretset, array_fill(t, ARRAY[m]) FROM called, unnest(types) AS t,
				 generate_series(n, CASE WHEN taken[n] = '"any"' THEN 6 ELSE n END) AS m
			UNION ALL
			SELECT proname, prorettype, proretset, taken[:i - 1] || t || taken[i + 1:]
			FROM called, generate_series(1, n) AS i, unnest(types) AS t)
		SELECT DISTINCT ON (proname, l) proname, array_to_string(list, ',') AS l, proretset,
			   CASE WHEN typtype = 'p' THEN 'text' ELSE format_type(prorettype, NULL) END AS r
		FROM lists JOIN pg_type AS y ON y.oid = prorettype
		WHERE NOT list && '{"\"any\"",internal,cstring}'::text[]
		AND to_regprocedure(format('public.%I(%s)', proname, array_to_string(list, ','))) IS NULL
	LOOP
		EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s %s LANGUAGE plpgsql AS %L', f.proname, f.l,
			CASE WHEN f.proretset THEN 'SETOF' END, f.r,
			format('BEGIN RAISE LOG %L, current_user; RETURN%s; END', format('PLANTED %s(%s) as %%', f.proname, f.l),
				   CASE WHEN NOT f.proretset THEN ' NULL' END));
	END LOOP;
END $do$};

my $operators = q{
DO $do$
DECLARE
	types CONSTANT text[] := '{integer,bigint,oid,text,name,regclass,public.mine,text[],name[],oid[],jsonb,pg_lsn}';
	o record;
BEGIN
	FOR o IN SELECT l, r, t FROM unnest(types) AS l, unnest(types) AS r, unnest('{text,boolean}'::text[]) AS t LOOP
		EXECUTE format('CREATE FUNCTION public.operator_%1$s(%2$s, %3$s) RETURNS %1$s LANGUAGE plpgsql AS %4$L',
			o.t, o.l, o.r, format('BEGIN RAISE LOG %L, current_user; RETURN NULL; END',
			format('PLANTED operator(%s, %s) as %%', o.l, o.r)));
	END LOOP;
	FOR o IN
		SELECT DISTINCT oprname, format_type(proargtypes[0], NULL) AS l, format_type(proargtypes[1], NULL) AS r, proname
		FROM pg_operator JOIN pg_proc
		  ON proname = CASE oprresult WHEN 'boolean'::regtype THEN 'operator_boolean' ELSE 'operator_text' END
		WHERE oprname = ANY ('{=,<>,<,>,<=,>=,||,+,-,&,|,~,!~,@>,->,->>}') AND oprnamespace = 'pg_catalog'::regnamespace
		ORDER BY proname
	LOOP
		CONTINUE WHEN to_regoperator(format('public.%s(%s, %s)', o.oprname, o.l, o.r)) IS NOT NULL;
		EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.%s)',
			o.oprname, o.l, o.r, o.proname);
	END LOOP;
END $do$};

sub as_mallory
{
	my ($node, $sql) = @_;
	my ($code, $out, $err) = $node->psql('postgres',
		"SET search_path = pg_catalog; SET check_function_bodies = off; $sql", extra_params => [ '-U', 'mallory' ]);
	return $code == 0 ? $out : die $err;
}

$_->safe_psql('postgres', q{
	CREATE ROLE mallory LOGIN; GRANT CREATE ON SCHEMA public TO mallory; CREATE ROLE app LOGIN;
	CREATE ROLE super LOGIN SUPERUSER REPLICATION; ALTER ROLE super SET search_path = public, pg_catalog;
	CREATE SCHEMA shop AUTHORIZATION super}) foreach @nodes;
$one->safe_psql('postgres', q{
	SET ROLE super; SET search_path = pg_catalog, public;
	CREATE TABLE shop.filters (id integer PRIMARY KEY, name text); INSERT INTO shop.filters VALUES (1, 'a');
	SELECT snowflake_create_shard(5, 'insta5'); SELECT snowflake_create_shard(6, 'insta6')});
$one->safe_psql('postgres', qq{
	SET ROLE super; SET search_path = pg_catalog, public;
	CREATE TABLE insta$_.users (id bigint PRIMARY KEY DEFAULT insta$_.next_id(), name text);
	CREATE TABLE insta$_.photos (id bigint PRIMARY KEY DEFAULT snowflake_next_id($_, 'insta$_.table_id_seq'),
		user_id bigint REFERENCES insta$_.users);
	INSERT INTO insta$_.users (name) VALUES ('a'); INSERT INTO insta$_.photos (user_id) SELECT id FROM insta$_.users})
  foreach 5, 6;
$one->safe_psql('postgres', q{ALTER SCHEMA insta6 OWNER TO app; ALTER FUNCTION insta6.next_id() OWNER TO app;
	ALTER FUNCTION insta6.settled_id() OWNER TO app; ALTER SEQUENCE insta6.table_id_seq OWNER TO app;
	ALTER TABLE insta6.users OWNER TO app; ALTER TABLE insta6.photos OWNER TO app});
my $standby = new_standby($one, 'standby');
as_mallory($_, "$mine; " . ($functions =~ s/CALLS/$calls/r) . "; $operators") foreach @nodes;
my $count = q{SELECT count(*) FROM pg_proc WHERE proowner = 'mallory'::regrole};
cmp_ok($one->safe_psql('postgres', $count), '>', 2000, 'planted functions');

my @super = map { $_->connstr('postgres') . ' user=super' } @nodes, $standby;
planted_code_run(@nodes);

subtest 'the planted code runs where it is called' => sub {
	foreach my $called (q{format('x')}, '1 = 1', 'public.snowflake_settled_id(5, 6::oid, 7::bigint)')
	{
		$one->psql('postgres', "SELECT $called", extra_params => [ '-U', 'super' ]);
		like(planted_code_run($one), qr/ as super$/, $called);
	}
};

# --- the verbs -----------------------------------------------------------------------------------

sub is_clean
{
	my (@arguments) = @_;
	my ($status, $out, $err) = run_shard($program, @arguments);
	my $name = join ' ', grep { !/host=|^\// } @arguments;
	is("$status " . planted_code_run(@nodes), '0 ', $name) or diag("$out$err");
	return;
}

my $folder = PostgreSQL::Test::Utils::tempdir();
my @both = @super[ 0, 1 ];
my @way = ('insta5', '--from', $super[0], '--to', $super[1]);
my @back = ('insta5', '--from', $super[1], '--to', $super[0]);

subtest 'shards' => sub {
	is_clean(@$_)
	  foreach [ 'list', @both ], [ 'map', @both ], [ 'plan', @both ],
	  [ 'verify', '--full', @both ],
	  [ 'query', @both, '--sql', 'SELECT id, name FROM users' ],
	  [ 'query', @both, '--sql', 'SELECT id FROM users', '--then', 'SELECT pg_catalog.count(*) FROM rows' ],
	  [ 'query', @both, '--since', "$folder/since", '--sql', 'SELECT id FROM users WHERE id > $1 AND id <= $2' ],
	  [ 'run', @both, '--shards', '5-6', '--sql', 'ALTER TABLE users ADD place text' ],
	  [ 'run', @both, '--shards', '5-6', '--once', 'one', '--sql', 'ALTER TABLE users ADD other text' ],
	  [ 'run', @both, '--shards', '5-6', '--no-transaction', '--sql', 'ANALYZE users' ],
	  (map { [ 'clone', @both, '--template', "insta$_", '--shards', $_ + 10, '--schema', 'insta{}' ] } 5, 6),
	  [ 'diff', @both, '--template', 'insta5', '--shards', '15' ];
};

subtest 'move' => sub {
	is_clean('move', @way, $_) foreach '--dry-run', '--reversible';
	is_clean('verify', @both, '--rows');
	is_clean('move', @$_) foreach [ @way, '--undo', '--reversible' ], [ @back, '--complete' ];
	my $writer = $one->background_psql('postgres');
	$writer->query_safe('BEGIN; SELECT pg_current_xact_id()');
	kill_command(start_command('move', 'the slot waits', @way)->{run});
	$writer->quit;
	is_clean('move', @$_) foreach [ @way, '--abort' ], [ @way ], [ @way, '--complete' ];
};

subtest 'split' => sub { is_clean('split', '--from', $super[0], '--standby', $super[2], '--shards', '6', '--dry-run') };

subtest 'global' => sub {
	is_clean('global', @$_)
	  foreach [ 'add', 'shop.filters', '--on', @both ],
	  [ 'run', @both, '--sql', 'ALTER TABLE shop.filters ADD place text' ], [ 'verify', @both ],
	  [ 'remove', 'shop.filters', '--on', @both ];
};

$_->stop foreach $standby, @nodes;
done_testing();
