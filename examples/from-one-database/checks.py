"""Finds what prevents a distribution. Each check yields ("obstacle" or "note", text)."""

import shlex

from psycopg import sql

from servers import FIRST_ID, oid_of

# Tables of the schema public.
TABLES = """
    SELECT c.relname, c.relkind, c.relpersistence, c.relreplident, c.relhassubclass OR c.relispartition,
           pg_get_userbyid(c.relowner),
           EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary)
    FROM pg_class AS c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'f')
        AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'e')
    ORDER BY 1"""
COLUMNS = """
    SELECT attname, atttypid::regtype::text, attnotnull
    FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped"""
# Unique indexes without the key. Primary keys are IDs, which stay unique.
UNIQUE = """
    SELECT i.indexrelid::regclass::text
    FROM pg_index AS i
    JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attname = %s
    WHERE i.indrelid = %s AND i.indisunique AND NOT i.indisprimary AND NOT a.attnum = ANY (i.indkey)"""
# Names, tables, and columns in pairs.
FOREIGN_KEYS = """
    SELECT f.conname, c.relname, r.relname, array_agg(a.attname::text ORDER BY k.n), array_agg(b.attname::text ORDER BY k.n)
    FROM pg_constraint AS f
    JOIN pg_class AS c ON c.oid = f.conrelid
    JOIN pg_class AS r ON r.oid = f.confrelid
    CROSS JOIN LATERAL unnest(f.conkey, f.confkey) WITH ORDINALITY AS k (here, there, n)
    JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.here
    JOIN pg_attribute AS b ON b.attrelid = f.confrelid AND b.attnum = k.there
    WHERE f.contype = 'f' AND c.relnamespace = to_regnamespace(quote_ident(%s))
    GROUP BY f.oid, f.conname, c.relname, r.relname ORDER BY 1"""
TRIGGERS = "SELECT tgname FROM pg_trigger WHERE tgrelid = %s AND tgenabled IN ('A', 'R') AND NOT tgisinternal"
SNOWFLAKE = """
    SELECT n.nspname FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
    WHERE e.extname = 'snowflake'"""


def quoted(*names):
    """For a statement that the user runs."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def snowflake_schema(server):
    found = server.rows(SNOWFLAKE)
    return found[0][0] if found else None


def shards_of(new, count):
    """The schema of each number."""
    schema = snowflake_schema(new)
    if schema is None:
        return {}
    find = sql.SQL("SELECT shard, schema_name FROM {}.snowflake_shards WHERE shard < %s ORDER BY shard")
    return dict(new.rows(find.format(sql.Identifier(schema)), [count]))


def check(old, new, count, keys):
    """keys: the key of each table, or None."""
    first = list(check_servers(old, new)) + list(check_tables(old, new, keys))
    for table, key in keys.items():
        if key:
            first += check_key(old, table, key)
    yield from first
    shards = shards_of(new, count)
    missing = [str(n) for n in range(count) if n not in shards]
    if missing:
        yield "obstacle", f"{new.name}: no shard {', '.join(missing)}: snowflake-shard clone makes them"
    if missing or any(kind == "obstacle" for kind, _ in first):
        return
    for table, key in keys.items():
        for schema in shards.values() if key else ["public"]:
            yield from check_target(old, new, table, schema)
        for (index,) in old.rows(UNIQUE, [key, oid_of(old, "public", table)]):
            yield "note", f"{index} will be unique within a shard only"
    yield from check_foreign_keys(old, new, count, keys, shards[0])
    for column in narrow_columns(old, new, keys, shards[0]):
        yield "note", f"{column} is too narrow for IDs of the shards: the cutover will need --one-way"


def check_servers(old, new):
    for server in (old, new):
        if server.value("SHOW wal_level") != "logical":
            yield "obstacle", f"{server.name}: ALTER SYSTEM SET wal_level = 'logical', and restart"
        uses = {"max_replication_slots": "pg_replication_slots", "max_wal_senders": "pg_stat_replication"}
        for setting, used in uses.items():
            if server.value(f"SELECT current_setting('{setting}')::integer - (SELECT count(*) FROM {used}) < 4"):
                yield "obstacle", f"{server.name}: fewer than 4 are free: ALTER SYSTEM SET {setting} = 20, and restart"
        if server.has("distribute.tables"):
            yield "obstacle", f"{server.name}: schema distribute is there: distribute abort removes what was begun"


def check_tables(old, new, keys):
    owners = set()
    found = set()
    for name, kind, persistence, identity, has_relatives, owner, has_primary_key in old.rows(TABLES):
        found.add(name)
        if name not in keys:
            yield "obstacle", f"table {name} is not named: {name}=COLUMN with the key, or {name} if all shards share it"
            continue
        owners.add(owner)
        if kind != "r" or has_relatives:
            yield "obstacle", f"table {name} is partitioned, foreign, or has tables that inherit from it"
        elif persistence != "p":
            yield "obstacle", f"table {name} is not replicated: ALTER TABLE {quoted(name)} SET LOGGED"
        elif identity not in ("d", "f"):
            statement = f"ALTER TABLE {quoted(name)} REPLICA IDENTITY DEFAULT"
            yield "obstacle", f"table {name}: its replica identity need not have the key: {statement}"
        if not has_primary_key:
            yield "obstacle", f"table {name} has no primary key: each change of a row would read the whole table"
    for name in keys.keys() - found:
        yield "obstacle", f"there is no table public.{name}"
    if len(owners) > 1:
        roles = ", ".join(sorted(owners))
        yield "obstacle", f"the tables belong to several roles: {roles}. Workers of replication run code of the owners"
    role = new.value("SELECT current_user")
    if new.connection.info.server_version < 160000 and owners - {role}:
        yield "note", f"workers of replication write rows as {role}, and so run code of {', '.join(owners)}"


def check_key(old, table, key):
    columns = {name: (kind, not_null) for name, kind, not_null in old.rows(COLUMNS, [oid_of(old, "public", table)])}
    if key not in columns:
        yield "obstacle", f"table {table} has no column {key}. Add it, or let all shards share the table: without ={key}"
    elif columns[key][0] not in ("bigint", "integer", "smallint"):
        yield "obstacle", f"column {key} of table {table} is no integer: it is {columns[key][0]}"
    elif not columns[key][1]:
        statement = f"ALTER TABLE {quoted(table)} ALTER {quoted(key)} SET NOT NULL"
        yield "obstacle", f"column {key} of table {table} can be NULL, which is in no shard: {statement}"


def check_target(old, new, table, schema):
    place = f"{new.name}: table {schema}.{table}"
    oid = oid_of(new, schema, table)
    if oid is None:
        yield "obstacle", f"{place} is missing"
        return
    wanted, found = ({name for name, *_ in rows} for rows in (
        old.rows(COLUMNS, [oid_of(old, "public", table)]), new.rows(COLUMNS, [oid])))
    if wanted != found:
        yield "obstacle", f"{place} has not the columns of the old one: {', '.join(sorted(wanted ^ found))}"
    if new.value(sql.SQL("SELECT EXISTS (SELECT FROM {})").format(sql.Identifier(schema, table))):
        yield "obstacle", f"{place} has rows"
    if new.value("SELECT relreplident NOT IN ('d', 'f') FROM pg_class WHERE oid = %s", [oid]):
        yield "obstacle", f"{place}: ALTER TABLE {quoted(schema, table)} REPLICA IDENTITY DEFAULT"
    for (trigger,) in new.rows(TRIGGERS, [oid]):
        statement = f"ALTER TABLE {quoted(schema, table)} ENABLE TRIGGER {quoted(trigger)}"
        yield "obstacle", f"{place}: trigger {trigger} fires for replicated rows. {statement} makes it a plain one"


def narrow_columns(old, new, keys, template):
    """Columns of the old database that cannot take the IDs of the shards."""
    for table in (table for table, key in keys.items() if key):
        wide = {name for name, kind, _ in new.rows(COLUMNS, [oid_of(new, template, table)]) if kind == "bigint"}
        for name, kind, _ in old.rows(COLUMNS, [oid_of(old, "public", table)]):
            if kind in ("integer", "smallint") and name in wide:
                yield f"{table}.{name}"


def shard_of(column, count):
    """The rule, without the extension, which the old server may not have."""
    rule = "(CASE WHEN {key} < {first} THEN ({key} % {n} + {n}) % {n} ELSE {key} >> 10 & 8191 END)"
    return sql.SQL(rule).format(key=column, first=sql.Literal(FIRST_ID), n=sql.Literal(count))


def check_foreign_keys(old, new, count, keys, template):
    there = {(name, table) for name, table, *_ in new.rows(FOREIGN_KEYS, [template])}
    for name, table, other, columns, others in old.rows(FOREIGN_KEYS, ["public"]):
        key, other_key = keys.get(table), keys.get(other)
        if not other_key or (key, other_key) in zip(columns, others):
            continue
        if not key:
            yield "obstacle", f"foreign key {name}: {table} is shared, and refers to {other}, which is distributed"
            continue
        pairs = [sql.SQL("{} = {}").format(sql.Identifier("a", x), sql.Identifier("b", y)) for x, y in zip(columns, others)]
        crossing = old.value(sql.SQL("SELECT count(*) FROM {} AS a JOIN {} AS b ON {} WHERE {} <> {}").format(
            sql.Identifier("public", table), sql.Identifier("public", other), sql.SQL(" AND ").join(pairs),
            shard_of(sql.Identifier("a", key), count), shard_of(sql.Identifier("b", other_key), count)))
        text = f"foreign key {name} of {table} does not hold over shards: {crossing} rows refer to rows of another one"
        if crossing and (name, table) in there:
            drop = shlex.quote(f"ALTER TABLE {quoted(table)} DROP CONSTRAINT {quoted(name)}")
            yield "obstacle", f"{text}. Drop it: snowflake-shard run --shards 0-{count - 1} --sql {drop}"
        else:
            yield "note", text
