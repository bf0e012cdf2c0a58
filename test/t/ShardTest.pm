# Helpers of the tests of snowflake-shard: they run the program, read its JSON, and compare schemas.

package ShardTest;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use JSON::PP;
use Test::More;

our @EXPORT = qw(
  shard_program
  shard_program_if_built
  shard_command
  run_shard
  shard_json
  states
  dump_of
  make_template
);

# The program beside the server's; the test is skipped where it was not built.
sub shard_program
{
	my $program = shard_program_if_built();
	plan skip_all => 'snowflake-shard was not built: its headers are not here' unless defined $program;
	return $program;
}

sub shard_program_if_built
{
	my ($bindir) = qx(pg_config --bindir) =~ /(.*)/;
	my $program = "$bindir/snowflake-shard";
	return -x $program ? $program : undef;
}

# Arguments in which a server stands for its connection string.
sub shard_command
{
	return map { ref $_ ? $_->connstr('postgres') : $_ } @_;
}

# Exit code, standard output, standard error.
sub run_shard
{
	my ($program, @arguments) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run([ $program, shard_command(@arguments) ], '<', \undef, '>', \$out, '2>', \$err);
	return ($? >> 8, $out, $err);
}

# Exit code, and what --json printed.
sub shard_json
{
	my ($status, $out, $err) = run_shard(@_, '--json');
	my $json = eval { decode_json($out) };
	diag("no JSON: $out $err") unless defined $json;
	return ($status, $json // [], $err);
}

# "made 5,6; there already 1": the rows of clone and run.
sub states
{
	my %states;
	push @{ $states{ $_->{state} } }, $_->{shard} foreach @{ $_[0] };
	return join('; ', map { "$_ " . join(',', @{ $states{$_} }) } sort keys %states);
}

# The text of pg_dump -s, without comments, with another name and number in place of the schema's.
sub dump_of
{
	my ($node, $schema, %options) = @_;
	my $text = '';
	IPC::Run::run(
		[ 'pg_dump', '-s', '-n', "\"$schema\"", '-d', $node->connstr('postgres') ], '>', \$text)
	  or die 'pg_dump failed';
	$text =~ s/^(--|\\).*\n//mg;
	if (defined $options{name})
	{
		$text =~ s/\b\Q$schema\E\b/$options{name}/g;
		$text =~ s/(snowflake_next_ids?\((?:shard => )?|next ID of shard |snowflake_shard\(id\) = )$options{from}\b/$1$options{to}/g;
	}
	return $text;
}

# The shard of the documentation, insta0: four tables with an enum, a domain, a view, a trigger, a policy.
sub make_template
{
	my ($node) = @_;
	$node->safe_psql('postgres', q{
		CREATE ROLE app;
		SELECT snowflake_create_shard(0, 'insta0');
		SET search_path = insta0, public;
		CREATE TYPE mood AS ENUM ('glad', 'sad');
		CREATE DOMAIN email AS text CHECK (VALUE ~ '@');
		CREATE TABLE users (id bigint PRIMARY KEY DEFAULT insta0.next_id(), name text, e email, m mood);
		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT insta0.next_id() CHECK (snowflake_shard(id) = 0),
			user_id bigint REFERENCES users ON DELETE CASCADE, caption text);
		CREATE INDEX ON photos (user_id, id);
		CREATE TABLE likes (photo_id bigint REFERENCES photos, user_id bigint REFERENCES users,
			PRIMARY KEY (photo_id, user_id));
		CREATE SEQUENCE log_id_seq;
		CREATE TABLE log (id bigint PRIMARY KEY DEFAULT snowflake_next_id(0, 'insta0.log_id_seq'), t text);
		CREATE VIEW counts AS SELECT name, count(*) FROM users JOIN photos ON user_id = users.id GROUP BY 1;
		CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN new; END$$;
		CREATE TRIGGER touch BEFORE UPDATE ON users FOR EACH ROW
			WHEN (old.name IS DISTINCT FROM new.name) EXECUTE FUNCTION touch();
		ALTER TABLE users ENABLE ROW LEVEL SECURITY;
		CREATE POLICY own ON users USING (name = current_user);
		ALTER TABLE log OWNER TO app;
		GRANT SELECT ON photos TO app;
	});
	return;
}

1;
