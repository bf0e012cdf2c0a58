# A trial: a verb runs, and something is done in one gap. Rest.pm says what must hold then.

package Trial;

use strict;
use warnings;

use parent 'Rest';

use Actions;
use Command;
use ShardTest ();
use Time::HiRes qw(time usleep);
use Verbs;
use Writer;

my $stall = 3.5;            # seconds
my $blocked_at_most = 2;    # seconds: --timeout 1s and one more; from when the server answers that is to open again

# folder: that of this file. Returns the faults, each a line; undef if the gap was not reached.
sub new
{
	my ($class, $fleet, $verb, $folder) = @_;
	my $program = ShardTest::shard_program_if_built();
	return bless { fleet => $fleet, verb => $verb, folder => $folder, program => $program }, $class;
}

# The gaps of the verb in their order. Rounds of a loop after the first are one more gap.
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

# Servers as at the beginning, and the verb's prepared state.
sub begin
{
	my ($self) = @_;
	undef @$self{qw(at_rest writer)};
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

# Before 16 the workers of a subscription write as a role of the move, which has the rights of mallory alone.
sub may_note
{
	my ($self, $note) = @_;
	return 1 if $note =~ / as mallory in /;
	return $note =~ / as snowflake_move_\w+ in logical replication/;
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
	usleep(100_000);    # for a write after it
	push @faults, "it does not name server $stalled, which did not answer"
	  if $stalled && $run->{status} ne 0 && $run->{err} !~ m{\Q$fleet->{dir}/$stalled\E};
	push @faults, $self->come_to_rest($run, 1);
	$self->end_writer($writer, \@faults);
	# Once a standby may be promoted, the old server cannot open again before the standby has answered; nor while the COMMIT that
	# opens the target has no answer, because nobody knows then whether it is open.
	my $verb = $self->{verb}{name};
	my $closed = $verb =~ /split/ ? qr/^(?:one|two)$/ : $verb =~ /undo/ ? qr/^two$/ : qr/^one$/;
	my $longest = $blocked_at_most + (($stalled // '') =~ $closed || $gap =~ /: COMMIT / ? $stall : 0);
	push @faults, sprintf('writes were blocked for %.1f s', $writer->longest_pause())
	  if $writer && $writer->longest_pause() > $longest;
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
	$self->{printed} = '';
	my $run = $self->run([ $self->words() ],
		$self->in_gap($gap, sub { $reached++; $changed = Actions::change($fleet, $parts); 0 }));
	my @faults = $run->{is_late} ? 'it did not end' : ();
	push @faults, 'it failed without a hint: ' . Rest::last_lines($run->{err})
	  if $run->{status} ne 0 && $run->{err} !~ /HINT|--resume|--abort/;
	push @faults, $self->come_to_rest($run, 0);
	if ($changed)
	{
		my @places = $self->places();
		my $is_there = sub { scalar grep { $_ } map { $fleet->column($_, $parts->{question}) } @places };
		my $told = ($parts->{told} // '') =~ s/\s+\z//r;
		if (!$is_there->() && $told && index($self->{printed}, $told) >= 0)
		{
			$fleet->try_sql($_, 'mallory', $told) foreach @places;
		}
		# A change of the definition between its last comparison, or the promotion, and the opening.
		my $is_told = $self->{printed} =~ /the definition of (?:the )?shard\b.* has been changed since it was closed/
		  || $self->{printed} =~ /the definitions of shard\b.* differ: one of them was changed since the promotion/;
		push @faults, "the change on server $changed, which was acknowledged, is not there: " . Rest::last_lines($run->{err})
		  if !$is_told && !$is_there->();
	}
	$self->end_writer($writer, \@faults);
	return $reached ? \@faults : undef;
}

# A callback for the proxy: act() once at the gap, then next() at the gap after it on the same server.
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
		$self->{writer}->hurry() if $self->{writer};
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

# --- the writer ---

sub start_writer
{
	my ($self) = @_;
	return unless $self->{verb}{is_move};
	my $fleet = $self->{fleet};
	my $writer = Writer->start("$fleet->{dir}/journal",
		map { sprintf 'dbi:Pg:host=%s;port=%s;dbname=app', $_->host, $_->port } @{ $fleet->{nodes} }{qw(one two)});
	Command::pass_until($fleet->{proxy}, 10, sub { -s "$fleet->{dir}/journal" });
	return $self->{writer} = $writer;
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
