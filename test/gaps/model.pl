# The steps of the models of moves and splits (test/model/model_move --steps) are those of the command: each statement
# that it sends to a server, and that changes something, belongs to a step of the model, in the same order; and each step
# of the model that changes something is met.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../t";

use Fleet;
use ShardTest;
use SnowflakeTest;
use Test::More;
use Trial;
use Verbs;

my $model = "$FindBin::RealBin/../model/model_move";
plan skip_all => 'test/model/model_move is not built: make model' unless -x $model;
shard_program();

# Statements that change something outside of the model, wherever they come.
my %outside = (
	'the definition of the shard, which the model does not change' => qr/\.(?:definition|noted)\b(?! SET at)|: DO /,
	'the options of routers' => qr/\.poolers|switch_command/,
	'a row that shows that replication runs' => qr/INSERT INTO \S+\.marker VALUES/,
	'which tables were compared' => qr/INSERT INTO \S+\.compared/,
	'who follows whom' => qr/COMMENT ON TABLE \S+\.state/,
	'the tables of a publication that is dropped next' => qr/ALTER PUBLICATION \S+ DROP TABLE/,
	'positions for those who decode the WAL' => qr/SET other_at/,
	'bounds of a sequence that is closed already' => qr/\.mark\(/,
	'reads in a snapshot' => qr/^\w+: (?:pg_dump: |\s*BEGIN ISOLATION LEVEL REPEATABLE READ|(?:SAVEPOINT|ROLLBACK TO) digests)/,
	'locks of the session' => qr/pg_advisory_lock|call by OID/,
	'locks of the tables that are dropped next' => qr/: LOCK TABLE ONLY /,
	'the role of workers before PostgreSQL 16' => qr/CREATE ROLE snowflake_move_/,
	'whether PgBouncer can pause' => qr/PAUSE "pgbouncer"/,
	'parts of the copy of rows' => qr/COPY |end of COPY|snowflake_copy|synchronous_commit = off; SET plan_cache_mode/,
	'replication itself' => qr/IDENTIFY_SYSTEM|START_REPLICATION/);

my $reads_only = qr/^\w+: (?:snowflake_\w+: )?(?:(?:SELECT|WITH|SHOW|COMMIT)\b| *\(\d)/;
my $calls = qr/\b(?:snowflake_move_N|snowflake_split)\.(?!missing_triggers|read_sequences|sequences_of|fingerprint)\w+\(
	| \b(?:claim_shards|session_(?:script|create_schema|rename_schema)|copy_rows|lock_sequence|setval|pg_promote|pg_reload_conf|pg_terminate_backend)\(
	| \bpg_(?:drop|create_logical|create_physical)_replication_slot\( | \bpg_replication_origin_advance\(/x;

sub changes
{
	my ($statement) = @_;
	return $statement !~ $reads_only || $statement =~ $calls;
}

# Without those that change nothing, and without a definition, a subscription and the steps of a split behind the promotion
# that are tried and rolled back.
my $tried = qr/claim_shards|session_\w+\(|CREATE SUBSCRIPTION|CREATE ROLE snowflake_move_|DO \$|snowflake_split\.tried/;
my $record_of_trial = qr/CREATE SCHEMA snowflake_split|INSERT INTO snowflake_split\.state|CREATE TABLE snowflake_split\.positions/;

sub changing
{
	my @kept;
	foreach my $gap (@_)
	{
		if (my ($server) = $gap =~ /^(\w+): ROLLBACK (?:TO subscription|\()/)
		{
			my $last = '';
			$last = pop @kept while @kept && $kept[-1] =~ /^$server: .*(?:$tried)/;
			pop @kept while $last =~ /snowflake_split\.tried/ && @kept && $kept[-1] =~ /^$server: .*(?:$record_of_trial)/;
		}
		elsif (changes($gap)) { push @kept, $gap }
	}
	return @kept;
}

sub is_of
{
	my ($statement, $step) = @_;
	return $statement =~ /^$step->{server}: / && $step->{statements} ne '' && $statement =~ /$step->{statements}/;
}

# What does not fit, each a line.
sub faults
{
	my ($gaps, @steps) = @_;
	my (@faults, %met);
	my $at = 0;
	foreach my $statement (changing(@$gaps))
	{
		my ($found) = grep { is_of($statement, $steps[$_]) } $at .. $#steps;
		next if (!defined $found || $found != $at) && grep { $statement =~ $_ } values %outside;
		if (!defined $found)
		{
			my $now = $steps[$at] ? $steps[$at]{text} : 'the end';
			push @faults, "behind \"$now\" no step of the model is: $statement";
			next;
		}
		($at, $met{$found}) = ($found, 1);
	}
	push @faults, map { "no statement is: $steps[$_]{server}: $steps[$_]{text}" }
	  grep { $steps[$_]{is_effective} && $steps[$_]{statements} ne '' && !$met{$_} } 0 .. $#steps;
	return @faults;
}

my (%steps, @verbs);
foreach my $line (split /\n/, `$model --steps`)
{
	my ($what, @fields) = split /\t/, $line, -1;
	if ($what eq 'verb') { push @verbs, $fields[0] }
	else
	{
		my %step = (is_effective => $what eq 'step');
		@step{qw(server text statements)} = @fields;
		push @{ $steps{ $verbs[-1] } }, \%step;
	}
}

my %fleets;
foreach my $name (@verbs)
{
	my $verb = Verbs::get($name);
	my $fleet = $fleets{ $verb->{has_standby} // 0 } //= Fleet->new(has_standby => $verb->{has_standby});
	my @known = grep { $_->{server} ne 'pooler' || $fleet->{pooler} } @{ $steps{$name} };
	my $found = Trial->new($fleet, $verb, $FindBin::RealBin)->gaps();
	my @faults = $found->{status} eq '0' ? faults($found->{gaps}, @known) : "$found->{status} $found->{err}";
	is(join("\n", @faults), '', "$name: " . @known . ' steps');
}

# The comparison itself.
my @two = map { { is_effective => 1, server => 'one', text => $_, statements => $_ } } 'DROP SCHEMA', 'DROP PUBLICATION';
my $missing = 'behind "DROP PUBLICATION" no step of the model is: one: DROP';
is(join('|', faults([ 'one: DROP PUBLICATION a (1)', 'one: DROP SCHEMA a (1)', 'one: DROP SLOT (1)' ], @two)),
	"$missing SCHEMA a (1)|$missing SLOT (1)|no statement is: one: DROP SCHEMA",
	'another order, a statement of no step and a step without a statement are found');
done_testing();
