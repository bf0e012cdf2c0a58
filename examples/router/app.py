#!/usr/bin/env python3
"""Writes photos through PgBouncer all the time, while shards move, and checks every write at the end.

    app.py DSN [--seconds 10] [--clients 4] [--shards 24]

DSN is PgBouncer's, without a database: "host=/tmp/router port=6432 user=app". The database is the alias
of a shard: shard5. A new photo goes to the shard of its user, user_id % 24. A photo that is there is
found by its ID alone, which carries the shard.

Exit code: 0 if no statement failed and every write that was acknowledged is there, else 1.
"""

import argparse
import random
import threading
import time

import psycopg


def shard_of(photo_id):
    """As snowflake_shard(id)."""
    return (photo_id >> 10) & 8191


class Router:
    """A connection to the alias of each shard, made when it is needed."""

    def __init__(self, dsn):
        self.dsn = dsn
        self.connections = {}

    def execute(self, shard, query, parameters):
        if shard not in self.connections:
            # In transaction mode a prepared statement may meet another server connection.
            self.connections[shard] = psycopg.connect(
                self.dsn, dbname=f"shard{shard}", autocommit=True, prepare_threshold=None)
        schema = psycopg.sql.Identifier(f"insta{shard}")
        return self.connections[shard].execute(psycopg.sql.SQL(query).format(schema), parameters).fetchone()


class Client(threading.Thread):
    """Inserts, updates and deletes, and remembers what was acknowledged."""

    def __init__(self, number, options):
        super().__init__()
        self.random = random.Random(options.seed + number)
        self.router = Router(options.dsn)
        self.options = options
        self.captions = {}
        self.deleted = []
        self.errors = []
        self.writes = 0
        self.slowest = 0.0

    def run(self):
        deadline = time.monotonic() + self.options.seconds
        while time.monotonic() < deadline:
            start = time.monotonic()
            try:
                self.write()
                self.writes += 1
            except psycopg.Error as error:
                self.errors.append(str(error).strip())
                break
            self.slowest = max(self.slowest, time.monotonic() - start)

    def write(self):
        chance = self.random.random()
        if chance < 0.6 or not self.captions:
            user_id = self.random.randrange(1, 1_000_000)
            caption = f"new {self.random.random()}"
            shard = user_id % self.options.shards
            photo_id, = self.router.execute(
                shard, "INSERT INTO {}.photos (user_id, caption) VALUES (%s, %s) RETURNING id", (user_id, caption))
            assert shard_of(photo_id) == shard
            self.captions[photo_id] = caption
            return
        photo_id = self.random.choice(list(self.captions)[-50:])
        if chance < 0.9:
            caption = f"changed {self.random.random()}"
            self.router.execute(shard_of(photo_id), "UPDATE {}.photos SET caption = %s WHERE id = %s RETURNING id",
                                (caption, photo_id))
            self.captions[photo_id] = caption
        else:
            self.router.execute(shard_of(photo_id), "DELETE FROM {}.photos WHERE id = %s RETURNING id", (photo_id,))
            del self.captions[photo_id]
            self.deleted.append(photo_id)


def lost_writes(options, clients):
    """The IDs whose row is not what was acknowledged last."""
    router = Router(options.dsn)
    lost = []
    for client in clients:
        for photo_id in list(client.captions) + client.deleted:
            row = router.execute(shard_of(photo_id), "SELECT caption FROM {}.photos WHERE id = %s", (photo_id,))
            if (row[0] if row else None) != client.captions.get(photo_id):
                lost.append(photo_id)
    return lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dsn")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--shards", type=int, default=24)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    options = parser.parse_args()

    clients = [Client(number, options) for number in range(options.clients)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()

    errors = [error for client in clients for error in client.errors]
    lost = lost_writes(options, clients)
    print(f"{sum(client.writes for client in clients)} writes, {len(errors)} errors, {len(lost)} lost; "
          f"the slowest took {max(client.slowest for client in clients) * 1000:.0f} ms (seed {options.seed})")
    for line in errors + [f"lost: {photo_id}" for photo_id in lost[:10]]:
        print(line)
    return 1 if errors or lost else 0


if __name__ == "__main__":
    raise SystemExit(main())
