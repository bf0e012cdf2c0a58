# snowflake_attach() while clients write: no deadlock, no transaction of a client fails, one lock_timeout for all
# tables, and each foreign key is checked once. NOTICEs name publications and snapshots that the rewriting concerns.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $node = new_server('writers', conf => "wal_level = logical\n");
my $folder = PostgreSQL::Test::Utils::tempdir();
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGDATABASE} = 'postgres';

my $tables = q{
	CREATE TABLE parents (id serial PRIMARY KEY, n integer DEFAULT 0);
	CREATE TABLE children (parent_id integer NOT NULL REFERENCES parents, n integer);
	INSERT INTO parents SELECT FROM generate_series(1, 1000)};
$node->safe_psql('postgres', $tables);
my $attach = q{SELECT snowflake_attach('parents', shard => 5)};

# Attaches beside four clients at full rate, each time with a ROLLBACK, so that the next time finds integers again.
sub attach_beside
{
	my ($name, $script) = @_;
	my $file = "$folder/$name";
	append_to_file("$file.sql", "\\set id random(1, 1000)\n$script");
	my $writers = IPC::Run::start(
		[ 'pgbench', '-n', '-c', 4, '-T', $PostgreSQL::Test::Utils::timeout_default, '-l', "--log-prefix=$file",
			'-f', "$file.sql" ], '>', \my $out, '2>', \my $err);
	my $count = sub { $node->safe_psql('postgres', 'SELECT count(*) FROM children') };
	my @failed;
	for my $round (1 .. 4)
	{
		my $before = $count->();
		await('the clients write', sub { $count->() > $before });
		# A try takes at most a quarter of a second, so that this is the time of 20 tries.
		my ($status, undef, $message) = $node->psql('postgres', "SET lock_timeout = '5s'; BEGIN; $attach; ROLLBACK");
		push @failed, $message if $status != 0;
	}
	is(join("\n", @failed), '', "$name: attached each time within 20 tries");
	my $before = $count->();
	await('the clients still write', sub { $count->() > $before });
	$writers->signal('TERM');    # INT is ignored where a shell has started all of this in the background
	$writers->finish;
	# client, number, microseconds or the failure, ...
	my @times = map { (split ' ')[2] } map { split /\n/, slurp_file($_) } glob "$file.[0-9]*";
	my @latencies = sort { $a <=> $b } grep { /^\d+$/ } @times;
	is($err . join(' ', grep { !/^\d+$/ } @times), '', "$name: no transaction of a client failed");
	note(sprintf '%s: the longest of %d transactions took %.3f s', $name, scalar @latencies, $latencies[-1] / 1e6);
	unlike(slurp_file($node->logfile), qr/deadlock detected/, "$name: no deadlock");
	return;
}

subtest 'beside INSERTs into the referring table' => sub {
	attach_beside('insert', "INSERT INTO children VALUES (:id, 1);\n");
};

subtest 'beside transactions that update the parent first' => sub {
	attach_beside('update', <<'SQL');
BEGIN;
UPDATE parents SET n = n + 1 WHERE id = :id;
INSERT INTO children VALUES (:id, 1);
COMMIT;
SQL
};

# A transaction that holds locks. Its process.
sub hold
{
	my ($sql) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 1);
	$session->query_safe($sql);
	return ($session, $session->query_safe('SELECT pg_backend_pid()'));
}

subtest 'lock_timeout is the time of all tables together' => sub {
	my ($holder, $pid) = hold('BEGIN; UPDATE parents SET n = 0 WHERE id = 1');
	$node->psql('postgres', "SET lock_timeout = '400ms'; $attach", stderr => \my $error);
	like($error, qr/ERROR:  column id of table public\.parents is not attached: .* not free within lock_timeout \(400ms\)
DETAIL:  Tries: [2-9]\. Locks are held on
table public\.children: free now
table public\.parents: process $pid of role \S+
/, 'the error names the tables, the tries, and the process and role that hold a lock');
	$holder->quit;
	is($node->safe_psql('postgres', "BEGIN; SET LOCAL lock_timeout = '400ms'; $attach; SHOW lock_timeout; ROLLBACK"),
		"\n400ms", 'after a call that succeeds the setting is as it was');
};

subtest 'readers of the tables are named' => sub {
	$node->safe_psql('postgres', 'CREATE PUBLICATION of_children FOR TABLE children');
	my ($reader, $pid) = hold('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
	my (undef, undef, $notices) = $node->psql('postgres', "BEGIN; $attach; ROLLBACK");
	like($notices, qr/NOTICE:  a subscription whose columns are integer stops at the first ID
DETAIL:  publication of_children has table public\.children
HINT:  On each subscriber, before an ID is inserted here:
ALTER TABLE public\.children ALTER COLUMN parent_id TYPE bigint;\n/, 'a publication');
	like($notices, qr/NOTICE:  transactions with older snapshots will .*\nDETAIL:  process $pid of role \S+, since 20/,
		'a transaction with an older snapshot');
	$reader->query_safe('COMMIT');
	(undef, undef, $notices) = $node->psql('postgres', "BEGIN; $attach; ROLLBACK");
	unlike($notices, qr/snapshots/, 'none after it has ended');
	$reader->quit;
	$node->safe_psql('postgres', 'DROP PUBLICATION of_children');
};

subtest 'each foreign key is checked once, and not at all with validate => false' => sub {
	$node->safe_psql('postgres', q{
		CREATE TABLE "More" (parent_id integer REFERENCES parents, "other %s" integer CONSTRAINT "Key" REFERENCES parents)});
	my $checked = sub {
		my ($call) = @_;
		my (undef, undef, $messages) =
			$node->psql('postgres', "BEGIN; SET LOCAL client_min_messages = debug1; $call; ROLLBACK");
		return scalar(() = $messages =~ /validating foreign key constraint/g);
	};
	is($checked->($attach), 3, 'three keys are checked once each');
	my $deferring = $attach =~ s/\)$/, validate => false)/r;
	is($checked->($deferring), 0, 'none with validate => false');
	my (undef, undef, $notices) = $node->psql('postgres', $deferring);
	my ($statements) = $notices =~ /NOTICE:  foreign keys are checked for new rows only, until they are validated
HINT:  After the commit, while clients read and write:\n((?:ALTER TABLE .*;\n)+)/ or diag($notices);
	my $unchecked = q{SELECT string_agg(conname, ' ' ORDER BY conname) FROM pg_constraint WHERE NOT convalidated};
	is($node->safe_psql('postgres', $unchecked), 'Key More_parent_id_fkey children_parent_id_fkey', 'they are NOT VALID');
	$node->safe_psql('postgres', $statements);
	is($node->safe_psql('postgres', $unchecked), '', 'the statements of the NOTICE validate them');
};

$node->stop;
done_testing();
