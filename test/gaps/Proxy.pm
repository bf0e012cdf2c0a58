# A proxy between a command and its servers. It listens on a Unix socket for each server, passes all bytes on, and
# calls back before each message that starts work: this is a gap.
#
# The gaps of a server are numbered by their text: "one: COMMIT (3)" is the third time. In a text, numbers, LSNs,
# UUIDs and names of temporary schemas are made equal. A message that is sent again in a loop, with one or two others
# at most between its rounds, is one gap.
#
# While the callback runs, nothing passes. With stall() nothing passes to and from one server until a time.

package Proxy;

use strict;
use warnings;

use Frames qw(take_startup take_message text_of_query text_of_parse startup_parameters);
use IO::Select;
use IO::Socket::UNIX;
use Errno;
use Socket qw(MSG_DONTWAIT MSG_NOSIGNAL SHUT_RDWR SOCK_STREAM);
use Time::HiRes 'time';

my $longest_name = 110;
my $longest_text = 4000;    # of which a name is made

# servers: name => { listen => path of the socket here, upstream => that of the server }
sub new
{
	my ($class, %servers) = @_;
	my $self = bless { servers => \%servers, ends => {}, held => [], select => IO::Select->new() }, $class;
	foreach my $name (keys %servers)
	{
		unlink $servers{$name}{listen};
		my $listener = IO::Socket::UNIX->new(Type => SOCK_STREAM, Local => $servers{$name}{listen}, Listen => 50)
		  or die "$servers{$name}{listen}: $!";
		$self->{listeners}{ fileno $listener } = { socket => $listener, server => $name };
		$self->{select}->add($listener);
	}
	return $self;
}

# Before a run of a command: counts begin anew. on_gap is called with server and name of each gap, and round, which is 1
# for the first. It returns true if the client is killed: then the message was not sent.
sub begin
{
	my ($self, $on_gap) = @_;
	$self->{on_gap} = $on_gap;
	$self->{counts} = {};
	$self->{not_tried} = 0;
	return;
}

# One round of the loop: passes on what there is, waiting for at most so many seconds. Other handles that can be read
# are returned. Most of a trial's time in Perl is spent here, and IO::Select looks at each handle by a method.
sub pass
{
	my ($self, $seconds, @others) = @_;
	my $bits = $self->{select}->bits;
	vec($bits, fileno $_, 1) = 1 foreach @others;
	my $ready = select($bits, undef, undef, $seconds) > 0 ? unpack 'b*', $bits : '';
	my @readable = grep { substr($ready, fileno $_, 1) eq '1' } $ready ne '' ? @others : ();
	for (my $number = index $ready, '1'; $number >= 0; $number = index $ready, '1', $number + 1)
	{
		if (my $listener = $self->{listeners}{$number}) { $self->accept_client($listener) }
		elsif (my $end = $self->{ends}{$number}) { $self->read_from($end) }    # else closed in this round
	}
	$self->send_held() if @{ $self->{held} };
	return @readable;
}

sub stall
{
	my ($self, $server, $seconds) = @_;
	$self->{stalled}{$server} = time() + $seconds;
	return;
}

sub stop
{
	my ($self) = @_;
	my @sessions = map { $_->{session} } values %{ $self->{ends} };
	$self->close_session($_) foreach @sessions;
	return;
}

# Of a killed server or command. A writer, which is a child, has the sockets, too, so that close() alone tells nobody.
sub close_session
{
	my ($self, $session) = @_;
	foreach my $end (grep { defined } @$session{qw(client upstream)})
	{
		delete $self->{ends}{ fileno($end->{socket}) // -1 };
		$self->{select}->remove($end->{socket});
		shutdown $end->{socket}, SHUT_RDWR;
		close $end->{socket};
	}
	return;
}

sub accept_client
{
	my ($self, $listener) = @_;
	my $client = $listener->{socket}->accept or return;
	my $upstream = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $self->{servers}{ $listener->{server} }{upstream});
	return close $client if !$upstream;    # the server is down: libpq finds that it closed the connection
	my %session = (server => $listener->{server}, last => [], statements => {});
	$session{client} = { socket => $client, session => \%session, buffer => '' };
	$session{upstream} = { socket => $upstream, session => \%session };
	foreach my $end (@session{qw(client upstream)})
	{
		$self->{ends}{ fileno $end->{socket} } = $end;
		$self->{select}->add($end->{socket});
	}
	return;
}

sub read_from
{
	my ($self, $end) = @_;
	my $session = $end->{session};
	# A callback may have read it meanwhile.
	return if !defined recv($end->{socket}, my $bytes, 65536, MSG_DONTWAIT) && $!{EAGAIN};
	return $self->close_session($session) if ($bytes // '') eq '';
	if ($end == $session->{upstream}) { $self->send_on($session, 'client', $bytes) }
	else
	{
		$end->{buffer} .= $bytes;
		$self->take_work($session);
	}
	return;
}

# Whole messages of the client. Those of the extended protocol wait for the message that sends them off.
sub take_work
{
	my ($self, $session) = @_;
	my $buffer = \$session->{client}{buffer};
	if (!$session->{is_started})
	{
		my $packet = take_startup($buffer) // return;
		$session->{parameters} = startup_parameters($packet);
		$session->{is_started} = defined $session->{parameters};
		$self->send_on($session, 'upstream', $packet);
	}
	while (my ($type, $message) = take_message($buffer))
	{
		$session->{batch} .= $message;
		if ($type eq 'Q') { $session->{text} = text_of_query($message) }
		elsif ($type eq 'P')
		{
			my ($name, $text) = text_of_parse($message);
			$session->{statements}{$name} = $session->{text} = $text;
		}
		elsif ($type eq 'B')
		{
			my (undef, $name) = unpack 'x5Z*Z*', $message;
			$session->{text} //= $session->{statements}{$name};
		}
		elsif ($type eq 'c') { $session->{text} = 'end of COPY' }
		elsif ($type eq 'F') { $session->{text} = 'call by OID' }
		next if $type =~ /[PBDEC]/;
		my $is_gap = defined $session->{text} && $type =~ /[QSHcF]/;
		my $is_lost = $is_gap && $self->reach_gap($session, delete $session->{text});
		return $self->close_session($session) if $is_lost;
		return if !defined fileno $session->{client}{socket};    # closed in the gap
		$self->send_on($session, 'upstream', delete $session->{batch});
	}
	return;
}

# In their order. Mostly nothing is held.
sub send_on
{
	my ($self, $session, $to, $bytes) = @_;
	return if !@{ $self->{held} } && !$self->is_stalled($session) && send_bytes($session->{$to}{socket}, \$bytes);
	push @{ $self->{held} }, { session => $session, to => $to, bytes => $bytes };
	return;
}

sub is_stalled
{
	my ($self, $session) = @_;
	my $until = $self->{stalled}{ $session->{server} };
	return $until && $until > time();
}

# A server may be stalled, and an end may not read: an apply worker that waits for a lock.
sub send_held
{
	my ($self) = @_;
	my %is_full;
	$self->{held} = [ grep {
		my $socket = $_->{session}{ $_->{to} }{socket};
		my $number = fileno $socket;
		my $is_stalled = $self->is_stalled($_->{session});
		$is_full{$number} = 1 if defined $number && !$is_stalled && !$is_full{$number} && !send_bytes($socket, \$_->{bytes});
		defined $number && ($is_stalled || $is_full{$number}) } @{ $self->{held} } ];
	return;
}

# False if the rest cannot be sent now.
sub send_bytes
{
	my ($socket, $bytes) = @_;
	while (length $$bytes)
	{
		my $sent = send $socket, $$bytes, MSG_DONTWAIT | MSG_NOSIGNAL;
		return !$!{EAGAIN} if !defined $sent;
		substr $$bytes, 0, $sent, '';
	}
	return 1;
}

sub reach_gap
{
	my ($self, $session, $text) = @_;
	my $application = $session->{parameters}{application_name} // $session->{parameters}{fallback_application_name} // '';
	my $name = "$session->{server}: " . equal_text($application, $text);
	return 0 if !has_gap($session, $application, $text) && ++$self->{not_tried};
	my $round = is_repeated($session->{last}, $name) ? 2 : 1;
	$self->{counts}{$name}++ if $round == 1;
	return $self->{on_gap}->($session->{server}, "$name ($self->{counts}{$name})", $round);
}

sub equal_text
{
	my ($application, $text) = @_;
	$text = substr $text, 0, $longest_text;
	$text =~ s/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/U/g;
	$text =~ s{\b[0-9A-F]+/[0-9A-F]+\b}{L}g;
	$text =~ s/\d+/N/g;
	$text =~ s/^\s*--.*//mg;
	$text =~ s/\s+/ /g;
	$text =~ s/^ | $//g;
	$application =~ s/\d+/N/g;
	$text = "$application: $text" if $application ne '' && $application ne 'snowflake-shard';
	return substr $text, 0, $longest_name;
}

# A statement that reads and changes nothing but its own session has no gap: that before the next statement is the same.
# A text can have several, and a function of ours behind set_config().
my $of_session = qr/^(?:(?:SHOW|SET|RESET|BEGIN|SAVEPOINT|RELEASE)\b[^;]*(?:;\s*|\z))+\z
	| ^SELECT\ (?:pg_catalog\.)?(?:set_config|pg_backend_pid)\((?!.*\bsnowflake_\w+\.) | ^SELECT\ oid\ FROM\ pg_database/xis;

# PostgreSQL's own programs: pg_dump reads in one snapshot, and holds its locks from then on. The first LOCK TABLE and
# the statement after it are gaps. Of the workers that copy a table, what makes something.
sub has_gap
{
	my ($session, $application, $text) = @_;
	return 0 if $text =~ $of_session;
	return $text =~ /^(?:CREATE_|DROP_|START_|COPY|end of)/ if $application =~ /^pg_\d+_sync_/;
	return 1 if $application ne 'pg_dump';
	my $is_lock = $text =~ /^LOCK TABLE/;
	my $before = $session->{dump} // '';
	$session->{dump} = $is_lock ? 'locking' : $before eq 'locking' ? 'locked' : $before;
	return $is_lock ? $before eq '' : $before eq 'locking';
}

# Whether the name closes a cycle of at most three: ... A B A B. Keeps the last names.
sub is_repeated
{
	my ($last, $name) = @_;
	push @$last, $name;
	shift @$last if @$last > 6;
	foreach my $length (1 .. 3)
	{
		next if @$last < 2 * $length;
		return 1 if join("\0", @$last[ -$length .. -1 ]) eq join("\0", @$last[ -2 * $length .. -$length - 1 ]);
	}
	return 0;
}

1;
