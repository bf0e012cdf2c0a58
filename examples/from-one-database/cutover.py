"""From the old database to the shards, and back. Writes are blocked for a moment, in which both are equal."""

import time

import psycopg

from begin import subscribe
from checks import narrow_columns
from compare import Comparison
from sequences import Sequences
from servers import (
    Problem, await_marker, has_marker, oid_of, partitions_of, reopen, send_marker, tables_of, wait_until, written_tables)

# Transactions that may have written tables before these were closed. A prepared one has no process.
WRITERS = """
    SELECT DISTINCT virtualtransaction FROM pg_locks
    WHERE locktype = 'relation' AND granted AND relation = ANY (%s::oid[]) AND pid IS DISTINCT FROM pg_backend_pid()
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')"""
FAILURES = """
    SELECT coalesce(sum(apply_error_count), 0) FROM pg_stat_subscription_stats
    WHERE subname IN ('distribute', 'distribute_back')"""
STILL = "SELECT count(*) FROM pg_locks WHERE virtualtransaction = ANY (%s)"


def close(server, tables, timeout):
    """No client writes when this returns. A transaction that locks a table later finds it closed."""
    server.run("DROP TABLE IF EXISTS distribute.open")
    writers = [writer for (writer,) in server.rows(WRITERS, [tables])]
    if writers:
        wait_until(f"the transactions that write to {server.name} have ended",
                   lambda: not server.value(STILL, [writers]), timeout, 0.005)


def oids_of(server):
    return [oid_of(server, schema, table) for schema, table in written_tables(server)]


def switch(source, target, sequences, timeout):
    """Writes are blocked from the beginning to the end. If anything fails, the source is open again."""
    catch_up(source, target)
    sequences.prepare()
    comparison = Comparison(source, target)
    tables = oids_of(source)
    begin = time.monotonic()
    try:
        close(source, tables, timeout)
        marker = send_marker(source)
        comparison.look(source)
        values = sequences.read()
        await_marker(target, marker, timeout)
        comparison.look(target)
        sequences.write(values)
        reopen(target)
    except BaseException as error:
        try:
            is_open = target.has("distribute.open")
        except psycopg.Error:
            raise Problem(f"{target.name} does not answer, and may be open. The tables of {source.name} are closed until "
                          f"the same command is run again: {error}") from None
        if not is_open:
            reopen(source)
        raise
    print(f"writes were blocked for {round((time.monotonic() - begin) * 1000)} ms")
    return comparison


def catch_up(source, target):
    """However long it takes, unless the worker fails again and again: it begins anew after each error."""
    failures = target.value(FAILURES)

    def is_done():
        if target.value(FAILURES) > failures + 3:
            raise Problem(f"rows cannot be written: see the log of {target.name}")
        return has_marker(target, marker)

    marker = send_marker(source)
    wait_until(f"{target.name} has followed", is_done, float("inf"), 0.02)


def cutover(old, new, one_way, timeout):
    require_incomplete(old)
    keys = dict(tables_of(new))
    comparison = None
    if not new.has("distribute.open"):
        if not new.has("distribute.begun") or not new.subscription("distribute"):
            raise Problem("the shards do not follow: distribute abort, then begin")
        if not one_way:
            require_wide(old, new, keys)
            new.make_slot("distribute_back")
        comparison = switch(old, new, Sequences(old, new, old), timeout)
    # Before the reverse replication, whose rows would come back.
    new.drop_subscription("distribute", old)
    if new.has_slot("distribute_back"):
        reverse(old, new)
    print("the old database follows: distribute undo, or distribute complete" if new.has_slot("distribute_back")
          else "the old database does not follow: distribute complete")
    tell(comparison, keys, "distribute undo returns to the old database")


def require_incomplete(old):
    if old.has("distribute.completed"):
        raise Problem("the end has begun: distribute complete")


def reverse(old, new):
    """The slot is older than the opening, and replication begins at the opening: the old database has all before it."""
    if not old.subscription("distribute_back"):
        subscribe(old, "distribute_back", new, ", copy_data = false, enabled = false")
    if not old.value("SELECT subenabled FROM pg_subscription WHERE oid = %s", [old.subscription("distribute_back")]):
        opening = new.value("SELECT lsn::text FROM distribute.open")
        old.rows("SELECT pg_replication_origin_advance(%s, %s)", [f"pg_{old.subscription('distribute_back')}", opening])
        old.run("ALTER SUBSCRIPTION distribute_back ENABLE")


def require_wide(old, new, keys):
    narrow = ", ".join(narrow_columns(old, new, keys, partitions_of(new)[0][1]))
    if narrow:
        raise Problem(f"the old database cannot take back rows, because their IDs do not fit: {narrow}. "
                      "Make these columns bigint, or give --one-way: then the cutover cannot be undone")


def undo(old, new, timeout):
    require_incomplete(old)
    comparison = None
    if not old.has("distribute.open"):
        if not old.subscription("distribute_back"):
            raise Problem("the old database does not follow: run distribute cutover again" if new.has_slot("distribute_back")
                          else "there is nothing to undo, or the cutover was --one-way")
        comparison = switch(new, old, Sequences(new, old, old), timeout)
    old.drop_subscription("distribute_back", new)
    print("the old database is written again: distribute abort empties the shards")
    tell(comparison, dict(tables_of(old)), "the shards have the other rows until distribute abort")


def tell(comparison, keys, hint):
    if comparison is None:
        print("the rows are not compared, because this command was interrupted before")
        return
    different = comparison.finish(keys)
    if different:
        raise Problem(f"the rows of these tables differ: {', '.join(different)}: {hint}")
