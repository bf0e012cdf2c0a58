# PostgreSQL's planner evaluates the constants in an index expression, an index predicate, an extended
# statistics object or a CHECK of a child each time that it plans a query on the table. So a query on
# another owner's table runs functions of that owner, with the rights of the caller. A hostile role plants
# such constants in every place of its tables. The functions of the extension run none of them, whether a
# superuser or an ordinary role calls them, except for those that PostgreSQL's own ALTER TABLE and CREATE TABLE run.
#
# Planted code writes the place into the server's log, which a ROLLBACK does not take back.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PlantedTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $node = new_server('constants');

sub as
{
	my ($role, $sql) = @_;
	my ($status, $stdout, $stderr) = $node->psql('postgres', $sql, extra_params => [ '-U', $role ], on_error_die => 0);
	return $status == 0 ? $stdout : die "$sql: $stderr";
}

# The planted code that a role's call runs, and the error if it fails.
sub run_by
{
	my ($role, $sql) = @_;
	planted_code_run($node);
	my $error = eval { as($role, $sql); 1 } ? '' : "failed: $@";
	return planted_code_run($node) . $error;
}

sub runs_nothing
{
	my ($role, $sql, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(run_by($role, $sql), '', "$name runs nothing that was planted, as $role");
}

# The call is refused, and nothing of the planted code runs before.
sub is_refused
{
	my ($role, $sql, $name) = @_;
	planted_code_run($node);
	my $state = sqlstate($node, $sql, params => [ '-U', $role ]);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($state . planted_code_run($node), '42501', "$name is refused to $role, and runs nothing");
}

$node->safe_psql('postgres', q{
	CREATE ROLE super LOGIN SUPERUSER;
	CREATE ROLE victim LOGIN;
	CREATE ROLE hostile LOGIN;
	CREATE SCHEMA planted AUTHORIZATION hostile;
	CREATE SCHEMA app AUTHORIZATION victim;
	GRANT USAGE ON SCHEMA app TO hostile;
	GRANT USAGE ON SCHEMA planted TO PUBLIC;
});
as('hostile', q{
	CREATE FUNCTION planted.ran(place text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
		$$ BEGIN RAISE LOG 'PLANTED % as %', place, current_user; RETURN 1; END $$;
	CREATE FUNCTION planted.fired() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM planted.ran('trigger'); RETURN NEW; END $$;
	CREATE DOMAIN planted.checked AS text CHECK (planted.ran('domain') = 1);
});

# --- planting ----------------------------------------------------------------------------------

my $columns = q{x integer DEFAULT planted.ran('default'), body planted.checked DEFAULT 'one',
	twice bigint GENERATED ALWAYS AS (x + planted.ran('generated')) STORED};

# Constants in all places of a table that has the column x. PostgreSQL plans with those of a table's
# indexes, statistics, CHECKs, children and policies.
my $places = q{
	ALTER TABLE TBL ADD CHECK (planted.ran('check') = 1);
	CREATE INDEX ON TBL ((x + planted.ran('index expression')));
	CREATE INDEX ON TBL (x) WHERE planted.ran('index predicate') = 1;
	CREATE STATISTICS TBL_planted ON (x + planted.ran('statistics')) FROM TBL;
	CREATE TRIGGER planted BEFORE INSERT OR UPDATE OR DELETE ON TBL FOR EACH ROW EXECUTE FUNCTION planted.fired();
	CREATE RULE planted AS ON INSERT TO TBL DO ALSO SELECT planted.ran('rule');
	GRANT SELECT ON TBL TO PUBLIC;
};
my $policy = q{
	ALTER TABLE TBL ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
	CREATE POLICY planted ON TBL USING (planted.ran('policy') = 1);
};

sub plant
{
	my ($table, %options) = @_;
	return as('hostile', ($places . ($options{open} ? '' : $policy)) =~ s/TBL/$table/gr);
}

# A table of the hostile role with a child; its rows are IDs of a moment ago.
sub hostile_table
{
	my ($table, $column, %options) = @_;
	my $values = $column =~ /bigint/ ? 'public.snowflake_encode(now(), 9, n)' : 'n';
	as('hostile', qq{
		CREATE TABLE $table ($column, $columns);
		CREATE TABLE ${table}_child (CHECK (planted.ran('check of a child') = 1)) INHERITS ($table);
		INSERT INTO $table (id) SELECT $values FROM generate_series(1, 3) AS n;
	});
	plant($table, %options);
	return;
}

sub call
{
	my ($function, $table, $more) = @_;
	return "SELECT public.snowflake_$function('$table'" . ($more // '') . ')';
}

# --- adopting a function that a hostile table calls --------------------------------------------

# Three shards of the victim. The hostile role's tables call their functions in a DEFAULT, for which EXECUTE
# was needed once.
foreach my $n (1 .. 3)
{
	as('victim', qq{
		CREATE SEQUENCE app.ids_$n;
		CREATE FUNCTION app.next_id_$n() RETURNS bigint LANGUAGE plpgsql AS \$\$
		BEGIN
			RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23 | ($n << 10)
				| nextval('app.ids_$n') % 1024;
		END \$\$;
	});
	hostile_table("planted.calls_$n", "id bigint PRIMARY KEY DEFAULT app.next_id_$n()", open => 1);
	hostile_table("planted.hides_$n", "id bigint PRIMARY KEY DEFAULT app.next_id_$n()");
}
as('victim', 'REVOKE EXECUTE ON FUNCTION app.next_id_2() FROM PUBLIC');

subtest 'snowflake_adopt() of a function that a hostile table calls' => sub {
	is(run_by('super', 'SELECT max(id) FROM planted.calls_1 WHERE id > 0') =~ s/ as super//gr,
		'check, check of a child, index expression, index predicate, statistics', 'a query of the table runs planted code');

	my %adopters = (1 => 'victim', 2 => 'victim', 3 => 'super');
	foreach my $n (sort keys %adopters)
	{
		runs_nothing($adopters{$n}, "SELECT public.snowflake_adopt('app.next_id_$n()', $n, seq => 'app.ids_$n')",
			'snowflake_adopt()' . ($n == 2 ? ', EXECUTE being revoked' : ''));
	}
	is(as('victim', 'SELECT count(*) FROM public.snowflake_shards'), '3', 'and has adopted the functions');
};

# --- attaching columns -------------------------------------------------------------------------

hostile_table('planted.with_index', 'id bigint PRIMARY KEY');
hostile_table('planted.not_null', 'id bigint NOT NULL');
hostile_table("planted.$_", 'id bigint') foreach qw(nullable nullable_plain);
hostile_table("planted.$_", 'id integer PRIMARY KEY') foreach qw(narrow narrow_plain);
hostile_table("planted.$_", "id integer PRIMARY KEY, other integer DEFAULT 1 REFERENCES planted.$_")
	foreach qw(keyed keyed_plain);

subtest 'snowflake_attach() of a hostile table' => sub {
	is_refused('victim', call('attach', "planted.$_", ', shard => 9'), "snowflake_attach() of $_")
		foreach qw(with_index not_null nullable narrow);
	runs_nothing('super', call('attach', 'planted.with_index', ', shard => 9'),
		'snowflake_attach() of a bigint with an index');
	runs_nothing('super', call('attach', 'planted.not_null', ', shard => 9'),
		'snowflake_attach() of a bigint without one');
};

subtest 'snowflake_attach() runs what ALTER TABLE runs' => sub {
	# If the column is not NOT NULL, or is an integer, ALTER TABLE runs code of the table's owner.
	my %alter = (
		nullable => 'ALTER COLUMN id SET NOT NULL, ALTER COLUMN id SET DEFAULT 1',
		narrow => 'ALTER COLUMN id TYPE bigint',
		keyed => 'ALTER COLUMN id TYPE bigint, ALTER COLUMN other TYPE bigint');
	foreach my $kind (sort keys %alter)
	{
		my $expected = run_by('super', "ALTER TABLE planted.${kind}_plain $alter{$kind}");
		note("ALTER TABLE $alter{$kind} runs: $expected");
		isnt($expected, '', "ALTER TABLE of a $kind column runs planted code");
		is(run_by('super', call('attach', "planted.$kind", ', shard => 9')), $expected,
			"snowflake_attach() of a $kind column runs that, and nothing else");
	}
};

subtest 'tables of others that refer to the column, or inherit it' => sub {
	# Tables that refer to the column of another role, and a table that belongs to another role than its parent.
	as('victim', q{
		CREATE TABLE app.referred (id bigint PRIMARY KEY);
		CREATE TABLE app.parent (id bigint PRIMARY KEY);
		GRANT REFERENCES ON app.referred TO hostile;
});
	hostile_table('planted.refers', 'id bigint, other bigint REFERENCES app.referred');
	runs_nothing('victim', call('attach', 'app.referred', ', shard => 4'),
		'snowflake_attach() of a column that another table refers to');
	as('super',
		"CREATE TABLE planted.inherits ($columns) INHERITS (app.parent); ALTER TABLE planted.inherits OWNER TO hostile");
	plant('planted.inherits');
	is_refused('victim', call('attach', 'app.parent', ', shard => 4'),
		'snowflake_attach() of a table with a child of others');
};

# --- making partitions -------------------------------------------------------------------------

# Twins: one for the function, one for the statements that it stands for. Both have a default partition
# of the hostile role.
subtest 'snowflake_create_partitions() runs what ATTACH PARTITION runs' => sub {
	my $period = ", '2024-01-01', '2024-03-01', '1 month'";
	foreach my $role (qw(super victim))
	{
		my %run;
		foreach my $twin (qw(function statements))
		{
			my $table = "planted.parted_${role}_$twin";
			my $owner = $role eq 'super' ? 'hostile' : 'victim';
			as('super', qq{
				CREATE SEQUENCE ${table}_ids;
				CREATE TABLE $table (id bigint PRIMARY KEY DEFAULT public.snowflake_next_id(14, '${table}_ids'), $columns)
					PARTITION BY RANGE (id);
				CREATE TABLE ${table}_rest PARTITION OF $table DEFAULT;
				INSERT INTO $table VALUES (public.snowflake_encode('2020-01-01', 14, 0));
				ALTER TABLE ${table}_rest OWNER TO hostile;
				ALTER TABLE $table OWNER TO hostile;
				GRANT CREATE ON SCHEMA planted TO victim;
			});
			plant("${table}_rest");
			as('hostile', qq{
				ALTER TABLE $table ADD CHECK (planted.ran('check of the parent') = 1);
				CREATE INDEX ON $table ((x + planted.ran('index of the parent')));
			}) if $owner eq 'hostile';
			as('super', "ALTER TABLE $table OWNER TO $owner");
			$run{$twin} = $twin eq 'function' ? run_by($role, call('create_partitions', $table, $period)) : run_by($role, qq{
				CREATE TABLE ${table}_01 (LIKE $table INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED);
				ALTER TABLE ${table}_01 OWNER TO $owner;
				SELECT format('ALTER TABLE %s ATTACH PARTITION %s_01 FOR VALUES FROM (%s) TO (%s)', '$table', '$table',
					public.snowflake_min_id('2024-01-01'), public.snowflake_min_id('2024-02-01')) \\gexec
			});
		}
		note("ATTACH PARTITION runs: $run{statements}");
		isnt($run{statements}, '', "ATTACH PARTITION runs planted code, as $role");
		is($run{function}, $run{statements}, "snowflake_create_partitions() runs that, and nothing else, as $role");
		runs_nothing($role, "SELECT public.snowflake_partition_bounds('planted.parted_${role}_function_rest')",
			'snowflake_partition_bounds()');
	}
};

# --- all else ----------------------------------------------------------------------------------

subtest 'all other functions' => sub {
	foreach my $role (qw(super victim))
	{
		runs_nothing($role, $_, $_)
			foreach 'TABLE snowflake_columns', 'TABLE snowflake_shards', 'TABLE snowflake_sequences', 'SELECT snowflake_check()';
	}
	runs_nothing('super', "SELECT snowflake_create_shard(15, 'planted')", 'snowflake_create_shard()');
	is_refused('victim',
		"SELECT snowflake_create_partitions('planted.parted_super_function', '2025-01-01', '2025-02-01', '1 month')",
		'snowflake_create_partitions()');
};

# --- snowflake-shard verify --------------------------------------------------------------------

subtest 'snowflake-shard verify runs nothing that was planted' => sub {
	SKIP:
	{
		my $program = shard_program_if_built() // skip 'snowflake-shard was not built: its headers are not here', 4;
		my $superuser = $node->connstr('postgres') . ' user=super';
		my $other_id =
			as('hostile',
				q{INSERT INTO planted.with_index_child (id) VALUES (public.snowflake_encode(now(), 10, 0)) RETURNING id});
		foreach my $options ([], ['--full'])
		{
			planted_code_run($node);
			my ($status, $out) = run_shard($program, 'verify', @$options, $superuser);
			is(planted_code_run($node), '', "snowflake-shard verify @$options of a superuser runs nothing that was planted");
			like($out, qr/planted\.with_index\.id: 1 ID not of shard 9, the smallest is $other_id\n/,
				"snowflake-shard verify @$options looks into the children of planted tables");
		}
	}
};

$node->stop;
done_testing();
