# clone, diff and run hold on a shard as applications have it: IN lists over varchar in every place for an
# expression, triggers that write to other tables, functions with a search_path of their own, partitions,
# policies, privileges on columns, quoted names, other owners. PostgreSQL writes an expression in another way
# after it was restored once; a real difference is still found.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $node = new_server('real');
my ($status, $rows, $out, $err);

# Shard 5 of an application.
make_real_database($node, 'postgres');
make_real_shard($node, 'postgres', 5, 'insta5');

# Expressions that PostgreSQL 15 to 18 write otherwise after a restore: an IN list over varchar, wherever an expression
# is stored.
my $expressions = q{
	SET ROLE app;
	ALTER TABLE %1$s.users ADD is_known boolean GENERATED ALWAYS AS (kind IN ('person', 'business')) STORED,
		ADD CONSTRAINT a_or_b CHECK (kind IN ('bot', 'person', 'business') OR name IN ('x', 'y') AND photo_count > 0),
		ADD CONSTRAINT one_bot EXCLUDE (name WITH =) WHERE (kind IN ('bot', 'robot'));
	ALTER TABLE %1$s.photos ADD CONSTRAINT of_shard CHECK (public.snowflake_shard(id) = %2$s);
	ALTER TABLE %1$s.events ADD CONSTRAINT events_of_shard CHECK (public.snowflake_shard(id) = %2$s);
	CREATE STATISTICS %1$s.kinds ON (kind IN ('bot', 'person')), country FROM %1$s.users;
	CREATE FUNCTION %1$s.is_human(kind varchar) RETURNS boolean LANGUAGE sql RETURN kind IN ('person', 'business');
	CREATE POLICY kinds ON %1$s.users TO report USING (kind IN ('person', 'business')) WITH
		CHECK (kind IN ('bot', 'person'));
	CREATE MATERIALIZED VIEW %1$s.humans AS SELECT id, kind IN ('person', 'business') AS is_human FROM %1$s.users;
	CREATE RULE no_bots AS ON DELETE TO %1$s.users WHERE OLD.kind IN ('bot', 'robot') DO INSTEAD NOTHING;
	CREATE FUNCTION %1$s.touched() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$;
	CREATE TRIGGER touched BEFORE UPDATE ON %1$s.users FOR EACH ROW
		WHEN (NEW.kind IN ('person', 'bot')) EXECUTE FUNCTION %1$s.touched();
	CREATE VIEW %1$s.arms AS SELECT * FROM (SELECT id, kind, 1 AS a, 'x' AS b, now() AS c, 2 AS d, 1::bigint AS e,
		true AS f, '{}'::text[] AS g, kind AS h FROM %1$s.users
		UNION ALL SELECT id, 'b', -1, NULL, '2020-01-01', NULL::smallint, -2, false, '{a}', 'x'::varchar(3) FROM %1$s.photos
		UNION ALL SELECT 3, 'it''s', -3, 'AS text', 'today'::timestamp, -4, -5, NULL, NULL, 'y'::char(2)) AS arms;
	CREATE VIEW %1$s.by_case AS SELECT CASE WHEN kind IN ('a', 'b') THEN 1 ELSE 2 END AS n FROM %1$s.users
		WHERE created_at BETWEEN '2020-01-01' AND '2030-01-01' AND -photo_count < 3;
};
$node->safe_psql('postgres', sprintf($expressions =~ s/%(?!\d\$s)/%%/gr, 'insta5', 5));
psql_file($node, 'postgres', 'rows', schema => 'insta5', n => 200);

sub difference
{
	my ($template, @arguments) = @_;
	($status, $rows, $err) = shard_json($program, 'diff', shift @arguments // $node, '--template', $template, @arguments);
	diag($err) if $err ne '';
	return join(', ', $status, map { "$_->{schema} $_->{change} $_->{object}" } @$rows);
}

subtest 'a clone is as the template, and writes into itself' => sub {
	($status, $rows, $err) =
		shard_json($program, 'clone', $node, '--template', 'insta5', '--shards', '6-8', '--schema', 'insta{}', '--jobs', 2);
	is("$status " . states($rows), '0 made 6,7,8', 'clone: every shard is made') or diag($err);
	is($err, '', 'clone: without a warning');
	is(dump_of($node, 'insta6', name => 'insta8', from => 6, to => 8), dump_of($node, 'insta8'),
		'clone: two clones have the same definition');
	is($node->safe_psql('postgres',
		q{SELECT string_agg(DISTINCT shard::text, ',' ORDER BY shard::text) FROM snowflake_columns
			WHERE schema_name = 'insta6'}),
		'6', 'clone: all DEFAULTs make IDs of the clone\'s shard');
	is($node->safe_psql('postgres', q{
		INSERT INTO insta6.users (name) VALUES ('mia') RETURNING photo_count;
		INSERT INTO insta6.photos (user_id) SELECT id FROM insta6.users RETURNING snowflake_shard(id);
		INSERT INTO insta6.events (kind) VALUES ('x') RETURNING snowflake_shard(id);
		SELECT photo_count FROM insta6.users;
		UPDATE insta6.photos SET seen_by = 'friends' RETURNING number;
		SELECT what FROM insta6."Audit Log"}), "0\n6\n6\n1\n1\nUPDATE", 'clone: its triggers write into the clone');
	is($node->safe_psql('postgres', 'SELECT sum(photo_count) FROM insta5.users'), '200',
		'clone: and not into the template');
	is($node->safe_psql('postgres', q{SELECT severity, object, problem FROM snowflake_check() WHERE severity <> 'notice'}),
		'',
		'clone: nothing to complain of for snowflake_check()');
	is($node->safe_psql('postgres', "SELECT nspname FROM pg_namespace WHERE nspname ~ '^snowflake_copy'"), '',
		'clone: no schema is left behind');
};

# As snowflake_create_shard() of a superuser leaves a schema of app.
subtest 'functions, types and sequences of another role are the clone\'s owner\'s' => sub {
	my $give = sub { $node->safe_psql('postgres', join '; ', map { "ALTER $_ OWNER TO $_[0]" } 'FUNCTION insta5.next_id()', 'FUNCTION insta5.settled_id()',
		'TYPE insta5.visibility', 'SEQUENCE insta5.table_id_seq') };
	$give->('CURRENT_USER');
	($status, $rows, $err) = shard_json($program, 'clone', $node, '--template', 'insta5', '--shards', '9', '--schema', 'insta{}');
	is("$status " . states($rows), '0 made 9', 'it is cloned') or diag($err);
	is($node->safe_psql('postgres', q{SELECT DISTINCT proowner::regrole FROM pg_proc WHERE pronamespace = 'insta9'::regnamespace}), 'app', 'all is app\'s');
	is(difference('insta5', $node, '--shards', '9'), '0', 'which is no difference');
	$node->safe_psql('postgres', 'ALTER FUNCTION insta5.audit() OWNER TO CURRENT_USER');
	($status, $rows, $err) = shard_json($program, 'clone', $node, '--template', 'insta5', '--shards', '10', '--schema', 'insta{}');
	like("$status $err", qr/^3 .*\n +FUNCTION audit\(\): must be [^\n]*\n +HINT:  Give the object to role "app", [^\n]*: ALTER \.\.\. OWNER TO\.$/ms,
		'a SECURITY DEFINER function of another role is refused');
	$node->safe_psql('postgres', 'ALTER FUNCTION insta5.audit() OWNER TO app; SET client_min_messages = error; DROP SCHEMA insta9 CASCADE');
	$give->('app');
};

subtest 'diff finds no difference between two ways to write an expression' => sub {
	# diff: a shard that the application has made by its own script is written as the template is, a clone otherwise.
	make_real_shard($node, 'postgres', 10, 'insta10');
	$node->safe_psql('postgres', sprintf($expressions =~ s/%(?!\d\$s)/%%/gr, 'insta10', 10));
	psql_file($node, 'postgres', 'rows', schema => 'insta10', n => 20);
	isnt(dump_of($node, 'insta10', name => 'insta6', from => 10, to => 6), dump_of($node, 'insta6'),
		'PostgreSQL writes expressions otherwise after a restore');
	is(difference('insta5'), '0', 'diff: clones and shards made by hand are as the template');
	is(difference('insta6'), '0', 'diff: a clone as the template');
	is($node->safe_psql('postgres', "SELECT nspname FROM pg_namespace WHERE nspname ~ '^snowflake_copy'"), '',
		'diff: no schema is left behind');
};

subtest 'diff finds each real difference' => sub {
	foreach my $change (
		[ 'TABLE users',
			q{ALTER TABLE %1$s.users DROP CONSTRAINT a_or_b, ADD CONSTRAINT a_or_b CHECK ((kind IN ('bot', 'person', 'business')
				OR name IN ('x', 'y')) AND photo_count > 0) NOT VALID},
			q{ALTER TABLE %1$s.users DROP CONSTRAINT a_or_b, ADD CONSTRAINT a_or_b CHECK (kind IN ('bot', 'person', 'business')
				OR name IN ('x', 'y') AND photo_count > 0)}, 'parentheses' ],
		[ 'INDEX users_business',
			q{DROP INDEX %1$s.users_business; CREATE INDEX users_business ON %1$s.users (created_at)
				WHERE kind IN ('business', 'bots')},
			q{DROP INDEX %1$s.users_business; CREATE INDEX users_business ON %1$s.users (created_at)
				WHERE kind IN ('business', 'bot')}, 'a word in an IN list' ],
		[ 'FUNCTION count_photos()', q{ALTER FUNCTION %1$s.count_photos() SET search_path = insta5},
			q{ALTER FUNCTION %1$s.count_photos() SET search_path = %1$s},
			'a function with the search_path of the template' ],
		[ 'POLICY photos not_private', q{ALTER POLICY not_private ON %1$s.photos USING (true)},
			q{ALTER POLICY not_private ON %1$s.photos USING (seen_by IN ('public', 'friends'))}, 'a policy' ])
	{
		my ($object, $make, $undo, $name) = @$change;
		my @shards = ('insta7', 'insta10');
		$node->safe_psql('postgres', sprintf($make, $_)) foreach @shards;
		my $difference = difference('insta5');
		like($difference, qr/^1, /, "diff: $name");
		foreach my $shard (@shards)
		{
			like($difference,
				qr/ $shard missing (CHECK CONSTRAINT users a_or_b, )?[^,]*\b\Q$object\E.*, $shard added .*\Q$object\E/,
				"diff: $name in $shard");
		}
		is(join(' ', grep { !/^insta(?:7|10)$/ } map { $_->{schema} } @$rows), '', 'diff: and in no other shard');
		$node->safe_psql('postgres', sprintf($undo, $_)) foreach @shards;
	}
	$node->safe_psql('postgres',
		'GRANT DELETE ON insta8.photos TO report; REVOKE SELECT ON insta8.photos FROM report; '
		. 'GRANT SELECT ON insta8.photos TO report');
	is(difference('insta5'), '1, insta8 added ACL GRANT DELETE ON TABLE insta8.photos TO report;',
		'diff: a privilege, and not the order of privileges');
	$node->safe_psql('postgres', 'REVOKE DELETE ON insta8.photos FROM report');
	is(difference('insta5'), '0', 'diff: all is undone');
};

subtest 'run makes the same change in shards that are written in two ways' => sub {
	($status, $rows, $err) = shard_json($program, 'run', $node, '--shards', '5-8,10', '--sql',
		q{ALTER TABLE photos ADD state varchar(8) NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'old'));
			CREATE INDEX ON photos (id) WHERE state IN ('new', 'old')});
	is("$status " . states($rows), '0 done 5,6,7,8,10', 'run: every shard');
	is(difference('insta5'), '0', 'run: and they are equal after it');
	is(difference('insta7'), '0', 'run: to a clone as well');
};

subtest 'a clone is a template, also after a dump and a restore' => sub {
	($status, $rows, $err) =
		shard_json($program, 'clone', $node, '--template', 'insta6', '--shards', '5-8,10-11', '--schema', 'insta{}');
	is("$status " . states($rows), '0 made 11; there already 5,6,7,8,10', 'clone: a clone is a template') or diag($err);
	$node->safe_psql('postgres', 'CREATE DATABASE again');
	IPC::Run::run([ 'pg_dump', '-d', $node->connstr('postgres') ], '|',
		[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('again') ],
		'>', \my $ignored) or die 'pg_dump and psql failed';
	make_real_shard($node, 'again', 12, 'insta12');
	my $again = $node->connstr('again');
	($status, $rows, $err) = shard_json($program, 'diff', $again, '--template', 'insta5', '--shards', '5-8,10-11');
	is("$status @$rows $err", '0  ', 'diff: after a dump and a restore');
	($status, $rows, $err) =
		shard_json($program, 'clone', $again, '--template', 'insta5', '--shards', '13', '--schema', 'insta{}');
	is("$status " . states($rows), '0 made 13', 'clone: after a dump and a restore') or diag($err);
};

subtest 'a difference of the clones is found before there is one' => sub {
	foreach my $cause (
		[ 'default privileges', 'ALTER DEFAULT PRIVILEGES FOR ROLE app GRANT SELECT ON TABLES TO report',
			qr/GRANT SELECT ON TABLE insta5\.bookings TO report;/,
			'ALTER DEFAULT PRIVILEGES FOR ROLE app REVOKE SELECT ON TABLES FROM report' ],
		[ 'an event trigger', q{CREATE FUNCTION public.add_column() RETURNS event_trigger LANGUAGE plpgsql AS $$
				DECLARE c record;
				BEGIN FOR c IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE object_type = 'table'
					AND object_identity ~ 'bookings' LOOP
					EXECUTE format('ALTER TABLE %s ADD IF NOT EXISTS added integer', c.object_identity); END LOOP; END $$;
			CREATE EVENT TRIGGER add_column ON ddl_command_end WHEN TAG IN ('CREATE TABLE')
				EXECUTE FUNCTION public.add_column()},
			qr/added integer/, 'DROP EVENT TRIGGER add_column; DROP FUNCTION public.add_column' ],
		[ 'a number in a view',
			'SET ROLE app; CREATE VIEW insta5.mine AS SELECT id FROM insta5.photos WHERE public.snowflake_shard(id) = 5',
			qr/CREATE VIEW insta5\.mine/, 'DROP VIEW insta5.mine' ])
	{
		my ($name, $make, $message, $undo) = @$cause;
		$node->safe_psql('postgres', $make);
		($status, $out, $err) =
			run_shard($program, 'clone', $node, '--template', 'insta5', '--shards', '20', '--schema', 'insta{}');
		ok($status == 3 && $err =~ $message && $err =~ /clones would differ from schema insta5/, "clone: $name")
			or diag($err);
		unlike($err, qr/snowflake_copy/, 'clone: the message names the template, not its copy');
		$node->safe_psql('postgres', $undo);
	}
	is($node->safe_psql('postgres', q{SELECT to_regnamespace('insta20') IS NULL}), 't', 'clone: nothing was made');
};

my $old;
subtest 'a template that was the schema public, with privileges that pg_dump takes for initial ones' => sub {
	$node->safe_psql('postgres', 'CREATE DATABASE old TEMPLATE template0');
	$node->safe_psql('old',
		q{CREATE SCHEMA extensions; CREATE EXTENSION snowflake SCHEMA extensions; ALTER SCHEMA public RENAME TO insta1;
		CREATE TABLE insta1.users (id bigint PRIMARY KEY, kind varchar(9) CHECK (kind IN ('a', 'b')));
		SELECT extensions.snowflake_create_shard(1, 'insta1'); SELECT extensions.snowflake_attach('insta1.users')});
	$old = $node->connstr('old');
	my $usage =
		q{SELECT string_agg(nspname || has_schema_privilege('web', oid, 'USAGE') || has_schema_privilege('report', oid,
			'USAGE'), ' ' ORDER BY nspname)
		FROM pg_namespace WHERE nspname ~ 'insta'};
	($status, $rows, $err) =
		shard_json($program, 'clone', $old, '--template', 'insta1', '--shards', '2', '--schema', 'insta{}');
	is("$status " . states($rows), '0 made 2', 'clone: a template that was public') or diag($err);
	is($node->safe_psql('old', $usage), 'insta1truetrue insta2truetrue', 'clone: with the privileges of public');
	$node->safe_psql('old', 'REVOKE USAGE ON SCHEMA insta1 FROM PUBLIC; GRANT USAGE ON SCHEMA insta1 TO web');
	is(join(', ', map { $_->{statement} } @{ (shard_json($program, 'diff', $old, '--template', 'insta1'))[1] }),
		"GRANT USAGE ON SCHEMA insta2 TO web;\n, GRANT USAGE ON SCHEMA insta2 TO PUBLIC;\n",
		'diff: other privileges of the schema');
	($status, $rows, $err) =
		shard_json($program, 'clone', $old, '--template', 'insta1', '--shards', '3', '--schema', 'insta{}');
	is("$status " . states($rows), '0 made 3', 'clone: after REVOKE and GRANT') or diag($err);
	is($node->safe_psql('old', "$usage AND nspname <> 'insta2'"), 'insta1truefalse insta3truefalse',
		'clone: with what is left of the privileges');
};

subtest 'extensions in the template' => sub {
	$node->safe_psql('old', "CREATE EXTENSION $_ SCHEMA insta1") foreach 'btree_gist', 'citext';
	($status, $out, $err) =
		run_shard($program, 'clone', $old, '--template', 'insta1', '--shards', '4', '--schema', 'insta{}');
	my $installed = join '', map { "\n    extension $_ is installed in schema insta1, and .*\n    HINT:  .*" } 'btree_gist', 'citext';
	ok($status == 3 && $err =~ /cannot have objects of extensions:$installed\n/, 'clone: all extensions in the template')
		or diag($err);
	my @hints = $err =~ /^ +HINT:  (CREATE SCHEMA IF NOT EXISTS extensions; ALTER EXTENSION .*;)$/mg;
	$node->safe_psql('old', "@hints CREATE FUNCTION insta1.of_it() RETURNS integer LANGUAGE sql RETURN 1; ALTER EXTENSION citext ADD FUNCTION insta1.of_it()");
	($status, $out, $err) =
		run_shard($program, 'clone', $old, '--template', 'insta1', '--shards', '4', '--schema', 'insta{}');
	like("$status $err", qr/^3 .*function insta1\.of_it\(\) belongs to extension citext.*\n +HINT:  ALTER EXTENSION citext DROP FUNCTION insta1\.of_it\(\);/s,
		'clone: an object of an extension that is installed elsewhere');
	$node->safe_psql('old', 'ALTER EXTENSION citext DROP FUNCTION insta1.of_it(); DROP FUNCTION insta1.of_it()');
	# The copy of a killed command, where the owner has installed an extension.
	$node->safe_psql('old', 'CREATE SCHEMA snowflake_copy_9_1; CREATE EXTENSION pg_trgm SCHEMA snowflake_copy_9_1');
	($status, $out, $err) =
		run_shard($program, 'clone', $old, '--template', 'insta1', '--shards', '4', '--schema', 'insta{}');
	like("$status $err", qr/^3 .*extension pg_trgm is installed in schema snowflake_copy_9_1, and .*\nHINT:  CREATE SCHEMA IF NOT EXISTS extensions; ALTER EXTENSION pg_trgm SET SCHEMA extensions;/s,
		'clone: drops no extension with an old copy');
	$node->safe_psql('old', 'ALTER EXTENSION pg_trgm SET SCHEMA extensions');
	is((run_shard($program, 'clone', $old, '--template', 'insta1', '--shards', '4', '--schema', 'insta{}'))[0], 0,
		'clone: after the statements of the hint');
};

subtest 'one shard comes from a backup of the whole database, as docs/backup.md says' => sub {
	my $backup = PostgreSQL::Test::Utils::tempdir() . '/app.dump';
	my $count =
		q{SELECT (SELECT count(*) FROM insta5.photos), (SELECT count(*) FROM insta5.comments), (SELECT count(*)
			FROM insta5."Audit Log"),
		(SELECT count(*) FROM pg_class WHERE relnamespace = 'insta5'::regnamespace), (SELECT count(*) FROM pg_proc
			WHERE pronamespace = 'insta5'::regnamespace),
		(SELECT count(*) FROM pg_constraint WHERE connamespace = 'insta5'::regnamespace), (SELECT count(*) FROM pg_trigger
			WHERE tgrelid::regclass::text ~ '^insta5\.')};
	my $before = $node->safe_psql('postgres', $count);
	$node->command_ok([ 'pg_dump', '-Fc', '-f', $backup, '-d', $node->connstr('postgres') ],
		'pg_dump of a database of shards');
	my $owner = $node->safe_psql('postgres', q{SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'insta5'});
	my $id = $node->safe_psql('postgres', 'SELECT insta5.next_id()');
	$node->safe_psql('postgres', "ALTER SCHEMA insta5 RENAME TO insta5_before; CREATE SCHEMA insta5 AUTHORIZATION $owner");
	$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('postgres'), '-n', 'insta5', $backup ],
		'pg_restore -n of one of them');
	is($node->safe_psql('postgres', $count), $before, 'its objects and rows are there');
	$node->safe_psql('postgres', 'GRANT USAGE ON SCHEMA insta5 TO web, report');
	cmp_ok($node->safe_psql('postgres', 'SELECT insta5.next_id()'), '>', $id, 'its IDs go on');
	like((run_shard($program, 'verify', $node))[1], qr/insta5_before/, 'verify names the schema that was renamed');
	$node->safe_psql('postgres', 'DROP SCHEMA insta5_before CASCADE');
	unlike((run_shard($program, 'verify', $node))[1], qr/insta5/, 'and nothing when it is gone');
};

subtest 'an earlier state comes beside the live shard, as docs/backup.md says' => sub {
	$node->safe_psql('postgres', 'CREATE DATABASE recovered TEMPLATE postgres');
	my $page = slurp_file("$FindBin::RealBin/../../docs/backup.md");
	my ($statements, $dump) = $page =~ /<<'SQL'\n(ALTER SCHEMA insta5.*?\n)SQL\n(pg_dump .*?)\n/s
	  or die 'the page has other commands';
	$node->safe_psql('recovered', $statements);
	$node->safe_psql('postgres', 'DELETE FROM insta5.comments');
	$dump =~ s/'host=recovered dbname=app'/recovered/;
	$dump =~ s/dbname=app/-d postgres/;
	local @ENV{qw(PGHOST PGPORT)} = ($node->host, $node->port);
	$node->command_ok([ 'bash', '-o', 'pipefail', '-ec', $dump ], 'the dump of the renamed schema is restored');
	my $rows = q{SELECT (SELECT count(*) FROM %1$s.photos), (SELECT count(*) FROM %1$s.comments) > 0};
	my $live = $node->safe_psql('postgres', 'SELECT count(*) FROM insta5.photos');
	is($node->safe_psql('postgres', sprintf $rows, 'insta5_old'), "$live|t", 'with its rows');
	is($node->safe_psql('postgres', sprintf $rows, 'insta5'), "$live|f", 'and the live shard has its own');
	is($node->safe_psql('postgres', q{SELECT count(*) FROM snowflake_columns WHERE schema_name = 'insta5_old'}), '0',
		'no column makes IDs');
	unlike((run_shard($program, 'verify', $node))[1], qr/insta5/, 'verify finds nothing');
	unlike((run_shard($program, 'list', $node))[1], qr/insta5_old/, 'it is no shard');
	$node->safe_psql('postgres', 'DROP SCHEMA insta5_old CASCADE; DROP DATABASE recovered');
};

subtest 'diff writes nothing: a role that may only read can run it' => sub {
	$node->safe_psql('postgres', 'GRANT pg_read_all_data TO report');
	is(difference('insta5', $node->connstr('postgres') . " user=report options='-cdefault_transaction_read_only=on'"), '0',
		'diff: by a role that may only read');
};

subtest 'diff goes on without a shard that the role may not read' => sub {
	$node->safe_psql('postgres', qq{REVOKE pg_read_all_data FROM report; GRANT USAGE ON SCHEMA insta5, insta6, insta7, insta8 TO report;
		GRANT SELECT ON ALL TABLES IN SCHEMA insta5, insta6, insta7, insta8 TO report;
		GRANT SELECT ON ALL SEQUENCES IN SCHEMA insta5, insta6, insta7, insta8 TO report;
		REVOKE SELECT ON insta7.photos FROM report; ALTER TABLE insta8.photos ADD x integer});
	is(difference('insta5', $node->connstr('postgres') . ' user=report', '--shards', '6-8'),
		'3, insta8 missing TABLE photos, insta8 added TABLE photos', 'the others are compared');
	my $refused = qr/ERROR:  permission denied for table photos; .*LOCK TABLE .*\binsta7\.photos\b/;
	like($err, qr/^snowflake-shard: shard 7: \S+: pg_dump failed: .*$refused.*\nHINT:  GRANT SELECT ON insta7\.photos TO report;$/m,
		'the shard is named, with the missing right');
};

$node->stop;
done_testing();
