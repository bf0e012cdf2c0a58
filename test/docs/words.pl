#!/usr/bin/env perl
# Counts clauses that begin with "what", "whatever", "whoever" or "all that" in place of a noun ("make there
# what is missing"). They take a second reading, above all of readers with another mother tongue. In pages, idioms that have
# a plain word count, too: "mend" (fix), "goes on" (continues), "comes twice" (is repeated), "way back" (undo, reverse replication).
#
#   test/docs/words.pl PATH...
#
# Reads the prose of Markdown pages, the comments of all other files, and the string literals of C++, whose words are
# not counted, because most are SQL. A path can be a folder. More than 3 in 10,000 words are a failure, and then each is
# printed.
#
# In C++ it also finds sentences without a subject ("Of a killed command."): comments that begin with one of seven
# words, and later sentences or messages that begin with one of five. "Those" and "Its" may refer to the sentence
# before. Each is a failure.
use strict;
use warnings;

use File::Find;

my $limit  = 3;
my $clause = qr/\b(?:what|whoever|that\s+which|all\s+that)\b|(?<!, )\bwhatever\b/i;
my $idiom  = qr/\b(?:mend(?:s|ed)?|go(?:es)?\s+on|go(?:es)?\s+over\s+to|comes?\s+(?:twice|again)|way\s+back|in\s+(?:its|their)\s+turn
	|(?:is|are)\s+told|also\s+coming|but\s+for|shall)\b/ix;
my $later = qr/(?:Of|Behind|Alone|Also|Asked)\b/;
my $first = qr/$later|(?:Those|Its)\b/;
my $gap   = qr/[\s*]*/;    # also the * at the beginning of a comment's line

# Their comments are not in order yet.

my %comment_of = (
	cpp => qr{/\*(.*?)\*/|//([^\n]*)|R"(\w*)\((.*?)\)\g{-2}"|"((?:[^"\\\n]|\\.)*)"|'(?:[^'\\\n]|\\.)'}s,
	sql => qr{--([^\n]*)|COMMENT ON [^;]*? IS\s+'([^;]*)';}s,
	sh  => qr{(?:^|\s)#([^\n]*)}m);

my ($words, @found, @subjectless) = (0);
find({ no_chdir => 1, wanted => sub { read_file($_) if -f } }, @ARGV);
my $rate = $words ? 10_000 * @found / $words : 0;
if ($rate > $limit)
{
	print "$_\n" foreach @found;
}
printf "%d in %d words: %.1f in 10,000; at most %d\n", scalar @found, $words, $rate, $limit;
print "no subject: $_\n" foreach @subjectless;
printf "%d sentences without a subject; at most 0\n", scalar @subjectless;
exit($rate > $limit || @subjectless ? 1 : 0);

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
		my ($group) = grep { defined $-[$_] } 1, 2, 4, 5 or next;
		my ($start, $is_literal) = ($-[$group], $group > 2);
		my $prose = substr($text, $start, $+[$group] - $start);
		count($name, \$text, $start, $prose, $clause, $is_literal);
		next if $kind ne 'cpp';
		my $begin = $is_literal ? $later : $first;
		while ($prose =~ /\A$gap\K$begin|[.:?!]\s$gap\K$later/g)
		{
			push @subjectless, place($name, \$text, $start, $prose, $-[0]);
		}
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
	my ($name, $text, $start, $prose, $sought, $is_literal) = @_;
	$words += () = $prose =~ /[A-Za-z']+/g if !$is_literal;
	while ($prose =~ /$sought/g)
	{
		push @found, place($name, $text, $start, $prose, $-[0]);
	}
}

sub place
{
	my ($name, $text, $start, $prose, $at) = @_;
	my $before = substr($$text, 0, $start + $at);
	my $rest = substr($prose, $at, 50) =~ s/\s+/ /gr;
	return "$name:" . (1 + ($before =~ tr/\n//)) . ": $rest";
}
