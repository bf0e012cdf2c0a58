# A trial: a verb runs, something is done in one gap, and then is looked at what must hold.

package Trial;

use strict;
use warnings;

use Actions;
use Command;
use JSON::PP;
use ShardTest ();
use Time::HiRes qw(time usleep);
use Verbs;
use Writer;

my $most_commands = 6;      # that "list" may name one after the other
my $stall = 3.5;            # seconds
my $blocked_at_most = 2;    # seconds: --timeout 1s and one more

# folder: that of this file. Returns the faults, each a line; undef if the gap was not reached.
sub new
{
	my ($class, $fleet, $verb, $folder) = @_;
	return bless { fleet => $fleet, verb => $verb, folder => $folder, program => ShardTest::shard_program_if_built() }, $class;
}

# The gaps of the verb in their order. Rounds of a loop behind the first are one more gap.
sub gaps
{
	my ($self) = @_;
	$self->begin();
	my (@gaps, %is_known);
	my $not_tried = 0;
	my $run = $self->run([ $self->words() ], sub {
		my ($server, $gap, $round) = @_;
		$not_tried = $self->{fleet}{proxy}{not_tried};
		$gap .= ' last' if $round > 1;
		push @gaps, $gap unless $is_known{$gap}++;
		return 0; });
	return { gaps => \@gaps, status => $run->{status}, err => $run->{err}, not_tried => $not_tried };
}

sub words { my ($self) = @_; return $self->{verb}{words}->($self->{fleet}) }

sub run
{
	my ($self, $words, $on_gap) = @_;
	return Command::run($self->{fleet}{proxy}, [ $self->{program}, @$words ], $on_gap);
}

# Servers as at the beginning, and the verb's prepared state.
sub begin
{
	my ($self) = @_;
	$self->{fleet}->reset_servers($self->{verb}{is_move} && $self->{fleet}{pooler});
	my ($first) = $self->{verb}{prepare} ? $self->{verb}{prepare}->($self->{fleet}) : ();
	return unless $first;
	my $text = $first->{killed_at};
	my $run = $self->run($first->{words}, sub {
		my ($server, $gap, $round, $run) = @_;
		return $text && $gap =~ $text && kill 'KILL', $run->{pid}; });
	die "$self->{verb}{name} is not prepared: @{ $first->{words} }: $run->{status} $run->{err}"
	  if $text ? $run->{status} ne 'signal 9' : $run->{status} ne 0;
	$self->{fleet}->canaries();
	return;
}

# --- the kinds of actions ---

sub try_exchange
{
	my ($self, $gap, $name) = @_;
	my $fleet = $self->{fleet};
	my $parts = Actions::parts_of("$self->{folder}/exchange/$name.sql");
	my @tables = @{ $self->{verb}{tables} };
	$self->begin();
	$fleet->try_sql($_, 'mallory', 'CALL mallory.plant_functions()') foreach qw(one two);
	my $reached = 0;
	my $run = $self->run([ $self->words() ], $self->in_gap($gap, sub {
		$reached = Actions::exchange($fleet, $parts->{first}, @tables);
		return 0; }, sub { Actions::exchange($fleet, $parts->{next}, @tables); 0 }));
	return unless $reached;
	Actions::exchange($fleet, $parts->{next}, @tables);
	$fleet->try_sql($_, 'web', 'SELECT insta5.other_id()') foreach qw(one two);
	my @faults = map { "code of mallory ran: $_" } grep { !$self->may_note($_) } $fleet->canaries();
	push @faults, 'it did not end' if $run->{is_late};
	return [ @faults, $self->owners() ];
}

# Before 16 the workers of a subscription write as a superuser, and --trust-owners says that they may.
sub may_note
{
	my ($self, $note) = @_;
	return 1 if $note =~ / as mallory in /;
	return $note =~ / in logical replication/ && Verbs::needs_trust($self->{fleet}) && $self->{verb}{is_move};
}

# What mallory made is mallory's.
sub owners
{
	my ($self) = @_;
	my $sql = q{SELECT pg_describe_object(c, o, 0) || ' belongs to ' || r::regrole FROM (
		SELECT 'pg_proc'::regclass, oid, proowner FROM pg_proc WHERE pronamespace = to_regnamespace('insta5')
			AND proname IN ('other_id', 'count_posts')
		UNION ALL SELECT 'pg_class'::regclass, oid, relowner FROM pg_class WHERE relnamespace = to_regnamespace('insta5')
			AND relkind IN ('r', 'p', 'm', 'v')) AS o (c, o, r) WHERE r <> 'mallory'::regrole};
	return map { $self->{fleet}->column($_, $sql) } qw(one two);
}

sub try_kill
{
	my ($self, $gap, $name) = @_;
	my $fleet = $self->{fleet};
	$self->begin();
	my $writer = $self->start_writer();
	my $reached = 0;
	my $run = $self->run([ $self->words() ],
		$self->in_gap($gap, sub { $reached++; Actions::kill_part($name, $fleet, $_[0]) }));
	my @faults = ($run->{is_late} ? 'it did not end' : (), $self->come_to_rest($run, 1));
	return unless $self->end_writer($writer, \@faults) && $reached;
	return \@faults;
}

sub try_stall
{
	my ($self, $gap, $name) = @_;
	my $fleet = $self->{fleet};
	$self->begin();
	my $writer = $self->start_writer();
	my $stalled;
	my $run = $self->run([ $self->words() ], $self->in_gap($gap, sub {
		my ($run, $server) = @_;
		$stalled = $server;
		$fleet->{proxy}->stall($server, $stall);
		return 0; }));
	my @faults = $run->{is_late} ? 'it did not end' : ();
	usleep(100_000);    # for a write behind it
	push @faults, "it does not name server $stalled, which did not answer"
	  if $stalled && $run->{status} ne 0 && $run->{err} !~ m{\Q$fleet->{dir}/$stalled\E};
	push @faults, $self->come_to_rest($run, 1);
	$self->end_writer($writer, \@faults);
	push @faults, sprintf('writes were blocked for %.1f s', $writer->longest_pause())
	  if $writer && $writer->longest_pause() > $blocked_at_most;
	return $stalled ? \@faults : undef;
}

sub try_change
{
	my ($self, $gap, $name) = @_;
	my $fleet = $self->{fleet};
	my $parts = Actions::parts_of("$self->{folder}/change/$name.sql");
	$self->begin();
	my $writer = $self->start_writer();
	my ($reached, $changed) = (0);
	my $run = $self->run([ $self->words() ],
		$self->in_gap($gap, sub { $reached++; $changed = Actions::change($fleet, $parts); 0 }));
	my @faults = $run->{is_late} ? 'it did not end' : ();
	push @faults, "it failed without a hint: " . last_lines($run->{err}) if $run->{status} ne 0 && $run->{err} !~ /HINT|--resume|--abort/;
	push @faults, $self->come_to_rest($run, 0);
	if ($changed)
	{
		my @answers = map { $fleet->column($_, $parts->{question}) } $self->places();
		push @faults, "the change on server $changed, which was acknowledged, is not there" if !grep { $_ } @answers;
	}
	$self->end_writer($writer, \@faults);
	return $reached ? \@faults : undef;
}

# A callback for the proxy: act() once at the gap, then next() at the gap behind it on the same server.
sub in_gap
{
	my ($self, $wanted, $act, $next) = @_;
	my ($is_last) = $wanted =~ s/ last$//;
	my ($done, $acted) = (0);
	return sub {
		my ($server, $gap, $round, $run) = @_;
		return 0 if $done > 1 || $self->{is_waiting};
		if ($done == 1)
		{
			return 0 if $server ne $acted;
			$done = 2;
			return $next ? $next->($run) : 0;
		}
		return 0 if $gap ne $wanted || $is_last && $round == 1;
		($done, $acted) = (1, $server);
		$self->wait_for_last_round() if $is_last;
		return $act->($run, $server);
	};
}

# Meanwhile what the loop waits for becomes true.
sub wait_for_last_round
{
	my ($self) = @_;
	$self->{is_waiting} = 1;
	Command::pass_until($self->{fleet}{proxy}, 0.3, sub { 0 });
	$self->{is_waiting} = 0;
	return;
}

# --- what must hold in the end ---

# Servers on which the shard can be written to.
sub places
{
	my ($self) = @_;
	my ($rows) = $self->listed();
	my %ports = map { ("$self->{fleet}{dir}/$_" => $_) } qw(one two);
	return grep { defined } map { my $at = $_->{server}; (map { $ports{$_} } grep { $at =~ /^\Q$_\E[:\/]/ } keys %ports)[0] }
	  grep { $_->{state} =~ /^open/ } @$rows;
}

# The rows of shard 5 in list, and the fault if there is one.
sub listed
{
	my ($self) = @_;
	my $run = $self->run([ 'list', Verbs::both($self->{fleet}), '--json' ]);
	my $rows = eval { decode_json($run->{out}) };
	return ([], "list: $run->{status} $run->{err}") if !$rows || $run->{status} ne 0;
	return [ grep { $_->{shard} == 5 } @$rows ];
}

# The commands that the verb and list name, until the shard is at rest; then those that remove what is left of the move.
sub come_to_rest
{
	my ($self, $run, $is_killed) = @_;
	return $self->repeat($run) if $self->{verb}{repeats};
	my $is_at_end = 0;
	my @told;
	foreach (1 .. $most_commands)
	{
		my ($rows, $fault) = $self->listed();
		return $fault if $fault;
		return 'list shows ' . @$rows . ' rows of the shard' if @$rows != 1;
		my ($state, $next) = @{ $rows->[0] }{qw(state next)};
		$is_at_end = $state =~ /^open/;
		last if $is_at_end && !$next;
		$next .= ' --timeout 5s' if $next =~ /--resume/;
		$next .= ' --trust-owners' if $next =~ /move .*--resume/ && Verbs::needs_trust($self->{fleet});
		my $ended = $self->shell($next);
		push @told, "$state: $ended->{status} " . last_lines($ended->{err});
		$next = $ended->{err} =~ /(snowflake-shard (?:move|split) [^\n]*? --abort)\b/ ? $1 : undef;
		push @told, "--abort: $_->{status} " . last_lines($_->{err}) foreach $ended->{status} ne 0 && $next ? $self->shell($next) : ();
		last if $ended->{is_late};
	}
	my @faults = $is_at_end ? () : "it does not come to rest: @told";
	if ($self->{verb}{last} && $self->has_record_of_split())
	{
		my $ended = $self->run([ $self->{verb}{last}->($self->{fleet}) ]);
		push @faults, "--drop-rest: $ended->{status} " . last_lines($ended->{err}) if $ended->{status} ne 0;
	}
	return (@faults, $self->left_objects(), $self->findings(), $self->{verb}{check} ? $self->{verb}{check}->($self->{fleet}, $is_killed) : ());
}

# Without the steps.
sub last_lines
{
	my ($text) = @_;
	$text =~ s/^snowflake-shard: (?:source|target|both): .*\n//mg;
	$text =~ s{/\S+/}{.../}g;
	return $text;
}

sub shell
{
	my ($self, $command) = @_;
	my ($folder) = $self->{program} =~ m{(.*)/};
	local $ENV{PATH} = "$folder:$ENV{PATH}";
	return Command::run($self->{fleet}{proxy}, [ 'sh', '-c', $command ]);
}

sub repeat
{
	my ($self, $run) = @_;
	my @faults;
	if ($run->{status} !~ /^[01]$/)
	{
		my $again;
		foreach (1 .. 3) { $again = $self->run([ $self->words() ]); last if $again->{status} =~ /^[01]$/ }
		push @faults, "the same command, given again: $again->{status} $again->{err}" if $again->{status} !~ /^[01]$/;
	}
	push @faults, $self->{verb}{check}->($self->{fleet}, 1) if $self->{verb}{check};
	if ($self->{verb}{is_global})
	{
		foreach my $verb ('verify', 'drop')
		{
			next if $verb eq 'verify' && $self->{verb}{name} =~ /drop/;
			Command::pass_until($self->{fleet}{proxy}, 0.3, sub { 0 });
			my $ended = $self->run([ Verbs::global($self->{fleet}, $verb) ]);
			push @faults, "global $verb: $ended->{status} $ended->{out}$ended->{err}" if $ended->{status} ne 0;
		}
	}
	return (@faults, $self->left_objects(), $self->findings());
}

sub has_record_of_split
{
	my ($self) = @_;
	my $sql = q{SELECT 1 WHERE to_regnamespace('snowflake_split') IS NOT NULL};
	return scalar(map { $self->{fleet}->column($_, $sql) } qw(one two));
}

sub left_objects
{
	my ($self) = @_;
	my $sql = q{SELECT 'publication ' || pubname FROM pg_publication
		UNION ALL SELECT 'subscription ' || subname FROM pg_subscription
			WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
		UNION ALL SELECT 'slot ' || slot_name FROM pg_replication_slots WHERE slot_type = 'logical' AND NOT temporary
		UNION ALL SELECT DISTINCT 'trigger ' || tgname FROM pg_trigger WHERE tgname ~ '^snowflake'
		UNION ALL SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname ~ '^snowflake_' AND nspname <> 'snowflake_internal'};
	return map { my $name = $_; map { "left on server $name: $_" } $self->{fleet}->column($name, $sql) } qw(one two);
}

sub findings
{
	my ($self) = @_;
	my $run = $self->run([ 'verify', Verbs::both($self->{fleet}), '--json' ]);
	my $rows = eval { decode_json($run->{out}) } // return "verify: $run->{status} $run->{err}";
	return map { "verify: $_->{object}: $_->{problem}" } @$rows;
}

# --- the writer ---

sub start_writer
{
	my ($self) = @_;
	return unless $self->{verb}{is_move};
	my $fleet = $self->{fleet};
	my $writer = Writer->start("$fleet->{dir}/journal",
		map { sprintf 'dbi:Pg:host=%s;port=%s;dbname=app', $_->host, $_->port } @{ $fleet->{nodes} }{qw(one two)});
	Command::pass_until($fleet->{proxy}, 10, sub { -s "$fleet->{dir}/journal" });
	return $writer;
}

# True if it wrote, or was not to.
sub end_writer
{
	my ($self, $writer, $faults) = @_;
	return 1 unless $writer;
	my @places = $self->places();
	my $journal = $writer->stop();
	my %count;
	my $sql = q{SELECT u.name FROM insta5.users AS u JOIN insta5.posts ON user_id = u.id WHERE u.name ~ '^w[0-9]+$'};
	$count{$_}++ foreach map { $self->{fleet}->column($_, $sql) } @places;
	my @lost = grep { !$count{$_} } @{ $journal->{acknowledged} };
	my @twice = grep { $count{$_} != 2 } keys %count;
	push @$faults, 'an error: ' . $journal->{errors}[0] if @{ $journal->{errors} };
	push @$faults, scalar(@lost) . ' acknowledged transactions are lost' if @lost;
	push @$faults, scalar(@twice) . ' transactions are there in half, or twice' if @twice;
	return 1;
}

1;
