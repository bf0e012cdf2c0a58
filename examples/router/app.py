#!/usr/bin/env python3
"""Writes photos through PgBouncer all the time, while shards move, and checks every write at the end.

    app.py DSN [--seconds 10] [--clients 4] [--shards 24] [--pause 0]

DSN is PgBouncer's, without a database: "host=/tmp/app port=6432 user=app". The database is the alias
of a shard: shard5. A new photo goes to the shard of its user, user_id % 24. A photo that is there is
found by its ID alone, which carries the shard. After each write a client pauses for so many milliseconds.
SIGTERM ends the writing before its time.

At the end all rows are compared with those before the start and the writes that were acknowledged. A write
is lost if its row is not as it left it, and a row is doubled if no write, or another one, has made it.

Exit code: 0 if no statement failed, and no write is lost or doubled, else 1.
"""

import argparse
import collections
import random
import signal
import threading
import time

import psycopg

FILTERS = ("plain", "lo-fi", "sutro")  # as in global.sql

# Texts of PgBouncer when it ends a connection while no transaction is open, so that the statement can be repeated:
# docs/pgbouncer.md#pgbouncer-126, docs/application.md#a-login-that-pgbouncer-takes-for-failed.
NOT_BEGUN = ("database removed", "server login has been failing")


def shard_of(photo_id):
    """As snowflake_shard(id)."""
    return (photo_id >> 10) & 8191


class Router:
    """A connection to the alias of each shard, made when it is needed."""

    def __init__(self, dsn):
        self.dsn = dsn
        self.connections = {}

    def execute(self, shard, query, parameters):
        deadline = time.monotonic() + 5
        while True:
            try:
                return self.run(shard, query, parameters)
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline or not any(text in str(error) for text in NOT_BEGUN):
                    raise
                self.connections.pop(shard, None)
                time.sleep(0.1)

    def run(self, shard, query, parameters):
        if shard not in self.connections:
            # In transaction mode a prepared statement may meet another server connection.
            self.connections[shard] = psycopg.connect(
                self.dsn, dbname=f"shard{shard}", autocommit=True, prepare_threshold=None)
        schema = psycopg.sql.Identifier(f"insta{shard}")
        return self.connections[shard].execute(psycopg.sql.SQL(query).format(schema), parameters).fetchall()

    def captions(self, shards):
        """Of all photos, by ID."""
        return {photo_id: caption for shard in range(shards)
                for photo_id, caption in self.execute(shard, "SELECT id, caption FROM {}.photos", ())}


class Client(threading.Thread):
    """Inserts, updates and deletes, and remembers what was acknowledged."""

    def __init__(self, number, options, end):
        super().__init__()
        self.end = end
        self.random = random.Random(options.seed + number)
        self.router = Router(options.dsn)
        self.options = options
        self.captions = {}
        self.made = []
        self.deleted = []
        self.errors = []
        self.writes = 0
        self.slowest = 0.0

    def run(self):
        deadline = time.monotonic() + self.options.seconds
        while time.monotonic() < deadline and not self.end.is_set():
            start = time.monotonic()
            try:
                self.write()
                self.writes += 1
            except psycopg.Error as error:
                self.errors.append(str(error).strip())
                break
            self.slowest = max(self.slowest, time.monotonic() - start)
            time.sleep(self.options.pause / 1000)

    def write(self):
        chance = self.random.random()
        if chance < 0.6 or not self.captions:
            user_id = self.random.randrange(1, 1_000_000)
            caption = f"new {self.random.random()}"
            shard = user_id % self.options.shards
            (photo_id,), = self.router.execute(
                shard, "INSERT INTO {}.photos (user_id, filter, caption) VALUES (%s, %s, %s) RETURNING id",
                (user_id, self.random.choice(FILTERS), caption))
            assert shard_of(photo_id) == shard
            self.captions[photo_id] = caption
            self.made.append(photo_id)
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


def faults(before, clients, after):
    """The IDs whose row is not what was acknowledged last; those that were made twice, or that nobody made."""
    made = [photo_id for client in clients for photo_id in client.made]
    expected = before | {photo_id: caption for client in clients for photo_id, caption in client.captions.items()}
    deleted = {photo_id for client in clients for photo_id in client.deleted}
    lost = [photo_id for photo_id, caption in expected.items() if after.get(photo_id) != caption]
    lost += [photo_id for photo_id in deleted if photo_id in after]
    doubled = [photo_id for photo_id in after if photo_id not in expected and photo_id not in deleted]
    doubled += [photo_id for photo_id, times in collections.Counter(made).items() if times > 1 or photo_id in before]
    return lost, doubled


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dsn")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--shards", type=int, default=24)
    parser.add_argument("--pause", type=float, default=0, metavar="MS")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    options = parser.parse_args()

    end = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: end.set())
    before = Router(options.dsn).captions(options.shards)
    clients = [Client(number, options, end) for number in range(options.clients)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()

    errors = [error for client in clients for error in client.errors]
    lost, doubled = faults(before, clients, Router(options.dsn).captions(options.shards))
    print(f"{sum(client.writes for client in clients)} writes, {len(errors)} errors, {len(lost)} lost, "
          f"{len(doubled)} doubled; the slowest took {max(client.slowest for client in clients) * 1000:.0f} ms "
          f"(seed {options.seed})")
    for line in errors + [f"lost: {photo_id}" for photo_id in lost[:10]] + [f"doubled: {photo_id}" for photo_id in doubled[:10]]:
        print(line)
    return 1 if errors or lost or doubled else 0


if __name__ == "__main__":
    raise SystemExit(main())
