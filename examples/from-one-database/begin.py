"""Begins a distribution: rows are copied into the shards, and follow."""

import os

from psycopg import sql

from checks import check, shards_of, snowflake_schema
from servers import FIRST_ID, Problem, oid_of, reopen, wait_until

PARTITION_KEY = """
    CASE WHEN {key} < {first} THEN {snowflake}.snowflake_shard_for({key}, {n}) ELSE {snowflake}.snowflake_shard({key}) END"""
FENCE = """
    CREATE TRIGGER distribute BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {schema}.{table}
        FOR EACH STATEMENT EXECUTE FUNCTION distribute.refuse();
    ALTER TABLE {schema}.{table} ENABLE ALWAYS TRIGGER distribute"""
# Whether the primary key has the column.
IN_PRIMARY_KEY = """
    SELECT a.attnum = ANY (i.indkey)
    FROM pg_attribute AS a JOIN pg_index AS i ON i.indrelid = a.attrelid AND i.indisprimary
    WHERE a.attrelid = %s AND a.attname = %s"""
SUBSCRIBE = """
    CREATE SUBSCRIPTION {name} CONNECTION {dsn} PUBLICATION {name}
    WITH (create_slot = false, slot_name = {slot}"""
# A table whose rows cannot be written is tried again and again.
HAS_FAILED = "SELECT apply_error_count + sync_error_count > 0 FROM pg_stat_subscription_stats WHERE subid = %s"
IS_COPYING = "SELECT EXISTS (SELECT FROM pg_subscription_rel WHERE srsubid = %s AND srsubstate <> 'r')"


def begin(old, new, count, keys):
    found = list(check(old, new, count, keys))
    for kind, text in found:
        print(f"{kind}: {text}")
    if any(kind == "obstacle" for kind, _ in found):
        raise Problem("nothing was changed, because of the obstacles")
    prepare(new)
    make_roots(new, count, keys)
    prepare(old)
    reopen(old)
    follow(old, new, keys)
    wait_until_copied(old, new)
    # COPY of the table synchronization fires triggers FOR EACH STATEMENT of the table that it names.
    for table, key in keys.items():
        if key is None:
            fence(new, "public", table)
    new.run("CREATE TABLE distribute.begun ()")
    print("all rows are copied, and the shards follow")


def prepare(server):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "fence.sql"), encoding="utf-8") as file:
        server.connection.execute(file.read())
    server.run("INSERT INTO distribute.side VALUES ({name})", name=sql.Literal(server.name))


def remember(server, table, key, schema="public"):
    server.rows("INSERT INTO distribute.tables SELECT relname, %s, relreplident FROM pg_class WHERE oid = %s RETURNING name",
                [key, oid_of(server, schema, table)])


def fence(server, schema, table):
    """Workers of replication change rows, and fire no trigger FOR EACH STATEMENT."""
    server.run_unhurried(FENCE, schema=schema, table=table)


def make_roots(new, count, keys):
    """Partitioned tables, whose partitions are the tables of the shards."""
    snowflake = snowflake_schema(new)
    shards = shards_of(new, count)
    for table, key in keys.items():
        if key is None:
            remember(new, table, key)
            continue
        rule = sql.SQL(PARTITION_KEY).format(key=sql.Identifier(key), first=sql.Literal(FIRST_ID), n=sql.Literal(count),
                                             snowflake=sql.Identifier(snowflake))
        new.run("CREATE TABLE public.{table} (LIKE {schema}.{table} INCLUDING GENERATED) PARTITION BY LIST (({rule}))",
                table=table, schema=shards[0], rule=rule)
        remember(new, table, key, shards[0])
        # From PostgreSQL 16 on, rows are written with the rights of the owner.
        template = oid_of(new, shards[0], table)
        owner = new.value("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = %s", [template])
        new.run("ALTER TABLE public.{table} REPLICA IDENTITY FULL, OWNER TO {owner}", table=table, owner=owner)
        for number, schema in shards.items():
            new.run("ALTER TABLE {schema}.{table} REPLICA IDENTITY FULL", schema=schema, table=table)
            new.run("ALTER TABLE public.{table} ATTACH PARTITION {schema}.{table} FOR VALUES IN ({number})",
                    table=table, schema=schema, number=sql.Literal(number))
            fence(new, schema, table)


def publish(server, name, keys, options=""):
    """Without TRUNCATE, which the fence refuses."""
    names = [("public", table) for table in keys] + [("distribute", "marker")]
    tables = sql.SQL(", ").join(sql.Identifier(*name) for name in names)
    server.run("CREATE PUBLICATION {name} FOR TABLE {tables} WITH (publish = 'insert, update, delete'" + options + ")",
               name=name, tables=tables)


def follow(old, new, keys):
    for table, key in keys.items():
        remember(old, table, key)
        # A primary key without the key would not tell the partition of a row that is updated or deleted.
        if key and not old.value(IN_PRIMARY_KEY, [oid_of(old, "public", table), key]):
            old.run_unhurried("ALTER TABLE public.{table} REPLICA IDENTITY FULL", table=table)
        fence(old, "public", table)
    publish(new, "distribute_back", keys, ", publish_via_partition_root = true")
    publish(old, "distribute", keys)
    # The slot first: with both databases on one server CREATE SUBSCRIPTION would wait for itself.
    old.make_slot("distribute")
    subscribe(new, "distribute", old)


def subscribe(subscriber, name, publisher, options=""):
    subscriber.run(SUBSCRIBE + options + ")", name=name, dsn=sql.Literal(publisher.dsn), slot=sql.Literal(name))


def wait_until_copied(old, new):
    subscription = new.subscription("distribute")

    def is_copied():
        if new.value(HAS_FAILED, [subscription]):
            raise Problem(f"rows are not copied: see the log of {new.name}. distribute abort removes what was begun")
        return not new.value(IS_COPYING, [subscription])

    wait_until("all rows are copied", is_copied, float("inf"), 0.2)
