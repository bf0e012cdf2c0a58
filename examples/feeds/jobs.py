#!/usr/bin/env python3
"""Works off the jobs of all shards. Any number of these programs can run. route.py is in the same folder.

PGBOUNCER is the connection string of PgBouncer, without a database.
"""

import os
import sys
import time

import psycopg

from route import SHARDS, Router

router = Router(os.environ.get("PGBOUNCER", "host=/tmp port=6432"))


def work(connection):
    """One job, once: it is deleted in the transaction that does it. SKIP LOCKED: others take the next one."""
    job = connection.execute("""
        DELETE FROM jobs WHERE id = (SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
        RETURNING photo_id""").fetchone()
    if job:
        connection.execute("INSERT INTO thumbnails (photo_id) VALUES (%s)", job)
    return job


def settle(connection):
    """One program at a time: the row is the lock, and moves with the shard."""
    connection.execute("SET LOCAL lock_timeout = '1s'")  # a long transaction of one shard does not stop the others
    connection.execute("INSERT INTO settled (id) VALUES (0) ON CONFLICT DO NOTHING")  # clone copies no rows
    if connection.execute("SELECT id FROM settled FOR UPDATE SKIP LOCKED").fetchone():
        connection.execute("UPDATE settled SET id = greatest(id, settled_id())")


def main():
    while True:
        for shard in range(SHARDS):
            try:
                while router.transaction(shard, work):
                    pass
                router.rows(shard, "SELECT next_id()")  # the settled ID increases without writes, too
                router.transaction(shard, settle)
            except psycopg.OperationalError as error:  # of this shard alone
                print(f"shard {shard}: {error}", file=sys.stderr)
        time.sleep(1)


if __name__ == "__main__":
    main()
