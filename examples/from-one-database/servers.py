"""The two databases, and their parts that more than one step uses."""

import time
import uuid

import psycopg
from psycopg import sql

# IDs of snowflake are larger. An older number has no shard in it: it was drawn from a serial or identity column.
FIRST_ID = 2**53
# Slots of other databases of the server can have the name, too.
SLOT = " FROM pg_replication_slots WHERE slot_name = %s AND database = current_database()"


class Problem(Exception):
    """A message for the user."""


class Server:
    """A database. Each statement commits."""

    def __init__(self, name, dsn):
        self.name, self.dsn = name, dsn
        self.connection = self.connect()

    def connect(self):
        """Each name is qualified; values are written in the same way by both servers."""
        settings = ["search_path=", "lock_timeout=200ms", "extra_float_digits=1", "datestyle=ISO", "timezone=UTC"]
        settings += ["intervalstyle=postgres", "bytea_output=hex"]
        # In a database of encoding SQL_ASCII texts would be bytes without a client_encoding.
        return psycopg.connect(self.dsn, autocommit=True, client_encoding="utf8",
                               options="".join(f" -c {setting}" for setting in settings))

    def rows(self, statement, parameters=None):
        return self.connection.execute(statement, parameters).fetchall()

    def value(self, statement, parameters=None):
        return self.rows(statement, parameters)[0][0]

    def run(self, statement, **names):
        """{name} is quoted as an identifier or, if it is no string, as psycopg.sql composes it."""
        quoted = {name: sql.Identifier(part) if isinstance(part, str) else part for name, part in names.items()}
        self.connection.execute(sql.SQL(statement).format(**quoted))

    def run_unhurried(self, statement, **names):
        """Tries again if a lock is not had in time: others wait behind a lock that is waited for."""
        for attempt in range(300):
            try:
                return self.run(statement, **names)
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
                if attempt == 299:
                    raise
                time.sleep(0.1)

    def has(self, name):
        return self.value("SELECT to_regclass(%s) IS NOT NULL", [name])

    def subscription(self, name):
        """Its OID, or None."""
        found = self.rows("SELECT oid FROM pg_subscription WHERE subname = %s AND subdbid = "
                          "(SELECT oid FROM pg_database WHERE datname = current_database())", [name])
        return found[0][0] if found else None

    def has_slot(self, name):
        return bool(self.rows("SELECT slot_name" + SLOT, [name]))

    def make_slot(self, name):
        self.drop_slot(name)
        self.rows("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [name])

    def drop_slot(self, name):
        """Waits for its walsender."""
        wait_until(f"slot {name} of {self.name} is not used any more",
                   lambda: not self.rows("SELECT slot_name" + SLOT + " AND active", [name]))
        self.rows("SELECT pg_drop_replication_slot(slot_name)" + SLOT, [name])

    def empty_publication(self, name):
        """Before it is dropped: an UPDATE that looks up a publication while it is dropped fails with an internal error."""
        for schema, table in self.rows("SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s", [name]):
            self.run_unhurried("ALTER PUBLICATION {name} DROP TABLE {schema}.{table}", name=name, schema=schema, table=table)

    def drop_subscription(self, name, publisher):
        """DROP SUBSCRIPTION drops the slots, too, and fails if the slot is gone."""
        if self.subscription(name):
            if not publisher.has_slot(name):
                self.run("ALTER SUBSCRIPTION {name} DISABLE", name=name)
                self.run("ALTER SUBSCRIPTION {name} SET (slot_name = NONE)", name=name)
            self.run("DROP SUBSCRIPTION {name}", name=name)
        publisher.drop_slot(name)


def oid_of(server, schema, table):
    return server.value("SELECT to_regclass(format('%%I.%%I', %s::text, %s::text))::oid", [schema, table])


def wait_until(what, condition, timeout=60.0, pause=0.1):
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            raise Problem(f"waited {timeout:g} s until {what}")
        time.sleep(pause)


def tables_of(server):
    """[(name, key)] of a distribution that was begun: key is None for a table that is the same for all shards."""
    owner = server.rows("SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'distribute'")
    if not owner:
        raise Problem(f"{server.name}: nothing is being distributed: no schema distribute")
    if owner[0][0] != server.value("SELECT current_user"):
        raise Problem(f"{server.name}: schema distribute belongs to {owner[0][0]}. Connect as that role")
    side = server.value("SELECT name FROM distribute.side")
    if side != server.name:
        raise Problem(f"--{server.name} is the {side} database")
    return server.rows("SELECT name, key FROM distribute.tables ORDER BY name")


def partitions_of(server):
    """[(root, schema, name)] of the shards' tables."""
    return server.rows("""
        SELECT p.relname, n.nspname, c.relname
        FROM distribute.tables AS t
        JOIN pg_class AS p ON p.relname = t.name AND p.relnamespace = 'public'::regnamespace AND p.relkind = 'p'
        JOIN pg_inherits AS i ON i.inhparent = p.oid
        JOIN pg_class AS c ON c.oid = i.inhrelid
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        ORDER BY 1, 2""")


def written_tables(server):
    """[(schema, name)] of the tables that clients write: of the shards or the old database, and those that shards share."""
    partitions = partitions_of(server)
    roots = {root for root, _, _ in partitions}
    shared = [("public", name) for name, _ in tables_of(server) if name not in roots]
    return [(schema, name) for _, schema, name in partitions] + shared


def reopen(server):
    """With a position of the WAL behind which clients write."""
    server.run("CREATE TABLE IF NOT EXISTS distribute.open AS SELECT pg_current_wal_insert_lsn() AS lsn")


def send_marker(source):
    marker = uuid.uuid4()
    source.rows("INSERT INTO distribute.marker VALUES (%s) RETURNING id", [marker])
    return marker


def await_marker(target, marker, timeout):
    """Then each row that was committed on the source before the marker has been written on the target."""
    wait_until(f"{target.name} has followed: see its log", lambda: has_marker(target, marker), timeout, 0.005)


def has_marker(target, marker):
    return target.value("SELECT EXISTS (SELECT FROM distribute.marker WHERE id = %s)", [marker])
