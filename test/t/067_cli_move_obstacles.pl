# snowflake-shard move looks for the needs of all its steps before its first change, and for those that can be lost
# during the copy once more before the fence: programs, rights, slots and workers of a whole plan, addresses.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use File::Copy;
use JSON::PP;
use MoveTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

our $program = shard_program();
my $conf = "wal_level = logical\nwal_retrieve_retry_interval = 100ms\nmax_worker_processes = 20\n"
	. "max_wal_senders = 10\n";
my ($one, $two) = (
	new_server('one', conf => $conf . "max_logical_replication_workers = 2\n"),
	new_server('two', conf => $conf . "max_replication_slots = 2\n"));
my @nodes = ($one, $two);
$_->safe_psql('postgres', 'CREATE ROLE app LOGIN; CREATE ROLE mover LOGIN REPLICATION; CREATE DATABASE other') foreach @nodes;
foreach my $shard (5 .. 7)
{
	$one->safe_psql('postgres', qq{
		SELECT snowflake_create_shard($shard, 'insta$shard');
		CREATE TABLE insta$shard.log (id bigint PRIMARY KEY DEFAULT insta$shard.next_id(), line text)});
}

# The obstacles of a dry run, without the hints; "host:port/database" as the name of the node.
sub obstacles
{
	my (@arguments) = @_;
	my ($status, $rows) = shard_json($program, 'move', @arguments, '--dry-run');
	my @found = map { $_->{obstacle} =~ s/\n.*//sr } @$rows;
	foreach my $node (@nodes) { s/\S+:${\$node->port}\//$node->name . '\/'/ge foreach @found }
	is($status, @found ? 1 : 0, 'the exit code');
	return join "\n", sort @found;
}

# A program that is of an older version than the servers.
sub make_program
{
	my ($folder, $name, $version) = @_;
	append_to_file("$folder/$name", "#!/bin/sh\necho '$name (PostgreSQL) $version (Debian $version-1)'\n");
	chmod 0755, "$folder/$name";
	return;
}

subtest 'pg_dump and pg_restore are of the version of the servers' => sub {
	my ($bindir) = qx(pg_config --bindir) =~ /(.*)/;
	my ($version) = $one->pg_version =~ /^(\d+)/;
	my $old = PostgreSQL::Test::Utils::tempdir();
	copy($program, "$old/snowflake-shard");
	chmod 0755, "$old/snowflake-shard";
	make_program($old, 'pg_dump', $version - 1 . '.9');
	symlink "$bindir/pg_restore", "$old/pg_restore";
	local $program = "$old/snowflake-shard";
	local $ENV{PATH} = $old;
	my $problem = "/postgres: $old/pg_dump is of version ${\($version - 1)}.9, and the server is of version $version";
	is(obstacles('insta5', '--from', $one, '--to', $two), "one$problem", 'of the source');
	is(obstacles('insta5', '--from', $one, '--to', $two, '--reversible'), "one$problem\ntwo$problem",
		'with reverse replication that of the target, too');
	like((run_shard($program, 'diff', '--template', 'insta5', $one))[2],
		qr/^snowflake-shard: \S+$problem\nHINT:  .*: package postgresql-client-$version, PATH=/,
		'another verb tells it as an error, with the package');
	$ENV{PATH} = "$old:$bindir";
	is(obstacles('insta5', '--from', $one, '--to', $two, '--reversible'), '', 'one in PATH that is new enough is taken');
	my $later = PostgreSQL::Test::Utils::tempdir();
	make_program($later, $_, '99.1') foreach qw(pg_dump pg_restore);
	$ENV{PATH} = "$later:$bindir";
	is(obstacles('insta5', '--from', $one, '--to', $two), '', "and one of the server's own release before a later one");
	unlink "$old/pg_restore";
	make_program($old, 'pg_restore', '9.6.1');
	$ENV{PATH} = '/nonexistent';
	unlink "$old/pg_dump";
	like(obstacles('insta5', '--from', $one, '--to', $two),
		qr{^one/postgres: \S+/pg_restore is of version 9.6.1, .*\none/postgres: no pg_dump runs here, }, 'both programs');
};

# The apply worker has the settings of its role and database.
subtest 'settings by which the worker would read other values' => sub {
	my @move = ('insta5', '--from', $one, '--to', $two);
	my $give_hints = sub {
		foreach my $row (@{ (shard_json($program, 'move', @_, '--dry-run'))[1] })
		{
			my ($port, $statement) = $row->{obstacle} =~ /^\S+:(\d+)\/postgres: .*\n +HINT: +(ALTER ROLE .*;)$/ or next;
			$_->safe_psql('postgres', $statement) foreach grep { $_->port == $port } @nodes;
		}
	};
	$_->safe_psql('postgres', 'ALTER DATABASE postgres SET array_nulls = off') foreach @nodes;
	my $problem = qr/array_nulls is off for role \S+: its apply worker would make the text NULL of a NULL in an array/;
	like(obstacles(@move), qr{^two/postgres: $problem$}, 'array_nulls of the target');
	like(obstacles(@move, '--reversible'), qr{^one/postgres: $problem\ntwo/postgres: $problem$}, 'and of the source');
	$give_hints->(@move, '--reversible');
	is(obstacles(@move, '--reversible'), '', 'the statements of the hints are enough');
	$two->safe_psql('postgres', q{ALTER DATABASE postgres SET lc_monetary = 'POSIX'});
	is(obstacles(@move), '', 'lc_monetary without a column of money');
	$one->safe_psql('postgres', q{
		CREATE DOMAIN insta5.price AS money; CREATE TYPE insta5.prices AS (prices insta5.price[]);
		ALTER TABLE insta5.log ADD p insta5.prices});
	$problem = qr/lc_monetary is \S+ for role \S+, and \S+ on the other server: .* other amounts in column insta5\.log\.p/;
	like(obstacles(@move), qr{^two/postgres: $problem$}, 'with one');
	like(obstacles(@move, '--reversible'), qr{^one/postgres: $problem\ntwo/postgres: $problem$}, 'in both directions');
	$give_hints->(@move);
	is(obstacles(@move, '--reversible'), '', 'one statement is enough');
	$_->safe_psql('postgres', 'ALTER DATABASE postgres RESET ALL; ALTER ROLE CURRENT_USER IN DATABASE postgres RESET ALL')
		foreach @nodes;
	$one->safe_psql('postgres', 'ALTER TABLE insta5.log DROP p; DROP TYPE insta5.prices; DROP DOMAIN insta5.price');
};

# The setting is there from 15.19, 16.15, 17.11 and 18.6 on.
subtest 'a server that does not let slots use pgoutput' => sub {
	my $setting = 'output_plugin_libraries';
	plan skip_all => "PostgreSQL ${\$one->pg_version} has no $setting"
		if $one->safe_psql('postgres', "SELECT current_setting('$setting', true) IS NULL") eq 't';
	my @move = ('insta5', '--from', $one, '--to', $two, '--reversible');
	my $set = sub {
		my ($node, $statement) = @_;
		$node->safe_psql('postgres', $_) foreach $statement, 'SELECT pg_reload_conf()';
	};
	my $await = sub {
		my ($node, $value) = @_;
		await('the setting is loaded', sub { $node->safe_psql('postgres', "SHOW $setting") eq $value });
	};
	# A list in one pair of quotes is one name.
	$set->($one, "ALTER SYSTEM SET $setting = 'pgoutput, test_decoding'");
	$set->($two, "ALTER DATABASE postgres SET $setting = test_decoding, 'Odd \"name'");
	$await->($one, '"pgoutput, test_decoding"');
	my $problem = "does not name pgoutput: no slot can use it";
	is(obstacles(@move), qq(one/postgres: $setting = '"pgoutput, test_decoding"' $problem\n)
		. qq(two/postgres: $setting = 'test_decoding, "Odd ""name"' $problem), 'both are told');
	foreach my $row (@{ (shard_json($program, 'move', @move, '--dry-run'))[1] })
	{
		my ($port, $statement) = $row->{obstacle} =~ /^\S+:(\d+)\/postgres: .*\n +HINT: +(ALTER [^;]*;)/;
		$set->($_, $statement) foreach grep { $_->port == $port } @nodes;
	}
	$await->($one, '"pgoutput, test_decoding", pgoutput');
	is(obstacles(@move), '', 'the statements of the hints are enough');
	is($two->safe_psql('postgres', "SHOW $setting"), 'test_decoding, "Odd ""name", pgoutput', 'and keep the other names');
	$set->($one, "ALTER SYSTEM RESET $setting");
	$set->($two, "ALTER DATABASE postgres RESET $setting");
	$await->($one, 'pgoutput, test_decoding');
};

subtest 'a query of the table of another role is for that role' => sub {
	my $give = sub { return join ';', map { "ALTER $_ OWNER TO $_[0]" } 'SCHEMA insta5', 'TABLE insta5.log', 'SEQUENCE insta5.table_id_seq',
		'FUNCTION insta5.next_id()', 'FUNCTION insta5.settled_id()' };
	$one->safe_psql('postgres', $give->('app') . q{;
		CREATE TABLE insta5.a (id bigint PRIMARY KEY); CREATE TABLE insta5.b (a bigint PRIMARY KEY REFERENCES insta5.a);
		ALTER TABLE insta5.a OWNER TO app; ALTER TABLE insta5.b OWNER TO app;
		SET session_replication_role = replica; INSERT INTO insta5.b VALUES (7)});
	my (undef, $rows) = shard_json($program, 'move', 'insta5', '--from', $one, '--to', $two, '--dry-run');
	like($rows->[0]{obstacle}, qr/violate its foreign key.*HINT:  as role app, because code of that role can run: SELECT /s,
		'the rows that violate a foreign key') or diag(explain($rows));
	$one->safe_psql('postgres', 'DROP TABLE insta5.b, insta5.a; ' . $give->('CURRENT_USER'));
};

subtest 'extensions do not move with a shard' => sub {
	my @move = ('insta5', '--from', $one, '--to', $two);
	my $is = 'and is of the whole database';
	$one->safe_psql('postgres', q{
		CREATE EXTENSION pg_trgm SCHEMA insta5; CREATE EXTENSION "uuid-ossp" SCHEMA insta5; CREATE EXTENSION citext SCHEMA insta5;
		ALTER EXTENSION pg_trgm ADD TABLE insta5.log});
	is(obstacles(@move), join("\n", map { "one/postgres: extension $_ is installed in schema insta5, $is" } '"uuid-ossp"', 'citext', 'pg_trgm'),
		'extensions in the schema of the shard');
	# Of an extension elsewhere, which drops it as well.
	$one->safe_psql('postgres', q{
		ALTER EXTENSION pg_trgm DROP TABLE insta5.log;
		CREATE EXTENSION btree_gist; CREATE FUNCTION insta5."Of It"(integer) RETURNS integer LANGUAGE sql RETURN $1;
		CREATE TYPE insta5.of_it AS (n integer);
		ALTER EXTENSION btree_gist ADD FUNCTION insta5."Of It"; ALTER EXTENSION btree_gist ADD TYPE insta5.of_it});
	my $give_hints = sub {
		foreach (map { $_->{obstacle} } @{ (shard_json($program, 'move', @move, '--dry-run'))[1] })
		{
			$one->safe_psql('postgres', $1) if /HINT:  (ALTER EXTENSION [^;]*;)/;
		}
	};
	like(obstacles(@move), qr{^one/postgres: function insta5\."Of It"\(integer\) and 1 more belongs to extension btree_gist, which is of the whole database$}m,
		'an object of an extension that is installed elsewhere');
	$give_hints->();
	is(obstacles(@move), q{one/postgres: type insta5.of_it belongs to extension btree_gist, which is of the whole database},
		'the statements of the hints move them, or take the object out');
	$give_hints->();
	is(obstacles(@move), '', 'until none is left');
	is($one->safe_psql('postgres', q{SELECT string_agg(extname || ' ' || extnamespace::regnamespace, ', ' ORDER BY extname COLLATE "C")
		FROM pg_extension WHERE extname ~ 'trgm|uuid|citext|gist'}), 'btree_gist public, citext public, pg_trgm public, uuid-ossp public',
		'all extensions are there');
	# An object of an extension elsewhere that needs the shard takes the extension along.
	$one->safe_psql('postgres', 'CREATE VIEW public.report AS TABLE insta5.log; ALTER EXTENSION btree_gist ADD VIEW public.report');
	like(obstacles(@move), qr/view (public\.)?report needs table insta5\.log/, 'a view of an extension');
	$one->safe_psql('postgres', q{ALTER EXTENSION btree_gist DROP VIEW public.report; DROP VIEW public.report;
		DROP EXTENSION btree_gist, pg_trgm, "uuid-ossp", citext; DROP FUNCTION insta5."Of It"; DROP TYPE insta5.of_it});
};

# Each shard is a set of its own.
my @plan = ('--shards', '5-7', '--from', $one, '--to', $two, '--together', 1);

subtest 'slots and workers are counted for a whole plan' => sub {
	is(obstacles('insta5', '--from', $one, '--to', $two, '--reversible'), '', 'one move with reverse replication');
	is(obstacles(@plan, '--jobs', 3), '', 'three sets without: a server is in one of them at a time');
	my $takes = 'are in use: reverse replication of 3 sets takes 3 until --complete';
	is(obstacles(@plan, '--reversible'),
		"one/postgres: max_logical_replication_workers = 2, and 0 $takes\n"
		. "two/postgres: max_replication_slots = 2, and 0 $takes",
		'three with reverse replication each');
	is(obstacles('--shards', '5-7', '--from', $one, '--to', $two, '--reversible'), '', 'one set with it');
	my $two_databases = PostgreSQL::Test::Utils::tempdir() . '/plan.json';
	$one->safe_psql('other', q{CREATE EXTENSION snowflake; SELECT snowflake_create_shard(8, 'insta8')});
	$two->safe_psql('other', 'CREATE EXTENSION snowflake');
	append_to_file(
		$two_databases,
		encode_json(
			[
				map { { shard => $_->[0], schema => "insta$_->[0]", from => $one->connstr($_->[1]), to => $two->connstr($_->[1]) } }
					[ 5, 'postgres' ], [ 8, 'other' ]
			]));
	is(obstacles('--plan', $two_databases), '', 'databases of a cluster, one after the other');
	$two->safe_psql('postgres', q{SELECT pg_replication_origin_create('of another')});
	is(obstacles('--plan', $two_databases), '', 'and so beside another subscription');
	is(obstacles('--plan', $two_databases, '--jobs', 2),
		"two/other: max_replication_slots = 2, and 1 are in use: 2 moves at the same time take 2", 'but not both at once')
		if $one->pg_version < 18;
	$two->safe_psql('postgres', q{SELECT pg_replication_origin_drop('of another')});
};

subtest 'the statements of the hints are enough' => sub {
	my (undef, $rows) = shard_json($program, 'move', @plan, '--reversible', '--dry-run');
	foreach (map { $_->{obstacle} } @$rows)
	{
		my ($port, $statement) = /^\S+:(\d+)\/postgres: .*\n +HINT: +(ALTER SYSTEM .*;) and restart the server$/;
		foreach my $node (grep { $_->port == $port } @nodes)
		{
			$node->safe_psql('postgres', $statement);
			$node->restart;
		}
	}
	my ($status, $out, $err) =
		run_shard($program, 'move', '--shards', '6,7', '--from', $one, '--to', $two, '--together', 1, '--reversible');
	is($status, 0, 'two sets move with reverse replication') or diag($err);
	is($two->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_slots WHERE active'), 2, 'which follow');
	is(obstacles(@plan, '--reversible'), '', 'a plan that goes on counts the rest');
};

subtest 'reverse replication of an undo is counted before the first' => sub {
	my @undo = ('--shards', '6,7', '--from', $one, '--to', $two, '--undo', '--reversible');
	$two->safe_psql('postgres', 'ALTER SYSTEM SET max_logical_replication_workers = 1');
	$two->restart;
	my ($status, $rows) = shard_json($program, 'move', @undo);
	is($status, 1, 'the exit code');
	like($rows->[0]{obstacle},
		qr/: max_logical_replication_workers = 1, and 0 are in use: reverse replication of 2 sets takes 2 /,
		'of two sets');
	(undef, $rows) = shard_json($program, 'map', $two);
	is(join(' ', map { $_->{shard} } @$rows), '6 7', 'both shards are where they were');
	$two->safe_psql('postgres', 'ALTER SYSTEM RESET max_logical_replication_workers');
	$two->restart;
};

subtest 'an error before there is a record' => sub {
	my @move = ('insta5', '--from', $one, '--to', $two);
	$one->safe_psql('postgres', q{CREATE FUNCTION public.deadlock() RETURNS event_trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE 'deadlock detected' USING ERRCODE = '40P01'; END $$});
	foreach my $tag ('CREATE SCHEMA', 'CREATE PUBLICATION')
	{
		$one->safe_psql('postgres', "CREATE EVENT TRIGGER deadlock ON ddl_command_end WHEN TAG IN ('$tag') EXECUTE FUNCTION public.deadlock()");
		my ($status, undef, $err) = run_shard($program, 'move', @move);
		like("$status $err", qr/^3 .*deadlock detected.*\nHINT:  Nothing has begun, or all has been ended: snowflake-shard move insta5 --from '.*' --to '.*', with the options of the move, begins one\.$/s,
			"$tag: the hint begins the move");
		unlike($err, qr/--resume|--abort/, 'and names no verb that needs a record');
		$one->safe_psql('postgres', 'DROP EVENT TRIGGER deadlock');
	}
	is(obstacles(@move), '', 'nothing is left');
	$one->safe_psql('postgres', 'DROP FUNCTION public.deadlock');
};

subtest 'a wrong address is found before the fence' => sub {
	is_refused([ $one, $two, '--source', $two->connstr('other') ],
		qr/from \S+, the connection string of the source leads to a server that is not the source/, '--source');
	unlike($move_error, qr/source: fence/, 'before the fence');
	is_refused([ $one, $two, '--resume', '--reversible', '--target', $one->connstr('other') ],
		qr/from \S+, the connection string of the target leads to a server that is not the target/,
		'--target, when --reversible comes with --resume');
	unlike($move_error, qr/source: fence/, 'before the fence');
	$one->safe_psql('postgres', q{INSERT INTO insta5.log (line) VALUES ('open')});
	moves([ $one, $two, '--resume' ], 'moved with reverse replication', 'the right addresses');
};

subtest 'an undo by a pg_dump that writes the same definition in another way' => sub {
	my ($bindir) = qx(pg_config --bindir) =~ /(.*)/;
	my $other = PostgreSQL::Test::Utils::tempdir();
	copy($program, "$other/snowflake-shard");
	# The text of a definition is that of pg_restore.
	append_to_file("$other/pg_restore", qq{#!/bin/sh\n"$bindir/pg_restore" "\$\@" | sed 's/id bigint/id int8/'\n});
	chmod 0755, "$other/snowflake-shard", "$other/pg_restore";
	my $undo = sub {
		my ($status, $out, $err) =
			run_shard("$other/snowflake-shard", 'move', 'insta5', '--from', $one, '--to', $two, '--undo');
		return "$status $out$err";
	};
	$two->safe_psql('postgres', 'ALTER TABLE insta5.log ADD COLUMN added integer');
	like($undo->(), qr/^3 .*the definition has changed since it was copied.*added integer/s, 'a change')
		foreach 1, 2;
	$two->safe_psql('postgres', 'ALTER TABLE insta5.log DROP COLUMN added');
	like($undo->(), qr/^3 .*\n\+.*id int8/s, 'a change that was taken back, and another pg_dump');
	moves([ $one, $two, '--undo' ], 'undone', 'by the same pg_dump');
	moves([ $two, $one, '--complete' ], 'dropped', 'without the other copy');
	moves([ $one, $two, '--reversible' ], 'moved with reverse replication', 'there again');
	is($undo->() =~ s/\n.*//sr, '0 1 shard undone: 5', 'no change, and another pg_dump');
	moves([ $two, $one, '--complete' ], 'dropped', 'without the other copy');
};

# As pg_dump 18 does for a server of 15.20, which sets the option in each column. pg_restore prints what it has dumped.
subtest 'a pg_dump of another release, which writes an option that the server keeps for itself' => sub {
	my ($bindir) = qx(pg_config --bindir) =~ /(.*)/;
	my $folder = PostgreSQL::Test::Utils::tempdir();
	copy($program, "$folder/snowflake-shard");
	symlink "$bindir/pg_dump", "$folder/pg_dump";
	append_to_file("$folder/pg_restore",
		qq{#!/bin/sh\nexec "$bindir/pg_restore" "\$\@" | sed -E 's/^(ALTER TABLE (\\S+) OWNER TO .*)/ALTER TABLE ONLY \\2 ALTER COLUMN id SET (pg_attver=1);\\n\\1/'\n});
	chmod 0755, "$folder/snowflake-shard", "$folder/pg_restore";
	my $problem = qr{\S+: $folder/pg_dump of version \S+ writes the option pg_attver, which this server keeps for itself in each column};
	my ($version) = qx(pg_config --version) =~ /(\d+)/;
	foreach ([ 'move', 'insta5', '--from', $one, '--to', $two, '--dry-run' ], [ 'diff', $one, '--template', 'insta5' ])
	{
		my ($status, $out, $err) = run_shard("$folder/snowflake-shard", @$_);
		like("$out$err", qr{$problem\n *HINT:  Put the folder of a pg_dump of version $version into PATH\.}, "$_->[0] says so");
		isnt($status, 0, 'with an exit code');
	}
};

subtest 'a pg_dump that fails when the target is open' => sub {
	my ($bindir) = qx(pg_config --bindir) =~ /(.*)/;
	my $folder = PostgreSQL::Test::Utils::tempdir();
	copy($program, "$folder/snowflake-shard");
	append_to_file("$folder/pg_dump", qq{#!/bin/sh\n[ "\$1" != --version ] && [ -e "$folder/fails" ] && exit 1\n}
		. qq{exec "$bindir/pg_dump" "\$\@"\n});
	chmod 0755, "$folder/snowflake-shard", "$folder/pg_dump";
	my $go = sub {
		my ($status, $out, $err) =
			run_shard("$folder/snowflake-shard", 'move', 'insta5', '--from', $one, '--to', $two, '--reversible', @_);
		return "$status $out$err";
	};
	my @fails = ('--switch-command', "touch $folder/fails");    # it runs when the target is open
	like($go->(@fails), qr/^3 .*pg_dump failed.*--resume/s, 'is an error');
	unlink "$folder/fails";
	like($go->('--resume', '--switch-command', 'true'), qr/^0 1 shard moved with reverse replication: 5/,
		'and --resume goes on');
	moves([ $one, $two, '--undo', '--switch-command', 'true' ], 'undone', '--undo');
	moves([ $two, $one, '--complete' ], 'dropped', 'without the other copy');
	$fails[1] .= "; $bindir/psql -qXd '" . $two->connstr('postgres') . "' -c 'CREATE TABLE insta5.theirs ()'";
	like($go->(@fails), qr/^1 .*reverse replication is not possible: the definition of the shard has been changed.*HINT:  Before a move back: .* --complete drops the closed copy/s,
		'on an object that was made since: the move ends without reverse replication');
	moves([ $one, $two, '--complete' ], 'dropped', 'the old rows');
	$two->safe_psql('postgres', 'DROP TABLE insta5.theirs');
	moves([ $two, $one ], 'moved', 'back to the first server');
	moves([ $two, $one, '--complete' ], 'dropped', 'without the other copy');
};

subtest 'what reverse replication needs is looked for again before the fence' => sub {
	is_refused([ $one, $two, '--source', $two->connstr('other') ], qr/is not the source/, 'a move has begun');
	$one->append_conf('postgresql.conf', 'max_logical_replication_workers = 2');
	$one->safe_psql('postgres', 'ALTER SYSTEM RESET max_logical_replication_workers');
	$one->restart;
	is_refused([ $one, $two, '--resume', '--reversible' ],
		qr/max_logical_replication_workers = 2, and 2 are in use: reverse replication takes 1/, 'a worker');
	unlike($move_error, qr/source: fence/, 'before the fence');
	moves([ $one, $two, '--abort' ], 'aborted', 'the shard stays');
};

subtest 'the rights of --complete' => sub {
	$one->safe_psql('postgres', q{
		ALTER TABLE insta5.log OWNER TO app; ALTER SEQUENCE insta5.table_id_seq OWNER TO app;
		ALTER FUNCTION insta5.next_id() OWNER TO app; GRANT CREATE ON DATABASE postgres TO mover;
		GRANT app TO mover; CREATE ROLE schema_owner; GRANT USAGE ON SCHEMA insta5 TO PUBLIC;
		ALTER SCHEMA insta5 OWNER TO schema_owner});
	$two->safe_psql('postgres', 'CREATE ROLE schema_owner');
	like(obstacles('insta5', '--from', $one->connstr('postgres') . ' user=mover', '--to', $two),
		qr{^one/postgres: role mover is no member of role schema_owner, which owns schema insta5$}m,
		'the owner of the schema');
};

$_->stop foreach @nodes;
done_testing();
