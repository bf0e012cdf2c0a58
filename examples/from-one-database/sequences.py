"""Sequences that go on in the other database. They are found before writes are blocked, and read and set meanwhile."""

from psycopg import sql

from checks import snowflake_schema
from servers import partitions_of

FIND = """
    SELECT s.oid, s.relname
    FROM pg_class AS s JOIN pg_sequence AS q ON q.seqrelid = s.oid
    WHERE s.relnamespace = ANY (%s::regnamespace[]) AND q.seqincrement > 0 AND NOT s.oid = ANY (%s)"""
READ = """
    SELECT s.relname, max(pg_sequence_last_value(s.oid)) FROM pg_class AS s
    WHERE s.oid = ANY (%s) GROUP BY 1 HAVING count(pg_sequence_last_value(s.oid)) > 0"""
SET = """
    SELECT setval(s.oid, greatest(v.value, pg_sequence_last_value(s.oid)))
    FROM pg_class AS s JOIN unnest(%s::text[], %s::bigint[]) AS v (name, value) ON v.name = s.relname
    WHERE s.oid = ANY (%s)"""
# IDs that stand in the rows of a table of the target: its clock can be behind that of the source.
ADVANCE = """
    SELECT {snowflake}.snowflake_advance({sequence}, max({column})) FROM {schema}.{table}
    HAVING max({column}) IS NOT NULL"""


class Sequences:
    def __init__(self, source, target, old):
        self.source, self.target = source, target
        self.plain, self.makes_ids = {}, True
        for server in (source, target):
            schemas = ["public"] + ([] if server is old else sorted({schema for _, schema, _ in partitions_of(server)}))
            columns = native_columns(server, schemas)
            natives = [sequence for *_, sequence in columns]
            self.makes_ids = self.makes_ids and bool(columns)
            self.plain[server] = [oid for oid, _ in server.rows(FIND, [quoted_schemas(server, schemas), natives])]
        statements = [advance_above(snowflake_schema(target), *column) for column in columns]
        self.advance = sql.SQL(" UNION ALL ").join(statements) if statements else None

    def prepare(self):
        """Before writes are blocked."""
        self.write(self.read())
        if self.advance:
            self.target.rows(self.advance)

    def read(self):
        return self.source.rows(READ, [self.plain[self.source]])

    def write(self, values):
        """An ordinary sequence continues at that of the same name. A source that makes IDs can have made new ones."""
        self.target.rows(SET, [[name for name, _ in values], [value for _, value in values], self.plain[self.target]])
        if self.makes_ids:
            self.target.rows(self.advance)


def advance_above(snowflake, schema, table, column, sequence):
    return sql.SQL(ADVANCE).format(
        snowflake=sql.Identifier(snowflake), sequence=sql.Literal(sequence), schema=sql.Identifier(schema),
        table=sql.Identifier(table), column=sql.Identifier(column))


def quoted_schemas(server, schemas):
    return server.value("SELECT array_agg(quote_ident(s)) FROM unnest(%s::text[]) AS s", [schemas])


def native_columns(server, schemas):
    """[(schema, table, column, OID of the sequence)]"""
    snowflake = snowflake_schema(server)
    if snowflake is None:
        return []
    find = "SELECT schema_name, table_name, column_name, seq::oid FROM {}.snowflake_columns WHERE schema_name = ANY (%s)"
    return server.rows(sql.SQL(find + " AND seq IS NOT NULL").format(sql.Identifier(snowflake)), [schemas])
