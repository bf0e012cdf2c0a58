# With the lines of snowflake-shard map --search-path an application says photos, and not insta5.photos. Clients of
# four shards of one database, each with two server connections, see no row of another shard; this check can fail. A
# client's own SET stays in the pool of its alias; a move keeps the settings of a line; standbys have aliases.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PoolerTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

plan skip_all => 'PgBouncer is not installed' unless defined pgbouncer_program();
my $program = shard_program();
seed_random();

my $user = getpwuid($<);
my $conf = "wal_level = logical\nmax_connections = 60\nmax_wal_senders = 10\nmax_replication_slots = 10\n";
my ($one, $two) = map { new_server($_, init => { allows_streaming => 1 }, conf => $conf) } qw(one two);
my $odd = q{in's "9"};    # a name that SQL, PgBouncer and psql quote
$one->safe_psql('postgres', q{
	CREATE TABLE wrong (shard integer, id bigint);
	CREATE TABLE photos (id bigint, caption text);
	INSERT INTO photos VALUES (1, 'of no shard')});
foreach my $shard (5 .. 9)
{
	my $schema = $shard == 9 ? $odd : "insta$shard";
	$one->safe_psql('postgres', sprintf(q{
		SELECT snowflake_create_shard(%1$d, %3$s);
		CREATE TABLE %2$s.photos (id bigint PRIMARY KEY DEFAULT %2$s.next_id(), caption text);
		INSERT INTO %2$s.photos (caption) SELECT 'shard%1$d' FROM generate_series(1, 3)},
		$shard, '"' . $schema =~ s/"/""/gr . '"', "'" . $schema =~ s/'/''/gr . "'"));
}

# Exit code, standard output, standard error of psql through the PgBouncer.
sub ask
{
	my ($pooler, $alias, @sql) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run([ 'psql', '-XAtq', '-d', dsn($pooler, $alias), map { ('-c', $_) } @sql ], '>', \$out, '2>', \$err);
	chomp($out);
	return ($? >> 8, $out, $err);
}

sub answer
{
	my ($status, $out, $err) = ask(@_);
	return $status == 0 ? $out : $err;
}

sub dsn
{
	my ($pooler, $alias) = @_;
	return "host=$pooler->{dir} port=6432 dbname=$alias user=$user";
}

# The lines of map, and its warnings.
sub lines_of_map
{
	my (@arguments) = @_;
	my ($status, $out, $err) = run_shard($program, 'map', '--format', 'pgbouncer', @arguments);
	is($status, 0, "map @{[ grep { !ref } @arguments ]}") or diag($err);
	$out =~ s/^\[databases\]\n//;
	return ($out, $err);
}

# A pgbench for each shard. Each transaction notes the rows that it sees and that are not of its shard. %alias_of can
# lead the clients of a shard to the alias of another.
sub run_tenants
{
	my ($pooler, $transactions, %alias_of) = @_;
	$one->safe_psql('postgres', 'TRUNCATE wrong');
	my @runs;
	foreach my $shard (5 .. 8)
	{
		my $dir = PostgreSQL::Test::Utils::tempdir();
		my $look = "INSERT INTO public.wrong SELECT $shard, id FROM photos WHERE snowflake_shard(id) <> $shard";
		append_to_file("$dir/look.sql", "$look;\n");
		my $insert = "INSERT INTO photos (caption) VALUES ('shard$shard')";
		append_to_file("$dir/post.sql", "BEGIN; $look; $insert; $look; COMMIT;\n");
		my %run = (out => '');
		$run{h} = IPC::Run::start(
			[ 'pgbench', '-n', '-c', 4, '-t', $transactions / 16, '-f', "$dir/look.sql\@49", '-f', "$dir/post.sql\@1",
				dsn($pooler, $alias_of{$shard} // "shard$shard") ],
			'<', \undef, '>&', \$run{out});
		push @runs, \%run;
	}
	my $done = 0;
	foreach my $run (@runs)
	{
		$run->{h}->finish;
		$done += $run->{out} =~ /actually processed: (\d+)/ ? $1 : 0;
	}
	return $done;
}

sub wrong_rows
{
	return $one->safe_psql('postgres', 'SELECT count(*) FROM wrong');
}

my ($lines, $warned) = lines_of_map($one, $two, '--search-path', '--user', $user);
my $pooler = new_pooler($lines =~ s/(?=\n)/ pool_size=2/gr);

subtest 'the lines lead to the schema of a shard and to the functions' => sub {
	like($lines, qr/^shard5 = host=\S+ port=\d+ dbname=postgres user=\S+ pool_mode=transaction connect_query=/m,
		'the settings of a line');
	like($lines, qr/ connect_query='SET search_path = "insta5", public'$/m, 'the schemas');
	like($lines, qr/ connect_query='SET search_path = "in''s ""9""", public'$/m, 'a name with quotes');
	is($warned, '', 'no warning');
	is(answer($pooler, "shard$_", "SELECT DISTINCT snowflake_shard(id), caption FROM photos"), "$_|shard$_", "shard $_")
		foreach 5 .. 9;
	is((run_shard($program, 'map', $one, '--search-path'))[0], 2, 'other formats have no search_path');
};

subtest 'not to a schema in which others can create functions' => sub {
	$two->safe_psql('postgres', 'CREATE ROLE other; GRANT CREATE ON SCHEMA public TO other');
	my ($out, $err) = lines_of_map($one, $two, '--search-path');
	like($out, qr/ connect_query='SET search_path = "insta5"'$/m, 'not where a role got CREATE on one of the servers');
	like($err, qr/search_path has only the shard's schema/, 'and map says so');
	$two->safe_psql('postgres', 'REVOKE CREATE ON SCHEMA public FROM other; GRANT CREATE ON SCHEMA public TO PUBLIC');
	like((lines_of_map($one, $two, '--search-path'))[0], qr/"insta5"'$/m, 'nor where all have it');
	$two->safe_psql('postgres', 'REVOKE CREATE ON SCHEMA public FROM PUBLIC; DROP ROLE other');
	$two->safe_psql('postgres', 'CREATE DATABASE own_schema');
	$two->safe_psql('own_schema', 'CREATE SCHEMA snowflake; CREATE EXTENSION snowflake SCHEMA snowflake');
	like((lines_of_map($one, $two->connstr('own_schema'), '--search-path'))[0], qr/"insta5"'$/m,
		'nor where the extension is in another schema on one of them');
};

my $transactions = 20_000;
subtest 'no client sees a row of another shard' => sub {
	my $done = run_tenants($pooler, $transactions);
	is($done, $transactions, "$transactions transactions of 16 clients in four shards");
	is(wrong_rows(), 0, 'rows of another shard');
	my $homeless = join ' UNION ALL ', map { "SELECT FROM insta$_.photos WHERE caption <> 'shard$_'" } 5 .. 8;
	is($one->safe_psql('postgres', "SELECT count(*) FROM ($homeless) AS p"), 0, 'rows written into another shard');
	my $made = join ' UNION ALL ', map { "SELECT FROM insta$_.photos" } 5 .. 8;
	cmp_ok($one->safe_psql('postgres', "SELECT count(*) FROM ($made) AS p"), '>', 100, 'rows were written');
	my @servers = map { [ split /\|/ ] } split /\n/, console($pooler, 'SHOW SERVERS');
	my %of_alias;
	$of_alias{ $_->[2] }++ foreach @servers;
	is_deeply([ map { $of_alias{"shard$_"} } 5 .. 8 ], [ 2, 2, 2, 2 ], 'through two server connections of each alias');
};

subtest 'the test can fail' => sub {
	run_tenants($pooler, 800, 6 => 'shard5');
	cmp_ok(wrong_rows(), '>', 0, 'two shards with one pool see rows of each other');
	my $without = new_pooler($lines =~ s/ connect_query=.*//gr);
	is(run_tenants($without, 800), 800, 'without connect_query');
	cmp_ok(wrong_rows(), '>', 0, 'the rows are those of public');
	kill_pooler($without);
};

# The schema of the photos that a client sees.
my $where = q{SELECT relnamespace::regnamespace FROM pg_class WHERE oid = 'photos'::regclass};

# One server connection of each alias, which the next client of the alias gets.
subtest 'what a client sets stays in the pool of its alias' => sub {
	my $single = new_pooler($lines =~ s/(?=\n)/ pool_size=1/gr);
	# 18 reports search_path, and PgBouncer keeps for each client what a server reports from 1.26 on.
	my ($major, $minor) = console($single, 'SHOW VERSION') =~ /^PgBouncer (\d+)\.(\d+)/;
	my $keeps = $one->pg_version >= 18 && ($major > 1 || $minor >= 26);
	my $set = sub { $keeps ? $_[1] : $_[0] };
	is(answer($single, 'shard5', "BEGIN; SET LOCAL search_path = insta6; $where; COMMIT"), 'insta6', 'SET LOCAL');
	is(answer($single, 'shard5', $where), 'insta5', 'ends with the transaction');
	is(answer($single, 'shard5', 'SET search_path = insta6', $where), 'insta6', 'SET');
	is(answer($single, 'shard5', $where), $set->('insta6', 'insta5'), 'the next client of the alias');
	is(answer($single, "shard$_", $where), "insta$_", "not for alias shard$_") foreach 6, 7;
	is(answer($single, 'shard7', 'RESET ALL', $where), 'public', 'RESET ALL takes the setting away');
	is(answer($single, 'shard7', $where), $set->('public', 'insta7'), 'the next client');
	console($single, 'RECONNECT');
	is(answer($single, "shard$_", $where), "insta$_", "RECONNECT lets shard$_ begin anew") foreach 5, 7;
	append_to_file($single->{main}, "pool_mode = session\n");
	console($single, 'RELOAD');
	is(answer($single, 'shard5', $where), 'insta5', "pool_mode of the line holds, client $_") foreach 1, 2;
	append_to_file($single->{main}, "server_reset_query_always = 1\n");
	console($single, 'RELOAD');
	answer($single, 'shard5', $where);
	is(answer($single, 'shard5', $where), $set->('public', 'insta5'),
		'server_reset_query_always takes the setting away, too');
	kill_pooler($single);
	my $session = new_pooler($lines =~ s/ pool_mode=\S+/ pool_size=1/gr);
	append_to_file($session->{main}, "pool_mode = session\n");
	console($session, 'RELOAD');
	answer($session, 'shard5', $where);
	is(answer($session, 'shard5', $where), $set->('public', 'insta5'),
		'and so does session pooling, without pool_mode in the line');
	kill_pooler($session);
};

subtest 'a line keeps its settings when the shard moves and returns' => sub {
	my $before = slurp_file($pooler->{file});
	my ($others, $line) = ($before =~ s/^shard5 .*\n//mr, $before =~ /^(shard5 = .*)/m);
	my @router = ('--pgbouncer', $pooler->{dsn}, '--config', $pooler->{file});
	my @move = ('move', 'insta5', '--from', $one, '--to', $two, @router);
	my ($status, $out, $err) = run_shard($program, @move, '--reversible');
	is($status, 0, 'move') or diag("$out$err");
	my ($from, $to) = map { $_->port } $one, $two;
	my $after = slurp_file($pooler->{file});
	is($after =~ s/^shard5 .*\n//mr, $others, 'the lines of other aliases stay');
	is(($after =~ /^(shard5 = .*)/m)[0], $line =~ s/port=$from/port=$to/r, 'the line has another port, and all settings');
	is(answer($pooler, 'shard5', 'SELECT count(*) > 0, count(DISTINCT snowflake_shard(id)) FROM photos'), 't|1',
		'photos are those of the shard on the other server');
	like(answer($pooler, 'shard5', 'SHOW port'), qr/^$to$/, 'which is the target');
	($status, $out, $err) = run_shard($program, @move, '--undo');
	is($status, 0, 'move --undo') or diag("$out$err");
	is(slurp_file($pooler->{file}), $before, 'the file is as it was');
	is(answer($pooler, 'shard5', 'SHOW port'), $from, 'and the alias leads back');
};

subtest 'standbys get aliases of their own' => sub {
	$one->backup('b');
	my $folder = PostgreSQL::Test::Utils::tempdir_short();    # a second address of the same port
	my ($standby, $other) = map { PostgreSQL::Test::Cluster->new($_) } qw(standby other);
	$_->init_from_backup($one, 'b', has_streaming => 1) foreach $standby, $other;
	$standby->append_conf('postgresql.conf', "unix_socket_directories = '" . $standby->host . ", $folder'\n");
	$_->start foreach $standby, $other;
	my $more = $standby->connstr('postgres') =~ s/host=\S+/host=$folder/r;
	my ($out) = lines_of_map($one, '--search-path', '--replicas', $standby, '--replicas', $more);
	my ($place) = map { "host=" . $_->host . ",$folder port=" . $_->port } $standby;
	like($out, qr/^shard5 = .*\nshard5_ro = \Q$place\E dbname=postgres pool_mode=\S+ connect_query='.*"insta5", public'$/m,
		'a list of hosts, and the settings of the shard');
	my $readers = new_pooler($out =~ s/ dbname/ user=$user dbname/gr);
	my @servers = map { answer($readers, 'shard5_ro', 'SELECT pg_is_in_recovery(), count(*) > 0 FROM photos') } 1 .. 2;
	is("@servers", 't|t t|t', 'clients read photos of the shard on a standby');
	# A move of the shard leaves this alias alone.
	my ($status, undef, $err) = run_shard($program, 'move', 'insta6', '--from', $one, '--to', $two,
		'--pgbouncer', $readers->{dsn}, '--config', $readers->{file});
	is($status, 0, 'move') or diag($err);
	my ($ro) = ($out =~ s/ dbname/ user=$user dbname/gr) =~ /^(shard6_ro = .*)/m;
	like(slurp_file($readers->{file}), qr/^\Q$ro\E$/m, 'the line of the standby stays');
	like(slurp_file($readers->{file}), qr/^shard6 = \S+ port=${\$two->port} /m, 'that of the shard does not');
	answer($readers, 'shard6', "INSERT INTO photos (caption) VALUES ('new')");
	my $new = "SELECT count(*) FROM photos WHERE caption = 'new'";
	is(join(' ', map { answer($readers, $_, $new) } 'shard6', 'shard6_ro'), '1 0',
		'and shows the rows before the cutover');
	($status, undef, $err) = run_shard($program, 'move', 'insta6', '--from', $one, '--to', $two, '--complete');
	is($status, 0, 'move --complete') or diag($err);
	await('there is no photos but that of public', sub { answer($readers, 'shard6_ro', $where) eq 'public' });
	foreach my $refused (
		[ 'is no standby', $one, '--replicas', $two ],
		[ 'is a standby of none', $two, '--replicas', $standby ],
		[ 'have the ports', $one, '--replicas', $standby, '--replicas', $other ])
	{
		my ($problem, @arguments) = @$refused;
		($status, undef, $err) = run_shard($program, 'map', '--format', 'pgbouncer', @arguments);
		like("$status $err", qr/^3 .*\Q$problem\E/s, "refused: $problem");
	}
	$other->promote;
	$other->safe_psql('postgres', 'DROP SCHEMA ' . join(', ', map { "insta$_" } 5, 7, 8) . q{, "in's ""9""" CASCADE});
	($status, undef, $err) = run_shard($program, 'map', '--format', 'pgbouncer', $one, $other, '--replicas', $standby);
	like("$status $err", qr/^3 .*can be a standby of/s, 'refused: a standby of one of two servers that were one');
	$_->stop foreach $standby, $other;
};

$_->stop foreach $one, $two;
done_testing();
