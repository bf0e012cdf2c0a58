#!/usr/bin/env perl
# Checks that the includes of src/ and cli/ lead where ARCHITECTURE.md lets them: its tables of folders have a column "may
# include". Within a folder no header may include itself on the way round.
#
#   test/docs/layers.pl ARCHITECTURE.md

use strict;
use warnings;

my %may;    # folder => { folders that it may include }; "*": all
my $base = '';
open my $page, '<', $ARGV[0] or die "cannot read $ARGV[0]: $!\n";
my $columns = 0;
while (my $line = <$page>)
{
	$columns = $line =~ /\|\s*may include\s*\|$/ if $line =~ /^\| (?:folder|files) \|/;
	$columns = 0 unless $line =~ /^\|/;
	next unless $columns && $line =~ /^\| (.*?) \|.*\| ([^|]*) \|$/;
	my ($folders, $list) = ($1, $2);
	$list = '*' if $list =~ /^all/;
	foreach my $folder ($folders =~ /`([^`]+)`/g)
	{
		$folder =~ s/\.\*$|\/$//;    # settings.* is settings.h and settings.cpp
		$may{$folder} = { map { s/`//gr => 1 } grep { $_ ne 'nothing' } split /,\s*/, $list };
	}
}

my %includes;    # file => { header }
foreach my $tree ('src', 'cli')
{
	foreach my $file (glob "$tree/*.h $tree/*.cpp $tree/*/*.h $tree/*/*.cpp")
	{
		open my $source, '<', $file or die "cannot read $file: $!\n";
		while (my $line = <$source>)
		{
			$includes{$file}{"$tree/$1"} = 1 if $line =~ /^#include "([^"]+)"/ && -e "$tree/$1";
		}
	}
}

# The row of the file itself, or that of its folder.
sub layer_of
{
	my ($file) = @_;
	my ($without_ending) = $file =~ /^(.*)\./;
	my ($folder) = $file =~ /^(.*)\//;
	my ($layer) = grep { exists $may{$_} } $file, $without_ending, $folder;
	return $layer;
}

my @problems;
foreach my $file (sort keys %includes)
{
	my $from = layer_of($file);
	if (!defined $from)
	{
		push @problems, "no row of ARCHITECTURE.md has $file";
		next;
	}
	foreach my $header (sort keys %{ $includes{$file} })
	{
		my $to = layer_of($header) // next;
		(my $short = $to) =~ s/^(?:src|cli)\///;
		push @problems, "$file includes $header: $from may not include $to"
		  unless $to eq $from || $may{$from}{'*'} || $may{$from}{$short};
	}
}

# Circles of headers, by depth-first search.
my %state;
sub visit
{
	my ($file, @way) = @_;
	my $state = $state{$file} // 'new';
	push @problems, 'a circle: ' . join(' -> ', @way, $file) if $state eq 'open';
	return if $state ne 'new';
	$state{$file} = 'open';
	visit($_, @way, $file) foreach sort keys %{ $includes{$file} // {} };
	$state{$file} = 'done';
	return;
}
visit($_) foreach sort keys %includes;

print "$_\n" foreach @problems;
exit(@problems ? 1 : 0);
