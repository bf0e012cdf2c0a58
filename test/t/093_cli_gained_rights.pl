# What the definition of a shard names in other schemas belongs to the same role on the target, or clone and move make nothing: neither code
# of a role that has made such names there, nor what the shard's owner could not make there. mallory owns a shard, and may make schemas on
# the source, but nothing on the target. No literal, type or name of the shard runs code with the rights of the command, or leads it to rows
# of others.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../gaps";

use Command;
use PostgreSQL::Test::Utils;
use Proxy;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my %nodes = map { $_ => new_server($_, conf => "max_wal_senders = 10\nwal_level = logical\n") } qw(one two);
my ($one, $two) = @nodes{qw(one two)};
my $canary = PostgreSQL::Test::Utils::tempdir() . '/canary';

sub run_as
{
	my ($role, $node, $sql) = @_;
	my ($code, undef, $err) = $node->psql('postgres', "SET client_min_messages = error; $sql",
		extra_params => [ '-U', $role ], on_error_stop => 1);
	die "$sql: $err" if $code != 0;
	return;
}

# A function that leaves a file if another role than mallory runs it, also in a READ ONLY transaction.
sub spy
{
	my ($signature, $result) = @_;
	return qq{CREATE FUNCTION $signature LANGUAGE plpgsql AS \$\$BEGIN IF current_user <> 'mallory' THEN
		COPY (SELECT 1) TO PROGRAM 'echo > $canary'; END IF; RETURN $result;
		EXCEPTION WHEN insufficient_privilege THEN RETURN $result; END\$\$;};
}

my @both = ('--from', $one, '--to', $two);

sub move { return run_shard($program, 'move', 'insta5', @both, @_) }

foreach my $node ($one, $two)
{
	$node->safe_psql('postgres', q{CREATE ROLE mallory LOGIN; CREATE ROLE victim LOGIN;
		CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER warehouse FOREIGN DATA WRAPPER nothing});
}
$one->safe_psql('postgres', 'CREATE ROLE ops LOGIN; GRANT ops TO mallory');
$two->safe_psql('postgres', 'CREATE ROLE ops SUPERUSER');
$one->safe_psql('postgres', 'GRANT CREATE ON DATABASE postgres TO mallory; GRANT USAGE ON FOREIGN SERVER warehouse TO mallory');
run_as('mallory', $one, q{SELECT snowflake_create_shard(5, 'insta5');
	CREATE SCHEMA billing; CREATE TABLE billing.invoices (id integer PRIMARY KEY);
	CREATE FUNCTION billing.log() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), invoice integer);
	INSERT INTO insta5.photos (invoice) VALUES (1)});
$two->safe_psql('postgres', q{CREATE SCHEMA billing AUTHORIZATION victim; SET SESSION AUTHORIZATION victim;
	CREATE TABLE billing.invoices (id integer PRIMARY KEY); INSERT INTO billing.invoices VALUES (1);
	CREATE FUNCTION billing.log() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
	REVOKE EXECUTE ON FUNCTION billing.log() FROM PUBLIC});
run_as('mallory', $one, 'INSERT INTO billing.invoices VALUES (1)');

# What the shard has, the error, and what takes it away.
my %kinds = (
	'a child table' => [ 'CREATE TABLE insta5.child () INHERITS (billing.invoices)',
		qr/table billing\.invoices belongs to role victim, and to role mallory on \S+; table insta5\.child needs it/, 'DROP TABLE insta5.child' ],
	'a foreign key' => [ 'ALTER TABLE insta5.photos ADD CONSTRAINT k FOREIGN KEY (invoice) REFERENCES billing.invoices',
		qr/table billing\.invoices belongs to role victim, and to role mallory on \S+; constraint k on table insta5\.photos needs it\n\s*HINT:\s+If it is the same as on \S+: ALTER TABLE billing\.invoices OWNER TO mallory;/,
		'ALTER TABLE insta5.photos DROP CONSTRAINT k' ],
	'a trigger' => [ 'CREATE TRIGGER t BEFORE INSERT ON insta5.photos FOR EACH ROW EXECUTE FUNCTION billing.log()',
		qr/function billing\.log\(\) belongs to role victim, and to role mallory on \S+; trigger t on table insta5\.photos needs it/,
		'DROP TRIGGER t ON insta5.photos' ],
	'a foreign table' => [ 'CREATE FOREIGN TABLE insta5.far (id integer) SERVER warehouse',
		qr/permission denied for foreign server warehouse\n(?s:.*)HINT:  Role mallory, which owns the template, has this right on the|(?:foreign table insta\d\.far is of server warehouse, and role mallory may not|permission denied for foreign server warehouse).*\n\s*HINT:\s+If .*: GRANT USAGE ON FOREIGN SERVER warehouse/,
		'DROP FOREIGN TABLE insta5.far' ]);
# By clone and by move.
sub is_refused
{
	my ($error) = @_;
	my ($status, $out, $err) =
		run_shard($program, 'clone', $one, $two, '--template', 'insta5', '--shards', 6, '--schema', 'insta{}', '--to', $two);
	like("$status $out$err", qr/^3 (?s:.*)$error/, 'clone is refused') or diag($err);
	($status, $out, $err) = move('--dry-run');
	like("$status $out", qr/^1 (?s:.*)$error/, 'for move it is an obstacle') or diag($err);
	is($two->safe_psql('postgres', q{SELECT count(*) FROM pg_namespace WHERE nspname ~ '^insta'}), 0, 'nothing was made');
	return;
}

# squatter has made the names on the target, where a superuser was to make them. The code would run as the role of the command, or of an
# apply worker.
subtest 'names of other schemas that another role has taken on the target' => sub {
	my $make = q{SET search_path = util; GRANT USAGE ON SCHEMA util TO PUBLIC;
		CREATE FUNCTION "is OK"(integer) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN true;
		CREATE FUNCTION log() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TYPE kind AS ENUM ('a'); CREATE DOMAIN short AS text; CREATE TYPE span AS RANGE (subtype = integer);
		CREATE OPERATOR === (leftarg = integer, rightarg = integer, function = int4eq); CREATE COLLATION c FROM "C";
		CREATE TABLE plans (id integer PRIMARY KEY); CREATE TABLE regions (id integer PRIMARY KEY) PARTITION BY RANGE (id);
		CREATE TABLE rest PARTITION OF regions DEFAULT; CREATE VIEW names AS SELECT 1 AS id; CREATE SEQUENCE numbers;
		CREATE TEXT SEARCH CONFIGURATION words (COPY = pg_catalog.simple)};
	my @names = ('function util."is OK"(integer)', 'function util.log()', 'enum type util.kind', 'domain type util.short', 'range type util.span',
		'operator util.===(integer,integer)', 'collation util.c', 'table util.plans', 'table util.regions', 'view util.names', 'sequence util.numbers',
		'text search configuration util.words', 'schema util');
	$one->safe_psql('postgres', "CREATE SCHEMA util; $make;" . q{GRANT SELECT, REFERENCES ON ALL TABLES IN SCHEMA util TO mallory;
		GRANT USAGE ON SEQUENCE util.numbers TO mallory});
	run_as('mallory', $one, q{CREATE TABLE insta5.uses (id bigint PRIMARY KEY DEFAULT nextval('util.numbers'), n integer CHECK (util."is OK"(n)),
		k util.kind[], s util.short, span util.span, t text COLLATE util.c, plan integer REFERENCES util.plans, region integer REFERENCES util.regions,
		EXCLUDE USING btree (n WITH =) WHERE (n OPERATOR(util.===) 1));
		CREATE VIEW insta5.named AS TABLE util.names; CREATE INDEX ON insta5.uses (to_tsvector('util.words', t));
		CREATE TRIGGER t BEFORE INSERT ON insta5.uses FOR EACH ROW EXECUTE FUNCTION util.log(); INSERT INTO insta5.uses (n) VALUES (1)});
	my $obstacles = sub {
		my ($status, $rows) = shard_json($program, 'move', 'insta5', @both, '--dry-run');
		return [ map { $_->{obstacle} =~ s/^\S+: //r } @$rows ];
	};
	my $told = sub {
		my ($rest) = @_;
		my @found = @{ $obstacles->() };
		foreach my $name (@names) { is((() = grep { /^\Q$name\E $rest/ } @found), 1, "$name is told") }
		is(@found, @names, 'and nothing else') or diag(explain(\@found));
		return @found;
	};
	like(($told->('does not exist, and .* (?s:.*)HINT'))[0], qr/^schema util .*\n +HINT:  CREATE SCHEMA util AUTHORIZATION /, 'none is there');
	$two->safe_psql('postgres', 'CREATE ROLE squatter LOGIN; GRANT CREATE ON DATABASE postgres TO squatter');
	run_as('squatter', $two, "CREATE SCHEMA util; $make; " . q{
		CREATE OR REPLACE FUNCTION util."is OK"(integer) RETURNS boolean LANGUAGE plpgsql AS
		$$BEGIN EXECUTE 'ALTER ROLE squatter SUPERUSER'; RETURN true; EXCEPTION WHEN insufficient_privilege THEN RETURN true; END$$});
	$told->('belongs to role squatter, and to role \S+ on \S+; (?s:.*)HINT:  If it is the same as on \S+: ALTER [A-Z ]+ util.* OWNER TO ');
	my ($status, $out) = move();
	is($status, 1, 'the move does not begin') or diag($out);
	($status, $out, my $err) =
		run_shard($program, 'clone', $one, $two, '--template', 'insta5', '--shards', 6, '--schema', 'insta{}', '--to', $two);
	like("$status $err", qr/^3 .*\n +schema util belongs to role squatter.*\n +function util\./s, 'clone tells all of them, too');
	is($two->safe_psql('postgres', 'SELECT rolsuper FROM pg_roles WHERE rolname = $$squatter$$'), 'f', 'squatter has got no rights');
	# As an operator does who has looked at them.
	$two->safe_psql('postgres', join ';', map { /HINT:  .*: (ALTER .*;)/ } @{ $obstacles->() });
	my @rights = @{ $obstacles->() };
	is(@rights, 2, 'the statements of the hints are enough, but for rights of the owner') or diag(explain(\@rights));
	like($rights[$_], qr/^FK CONSTRAINT uses .*: permission denied for table .*\n +HINT:  If its owner trusts role "mallory", .*: GRANT REFERENCES ON TABLE /,
		'the owner needs REFERENCES') foreach 0, 1;
	$two->safe_psql('postgres', 'GRANT REFERENCES ON util.plans, util.regions TO mallory');
	is(join('', @{ $obstacles->() }), '', 'which is enough');
	$two->safe_psql('postgres', 'DROP VIEW util.names; CREATE TABLE util.names (id integer); ALTER SCHEMA util OWNER TO mallory');
	like(join("\n", @{ $obstacles->() }), qr/^schema util belongs to role mallory, .*\n.*\nutil\.names is of kind table, and of kind view on .*\n.*$/,
		'a schema of another role, and another kind');
	run_as('mallory', $one, 'DROP VIEW insta5.named; DROP TABLE insta5.uses');
	$two->safe_psql('postgres', 'DROP SCHEMA util CASCADE');
};

foreach my $kind (sort keys %kinds)
{
	my ($make, $error, $drop) = @{ $kinds{$kind} };
	subtest "$kind that the owner may not make on the target" => sub {
		run_as('mallory', $one, $make);
		is_refused($error);
		run_as('mallory', $one, $drop);
		is((move('--dry-run'))[0], 0, 'without it there is no obstacle');
	};
}

subtest 'a foreign key of old, for which the owner has no right' => sub {
	$_->safe_psql('postgres', 'CREATE TABLE public.plans (id integer PRIMARY KEY); INSERT INTO public.plans VALUES (1)') foreach $one, $two;
	$one->safe_psql('postgres', 'ALTER TABLE insta5.photos ADD CONSTRAINT k FOREIGN KEY (invoice) REFERENCES public.plans');
	my ($status, $out) = move('--dry-run');
	like("$status $out", qr/^1 .*permission denied for table plans\n +HINT:  .*GRANT REFERENCES ON TABLE public\.plans TO "mallory"/, 'is an obstacle');
	$two->safe_psql('postgres', 'GRANT REFERENCES ON public.plans TO mallory');
	is((move('--dry-run'))[0], 0, 'but for the right');
	run_as('mallory', $one, 'ALTER TABLE insta5.photos DROP CONSTRAINT k');
};

# ops may not be given to mallory on the target, where it is a superuser.
foreach my $kind (
	[ 'function', q{CREATE FUNCTION insta5.f() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT current_user::text'},
		'insta5.f()' ],
	[ 'view', 'CREATE VIEW insta5.v AS SELECT 1 AS one', 'insta5.v' ])
{
	my ($name, $make, $object) = @$kind;
	subtest "a $name whose owner is a superuser on the target alone" => sub {
		run_as('mallory', $one, "$make; GRANT CREATE ON SCHEMA insta5 TO ops; ALTER $name $object OWNER TO ops");
		is_refused(qr/role ops has the rights of a superuser, and not on \S+, and owns $name \Q$object\E/);
		run_as('mallory', $one, "DROP $name $object; REVOKE CREATE ON SCHEMA insta5 FROM ops");
	};
}

subtest 'the owner of the shard is a superuser on the target alone' => sub {
	foreach my $node ($one, $two)
	{
		$node->safe_psql('postgres', 'CREATE SCHEMA evil AUTHORIZATION mallory; GRANT USAGE ON SCHEMA evil TO PUBLIC');
		run_as('mallory', $node, spy('evil.spy() RETURNS integer', '1'));
	}
	$one->safe_psql('postgres', 'GRANT CREATE ON DATABASE postgres TO ops');
	run_as('mallory', $one, q{SET ROLE ops; SELECT snowflake_create_shard(8, 'insta8');
		CREATE FUNCTION insta8.f() RETURNS integer LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN evil.spy(); END';
		CREATE TABLE insta8.photos (id bigint PRIMARY KEY, g integer GENERATED ALWAYS AS (insta8.f()) STORED)});
	my ($status, $out, $err) =
		run_shard($program, 'clone', $one, $two, '--template', 'insta8', '--shards', 9, '--schema', 'insta{}', '--to', $two);
	like("$status $out$err", qr/^3 (?s:.*)role ops has the rights of a superuser, and not on \S+, and owns schema insta8/, 'clone is refused');
	ok(!-e $canary, 'no code of another role gets the rights of the superuser');
	$one->safe_psql('postgres', 'DROP SCHEMA insta8 CASCADE');
};

subtest 'a literal of the shard is read' => sub {
	run_as('mallory', $one, spy('insta5.spy(integer) RETURNS boolean', 'true') . q{
		CREATE DOMAIN insta5.checked AS integer CHECK (insta5.spy(VALUE));
		CREATE FUNCTION insta5.f(insta5.checked[]) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
		ALTER TABLE insta5.photos ADD CONSTRAINT c CHECK (insta5.f('{1}'))});
	move('--dry-run');
	ok(!-e $canary, 'no code of the owner runs with the rights of the command');
	run_as('mallory', $one, 'ALTER TABLE insta5.photos DROP CONSTRAINT c; DROP DOMAIN insta5.checked CASCADE');
};

subtest 'a foreign key whose column has a type of the owner' => sub {
	$two->safe_psql('postgres', 'CREATE SCHEMA types AUTHORIZATION mallory; CREATE SCHEMA ops;
		CREATE TABLE ops.log (id integer PRIMARY KEY); INSERT INTO ops.log VALUES (1); GRANT REFERENCES ON ops.log TO mallory;
		GRANT USAGE ON SCHEMA ops TO mallory');
	$one->safe_psql('postgres', 'CREATE SCHEMA types AUTHORIZATION mallory');
	run_as('mallory', $_, q{CREATE TYPE types.e AS ENUM ('1', '2')}) foreach $one, $two;
	run_as('mallory', $two, 'CREATE CAST (types.e AS integer) WITH INOUT AS IMPLICIT;'
			. spy('types.read(text) RETURNS types.e', q{'1'}) . 'CREATE CAST (text AS types.e) WITH FUNCTION types.read(text)');
	run_as('mallory', $one, q{CREATE SCHEMA ops; CREATE TABLE ops.log (id types.e PRIMARY KEY); INSERT INTO ops.log VALUES ('1');
		ALTER TABLE insta5.photos ADD COLUMN e types.e REFERENCES ops.log; UPDATE insta5.photos SET e = '1'});
	move('--dry-run');
	ok(!-e $canary, 'no code of the owner runs with the rights of the command');
	run_as('mallory', $one, 'ALTER TABLE insta5.photos DROP COLUMN e');
};

my $dir = PostgreSQL::Test::Utils::tempdir_short();
mkdir "$dir/$_" foreach keys %nodes;
my $proxy = Proxy->new(map { $_ => { listen => "$dir/$_/.s.PGSQL.5432",
			upstream => $nodes{$_}->host . '/.s.PGSQL.' . $nodes{$_}->port } } keys %nodes);
my @words = ('move', 'insta5', map { ($_->[0], "host=$dir/$_->[1] port=5432 dbname=postgres") } [ '--from', 'one' ], [ '--to', 'two' ]);

# In the first gap with the pattern mallory exchanges the names of two schemas on that server.
sub exchanged_move
{
	my ($node, $where) = @_;
	run_as('mallory', $node, 'GRANT CREATE, USAGE ON SCHEMA shared TO victim');
	run_as('victim', $node, 'CREATE TABLE shared.photos (id bigint PRIMARY KEY, invoice integer); INSERT INTO shared.photos VALUES (7, 4111)');
	my $is_exchanged;
	my $run = Command::run($proxy, [ $program, @words, '--hold' ], sub {
		my ($server, $gap) = @_;
		return 0 if $is_exchanged || $gap !~ $where;
		run_as('mallory', $node, 'ALTER SCHEMA insta5 RENAME TO own; ALTER SCHEMA shared RENAME TO insta5');
		$is_exchanged = 1;
		return 0; });
	ok($is_exchanged, 'they exchange their names');
	is($run->{status}, 3, 'exit code 3') or diag($run->{out});
	run_as('mallory', $node, 'ALTER SCHEMA insta5 RENAME TO shared; ALTER SCHEMA own RENAME TO insta5');
	return $run->{err};
}

sub abort_move { return is(Command::run($proxy, [ $program, @words, '--abort' ])->{status}, 0, '--abort') }

$_->safe_psql('postgres', 'CREATE SCHEMA shared AUTHORIZATION mallory') foreach $one, $two;

subtest 'two schemas of the source while rows are copied' => sub {
	like(exchanged_move($one, qr/^one: .*COPY insta/), qr/the name of table insta5\.photos led to a table of no shard that moves/, 'the error');
	is($two->safe_psql('postgres', 'SELECT count(*) FROM insta5.photos'), 0, 'no row of another role was copied');
	abort_move();
};

subtest 'two schemas of the target before the indexes are made' => sub {
	$two->safe_psql('postgres', 'GRANT CREATE ON DATABASE postgres TO mallory');    # which a renaming takes
	like(exchanged_move($two, qr/^two: .* FOR SHARE/), qr/a schema of the shards was renamed on \S+ while the rows were copied/, 'the error');
	is($two->safe_psql('postgres', 'SELECT count(*) FROM pg_trigger WHERE tgrelid = $$shared.photos$$::regclass'), 0,
		'nothing was made for the table of another role');
	abort_move();
};

$_->stop foreach $one, $two;
done_testing();
