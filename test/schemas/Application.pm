# The database of an application on two servers: the first gets the file's objects and rows.

package Application;

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'time';

sub new
{
	my ($class, $name, $file, @nodes) = @_;
	return bless { name => $name, text => slurp_file($file), nodes => \@nodes, start => time(), told => [],
		relations => 0, rows => 0, obstacles => 0 }, $class;
}

# A finding; the same one is counted once.
sub told
{
	my ($self, $text) = @_;
	$text =~ s/\s+/ /g;
	return if grep { $_ eq $text } @{ $self->{told} };
	push @{ $self->{told} }, $text;
	note("$self->{name}: $text");
	return;
}

# The last line of the run.
sub line
{
	my ($self) = @_;
	return sprintf '%-12s %9d %7d %9d %7d  %s', @$self{qw(name relations rows obstacles seconds)},
		join('; ', map { substr $_, 0, 100 } @{ $self->{told} }) || 'none';
}

sub connstr
{
	my ($self, $node) = @_;
	return $node->connstr($self->{name});
}

sub sql
{
	my ($self, $node, $sql, $user) = @_;
	my @user = defined $user ? (extra_params => [ '-U', $user ]) : ();
	return $node->safe_psql($self->{name}, $sql, @user);
}

# Creates the databases. Returns why the schema cannot be tried.
sub load
{
	my ($self) = @_;
	my ($one, $two) = @{ $self->{nodes} };
	my %wanted;
	$wanted{$1} = $2 // 'public'
	  while $self->{text} =~ /^\s*CREATE EXTENSION (?:IF NOT EXISTS )?"?([\w-]+)"?(?: (?:WITH )?SCHEMA (\w+))?/mgi;
	my $list = join ', ', map { "'$_'" } 'plpgsql', sort keys %wanted;
	my %trusted = map { split /\|/ } split /\n/, $one->safe_psql('template1',
		"SELECT name, bool_or(trusted) FROM pg_available_extension_versions WHERE name IN ($list) GROUP BY name");
	my @missing = grep { !$trusted{$_} } sort keys %wanted;
	return "skipped: extension @missing is not available" if @missing;
	$_->safe_psql('postgres', "CREATE DATABASE $self->{name} OWNER application") foreach $one, $two;
	foreach my $extension (grep { $trusted{$_} eq 'f' } sort keys %wanted)
	{
		$self->sql($one, qq{CREATE SCHEMA IF NOT EXISTS $wanted{$extension} AUTHORIZATION application;
			CREATE EXTENSION "$extension" SCHEMA $wanted{$extension}});
	}
	$self->run_file();
	$self->{schema} = $self->sql($one, q{SELECT relnamespace::regnamespace FROM pg_class
		WHERE relnamespace::regnamespace::text !~ '^(pg_|information_schema)' AND relkind IN ('r', 'p')
		GROUP BY 1 ORDER BY count(*) DESC LIMIT 1});
	return 'no table was made' if $self->{schema} eq '';
	$self->{relations} = $self->sql($one,
		"SELECT count(*) FROM pg_class WHERE relnamespace = '$self->{schema}'::regnamespace");
	return;
}

# As psql does, which goes on after an error. Meta-commands, settings of later versions and other owners are left out.
sub run_file
{
	my ($self) = @_;
	my $text = $self->{text} =~ s/^(?:\\[a-z].*|SET transaction_timeout\b.*|ALTER .* OWNER TO .*)$//mgr;
	my ($out, $err);
	IPC::Run::run([ 'psql', '-XAtq', '-U', 'application', '-d', $self->connstr($self->{nodes}[0]) ],
		'<', \$text, '>', \$out, '2>', \$err);
	my @errors = $err =~ /(?:ERROR|FATAL):\s+(.*)/g;
	$self->told(@errors . " statements of the file failed, the first: $errors[0]") if @errors;
	return;
}

1;
