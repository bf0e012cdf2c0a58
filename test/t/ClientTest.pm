# Helpers of the tests that run client programs: they run a command, and find its interpreter and its libraries.

package ClientTest;

use strict;
use warnings;

use Exporter 'import';
use File::Copy qw(copy);
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(
  run
  has_program
  python_with
  java_command
  install_node
);

# Runs a command. Its exit status, its output and its messages.
sub run
{
	my @command = @_;
	IPC::Run::run(\@command, '<', '/dev/null', '>', \my $out, '2>', \my $err);
	return ($? >> 8 || $?, $out, $err);
}

sub has_program
{
	my ($program) = @_;
	return scalar grep { -x "$_/$program" } split /:/, $ENV{PATH};
}

# Debian's modules belong to its own Python, which may not be the first in PATH.
sub python_with
{
	my @modules = @_;
	foreach my $python (map { "$_/python3" } split(/:/, $ENV{PATH}), '/usr/bin')
	{
		return $python if -x $python && (run($python, '-c', 'import ' . join(', ', @modules)))[0] == 0;
	}
	return;
}

# Without the first option a JVM makes a folder in /tmp, whatever TMPDIR says, and leaves it there. With the others it
# takes less processor time for a program that runs a second.
sub java_command
{
	return ('java', '-XX:-UsePerfData', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC');
}

# npm installs what the package files beside the programs name, in a folder that has a copy of the programs. Returns the
# folder, or undef and the reason to skip the test. npm itself only warns if Node.js is too old.
sub install_node
{
	my ($name, $programs) = @_;
	return (undef, 'node or npm is not installed') unless has_program('node') && has_program('npm');
	my ($wanted) = slurp_file("$programs/package.json") =~ /"node": ">=(\d+)"/;
	my ($major) = (run('node', '--version'))[1] =~ /^v(\d+)/;
	return (undef, "$name needs Node.js $wanted") if $wanted && $major < $wanted;
	my $folder = PostgreSQL::Test::Utils::tempdir();
	copy($_, $folder) or die "could not copy $_: $!" foreach glob "$programs/*.js*";
	my ($status, $out, $err) = run('npm', 'ci', '--prefix', $folder,
		qw(--ignore-scripts --no-audit --no-fund --fetch-retries=1 --fetch-timeout=30000));
	# The package files may be wrong. All else that npm ci meets is trouble on the way to the registry.
	my ($code) = $err =~ /\bcode (\w+)/;
	return (undef, "npm cannot get its packages: $code")
	  if $status && $code && $code !~ /^(EUSAGE|EINTEGRITY|EJSONPARSE|ETARGET|E404)$/;
	is($status, 0, "$name: npm ci") or diag("$out$err");
	return $status ? (undef, 'npm ci has failed') : ($folder);
}

1;
