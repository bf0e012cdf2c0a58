# snowflake-shard global add by a role that is no superuser: each right that is missing is an obstacle with the
# statement that grants it, all of them at once. With these rights the tables become global. A failed command publishes
# nothing.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $conf = "wal_level = logical\nmax_wal_senders = 10\n";
my ($writer, $follower) = map { new_server($_, conf => $conf) } qw(writer follower);
# Before PostgreSQL 16 only a superuser may subscribe.
my $has_subscribers = $writer->pg_version >= 16;
foreach my $node ($writer, $follower)
{
	$node->safe_psql('postgres', q{CREATE ROLE app LOGIN; CREATE ROLE keeper LOGIN PASSWORD 'secret'});
	unlink $node->data_dir . '/pg_hba.conf';
	$node->append_conf('pg_hba.conf', "local all keeper scram-sha-256\nlocal all all trust\n");
	$node->reload;
}
# A plain role owns the database, and so the schema public.
$writer->safe_psql('postgres', 'CREATE ROLE dba; ALTER DATABASE postgres OWNER TO dba');
# The follower has the second table already. Before 16 the table's owner would have to be trusted.
$_->safe_psql('postgres', q{CREATE TABLE tags (id integer PRIMARY KEY); INSERT INTO tags VALUES (7);
	ALTER TABLE tags OWNER TO app}) foreach $writer, $follower;
my ($of_writer, $of_follower) = map { $_->connstr('postgres') . ' user=keeper password=secret' } $writer, $follower;
my @add = ('global', 'add', 'public.tags', '--trust-owners', '--on', $of_writer,
	$has_subscribers ? $of_follower : $follower);

subtest 'all missing rights are told at once' => sub {
	my (undef, $rows, $err) = shard_json($program, @add);
	my @obstacles = map { $_->{obstacle} } @$rows;
	is(scalar @obstacles, $has_subscribers ? 8 : 4, 'of both servers') or diag(join("\n", @obstacles, $err));
	foreach my $obstacle (@obstacles)
	{
		my ($port, $statement) = $obstacle =~ /^\S+:(\d+)\/postgres: .*\n +HINT: +((?:GRANT|ALTER ROLE) .*;)$/;
		fail($obstacle), next unless defined $statement;
		note($statement);
		$_->safe_psql('postgres', $statement) foreach grep { $_->port == $port } $writer, $follower;
	}
};

subtest 'too few slots are an obstacle' => sub {
	$writer->append_conf('postgresql.conf', 'max_replication_slots = 0');
	$writer->restart;
	my ($status, $out, $err) = run_shard($program, @add);
	like("$status $out", qr/^1 .*max_replication_slots = 0, and 0 are in use: global add takes 2\n/, 'it is told') or diag($err);
	is($writer->safe_psql('postgres', 'SELECT count(*) FROM pg_publication'), '0', 'nothing is published');
	is($follower->safe_psql('postgres', 'SELECT count(*) FROM pg_subscription'), '0', 'and nothing subscribed');
	$writer->append_conf('postgresql.conf', 'max_replication_slots = 10');
	$writer->restart;
};

subtest 'with these rights the table is global' => sub {
	my ($status, $out, $err) = run_shard($program, @add);
	is($status, 0, 'add') or diag($out . $err);
	$writer->safe_psql('postgres', 'INSERT INTO tags VALUES (8)');
	await('the row is there', sub { $follower->safe_psql('postgres', 'SELECT count(*) FROM tags') eq '2' });
	($status, $out, $err) = run_shard($program, 'global', 'verify', @add[5, 6]);
	is($status, 0, 'verify') or diag($out . $err);
};

subtest 'a hint is for the role whose code can run' => sub {
	$writer->safe_psql('postgres', 'ALTER TABLE tags ADD CONSTRAINT small CHECK (id < 9)');
	my ($status, $out, $err) = run_shard($program, 'global', 'verify', @add[5, 6]);
	is($status, 1, 'verify') or diag($err);
	like($out, qr/HINT: +as role app, because code of that role can run: ALTER TABLE (?:public\.)?tags ADD CONSTRAINT small CHECK/,
		'the statement runs the CHECK of the owner');
};

done_testing();
