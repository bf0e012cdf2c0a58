# The verbs of the command: how each begins, what it is called with, and what must hold when it has ended or was killed.
#
#   words    what the command is called with
#   prepare  the commands that come before, not tried
#   tables   those that mallory exchanges: of the shard, referred to, global
#   kinds    of actions that are tried
#   repeats  whether the same command goes on after a kill; else "list" says what does
#   last     a command that removes what is left at rest, if there is a record
#   check    faults, in the end
#
# Of the functions in SQL see Functions.pm.

package Verbs;

use strict;
use warnings;

my @reading = (kinds => [qw(exchange kill)], tables => ['insta5.users'], repeats => 1);
my @moving =
  (kinds => [qw(exchange kill stall change)], tables => [ 'insta5.users', 'shared.countries' ], is_move => 1);
# A split that is at rest keeps its record until --complete, and list does not show it.
my @splitting = (@moving, has_standby => 1, last => sub { split_words(@_, '--complete') });
my @global = (kinds => [qw(exchange kill)], tables => ['shop.filters'], repeats => 1, is_global => 1);

# Calls code of mallory.
my $query = q{SELECT id, name, mallory.note('query') FROM users};

sub both { my ($fleet) = @_; return map { $fleet->dsn($_) } qw(one two) }

# Workers write as the role of the subscription.
sub needs_trust
{
	my ($fleet) = @_;
	return $fleet->{version} < 160000;
}

sub move
{
	my ($fleet, @more) = @_;
	my $ends = grep { /^--(?:abort|complete)$/ } @more;
	return ('move', 'insta5', '--from', $fleet->dsn('one'), '--to', $fleet->dsn('two'),
		$ends ? () : ('--timeout', '1s'), $ends ? () : $fleet->routing(), @more);
}

sub split_words
{
	my ($fleet, @more) = @_;
	return ('split', '--from', $fleet->dsn('one'), '--standby', $fleet->dsn('two'), @more);
}

sub global
{
	my ($fleet, $verb, $table) = (@_, 'shop.filters');
	return ('global', 'run', both($fleet), '--sql', "ALTER TABLE $table ADD COLUMN IF NOT EXISTS label text")
	  if $verb eq 'run';
	return ('global', 'verify', both($fleet)) if $verb eq 'verify';
	my @trust = $verb eq 'add' && needs_trust($fleet) ? '--trust-owners' : ();
	return ('global', $verb, $table, @trust, '--on', both($fleet));
}

# A command that was killed before this statement.
sub killed_at
{
	my ($text, @words) = @_;
	return { words => \@words, killed_at => $text };
}

my %verbs = (
	'run' => { @reading,
		words => sub { ('run', both(@_), '--shards', '5', '--once', 'a',
			'--sql', q{INSERT INTO "Old Log" (v) SELECT 'run' FROM mallory.note('run')}) },
		check => sub {
			my ($fleet) = @_;
			my ($count) = $fleet->column('one', q{SELECT count(*) FROM insta5."Old Log" WHERE v = 'run'});
			return ($count // 1) == 1 ? () : "the change was made $count times";
		} },
	'query' => { @reading,
		words => sub { ('query', both(@_), '--shards', '5', '--sql', $query) } },
	'query --then' => { @reading,
		words => sub { ('query', both(@_), '--shards', '5', '--sql', $query, '--then', 'SELECT count(*) FROM rows') } },
	'query --since' => { @reading,
		# A sequence that is behind is advanced.
		prepare => sub {
			my ($fleet) = @_;
			unlink "$fleet->{dir}/since";
			my $error = $fleet->try_sql('one', 'mallory', q{CREATE SEQUENCE insta5.behind;
				CREATE TABLE insta5.later (id bigint DEFAULT public.snowflake_next_id(5, 'insta5.behind'))});
			die $error if $error;
			return;
		},
		words => sub { ('query', both(@_), '--shards', '5', '--since', "$_[0]{dir}/since",
			'--sql', "$query WHERE id > \$1 AND id <= \$2") } },
	'clone' => { @reading,
		words => sub { ('clone', both(@_), '--template', 'insta5', '--shards', '7', '--schema', 'insta{}') },
		check => sub { my ($fleet, $is_killed) = @_; $is_killed ? missing($fleet, 'one', 'insta7.users') : () } },
	'diff' => { @reading, words => sub { ('diff', both(@_), '--template', 'insta5', '--shards', '6') } },
	'list' => { @reading, words => sub { ('list', both(@_)) } },
	'map' => { @reading, words => sub { ('map', both(@_)) } },
	'plan' => { @reading, words => sub { ('plan', both(@_)) } },
	'verify' => { @reading, words => sub { ('verify', both(@_)) } },
	'verify --rows' => { @moving, kinds => [qw(exchange kill)],
		prepare => sub { { words => [ move(@_, '--reversible') ] } },
		words => sub { ('verify', both(@_), '--rows') } },
	'move --dry-run' => { @moving, kinds => [qw(exchange kill)], words => sub { move(@_, '--dry-run', '--reversible') } },
	'move' => { @moving, words => sub { move(@_) } },
	'move --reversible' => { @moving, words => sub { move(@_, '--reversible') } },
	'move --hold' => { @moving, words => sub { move(@_, '--hold', '--reversible') } },
	'move --cutover' => { @moving,
		prepare => sub { { words => [ move(@_, '--hold', '--reversible') ] } },
		words => sub { move(@_, '--cutover') } },
	'move --resume' => { @moving,
		prepare => sub { killed_at(qr/move_N\.set_body\(/, move(@_, '--reversible')) },
		words => sub { move(@_, '--resume') } },
	'move --abort' => { @moving,
		prepare => sub { killed_at(qr/lock_sequence\(/, move(@_, '--reversible')) },
		words => sub { move(@_, '--abort') } },
	'move --undo' => { @moving,
		prepare => sub { { words => [ move(@_, '--reversible') ] } },
		words => sub { move(@_, '--undo') } },
	'move --undo --reversible' => { @moving,
		prepare => sub { { words => [ move(@_, '--reversible') ] } },
		words => sub { move(@_, '--undo', '--reversible') } },
	'move --complete' => { @moving, kinds => [qw(exchange kill change)],
		prepare => sub { { words => [ move(@_, '--reversible') ] } },
		words => sub { move(@_, '--complete') } },
	'move --shards' => { @moving,
		words => sub { my @words = move(@_); splice @words, 1, 1, '--shards', '5,8'; @words },
		check => sub {
			my ($fleet) = @_;
			my $open = q{SELECT nspname FROM pg_namespace WHERE nspname ~ '^insta[58]$' ORDER BY 1};
			my @places = grep { $_ } map { join ' ', $fleet->column($_, $open) } qw(one two);
			return "the set is not in one place: @places" if grep { $_ ne 'insta5 insta8' } @places;
			return ();
		} },
	'split --dry-run' => { @splitting, kinds => [qw(exchange kill)],
		words => sub { split_words(@_, '--shards', '5', '--dry-run') } },
	'split' => { @splitting, words => sub { split_words(@_, '--shards', '5', '--timeout', '1s') } },
	'split --resume' => { @splitting,
		prepare => sub { killed_at(qr/pg_promote/, split_words(@_, '--shards', '5', '--timeout', '1s')) },
		words => sub { split_words(@_, '--resume', '--timeout', '1s') } },
	'split --abort' => { @splitting,
		prepare => sub { killed_at(qr/pg_promote/, split_words(@_, '--shards', '5', '--timeout', '1s')) },
		words => sub { split_words(@_, '--abort') } },
	'split --complete' => { @splitting, kinds => [qw(exchange kill)],
		prepare => sub { { words => [ split_words(@_, '--shards', '5') ] } },
		words => sub { split_words(@_, '--complete') } },
	'global add' => { @global, words => sub { global(@_, 'add') } },
	'global run' => { @global, tables => ['shop.colors'],
		prepare => sub { { words => [ global(@_, 'add', 'shop.colors') ] } },
		words => sub { global(@_, 'run', 'shop.colors') } },
	'global verify' => { @global,
		prepare => sub { { words => [ global(@_, 'add') ] } },
		words => sub { global(@_, 'verify') } },
	'global remove' => { @global,
		prepare => sub { { words => [ global(@_, 'add') ] } },
		words => sub { global(@_, 'remove') } });

sub missing
{
	my ($fleet, $server, $table) = @_;
	my ($is_there) = $fleet->column($server, "SELECT to_regclass('$table') IS NOT NULL");
	return $is_there ? () : "table $table is not on server $server";
}

sub names { return sort keys %verbs }

sub get { my ($name) = @_; return { name => $name, %{ $verbs{$name} } } }

1;
