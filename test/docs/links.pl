#!/usr/bin/env perl
# Each relative link of a Markdown page leads to a file, and its anchor to a heading there. docs/README.md, if it is among
# the pages, links to each of the others below docs.
#
#   test/docs/links.pl PAGE...
use strict;
use warnings;

use File::Basename;

my $index = 'docs/README.md';
my ($count, $failures, %anchors, %in_index) = (0, 0);
check_page($_) foreach @ARGV;
foreach my $page (grep { $_ ne $index } grep { m{^docs/} } %in_index ? @ARGV : ())
{
	next if $in_index{$page};
	print "$index has no link to $page\n";
	$failures++;
}
printf "%d links, %d failures\n", $count, $failures;
exit($failures ? 1 : 0);

sub check_page
{
	my ($page) = @_;
	my $line = 0;
	foreach my $text (prose($page))
	{
		$line++;
		while ($text =~ /\]\(([^()\s]+)\)/g)
		{
			my $link = $1;
			next if $link =~ /^[a-z]+:/;
			my ($path, $anchor) = split /#/, $link, 2;
			my $target = $path eq '' ? $page : dirname($page) . "/$path";
			$in_index{$target} = 1 if $page eq $index;
			$count++;
			next if -e $target && (!defined $anchor || anchors($target)->{$anchor});
			print "$page:$line: $link\n";
			$failures++;
		}
	}
}

# The lines of a page; those of code blocks are empty.
sub prose
{
	my ($page) = @_;
	open my $file, '<', $page or die "$page: $!\n";
	my $is_code = 0;
	return map {
		my $is_fence = /^\s*```/;
		$is_code = !$is_code if $is_fence;
		$is_fence || $is_code ? '' : $_
	} <$file>;
}

# As GitHub names them: lower case, without punctuation, blanks as hyphens; a second one of a name gets -1.
sub anchors
{
	my ($page) = @_;
	return $anchors{$page} if $anchors{$page};
	my (%names, %seen);
	foreach (prose($page))
	{
		/^#+\s+(.*?)\s*$/ or next;
		my $name = lc $1 =~ s/\[([^\]]*)\]\([^)]*\)/$1/gr;
		utf8::decode($name);
		$name =~ s/[^\w\- ]//g;
		$name =~ tr/ /-/;
		utf8::encode($name);
		$names{ $seen{$name}++ ? "$name-" . ($seen{$name} - 1) : $name } = 1;
	}
	return $anchors{$page} = \%names;
}
