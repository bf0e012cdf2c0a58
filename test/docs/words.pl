#!/usr/bin/env perl
# Counts clauses that begin with "what", "whatever", "whoever" or "all that" in place of a noun ("make there
# what is missing"). They take a second reading, above all of readers with another mother tongue. In pages, idioms that have
# a plain word count, too: "mend" (fix), "goes on" (continues), "comes twice" (is repeated), "way back" (undo, reverse replication).
#
#   test/docs/words.pl PATH...
#
# Of Markdown pages the prose is read, of all other files the comments. A path can be a folder. More than 3
# in 10,000 words are a failure, and then each is printed.
use strict;
use warnings;

use File::Find;

my $limit  = 3;
my $clause = qr/\b(?:what|whoever|that\s+which|all\s+that)\b|(?<!, )\bwhatever\b/i;
my $idiom  = qr/\b(?:mend(?:s|ed)?|go(?:es)?\s+on|go(?:es)?\s+over\s+to|comes?\s+(?:twice|again)|way\s+back|in\s+(?:its|their)\s+turn
	|(?:is|are)\s+told|also\s+coming|but\s+for|shall)\b/ix;

my %comment_of = (
	cpp => qr{/\*(.*?)\*/|//([^\n]*)}s,
	sql => qr{--([^\n]*)|COMMENT ON [^;]*? IS\s+'([^;]*)';}s,
	sh  => qr{(?:^|\s)#([^\n]*)}m);

my ($words, @found) = (0);
find({ no_chdir => 1, wanted => sub { read_file($_) if -f } }, @ARGV);
my $rate = $words ? 10_000 * @found / $words : 0;
if ($rate > $limit)
{
	print "$_\n" foreach @found;
}
printf "%d in %d words: %.1f in 10,000; at most %d\n", scalar @found, $words, $rate, $limit;
exit($rate > $limit ? 1 : 0);

sub read_file
{
	my ($name) = @_;
	open my $file, '<', $name or die "$name: $!\n";
	my $text = do { local $/; <$file> };
	if ($name =~ /\.md$/)
	{
		blank(\$text, qr/^\s*```.*?^\s*```\s*$/ms);
		blank(\$text, qr/`[^`\n]*`|\]\([^()\s]*\)/);    # code, targets of links
		return count($name, \$text, 0, $text, qr/$clause|$idiom/);
	}
	my $kind = $name =~ /\.(?:cpp|h)$/ ? 'cpp' : $name =~ /\.sql$/ ? 'sql' : 'sh';
	while ($text =~ /$comment_of{$kind}/g)
	{
		my ($group) = grep { defined $-[$_] } 1, 2;
		count($name, \$text, $-[$group], substr($text, $-[$group], $+[$group] - $-[$group]), $clause);
	}
}

# Code becomes blanks, so that the numbers of lines stay.
sub blank
{
	my ($text, $code) = @_;
	$$text =~ s{($code)}{$1 =~ s/[^\n]/ /gr}ge;
}

sub count
{
	my ($name, $text, $start, $prose, $sought) = @_;
	$words += () = $prose =~ /[A-Za-z']+/g;
	while ($prose =~ /$sought/g)
	{
		my $before = substr($$text, 0, $start + $-[0]);
		my $rest = substr($prose, $-[0], 50) =~ s/\s+/ /gr;
		push @found, "$name:" . (1 + ($before =~ tr/\n//)) . ": $rest";
	}
}
