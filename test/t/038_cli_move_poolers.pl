# snowflake-shard move with several PgBouncers and another router: obstacles to redirecting a PgBouncer are
# reported beforehand; clients of all of them meet no error and find their own rows; after any failure, the
# aliases that stay paused are named; --resume and --abort know all of them without being told again.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PoolerTest;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

my $program = shard_program();
plan skip_all => 'pgbouncer is not installed' unless pgbouncer_program();

# Two servers that log all statements, and a shard on the first.
my $user = getpwuid($<);
my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\nmax_connections = 60\n"
	. "log_statement = all\nlog_min_duration_statement = 0\n";
my ($one, $two) = map { new_server($_, conf => $conf) } qw(one two);
$_->safe_psql('postgres', 'CREATE ROLE web') foreach $one, $two;
$one->safe_psql('postgres', q{
	SELECT snowflake_create_shard(5, 'insta5');
	CREATE TABLE insta5.users (id bigint PRIMARY KEY DEFAULT insta5.next_id(), name text);
	CREATE TABLE insta5.bookings (id bigint PRIMARY KEY DEFAULT insta5.next_id());
	INSERT INTO insta5.users (name) SELECT 'before' FROM generate_series(1, 200)});
my ($status, $out, $err, $rows);

sub arguments
{
	my ($from, $to, @poolers) = @_;
	return ('insta5', '--from', $from, '--to', $to, map { ('--pgbouncer', $_->{dsn}, '--config', $_->{file}) } @poolers);
}

# Stops the cutover after the fence, with all clients held: the subscription is disabled, so that the last write does
# not come. A lock keeps the fence from being prepared until then.
sub hold
{
	my ($node) = @_;
	my $holder = $node->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta5.bookings IN ROW EXCLUSIVE MODE');
	return $holder;
}

sub hold_cutover
{
	my ($move, $holder, $target, $before) = @_;
	await_text($move, ($before // '') . '(?s:.*)source: triggers of the fence');
	$target->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 DISABLE');
	$holder->quit;
	await_text($move, 'waiting for the last write');
	return;
}

sub go_on
{
	my ($target) = @_;
	return $target->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_5 ENABLE');
}

sub last_line
{
	return (split /\n/, $_[0])[-1];
}

# One of two has another name for the server.
my $dir = PostgreSQL::Test::Utils::tempdir_short();
symlink $one->host, "$dir/socket" or die 'symlink';
my $first = new_pooler(alias_to($one));
my $second = new_pooler(alias_to($one, "$dir/socket"));
my $wrong = new_pooler(alias_to($two));
my $empty = new_pooler('');
my $database = new_pooler(alias_to($one) =~ s/dbname=postgres/dbname=template1/r);
# An alias without a host leads to the folder of PgBouncer's own socket.
my $local = new_pooler(alias_to($one) =~ s/host=\S+ //r);
symlink $one->host . '/.s.PGSQL.' . $one->port, "$local->{dir}/.s.PGSQL." . $one->port or die 'symlink';
rename $first->{file}, "$first->{dir}/real.ini" or die 'rename';
chmod 0640, "$first->{dir}/real.ini";
symlink "$first->{dir}/real.ini", $first->{file} or die 'symlink';

# Obstacles: console, file, message. All in one dry run.
append_to_file("$dir/$_->[0]", "[databases]\n$_->[1]") foreach [ 'none.ini', '' ], [ 'twice.ini', alias_to($one) x 2 ],
	[ 'unread.ini', alias_to($one) ], [ 'other.ini', alias_to($two) ];
mkdir "$dir/locked" or die 'mkdir';
append_to_file("$dir/locked/a.ini", "[databases]\n" . alias_to($one));
append_to_file("$dir/secret.ini", "[databases]\n" . alias_to($one));
append_to_file("$dir/relative.ini", "%include $dir/twice.ini\n%include a.ini\n");
append_to_file("$dir/both.ini",
	"%include $wrong->{file}\n%include $dir/unread.ini\n%include $dir/none.ini\n%include $dir/secret.ini\n");
mkdir "$dir/closed" or die 'mkdir';
append_to_file("$dir/closed/a.ini", '');
chmod 0, "$dir/closed";
chmod 0555, "$dir/locked";
chmod 0, "$dir/secret.ini";
my ($reads, $relative, $both) = map { new_pooler(alias_to($one)) } 1 .. 3;
console($reads, "SET conffile = '$dir/secret.ini'");
console($relative, "SET conffile = '$dir/relative.ini'");
console($both, "SET conffile = '$dir/both.ini'");
console($empty, "SET conffile = 'pgbouncer.ini'");
my ($at_one, $at_two) = map { qr/\S+:${\$_->port}\/postgres/ } $one, $two;
my $reads_or_not = qr/so it is not known whether PgBouncer reads \Q$reads->{file}\E/;
my @obstacles = (
	[ "host=$dir port=6432 dbname=pgbouncer", $first->{file},
		qr/PgBouncer \Q$dir\E:6432: its admin console cannot be used: .*No/ ],
	[ $one->connstr('postgres'), $first->{file}, qr/console cannot be used: SHOW VERSION: ERROR:  unrecognized/ ],
	[ $first->{dsn} =~ s/user=.*/user=stats/r, $first->{file},
		qr/cannot be used: PAUSE "pgbouncer": ERROR:  admin access needed/ ],
	[ $first->{dsn}, "$dir/missing.ini", qr/cannot read \Q$dir\E\/missing.ini: No such file/ ],
	[ $first->{dsn}, "$dir/secret.ini", qr/cannot read \Q$dir\E\/secret.ini: Permission denied\n/ ],
	[ $first->{dsn}, "$dir/closed/a.ini", qr/cannot read \Q$dir\E\/closed\/a.ini: Permission denied\n/ ],
	[ $first->{dsn}, $dir, qr/cannot read \Q$dir\E: Is a directory/ ],
	[ $first->{dsn}, "$dir/locked/a.ini", qr/a.ini cannot be replaced: user \S+ may not write to \Q$dir\E\/locked\n/ ],
	[ $first->{dsn}, '/etc/passwd', qr/passwd cannot be replaced: it belongs to root:root, and user \S+ cannot give/ ],
	[ $first->{dsn}, "$dir/none.ini", qr/\Q$dir\E\/none.ini has no alias shard5 in a section \[databases\]/ ],
	[ $first->{dsn}, "$dir/twice.ini", qr/twice.ini has alias shard5 2 times, the second time in line 3/ ],
	[ $first->{dsn}, "$dir/unread.ini",
		qr/does not read \Q$dir\E\/unread.ini: its configuration is \Q$first->{main}\E with/ ],
	[ $first->{dsn}, "$dir/other.ini",
		qr/alias shard5 leads to $at_one, and to $at_two in line 2 of \Q$dir\E\/other.ini/ ],
	[ $wrong->{dsn}, $wrong->{file}, qr/alias shard5 leads to $at_two, which is not the source, $at_one/ ],
	[ $database->{dsn}, $database->{file}, qr/alias shard5 leads to \S+\/template1, which is not the source, $at_one/ ],
	[ $empty->{dsn}, $empty->{file}, qr/it has no alias shard5: SHOW DATABASES does not list it/ ],
	[ $empty->{dsn}, "$dir/unread.ini",
		qr/its conffile is pgbouncer.ini, which depends on the folder where PgBouncer was/ ],
	[ $reads->{dsn}, $reads->{file}, qr/cannot read \Q$dir\E\/secret.ini: Permission denied, $reads_or_not/ ],
	[ $relative->{dsn}, $relative->{file}, qr/\Q$dir\E\/relative.ini includes a.ini, which depends on the folder/ ],
	[ $both->{dsn}, "$dir/unread.ini", qr/alias shard5 is in \Q$wrong->{file}\E, too/ ],
	[ $both->{dsn}, "$dir/none.ini", qr/alias shard5 is in \Q$wrong->{file}\E\n.*Give that file as --config/ ]);
my @pairs = map { ('--pgbouncer', $_->[0], '--config', $_->[1]) } @obstacles;

subtest 'a dry run lists all obstacles' => sub {
	($status, $rows, $err) = shard_json($program, 'move', arguments($one, $two), '--dry-run', @pairs);
	is($status, 1, '--dry-run: exit code 1') or diag($err);
	$out = join("\n", map { $_->{obstacle} } @$rows);
	like($out, $_->[2], "--dry-run: $_->[2]") foreach @obstacles;
	unlike($out, qr/HINT:\s*$/m, '--dry-run: each has a hint');
	unlike($out, qr/whether PgBouncer reads \Q$dir\E\/unread.ini/,
		'--dry-run: another file does not matter when that of the alias is read');
	ok(!glob("$dir/*.snowflake-shard $first->{dir}/*.snowflake-shard"), '--dry-run: no file is made');
	($status, $rows, $err) = shard_json($program, 'move', arguments($one, $two, $first, $second, $local), '--dry-run');
	is("$status " . join("\n", map { $_->{obstacle} } @$rows),
		'0 ', '--dry-run: nothing in the way of three PgBouncers, two with another name of the source');
	($status, $out, $err) = run_shard($program, 'move', arguments($one, $two, $first), '--pgbouncer', 'x', '--dry-run');
	ok($status == 2 && $err =~ /--pgbouncer is given 2 times, and --config 1 time/,
		'a --pgbouncer without --config is wrong usage');
	($status, $out, $err) = run_shard($program, 'move', arguments($one, $two, $wrong));
	ok($status == 1 && $out =~ /is not the source/, 'a move ends at an obstacle, too');
};

subtest 'a move with two PgBouncers under load' => sub {

	# Load through both. While all clients are held, somebody else changes one of the files; then the other router's
	# command runs.
	append_to_file("$dir/load.sql", q{
INSERT INTO insta5.users (name) VALUES ('l' || substr(md5(random()::text), 4)) RETURNING id AS mine \gset
SELECT id AS found FROM insta5.users WHERE id = :mine \gset
});
	my @loads = map { { out => '', err => '', dir => $_->{dir} } } $first, $second;
	foreach my $load (@loads)
	{
		my @pgbench = ('pgbench', '-n', '-c', '4', '-R', '100', '-T', '6', '-f', "$dir/load.sql", shard5_of($load));
		$load->{run} = IPC::Run::start(\@pgbench, '<', \undef, '>', \$load->{out}, '2>', \$load->{err});
	}
	my $switch_command = "env | grep -E '^(SHARD|SCHEMA|HOST|PORT|DBNAME)=' | sort > $dir/env; "
		. qq(psql -XAt -d "$first->{dsn}" -c 'SHOW DATABASES' > $dir/aliases);
	my $move = start_command('move', 'target: rows', arguments($one, $two, $first, $second), '--reversible',
		'--switch-command', $switch_command);
	hold_cutover($move, hold($one), $two);
	like(alias_of($_), qr/\|${\$one->port}\|postgres\|1$/, 'both are paused') foreach $first, $second;
	ok(-e "$first->{dir}/real.ini.snowflake-shard", 'the new file is prepared');
	append_to_file($first->{file}, "shard6 = host=/y\n");
	go_on($two);
	is(end_command($move), 0, 'a move with two PgBouncers') or diag($move->{err});
	like($move->{err}, qr/PgBouncer held its clients for \d+ ms/, 'the pause is printed');
	foreach my $load (@loads)
	{
		$load->{run}->finish;
		is($load->{run}->result(0), 0, 'pgbench ends well') or diag($load->{err});
		unlike("$load->{out}$load->{err}", qr/ERROR|aborted/, 'no client has met an error, or missed its own row');
	}
	my $written = 0;
	$written += $_->{out} =~ /actually processed: (\d+)/ ? $1 : 0 foreach @loads;
	is($two->safe_psql('postgres', "SELECT count(*) FROM insta5.users WHERE name LIKE 'l%'"),
		$written, 'each acknowledged row is there');
	is(alias_of($_), led_to($two), 'the alias leads to the target') foreach $first, $second;
	is(slurp_file($first->{file}), "; kept\n[databases]\nshard55 = host=/x\n" . alias_to($two) . "shard6 = host=/y\n",
		'one line has changed, and what was written meanwhile stays');
	ok(-l $first->{file}, 'a symbolic link to the file stays one');
	is(sprintf('%o', (stat "$first->{dir}/real.ini")[2] & oct 777), '640', 'and the file keeps its mode');
	ok(!-e "$first->{dir}/real.ini.snowflake-shard", 'no other file is left');
	is(slurp_file("$dir/env"),
		sprintf("DBNAME=postgres\nHOST=%s\nPORT=%s\nSCHEMA=insta5\nSHARD=5\n", $two->host, $two->port),
		'--switch-command has the target in its environment');
	like(slurp_file("$dir/aliases"), qr/^shard5\|.*\|1\|\d+$/m, 'and clients are held while it runs');
	is((run_shard($program, 'move', arguments($one, $two), '--complete'))[0], 0, '--complete');
};

subtest 'what has come into the way since the move began is found before anybody is held' => sub {
	my $move = start_command('move', 'target: rows', arguments($two, $one, $first, $second));
	kill 'STOP', $move->{run}{KIDS}[0]{PID};
	rename $second->{file}, "$second->{file}.away" or die 'rename';
	kill 'CONT', $move->{run}{KIDS}[0]{PID};
	is(end_command($move), 3, 'a file that is gone before the cutover: exit code 3');
	like($move->{err}, qr/PgBouncer cannot be led to the target:\n.*cannot read \Q$second->{file}\E/, 'it is named')
		or diag($move->{err});
	unlike($move->{err}, qr/source: fence/, 'and no writer was stopped');
	rename "$second->{file}.away", $second->{file} or die 'rename';
	is((run_shard($program, 'move', arguments($two, $one), '--abort'))[0], 0, '--abort');
};

# A client of the second does not end its transaction: the first goes on meanwhile. Then the second is killed
# between pause and opening.
my ($name_of_first, $name_of_second) = map { qr/PgBouncer \Q$_->{dir}\E:6432, alias shard5/ } $first, $second;
my $goes_on = qr/and its clients wait: snowflake-shard move insta5 --from \S.* --resume goes on$/m;

subtest 'a client that does not end its transaction, and a PgBouncer that is killed' => sub {
	my ($in, $answer, $problem) = ('', '', '');
	my $client = IPC::Run::start([ 'psql', '-XAtq', '-d', shard5_of($second) ], '<', \$in, '>', \$answer, '2>', \$problem);
	$in = "BEGIN;\nSELECT 'begun';\n";
	$client->pump until $answer =~ /begun/;
	my $move = start_command('move', 'source is open again', arguments($two, $one, $first, $second), '--timeout', '3s');
	my $late = qr/PAUSE "shard5" did not end in time: a client has not ended its transaction/;
	like($move->{err},
		qr/not every client was held:\n$name_of_second: $late/,
		'a pause that is late is told');
	is(alias_of($_), led_to($two), 'and all clients go on') foreach $first, $second;
	$in = "COMMIT;\n\\q\n";
	$client->finish;
	hold_cutover($move, hold($two), $one, 'source is open again');
	kill_pooler($second);
	unlink "$second->{dir}/.s.PGSQL.6432", "$second->{dir}/pid";
	go_on($one);
	is(end_command($move), 3, 'a PgBouncer that is killed while it is paused: exit code 3');
	like($move->{err}, qr/open on $at_one, and not every client is led there:\n$name_of_second: /, 'it is named');
	unlike($move->{err}, qr/\Q$first->{dir}\E/, 'the other one is not');
	like(last_line($move->{err}), qr/^alias shard5 of PgBouncer \Q$second->{dir}\E:6432 may be paused, $goes_on/,
		'the last line has the alias and the command that goes on');
	is(alias_of($first), led_to($one), 'the other one goes on');
	start_pooler($second);
	is(alias_of($second), led_to($one), 'started again it leads to the target');
	is((run_shard($program, 'move', arguments($two, $one), '--resume'))[0], 0, '--resume');
	is((run_shard($program, 'move', arguments($two, $one), '--complete'))[0], 0, '--complete');
};

subtest 'RELOAD without effect, and a command that fails' => sub {
	my $holder = hold($one);
	my $switch_command = "echo tried >> $dir/tries; exit \$(cat $dir/code)";
	my @arguments = (arguments($one, $two, $first, $second), '--switch-command', $switch_command);
	my $move = start_command('move', 'triggers of the fence', @arguments, '--timeout', '60s');
	hold_cutover($move, $holder, $two);
	append_to_file("$dir/code", '7');
	my $main = slurp_file($first->{main});
	unlink $first->{main};
	append_to_file($first->{main}, "%include /nonexistent\n$main");
	go_on($two);
	is(end_command($move), 3, 'a command that fails: exit code 3');
	like($move->{err}, qr/^--switch-command has failed with exit status 7: echo/m, 'its exit status is told');
	# Later versions of PgBouncer say themselves that RELOAD has failed.
	like($move->{err},
		qr/$name_of_first: (?:after RELOAD it leads to $at_one, not to $at_two|RELOAD: ERROR: +RELOAD failed)/,
		'so is a RELOAD without effect');
	like($move->{err}, qr/^alias shard5 of PgBouncer \Q$_->{dir}\E:6432 is paused, $goes_on/m, 'clients stay held')
		foreach $first, $second;
	($status, $out, $err) = run_shard($program, 'move', arguments($one, $two), '--abort');
	ok($status == 3 && $err =~ /the shard is open on $at_two\nHINT: .* --resume goes on with the move\.$/m,
		'--abort is refused when the target is open') or diag($err);
	($status, $out, $err) = run_shard($program, 'move', arguments($one, $two), '--complete');
	ok($status == 3 && $err =~ /the move is not at its end\nHINT: .*--resume/, 'so is --complete') or diag($err);
	is(alias_of($first), led_to($one, 1), 'the one that failed stays where it was, paused');
	is(alias_of($second), led_to($two, 1), 'the other one waits for the command');
	unlink "$dir/code";
	append_to_file("$dir/code", '0');
	unlink $first->{main};
	append_to_file($first->{main}, $main);
	($status, $out, $err) = run_shard($program, 'move', arguments($one, $two), '--resume');
	ok($status == 2 && $err =~ /^HINT:  Give it again if it is yours: --switch-command '(.*)'$/m && $1 eq $switch_command,
		'--resume takes no command from the database, and prints it') or diag($err);
	is(slurp_file("$dir/tries"), "tried\n", 'it was not run');
	($status, $out, $err) =
		run_shard($program, 'move', arguments($one, $two), '--resume', '--switch-command', $switch_command);
	is($status, 0, '--resume with it, and without the PgBouncers') or diag($err);
	is(alias_of($_), led_to($two), 'leads all to the target, and lets them go on') foreach $first, $second;
	is(slurp_file("$dir/tries"), "tried\ntried\n", 'the command was run again');
	is((run_shard($program, 'move', arguments($one, $two), '--complete'))[0], 0, '--complete');
};

subtest 'a command that is killed while clients are held' => sub {
	# The command is killed while clients are held. Nobody else may read its record of them.
	$two->safe_psql('postgres', 'ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO web');
	foreach my $way ('--abort', '--resume')
	{
		my $holder = hold($two);
		my $move = start_command('move', 'triggers of the fence', arguments($two, $one, $first, $second), '--timeout', '60s');
		hold_cutover($move, $holder, $one);
		kill_command($move->{run});
		is(alias_of($_), led_to($two, 1), "$way: a command that is killed leaves the aliases paused") foreach $first, $second;
		go_on($one);
		my $kept = 'SELECT count(*) FROM snowflake_move_5.poolers';
		is($two->safe_psql('postgres', "$kept; SET ROLE web; $kept"), "2\n0",
			"$way: only the owner reads the connection strings");
		($status, $rows) = shard_json($program, 'verify', $one, $two);
		my ($command) = map { $_->{hint} =~ /^snowflake-shard (.*?) --resume goes on/ } @$rows;
		($status, $out, $err) = run_shard($program, split(' ', $command), $way);
		is($status, 0, "$way: the command that verify names") or diag($err);
		is(alias_of($_), led_to($way eq '--abort' ? $two : $one), "$way: all clients go on") foreach $first, $second;
		ok(!-e "$first->{dir}/real.ini.snowflake-shard", "$way: no file is left");
	}
	is((run_shard($program, 'verify', $one, $two))[0], 0, 'verify: nothing is left');
	unlike(slurp_file($_->logfile), qr/hushed/, 'no connection string of a console was logged') foreach $one, $two;
};

subtest 'an undo that is killed before its fence' => sub {
	$two->safe_psql('postgres', 'ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM web');
	is((run_shard($program, 'move', arguments($two, $one), '--complete'))[0], 0, '--complete');
	($status, $out, $err) = run_shard($program, 'move', arguments($one, $two, $first, $second), '--reversible');
	is($status, 0, 'move --reversible') or diag("$out$err");
	# It holds the clients, and the records do not tell it.
	console($_, 'PAUSE "shard5"') foreach $first, $second;
	is(alias_of($_), led_to($two, 1), 'the aliases are paused') foreach $first, $second;
	is((run_shard($program, 'move', arguments($one, $two), '--complete'))[0], 0, '--complete, which list names');
	is(alias_of($_), led_to($two), 'all clients go on') foreach $first, $second;
};

chmod 0755, "$dir/locked", "$dir/closed";
$_->stop foreach $one, $two;
done_testing();
