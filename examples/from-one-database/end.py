"""Ends a distribution. Complete: each shard is on its own. Abort: the old database is as it was, the shards are empty."""

from psycopg import sql

from servers import Problem, partitions_of, tables_of, written_tables


ROOTS = """
    SELECT relname FROM pg_class JOIN distribute.tables ON name = relname
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'p' AND key IS NOT NULL"""
RELEASE = "ALTER TABLE {schema}.{table} REPLICA IDENTITY {identity}; DROP TRIGGER IF EXISTS distribute ON {schema}.{table}"


def complete(old, new):
    if not old.has("distribute.completed"):
        if not new.has("distribute.open"):
            raise Problem("the shards are not written: distribute cutover, or distribute abort")
        has_slot = new.has_slot("distribute_back")
        if new.subscription("distribute") or (has_slot and not old.subscription("distribute_back")):
            raise Problem("the cutover has not ended: distribute cutover")
        old.run("CREATE TABLE distribute.completed ()")
    old.drop_subscription("distribute_back", new)
    old.run("DROP PUBLICATION IF EXISTS distribute")
    if new.has("distribute.tables"):
        dismantle(new)
    print("each shard is on its own")
    tables = ", ".join(name for name, _ in tables_of(old))
    print(f"the old database refuses writes to these tables, which can be dropped: {tables}")


def abort(old, new):
    """Before the cutover, or after it was undone: the rows of the shards are copies then."""
    if new.has("distribute.open") or old.has("distribute.completed"):
        raise Problem("the shards are written: distribute undo, or distribute complete")
    if old.subscription("distribute_back"):
        raise Problem("an undo has not ended: distribute undo")
    new.drop_subscription("distribute", old)
    if new.has("distribute.tables"):
        empty(new)
        dismantle(new)
    if old.has("distribute.tables"):
        for name, _ in tables_of(old):
            release(old, name)
        old.run("DROP PUBLICATION IF EXISTS distribute")
        old.run("DROP SCHEMA distribute CASCADE")
    print("the shards are empty, and the old database is as it was")


def empty(new):
    """In one statement, because the tables refer to each other, and once: a table that is detached refers to others. The
    fence refuses TRUNCATE."""
    if new.has("distribute.emptied"):
        return
    tables = written_tables(new)
    for schema, table in tables:
        new.run("DROP TRIGGER IF EXISTS distribute ON {schema}.{table}", schema=schema, table=table)
    if tables:
        names = sql.SQL(", ").join(sql.Identifier(*table) for table in tables)
        new.run("TRUNCATE {tables}; CREATE TABLE distribute.emptied ()", tables=names)


def dismantle(new):
    """Each table is locked for a moment, in a transaction of its own. If it is interrupted, it can be done again."""
    new.empty_publication("distribute_back")
    new.drop_slot("distribute_back")
    for root, schema, table in partitions_of(new):
        new.run_unhurried("ALTER TABLE public.{root} DETACH PARTITION {schema}.{table};" + RELEASE,
                          root=root, schema=schema, table=table, identity=identity_of(new, root))
    for name, key in tables_of(new):
        if key is None:
            release(new, name)
    for (root,) in new.rows(ROOTS):
        new.run("DROP TABLE public.{root}", root=root)
    new.run("DROP PUBLICATION IF EXISTS distribute_back")
    new.run("DROP SCHEMA distribute CASCADE")


def release(server, table):
    server.run_unhurried(RELEASE, schema="public", table=table, identity=identity_of(server, table))


def identity_of(server, table):
    """That of before."""
    is_full = server.value("SELECT replica_identity = 'f' FROM distribute.tables WHERE name = %s", [table])
    return sql.SQL("FULL" if is_full else "DEFAULT")
