# A new psql costs ten times the processor time of a statement in a session that is there. So the statements that
# safe_psql() runs in the database postgres share a session for each server: in all tests the questions, which read and
# leave nothing in their session; in tests of snowflake-shard also the statements that write. A statement that belongs
# to the beginning of a session, or tells of sessions, gets a psql of its own.

package KeptSessions;

use strict;
use warnings;

use PostgreSQL::Test::Cluster;

# Functions that write, wait, or tell of their own session, and settings, which a session reads at its beginning.
my $no_question = qr/
	;.*\S | \\ | \bfor\s+(?:no\s+key\s+)?(?:update|share)\b | \b(?:insert|update|delete|into)\b
	| \b(?:nextval|setval|lastval|currval|set_config|current_setting|pg_settings)\b
	| \b(?:current_user|session_user|generate_series)\b
	| \bsnowflake_(?:next|advance|attach|adopt|create|settled) | \w\.(?:next_ids?|settled_id|reopen)\(
	| \bpg_(?:terminate|cancel|drop|create|switch|reload|promote|advisory|try|backend_pid|sleep|stat_reset)
	| \bpg_(?:logical|replication_origin|export)
	| \b(?:txid|xid8|xact)\w* | \bpg_stat_activity\b | dblink
/xsi;

# Statements about sessions and transactions, and about settings, which a session that is there may read later.
my $own_session = qr/
	\\ | \b(?:extension|system|current_setting|pg_settings|pg_stat_\w+|dblink)\b
	| \b(?:txid|xid8|xact)\w*
	| \bpg_(?:terminate|cancel|reload|promote|backend_pid|sleep|stat_reset|logical|drop_rep|create_)
/xsi;

my %sessions;    # by the address of the server

my $safe_psql = \&PostgreSQL::Test::Cluster::safe_psql;
no warnings 'redefine';
*PostgreSQL::Test::Cluster::safe_psql = sub {
	my ($node, $database, $sql, @parameters) = @_;
	my $is_shared = $database eq 'postgres' && !@parameters;
	# It may copy the database, or change what a session has from its beginning.
	my $is_of_beginning = $sql =~ /\b(?:database|role|user)\b/i;
	end_session($node) if $is_of_beginning;
	if ($is_shared && $sql =~ /^\s*(?:select|table|with)\b/i && $sql !~ $no_question)
	{
		my $answer = answer_of($node, $sql);
		return $answer if defined $answer;
	}
	elsif ($is_shared && $INC{'ShardTest.pm'} && !$is_of_beginning && $sql !~ $own_session
		&& defined answer_of($node, 'SELECT'))
	{
		return run_in_session($node, $sql);
	}
	return $safe_psql->($node, $database, $sql, @parameters);
};

# Undef if it was not answered: the session or the server is lost, or it is an error. A new psql then says why.
sub answer_of
{
	my ($node, $sql) = @_;
	my $key = $node->data_dir;
	my ($answer, $has_failed) = eval {
		local $SIG{PIPE} = 'IGNORE';
		$sessions{$key} //= new_session($node);
		$sessions{$key}->query($sql);
	};
	return $answer if defined $answer && !$has_failed;
	end_session($node);
	return;
}

# Dies if there is an error, as safe_psql() does. The next statement finds the session as a new one.
sub run_in_session
{
	my ($node, $sql) = @_;
	my $session = $sessions{ $node->data_dir };
	my ($answer) = eval { $session->query("$sql\n;\nDISCARD ALL") };
	my $messages = $session->{stderr};
	$session->{stderr} = '';
	return $answer if defined $answer;
	end_session($node);
	die "error running SQL: '$messages'\nwhile running '$sql' in a kept session: $@";
}

# Its timeout is that of each statement.
sub new_session
{
	my ($node) = @_;
	my $session = $node->background_psql('postgres');
	$session->set_query_timer_restart;
	return $session;
}

sub end_session
{
	my ($node) = @_;
	my $session = delete $sessions{ $node->data_dir } or return;
	eval { $session->quit; 1 } or eval { $session->{run}->kill_kill(grace => 0) };
	return;
}

1;
