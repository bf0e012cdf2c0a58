# Helpers of the tests that plant code: each planted function writes PLANTED, its place and current_user to the server's
# log.

package PlantedTest;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Utils;

our @EXPORT = qw(planted_code_run);

my %read;    # how much of each server's log

# The places of planted code that has run on these servers since the last call, each with the role that it ran as.
sub planted_code_run
{
	my %run;
	foreach my $node (@_)
	{
		my $log = slurp_file($node->logfile, $read{ $node->name } // 0);
		$read{ $node->name } += length $log;
		$run{$_} = 1 foreach $log =~ /PLANTED (.* as \w+)/g;
	}
	return join ', ', sort keys %run;
}

1;
