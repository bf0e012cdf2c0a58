# The way of a schema: a shard, a clone, a move and its undo, while rows are inserted.

package Journey;

use strict;
use warnings;

use IPC::Run;
use POSIX ();
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;

# Returns why it did not arrive.
sub there_and_back
{
	my ($app, $rows) = @_;
	my ($one, $two) = @{ $app->{nodes} };
	my @servers = map { $app->connstr($_) } $one, $two;
	# Before PostgreSQL 16 workers run code of all owners with other rights.
	my @move = ('move', $app->{schema}, '--from', $servers[0], '--to', $servers[1]);
	make_shard($app, $rows);
	my $problem = try_clone($app) // prepare_target($app) // follow_hints($app, @move, '--reversible', '--dry-run');
	return $problem if defined $problem;

	my %before = state_of($app, $one);
	my $writer = start_writer($app);
	await('the writer writes', sub { -s $writer->{journal} });
	foreach my $step ([ @move, '--reversible' ], [ 'verify', '--rows', @servers ],
		[ @move, '--undo' ], [ 'verify', '--rows', @servers ])
	{
		$problem //= try_step($app, @$step);
	}
	my @written = stop_writer($writer);
	return $problem if defined $problem;
	my %after = state_of($app, $one);
	return compare($app, \%before, \%after, @written) // try_step($app, @move, '--complete')
	  // try_step($app, 'verify', '--full', @servers);
}

# The schema becomes shard 1, and its tables have rows.
sub make_shard
{
	my ($app, $rows) = @_;
	my ($one, $two) = @{ $app->{nodes} };
	foreach my $node ($one, $two)
	{
		$app->sql($node, 'CREATE SCHEMA snowflake; CREATE EXTENSION snowflake SCHEMA snowflake;
			GRANT USAGE ON SCHEMA snowflake TO PUBLIC');
		$app->sql($node, slurp_file("$FindBin::RealBin/fill.sql"), 'application');
		$app->sql($node, qq{ALTER DATABASE $app->{name} SET search_path = $app->{schema}, extensions});
	}
	$app->sql($one, "SELECT snowflake.snowflake_create_shard(1, '$app->{schema}')", 'application');
	my $seed = rand();
	my $filled = $app->sql($one, "SET client_min_messages = error; SELECT setseed($seed);
		SELECT * FROM fill.all('$app->{schema}', $rows)", 'application');
	foreach my $line (split /\n/, $filled)
	{
		my ($table, $inserted, $error) = split /\|/, $line, 3;
		next unless defined $inserted;
		$app->{rows} += $inserted;
		note("$app->{name}: table $table took $inserted rows: $error") if $error ne '';
		push @{ $app->{refusing} }, $table if $inserted == 0;
		push @{ $app->{tables} }, $table if $inserted > 0;
	}
	$app->told(scalar(@{ $app->{refusing} }) . " tables took no row: @{ $app->{refusing} }") if $app->{refusing};
	attach($app);
	return;
}

# Keys that the database numbers become native IDs.
sub attach
{
	my ($app) = @_;
	my $one = $app->{nodes}[0];
	my @tables = split /\n/, $app->sql($one, qq{SELECT format('%s|%I', indrelid::regclass, attname)
		FROM fill.tables('$app->{schema}') AS t JOIN pg_index ON indrelid = t AND indisprimary AND indnkeyatts = 1
		JOIN pg_attribute AS a ON attrelid = t AND attnum = indkey[0]
		LEFT JOIN pg_attrdef ON adrelid = t AND adnum = attnum
		WHERE atttypid IN ('int4'::regtype, 'int8'::regtype)
			AND (attidentity <> '' OR pg_get_expr(adbin, adrelid) ~ 'nextval')});
	my @refused;
	foreach my $line (@tables)
	{
		my ($table, $column) = split /\|/, $line;
		my ($status, undef, $err) = $one->psql($app->{name}, "SET client_min_messages = error;
			SELECT snowflake.snowflake_attach('$table', '$column')", extra_params => [ '-U', 'application' ]);
		next if $status == 0;
		push @refused, $table;
		note("$app->{name}: $table is not attached: ", $err =~ /(?:ERROR|DETAIL):  (.*)/g);
	}
	$app->told(@refused . ' of ' . @tables . " tables are not attached: @refused") if @refused;
	return;
}

# --- the command ---

# The error of a step that fails; else nothing.
sub try_step
{
	my ($app, @arguments) = @_;
	my ($status, $out, $err) = run_shard(shard_program(), @arguments);
	note("$app->{name}: $_") foreach grep { !/: (?:source|target|both): / } split /\n/, $err;
	return if $status == 0;
	return "@arguments[0, 1] ... $arguments[-1]: exit code $status: $out$err";
}

# As try_step(), again after the statements of each hint.
sub follow_hints
{
	my ($app, @arguments) = @_;
	my %ports = map { $_->port => $_ } @{ $app->{nodes} };
	my $problem;
	foreach (1 .. 40)
	{
		$problem = try_step($app, @arguments) // return;
		my $is_changed = 0;
		while ($problem =~ /^(.*)\n\s*HINT:\s+(.*)/mg)
		{
			my ($obstacle, @statements) = ($1, remedies($2));
			my ($node) = map { $ports{$_} // () } $obstacle =~ /:(\d+)\//;
			note("$app->{name}: obstacle: ", $obstacle =~ s/^.* exit code \d: //r, ": @statements");
			foreach my $statement (@statements)
			{
				next unless eval { $app->sql($node // $app->{nodes}[0], $statement); 1 };
				$is_changed = 1;
				$app->{obstacles}++;
			}
		}
		return $problem unless $is_changed;
	}
	return $problem;
}

sub remedies
{
	my ($hint) = @_;
	return $1 if $hint =~ /(ALTER TABLE \S+ REPLICA IDENTITY FULL)/;
	return grep { !/\.\.\./ } $hint =~ /\b((?:ALTER|CREATE|DROP|GRANT|REVOKE) [^;]*)(?:;|$)/g;
}

sub try_clone
{
	my ($app) = @_;
	my $one = $app->connstr($app->{nodes}[0]);
	return follow_hints($app, 'clone', $one, '--template', $app->{schema}, '--shards', '2', '--schema', 'copy{}')
	  // try_step($app, 'diff', $one, '--template', $app->{schema}) // write_to_clone($app);
}

# Rows of a clone change nothing in its template.
sub write_to_clone
{
	my ($app) = @_;
	my $one = $app->{nodes}[0];
	my $count = sub { $app->sql($one, "SELECT * FROM fill.counts('$app->{schema}')", 'application') };
	my $before = $count->();
	my $rows = $app->sql($one,
		q{SET client_min_messages = error; SET search_path = copy2, extensions;
		SELECT sum(inserted) FROM fill.all('copy2', 3)}, 'application');
	$app->told('no row can be inserted into the clone') if $rows == 0;
	my $after = $count->();
	$app->sql($one, 'DROP SCHEMA copy2 CASCADE');
	return $before eq $after ? undef : 'rows of the clone changed its template';
}

# The extensions are where they are on the source.
sub prepare_target
{
	my ($app) = @_;
	my ($one, $two) = @{ $app->{nodes} };
	$app->sql($two, $app->sql($one, q{SELECT format('CREATE SCHEMA IF NOT EXISTS %1$I;
			GRANT USAGE ON SCHEMA %1$I TO PUBLIC; CREATE EXTENSION IF NOT EXISTS %2$I SCHEMA %1$I;',
			extnamespace::regnamespace, extname)
		FROM pg_extension WHERE extname <> 'plpgsql'}));
	return;
}

# --- the writer ---

# A process that inserts a row at a time where the shard is open, and updates one. Its journal: a table and the key of
# an inserted row.
sub start_writer
{
	my ($app) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $writer = { journal => "$dir/journal", stop => "$dir/stop" };
	$writer->{pid} = fork() // die "fork: $!";
	return $writer if $writer->{pid};
	my @places = map { $app->connstr($_) } @{ $app->{nodes} };
	my $parent = getppid();
	for (my $n = 1000; !-e $writer->{stop} && getppid() == $parent; $n++)
	{
		my $table = $app->{tables}[ rand @{ $app->{tables} } ];
		foreach my $call ("row('$table', $n)", "change('$table')")
		{
			my ($key, $err) = ('', '');
			my $is_done = IPC::Run::run([ 'psql', '-XAtq', '-v', 'VERBOSITY=sqlstate', '-U', 'application', '-d', $places[0],
					'-c', "SELECT fill.$call" ], '<', \undef, '>', \$key, '2>', \$err);
			append_to_file($writer->{journal}, "$table\t$key") if $is_done && $key =~ /\S/;
			push @places, shift @places if $err =~ /25006|42P01|3F000|42501/;
		}
	}
	POSIX::_exit(0);
}

# [ table, key ] of each row.
sub stop_writer
{
	my ($writer) = @_;
	append_to_file($writer->{stop}, '');
	waitpid $writer->{pid}, 0;
	return map { [ split /\t/, $_, 2 ] } split /\n/, slurp_file($writer->{journal});
}

# --- before and after ---

sub state_of
{
	my ($app, $node) = @_;
	my $counts = $app->sql($node, "SELECT * FROM fill.counts('$app->{schema}')", 'application');
	my ($dump, $err);
	my @pg_dump = ('pg_dump', '--schema-only', '-n', $app->{schema}, '-d', $app->connstr($node));
	IPC::Run::run(\@pg_dump, '>', \$dump, '2>', \$err) or die "pg_dump: $err";
	my @lines = grep { !/^(--|\\|$)/ } split /\n/, $dump;
	return (counts => { map { split /\|/ } split /\n/, $counts }, definition => \@lines);
}

# Each row of the writer is there; triggers of the application may have inserted others.
sub compare
{
	my ($app, $before, $after, @written) = @_;
	my (%keys, @lost);
	push @{ $keys{ $_->[0] } }, $_->[1] foreach @written;
	foreach my $table (sort keys %keys)
	{
		my $keys = join ', ', map { '$key$' . $_ . '$key$' } @{ $keys{$table} };
		my $lost = $app->sql($app->{nodes}[0], "SELECT fill.lacks('$table', ARRAY[$keys])", 'application');
		push @lost, "$table: $lost" if $lost != 0;
		my $more = ($after->{counts}{$table} // 0) - ($before->{counts}{$table} // 0);
		my $written = @{ $keys{$table} };
		$app->told("table $table has $more more rows, $written were inserted") if $more < $written;
	}
	note("$app->{name}: " . @written . ' rows were inserted meanwhile');
	return "rows are lost: @lost" if @lost;
	my %lines;
	$lines{$_}++ foreach @{ $after->{definition} };
	$lines{$_}-- foreach @{ $before->{definition} };
	my @changed = grep { $lines{$_} } sort keys %lines;
	return @changed ? "the definition has changed: @changed" : undef;
}

1;
