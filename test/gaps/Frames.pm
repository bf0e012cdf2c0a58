# The frontend/backend protocol of PostgreSQL, as far as a proxy needs it: where a message ends, and which messages
# start work on a server.

package Frames;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT_OK = qw(take_startup take_message text_of_query text_of_parse startup_parameters);

# The first packet of a client: a length and no type. Undef if it is not whole.
sub take_startup
{
	my ($buffer) = @_;
	return if length $$buffer < 4;
	my $length = unpack 'N', $$buffer;
	return if length $$buffer < $length;
	return substr $$buffer, 0, $length, '';
}

# A message: its type, and all its bytes. Nothing if it is not whole.
sub take_message
{
	my ($buffer) = @_;
	return if length $$buffer < 5;
	my ($type, $length) = unpack 'aN', $$buffer;
	return if length $$buffer < 1 + $length;
	return ($type, substr $$buffer, 0, 1 + $length, '');
}

# Simple query, and a command of the replication protocol.
sub text_of_query
{
	return unpack 'x5Z*', $_[0];
}

# The name of the statement, and its text.
sub text_of_parse
{
	return unpack 'x5Z*Z*', $_[0];
}

# user, database, application_name ...; nothing for a request to cancel or to encrypt.
sub startup_parameters
{
	my ($packet) = @_;
	my (undef, $major, $minor, $rest) = unpack 'Nnna*', $packet;
	return if $major != 3;
	my %parameters = map { $_ // '' } split /\0/, $rest;
	return \%parameters;
}

1;
