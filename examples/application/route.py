"""From a name or an ID to its shard, and from the shard to a connection: the alias of PgBouncer."""

import hashlib
import threading
import time

import psycopg

SHARDS = 16  # never changes: names would be looked for elsewhere


def shard_of_id(row_id):
    """As snowflake_shard(id). Rows from before snowflake_attach() have stayed in shard 0, with numbers that hold no shard."""
    return (row_id >> 10) & 8191 if row_id >= 2**53 else 0


def hash_of_name(name):
    """As ('x' || left(encode(sha256(convert_to(name, 'UTF8')), 'hex'), 16))::bit(64)::bigint."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)


def shard_of_name(name, shards=SHARDS):
    """As snowflake_shard_for(hash, shards): % of Python is never negative."""
    return hash_of_name(name) % shards


class Router:
    """dsn is PgBouncer's, without a database. Each thread has a connection for each shard it has used."""

    def __init__(self, dsn, patience=30):
        self.dsn, self.patience, self.local = dsn, patience, threading.local()

    def connection(self, shard):
        connections = self.local.__dict__
        alias = f"shard{shard}"
        if alias not in connections or connections[alias].closed:
            # A prepared statement would stay in one of PgBouncer's server connections.
            connections[alias] = psycopg.connect(self.dsn, dbname=alias, prepare_threshold=None)
        return connections[alias]

    def transaction(self, shard, work):
        """Returns work(connection), done in one transaction. A shard that has moved refuses writes on
        its old server by SQLSTATE 25006. Nothing was written then, so the work is done again until the
        alias leads to the new server. While an alias is paused, execute() waits."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                connection = self.connection(shard)
                with connection.transaction():
                    return work(connection)
            except psycopg.errors.ReadOnlySqlTransaction:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def rows(self, shard, query, parameters=()):
        return self.transaction(shard, lambda connection: connection.execute(query, parameters).fetchall())
