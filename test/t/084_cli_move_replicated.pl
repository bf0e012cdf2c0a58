# The rows of a move are carried by logical replication, which fires no ordinary trigger, refreshes no view, and restarts
# sequences that are closed. Foreign keys into other schemas hold all the same, and sequences go on, after a move and
# after an undo.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use MoveTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\nmax_connections = 60\n"
	. "max_worker_processes = 12\nmax_logical_replication_workers = 8\nwal_retrieve_retry_interval = 200ms\n";
my ($one, $two) = map { new_server($_, conf => $conf) } qw(one two);
my @nodes = ($one, $two);
my $by_hand = 'SET session_replication_role = replica; ';

sub verified
{
	my (undef, $found) = shard_json($program, 'verify', '--rows', @nodes);
	return join "\n", map { "$_->{finding}: $_->{problem}: $_->{hint}" } @$found;
}

# The triggers of keys that fire for replicated rows, too.
sub always
{
	my ($node) = @_;
	return $node->safe_psql('postgres',
		q{SELECT string_agg(DISTINCT conname, ' ' ORDER BY conname)
			FROM pg_trigger JOIN pg_constraint AS c ON c.oid = tgconstraint WHERE tgenabled = 'A'});
}

foreach my $node (@nodes)
{
	$node->safe_psql('postgres', q{
		CREATE TABLE public.categories (id integer PRIMARY KEY);
		CREATE TABLE public.regions (country char(2), name text, PRIMARY KEY (country, name));
		INSERT INTO public.categories VALUES (1), (2);
		INSERT INTO public.regions VALUES ('NL', 'North'), ('NL', 'a "b", c')});
}
$one->safe_psql('postgres', q{
	SELECT snowflake_create_shard(5, 'insta5');
	CREATE TABLE insta5.products (id bigint PRIMARY KEY DEFAULT insta5.next_id(),
		category_id integer REFERENCES public.categories, other_id bigint REFERENCES insta5.products);
	CREATE TABLE insta5.shops (id bigint DEFAULT insta5.next_id(), country char(2), name text, PRIMARY KEY (id, country),
		FOREIGN KEY (country, name) REFERENCES public.regions) PARTITION BY LIST (country);
	CREATE TABLE insta5.shops_nl PARTITION OF insta5.shops FOR VALUES IN ('NL');
	INSERT INTO insta5.products (category_id) VALUES (1), (2), (NULL);
	INSERT INTO insta5.shops (country, name) VALUES ('NL', 'a "b", c')});
my $waits = 'replication has failed .*\n.*lacks rows';
my $keys = 'products_category_id_fkey shops_country_name_fkey';

subtest 'a row that the shared table of the target lacks is an obstacle' => sub {
	$two->safe_psql('postgres', 
		"DELETE FROM public.categories WHERE id = 2; DELETE FROM public.regions WHERE name <> 'North'");
	my $out = move(@nodes, '--dry-run');
	my $refers = 'of the source refers by its foreign key products_category_id_fkey, with the key \{2\}';
	like($out, qr/^1 .*table public\.categories lacks rows to which table insta5\.products $refers\n/, 'a key of one column');
	like($out, qr/table public\.regions lacks rows to which table insta5\.shops .* with the key \{NL,"a \\"b\\", c"\}\n/,
		'and of two');
	my ($hint) = $out =~ /Insert them there\. On \S+, (SELECT \* FROM ONLY public\.regions .*); shows them/;
	is($one->safe_psql('postgres', $hint), 'NL|a "b", c', 'the hint shows the rows');
	$two->safe_psql('postgres', 
		q{INSERT INTO public.categories VALUES (2); INSERT INTO public.regions VALUES ('NL', 'a "b", c')});
	is(move(@nodes, '--dry-run'), 'exit code 0', 'none when they are there') or diag($move_error);
};

subtest 'a row that comes while the target follows' => sub {
	moves([ @nodes, '--hold', '--reversible' ], 'held', 'move --hold');
	is(always($two), $keys, 'keys that leave the set check replicated rows');
	$one->safe_psql('postgres', 
		'INSERT INTO public.categories VALUES (3); INSERT INTO insta5.products (category_id) VALUES (3)');
	my $command = start_command('move', $waits, 'insta5', '--from', $one, '--to', $two, '--cutover');
	like($command->{err}, qr/public\.categories lacks rows .* with the key \{3\}\n    HINT:  Insert them there/,
		'--cutover names the row that is missing');
	unlike($command->{err}, qr/target: open/, 'and does not open the target');
	$two->safe_psql('postgres', 'INSERT INTO public.categories VALUES (3)');
	is(end_command($command), 0, 'it goes on when the row is there') or diag($command->{err});
	is($two->safe_psql('postgres', 'SELECT count(*) FROM insta5.products WHERE category_id = 3'), '1', 'the row has moved');
	is(always($two), '', 'the keys of the open shard are as they were');
	is(always($one), $keys, 'those of the source check what it follows');
};

subtest 'a row that comes before an undo' => sub {
	$two->safe_psql('postgres', 
		'INSERT INTO public.categories VALUES (4); INSERT INTO insta5.products (category_id) VALUES (4)');
	my $command = start_command('move', $waits, 'insta5', '--from', $one, '--to', $two, '--undo');
	unlike($command->{err}, qr/target: open/, '--undo does not open the source');
	$one->safe_psql('postgres', 'INSERT INTO public.categories VALUES (4)');
	is(end_command($command), 0, 'it goes on when the row is there') or diag($command->{err});
	is(always($one), '', 'the keys of the open shard are as they were');
	is(verified(), '', 'verify --rows finds nothing');
	moves([ @nodes, '--complete' ], 'dropped', '--complete');
};

subtest 'verify --rows finds a row that violates a key' => sub {
	moves([ @nodes, '--hold' ], 'held', 'held again');
	$two->safe_psql('postgres', "$by_hand DELETE FROM public.categories WHERE id = 4");
	my $violate = 'violate its foreign key products_category_id_fkey to table public\.categories';
	like(verified(), qr/^key: rows of table insta5\.products $violate: SELECT .*; shows them\.$/, 'in a set that is held');
	$two->safe_psql('postgres', 'INSERT INTO public.categories VALUES (4)');
	is(verified(), '', 'and none when it is there again');
	$one->safe_psql('postgres', "$by_hand DELETE FROM public.categories WHERE id = 1");
	like(verified(), qr/^key: rows of table insta5\.products $violate/, 'on the other side, too');
	$one->safe_psql('postgres', 'INSERT INTO public.categories VALUES (1)');
	moves([ @nodes, '--abort' ], 'aborted', '--abort');
};

subtest 'verify finds a key that is not checked' => sub {
	$one->safe_psql('postgres',
		'ALTER TABLE insta5.products DISABLE TRIGGER ALL; INSERT INTO insta5.products VALUES (77, 77)');
	my (undef, $found) = shard_json($program, 'verify', @nodes);
	my ($key) = grep { $_->{problem} =~ /products_category_id_fkey/ } @$found;
	is("$key->{finding} $key->{object}: $key->{problem}",
		'key table insta5.products: foreign key products_category_id_fkey is not checked: its triggers on table '
		. 'insta5.products are disabled', 'without --rows');
	is(sqlstate($one, $key->{hint}), '23503', 'the hint refuses rows that violate it');
	$one->safe_psql('postgres', 'DELETE FROM insta5.products WHERE id = 77');
	is(sqlstate($one, $_->{hint}), '', $_->{problem}) foreach @$found;
	(undef, $found) = shard_json($program, 'verify', @nodes);
	is(join("\n", map { $_->{problem} } @$found), '', 'and mends it');
};

subtest 'materialized views are as old as the copy' => sub {
	$one->safe_psql('postgres', q{
		CREATE MATERIALIZED VIEW insta5.b AS SELECT count(*) AS n FROM insta5.products;
		CREATE MATERIALIZED VIEW insta5.a AS SELECT n FROM insta5.b;
		CREATE MATERIALIZED VIEW insta5.empty AS SELECT n FROM insta5.b WITH NO DATA});
	my $refresh = 'REFRESH MATERIALIZED VIEW insta5.b; REFRESH MATERIALIZED VIEW insta5.a;';
	my $old = qr/: materialized views have the rows of before the move\. Refresh them there: (\Q$refresh\E)\n/;
	my $rows = 'SELECT n = (SELECT count(*) FROM insta5.products) FROM insta5.a';
	my $more = "INSERT INTO insta5.products DEFAULT VALUES; $refresh";
	moves([ @nodes, '--hold', '--reversible' ], 'held', 'move --hold');
	$one->safe_psql('postgres', $more);
	moves([ @nodes, '--cutover' ], 'moved with reverse replication', 'moved');
	is($two->safe_psql('postgres', $rows), 'f', 'a REFRESH on the source was not carried');
	like($move_error, qr/${\$two->port}\/postgres$old/, 'the command prints the statements');
	$two->safe_psql('postgres', $1) if $move_error =~ $old;
	is($two->safe_psql('postgres', $rows), 't', 'which refresh them');
	$two->safe_psql('postgres', $more);
	moves([ @nodes, '--undo' ], 'undone', 'undone');
	like($move_error, qr/${\$one->port}\/postgres$old/, 'so it does after an undo');
	moves([ @nodes, '--complete' ], 'dropped', '--complete');
	$one->safe_psql('postgres', 'DROP MATERIALIZED VIEW insta5.b CASCADE');
};

subtest 'TRUNCATE ... RESTART IDENTITY, whatever the bounds of the sequences are' => sub {
	my @kinds = ('MINVALUE 0 START 0', 'INCREMENT -1', 'INCREMENT -1 MINVALUE 0 MAXVALUE 100 CYCLE', 'MINVALUE 5000 CYCLE',
		'MINVALUE -5000 START -10 MAXVALUE 0 CYCLE', 'MINVALUE 0 START 0 MAXVALUE 9223372036854775800', 'AS smallint MINVALUE 0');
	$one->safe_psql('postgres', join '; ', 'CREATE TABLE insta5.counted (id bigserial PRIMARY KEY)',
		'ALTER SEQUENCE insta5.table_id_seq OWNED BY insta5.counted.id',
		map { ("CREATE SEQUENCE insta5.s$_ $kinds[$_] OWNED BY insta5.counted.id", ("SELECT nextval('insta5.s$_')") x 2) }
			0 .. $#kinds);
	my $positions = q{SELECT string_agg(concat_ws(' ', relname, v.last_value, v.is_called), ', ' ORDER BY relname)
		FROM pg_class AS c CROSS JOIN LATERAL snowflake_internal.stored_value(c.oid) AS v
		WHERE relkind = 'S' AND relnamespace = 'insta5'::regnamespace};
	my $restart = 'TRUNCATE insta5.counted RESTART IDENTITY; INSERT INTO insta5.counted DEFAULT VALUES';
	moves([ @nodes, '--hold', '--reversible' ], 'held', 'move --hold');
	$one->safe_psql('postgres', $restart);
	my $before = $one->safe_psql('postgres', $positions);
	moves([ @nodes, '--cutover' ], 'moved with reverse replication', 'after one on the source');
	is($two->safe_psql('postgres', $positions), $before, 'the target goes on from there');
	$two->safe_psql('postgres', $restart);
	$before = $two->safe_psql('postgres', $positions);
	moves([ @nodes, '--undo', '--reversible' ], 'undone with reverse replication', 'after one on the target');
	is($one->safe_psql('postgres', $positions), $before, 'the source goes on from there');
	$one->safe_psql('postgres', $restart);
	moves([ @nodes, '--reversible' ], 'moved with reverse replication', 'there again');
	moves([ @nodes, '--undo' ], 'undone', 'and back');
	moves([ @nodes, '--complete' ], 'dropped', '--complete');
};

# The next command that list shows, and what verify finds.
sub shown
{
	my (undef, $rows) = shard_json($program, 'list', @nodes);
	my (undef, $found) = shard_json($program, 'verify', @nodes);
	return join "\n", (map { "$_->{state}: $_->{next}" } @$rows), map { $_->{hint} } @$found;
}

subtest 'a slot that is lost' => sub {
	my $lose = sub {
		my ($publisher, $follower) = @_;
		$follower->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 DISABLE');
		await('nobody reads the slot',
			sub { $publisher->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_slots WHERE active') eq '0' });
		$publisher->safe_psql('postgres', 'SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots');
	};
	moves([ @nodes, '--hold' ], 'held', 'held');
	$lose->(@nodes);
	my $shown = shown();
	like($shown, qr/^open, following lost: .* --abort\n.* --abort undoes the move\./,
		'of a held set: list and verify name --abort');
	unlike($shown, qr/--cutover/, 'and not --cutover');
	is_refused([ @nodes, '--cutover' ], qr/is gone, or .*\. Start anew: --abort\nHINT: .* --abort removes the copy/,
		'--cutover');
	moves([ @nodes, '--abort' ], 'aborted', '--abort');
	moves([ @nodes, '--reversible' ], 'moved with reverse replication', 'moved');
	$lose->($two, $one);
	$shown = shown();
	like($shown, qr/^open, reverse replication lost: .* --complete\n.* --complete stops reverse replication, and drops the old rows for good\./,
		'of reverse replication: list and verify name --complete');
	unlike($shown, qr/--undo/, 'and not --undo');
	is_refused([ @nodes, '--undo' ],
		qr/is gone, or .*\nHINT: .* --complete stops reverse replication, and drops the rows that followed\. Then .* moves the shard back, with a copy/, '--undo');
	unlike($move_error, qr/--abort/, 'names no --abort');
	moves([ @nodes, '--complete' ], 'dropped', '--complete');
};

$_->stop foreach @nodes;
done_testing();
