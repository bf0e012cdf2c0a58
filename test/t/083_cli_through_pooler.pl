# snowflake-shard and PgBouncer: no verb works through a pooler, because clients would share its session; session pooling
# is found before the copy; a PgBouncer that hangs does not hold the clients of another; its file can be on another
# machine.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PoolerTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
plan skip_all => 'pgbouncer is not installed' unless pgbouncer_program();

my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\n";
my ($one, $two) = map { new_server($_, conf => $conf) } qw(one two);
$one->safe_psql('postgres', q{
	SELECT snowflake_create_shard(5, 'insta5');
	CREATE TABLE insta5.users (id bigint PRIMARY KEY DEFAULT insta5.next_id(), name text)});
my ($status, $out, $err);

sub arguments
{
	my ($from, $to, @poolers) = @_;
	return ('insta5', '--from', $from, '--to', $to, map { ('--pgbouncer', $_->{dsn}, '--config', $_->{file}) } @poolers);
}

# The verbs that need no more than a server, and a move.
subtest 'a server behind a pooler is refused before its session is changed' => sub {
	foreach my $mode (qw(transaction session))
	{
		my $pooler = new_pooler(alias_to($one) =~ s/pool_size=4/pool_size=1 pool_mode=$mode/r);
		my $pooled = shard5_of($pooler);
		my $refused = qr/\Q$pooler->{dir}\E:6432\/shard5 is a connection pooler: other clients would get the session/;
		my $remedy = qr/HINT:  Give the address of the server itself\. .*SHOW DATABASES has .* of shard5\./;
		foreach my $verb ([ 'list', $pooled ], [ 'query', $pooled, '--sql', 'SELECT 1' ],
			[ 'move', 'insta5', '--from', $pooled, '--to', $two ], [ 'move', 'insta5', '--from', $two, '--to', $pooled ])
		{
			($status, undef, $err) = run_shard($program, @$verb);
			is($status, 3, "$mode: $verb->[0]: exit code 3");
			like($err, qr/$refused.*\s$remedy/, "$mode: $verb->[0]: the pooler is named, and the remedy");
		}
		my ($path) = qx(psql -XAt -d "$pooled" -c 'SHOW search_path') =~ /(.*)/;
		is($path, '"$user", public', "$mode: the next client has its own search_path");
	}
};

subtest 'session pooling is an obstacle' => sub {
	my $of_line = new_pooler(alias_to($one) =~ s/pool_size=4/pool_mode=session/r);
	my $of_all = new_pooler(alias_to($one));
	append_to_file($of_all->{main}, "pool_mode = session\n");
	console($of_all, 'RELOAD');
	foreach my $pooler ($of_line, $of_all)
	{
		($status, $out, $err) = run_shard($program, 'move', arguments($one, $two, $pooler), '--dry-run');
		is($status, 1, '--dry-run: exit code 1') or diag($err);
		like($out, qr/PgBouncer \Q$pooler->{dir}\E:6432: alias shard5 has pool_mode = session, so PAUSE would wait until/,
			'the alias is named');
		like($out, qr/HINT:  Write pool_mode=transaction into the line of the alias, and RELOAD/, 'with the remedy');
	}
	my $of_user = new_pooler(alias_to($one) =~ s/ user=\S+//r);
	my ($user) = $of_user->{dsn} =~ /user=(\S+)/;
	append_to_file($of_user->{main}, "[users]\n$user = pool_mode=session\n");
	console($of_user, 'RELOAD');
	($status, $out, $err) = run_shard($program, 'move', arguments($one, $two, $of_user), '--dry-run');
	is($status, 0, 'not that of a user who has not connected') or diag($out . $err);
	system('psql', '-XAtqo', '/dev/null', '-d', shard5_of($of_user), '-c', 'SELECT 1');
	($status, $out, $err) = run_shard($program, 'move', arguments($one, $two, $of_user), '--dry-run');
	like($out, qr/alias shard5 has pool_mode = session for user $user, .*line of the user in \[users\], and RELOAD/s,
		'that of a user is one, too') or diag($err);
	my $line = alias_to($one) =~ s/pool_size=4/pool_mode=transaction/r;
	unlink $of_all->{file};
	append_to_file($of_all->{file}, "[databases]\n$line");
	console($of_all, 'RELOAD');
	($status, $out, $err) = run_shard($program, 'move', arguments($one, $two, $of_all), '--dry-run');
	is($status, 0, 'the remedy') or diag($out . $err);
};

subtest 'the alias of one shard needs no number' => sub {
	my $pooler = new_pooler(alias_to($one) =~ s/shard5/acme/r);
	my @more = ('--dry-run', '--alias', 'acme');
	($status, $out, $err) = run_shard($program, 'move', arguments($one, $two, $pooler), @more);
	is($status, 0, '--alias acme') or diag($out . $err);
	my ($schema, @rest) = arguments($one, $two, $pooler);
	($status, undef, $err) = run_shard($program, 'move', '--shards', 5, @rest, @more);
	is($status, 2, 'of a list: exit code 2');
	like($err, qr/"acme" needs \{\} in the place of the shard's number/, 'and the error says so');
};

# The second hangs before the pause, and while clients are held.
subtest 'a PgBouncer that hangs does not hold the clients of another' => sub {
	my ($first, $second) = map { new_pooler(alias_to($one)) } 1 .. 2;
	my ($pid) = slurp_file("$second->{dir}/pid") =~ /(\d+)/;
	my $holder = $one->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta5.users IN ROW EXCLUSIVE MODE');
	my $move = start_command('move', 'source: triggers of the fence', arguments($one, $two, $first, $second),
		'--timeout', '20s');
	kill 'STOP', $pid;
	$holder->quit;
	await_text($move, 'not every client was held:');
	like($move->{err}, qr/PgBouncer \Q$second->{dir}\E:6432, alias shard5: SHOW VERSION did not end in time/, 'it is named');
	unlike(slurp_file("$first->{dir}/log"), qr/PAUSE 'shard5'/, 'no client of the other one was held');
	$holder = $one->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta5.users IN ROW EXCLUSIVE MODE');
	kill 'CONT', $pid;
	await('the shard is closed', sub { $one->safe_psql('postgres', 'SELECT step FROM snowflake_move_5.state') eq 'fenced' });
	is(alias_of($_), led_to($one, 1), 'the next try holds all clients') foreach $first, $second;
	kill 'STOP', $pid;
	$holder->quit;
	await('clients of the other one go on on the target', sub { alias_of($first) eq led_to($two) });
	kill 'CONT', $pid;
	is(end_command($move), 0, 'they did so before the one that hung has gone on') or diag($move->{err});
	is(alias_of($second), led_to($two), 'which leads to the target, too');
	is((run_shard($program, 'move', 'insta5', '--from', $one, '--to', $two, '--complete'))[0], 0, '--complete');
};

# A command that runs scripts as ssh does, on a machine where the folder of a PgBouncer is /there. When a script has read
# the sum of the file for the first time, somebody adds a line.
sub command_of
{
	my ($pooler) = @_;
	my $command = "$pooler->{dir}/ssh";
	append_to_file($command, <<"END");
#!/bin/sh
test "\$1" = app3 || exit 255
shift
echo run >> $pooler->{dir}/runs
sh -c "\$(printf %s "\$*" | sed 's,/there/,$pooler->{dir}/,g')"
status=\$?
case "\$*" in *'cksum <'*cat*)
	test -e $pooler->{dir}/added || echo '; \$(touch $pooler->{dir}/run)' >> "$pooler->{file}"
	touch $pooler->{dir}/added
esac
exit \$status
END
	chmod 0755, $command;
	return "$command app3";
}

subtest 'the file of a PgBouncer on another machine' => sub {
	my ($from, $to) = ($two, $one);
	my $pooler = new_pooler(alias_to($from));
	my $file = "$pooler->{dir}/it's here.ini";
	rename $pooler->{file}, $file or die 'rename';
	my $main = slurp_file($pooler->{main}) =~ s/\Q$pooler->{file}\E/$file/r;
	unlink $pooler->{main};
	append_to_file($pooler->{main}, $main);
	chmod 0640, $file;
	$pooler->{file} = $file;
	console($pooler, 'RELOAD');
	my $command = command_of($pooler);
	my @servers = ('insta5', '--from', $from, '--to', $to);
	my @pooler = ('--pgbouncer', $pooler->{dsn}, '--config', "/there/it's here.ini", '--config-command');

	($status, $out, $err) = run_shard($program, 'move', @servers, @pooler, 'exit 7;', '--dry-run');
	is($status, 1, 'a command that fails is an obstacle') or diag($err);
	like($out, qr/\/there\/it's here.ini, by exit 7;: the command has failed with exit status 7\n.*--config-command must run/,
		'with its exit status');
	chmod 0555, $pooler->{dir};
	($status, $out, $err) = run_shard($program, 'move', @servers, @pooler, $command, '--dry-run');
	chmod 0755, $pooler->{dir};
	like($out, qr/by \Q$command\E: the command has failed with exit status 1: .*its folder may not be written to/,
		'so is a folder that may not be written to') or diag($err);
	($status, $out, $err) = run_shard($program, 'move', @servers, @pooler, $command, '--dry-run');
	is($status, 0, 'no obstacle') or diag($out . $err);
	($status, undef, $err) = run_shard($program, 'move', @servers, @pooler[ 0 .. 2 ], 'x.ini', '--config-command', $command);
	ok($status == 2 && $err =~ /--config x.ini needs the whole path/, 'a relative path is wrong usage') or diag($err);

	# The command is killed while clients are held.
	my $text = slurp_file($file);
	my $holder = $from->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta5.users IN ROW EXCLUSIVE MODE');
	my $move = start_command('move', 'source: triggers of the fence', @servers, @pooler, $command, '--timeout', '60s');
	$to->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 DISABLE');
	$holder->quit;
	await_text($move, 'waiting for the last write');
	kill_command($move->{run});
	is(alias_of($pooler), led_to($from, 1), 'the alias is paused');
	ok(-e "$file.snowflake-shard", 'the new file is prepared');
	$to->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 ENABLE');
	my $runs = slurp_file("$pooler->{dir}/runs");
	($status, undef, $err) = run_shard($program, 'move', @servers, '--resume');
	is($status, 2, '--resume does not take the command from the database') or diag($err);
	my ($options) = $err =~ /^HINT:  Give these again if the commands are yours: (--pgbouncer .* --config-command '.*')$/m;
	is(slurp_file("$pooler->{dir}/runs"), $runs, 'it was not run');
	my $resume = join ' ', map { "'$_'" } $program, 'move', shard_command(@servers);
	($status, undef, $err) = run_shard('sh', '-c', "$resume $options --resume");
	is($status, 0, '--resume with the options of the hint') or diag($err);
	is(alias_of($pooler), led_to($to), 'clients go on on the target');
	is(slurp_file($file), ($text =~ s/^shard5 .*\n/alias_to($to)/mer) . "; \$(touch $pooler->{dir}/run)\n",
		'one line has changed, and what was written meanwhile stays');
	ok(!-e "$pooler->{dir}/run", 'no text of the file was run');
	is(sprintf('%o', (stat $file)[2] & oct 777), '640', 'the file keeps its mode');
	is(join(' ', glob "'$pooler->{dir}/*.snowflake-shard'"), '', 'no other file is left');
	is((run_shard($program, 'move', @servers, '--complete'))[0], 0, '--complete');
};

$_->stop foreach $one, $two;
done_testing();
