# Sessions whose backends a debugger stops at a place of our choice, for what would otherwise happen
# once in a million times. It takes gdb, and the right to attach it to processes of one's own.

package Debugger;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use SnowflakeTest;

our @EXPORT = qw(
  why_no_debugger
  start_program
  debugged_session
  run_into
  finish_function
  let_go
  end_session
);

# A program that one talks to by lines: psql, gdb.
sub start_program
{
	my (@command) = @_;
	my $program = { in => '', out => '' };
	$program->{run} =
	  IPC::Run::start(\@command, '<', \$program->{in}, '>', \$program->{out}, '2>&1');
	return $program;
}

# Sends a line, and waits for what is expected: gives its first group.
sub ask
{
	my ($program, $line, $expected) = @_;
	$program->{out} = '';
	$program->{in} .= "$line\n";
	return listen_to($program, $expected);
}

sub listen_to
{
	my ($program, $expected) = @_;
	await("$expected is there", sub {
			$program->{run}->pump_nb if $program->{run}->pumpable;
			die "a program ended with: $program->{out}"
			  unless $program->{out} =~ $expected || $program->{run}->pumpable;
			return $program->{out} =~ $expected; });
	$program->{out} =~ $expected;
	return $1;
}

# The reason for which a test cannot be made here; empty where it can.
sub why_no_debugger
{
	my ($node) = @_;
	return 'gdb is not installed' if !grep { -x "$_/gdb" } split /:/, $ENV{PATH};
	my $session = debugged_session($node);
	my $is_attached = defined $session->{gdb};
	end_session($session);
	return $is_attached ? '' : 'gdb may not attach to processes here';
}

# A session and a debugger of its backend, which is stopped; no gdb where that is not allowed.
sub debugged_session
{
	my ($node) = @_;
	my $session = start_program('psql', '-XAtq', '-v', 'VERBOSITY=sqlstate', '-d',
		$node->connstr('postgres'));
	$session->{pid} = ask($session, 'SELECT pg_backend_pid();', qr/^(\d+)\n/);
	my $gdb = start_program('gdb', '-nx', '-q', '-p', $session->{pid});
	my $attached = ask(
		$gdb,
		"set pagination off\nset confirm off\nhandle all nostop noprint pass\n"
		  . "handle SIGINT nostop noprint pass\ninfo inferiors",
		qr/^\* 1 +(process \d+|<null>)/m);
	$session->{gdb} = $gdb if $attached =~ /process/;
	return $session;
}

# Lets the session run $sql until $caller calls $function. False where it ends without that.
sub run_into
{
	my ($session, $sql, $function, $caller) = @_;
	my $gdb = $session->{gdb};
	ask($gdb, "break $function", qr/Breakpoint \d+ at/);
	$session->{out} = '';
	$session->{in} .= "$sql;\n";
	$session->{run}->pump_nb;
	for (;;)
	{
		$gdb->{out} = '';
		$gdb->{in} .= "continue\n";
		await('the backend stops, or the statement ends', sub {
				$_->{run}->pump_nb foreach $gdb, $session;
				return $gdb->{out} =~ /Breakpoint \d+, / || $session->{out} =~ /\n/; });
		return 0 if $session->{out} =~ /\n/;
		my $frames = ask($gdb, "backtrace 6\necho end of frames\\n", qr/^(.*)end of frames/s);
		return 1 if $frames =~ $caller;
	}
}

# Until it returns.
sub finish_function
{
	my ($session) = @_;
	ask($session->{gdb}, "finish\necho returned\\n", qr/returned/);
	return;
}

# The statement goes on without a debugger: gives its result, or its error.
sub let_go
{
	my ($session) = @_;
	detach($session);
	return listen_to($session, qr/^(.+)\n/);
}

sub detach
{
	my ($session) = @_;
	my $gdb = delete $session->{gdb} or return;
	$gdb->{in} .= "delete\ndetach\nquit\n";
	$gdb->{run}->finish;
	return;
}

# The server may be gone.
sub end_session
{
	my ($session) = @_;
	detach($session);
	$session->{run}->kill_kill;
	return;
}

1;
