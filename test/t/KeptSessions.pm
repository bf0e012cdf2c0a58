# A new psql costs ten times the processor time of a question in a session that is there. So questions that
# safe_psql() asks in the database postgres share a session for each server. A question is one statement that reads
# and leaves nothing in its session; all else, and all that belongs to the beginning of a session, gets a psql of its
# own as before.

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

my %sessions;    # by the address of the server

my $safe_psql = \&PostgreSQL::Test::Cluster::safe_psql;
no warnings 'redefine';
*PostgreSQL::Test::Cluster::safe_psql = sub {
	my ($node, $database, $sql, @parameters) = @_;
	my $is_question =
	  $database eq 'postgres' && !@parameters && $sql =~ /^\s*(?:select|table|with)\b/i && $sql !~ $no_question;
	# It may copy the database, or change what a session has from its beginning.
	end_session($node) if $sql =~ /\b(?:database|role)\b/i;
	my $answer = $is_question ? answer_of($node, $sql) : undef;
	return $answer // $safe_psql->($node, $database, $sql, @parameters);
};

# Undef if it was not answered: the session or the server is lost, or it is an error. A new psql then says why.
sub answer_of
{
	my ($node, $sql) = @_;
	my $key = $node->data_dir;
	my ($answer, $has_failed) = eval {
		local $SIG{PIPE} = 'IGNORE';
		$sessions{$key} //= $node->background_psql('postgres', on_error_stop => 0);
		$sessions{$key}->query($sql);
	};
	return $answer if defined $answer && !$has_failed;
	end_session($node);
	return;
}

sub end_session
{
	my ($node) = @_;
	my $session = delete $sessions{ $node->data_dir } or return;
	eval { $session->quit; 1 } or eval { $session->{run}->kill_kill(grace => 0) };
	return;
}

1;
