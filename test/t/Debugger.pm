# Sessions whose backends gdb stops at a chosen function, for races that are too rare otherwise.
# This needs gdb and the permission to attach it to one's own processes.

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

# Starts a program that is used line by line: psql or gdb.
sub start_program
{
	my (@command) = @_;
	my $program = { in => '', out => '' };
	$program->{run} =
	  IPC::Run::start(\@command, '<', \$program->{in}, '>', \$program->{out}, '2>&1');
	return $program;
}

# Sends a line, waits for the expected output and returns its first group.
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

# The reason why tests with a debugger cannot run here; empty if they can.
sub why_no_debugger
{
	my ($node) = @_;
	return 'gdb is not installed' if !grep { -x "$_/gdb" } split /:/, $ENV{PATH};
	my $session = debugged_session($node);
	my $is_attached = defined $session->{gdb};
	end_session($session);
	return $is_attached ? '' : 'gdb may not attach to processes here';
}

# A session, with gdb attached to its backend, which is stopped. {gdb} is missing if gdb may not
# attach.
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

# Lets the session run $sql until $function is called with $caller in the backtrace. False if the
# statement ends before that.
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

# Continues until the function returns.
sub finish_function
{
	my ($session) = @_;
	ask($session->{gdb}, "finish\necho returned\\n", qr/returned/);
	return;
}

# Detaches gdb, and returns the result or the error of the statement.
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

# Kills psql, because the server may be gone.
sub end_session
{
	my ($session) = @_;
	detach($session);
	$session->{run}->kill_kill;
	return;
}

1;
