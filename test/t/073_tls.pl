# The parameters of libpq that secure a connection hold for the servers' connections, too: no row gets to a proxy that
# refuses TLS, and a server that cannot connect as securely is an obstacle.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Cwd qw(getcwd);
use IO::Select;
use IO::Socket::INET;
use IPC::Run;
use MoveTest;
use POSIX ();
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

my $program = shard_program();
my $dir = PostgreSQL::Test::Utils::tempdir();

sub openssl
{
	my $text = '';
	IPC::Run::run([ 'openssl', @_ ], '<', \undef, '>&', \$text) or die "openssl @_: $text";
	return;
}

plan skip_all => 'there is no openssl' unless grep { -x "$_/openssl" } split /:/, $ENV{PATH};

# The name with a certificate of the CA; arguments: of the key.
sub make_certificate
{
	my ($name, @arguments) = @_;
	openssl(qw(req -new -newkey rsa:2048 -subj), "/CN=$name", '-keyout', "$dir/$name.key", '-out', "$dir/$name.csr",
		@arguments);
	openssl(qw(x509 -req -days 2 -CAcreateserial -CA), "$dir/ca.crt", '-CAkey', "$dir/ca.key", '-in', "$dir/$name.csr",
		'-out', "$dir/$name.crt");
	chmod 0600, "$dir/$name.key";
	return;
}

openssl(qw(req -x509 -nodes -days 2 -newkey rsa:2048 -subj /CN=CA -keyout), "$dir/ca.key", '-out', "$dir/ca.crt");
make_certificate('127.0.0.1', '-nodes');
make_certificate('carol', '-passout', 'pass:mumble');

# Default files are in HOME. The servers have a HOME of their own.
mkdir "$dir/$_" foreach qw(command server);
my @nodes;
{
	local $ENV{HOME} = "$dir/server";
	my $conf = "listen_addresses = '127.0.0.1'\nwal_level = logical\nmax_wal_senders = 10\nssl = on\n"
		. "ssl_ca_file = '$dir/ca.crt'\n"
		. "ssl_cert_file = '$dir/127.0.0.1.crt'\nssl_key_file = '$dir/127.0.0.1.key'\n";
	@nodes = map { new_server($_, conf => $conf) } qw(one two);
}
$ENV{HOME} = "$dir/command";
my @at = map { 'host=127.0.0.1 dbname=postgres port=' . $_->port } @nodes;
my @verified = map { "$_ sslmode=verify-full sslrootcert=$dir/ca.crt" } @at;
my $secure = qr{sslmode=verify-full sslrootcert=\Q$dir\E/ca\.crt};

# Answers N to a request for encryption, and writes what it sees into a file.
sub relay
{
	my ($client, $port) = @_;
	for (;;)
	{
		sysread($client, my $begin, 8) == 8 or return;
		my $server = unpack('N', substr $begin, 4) =~ /^8087710[34]$/
			? undef : IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port");
		next if !$server && syswrite $client, 'N';
		syswrite $server, $begin;
		open my $log, '>>', "$dir/seen" or die $!;
		my %other = ($client => $server, $server => $client);
		my $select = IO::Select->new($client, $server);
		while (my @ready = $select->can_read)
		{
			foreach my $socket (@ready)
			{
				sysread($socket, my $bytes, 65536) or return;
				syswrite $log, $bytes;
				syswrite $other{$socket}, $bytes;
			}
		}
	}
	return;
}

my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 20) or die $!;
my $test = $$;
my $proxy = fork;
if ($proxy == 0)
{
	local $SIG{CHLD} = 'IGNORE';
	while (my $client = $listener->accept)
	{
		next if fork;
		relay($client, $nodes[0]->port);
		POSIX::_exit(0);
	}
	POSIX::_exit(0);
}
END { kill 'TERM', $proxy if $proxy && $$ == $test }

my $through = "host=127.0.0.1 dbname=postgres port=" . $listener->sockport;
my ($status, $out, $err);

# The proxy has seen a row.
sub seen { return -e "$dir/seen" && slurp_file("$dir/seen") =~ /a secret/ }

# Of both servers: subscriptions, publications, slots.
sub left
{
	return join ' ', map { $_->safe_psql('postgres', q{
		SELECT (SELECT count(*) FROM pg_subscription) + (SELECT count(*) FROM pg_publication)
			+ (SELECT count(*) FROM pg_replication_slots)}) } @nodes;
}

sub subscription { return $_[0]->safe_psql('postgres', 'SELECT subconninfo FROM pg_subscription') }

# A move, or another verb, that finds the obstacle.
sub finds
{
	my ($name, $expected, @arguments) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	($status, $out, $err) = run_shard($program, @arguments);
	like("$status $out", qr/^1 $expected/, $name) or diag($err);
	return;
}

$nodes[0]->safe_psql('postgres', q{
	SELECT snowflake_create_shard(n, 'insta' || n) FROM generate_series(5, 6) AS n;
	CREATE TABLE insta5.log (id bigint PRIMARY KEY, t text); INSERT INTO insta5.log VALUES (1, 'a secret');
	CREATE TABLE filters (id integer PRIMARY KEY, t text); INSERT INTO filters VALUES (1, 'a secret');
	CREATE ROLE carol LOGIN SUPERUSER});
# The subscription of a move is dropped at its end.
$nodes[1]->safe_psql('postgres', q{
	CREATE TABLE made (dsn text);
	CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql
		AS 'BEGIN INSERT INTO public.made SELECT subconninfo FROM pg_catalog.pg_subscription; END';
	CREATE EVENT TRIGGER note ON ddl_command_end WHEN TAG IN ('CREATE SUBSCRIPTION') EXECUTE FUNCTION note()});

subtest 'a server that cannot connect as securely' => sub {
	my @move = ('move', 'insta5', '--dry-run');
	my $source = '127.0.0.1:' . $nodes[0]->port . '/postgres';
	my $target = '127.0.0.1:' . $nodes[1]->port . '/postgres';
	my $folder = getcwd();
	chdir $dir or die $!;    # which is not that of a server
	my @relative = map { "$_ sslmode=verify-full sslrootcert=ca.crt" } @at;
	finds('the target has no such root certificate',
		qr/$target: SUBSCRIPTION .* root certificate file "ca\.crt" does not exist.*\n.*sslmode=verify-full .*--source/,
		@move, '--from', $relative[0], '--to', $verified[1]);
	finds('nor has the source', qr/$source: SUBSCRIPTION .*"ca\.crt" does not exist.*\n.*--target/,
		@move, '--from', $verified[0], '--to', $relative[1], '--reversible');
	finds('nor has a follower', qr/$target: SUBSCRIPTION.*"ca\.crt" does not exist.*\n.*--source/,
		'global', 'add', 'public.filters', '--on', $relative[0], $verified[1]);
	finds('a list of revoked certificates, which libpq would do without', qr/$target: file revoked\.crl of sslcrl is not/,
		@move, '--from', "$verified[0] sslcrl=revoked.crl", '--to', $verified[1]);
	{
		local $ENV{HOME} = 'command';
		mkdir 'command/.postgresql' or die $!;
		append_to_file('command/.postgresql/root.crl', '');
		finds('the default one, too', qr/$target: file command\/\.postgresql\/root\.crl of sslcrl is not/, @move,
			'--from', $verified[0], '--to', $verified[1]);
		unlink 'command/.postgresql/root.crl' or die $!;
	}
	is(move(@relative, '--dry-run', '--reversible', '--source', $verified[0], '--target', $verified[1]), 'exit code 0',
		'each has them in its own string') or diag($move_error);
	chdir $folder or die $!;

	link "$dir/ca.crt", "$dir/command/.postgresql/root.crt" or die $!;
	foreach my $mode (qw(require verify-full))
	{
		finds("sslmode=$mode with the user's own root certificate",
			qr/$target: SUBSCRIPTION .*"$dir\/server\/\.postgresql\/root\.crt" does not exist/,
			@move, '--from', "$at[0] sslmode=$mode", '--to', $verified[1]);
	}
	unlink "$dir/command/.postgresql/root.crt" or die $!;
	is(left(), '0 0', 'nothing is left');
};

subtest 'a proxy that refuses TLS' => sub {
	(my $proxied = $verified[0]) =~ s/^\Q$at[0]/$through/;
	my @global = ('global', 'add', 'public.filters', '--on');
	is_refused([ $proxied, $verified[1] ], qr/server does not support SSL, but SSL was required/, 'as --from of a move');
	finds('as --source of a move', qr/.*server does not support SSL/,
		'move', 'insta5', '--from', $verified[0], '--to', $verified[1], '--source', $proxied);
	finds('as --source of global add', qr/.*server does not support SSL/, @global, @verified, '--source', $proxied);
	ok(!seen(), 'it has seen no row');
	is(left(), '0 0', 'nothing is left');

	$nodes[1]->safe_psql('postgres', 'CREATE TABLE filters (id integer PRIMARY KEY, t text)');
	is((run_shard($program, @global, @at, '--source', $through))[0], 0, 'without sslmode it is used');
	ok(seen(), 'and sees the row');
	is((run_shard($program, 'global', 'remove', '--on', @at))[0], 0, 'the follower is removed');
};

subtest 'subscriptions of servers that can connect' => sub {
	{
		local @ENV{qw(PGSSLMODE PGSSLROOTCERT)} = ('verify-full', "$dir/ca.crt");
		($status, $out, $err) = run_shard($program, 'global', 'add', 'public.filters', '--on', @at);
		is($status, 0, 'global add with the environment') or diag($err);
	}
	like(subscription($nodes[1]), $secure, 'its subscription is as secure');
	my $name = $nodes[1]->safe_psql('postgres', 'SELECT subname FROM pg_subscription');
	$nodes[1]->safe_psql('postgres', "DROP SUBSCRIPTION $name");
	($status, my $rows) = shard_json($program, 'global', 'verify', @verified);
	like($rows->[0]{hint}, qr/global add --on '[^']* $secure' '[^']* $secure'/, 'a command that is printed, too')
		or diag(explain($rows));
	is((run_shard($program, 'global', 'remove', '--on', @verified))[0], 0, 'the follower is removed');

	$nodes[1]->safe_psql('postgres', 'TRUNCATE made');
	moves([ @verified, '--reversible' ], 'moved with reverse replication', 'move --reversible');
	like($nodes[1]->safe_psql('postgres', 'TABLE made'), $secure, 'the subscription of the move');
	like(subscription($nodes[0]), $secure, 'that of reverse replication');
	append_to_file("$dir/services", "[$_]\n" . join("\n", split / /, $verified[$_]) . "\n") foreach 0, 1;
	local $ENV{PGSERVICEFILE} = "$dir/services";
	moves([ qw(service=0 service=1 --undo) ], 'undone', '--undo with a service file');
	moves([ qw(service=0 service=1 --complete) ], 'dropped', '--complete');
	$nodes[1]->safe_psql('postgres', 'TRUNCATE made');
	moves([ qw(service=0 service=1) ], 'moved', 'move with a service file');
	like($nodes[1]->safe_psql('postgres', 'TABLE made'), $secure, 'its subscription');
};

subtest 'more connections of the command' => sub {
	$nodes[0]->safe_psql('postgres', q{SELECT snowflake_create_shard(7, 'insta7')});
	unlink $nodes[0]->data_dir . '/pg_hba.conf';
	$nodes[0]->append_conf('pg_hba.conf',
		"local all all trust\nhostssl all all 127.0.0.1/32 trust clientcert=verify-full\n");
	$nodes[0]->reload;
	($status, $out, $err) = run_shard($program, 'query', '--jobs', '2', '--sql', 'SELECT 1 AS one',
		"$verified[0] user=carol sslcert=$dir/carol.crt sslkey=$dir/carol.key sslpassword=mumble");
	is($status, 0, 'the key of a certificate has a password') or diag($err);
};

done_testing();
