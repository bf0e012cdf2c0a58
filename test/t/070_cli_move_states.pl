# snowflake-shard move: in each state of a move each verb does what the table of docs/move-failures.md says, and each
# command of a hint can be pasted, and continues or ends the move.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use File::Basename;
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use SplitTest;
use Test::More;

my $program = shard_program();
$ENV{PATH} = dirname($program) . ":$ENV{PATH}";
my $dir = PostgreSQL::Test::Utils::tempdir();

# --- the page ---

my @verbs = ('move', 'move --plan', '--resume', '--abort', '--undo', '--complete', '--hold', '--cutover', 'split',
	'run', 'list');
my %page;
foreach my $line (split /\n/, slurp_file("$FindBin::RealBin/../../docs/move-failures.md"))
{
	my ($state, @cells) = map { s/^ +| +$//gr } split /\|/, $line =~ s/^\|//r;
	@{ $page{$state} }{@verbs} = @cells if @cells == @verbs;
}
my @rows = grep { defined $page{$_}{move} && $page{$_}{move} !~ /^(`move`|---)$/ } sort keys %page;

# Each state by the records of both servers: "s" if the schema is there, the step, "+" for reverse replication, "=" if the
# rows were compared, "!" if the set is held. test/unit/phase_test.cpp goes over all pairs of records.
my %records = (
	'not begun, or aborted'  => 's -',
	'prepared'               => 's:prepared -',
	'copying'                => 's:prepared s:copying',
	'held'                   => 's:prepared! s:ready!',
	'fenced'                 => 's:fenced s:ready',
	'open, not ended'        => 's:fenced s:open',
	'open, ended but for a record' => 's:moved= s:open',
	'moved'                  => 's:moved= s',
	'with reverse replication'        => 's:ready+ s:prepared+',
	'with reverse replication, half dropped' => 's:ready+ s',
	'fenced by an undo'             => 's:ready+ s:fenced+',
	'opened by an undo, not ended'  => 's:open+ s:fenced+',
	'undone'                 => 's s:moved+=',
	'undone, rows may differ' => 's s:moved+',
	'undone with reverse replication' => 's:prepared+ s:ready+',
	'dropped'                => '- s');
is_deeply(\@rows, [ sort keys %records ], 'the page has these states');

# --- two servers, a standby of the first, and a shard for each verb that changes a state ---

my $conf = "wal_level = logical\nmax_wal_senders = 40\nmax_replication_slots = 60\nmax_connections = 100\n"
	. "max_worker_processes = 60\nmax_logical_replication_workers = 50\n";
my @nodes = map { new_server($_, conf => $conf, init => { allows_streaming => 1 }) } qw(one two);
# Before 18 this is max_replication_slots.
foreach my $node (grep { $_->pg_version >= 18 } @nodes)
{
	$node->append_conf('postgresql.conf', 'max_active_replication_origins = 60');
	$node->restart;
}
my @servers = ('--from', $nodes[0], '--to', $nodes[1]);
$nodes[0]->safe_psql('postgres', join '', map { qq{
	SELECT snowflake_create_shard($_, 'insta$_');
	CREATE TABLE insta$_.users (id bigint PRIMARY KEY DEFAULT insta$_.next_id(), name text);
	INSERT INTO insta$_.users (name) VALUES ('a'), ('b');} } 0 .. 21);
my $standby = new_standby($nodes[0], 'standby');
my @sessions = map { $_->background_psql('postgres') } @nodes;

sub records
{
	my ($shard) = @_;
	return join ' ', map {
		my $there = $_->query("SELECT to_regnamespace('insta$shard') IS NOT NULL") eq 't' ? 's' : '-';
		my $record = $_->query("SELECT to_regclass('snowflake_move_$shard.state')") eq '' ? ''
			: $_->query("SELECT ':' || step || CASE WHEN is_reverse THEN '+' ELSE '' END || CASE WHEN is_equal THEN '=' ELSE '' END
				|| CASE WHEN is_held AND compared_at IS NOT NULL AND step IN ('prepared', 'ready') THEN '!' ELSE '' END
				FROM snowflake_move_$shard.state");
		"$there$record";
	} @sessions;
}

# Runs them at the same time, and returns [exit code, output, errors] of each.
sub run_all
{
	my @started = map { background(@$_) } @_;
	$_->{h}->finish foreach @started;
	return map { [ $_->{h}->result(0), $_->{out}, $_->{err} ] } @started;
}

my $flag = "$dir/router-works";
my @switch = ('--switch-command', "test -e $flag");

sub line_of
{
	my ($verb, $shard, @more) = @_;
	my $file = "$dir/plan$shard.json";
	my %entry = (shard => $shard, schema => "insta$shard");
	@entry{qw(from to)} = map { $_->connstr('postgres') } @nodes;
	unlink $file;
	append_to_file($file, encode_json([ \%entry ]));
	return
		  $verb eq 'move --plan' ? [ 'move', '--plan', $file, '--json', @more ]
		: $verb eq 'split' ? [ 'split', '--dry-run', '--from', $nodes[0], '--standby', $standby, '--shards', 0, '--json' ]
		: $verb eq 'run' ? [ 'run', @nodes, '--shards', $shard, '--sql', 'SELECT 1' ]
		: $verb eq 'list' ? [ 'list', @nodes, '--json' ]
		: [ 'move', "insta$shard", @servers, '--json', $verb eq 'move' ? () : $verb, @more ];
}

# The commands of a text, up to the words that say their effects.
sub commands_of
{
	return $_[0] =~ /(snowflake-shard (?:move|split) .*?)(?= (?:goes on|opens|undoes|drops|stops|moves the)\b)/g;
}

# What a verb has done, in the words of the page.
sub cell_of
{
	my ($verb, $shard, $result, $before) = @_;
	my ($status, $out, $err) = @$result;
	my $hints = $err . ($status == 1 ? $out : '');    # of an obstacle
	if ($verb eq 'list')
	{
		my @found = grep { $_->{shard} == $shard } @{ decode_json($out) };
		my $next = ($found[0]{next} // '') =~ /(--[a-z-]+)$/ ? ", `$1`" : '';
		return @found == 1 ? "`$found[0]{state}`$next" : @found . ' rows';
	}
	if ($verb eq 'split')
	{
		($hints) = map { $_->{obstacle} } grep { $_->{obstacle} =~ /snowflake_move_$shard:/ } map { decode_json($_) }
			$out =~ /^ *(\{.*\})/mg;
		$status = defined $hints ? 3 : 0;
	}
	if ($status != 0)
	{
		my %options = map { /(--[a-z-]+)$/ ? ($1 => 1) : () } commands_of($hints);
		return join ': ', 'refused', join(', ', map { "`$_`" } sort keys %options) || ();
	}
	return 'possible' if $verb eq 'run' || $verb eq 'split';
	return 'nothing' if records($shard) eq $before;
	return $out =~ /"state": "(\w+)/ ? $1 : $out;
}

my %hints;    # of a state: option => command

# The verbs of a move look up the table that Phase.ThePageHasTheTable of test/unit compares with every cell of the page.
# So each is tried in every third state, and each state with every third verb.
sub is_tried
{
	my ($state, $verb) = @_;
	return 1 if $verb =~ /^(split|run|list)$/;
	my ($row) = grep { $rows[$_] eq $state } 0 .. $#rows;
	my ($column) = grep { $verbs[$_] eq $verb } 0 .. $#verbs;
	return ($row + $column) % 3 == 0;
}

# The verbs that do not change the state, all states at the same time. shards: state => shard
sub check_unchanging
{
	my (%shards) = @_;
	my @states = sort keys %shards;
	foreach my $verb (@verbs)
	{
		my @asked = grep { $page{$_}{$verb} =~ /^(refused|nothing|possible|`)/ && is_tried($_, $verb) } @states;
		my %before = map { $_ => records($shards{$_}) } @asked;
		# These two commands tell of all shards at once.
		my $is_of_all = $verb =~ /^(split|list)$/;
		my @results = run_all(map { line_of($verb, $shards{$_}) } $is_of_all ? $asked[0] : @asked);
		push @results, ($results[0]) x $#asked if $is_of_all;
		foreach my $i (0 .. $#asked)
		{
			my ($state, $shard) = ($asked[$i], $shards{ $asked[$i] });
			is($before{$state}, $records{$state}, "$state: the state of shard $shard before $verb");
			is(cell_of($verb, $shard, $results[$i], $before{$state}), $page{$state}{$verb}, "$state, $verb: as the page says")
				or diag("@{ $results[$i] }");
			is(records($shard), $records{$state}, "$state, $verb: the state is the same");
			my $text = $verb eq 'split' ? join '', grep { /move_$shard:/ } $results[$i][1] =~ /^.*$/mg : $results[$i][2];
			push @{ $hints{$state}{ /(--[a-z-]+)$/ ? $1 : 'move' } }, $_ foreach grep { /insta$shard\b/ } commands_of($text);
		}
	}
	return;
}

# Verbs that change it, each with a shard of its own: [ state, verb, shard, options ]. If a hint has named the command, it
# is that of the hint, in a shell. options: more, arguments; end, if the command of the hint is not that of the page.
sub check_changing
{
	my (@cases) = @_;
	my @lines;
	foreach my $case (@cases)
	{
		my ($state, $verb, $shard, %options) = @$case;
		my @more = @{ $options{more} // [] };
		is(records($shard), $records{$state}, "$state: the state of shard $shard before $verb");
		my $commands = delete $hints{$state}{$verb};
		my $command = $commands && $commands->[ $shard % @$commands ];
		push @lines, $command ? [ 'sh', '-c', ($command =~ s/\binsta\d+\b/insta$shard/r) . " --json" ]
			: line_of($verb, $shard, @more);
	}
	my @started = map { my %run = (out => '', err => '');
		$run{h} = IPC::Run::start([ $_->[0] eq 'sh' ? @$_ : ($program, shard_command(@$_)) ], '<', \undef, '>', \$run{out},
			'2>', \$run{err}, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
		\%run } @lines;
	$_->{h}->finish foreach @started;
	foreach my $i (0 .. $#cases)
	{
		my ($state, $verb, $shard, %options) = @{ $cases[$i] };
		my $result = [ $started[$i]{h}->result(0), $started[$i]{out}, $started[$i]{err} ];
		my $how = $lines[$i][0] eq 'sh' ? ', as a hint says' : '';
		is(cell_of($verb, $shard, $result, $records{$state}), $options{end} // $page{$state}{$verb}, "$state, $verb$how")
			or diag("@{ $lines[$i] }: @$result");
		isnt(records($shard), $records{$state}, "$state, $verb: the state has gone on");
		my ($now) = grep { $records{$_} eq records($shard) } @rows;
		next if $result->[0] != 0 || !defined $now;
		my ($next) = $page{$now}{list} =~ /, `(--[a-z-]+)`$/;
		is($result->[1] =~ /"next": "[^"]* (--[a-z-]+)"/ ? $1 : undef, $next, "$state, $verb: the JSON has the next command");
	}
	return;
}

sub no_hint_is_left
{
	foreach my $state (@_) { is(join(' ', sort keys %{ $hints{$state} }), '', "$state: all commands of hints were run") }
	return;
}

# --- the states ---

sub start_moves
{
	my ($shards, @more) = @_;
	return map { background('move', "insta$_", @servers, @more) } @$shards;
}

# One after the other: a slot whose first snapshot is made while another move makes its record may have a wrong one
# ("pg_attribute catalog is missing ..."), and then its worker fails for ever.
sub start_moves_in_turn
{
	my ($shards, @more) = @_;
	my @moves;
	foreach my $shard (@$shards)
	{
		push @moves, start_moves([$shard], @more);
		await('it has its slot', sub { has_ended($moves[-1]) || $moves[-1]{err} =~ /target: definition/ });
	}
	return @moves;
}

sub await_state
{
	my ($state, @shards) = @_;
	await("shard $_ is $state", sub { records($_) eq $records{$state} }) foreach @shards;
	return;
}

sub kill_moves
{
	foreach my $move (@_) { $move->{h}->kill_kill(grace => 0); eval { $move->{h}->finish } }
	return;
}

sub await_end_of_sessions
{
	my $sql = q{SELECT count(*) FROM pg_stat_activity
		WHERE application_name ~ '^snowflake-shard' AND backend_type = 'client backend'};
	await('the sessions of killed commands have ended', sub { !grep { $_->query($sql) ne '0' } @sessions });
	return;
}

subtest 'moves are interrupted' => sub {
	# A slot waits for this transaction.
	my $holder = $nodes[0]->background_psql('postgres');
	$holder->query_safe('BEGIN; SELECT txid_current()');
	my @prepared = start_moves([ 1 .. 3 ]);
	# A row of these waits on the target.
	$nodes[0]->safe_psql('postgres', "CREATE FUNCTION insta$_.gate() RETURNS boolean LANGUAGE plpgsql AS
			'BEGIN PERFORM pg_advisory_xact_lock_shared(99); RETURN true; END';
		CREATE TABLE insta$_.gated (n integer PRIMARY KEY CHECK (insta$_.gate())); INSERT INTO insta$_.gated VALUES (1)")
		foreach 4 .. 9, 21;
	my $gate = $nodes[1]->background_psql('postgres');
	$gate->query_safe('SELECT pg_advisory_lock(99)');
	my @copying = start_moves([ 4 .. 6 ], '--reversible');
	await_state('prepared', 1 .. 6);
	kill_moves(@prepared);
	$holder->quit;
	await_state('copying', 4 .. 6);
	kill_moves(@copying);
	await_end_of_sessions();
	my @opened = (start_moves_in_turn([ 10, 11 ], '--reversible', @switch), start_moves([14], @switch));
	foreach my $move (@opened)
	{
		$move->{h}->finish;
		is($move->{h}->result(0), 3, 'a router that does not work') or diag("$move->{out}$move->{err}");
		like($move->{err}, qr/not every client is led there/, 'and why');
	}
	push @{ $hints{'open, not ended'}{'--resume'} }, commands_of($opened[0]{err});
	my @fenced = start_moves_in_turn([ 7 .. 9, 21 ], '--reversible', '--timeout', '60s');
	# The last write comes when the subscriptions are enabled. A move does not begin beside a transaction that has been
	# running for 10 s.
	await_state('copying', 7 .. 9, 21);
	$holder = $nodes[0]->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE insta7.users, insta8.users, insta9.users, insta21.users IN ROW EXCLUSIVE MODE');
	$gate->quit;
	foreach my $move (@fenced)
	{
		await('triggers of the fence', sub { has_ended($move) || $move->{err} =~ /triggers of the fence/ });
	}
	$nodes[1]->safe_psql('postgres', "ALTER SUBSCRIPTION snowflake_move_$_ DISABLE") foreach 7 .. 9, 21;
	$holder->quit;
	await_state('fenced', 7 .. 9, 21);
	kill_moves(@fenced);
	await_end_of_sessions();
	$nodes[1]->safe_psql('postgres', "ALTER SUBSCRIPTION snowflake_move_$_ ENABLE") foreach 7 .. 9, 21;
};

subtest 'sets that are held' => sub {
	$_->{h}->finish foreach start_moves_in_turn([ 17 .. 19 ], '--hold');
	check_unchanging(held => 17);
	check_changing([ 'held', '--cutover', 18 ], [ 'held', '--abort', 19 ], [ 'not begun, or aborted', '--hold', 20 ]);
	no_hint_is_left('held');
};

subtest 'moves that are not at their end' => sub {
	check_unchanging('not begun, or aborted' => 12, prepared => 1, copying => 4, fenced => 7, 'open, not ended' => 10);
	# The records lead to the servers, and not to the command of a router. It is named then.
	my ($resume, @others) = @{ $hints{'open, not ended'}{'--resume'} };
	my ($status, $out, $err) = run_shard('sh', '-c', $others[0]);
	like("$status $err", qr/^2 .*HINT:  Give it again if it is yours: --switch-command '\Q$switch[1]\E'$/s,
		'a command without that of the router names it');
	$hints{'open, not ended'}{'--resume'} = [$resume];
	($status, $out, $err) = run_shard($program, @{ line_of('move --plan', 11) });
	like("$status $err", qr/^2 .*--switch-command/, 'so does the plan');
	# The source alone does not know that the target is open.
	my ($abort) = @{ delete $hints{'open, not ended'}{'--abort'} };
	($status, $out, $err) = run_shard('sh', '-c', $abort);
	like("$status $err", qr/^3 .*the shard is open on .*\nHINT:  .* --resume goes on/s, '--abort, which split has named');
	# As a command that was killed before its last step.
	$nodes[0]->safe_psql('postgres', q{UPDATE snowflake_move_14.state SET step = 'moved', marker = NULL, is_equal = true});
	check_unchanging('open, ended but for a record' => 14);
	append_to_file($flag, '');
	check_changing(
		[ 'not begun, or aborted', 'move', 12, more => ['--reversible'] ],
		[ 'not begun, or aborted', 'move --plan', 13, more => ['--reversible'] ],
		(map { [ 'not begun, or aborted', 'move', $_, more => ['--reversible'] ] } 15, 16),
		(map { [ 'prepared', @$_ ] } [ '--resume', 1 ], [ '--abort', 2 ], [ 'move --plan', 3 ]),
		(map { [ 'copying', @$_ ] } [ '--resume', 4 ], [ '--abort', 5 ], [ 'move --plan', 6 ]),
		(map { [ 'fenced', @$_ ] } [ '--resume', 7 ], [ '--abort', 8 ], [ 'move --plan', 9 ], [ '--cutover', 21 ]),
		[ 'open, not ended', '--resume', 10 ],
		[ 'open, not ended', 'move --plan', 11, more => \@switch ],
		[ 'open, ended but for a record', '--resume', 14 ]);
	no_hint_is_left('prepared', 'copying', 'fenced', 'open, not ended');
};

subtest 'moves at their end' => sub {
	check_unchanging('not begun, or aborted' => 5, moved => 1, 'with reverse replication' => 4);
	my $step = 'UPDATE snowflake_move_6.state SET step =';
	$nodes[1]->safe_psql('postgres', "$step 'fenced'");
	$nodes[1]->safe_psql('postgres', 'DROP SCHEMA snowflake_move_16 CASCADE');
	is((run_shard($program, @{ line_of('--undo', 15, '--switch-command', 'false') }))[0], 3, 'an undo does not lead clients');
	check_unchanging('fenced by an undo' => 6, 'with reverse replication, half dropped' => 16,
		'opened by an undo, not ended' => 15);
	$nodes[1]->safe_psql('postgres', "$step 'prepared'");
	# As a command that was killed between the two commits that begin reverse replication. The next one does the second.
	$nodes[1]->safe_psql('postgres', q{UPDATE snowflake_move_4.state SET step = 'open', is_reverse = false});
	my ($status, $out, $err) = run_shard($program, @{ line_of('--abort', 4) });
	like("$status $err", qr/^3 .*no move .* to be aborted\nHINT:  .* --undo moves the shard back/s, '--abort in between');
	is(records(4), $records{'with reverse replication'}, 'reverse replication has begun');
	# "--complete drops the closed copy. Then move ... moves the shard back."
	push @{ $hints{dropped}{move} }, @{ delete $hints{moved}{move} };
	check_changing(
		[ 'moved', '--complete', 1 ],
		[ 'with reverse replication', '--complete', 4 ],
		[ 'with reverse replication', '--undo', 6 ],
		[ 'with reverse replication, half dropped', '--complete', 16 ],
		[ 'opened by an undo, not ended', '--undo', 15, more => [ '--switch-command', 'true' ] ]);
	no_hint_is_left('moved', 'with reverse replication');
};

subtest 'moves that were undone, or whose old rows were dropped' => sub {
	my @undo = map { [ 'move', "insta$_", @servers, '--undo' ] } 7, 9 .. 13;
	push @$_, '--reversible' foreach @undo[ 2 .. 5 ];    # of shards 10 to 13
	push @$_, @switch foreach @undo[ 2, 3 ];
	is(join(' ', map { $_->[0] } run_all(@undo)), '0 0 0 0 0 0', '--undo');
	check_unchanging(undone => 6, 'undone with reverse replication' => 12, dropped => 1);
	my $compared = 'UPDATE snowflake_move_6.state SET is_equal =';
	$nodes[1]->safe_psql('postgres', "$compared false");
	check_unchanging('undone, rows may differ' => 6);
	$nodes[1]->safe_psql('postgres', "$compared true");
	my ($status, $out, $err) = run_shard($program, @{ line_of('move', 10) });
	like("$status $err", qr/^2 .*--switch-command/, 'no undo without the command of the router');
	check_changing(
		[ 'undone', 'move', 6 ],
		[ 'undone', 'move --plan', 7, more => ['--reversible'] ],
		[ 'undone', '--complete', 9 ],
		[ 'undone with reverse replication', 'move', 10, more => \@switch ],
		[ 'undone with reverse replication', 'move --plan', 11, more => [ @switch, '--reversible' ] ],
		[ 'undone with reverse replication', '--undo', 12, end => 'undone' ],
		[ 'undone with reverse replication', '--complete', 13, end => 'dropped' ],
		[ 'dropped', 'move', 1, end => 'moved' ]);
	no_hint_is_left('undone', 'undone with reverse replication', 'dropped');
};

subtest 'each shard is open on one server, and has its rows' => sub {
	my (undef, $rows) = shard_json($program, 'query', @nodes, '--sql', 'SELECT count(*) AS n FROM users');
	is(join(' ', map { "$_->{shard}:$_->{n}" } @$rows), join(' ', map { "$_:2" } 0 .. 21), 'all rows');
	my (undef, $found) = shard_json($program, 'verify', @nodes);
	is(join("\n", map { "$_->{object}: $_->{problem}" } @$found), '', 'verify finds nothing');
};

subtest 'the copy of an undo whose rows differ is dropped by --complete alone' => sub {
	$nodes[0]->safe_psql('postgres',
		q{SET session_replication_role = replica; DELETE FROM insta11.users WHERE name = 'a'});
	my @move = ('move', 'insta11', @servers, @switch);
	my ($status, $out, $err) = run_shard($program, @move, '--undo');
	like("$status $err", qr/^1 .*insta11\.users/s, '--undo finds the difference');
	($status, $out, $err) = run_shard($program, @move);
	like("$status $out", qr/^1 \S+: shard 11, schema insta11, has moved to \S+\n +HINT: .* drops the closed copy\.$/,
		'the move is refused');
	is(records(11), 's s:moved+', 'the copy is still there');
	is($nodes[1]->safe_psql('postgres', 'SELECT count(*) FROM insta11.users'), 2, 'with the row that the shard lacks');
	is((run_shard('sh', '-c', commands_of($out)))[0], 0, 'the command of the hint');
	is(records(11), 's -', 'it is dropped');
};

$_->quit foreach @sessions;
$_->stop foreach $standby, @nodes;
done_testing();
