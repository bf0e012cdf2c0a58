# snowflake-shard is a sequence of statements on several servers. In every gap between two of them something is done:
# a hostile role exchanges what was looked at, something is killed, a server does not answer, the application changes
# the shard. What must hold then is said in Rest.pm and Trial.pm.
#
# SNOWFLAKE_TEST_GAPS: "sample" (default), some trials, chosen by the seed that is printed; "each", one action in every
# gap, chosen by it; "all", every action in every gap. Behind it, in lines, verbs, kinds of actions and a pattern for
# gaps: move, stall, /pg_dump/. A trial that is listed in the file known fails today; if it does not, its line is to be
# removed, and this fails. Without verbs, the sample is chosen from the verbs and kinds of actions that were tried in all
# gaps, which stand there, too.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../t";

use Actions;
use Fleet;
use Functions;
use IO::Select;
use List::Util 'shuffle';
use PoolerTest;
use ShardTest;
use SnowflakeTest;
use Test::More;
use Trial;
use Verbs;

my $in_sample = 28;
my $jobs = $ENV{SNOWFLAKE_TEST_GAPS_JOBS} // 2;
my ($extent, @wanted) = split /\n/, $ENV{SNOWFLAKE_TEST_GAPS} || 'sample';
my $folder = $FindBin::RealBin;
my %names = Actions::names($folder);
my @kinds = grep { $names{$_} } @wanted;
my ($like) = map { m{^/(.*?)/?$} } @wanted;
@wanted = grep { !$names{$_} && !m{^/} } @wanted;

shard_program();
$ENV{SNOWFLAKE_TEST_SEED} ||= int(rand(2**31));
seed_random();

# A line "tried | verb | kinds of actions" says that these were tried in all gaps.
my %kinds_of;    # verb => { kind => 1 }

# "verb | action | gap" => what happens today. The gap * stands for all gaps. What begins with "sometimes" depends on
# timing.
sub read_known
{
	my %known;
	open my $file, '<', "$folder/known" or die "known: $!";
	while (my $line = readline $file)
	{
		chomp $line;
		next if $line =~ /^#|^\s*$/;
		my ($verb, $action, $gap, $fault) = split / \| /, $line, 4;
		if ($verb eq 'tried')
		{
			$kinds_of{$action} = { map { $_ => 1 } split ' ', $gap };
			next;
		}
		$known{"$verb | $action | $gap"} = $fault;
	}
	return %known;
}

# Actions of a verb: "exchange add_code", "kill command" ...
sub actions_of
{
	my ($verb) = @_;
	my $has_pooler = $verb->{is_move} && !$verb->{has_standby} && pgbouncer_program();
	return grep { $has_pooler || $_ ne 'kill pooler' } map { my $kind = $_; map { "$kind $_" } @{ $names{$kind} } }
	  grep { is_wanted($verb->{name}, $_) } @{ $verb->{kinds} };
}

sub is_wanted
{
	my ($verb, $kind) = @_;
	return grep { $_ eq $kind } @kinds if @kinds;
	return $extent ne 'sample' || @wanted || $kinds_of{$verb}{$kind};
}

# The trials of one process: actions whose number is its own, in all gaps. The order of gaps differs from run to run where
# servers are asked at the same time. Prints a line for each.
sub try_gaps
{
	my ($part, $to, @verbs) = @_;
	my (%fleets, $number);
	my %is_function = map { $_ => 1 } Functions::names();
	foreach my $name (grep { $is_function{$_} } @verbs)
	{
		my $fleet = $fleets{0} //= Fleet->new();
		print $to "gaps | $name | 1 | 0 | 0\n";
		foreach my $what (@{ $names{exchange} })
		{
			next if $number++ % $jobs != $part;
			print_trial($to, "$name | exchange $what | the lock", sub { Functions::try_call($fleet, $folder, $name, $what) });
		}
	}
	foreach my $name (grep { !$is_function{$_} } @verbs)
	{
		my $verb = Verbs::get($name);
		my $fleet = $fleets{ $verb->{has_standby} // 0 } //= Fleet->new(has_standby => $verb->{has_standby});
		my $trial = Trial->new($fleet, $verb, $folder);
		my $found = $trial->gaps();
		print $to "gaps | $name | " . @{ $found->{gaps} } . " | $found->{status} | $found->{not_tried}\n";
		my @gaps = grep { !defined $like || /$like/ } @{ $found->{gaps} };
		my @actions = actions_of($verb);
		@gaps = grep { $number++ % $jobs == $part } @gaps if $extent eq 'each';
		@actions = grep { $number++ % $jobs == $part } @actions if $extent ne 'each';
		my @trials = map { my $action = $_; map { [ $action, $_ ] } @gaps } @actions;
		@trials = map { [ $actions[ rand @actions ], $_ ] } @gaps if $extent eq 'each';
		if ($extent eq 'sample')
		{
			@trials = shuffle(@trials);
			splice @trials, int($in_sample / @verbs / $jobs);
		}
		foreach my $one (@trials)
		{
			my ($action, $gap) = @$one;
			my ($kind, $what) = split / /, $action, 2;
			my $method = "try_$kind";
			print_trial($to, "$name | $action | $gap", sub { $trial->$method($gap, $what) });
		}
	}
	return;
}

sub print_trial
{
	my ($to, $name, $try) = @_;
	my $faults = eval { $try->() } // ($@ ? ["the trial died: $@"] : undef);
	my $result = defined $faults ? join('; ', map { s/\s+/ /gr } @$faults) : 'not reached';
	print $to "trial | $name | ", substr($result, 0, 1000), "\n";
	return;
}

# Processes that try, each with servers of its own. Returns their lines.
sub start_processes
{
	my (@verbs) = @_;
	my @handles;
	foreach my $part (0 .. $jobs - 1)
	{
		pipe my $from, my $to or die "pipe: $!";
		my $pid = fork() // die "fork: $!";
		if ($pid == 0)
		{
			Test::More->builder->no_ending(1);
			Test::More->builder->output("$PostgreSQL::Test::Utils::log_path/gaps_$part.log");
			Test::More->builder->failure_output("$PostgreSQL::Test::Utils::log_path/gaps_$part.log");
			$to->autoflush(1);
			srand($ENV{SNOWFLAKE_TEST_SEED} + $part);
			eval { try_gaps($part, $to, @verbs); 1 } or print $to "died | $@" =~ s/\s+/ /gr, "\n" and exit 1;
			exit 0;
		}
		push @handles, $from;
	}
	return @handles;
}

my %known = read_known();
my (%table, %is_tried);

sub take_line
{
	my ($line) = @_;
	my ($what, $verb, @rest) = split / \| /, $line, 6;
	return diag($line) if $what eq 'died';
	my $row = $table{$verb} //= { trials => 0, wrong => 0, known => 0, 'not reached' => 0 };
	if ($what eq 'gaps') { @$row{qw(gaps status statements)} = @rest; return }
	my ($action, $gap, $fault) = @rest;
	my $name = "$verb | $action | $gap";
	$row->{trials}++;
	if (($fault // '') eq 'not reached') { $row->{'not reached'}++; return }
	$is_tried{$name} = 1;
	my $known = $known{$name} // $known{"$verb | $action | *"};
	my $is_known = defined $known;
	$row->{known}++ if $is_known && $fault;
	if ($is_known && !$fault && $known !~ /^sometimes/)
	{
		fail("$name: it does not fail any longer; remove the line in test/gaps/known");
	}
	elsif ($is_known || !$fault) { pass($name) }
	else { $row->{wrong}++; fail($name); diag($fault) }
	return;
}

my @verbs = @wanted ? @wanted : (Verbs::names(), Functions::names());
if ($extent eq 'sample')
{
	@verbs = grep { $kinds_of{$_} } @verbs if !@wanted;
	@verbs = shuffle(@verbs);
	splice @verbs, 7 if @verbs > 7;
}
my $select = IO::Select->new(start_processes(@verbs));
my %text;
while (my @ready = $select->can_read)
{
	foreach my $handle (@ready)
	{
		my $length = length($text{$handle} // '');
		if (!sysread $handle, $text{$handle}, 65536, $length) { $select->remove($handle) }
		take_line($1) while $text{$handle} =~ s/^(.*)\n//;
	}
}
my $has_died = 0;
while (wait() > 0) { $has_died ||= $? != 0 }
ok(!$has_died, 'each process came to its end');

note(sprintf '%-28s %6s %7s %6s %6s %12s', qw(verb gaps trials wrong known), 'not reached');
foreach my $verb (sort keys %table)
{
	my $row = $table{$verb};
	note(sprintf '%-28s %6d %7d %6d %6d %12d', $verb, $row->{gaps}, @$row{ qw(trials wrong known), 'not reached' });
	note("    not tried: $row->{statements} statements of a session's own, and of PostgreSQL's programs");
}
ok(%is_tried > 0, 'gaps were tried');
done_testing();
