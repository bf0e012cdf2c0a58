# Reads a logical slot of the plugin pgoutput, as a program does that follows the changes of a server.

package ChangeData;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(decoded_changes);

# [ kind, 'schema.table', values ]: the new row of an INSERT (I) and of an UPDATE (U) whose key has not changed, and the
# key of a DELETE (D). function: get or peek. end: only transactions that were committed before this position.
sub decoded_changes
{
	my ($node, $function, $slot, $publication, $end, %options) = @_;
	my $options = join ', ', map { "'$_'" } (proto_version => 1, publication_names => $publication, %options);
	my @messages = split /\n/, $node->safe_psql('postgres', sprintf
		q{SELECT encode(data, 'hex') FROM pg_logical_slot_%s_binary_changes('%s', %s, NULL, %s)},
		$function, $slot, $end ? "'$end'" : 'NULL', $options);
	my (%tables, @changes);
	foreach my $message (map { pack 'H*', $_ } @messages)
	{
		my ($kind, $oid, $rest) = unpack 'a N a*', $message;
		$tables{$oid} = join '.', (split /\0/, $rest)[ 0, 1 ] if $kind eq 'R';
		push @changes, [ $kind, $tables{$oid}, row_of(substr $rest, 1) ] if $kind =~ /[IUD]/;
	}
	return @changes;
}

# The values of the row with which the message goes on; of NULL, and of a large value that has not changed, ''.
sub row_of
{
	my ($message) = @_;
	my $columns = unpack 'n', substr $message, 0, 2, '';
	my @values;
	foreach (1 .. $columns)
	{
		my $kind = substr $message, 0, 1, '';
		my $length = $kind eq 't' ? unpack('N', substr $message, 0, 4, '') : 0;
		push @values, substr $message, 0, $length, '';
	}
	return @values;
}

1;
