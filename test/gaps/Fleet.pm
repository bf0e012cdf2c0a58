# The servers of a trial: one and two, behind the proxy, with a PgBouncer, or one and its standby. A trial begins with
# databases that are copies of a template; for a split, with copies of the stopped servers.

package Fleet;

use strict;
use warnings;

use lib "$FindBin::RealBin/../t";

use DBD::Pg;
use DBI;
use File::Find 'find';
use File::Path 'rmtree';
use PoolerTest;
use PostgreSQL::Test::Utils;
use Proxy;
use SnowflakeTest;
use SplitTest;
use Time::HiRes ();

my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\nmax_connections = 60\n"
  . "max_worker_processes = 12\nmax_logical_replication_workers = 8\nwal_retrieve_retry_interval = 20ms\n"
  . "hot_standby_feedback = on\nrestart_after_crash = on\n";

# Privileges on a database are not copied.
my @make_database = ('CREATE DATABASE app TEMPLATE template', 'GRANT CREATE ON DATABASE app TO mallory');

my $fleets = 0;

# With a standby, server two is that of server one.
sub new
{
	my ($class, %options) = @_;
	my $self = bless { dir => PostgreSQL::Test::Utils::tempdir_short(), %options }, $class;
	my @init = (conf => $conf, init => { allows_streaming => 'logical' });
	my $number = join '_', $$, ++$fleets;    # names of servers are the names of folders, of all processes
	$self->{nodes}{one} = new_server("one_$number", @init);
	$self->{version} = $self->{nodes}{one}->safe_psql('postgres', 'SHOW server_version_num');
	make_template($self->{nodes}{one}, 1);
	if ($options{has_standby}) { $self->keep_copies("two_$number") }
	else
	{
		$self->{nodes}{two} = new_server("two_$number", @init);
		make_template($self->{nodes}{two}, 0);
		$self->{pooler} = new_pooler('') if pgbouncer_program();
	}
	$self->start_proxy();
	return $self;
}

sub start_proxy
{
	my ($self) = @_;
	my $nodes = $self->{nodes};
	my %sockets = map { $_ => { host => $nodes->{$_}->host, port => $nodes->{$_}->port } } keys %$nodes;
	$sockets{pooler} = { host => $self->{pooler}{dir}, port => 6432 } if $self->{pooler};
	foreach my $name (keys %sockets)
	{
		mkdir "$self->{dir}/$name";
		$sockets{$name} = { listen => "$self->{dir}/$name/.s.PGSQL.5432",
			upstream => "$sockets{$name}{host}/.s.PGSQL.$sockets{$name}{port}" };
	}
	$self->{proxy} = Proxy->new(%sockets);
	return;
}

# The database "template", with a shard if wanted. A copy of it is "app".
sub make_template
{
	my ($node, $has_shard) = @_;
	$node->safe_psql('postgres', 'CREATE DATABASE template');
	$node->safe_psql('template', slurp_file("$FindBin::RealBin/setup/$_.sql"))
	  foreach 'roles', 'globals', $has_shard ? 'shard' : ();
	return;
}

sub keep_copies
{
	my ($self, $name) = @_;
	my $one = $self->{nodes}{one};
	$one->safe_psql('postgres', $_) foreach @make_database;
	my $two = $self->{nodes}{two} = new_standby($one, $name);
	$one->wait_for_catchup($two);
	$_->stop foreach $two, $one;
	system('cp', '-a', $_->data_dir, $_->data_dir . '.kept') == 0 or die 'cp failed' foreach $one, $two;
	return;
}

# --- the beginning of a trial ---

sub reset_servers
{
	my ($self, $needs_pooler) = @_;
	$self->{proxy}->stop();
	foreach my $name (qw(one two))
	{
		my $node = $self->{nodes}{$name};
		if ($self->{has_standby})
		{
			delete @{ $self->{sessions} }{ grep { /^$name / } keys %{ $self->{sessions} } };
			$node->stop('immediate') if $node->{_pid};
			restore_folder($node->data_dir, $node->data_dir . '.kept');
			start_server($node);
		}
		else { $self->make_database($name) }
		$self->{logged}{$name} = -s $node->logfile;
	}
	$self->lead_pooler() if $needs_pooler;
	return;
}

# As the kept copy, which has the times of its files, too. A server writes to few of its files: the others stay.
sub restore_folder
{
	my ($folder, $kept) = @_;
	my ($is, $was) = map { files_of($_) } $folder, $kept;
	rmtree([ map { "$folder/$_" } grep { !exists $was->{$_} } keys %$is ]);
	my @changed = grep { ($is->{$_} // '') ne $was->{$_} } sort keys %$was;
	mkdir "$folder/$_" foreach grep { $was->{$_} eq 'folder' } @changed;
	my @files = grep { $was->{$_} ne 'folder' } @changed;
	!@files || system('env', '-C', $kept, 'cp', '-a', '--parents', '-t', $folder, @files) == 0
	  or die 'a data directory could not be restored';
	return;
}

# name => "size time", or "folder"
sub files_of
{
	my ($folder) = @_;
	my %files;
	find({ no_chdir => 1, wanted => sub {
		my @stat = Time::HiRes::lstat($_) or return;
		$files{ substr $_, 1 + length $folder } = -d _ ? 'folder' : "$stat[7] $stat[9]" if $_ ne $folder; } }, $folder);
	return \%files;
}

sub make_database
{
	my ($self, $name) = @_;
	my $admin = $self->session($name, database => 'postgres');
	my ($has_app) = $admin->selectrow_array(q{SELECT 1 FROM pg_database WHERE datname = 'app'});
	if ($has_app)
	{
		$admin->do('ALTER DATABASE app ALLOW_CONNECTIONS true');
		foreach my $subscription (@{ $admin->selectcol_arrayref(q{SELECT quote_ident(subname) FROM pg_subscription
			WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = 'app')}) })
		{
			my $app = $self->session($name);
			$app->do("ALTER SUBSCRIPTION $subscription $_") foreach 'DISABLE', 'SET (slot_name = NONE)';
			$app->do("DROP SUBSCRIPTION $subscription");
		}
		$self->forget("$name app");
		await('the slots are dropped', sub {
			$admin->do('SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active');
			eval { $admin->do('SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots') } });
		$admin->do('DROP DATABASE app WITH (FORCE)');
	}
	$admin->do($_) foreach @make_database;
	return;
}

# The aliases of the set lead to server one, as the command names it.
sub lead_pooler
{
	my ($self) = @_;
	my $file = $self->{pooler}{file};
	unlink $file;
	my @aliases = qw(shard5 shard8);
	append_to_file($file, "[databases]\n" . join '',
		map { "$_ = host=$self->{dir}/one port=5432 dbname=app pool_size=4\n" } @aliases);
	# RESUME is an error if the alias is not paused.
	my @psql = ('psql', '-XAtq', '-d', $self->{pooler}{dsn}, '-o', '/dev/null', '-c', 'RELOAD', map { ('-c', "RESUME $_") } @aliases);
	system("@{[ map { qq('$_') } @psql ]} 2>/dev/null");
	return;
}

# --- names, for the command ---

sub dsn
{
	my ($self, $name) = @_;
	return "host=$self->{dir}/$name port=5432 dbname=app";
}

sub routing
{
	my ($self) = @_;
	return () unless $self->{pooler};
	my $user = getpwuid($<);
	my $console = "host=$self->{dir}/pooler port=5432 dbname=pgbouncer user=$user";
	return ('--pgbouncer', $console, '--config', $self->{pooler}{file});
}

# --- SQL beside the command, not through the proxy ---

# A session that is kept. Options: database, user.
sub session
{
	my ($self, $name, %options) = @_;
	my $node = $self->{nodes}{$name};
	my ($database, $user) = ($options{database} // 'app', $options{user} // scalar getpwuid($<));
	my $place = sprintf 'dbi:Pg:host=%s;port=%s;dbname=%s', $node->host, $node->port, $database;
	my $session = \$self->{sessions}{"$name $database $user"};
	undef $$session if $$session && !$$session->ping;
	$$session //= DBI->connect($place, $user, '', { RaiseError => 1, PrintError => 0, PrintWarn => 0,
			AutoInactiveDestroy => 1, pg_server_prepare => 0 });
	return $$session;
}

# Those on a server, or in a database of it: "one", "one app".
sub forget
{
	my ($self, $place) = @_;
	my $sessions = $self->{sessions};
	$_->disconnect foreach grep { defined } delete @$sessions{ grep { /^$place / } keys %$sessions };
	return;
}

# The first column; nothing if the server, or the database, is not there.
sub column
{
	my ($self, $name, $sql) = @_;
	my $rows = eval { $self->session($name)->selectcol_arrayref($sql) };
	return @{ $rows // [] };
}

# Runs SQL as a role, with no wait for a lock. The error, or ''.
sub try_sql
{
	my ($self, $name, $user, $sql) = @_;
	eval {
		my $session = $self->session($name, user => $user);
		$session->do("SET client_min_messages = error; SET lock_timeout = '100ms'; SET statement_timeout = '5s'");
		$session->do($sql);
		1;
	} and return '';
	my $error = $@;
	eval { $self->session($name, user => $user)->do('ROLLBACK') };
	return $error;
}

# "place as role in backend type": what planted code has noted since the last call.
sub canaries
{
	my ($self) = @_;
	my %noted;
	foreach my $name (qw(one two))
	{
		my $text = slurp_file($self->{nodes}{$name}->logfile, $self->{logged}{$name} // 0);
		$self->{logged}{$name} += length $text;
		$noted{$_} = 1 foreach $text =~ /CANARY: (.* as .* in .*)/g;
	}
	return sort keys %noted;
}

sub restart
{
	my ($self, $name) = @_;
	my $node = $self->{nodes}{$name};
	$self->forget($name);
	$node->stop('immediate');
	start_server($node);
	return;
}

1;
