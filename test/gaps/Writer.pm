# A client that writes to the shard in a process of its own, on whichever server takes the rows, and notes each
# transaction that was acknowledged. A transaction is a user and two posts. Each takes processor time on both servers, so
# they come quickly only where most can go wrong: at a gap, while the shard is closed, and after it.

package Writer;

use strict;
use warnings;

use DBD::Pg;
use DBI;
use POSIX ();
use PostgreSQL::Test::Utils;
use Time::HiRes qw(time usleep);

my $pause = 25_000;    # microseconds
my $short_pause = 5_000;
my $quick_ones = 20;

# places: connection strings of DBI
sub start
{
	my ($class, $file, @places) = @_;
	unlink $file, "$file.stop";
	local $SIG{USR1} = 'IGNORE';    # until the process has its own answer
	my $pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		$SIG{PIPE} = 'IGNORE';
		eval { write_rows($file, @places) };
		POSIX::_exit(0);
	}
	return bless { pid => $pid, file => $file }, $class;
}

# At a gap: a transaction now, and some with short pauses.
sub hurry
{
	my ($self) = @_;
	kill 'USR1', $self->{pid};
	return;
}

# { acknowledged => [tokens], doubtful => { token => 1 }, times => [of the acknowledgements], errors => [...] }
sub stop
{
	my ($self) = @_;
	return $self->{journal} if $self->{journal};
	append_to_file("$self->{file}.stop", '');
	waitpid $self->{pid}, 0;
	my %journal = (acknowledged => [], doubtful => {}, times => [], errors => []);
	foreach my $line (-e $self->{file} ? split /\n/, slurp_file($self->{file}) : ())
	{
		my ($kind, $token, $more) = split ' ', $line, 3;
		push @{ $journal{acknowledged} }, $token if $kind eq 'done';
		push @{ $journal{times} }, $more if $kind eq 'done';
		$journal{doubtful}{$token} = 1 if $kind eq 'doubt';
		push @{ $journal{errors} }, "$token: $more" if $kind eq 'error';
	}
	return $self->{journal} = \%journal;
}

# The longest time without an acknowledgement, in seconds.
sub longest_pause
{
	my ($self) = @_;
	my @times = @{ $self->{journal}{times} };
	my ($longest) = sort { $b <=> $a } map { $times[$_] - $times[ $_ - 1 ] } 1 .. $#times;
	return $longest // 0;
}

sub write_rows
{
	my ($file, @places) = @_;
	open my $log, '>', $file or die "$file: $!";
	$log->autoflush(1);
	my ($parent, $place) = (getppid(), 0);
	my @sessions;
	my $quick = 0;
	local $SIG{USR1} = sub { $quick = $quick_ones };    # it ends a pause, too
	for (my $n = 0; !-e "$file.stop" && getppid() == $parent; $n++)
	{
		my $session = $sessions[$place] //= DBI->connect($places[$place], scalar getpwuid($<), '',
			{ RaiseError => 0, PrintError => 0, PrintWarn => 0, pg_server_prepare => 0 });
		if (!$session)
		{
			$place = ($place + 1) % @places;
			usleep(10_000);
			next;
		}
		my $done = $session->do(qq{BEGIN; WITH u AS (INSERT INTO insta5.users (name) VALUES ('w$n') RETURNING id)
			INSERT INTO insta5.posts (user_id, body) SELECT id, 'w$n ' || i FROM u, generate_series(1, 2) AS i; COMMIT});
		my $state = $session->state // '';
		if (defined $done)
		{
			print $log "done w$n ", time(), "\n";
			usleep($quick > 0 ? $short_pause : $pause);
			$quick-- if $quick > 0;
			next;
		}
		$quick = $quick_ones;
		my $error = $session->errstr =~ s/\s+/ /gr;
		# Closed, moved away, not there yet, or a copy that has no indexes yet.
		my $is_expected = $state =~ /^(?:25006|42P01|3F000|42883|42P10|2200H|55000|40|55P03|57)/;
		# The session is lost: by a shutdown or a crash the transaction may be committed or not.
		if (!$session->ping) { print $log "doubt w$n\n" }
		elsif (!$is_expected) { print $log "error w$n $error\n" }
		$sessions[$place] = undef if !$session->ping || !$session->do('ROLLBACK');
		$place = ($place + 1) % @places;
		usleep(3_000);
	}
	return;
}

1;
