# ALTER EXTENSION snowflake UPDATE from each earlier version: afterwards the extension is the same as one that was made
# anew, shards of the earlier version work, and get what is new. Through a dump, through pg_upgrade, and with a shard
# that moves from a server with the earlier version to one with this version and back.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program_if_built();
my ($version) =
	slurp_file((`pg_config --sharedir` =~ s/\n//r) . '/extension/snowflake.control') =~ /default_version = '(.*)'/;
my $earlier = '1.0';    # the oldest
my @all_earlier = ('1.0', '1.1', '1.1.1');

my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\n";
my $node = new_server('old', conf => $conf);

# All objects of the extension, each with its text.
my $objects = q{
	SELECT pg_describe_object(d.classid, d.objid, 0),
	       coalesce(pg_get_functiondef(p.oid), pg_get_viewdef(v.oid),
	           (SELECT string_agg(format('%s %s', attname, atttypid::regtype), ', ' ORDER BY attnum)
	            FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)),
	       coalesce(obj_description(d.objid, (SELECT relname FROM pg_class WHERE oid = d.classid)), ''),
	       coalesce(p.proacl, c.relacl, CASE c.relkind WHEN 'S' THEN acldefault('s', c.relowner) END)::text
	FROM pg_depend AS d JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
		AND d.deptype = 'e'
	LEFT JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
	LEFT JOIN pg_type AS t ON d.classid = 'pg_type'::regclass AND t.oid = d.objid
	LEFT JOIN pg_class AS c ON c.oid = CASE d.classid WHEN 'pg_class'::regclass THEN d.objid ELSE t.typrelid END
	LEFT JOIN pg_class AS v ON v.oid = c.oid AND v.relkind = 'v'
	WHERE e.extname = 'snowflake' ORDER BY 1};
# A line for each.
$objects = "SELECT replace(row(o.*)::text, E'\\n', ' ') FROM ($objects) AS o";

sub sql
{
	my ($server, $database, $text) = @_;
	return $server->safe_psql($database, $text);
}

# A shard as an application of the earlier version has it. The number of its rows.
sub make_old
{
	my ($database, $from) = @_;
	sql($node, 'postgres', "CREATE DATABASE $database");
	sql($node, $database, qq{
		CREATE EXTENSION snowflake VERSION '$from';
		SELECT snowflake_create_shard(5, 'insta5');
		CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), caption text);
		CREATE TABLE insta5.likes (id bigint PRIMARY KEY DEFAULT insta5.next_id(), photo bigint REFERENCES insta5.photos)
			PARTITION BY RANGE (id);
		SELECT snowflake_create_partitions('insta5.likes', date_trunc('month', now()), now() + interval '2 months',
			'1 month');
		CREATE TABLE insta5.words (id serial PRIMARY KEY, word text);
		INSERT INTO insta5.words (word) VALUES ('a');
		SELECT snowflake_attach('insta5.words');
		INSERT INTO insta5.photos (caption) SELECT n FROM generate_series(1, 10) AS n;
		INSERT INTO insta5.likes (photo) SELECT id FROM insta5.photos;
		INSERT INTO insta5.words (word) VALUES ('b')});
	return;
}

# What holds for a database that has been updated.
sub is_updated
{
	my ($server, $database, $name) = @_;
	is(sql($server, $database, q{SELECT extversion FROM pg_extension WHERE extname = 'snowflake'}), $version,
		"$name: version $version");
	is(sql($server, $database, 'SELECT count(*) FROM snowflake_check()'), '0', "$name: snowflake_check() finds nothing");
	is( sql($server, $database, q{
			INSERT INTO insta5.photos (caption) VALUES ('new');
			SELECT id = max(id) OVER () FROM insta5.photos ORDER BY caption = 'new' DESC, id DESC LIMIT 1}),
		't', "$name: IDs go on after those that are there");
	is( sql($server, $database, q{SELECT snowflake_settled_id('insta5.photos') = max(id) FROM insta5.photos}),
		't', "$name: a consumer can ask for its table");
	sql($server, $database, q{SELECT snowflake_create_shard(5, 'insta5')});
	is( sql($server, $database, q{SELECT insta5.settled_id() = max(id) FROM insta5.photos}),
		't', "$name: snowflake_create_shard() adds settled_id()");
	return;
}

foreach my $from (@all_earlier)
{
	subtest "in place from $from" => sub {
		make_old('inplace', $from);
		sql($node, 'inplace', 'ALTER EXTENSION snowflake UPDATE');
		my %new = map { ($_ => 1) } split /\n/, sql($node, 'postgres', $objects);
		is(join("\n", grep { !delete $new{$_} } split /\n/, sql($node, 'inplace', $objects)), '',
			'the update leaves nothing that is old');
		is(join("\n", sort keys %new), '', 'and has all that is new');
		is( sql($node, 'inplace', q{SELECT count(*) FROM pg_init_privs WHERE objoid = 'snowflake_id_seq'::regclass}),
			'0', 'no initial privileges remain on its sequence');
		is_updated($node, 'inplace', 'in place');
		sql($node, 'postgres', 'DROP DATABASE inplace');
	};
}

subtest 'in place, by a role that is dropped later' => sub {
	sql($node, 'postgres', 'CREATE ROLE gone LOGIN; CREATE ROLE app LOGIN; CREATE DATABASE of_gone OWNER gone');
	my $gone = $node->connstr('of_gone') . ' user=gone';
	my @sql = ('psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $gone, '-c');
	command_ok([ @sql, qq{CREATE EXTENSION snowflake VERSION '$earlier'; GRANT USAGE ON SEQUENCE snowflake_id_seq TO app} ],
		'it has the extension');
	command_ok([ @sql, 'ALTER EXTENSION snowflake UPDATE' ], 'and updates it');
	command_ok([ @sql, 'SET snowflake.shard = 3; SELECT snowflake_next_id()' ], 'it draws from the sequence');
	sql($node, 'of_gone', 'REASSIGN OWNED BY gone TO CURRENT_USER; DROP OWNED BY gone');
	sql($node, 'postgres', 'ALTER DATABASE of_gone OWNER TO CURRENT_USER; DROP ROLE gone');
	my ($dump) = run_command([ 'pg_dump', '--schema-only', $node->connstr('of_gone') ]);
	is(join("\n", $dump =~ /^((?:GRANT|REVOKE) .*snowflake_id_seq.*)$/mg),
		'GRANT USAGE ON SEQUENCE public.snowflake_id_seq TO app;', 'a dump has the grant to others alone');
	sql($node, 'postgres', 'DROP DATABASE of_gone');
};

subtest 'through a dump' => sub {
	make_old('dumped', $earlier);
	my $file = PostgreSQL::Test::Utils::tempdir . '/dump.sql';
	command_ok([ 'pg_dump', '-f', $file, $node->connstr('dumped') ], 'pg_dump');
	sql($node, 'postgres', 'CREATE DATABASE restored');
	# A dump names no version, so the restored database has the newest.
	command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $file, $node->connstr('restored') ], 'restore');
	is_updated($node, 'restored', 'through a dump');
};

subtest 'through pg_upgrade' => sub {
	make_old('upgraded', $earlier);
	sql($node, 'postgres', 'DROP DATABASE dumped; DROP DATABASE restored');
	$node->stop;
	my $new = PostgreSQL::Test::Cluster->new('new');
	$new->init;
	my ($bindir) = qx(pg_config --bindir) =~ /(.*)/;
	chdir $new->basedir or die "chdir failed: $!";
	command_ok([ 'pg_upgrade', '--no-sync', '-d', $node->data_dir, '-D', $new->data_dir, '-b', $bindir, '-B', $bindir,
			'-s', $new->host, '-p', $node->port, '-P', $new->port ], 'pg_upgrade');
	$new->append_conf('postgresql.conf', $conf);
	$new->start;
	is(sql($new, 'upgraded', q{SELECT extversion FROM pg_extension WHERE extname = 'snowflake'}), $earlier,
		'pg_upgrade keeps the version');
	sql($new, 'upgraded', q{INSERT INTO insta5.photos (caption) VALUES ('before the update')});
	sql($new, 'upgraded', 'ALTER EXTENSION snowflake UPDATE');
	is_updated($new, 'upgraded', 'through pg_upgrade');
	$new->stop;
	$node->start;
};

subtest 'a shard that moves from a server of the earlier version' => sub {
	plan skip_all => 'snowflake-shard was not built' unless defined $program;
	make_old('source', $earlier);
	sql($node, 'postgres', 'CREATE DATABASE target');
	sql($node, 'target', 'CREATE EXTENSION snowflake');
	my @servers = map { $node->connstr($_) } 'source', 'target';
	my @move = ('move', 'insta5', '--from', $servers[0], '--to', $servers[1]);
	my ($status, $out, $err) = run_shard($program, @move, '--reversible');
	is($status, 3, 'is refused');
	my ($update) = $err =~ /extension snowflake has version \Q$earlier\E.*\nHINT:  (ALTER EXTENSION [^;]*;)/;
	sql($node, 'source', $update);
	($status, $out, $err) = run_shard($program, @move, '--reversible');
	is($status, 0, 'after the statement of the hint it moves') or diag($err);
	is(sql($node, 'target', q{SELECT snowflake_settled_id('insta5.photos') > max(id) FROM insta5.photos}), 't',
		'it is open there');
	($status, $out, $err) = run_shard($program, @move, '--undo');
	is($status, 0, 'and back') or diag($err);
	is(sql($node, 'source', q{INSERT INTO insta5.photos (caption) VALUES ('x') RETURNING true}), 't', 'it is open again');
};

$node->stop;
done_testing();
