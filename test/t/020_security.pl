# A hostile role plants functions, operators, tables and types wherever it may: in the schema that
# the extension is installed into, first in the search_path, in the schemas that others convert and
# clone. The installation runs none of it; and a superuser who calls the functions of the extension, or
# snowflake-shard, on the hostile role's objects runs only the code that the equivalent plain statement
# or pg_dump would run, too.
#
# Planted code writes its name into the server's log, which a ROLLBACK does not take back.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PlantedTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $node = new_server('security', conf => 'max_locks_per_transaction = 1024');
$node->safe_psql('postgres', q{
	CREATE ROLE super LOGIN SUPERUSER;
	CREATE ROLE owner LOGIN;
	CREATE ROLE hostile LOGIN;
	CREATE DATABASE other OWNER owner;
});

# Runs SQL as a role. Planted objects are not in the search_path, unless the option path puts them
# there.
sub as
{
	my ($role, $sql, %options) = @_;
	local $ENV{PGOPTIONS} = '-c search_path=' . ($options{path} // 'pg_catalog') =~ s/ //gr;
	my ($status, $stdout, $stderr) = $node->psql('other', $sql, extra_params => [ '-U', $role ], on_error_die => 0);
	return $status == 0 ? $stdout : die "$sql: $stderr";
}

sub state_as
{
	my ($role, $sql) = @_;
	local $ENV{PGOPTIONS} = '-c search_path=pg_catalog';
	return sqlstate($node, $sql, database => 'other', params => [ '-U', $role ]);
}

# Asserts which planted code a superuser's call runs, and that the call does not fail.
sub is_run_by_superuser
{
	my ($sql, $expected, $name) = @_;
	my $state = eval { as('super', $sql, path => 'first, pg_catalog, public'); 1 } ? '' : "failed: $@";
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(planted_code_run($node) . $state, $expected, $name);
}

# --- the installation script -------------------------------------------------------------------

my $script = slurp_file((`pg_config --sharedir` =~ s/\n//r) . '/extension/snowflake--1.0.sql');

subtest 'the installation script takes nothing that is there, and runs nothing' => sub {
	(my $statements = $script) =~ s/--.*//g;
	$statements =~ s/\$\$.*?\$\$/'body'/gs;
	$statements =~ s/'(?:[^']|'')*'/'text'/g;
	unlike($statements, qr/OR\s+REPLACE|IF\s+NOT\s+EXISTS/i,
		'no object that is there already becomes one of the extension');
	unlike($statements, qr/SECURITY\s+DEFINER|\bDO\b|\bEXECUTE\b/i, 'nothing runs with rights that are not the caller\'s');
	unlike($script, qr/\@extschema\@(?!\.snowflake_)/, 'the schema stands before a name of the extension only');
};

# --- planting ----------------------------------------------------------------------------------

# Plants, in a schema, variants of core's functions and operators that the script uses, for all
# pairs of the types it works with, and without arguments. If a planted variant may be chosen, one
# of them matches a call better than core's. No call of the script has a number of arguments, and no operator has
# operands, that core does not take.
my %words = map { lc($_) => 1 } $script =~ /\b([a-z_]+)\(/gi;
my $names = join ',', map { "'$_'" } sort keys %words;
my $plant_core = qq{
	DO \$do\$
	DECLARE
		schema CONSTANT text := 'SCHEMA';
		types CONSTANT text[] := '{oid,regclass,regnamespace,name,text,integer,bigint,oid[]}';
		more_types CONSTANT text[] := ARRAY['smallint', 'regproc', 'regtype', 'regprocedure', 'timestamptz', '"char"'];
		f record;
	BEGIN
		FOR f IN
			SELECT n.name, coalesce(a.list, '') AS list, a.r
			FROM (SELECT DISTINCT proname AS name FROM pg_proc
				  WHERE pronamespace = 'pg_catalog'::regnamespace AND proname IN ($names)) AS n,
				 (SELECT '', 'text' UNION ALL
				  SELECT t, 'text' FROM unnest(types) AS t UNION ALL
				  SELECT t || ',' || u, 'text' FROM unnest(types) AS t, unnest(types) AS u UNION ALL
				  SELECT 'text,' || t || ',' || u, 'text' FROM unnest(types) AS t, unnest(types) AS u) AS a(list, r)
			WHERE EXISTS (SELECT FROM pg_proc AS p, cardinality(string_to_array(a.list, ',')) AS given
				WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname = n.name
				  AND given >= p.pronargs - p.pronargdefaults AND (given <= p.pronargs OR p.provariadic <> 0))
		LOOP
			EXECUTE format('CREATE FUNCTION %I.%I(%s) RETURNS text LANGUAGE plpgsql AS %L', schema, f.name, f.list,
				format('BEGIN RAISE LOG %L, current_user; RETURN NULL; END', 'PLANTED ' || schema || '.' || f.name || ' as %'));
		END LOOP;
		FOR f IN
			SELECT o AS name, l, r
			FROM unnest('{=,<>,<,<=,>,>=,||,+,-,*,/,\%,&,|,<<,>>,~,!~}'::text[]) AS o,
				 unnest(types || more_types) AS l,
				 unnest(types || more_types) AS r
			WHERE EXISTS (SELECT FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprname = o
				AND (SELECT bool_and(given::regtype = taken OR taken::regtype::text ~ '^any' OR EXISTS (SELECT FROM pg_cast
						WHERE castsource = given::regtype AND casttarget = taken AND castcontext = 'i'))
					FROM (VALUES (l, oprleft), (r, oprright)) AS operand (given, taken)))
		LOOP
			EXECUTE format('CREATE FUNCTION %I.%I(%s, %s) RETURNS boolean LANGUAGE plpgsql AS %L',
				schema, 'operator' || f.name, f.l, f.r,
				format('BEGIN RAISE LOG %L, current_user; RETURN true; END',
					'PLANTED ' || schema || '.operator' || replace(f.name, '%', '%%') || ' as %'));
			EXECUTE format('CREATE OPERATOR %I.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = %I.%I)',
				schema, f.name, f.l, f.r, schema, 'operator' || f.name);
		END LOOP;
		FOR f IN SELECT unnest('{pg_class,pg_proc,pg_attribute,pg_depend,pg_namespace,pg_sequence,pg_settings}'::text[]) AS
			name LOOP
			EXECUTE format('CREATE TABLE %I.%I (oid oid)', schema, f.name);
		END LOOP;
		FOR f IN SELECT unnest('{regclass,regprocedure,oid,bigint,text,record}'::text[]) AS name LOOP
			EXECUTE format('CREATE DOMAIN %I.%I AS pg_catalog.bool', schema, f.name);
		END LOOP;
	END \$do\$;
};

# Plants, in the schema of the extension, overloads of its functions with arguments of nearly the
# same types.
my $plant_overloads = q{
	DO $do$
	DECLARE
		near CONSTANT jsonb := '{"oid": ["oid","regclass","regnamespace","regprocedure","text"],
			"integer": ["integer","smallint","bigint"],
			"bigint": ["bigint","integer","numeric"], "smallint": ["smallint","integer"], "name": ["name","text"],
			"timestamp with time zone": ["timestamptz","timestamp","date"]}';
		f record;
		lists text[];
		t text;
		variant text;
	BEGIN
		FOR f IN SELECT p.oid, p.proname, p.proargtypes FROM pg_proc AS p
			WHERE p.proname ~ '^snowflake_' AND p.pronamespace = 'public'::regnamespace AND p.prorettype <> 'internal'::regtype
		LOOP
			lists := '{""}';
			FOREACH t IN ARRAY ARRAY(SELECT format_type(u, NULL) FROM unnest(f.proargtypes) AS u) LOOP
				lists := ARRAY(SELECT ltrim(l || ',' || v, ',') FROM unnest(lists) AS l,
					jsonb_array_elements_text(coalesce(near -> CASE WHEN t ~ '^reg' THEN 'oid' ELSE t END,
						jsonb_build_array(t))) AS v);
			END LOOP;
			FOREACH variant IN ARRAY lists LOOP
				CONTINUE WHEN to_regprocedure(format('public.%s(%s)', f.proname, variant)) IS NOT NULL;
				EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS bigint LANGUAGE plpgsql AS %L', f.proname, variant,
					format('BEGIN RAISE LOG %L, current_user; RETURN NULL; END',
						'PLANTED ' || f.proname || '(' || variant || ') as %'));
			END LOOP;
		END LOOP;
	END $do$;
};

sub plant_core
{
	my ($schema) = @_;
	return as('hostile', $plant_core =~ s/SCHEMA/$schema/r);
}

# --- installing where others may create --------------------------------------------------------

as('super', 'GRANT CREATE ON SCHEMA public TO hostile; GRANT CREATE ON DATABASE other TO hostile');
plant_core('public');

subtest 'no extension where an object is in the place of one of its own' => sub {
	foreach my $object (
		'FUNCTION public.snowflake_next_id(integer, regclass) RETURNS bigint LANGUAGE sql AS $$ SELECT 1::bigint $$',
		'FUNCTION public.snowflake_check() RETURNS text LANGUAGE sql AS $$ SELECT 1::text $$',
		'SEQUENCE public.snowflake_id_seq', 'VIEW public.snowflake_shards AS SELECT 1 AS one',
		'TABLE public.snowflake_columns (a int)', 'SCHEMA snowflake_internal')
	{
		my ($kind, $name) = $object =~ /^(\w+) (\S+(?: \S+\))?)/;
		$name =~ s/ RETURNS.*//;
		as('hostile', "CREATE $object");
		like(state_as('owner', 'CREATE EXTENSION snowflake SCHEMA public'), qr/^42(P06|P07|723|710)$/,
			"no extension where $name is in its place");
		as('hostile', "DROP $kind $name");
	}
};

subtest 'the installed functions depend on nothing that others can make' => sub {
	planted_code_run($node);
	as('owner', 'CREATE EXTENSION snowflake SCHEMA public');
	is(planted_code_run($node), '', 'the installation runs nothing of what was planted in the schema it goes into');
	is(as('owner', q{
		SELECT d.objid::regprocedure, pg_describe_object(d.refclassid, d.refobjid, 0)
		FROM pg_depend AS m
		JOIN pg_depend AS d ON d.classid = m.classid AND d.objid = m.objid AND d.deptype = 'n'
		WHERE m.deptype = 'e' AND m.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
		  AND d.refclassid <> 'pg_namespace'::regclass
		  -- an array type is a part of its element type
		  AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = d.refclassid AND e.deptype = 'e'
		                  AND e.objid = coalesce((SELECT t.oid FROM pg_type AS t WHERE d.refclassid = 'pg_type'::regclass
			AND t.typarray = d.refobjid), d.refobjid))
		  -- the relation of a composite type is a part of the type
		  AND NOT EXISTS (SELECT FROM pg_class AS c JOIN pg_depend AS e ON e.classid = 'pg_type'::regclass
		                  AND e.objid = c.reltype AND e.deptype = 'e'
		                  WHERE d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid AND c.relkind = 'c')}),
		'', 'its objects use nothing but each other and what is in pg_catalog');
	is(as('owner', q{
		SELECT p.oid::regprocedure, l.lanname, p.prosecdef, p.proconfig
		FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
		JOIN pg_depend AS m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid AND m.deptype = 'e'
		JOIN pg_extension AS e ON e.oid = m.refobjid AND e.extname = 'snowflake'
		WHERE p.prosecdef OR l.lanname <> 'c' AND 'search_path=pg_catalog, pg_temp' <> ALL (coalesce(p.proconfig, '{}'))
		   OR p.provolatile = 'v' AND p.proparallel = 's' ORDER BY p.proname}),
		"snowflake_internal.adopt_call(regprocedure,regclass)|plpgsql|f|\n"
			. 'public.snowflake_adopt(regprocedure,integer,regclass,bigint)|plpgsql|f|',
		'its functions have the caller\'s rights, a search_path but for the two that run an old function, and do not '
		. 'write in parallel');

	is(as('owner', q{
		SELECT p.oid::regprocedure, x.found[1]
		FROM pg_proc AS p
		JOIN pg_language AS l ON l.oid = p.prolang AND l.lanname = 'plpgsql'
		JOIN pg_depend AS m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid AND m.deptype = 'e',
		-- a call without a schema, an operator
		regexp_matches(regexp_replace(p.prosrc, '--[^\n]*', '', 'g'), '(?<![.\w])\w+\(|[^:]=|[-+*/<>~!@#%^&|]',
			'g') AS x(found)
		WHERE p.proconfig IS NULL}),
		'', 'those two name everything with its schema');
};

subtest 'the schema of the internal functions is closed' => sub {
	is(state_as('hostile', 'CREATE FUNCTION snowflake_internal.calls(text) RETURNS text LANGUAGE sql RETURN 1'),
		'42501', 'nobody else creates functions beside the internal ones');
	is(state_as('owner', 'ALTER SCHEMA snowflake_internal RENAME TO moved'),
		'42501', 'nor renames their schema, not even the role that installed them');
};

# --- a superuser on hostile ground -------------------------------------------------------------

as('hostile', 'CREATE SCHEMA first');
plant_core('first');
as('hostile', $plant_overloads);

# Tables of the hostile role, with planted code in every place where users' code is stored. The code
# logs the place.
my $places = q{
	CREATE FUNCTION %1$s.ran(place text, value bigint DEFAULT 1) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS
		$$ BEGIN RAISE LOG 'PLANTED % as %', place, current_user; RETURN value; END $$;
	CREATE FUNCTION %1$s.fired() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE LOG 'PLANTED trigger as %', current_user; RETURN NEW; END $$;
	CREATE DOMAIN %1$s.checked AS text CHECK (%1$s.ran('domain') = 1);
	CREATE TABLE %1$s.rows (
		id integer PRIMARY KEY CHECK (%1$s.ran('check', id) = id), body %1$s.checked DEFAULT %1$s.ran('default')::text,
		twice bigint GENERATED ALWAYS AS (%1$s.ran('generated', length(body))) STORED);
	INSERT INTO %1$s.rows VALUES (1, 'one'), (2, 'two');
	CREATE INDEX by_function ON %1$s.rows (%1$s.ran('index', id));
	CREATE STATISTICS %1$s.more ON (%1$s.ran('statistics', id)), body FROM %1$s.rows;
	CREATE TRIGGER planted BEFORE INSERT OR UPDATE OR DELETE ON %1$s.rows FOR EACH ROW EXECUTE FUNCTION %1$s.fired();
	CREATE RULE planted AS ON INSERT TO %1$s.rows DO ALSO SELECT %1$s.ran('rule');
	ALTER TABLE %1$s.rows ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
	CREATE POLICY planted ON %1$s.rows USING (%1$s.ran('policy') = 1);
	CREATE VIEW %1$s.snowflake_shards AS SELECT %1$s.ran('view') AS shard;
};
# A schema of the hostile role with these tables. With $shard it is a shard, too.
sub hostile_schema
{
	my ($schema, $shard) = @_;
	as('hostile', "CREATE SCHEMA $schema; " . sprintf($places =~ s/%(?!1\$s)/%%/gr, $schema));
	as('hostile', qq{
		CREATE TABLE $schema.wide (id bigint CHECK ($schema.ran('check', id) = id), body text);
		INSERT INTO $schema.wide VALUES (1), (2);
		CREATE INDEX ON $schema.wide ($schema.ran('index', id));
		CREATE SEQUENCE $schema.s;
		CREATE TABLE $schema.native (id bigint PRIMARY KEY DEFAULT public.snowflake_next_id($shard, '$schema.s'::regclass),
			other bigint DEFAULT $schema.ran('default', nextval('$schema.s')),
			more bigint DEFAULT public.snowflake_next_id($shard, '$schema.s'::regclass));
	}) if defined $shard;
	return;
}
hostile_schema('plain');
hostile_schema('hosted', 11);
planted_code_run($node);

# For comparison: the code that the plain statements run.
as('super', 'ALTER TABLE plain.rows ALTER COLUMN id TYPE bigint');
my $run_by_alter = planted_code_run($node);
note("ALTER COLUMN TYPE runs: $run_by_alter");

# A table that snowflake_check() looks into. The planner evaluates the constants in an index, for
# each query of the table.
as('hostile', q{
	CREATE SEQUENCE plain.s;
	CREATE TABLE plain.ahead (id bigint DEFAULT public.snowflake_next_id(14, 'plain.s'::regclass));
	CREATE INDEX ON plain.ahead (id, (plain.ran('constant')));
	ALTER TABLE plain.ahead ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
	CREATE POLICY planted ON plain.ahead USING (plain.ran('policy') = 1);
	INSERT INTO plain.ahead VALUES (public.snowflake_encode(now() + interval '10 minutes', 14, 0));
});
# A table to partition, whose default partition holds a row of another time.
as('hostile', q{
	CREATE TABLE plain.parted (id bigint PRIMARY KEY DEFAULT public.snowflake_next_id(14, 'plain.s'::regclass)
			CHECK (plain.ran('check', id) = id), body plain.checked DEFAULT plain.ran('default')::text,
		twice bigint GENERATED ALWAYS AS (plain.ran('generated', length(body))) STORED) PARTITION BY RANGE (id);
	CREATE INDEX ON plain.parted (plain.ran('index', id));
	CREATE TRIGGER planted BEFORE INSERT OR UPDATE OR DELETE ON plain.parted FOR EACH ROW EXECUTE FUNCTION plain.fired();
	CREATE TABLE plain.parted_rest PARTITION OF plain.parted DEFAULT;
	ALTER TABLE plain.parted_rest ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
	CREATE POLICY planted ON plain.parted_rest USING (plain.ran('policy') = 1);
	INSERT INTO plain.parted VALUES (public.snowflake_encode('2020-01-01', 14, 0), 'one');
});

subtest 'snowflake_check() looks into a table as far as the caller may read it' => sub {
	planted_code_run($node);
	as('super', 'SELECT max(id) FROM plain.ahead');
	isnt(planted_code_run($node), '', 'a query of the table runs planted code');
	is(as('super', q{SELECT object FROM public.snowflake_check() WHERE problem ~ 'ahead of the clock'}), 'plain.ahead.id',
		'snowflake_check() looks into the table');
	is(as('hostile', q{SELECT object FROM public.snowflake_check() WHERE problem ~ 'ahead of the clock'}), '',
		'and not where a policy may hide rows from the caller');
};

subtest 'calls of a superuser run nothing that was planted' => sub {
	foreach my $quiet (
		'TABLE public.snowflake_columns', 'TABLE public.snowflake_shards', 'TABLE public.snowflake_sequences',
		'SELECT public.snowflake_check()', 'SELECT snowflake_internal.calls()',
		q{SELECT public.snowflake_next_id(11::pg_catalog.int4, 'hosted.s'::pg_catalog.regclass)},
		q{SELECT public.snowflake_next_ids(11::pg_catalog.int4, 'hosted.s'::pg_catalog.regclass, 2::pg_catalog.int4)},
		q{SELECT public.snowflake_advance('hosted.s'::pg_catalog.regclass, 1::pg_catalog.int8)},
		q{SELECT public.snowflake_create_partitions('plain.parted'::pg_catalog.regclass, '2024-01-01'::pg_catalog.timestamptz,
			'2024-03-01'::pg_catalog.timestamptz, '1 month'::pg_catalog.interval, 1314220021721::pg_catalog.int8)},
		q{SELECT public.snowflake_partition_bounds('plain.parted_2024_01'::pg_catalog.regclass,
			1314220021721::pg_catalog.int8)},
		q{SELECT public.snowflake_create_shard(12::pg_catalog.int4, 'plain'::pg_catalog.name)},
		q{SELECT public.snowflake_attach('hosted.wide'::pg_catalog.regclass)})
	{
		is_run_by_superuser($quiet, '', "a superuser's $quiet runs nothing that was planted");
	}
};

as('hostile', q{
	CREATE FUNCTION hosted.old_id() RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog AS $$
	DECLARE result bigint; seq_id bigint; now_millis bigint;
	BEGIN
	    PERFORM hosted.ran('old_function');
	    SELECT nextval('hosted.s') % 1024 INTO seq_id;
	    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO now_millis;
	    result := (now_millis - 1314220021721) << 23;
	    result := result | (11 << 10);
	    result := result | seq_id;
	    RETURN result;
	END $$;
	CREATE TABLE hosted.old (id bigint PRIMARY KEY DEFAULT hosted.old_id(), CHECK (hosted.ran('check') = 1));
	CREATE RULE planted AS ON UPDATE TO hosted.old DO ALSO SELECT hosted.ran('rule');
	INSERT INTO hosted.old DEFAULT VALUES;
});

subtest 'snowflake_adopt() and snowflake_attach() run what they have to' => sub {
	planted_code_run($node);
	is_run_by_superuser('SELECT hosted.old_id()', 'old_function as super', "a call of the old function runs its body");
	is_run_by_superuser(
		q{SELECT public.snowflake_adopt('hosted.old_id()'::pg_catalog.regprocedure, 11, 'hosted.s'::pg_catalog.regclass)},
		'old_function as super', 'snowflake_adopt() runs that, and nothing else that was planted');
	is_run_by_superuser(q{SELECT public.snowflake_attach('hosted.rows'::pg_catalog.regclass)},
		$run_by_alter, 'snowflake_attach() runs what ALTER COLUMN TYPE runs');
};

subtest 'snowflake-shard runs nothing that was planted' => sub {
	SKIP:
	{
		my $program = shard_program_if_built() // skip 'snowflake-shard was not built: its headers are not here', 4;
		my $superuser = $node->connstr('other') . " user=super options='-csearch_path=first,pg_catalog,public'";
		my %commands = (
			clone => [ $superuser, '--template', 'hosted', '--shards', 13, '--schema', 'copy{}' ],
			diff => [ $superuser, '--template', 'hosted' ], list => [$superuser], verify => [ '--full', $superuser ]);
		foreach my $verb (qw(clone diff list verify))
		{
			my ($status, $out, $err) = run_shard($program, $verb, @{ $commands{$verb} });
			my $has_ended_well = $status == 0 || $status == 1 && $verb =~ /diff|verify/;
			my $run = planted_code_run($node);
			ok($has_ended_well && $run eq '', "a superuser's snowflake-shard $verb runs nothing that was planted")
				or diag("exit code $status, ran: $run\n$err");
		}
	}
};

# --- several sessions and roles ----------------------------------------------------------------

# Another role's temporary table, which may be a copy of one of the shard's tables, does not take
# the shard's number, and snowflake_check() does not report it.
my $psql = "psql -XAtq -v VERBOSITY=sqlstate -U super -d 'host=" . $node->host . ' port=' . $node->port
	. " dbname=other'";

subtest 'a temporary table of others does not take a shard' => sub {
	is(as('hostile', qq{
		CREATE TEMP TABLE copied (id bigint DEFAULT public.snowflake_next_id(31::integer, 'hosted.s'::regclass));
		\\! $psql -c "SELECT public.snowflake_create_shard(31::integer, 'the_31st'::name)" 2>&1
		\\! $psql -c "SELECT object FROM public.snowflake_check() WHERE object = 'shard 31'" 2>&1
}), '', 'a temporary table of others does not take a shard');
};

subtest 'a snapshot that is older than a column' => sub {
	my $default = q{DEFAULT public.snowflake_next_id(11::integer, 'hosted.s'::regclass)};
	# A snapshot that is older than a column.
	is(as('super', qq{
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		SELECT 1;
		\\! $psql -c "ALTER TABLE hosted.native ADD third bigint $default"
		SELECT count(*) >= 0 FROM public.snowflake_check();
}), "1\nt", 'snowflake_check() works in a snapshot that is older than a column');
};

subtest 'CREATE EXTENSION after SET ROLE' => sub {
	# After SET ROLE the privileges on the sequence go to the current role, not to the role that logged
	# in.
	as('super',
		'CREATE ROLE owners; GRANT owners TO owner; GRANT CREATE ON DATABASE other TO owners; '
		. 'DROP EXTENSION snowflake CASCADE');
	as('owner', 'SET ROLE owners; CREATE SCHEMA theirs; CREATE EXTENSION snowflake SCHEMA theirs');
	is(as('super', q{SELECT has_sequence_privilege('owners', 'theirs.snowflake_id_seq', 'USAGE WITH GRANT OPTION')}),
		't', 'CREATE EXTENSION after SET ROLE gives the sequence to that role');
};

$node->stop;
done_testing();
