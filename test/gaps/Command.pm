# snowflake-shard behind the proxy: one run of it, with something done in a gap.

package Command;

use strict;
use warnings;

use POSIX qw(:sys_wait_h);
use Time::HiRes 'time';

my $longest = 60;    # seconds

# Runs the words, and passes the bytes of all sessions meanwhile. on_gap is called with server, gap and round, and with
# the run: { pid, out, err, status, is_late }, which is returned.
sub run
{
	my ($proxy, $words, $on_gap) = @_;
	my %run = (out => '', err => '', start => time());
	pipe my $out, my $to_out or die "pipe: $!";
	pipe my $err, my $to_err or die "pipe: $!";
	$proxy->begin(sub { $on_gap && $on_gap->(@_, \%run) });
	$run{pid} = fork() // die "fork: $!";
	if ($run{pid} == 0)
	{
		open STDIN, '<', '/dev/null' or POSIX::_exit(127);
		open STDOUT, '>&', $to_out or POSIX::_exit(127);
		open STDERR, '>&', $to_err or POSIX::_exit(127);
		exec { $words->[0] } @$words or POSIX::_exit(127);
	}
	close $_ foreach $to_out, $to_err;
	my %texts = (fileno $out => \$run{out}, fileno $err => \$run{err});
	my @open = ($out, $err);
	while (@open)
	{
		foreach my $handle ($proxy->pass(0.2, @open))
		{
			next if sysread $handle, ${ $texts{ fileno $handle } }, 65536, length ${ $texts{ fileno $handle } };
			@open = grep { $_ != $handle } @open;
		}
		next if time() < $run{start} + $longest;
		$run{is_late} = 1;
		kill 'KILL', $run{pid};
		last;
	}
	close $_ foreach $out, $err;
	waitpid $run{pid}, 0;
	$run{status} = $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
	$proxy->begin(sub { 0 });
	return \%run;
}

# Lets the other sessions go on.
sub pass_until
{
	my ($proxy, $seconds, $condition) = @_;
	my $deadline = time() + $seconds;
	until ($condition->())
	{
		return 0 if time() > $deadline;
		$proxy->pass(0.02);
	}
	return 1;
}

1;
