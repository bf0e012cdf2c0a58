# Helpers of the tests that move shard 5, schema insta5, again and again.

package MoveTest;

use strict;
use warnings;

use Exporter 'import';
use ShardTest;
use Test::More;

our @EXPORT = qw(move moves is_refused $move_error);

# What the last move printed to standard error.
our $move_error;

# The exit code and what a move printed: "0 1 shard moved: 5"; "exit code 3" if it printed nothing.
sub move
{
	my ($from, $to, @arguments) = @_;
	(my $status, my $out, $move_error) =
		run_shard(shard_program(), 'move', 'insta5', '--from', $from, '--to', $to, @arguments);
	chomp $out;
	return $out eq '' ? "exit code $status" : "$status $out";
}

# end: moved, undone, aborted ...
sub moves
{
	my ($arguments, $end, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(move(@$arguments), "0 1 shard $end: 5", $name) || diag($move_error);
}

sub is_refused
{
	my ($arguments, $text, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(move(@$arguments), 'exit code 3', $name);
	return like($move_error, $text, "$name: the error");
}

1;
