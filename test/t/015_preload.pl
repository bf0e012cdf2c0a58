# It needs no preload, and takes one: the library is loaded before there is shared memory.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use SnowflakeTest;
use Test::More;

foreach my $when ('shared_preload_libraries', 'session_preload_libraries')
{
	my $node = new_server($when, conf => "$when = 'snowflake'\n");
	is($node->safe_psql('postgres', 'SHOW snowflake.max_lead'), '1s', "$when: loaded");
	# More than a millisecond holds, so it has to wait for the clock: under a name of its own, from 17 on.
	is($node->safe_psql('postgres', q{
			SET snowflake.max_lead = 0;
			SELECT count(DISTINCT id) FROM snowflake_next_ids(5, 's', 5000) AS id}),
		5000, "$when: IDs");
	$node->stop;
}

done_testing();
