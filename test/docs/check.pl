#!/usr/bin/env perl
# Runs the commands that Markdown pages show, and compares the outputs that the pages show with the
# real ones. Needs a server (PGHOST ...) with the extension's files; its user is a superuser.
#
#   test/docs/check.pl [--update] PAGE...
#
# What a page's blocks are:
#
#   ```sql        typed into psql -q, which is connected to the database app and lasts for the page;
#                 without the CONTEXT of errors, which names lines of the extension's sources
#   ```sh         run by bash in the current folder; every command must succeed. "su - postgres -c COMMAND"
#                 runs COMMAND as it is, because the user is the server's superuser
#   ```           directly behind such a block: its output, stdout and stderr
#   <!-- not run: REASON -->   before a block of any kind: it is not run, and the reason is printed
#   <!-- part of FILE -->      before a block of any kind: these lines stand in the file, which another
#                              test runs; the indentation of the whole may differ
#   <!-- needs NAME = VALUE -->  before a block: it is not run on a server with another value of this setting
#   <!-- a new database -->    the blocks from here on begin with an empty database app again
#   <!-- after PAGE -->        the blocks of that page are run before those of this one, and not compared
#   <!-- synopsis of VERB -->  before a block of any kind: it has the options that snowflake-shard VERB --help has, and a
#                              table of the page has a row for each
#   | `text … text` |          first cell of a row below "## Troubleshooting": an error that stands in
#                              expected/*.out, with anything in place of each …
#   | `text … text` |          the same below "## Messages": a message of snowflake-shard. Each part stands in its sources
#
# A page starts with an empty database app; other databases and roles that it makes are dropped
# after it. A block without an output may print anything but an error.
#
# If an output has a line "...", its other lines are printed in this order, and more lines can be printed between any of them.
#
# 'host=db1 dbname=app', 'host=db2 dbname=app' and so on in a shell block are databases of the one server: app, app_db2 ...
# check.pl makes them with the extension. On such a page their addresses are db1:5432/app, db2:5432/app.
#
# The blocks find psql, pg_dump and snowflake-shard on PATH. The folder of the server's socket is shown as
# /var/run/postgresql.
#
# Outputs are compared line by line, blank lines and widths of columns apart, after these are masked on both sides:
#
#   an ID, a position      becomes its shard and counter, and its place among the different ones of this output
#   a time                 becomes its zone, unless it is before 2026 or after tomorrow: such a time is no time of a run
#   a lead, a duration     becomes a word, as a position of the WAL and the size of a tablespace do
#
# A command on the page may name an ID that an output before it shows. It is run with the ID that stood there in this run.
#
# --update writes the real outputs into the pages that differ.
use strict;
use warnings;

use File::Basename;
use IO::Handle;
use POSIX qw(strftime);

my $max_position = (1 << 53) - 1;
my $number       = qr/(?<![\w.])(\d{16,19})(?![\w.])/;    # an ID or a position
my $time         = qr/(\d{4}-\d\d-\d\d)[ T]\d\d:\d\d:\d\d(?:\.\d+)?([+-]\d\d(?::\d\d)?|\ UTC|Z)?/;
my $span         = qr/-?(?<!\d)\d\d:\d\d:\d\d\.\d+|(?<![\w.])\d+(?=\ ms\ behind)|(?<=blocked\ for\ )\d+(?=\ ms)|(?<=\ moved)\h+\d+(?=\n)|(?<=\ beside\ the\ )\d+\ [kMG]B|(?<![\w.])\d+\.\d(?=\ s(?!\w))|(?:(?<=before\ )|(?<=from\ ))[\dA-F]+\/[\dA-F]+/;
my $tomorrow     = strftime('%Y-%m-%d', gmtime(time + 24 * 60 * 60));

my $block_count  = 0;
my $output_count = 0;
my @not_run;
my @failures;
my $expected;    # outputs of the regression tests
my $sources;     # of snowflake-shard, without the ends of lines within a string

# State of the page that is being read.
my $page;
my ($psql_input, $psql_output, $psql_pid);
my %is_server;    # db1, db2 ... that the commands have named
my %real_of;    # numbers of the page, and those of this run in their places

$ENV{PGTZ} = 'UTC';
$ENV{PAGER} = 'cat';
$ENV{LC_ALL} = 'C';
delete $ENV{PGOPTIONS};

my $is_update = @ARGV && $ARGV[0] eq '--update';
shift @ARGV if $is_update;
die "Usage: $0 [--update] PAGE...\n" if !@ARGV || $ARGV[0] =~ /^-/;
check_page($_) foreach @ARGV;
print "not run: $_\n" foreach @not_run;
print "$_\n" foreach @failures;
printf "%d blocks run, %d outputs compared, %d blocks not run, %d failures\n",
	$block_count, $output_count, scalar @not_run, scalar @failures;
exit(@failures ? 1 : 0);

# --- pages ----------------------------------------------------------------------------------------

sub check_page
{
	($page) = @_;
	%real_of = %is_server = ();
	my $failures_before = @failures;
	my @lines = read_lines($page);
	my @blocks = read_blocks(@lines);
	check_error_texts(@lines);
	my ($databases, $roles) = (names('pg_database', 'datname'), names('pg_roles', 'rolname'));
	administer('CREATE DATABASE app');
	start_psql();
	run_page(dirname($page) . "/$_") foreach pages_before(@lines);
	foreach my $i (0 .. $#blocks)
	{
		if ($blocks[$i]{is_first})
		{
			stop_psql();
			drop_databases($databases);
			%is_server = ();
			administer('CREATE DATABASE app');
			start_psql();
		}
		my $output = $i < $#blocks && $blocks[ $i + 1 ]{is_output} ? $blocks[ $i + 1 ] : undef;
		check_block($blocks[$i], $output) unless $blocks[$i]{is_output};
	}
	stop_psql();
	drop_databases($databases);
	administer(map { "DROP ROLE \"$_\"" }
		grep { $roles !~ /^\Q$_\E$/m } split /\n/, names('pg_roles', 'rolname'));
	write_page(\@lines, \@blocks) if $is_update && @failures > $failures_before;
}

# Those that were not there before.
sub drop_databases
{
	my ($before) = @_;
	administer(map { "DROP DATABASE \"$_\" WITH (FORCE)" }
		grep { $before !~ /^\Q$_\E$/m } split /\n/, names('pg_database', 'datname'));
}

# What another page shows is compared when that page is checked.
sub run_page
{
	my ($name) = @_;
	my @lines = read_lines($name);
	run_page(dirname($name) . "/$_") foreach pages_before(@lines);
	foreach my $block (read_blocks(@lines))
	{
		next if $block->{is_output} || $block->{reason} || $block->{file} || $block->{verb};
		my ($real, $status) = run_block($block);
		fail($block->{line}, "the block of $name ends with status $status\n$real") if $status;
	}
}

sub pages_before
{
	return map { /^<!-- after (\S+) -->$/ ? $1 : () } @_;
}

sub read_lines
{
	my ($name) = @_;
	open my $file, '<', $name or die "$name: $!\n";
	my @lines = <$file>;
	chomp @lines;
	return @lines;
}

# Each block: kind, text, line of its opening fence, first and last line within, reason not to run.
sub read_blocks
{
	my @lines = @_;
	my (@blocks, $block, $reason, $file, $verb, $is_first);
	my $is_adjacent = 0;    # only blank lines since the block before
	foreach my $i (0 .. $#lines)
	{
		my $line = $lines[$i];
		if ($block)
		{
			if ($line =~ /^\s*```\s*$/)
			{
				$block->{last} = $i - 1;
				push @blocks, $block;
				$block = undef;
				$is_adjacent = 1;
				next;
			}
			$line =~ s/^$block->{indent}//;
			$block->{text} .= "$line\n";
		}
		elsif ($line =~ /^(\s*)```(\w*)\s*$/)
		{
			my ($indent, $kind) = ($1, $2);
			$block = {
				indent => $indent, kind => $kind, text => '', line => $i + 1, first => $i + 1,
				reason => $reason, file => $file, verb => $verb, is_first => $is_first,
				is_output => $kind eq '' && $is_adjacent && !$reason && !$file && !$verb && $blocks[-1]{kind} =~ /^(sql|sh)$/
			};
			$reason = $file = $verb = $is_first = undef;
		}
		elsif ($line =~ /^\s*<!-- needs (\w+) = (\w+) -->\s*$/)
		{
			my ($setting, $value) = ($1, $2);
			my ($real) = run('psql', '-XAtq', '-d', 'postgres', '-c', "SHOW $setting");
			$reason = "needs $setting = $value" if $real ne "$value\n";
		}
		elsif ($line =~ /^\s*<!-- (?:(a new database)|after \S+) -->\s*$/)
		{
			$is_first = 1 if $1;
		}
		elsif ($line =~ /^\s*<!-- not run: (\S.*\S) -->\s*$/)
		{
			$reason = $1;
		}
		elsif ($line =~ /^\s*<!-- part of (\S+) -->\s*$/)
		{
			$file = $1;
		}
		elsif ($line =~ /^\s*<!-- synopsis of (\S+(?: \S+)?) -->\s*$/)
		{
			$verb = $1;
		}
		elsif ($line =~ /\S/)
		{
			fail($i + 1, 'the comment above stands before no block') if $reason || $file || $verb;
			$reason = $file = $verb = undef;
			$is_adjacent = 0;
		}
	}
	die "$page: a block has no end\n" if $block;
	return @blocks;
}

sub check_error_texts
{
	my @lines = @_;
	my $section = '';
	foreach my $i (0 .. $#lines)
	{
		$section = $1 if $lines[$i] =~ /^## (\w+)/;
		next unless $section =~ /^(Troubleshooting|Messages)$/ && $lines[$i] =~ /^\| `([^`]+)` \|/;
		my $text = $1;
		if ($section eq 'Messages')
		{
			$sources //= join('', map { "$_\n" } map { read_lines($_) } glob 'cli/*.cpp cli/*/*.cpp cli/*/*.h cli/sql/*.sql') =~ s/"\s+"//gr;
			foreach my $part (split / ?… ?/, $text)
			{
				fail($i + 1, "no source of snowflake-shard has this message: $part") if index($sources, $part) < 0;
			}
			next;
		}
		my $pattern = join '.*', map { quotemeta } split /…/, $text, -1;
		$expected //= join '', map { "$_\n" } map { read_lines($_) } glob 'expected/*.out';
		fail($i + 1, "no expected output of a test has this error: $text") if $expected !~ /$pattern/;
	}
}

sub write_page
{
	my ($lines, $blocks) = @_;
	my @new = @$lines;
	foreach my $block (reverse @$blocks)
	{
		next unless defined $block->{real};
		my @output = map { length ? "$block->{indent}$_" : '' } split /\n/, $block->{real};
		splice @new, $block->{first}, $block->{last} - $block->{first} + 1, @output;
	}
	open my $file, '>', $page or die "$page: $!\n";
	foreach my $line (@new)
	{
		$line =~ s/$number/$real_of{$1} \/\/ $1/ge;
		print $file "$line\n";
	}
	close $file or die "$page: $!\n";
	print "$page: outputs written anew\n";
}

sub fail
{
	my ($line, $message) = @_;
	push @failures, "$page:$line: $message";
}

# --- blocks ---------------------------------------------------------------------------------------

sub check_block
{
	my ($block, $output) = @_;
	my $line = $block->{line};
	if ($block->{reason})
	{
		push @not_run, "$page:$line: $block->{reason}";
		return;
	}
	if ($block->{file})
	{
		$block_count++;
		fail($line, "these lines do not stand in $block->{file}") unless is_part_of($block->{file}, $block->{text});
		return;
	}
	if ($block->{verb})
	{
		$block_count++;
		check_synopsis($block);
		return;
	}
	if ($block->{kind} !~ /^(sql|sh)$/)
	{
		fail($line, 'this block is neither SQL nor shell nor the output of the block before it');
		return;
	}

	my ($real, $status) = run_block($block);
	$block_count++;
	if ($output)
	{
		$output_count++;
		$output->{real} = $real;
		my $difference = differs($output->{text}, $real);
		fail($output->{line}, "$difference\n--- the page shows\n$output->{text}--- the command printed\n$real") if $difference;
	}
	elsif ($real =~ /^(\S+: )?(ERROR|FATAL|error|fatal): .*/m)
	{
		fail($line, "$&\n--- the command printed\n$real");
	}
	fail($line, "exit status $status\n$real") if $status;
}

sub check_synopsis
{
	my ($block) = @_;
	my ($help, $status) = run('snowflake-shard', split(/ /, $block->{verb}), '--help');
	my @options = grep { $_ ne '--help' } $help =~ s/^Examples:.*//smr =~ /^ {2,12}(?:-h,)?(--[a-z-]+)/mg;
	my %is_shown = map { ($_ => 1) } $block->{text} =~ /--[a-z-]+/g;
	my $rows = join '', map { /^\| (`--[^|]*) \|/ ? "$1\n" : '' } read_lines($page);
	foreach my $option (@options)
	{
		fail($block->{line}, "$option is missing") unless delete $is_shown{$option};
		fail($block->{line}, "no table of the page has a row for $option") if $rows !~ /`$option\b(?!-)/;
	}
	fail($block->{line}, "$_ is no option") foreach sort keys %is_shown;
	fail($block->{line}, "exit status $status") if $status || !@options;
}

sub run_block
{
	my ($block) = @_;
	my $command = $block->{text};
	$command =~ s/$number/$real_of{$1} \/\/ $1/ge;
	my $port = $ENV{PGPORT} // 5432;
	foreach my $server ($command =~ /host=(db\d+) dbname=app/g)
	{
		next if $is_server{$server}++ || $server eq 'db1';
		administer("CREATE DATABASE app_$server");
		run('psql', '-Xq', '-d', "app_$server", '-c', 'CREATE EXTENSION snowflake');
	}
	$command =~ s/host=(db\d+) dbname=app/'dbname=' . database_of($1)/ge;
	my ($real, $status) = $block->{kind} eq 'sql' ? psql($command) : shell($command);
	foreach my $server (keys %is_server)
	{
		my $database = database_of($server);
		my $address = "$ENV{PGHOST}:$port/$database";
		my $filled = sprintf('%-*s', length $address, "$server:$port/app");
		my $uri = $ENV{PGHOST} =~ s/([^\w.~-])/sprintf '%%%02X', ord $1/ger . ":$port/$database";
		$real =~ s/\Q$uri\E(?!\w)/$server:$port\/app/g;
		$real =~ s/\Q$address\E(?=  )/$filled/g;
		$real =~ s/\Q$address\E(?!\w)/$server:$port\/app/g;
		$real =~ s/\Q$ENV{PGHOST}\E(\h+(?:port=)?$port\h+(?:dbname=)?)$database(?!\w)/$server$1app/g;
	}
	$real = join "\n\n", map { narrowed($_) } split /\n\n/, $real if %is_server;
	return (with_usual_socket($real), $status);
}

# The columns of a table as near to each other as the names of the page let them be. Warnings can stand above it.
sub narrowed
{
	my @lines = split /\n/, $_[0];
	my $blank = '';
	foreach my $line (grep { !/^snowflake-shard: / } @lines)
	{
		my $width = length $line > length $blank ? length $line : length $blank;
		$blank = sprintf('%-*s', $width, $blank) | sprintf('%-*s', $width, $line);
	}
	while (@lines > 1 && $blank =~ /(?<=  )( +)(?=[^ ])/g)
	{
		my ($start, $length) = ($-[1], length $1);
		substr($blank, $start, $length) = '';
		foreach my $line (grep { !/^snowflake-shard: / } @lines)
		{
			substr($line, $start, $length) = '' if length $line > $start;
		}
	}
	return join "\n", @lines, $_[0] =~ /\n\z/ ? '' : ();
}

sub database_of
{
	my ($server) = @_;
	return $server eq 'db1' ? 'app' : "app_$server";
}

sub is_part_of
{
	my ($file, $text) = @_;
	my $content = join '', map { "$_\n" } read_lines($file);
	my ($first, @rest) = map { quotemeta } split /\n/, $text;
	my $pattern = join '\n', "([ \t]*)$first", map { length ? "\\1$_" : '' } @rest;
	return $content =~ /^$pattern$/m;
}

# In a column of a table the place is filled up, so that the columns still stand below their headings.
sub with_usual_socket
{
	my ($text) = @_;
	my ($real, $shown) = ($ENV{PGHOST}, '/var/run/postgresql');
	my $filled = sprintf('%-*s', length $real, $shown);
	$text =~ s/\Q$real\E(?=  )/$filled/g;
	$text =~ s/\Q$real\E/$shown/g;
	return $text;
}

# stdbuf: a query's result comes before the messages of the next one.
sub start_psql
{
	pipe(my $child_input, $psql_input) or die "pipe: $!\n";
	pipe($psql_output, my $child_output) or die "pipe: $!\n";
	$psql_pid = start($child_input, $child_output,
		'stdbuf', '-oL', 'psql', '-X', '-q', '-v', 'SHOW_CONTEXT=never', '-d', 'app');
	$psql_input->autoflush(1);
}

sub stop_psql
{
	close $psql_input;
	waitpid $psql_pid, 0;
}

sub psql
{
	my ($text) = @_;
	my $end = 'the block ends here';
	local $SIG{ALRM} = sub { die "$page: no answer from psql. Is a quotation or a comment open?\n$text" };
	local $SIG{PIPE} = 'IGNORE';
	alarm 300;
	print $psql_input "$text\n\\warn $end\n";
	my $printed = '';
	while (my $line = <$psql_output>)
	{
		last if $line eq "$end\n";
		$printed .= $line;
	}
	alarm 0;
	return (trim($printed), 0);
}

sub shell
{
	my ($text) = @_;
	local $ENV{PGDATABASE} = 'app';
	my $su = q{su() { [[ ${*:1:3} == '- postgres -c' ]] && bash -e -o pipefail -c "$4"; }};
	return run('bash', '-e', '-o', 'pipefail', '-c', "$su\n$text");
}

sub administer
{
	my ($printed, $status) = run('psql', '-Xq', '-d', 'postgres', map { ('-c', $_) } @_) if @_;
	die $printed if $status;
}

sub names
{
	my ($catalog, $column) = @_;
	my ($text) = run('psql', '-XAtq', '-d', 'postgres', '-c', "SELECT $column FROM $catalog");
	return $text;
}

# The output and the exit status of a command without input.
sub run
{
	my @command = @_;
	pipe(my $output, my $child_output) or die "pipe: $!\n";
	open my $nothing, '<', '/dev/null' or die "/dev/null: $!\n";
	my $pid = start($nothing, $child_output, @command);
	# Without the time of day, which move and split write into a log.
	my $text = join '', map { s/^\d\d:\d\d:\d\d (?=\S)//r } <$output>;
	waitpid $pid, 0;
	return (trim($text), $? >> 8 || $?);
}

# The command's ends of the pipes are its own from here on.
sub start
{
	my ($input, $output, @command) = @_;
	my $pid = fork // die "fork: $!\n";
	if ($pid)
	{
		close $_ foreach $input, $output;
		return $pid;
	}
	open STDIN, '<&', $input or die;
	open STDOUT, '>&', $output or die;
	open STDERR, '>&', $output or die;
	exec { $command[0] } @command or die "$command[0]: $!\n";
}

# Without blanks at ends of lines and blank lines at the end.
sub trim
{
	my ($text) = @_;
	$text =~ s/[ \t]+$//mg;
	$text =~ s/\n+\z//;
	return $text eq '' ? '' : "$text\n";
}

# --- comparing ------------------------------------------------------------------------------------

# What differs first, or nothing.
sub differs
{
	my ($shown, $real) = @_;
	remember_numbers($shown, $real);
	my @shown = masked($shown);
	my @real = masked($real);
	if (grep { $_ eq '...' } @shown)
	{
		my $pattern = join '(?:.*\n)*?', map { quotemeta($_) . '\n' } grep { $_ ne '...' } @shown;
		return join('', map { "$_\n" } @real) =~ /^$pattern\z/ ? undef : 'another output';
	}
	foreach my $i (0 .. $#real)
	{
		return 'the page shows fewer lines' if $i > $#shown;
		return 'line ' . ($i + 1) . ": \"$real[$i]\" stands where the page has \"$shown[$i]\"" if $shown[$i] ne $real[$i];
	}
	return @shown > @real ? 'the page shows more lines' : undef;
}

sub remember_numbers
{
	my @shown = $_[0] =~ /$number/g;
	my @real = $_[1] =~ /$number/g;
	return if @shown != @real;
	$real_of{ $shown[$_] } //= $real[$_] foreach 0 .. $#real;
}

# The lines that are not blank.
sub masked
{
	my ($text) = @_;
	my ($count, %places) = (0);
	$text =~ s{$number|$time|$span}{
		defined $1 ? 'ID ' . ($places{$1} //= ++$count) . fields($1)
		: !defined $2 ? 'SPAN'
		: $2 ge '2026' && $2 le $tomorrow ? 'TIME' . ($3 // '')
		: $&}ge;
	$text =~ s/-{2,}/--/g;
	$text =~ s/[ \t]+/ /g;
	return grep { /\S/ } map { s/^ | $//gr } split /\n/, $text;
}

sub fields
{
	my ($number) = @_;
	my $shard = $number > $max_position ? ' of shard ' . ($number >> 10 & 8191) : '';
	return "$shard, counter " . ($number & 1023);
}
