# Functions in SQL that look, wait for a lock, and look again. Their gap is the wait: mallory exchanges an object in a
# transaction that is open, a superuser calls the function, which waits for mallory's lock, and the transaction
# commits.

package Functions;

use strict;
use warnings;

use Actions;
use DBD::Pg ':async';
use SnowflakeTest;

my %calls = (
	'snowflake_attach()' => q{SELECT public.snowflake_attach('insta5."Old Log"', 'n')},
	'snowflake_adopt()' => q{SELECT public.snowflake_adopt('insta5.published_id()', 5, 'insta5.published_seq')},
	'snowflake_create_shard()' => q{SELECT public.snowflake_create_shard(5, 'insta5')});

sub names { return sort keys %calls }

# Faults, each a line; undef if the call did not wait.
sub try_call
{
	my ($fleet, $folder, $name, $action) = @_;
	my $parts = Actions::parts_of("$folder/exchange/$action.sql");
	my $text = $parts->{first} =~ s/\@schema\@/insta5/gr =~ s/\@table\@/users/gr =~ s/users\b/"Old Log"/gr;
	$fleet->reset_servers();
	my ($caller, $mallory, $observer) =
	  map { $fleet->session('one', @$_) } [], [ user => 'mallory' ], [ database => 'postgres' ];
	$mallory->do($fleet->{setup_of_functions} //= PostgreSQL::Test::Utils::slurp_file("$folder/setup/published.sql"));
	$fleet->canaries();
	$mallory->do("BEGIN; $text");
	$caller->do("SET client_min_messages = error; SET statement_timeout = '20s'");
	$caller->do($calls{$name}, { pg_async => PG_ASYNC });
	my $has_waited = 0;
	await('the call waits or has ended', sub {
		($has_waited) = $observer->selectrow_array('SELECT cardinality(pg_blocking_pids(?))', undef, $caller->{pg_pid});
		$has_waited || $caller->pg_ready });
	$mallory->do('COMMIT');
	eval { $caller->pg_result };    # an error is a right answer
	Actions::exchange($fleet, $parts->{next}, 'insta5.users');
	$fleet->forget('one');
	my @faults = map { "code of mallory ran: $_" } grep { !/ as mallory in / } $fleet->canaries();
	return $has_waited ? \@faults : undef;
}

1;
