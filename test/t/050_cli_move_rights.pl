# snowflake-shard move by a role that is no superuser: --dry-run names each right that is missing, with the statement
# that grants it. When these were run, and no others, the shard moves there, from 16 on also back, while clients write.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use ShardTest;
use ShardWriters;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
seed_random();

sub set_hba
{
	my ($node, $lines) = @_;
	unlink $node->data_dir . '/pg_hba.conf';
	$node->append_conf('pg_hba.conf', "$lines\n");
	$node->reload;
	return;
}

# Two servers, and a shard whose objects are all of role app.
my @nodes =
	map {
		new_server($_,
			conf => "wal_level = logical\nmax_wal_senders = 10\nmax_worker_processes = "
			. "16\nmax_logical_replication_workers = 8\n") } qw(one two);
make_written_shard(@nodes);
# The hint for an object of a superuser is no GRANT, so give them to the owner of the others.
$nodes[0]->safe_psql('postgres', q{
	DO $$
	DECLARE statement text;
	BEGIN
		FOR statement IN
			SELECT format('ALTER TABLE %s OWNER TO app', oid::regclass) FROM pg_class
			WHERE relnamespace = 'insta5'::regnamespace AND relkind IN ('r', 'p', 'm', 'v', 'S')
				AND relowner = current_user::regrole
			AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'i' AND relkind = 'S')
			UNION ALL
			SELECT format('ALTER STATISTICS insta5.%I OWNER TO app', stxname) FROM pg_statistic_ext
				WHERE stxnamespace = 'insta5'::regnamespace
			UNION ALL
			SELECT format('ALTER ROUTINE %s OWNER TO app', oid::regprocedure) FROM pg_proc
				WHERE pronamespace = 'insta5'::regnamespace
			UNION ALL
			SELECT format('ALTER TYPE %s OWNER TO app', oid::regtype) FROM pg_type
			WHERE typnamespace = 'insta5'::regnamespace AND typelem = 0 AND typtype <> 'm'
			AND NOT EXISTS (SELECT FROM pg_class WHERE pg_class.oid = typrelid AND relkind <> 'c')
		LOOP
			EXECUTE statement;
		END LOOP;
	END $$});
my %mover;
foreach my $node (@nodes)
{
	$node->safe_psql('postgres', q{CREATE ROLE "the mover" LOGIN PASSWORD 'secret'});
	set_hba($node, qq{local all "the mover" scram-sha-256\nlocal all all trust});
	$mover{ $node->name } = $node->connstr('postgres') . q{ user='the mover' password=secret};
}
# Before PostgreSQL 16 only a superuser may subscribe.
my $has_subscribers = $nodes[0]->pg_version >= 16;
# A table of another role, which may create in the schema. The mover is a member of the owners, but does not inherit.
if ($has_subscribers)
{
	$_->safe_psql('postgres', 'CREATE ROLE guest; GRANT app TO "the mover" WITH INHERIT FALSE') foreach @nodes;
	$nodes[0]->safe_psql('postgres', q{GRANT USAGE, CREATE ON SCHEMA insta5 TO guest;
		SET ROLE guest; CREATE TABLE insta5.of_guest (id bigint PRIMARY KEY); INSERT INTO insta5.of_guest VALUES (7)});
}
my @way = ('insta5', '--from', $mover{one}, '--to', $has_subscribers ? $mover{two} : $nodes[1]->connstr('postgres'));
push @way, '--reversible' if $has_subscribers;

# A superuser of the server runs the statements that a dry run prints as hints. Returns how many there are.
sub grant_what_is_missing
{
	my (undef, $rows, $err) = shard_json($program, 'move', @way, '--dry-run');
	my @obstacles = grep { !/: pg_dump failed: / } map { $_->{obstacle} } @$rows;
	is(scalar(grep { /HINT:  GRANT (app|guest) TO (?!.* WITH INHERIT TRUE)/ } @obstacles), 0, 'a member inherits then')
		if $has_subscribers;
	foreach my $obstacle (@obstacles)
	{
		my ($port, $statement) = $obstacle =~ /^\S+:(\d+)\/postgres: .*\n +HINT: +((?:GRANT|ALTER ROLE) .*;)$/;
		fail($obstacle), next unless defined $statement;
		note($statement);
		$_->safe_psql('postgres', $statement) foreach grep { $_->port == $port } @nodes;
	}
	return scalar @obstacles;
}

subtest 'each right that is missing is an obstacle with its GRANT' => sub {
	is(grant_what_is_missing(), $has_subscribers ? 16 : 3, 'each right that is missing is an obstacle');
	if ($has_subscribers)
	{
		my (undef, $rows) = shard_json($program, 'move', @way, '--dry-run');
		like(join("\n", map { $_->{obstacle} } @$rows),
			qr/^\S+ TABLE of_guest: must be able to SET ROLE "guest"\n +HINT:  Give the object .*: GRANT "guest" TO "app";$/,
			'so is a table of another role, to which the owner of the schema cannot give it');
		$_->safe_psql('postgres', 'GRANT guest TO app') foreach @nodes;
		$nodes[0]->safe_psql('postgres', 'REVOKE CREATE ON SCHEMA insta5 FROM guest');
		(undef, $rows) = shard_json($program, 'move', @way, '--dry-run');
		like(join("\n", map { $_->{obstacle} } @$rows),
			qr/^\S+ TABLE of_guest: permission denied for schema insta5\n +HINT:  GRANT USAGE, CREATE ON SCHEMA insta5 TO \.{3}; on the source[^\n]*$/,
			'so is an owner that may not create in the schema');
		$nodes[0]->safe_psql('postgres', 'GRANT CREATE ON SCHEMA insta5 TO guest');
		set_hba($nodes[0], 'local all all trust');
		(undef, $rows) = shard_json($program, 'move', @way, '--dry-run');
		like(join("\n", map { $_->{obstacle} } @$rows),
			qr/: password is required\n +HINT:  The other server must ask for the password: in its pg_hba\.conf/,
			'so is a server that asks for no password');
		set_hba($nodes[0], qq{local all "the mover" scram-sha-256\nlocal all all trust});
	}
	is(grant_what_is_missing(), 0, 'no other one is');
	my $rights = q{SELECT string_agg(r, ' ' ORDER BY r) FROM (
		SELECT CASE WHEN rolsuper THEN 'SUPERUSER' END FROM pg_roles WHERE rolname = 'the mover'
		UNION ALL SELECT CASE WHEN rolreplication THEN 'REPLICATION' END FROM pg_roles WHERE rolname = 'the mover'
		UNION ALL SELECT roleid::regrole::text FROM pg_auth_members WHERE member = '"the mover"'::regrole) AS rights (r)};
	note($_->name . ': ' . $_->safe_psql('postgres', $rights)) foreach @nodes;
};

subtest 'the shard moves, and comes back, with these rights alone' => sub {
	my $writers = start_writers(2, 'insta5', [qw(log part)], map { $_->connstr('postgres') } @nodes);
	my $end = $has_subscribers ? 'moved with reverse replication' : 'moved';
	my ($status, $out, $err) = run_shard($program, 'move', @way);
	is("$status $out", "0 1 shard $end: 5\n", 'the shard has moved') or diag($err);
	if ($has_subscribers)
	{
		my $verify;
		($status, $out, $verify) = run_shard($program, 'verify', '--rows', @mover{qw(one two)});
		is("$status $out", "0 1 shard on 2 servers, 0 findings\n", 'verify --rows') or diag($verify);
		($status, $out, $err) = run_shard($program, 'move', @way[ 0 .. 4 ], '--undo');
		is("$status $out", "0 1 shard undone: 5\n", 'and back') or diag($err);
		@way = ('insta5', '--from', $mover{two}, '--to', $mover{one});
		@nodes = reverse @nodes;
	}
	my @journal = stop_writers($writers);
	is(join(' ', lost_writes($nodes[1], 'postgres', 'insta5', @journal)), '', 'no acknowledged write is lost');
	is((run_shard($program, 'move', @way[ 0 .. 4 ], '--complete'))[0], 0, '--complete');
	is((run_shard($program, 'verify', @nodes))[0], 0, 'verify finds nothing');
	is($nodes[1]->safe_psql('postgres',
		"SELECT string_agg(DISTINCT pg_get_userbyid(relowner), ' ') FROM pg_class WHERE relnamespace = "
		. "'insta5'::regnamespace AND relkind <> 'c'"),
		$has_subscribers ? 'app guest' : 'app', 'the owners are those of the source');
};

done_testing();
