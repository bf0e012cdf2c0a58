# snowflake-shard split is killed at any step: the command, a server, both, PgBouncer. Whatever happens, --resume or
# --abort leads to shards that are open on one server each, and to nothing that verify finds; each acknowledged write is
# there exactly once. At no moment are both servers open for a shard.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../gaps";

use Command;
use FaultTest;
use IPC::Run;
use PoolerTest;
use PostgreSQL::Test::Utils;
use Proxy;
use ShardTest;
use ShardWriters;
use SnowflakeTest;
use SplitTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $program = shard_program();
plan skip_all => 'pgbouncer is not installed' unless pgbouncer_program();
seed_random();
my $shards = 4;
my ($status, $out, $err, $found);

my %victims = (
	command => sub { my ($run) = @_; kill_command($run) },
	interrupt => sub { my ($run) = @_; $run->signal('INT') },
	old => sub { crash($_[1]); start_server($_[1]) },
	standby => sub { crash($_[2]); start_server($_[2]) },
	both => sub { my (undef, $old, $standby) = @_; crash($_) foreach $old, $standby; start_server($_)
		foreach $old, $standby },
	pooler => sub { my ($pooler) = $_[3]; kill_pooler($pooler); start_pooler($pooler) });
my @steps = ('standby: default', 'old: triggers', 'clients are held', 'writers have ended', 'sequences are closed',
	'the last write',
	'standby: promoted', 'shards are open', 'PgBouncer held', 'writes were blocked');

# Which of the nodes let a client write to a shard, also one that sets its transaction READ WRITE, in a transaction that
# is rolled back; and which let it draw.
sub writable
{
	my ($shard, @nodes) = @_;
	return join ',', grep {
		my $node = $nodes[$_];
		grep {
			sqlstate($node, $_) eq '' } "BEGIN READ WRITE; INSERT INTO insta$shard.users (name) VALUES ('probe'); ROLLBACK",
			"SELECT insta$shard.next_id()";
	} 0 .. 1;
}

my $trials = trials(2, 200);
my (@faults, %outcomes);
my $step = int(rand(@steps));
my $user = getpwuid($<);
my $one = new_split_server('one', $shards);
foreach my $trial (1 .. $trials)
{
	show_progress('split', $trial, $trials);
	$step = ($step + 1) % @steps;
	my $victim = (sort keys %victims)[ rand keys %victims ];
	my $two = new_standby($one, "two$trial");
	my @nodes = ($one, $two);
	my $pooler = new_split_pooler($one, $shards);
	my %writers = map { ($_ => start_writers(1, "insta$_", [], "host=$pooler->{dir} port=6432 dbname=shard$_ user=$user",
				map { $_->connstr('postgres') } @nodes)) } 1, 3;
	my @servers = ('--from', $one, '--standby', $two, '--timeout', '5s');
	my $what = "$victim killed at \"$steps[$step]\"";
	my $split = start_command('split', $steps[$step], @servers, '--shards', '2,3', '--pgbouncer', $pooler->{dsn},
		'--config', $pooler->{file});
	usleep(rand(20_000));
	eval { $victims{$victim}->($split->{run}, @nodes, $pooler); 1 } or diag("$what: $@");
	eval { end_command($split) };
	push @faults, "$what: shard $_ is open on both" foreach grep { writable($_, @nodes) eq '0,1' } 0 .. 3;
	my $word = rand() < 0.6 ? '--resume' : '--abort';
	($status, $out, $err) = run_shard($program, 'split', @servers, $word);
	if ($status != 0)
	{
		push @faults, "$what, $word: $err"
			if $err !~ /was promoted|may still come|there is no split|was requested|still in recovery|are open on/;
		$word = $err =~ /there is no split/ ? 'anew' : '--resume';
		($status, $out, $err) =
			run_shard($program, 'split', @servers, $word eq 'anew' ? ('--shards', '2,3', '--pgbouncer', $pooler->{dsn},
				'--config', $pooler->{file}) : $word);
	}
	push @faults, "$what, $word: $err" if $status != 0;
	my $is_split = $word ne '--abort';
	my $places = open_shards(@nodes);
	my $wanted = $is_split ? '(0,1) (2,3)' : '(0,1,2,3) ()';
	# Without a split the standby has the shards of its primary.
	push @faults, "$what, $word: open at $places" if $places ne $wanted && ($is_split || $places ne '(0,1,2,3) (0,1,2,3)');
	push @faults, "$what, $word: shard $_ is writable at " . writable($_, @nodes)
		foreach grep { writable($_, @nodes) ne ($is_split && $_ > 1 ? 1 : 0) } 0 .. 3;
	push @faults, "$what, $word: alias $_ leads to " . port_of_alias($pooler, $_)
		foreach grep { port_of_alias($pooler, $_) ne $nodes[ $is_split && $_ > 1 ? 1 : 0 ]->port } 0 .. 3;
	$outcomes{ $is_split ? 'split' : 'not split' }++;
	($status, $found) = shard_json($program, 'verify', @nodes);
	push @faults, map { "$what, $word: $_->{object}: $_->{problem}" } @$found;
	foreach my $shard (sort keys %writers)
	{
		my @journal = stop_writers($writers{$shard});
		my @lost = lost_writes($nodes[ $is_split && $shard > 1 ? 1 : 0 ], 'postgres', "insta$shard", @journal);
		push @faults, "$what, $word: shard $shard: $lost[0]" if @lost;
	}
	if ($is_split)
	{
		($status, $out, $err) = run_shard($program, 'split', @servers, '--complete');
		push @faults, "$what, --complete: $err" if $status != 0;
		make_real_shard($one, 'postgres', $_, "insta$_") foreach 2, 3;
	}
	$one->safe_psql('postgres',
		"TRUNCATE insta$_.users, insta$_.photos, insta$_.comments, insta$_.follows, insta$_.events, insta$_.\"Audit Log\"")
			foreach 0 .. 3;
	kill_pooler($pooler);
	$two->stop('immediate');
	$two->clean_node;
	last if @faults;
}
is(join("\n", @faults), '', "$trials kills: each shard is open on one server, verify finds nothing ("
		. join(', ', map { "$outcomes{$_} $_" } sort keys %outcomes) . ')');

subtest 'DDL on the old server between the promotion and the opening' => sub {
	$one->safe_psql('postgres', 'CREATE MATERIALIZED VIEW insta2.names AS SELECT name FROM insta2.users');
	my $two = new_standby($one, 'changed');
	my $dir = PostgreSQL::Test::Utils::tempdir_short();
	mkdir "$dir/$_" foreach qw(one two);
	my %nodes = (one => $one, two => $two);
	my $proxy = Proxy->new(map { $_ => { listen => "$dir/$_/.s.PGSQL.5432",
				upstream => $nodes{$_}->host . '/.s.PGSQL.' . $nodes{$_}->port } } keys %nodes);
	my @servers = ('--from', "host=$dir/one port=5432 dbname=postgres", '--standby', "host=$dir/two port=5432 dbname=postgres");
	my $is_changed;
	my $run = Command::run($proxy, [ $program, 'split', @servers, '--shards', '2,3' ], sub {
		my ($server, $gap) = @_;
		return 0 if $is_changed || $gap !~ /^two: SELECT snowflake_split\.end_sequences/;
		$is_changed = $one->safe_psql('postgres', q{COMMENT ON TABLE insta3.users IS 'changed';
			REFRESH MATERIALIZED VIEW insta2.names; SELECT 'done'});
		return 0; });
	is($run->{status}, 1, 'exit code 1') or diag($run->{err});
	like($run->{err}, qr/: the definition of shard 3, schema insta3 has been changed since it was closed\. The change is not on /,
		'the shard is named');
	like($run->{err}, qr/refreshed since the promotion\. On \S+: REFRESH MATERIALIZED VIEW insta2\.names;$/m, 'and the view');
	like($run->{out}, qr/^2 shards moved, changed after it was closed: 2-3$/m, 'the state of the shards');
	is(($run = Command::run($proxy, [ $program, 'split', @servers, '--resume' ]))->{status}, 0, 'and it is at its end')
	  or diag($run->{err});
	is(Command::run($proxy, [ $program, 'split', @servers, '--complete' ])->{status}, 0, '--complete');
	make_real_shard($one, 'postgres', $_, "insta$_") foreach 2, 3;
	$two->stop('immediate');
};

subtest 'a split that ends before the bounds of its sequences' => sub {
	$one->safe_psql('postgres', q{
		CREATE FUNCTION public.fails() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no ALTER SEQUENCE'; END$$;
		CREATE EVENT TRIGGER fails ON ddl_command_end WHEN TAG IN ('ALTER SEQUENCE') EXECUTE FUNCTION public.fails()});
	my $two = new_standby($one, 'last');
	my @servers = ('--from', $one, '--standby', $two);
	($status, $out, $err) = run_shard($program, 'split', @servers, '--shards', '2,3');
	like("$status $out", qr/^1 .*no ALTER SEQUENCE.*\n    HINT:  Remove the cause/s, 'it is tried before the split begins') or diag($err);
	unlike($out, qr/ALTER SEQUENCE [s%]|SQL statement/, 'and no SQL of the command is shown');
	# The trial alters a sequence of its own.
	$one->safe_psql('postgres', q{
		CREATE OR REPLACE FUNCTION public.fails() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN
			IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE schema_name ~ '^insta') THEN RAISE 'no ALTER SEQUENCE'; END IF;
		END$$});
	$one->wait_for_catchup($two);
	($status, $out, $err) = run_shard($program, 'split', @servers, '--shards', '2,3');
	like("$status $err", qr/^3 .*no ALTER SEQUENCE/s, 'the command fails');
	is(open_shards($one, $two), '(0,1) (2,3)', 'all shards are open');
	my (undef, $rows) = shard_json($program, 'list', $one, $two);
	is(join(' ', map { $_->{shard} } grep { ($_->{next} // '') =~ / --resume$/ } @$rows), '2 3',
		'list shows the next command');
	(undef, $found) = shard_json($program, 'verify', $one, $two);
	is(join("\n", map { "$_->{finding} $_->{hint}" } grep { $_->{finding} ne 'leftover' } @$found), '',
		'verify has no hint that opens a sequence');
	foreach my $closed ([ $one, 2 ], [ $two, 1 ])
	{
		my ($node, $shard) = @$closed;
		my $error = ($node->psql('postgres', "SELECT insta$shard.next_id()"))[2] // '';
		like($error, qr/sequence insta$shard\.table_id_seq is closed/, $node->name . ': the error of a draw');
		unlike($error, qr/RESTART/, 'nor has this one');
	}
	$_->safe_psql('postgres', 'DROP FUNCTION public.fails CASCADE') foreach $one, $two;
	$two->safe_psql('postgres', q{COMMENT ON TABLE insta2.users IS 'changed'});
	my @reload = ('postgres', 'SELECT pg_reload_conf()');
	$one->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
	$one->safe_psql(@reload);
	my $split = start_command('split', "a COMMIT waits for a synchronous standby, .* = nobody\n", @servers, '--resume');
	$one->safe_psql('postgres', 'SET synchronous_commit = local; ALTER SYSTEM RESET synchronous_standby_names');
	$one->safe_psql(@reload);
	is(end_command($split), 1, '--resume tells of the standby for which it waits') or diag($split->{err});
	like($split->{err}, qr/the definitions of shard 2, schema insta2 on \S+ and \S+ differ: one of them was changed since the promotion/,
		'and of DDL since then, on either server');
	is((run_shard($program, 'verify', $one, $two))[0], 0, 'verify finds nothing');
	is((run_shard($program, 'split', @servers, '--complete'))[0], 0, '--complete');
	$two->stop;
	make_real_shard($one, 'postgres', $_, "insta$_") foreach 2, 3;
};

subtest 'the old server is lost after the promotion: the statements of docs/move-failures.md' => sub {
	my $two = new_standby($one, 'alone');
	my $dir = PostgreSQL::Test::Utils::tempdir_short();
	my %nodes = (one => $one, two => $two);
	mkdir "$dir/$_" foreach keys %nodes;
	my $proxy = Proxy->new(map { $_ => { listen => "$dir/$_/.s.PGSQL.5432",
				upstream => $nodes{$_}->host . '/.s.PGSQL.' . $nodes{$_}->port } } keys %nodes);
	my $run = Command::run($proxy, [ $program, 'split', '--from', "host=$dir/one port=5432 dbname=postgres",
			'--standby', "host=$dir/two port=5432 dbname=postgres", '--shards', '2,3' ], sub {
		my ($server, $gap, undef, $run) = @_;
		kill 'KILL', $run->{pid} if $gap =~ /^two: SELECT snowflake_split\.end_sequences/;
		return 0; });
	is($run->{status}, 'signal 9', 'the command was killed before the opening') or diag($run->{err});
	$one->stop('immediate');
	is(open_shards($two), '()', 'no shard is open');
	my $page = slurp_file("$FindBin::RealBin/../../docs/move-failures.md");
	my ($sql) = $page =~ /^## The old server is lost for good\n.*?^```sql\n(.*?)^```$/ms;
	my ($status, undef, $error) = $two->psql('postgres', $sql, on_error_stop => 1);
	is($status, 0, 'the statements') or diag($error);
	is(open_shards($two), '(2,3)', 'the shards that leave are open');
	await('the server can be written to', sub { $two->safe_psql('postgres', 'SHOW default_transaction_read_only') eq 'off' });
	ok($two->safe_psql('postgres', q{INSERT INTO insta3.users (name) VALUES ('new') RETURNING id}) > 0, 'a row');
	$two->stop;
};
done_testing();
