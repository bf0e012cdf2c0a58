# The extension needs no preloading, but works with it: shared_preload_libraries loads the library
# before shared memory exists.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use SnowflakeTest;
use Test::More;

foreach my $setting ('shared_preload_libraries', 'session_preload_libraries')
{
	subtest $setting => sub {
		my $node = new_server($setting, conf => "$setting = 'snowflake'\n");
		is($node->safe_psql('postgres', 'SHOW snowflake.max_lead'), '1s', 'the library is loaded');
		# More IDs than a millisecond has, so the call waits for the clock and, from PostgreSQL 17 on,
		# registers a wait event of its own.
		is($node->safe_psql('postgres', q{
				SET snowflake.max_lead = 0;
				SELECT count(DISTINCT id) FROM snowflake_next_ids(5, 's', 5000) AS id}),
			5000, 'it makes IDs');
		$node->stop;
	};
}

done_testing();
