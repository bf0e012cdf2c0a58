# What must hold when a verb has ended or was killed: the commands that the command itself names lead to a shard at
# rest, nothing is left that no record names, and verify finds nothing.

package Rest;

use strict;
use warnings;

use Command;
use JSON::PP;
use Verbs;

my $most_commands = 6;    # that "list" may name one after the other

sub words { my ($self) = @_; return $self->{verb}{words}->($self->{fleet}) }

# Arguments of the command, and what to do in each gap.
sub run
{
	my ($self, $words, $on_gap) = @_;
	return $self->run_program([ $self->{program}, @$words ], $on_gap);
}

# printed: the standard error of all commands. The writer writes quickly while the fence of a move or split closes.
sub run_program
{
	my ($self, $words, $on_gap) = @_;
	my $run = Command::run($self->{fleet}{proxy}, $words, sub {
		$self->{writer}->hurry() if $self->{writer} && $_[1] =~ /\.(?:set_body|close)\(/;
		return $on_gap && $on_gap->(@_); });
	$self->{printed} .= $run->{err};
	return $run;
}

# Servers on which the shard can be written to: of the last list at rest, or of one that is made now.
sub places
{
	my ($self) = @_;
	my $rows = $self->{at_rest} // ($self->listed())[0];
	my %ports = map { ("$self->{fleet}{dir}/$_" => $_) } qw(one two);
	return map { my $at = $_->{server}; map { $ports{$_} } grep { $at =~ /^\Q$_\E[:\/]/ } keys %ports }
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
		if ($is_at_end && !$next) { $self->{at_rest} = $rows; last }
		$next .= ' --timeout 5s' if $next =~ /--(?:resume|cutover)/;
		my $ended = $self->shell($next);
		push @told, "$state: $ended->{status} " . last_lines($ended->{err});
		$next = $ended->{err} =~ /(snowflake-shard (?:move|split) [^\n]*? --abort)\b/ ? $1 : undef;
		my $aborted = $ended->{status} ne 0 && $next ? $self->shell($next) : undef;
		push @told, "--abort: $aborted->{status} " . last_lines($aborted->{err}) if $aborted;
		last if $ended->{is_late};
	}
	my @faults = $is_at_end ? () : "it does not come to rest: @told";
	if ($self->{verb}{last} && $self->has_record_of_split())
	{
		undef $self->{at_rest};
		my $ended = $self->run([ $self->{verb}{last}->($self->{fleet}) ]);
		# A change can have lifted the fence of a table.
		if ($ended->{err} =~ /(\S+): table .*\nHINT:  (.*); closes it\./)
		{
			my ($at, $statement) = ($1, $2);
			my ($server) = grep { $at =~ /^\Q$self->{fleet}{dir}\E\/$_\b/ } qw(one two);
			$self->{fleet}->try_sql($server, scalar getpwuid($<), $statement);
			$ended = $self->run([ $self->{verb}{last}->($self->{fleet}) ]);
		}
		push @faults, "--complete: $ended->{status} " . last_lines($ended->{err}) if $ended->{status} ne 0;
	}
	push @faults, $self->{verb}{check}->($self->{fleet}, $is_killed) if $self->{verb}{check};
	return (@faults, $self->left_objects(), $self->findings());
}

# Without the steps.
sub last_lines
{
	my ($text) = @_;
	$text =~ s/^(?:[\d:]+ )?snowflake-shard: (?:source|target|both): .*\n//mg;
	$text =~ s{/\S+/}{.../}g;
	return $text;
}

sub shell
{
	my ($self, $command) = @_;
	my ($folder) = $self->{program} =~ m{(.*)/};
	local $ENV{PATH} = "$folder:$ENV{PATH}";
	return $self->run_program([ 'sh', '-c', $command ]);
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
	if ($self->{verb}{is_global} && $self->{verb}{name} ne 'global remove')
	{
		foreach my $verb ('verify', 'remove')
		{
			Command::pass_until($self->{fleet}{proxy}, 0.3, sub { 0 });
			my $ended = $self->run([ Verbs::global($self->{fleet}, $verb, @{ $self->{verb}{tables} }) ]);
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
		UNION ALL SELECT 'schema ' || nspname FROM pg_namespace
			WHERE nspname ~ '^snowflake_' AND nspname <> 'snowflake_internal'};
	return map { my $name = $_; map { "left on server $name: $_" } $self->{fleet}->column($name, $sql) } qw(one two);
}

sub findings
{
	my ($self) = @_;
	my $run = $self->run([ 'verify', Verbs::both($self->{fleet}), '--json' ]);
	my $rows = eval { decode_json($run->{out}) } // return "verify: $run->{status} $run->{err}";
	return map { "verify: $_->{object}: $_->{problem}" } @$rows;
}

1;
