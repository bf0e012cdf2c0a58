# New rows of all kinds of tables: with next_id(), attached, partitioned, adopted, and with sequences of their own. Each shard
# has another table beside, which is written rarely. query --since, which is killed at random, appends each row once to its
# output; a consumer with snowflake_settled_id() of the table reads each row once. The server crashes meanwhile, and
# transactions commit late. A consumer that reads "id > last" misses rows.
#
#   SNOWFLAKE_TEST_CYCLES   the number of kills (40)
#   SNOWFLAKE_TEST_SEED     as an earlier run has printed it

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FaultTest;
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Utils;
use ShardTest;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

my $program = shard_program();
seed_random();
my $kills = trials(40, 1000);
my $dir = PostgreSQL::Test::Utils::tempdir;

my $node = new_server('kinds', conf => "max_connections = 60\n");
my @kinds = ('next_id()', 'attached', 'partitioned', 'adopted', 'sequences of their own');
my @photos = (
	q{CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT insta0.next_id(), caption text)},
	q{CREATE TABLE photos (id serial PRIMARY KEY, caption text); INSERT INTO photos (caption) VALUES ('old');
	  SELECT public.snowflake_attach('photos', shard => 1)},
	q{CREATE TABLE photos (id bigserial PRIMARY KEY, caption text) PARTITION BY HASH (id);
	  CREATE TABLE even PARTITION OF photos FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	  CREATE TABLE odd PARTITION OF photos FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	  SELECT public.snowflake_attach('photos', shard => 2)},
	q{CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT insta3.next_id(), caption text)},
	q{CREATE SEQUENCE s; CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT public.snowflake_next_id(4, 's'), caption text)});
foreach my $shard (0 .. $#kinds)
{
	$node->safe_psql('postgres', $shard == 3 ? q{
		CREATE SCHEMA insta3; CREATE SEQUENCE insta3.table_id_seq;
		CREATE FUNCTION insta3.next_id(OUT result bigint) LANGUAGE plpgsql AS $$
		DECLARE
			our_epoch bigint := 1314220021721;
			seq_id bigint;
			now_millis bigint;
			shard_id int := 3;
		BEGIN
			SELECT nextval('insta3.table_id_seq') % 1024 INTO seq_id;
			SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
			result := (now_millis - our_epoch) << 23;
			result := result | (shard_id << 10);
			result := result | (seq_id);
		END $$} : "SELECT snowflake_create_shard($shard, 'insta$shard')");
	$node->safe_psql('postgres', qq{SET search_path = insta$shard; $photos[$shard];
		CREATE TABLE likes (id bigserial PRIMARY KEY, caption text);
		INSERT INTO photos (caption) VALUES ('first');
		SELECT public.snowflake_attach('likes', shard => $shard)});
}
$node->safe_psql('postgres', q{SELECT snowflake_adopt('insta3.next_id()', 3)});

# A consumer of one table each, with the position in the database.
$node->safe_psql('postgres', q{
	CREATE TABLE consumers (tab regclass, is_settled boolean, last bigint DEFAULT 0);
	CREATE TABLE seen (tab regclass, is_settled boolean, id bigint);
	CREATE TABLE stop ();
	CREATE PROCEDURE consume(which regclass, by_settled boolean) LANGUAGE plpgsql AS $$
	DECLARE
		own consumers;
		settled bigint;
		newest bigint;
		is_last boolean;
	BEGIN
		LOOP
			is_last := to_regclass('stop') IS NULL;
			SELECT * INTO own FROM consumers AS c WHERE c.tab = which AND c.is_settled = by_settled;
			settled := CASE WHEN by_settled THEN greatest(own.last, snowflake_settled_id(which)) ELSE 9223372036854775807 END;
			EXECUTE format('WITH new AS (INSERT INTO seen SELECT %L::regclass, %L::boolean, id FROM %s WHERE id > $1 AND id <= $2
			                RETURNING id) SELECT max(id) FROM new', which, by_settled, which) INTO newest USING own.last, settled;
			UPDATE consumers AS c SET last = CASE WHEN by_settled THEN settled ELSE coalesce(newest, last) END
			WHERE c.tab = which AND c.is_settled = by_settled;
			COMMIT;
			EXIT WHEN is_last;
			PERFORM pg_sleep(0.02);
		END LOOP;
	END $$});
my @tables = map { "insta$_.photos" } 0 .. $#kinds;
my @consumers = map { my $table = $_; map { [ $table, $_ ] } 'true', 'false' } @tables;
$node->safe_psql('postgres', "INSERT INTO consumers VALUES ('$_->[0]', $_->[1])") foreach @consumers;

sub start_consumers
{
	return map { my $call = "CALL consume('$_->[0]', $_->[1])";
		IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $call ], '<', '/dev/null',
			'>', '/dev/null', '2>', '/dev/null') } @consumers;
}

append_to_file("$dir/write.sql", join "\n", '\\set shard random(0, 4)', '\\set late random(0, 20)',
	q{BEGIN; INSERT INTO insta:shard.photos (caption) SELECT E'a "b",\nc' FROM generate_series(1, 20);},
	'\\sleep :late ms', "COMMIT;\n");
append_to_file("$dir/rare.sql", "\\set shard random(0, 4)\nINSERT INTO insta:shard.likes (caption) VALUES ('rare');\n");

sub start_writers
{
	return IPC::Run::start([ 'pgbench', '-n', '-c', 8, '-j', 2, '-T', 600, '-f', "$dir/write.sql\@99", '-f',
			"$dir/rare.sql\@1", $node->connstr('postgres') ], '<', '/dev/null', '>', '/dev/null', '2>', '/dev/null');
}

my %outputs = (csv => "$dir/out.csv", jsonl => "$dir/out.jsonl");
# Two sequences can make the same ID.
my $rows = q{SELECT id, caption, '%1$s' AS tab FROM %1$s WHERE id > $1 AND id <= $2};
my $sql = join(' UNION ALL ', map { sprintf $rows, $_ } 'photos', 'likes') . ' ORDER BY id';

sub append_new_rows
{
	my ($format) = @_;
	local $ENV{OUTPUT} = $outputs{$format};
	return IPC::Run::start([ 'sh', '-c', 'exec "$0" "$@" >>"$OUTPUT"', $program, 'query', $node->connstr('postgres'),
			'--since', "$dir/$format.json", '--format', $format, '--jobs', 2, '--sql', $sql ],
		'<', '/dev/null', '2>>', "$dir/$format.err");
}

# Table and ID.
sub rows_in
{
	my ($format) = @_;
	my $text = slurp_file($outputs{$format});
	return map { my $row = decode_json($_); "$row->{tab} $row->{id}" } split /\n/, $text if $format eq 'jsonl';
	my @rows = ([]);
	while ($text =~ /\G(?:"((?:[^"]|"")*)"|([^,"\n]*))([,\n])/gc)
	{
		push @{ $rows[-1] }, $1 // $2;
		push @rows, [] if $3 eq "\n";
	}
	is(pos $text, length $text, 'the output has records alone');
	shift @rows;    # the heading
	return map { "$_->[4] $_->[2]" } grep { @$_ == 5 } @rows;
}

my ($writers, @consuming) = (start_writers(), start_consumers());
foreach my $kill (1 .. $kills)
{
	show_progress('since', $kill, $kills);
	# At a random time, or when a run has begun to print.
	my %sizes = map { $_ => -s $outputs{$_} // 0 } keys %outputs;
	my @runs = map { append_new_rows($_) } sort keys %outputs;
	usleep(int rand 400_000) if $kill % 2;
	await('rows are printed', sub { !goes_on($runs[0]) || -s $outputs{csv} > $sizes{csv} }) unless $kill % 2;
	kill_command($_) foreach @runs;
	next unless $kill == int($kills / 2);
	crash($node);
	$_->finish foreach $writers, @consuming;
	$node->start;
	($writers, @consuming) = (start_writers(), start_consumers());
}
await('10^5 rows were written',
	sub { $node->safe_psql('postgres', 'SELECT ' . join(' + ', map { "(SELECT count(*) FROM $_)" } @tables)) > 100_000 });
$writers->signal('TERM');
$writers->finish;
$node->safe_psql('postgres', 'DROP TABLE stop');
$_->finish foreach @consuming;

my %written;
foreach my $shard (0 .. $#kinds)
{
	foreach my $table ('photos', 'likes')
	{
		$written{"$table $_"} = 1 foreach split /\n/, $node->safe_psql('postgres', "SELECT id FROM insta$shard.$table");
	}
}
foreach my $format (sort keys %outputs)
{
	subtest "query --since --format $format" => sub {
		my $run = append_new_rows($format);
		$run->finish;
		is($run->result(0), 0, 'the last run ends') or diag(slurp_file("$dir/$format.err"));
		my %seen;
		my $lines = () = map { $seen{$_}++ } rows_in($format);
		note("$lines rows; " . (() = slurp_file("$dir/$format.err") =~ /were cut off/g) . ' outputs were cut');
		is(scalar(grep { !$seen{$_} } keys %written), 0, 'no row is missed');
		is(scalar(grep { $seen{$_} > 1 } keys %seen), 0, 'none is doubled');
		is(scalar(grep { !$written{$_} } keys %seen), 0, 'and none comes from elsewhere');
		like(slurp_file("$dir/$format.json"), qr/\A(?:\{"shard": \d, "id": "\d+"\}\n){5}\z/, 'the file has the IDs alone');
	};
}

subtest 'consumers' => sub {
	my $missed = 0;
	foreach my $shard (0 .. $#kinds)
	{
		my $faults = sub { $node->safe_psql('postgres', qq{
			SELECT (SELECT count(*) FROM $tables[$shard] WHERE id NOT IN (SELECT id FROM seen WHERE tab = '$tables[$shard]'::regclass
			        AND is_settled = $_[0])),
			       (SELECT count(*) - count(DISTINCT id) FROM seen WHERE tab = '$tables[$shard]'::regclass AND is_settled = $_[0])}) };
		is($faults->('true'), '0|0', "$kinds[$shard]: none is missed, none is doubled");
		$missed += (split /\|/, $faults->('false'))[0];
	}
	cmp_ok($missed, '>', 0, 'id > last misses rows of the same load');
	note("$missed rows");
};

subtest 'a session that ends while its rows are printed' => sub {
	$node->safe_psql('postgres', q{INSERT INTO insta0.photos (caption) SELECT repeat('x', 4000) FROM generate_series(1, 20000);
		INSERT INTO insta1.photos (caption) VALUES ('beside')});
	my $size = -s $outputs{csv};
	my $run = append_new_rows('csv');
	await('rows are printed', sub { -s $outputs{csv} > $size });
	$run->signal('STOP');
	$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE application_name LIKE 'snowflake-shard%' AND pid <> pg_backend_pid()});
	$run->signal('CONT');
	$run->finish;
	is($run->result(0), 3, 'exit code 3');
	like(slurp_file("$dir/csv.err"), qr/some rows of shard 0 were printed before the error: the next run cuts/, 'it is told');
	$run = append_new_rows('csv');
	$run->finish;
	is($run->result(0), 0, 'the next run ends');
	my $text = slurp_file($outputs{csv});
	is(() = $text =~ /,x{4000},photos$/mg, 20000, 'the rows are printed once');
	is(() = $text =~ /,beside,photos$/mg, 1, 'and those of another shard');
};

$node->stop;
done_testing();
