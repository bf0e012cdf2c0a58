# A reader of OpenMetrics that refuses more than a scraper: only gauges, in the part of the format that is Prometheus' own
# text format as well.

package OpenMetrics;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(samples_of sample);

my $name = qr/[a-z_]+/;
my $label = qr/[a-z_]+="(?:[^"\\\n]|\\["\\n])*"/;
my $number = qr/-?\d+(?:\.\d+)?/;

sub unescaped
{
	my ($text) = @_;
	$text =~ s/\\(.)/$1 eq 'n' ? "\n" : $1/ge;
	return $text;
}

# Dies at a wrong line. By name: a list of hashes with the labels and the value, which is no label's name.
sub samples_of
{
	my ($text) = @_;
	my (%samples, %series, $family, $unit);
	$text =~ s/^# EOF\n\z//m or die "no EOF\n";
	my @lines = split /(?<=\n)/, $text;
	while (defined(my $line = shift @lines))
	{
		if ($line =~ /^# TYPE ($name) gauge\n\z/)
		{
			die "family twice: $line" if exists $samples{$1};
			($family, $unit) = ($1, '');
			$samples{$family} = [];
			$unit = shift(@lines) =~ s/^# UNIT \Q$family\E ([a-z]+)\n\z/$1/r if $lines[0] =~ /^# UNIT /;
			die "unit $unit: $line" if $unit ne '' && $family !~ /_\Q$unit\E\z/;
			die "no HELP: $line" if shift(@lines) !~ /^# HELP \Q$family\E [^\\\n]+\n\z/;
			next;
		}
		die "no sample: $line" if $line !~ /^($name)\{($label(?:,$label)*)\} ($number)\n\z/;
		my ($of, $labels, $value) = ($1, $2, $3);
		die "sample of another family: $line" if !defined $family || $of ne $family;
		die "series twice: $line" if $series{"$of $labels"}++;
		my @pairs = $labels =~ /([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"/g;
		my %sample = (VALUE => $value);
		while (my ($key, $escaped) = splice @pairs, 0, 2)
		{
			die "label twice: $line" if exists $sample{$key};
			$sample{$key} = unescaped($escaped);
		}
		push @{ $samples{$family} }, \%sample;
	}
	return \%samples;
}

# The value of the one sample with these labels.
sub sample
{
	my ($samples, $family, %labels) = @_;
	my @found = grep { my $s = $_; !grep { ($s->{$_} // '') ne $labels{$_} } keys %labels } @{ $samples->{$family} // [] };
	return @found == 1 ? $found[0]{VALUE} : scalar(@found) . ' samples';
}

1;
