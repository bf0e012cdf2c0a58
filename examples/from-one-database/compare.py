"""Compares all rows of both databases, as they were while writes were blocked. It takes longer, and blocks nobody."""

from psycopg import sql

from checks import COLUMNS
from servers import Server, oid_of


class Comparison:
    def __init__(self, *servers):
        self.sessions = {server: Server(server.name, server.dsn) for server in servers}
        for session in self.sessions.values():
            session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def look(self, server):
        """The snapshot is that of the first statement."""
        self.sessions[server].value("SELECT 1")

    def finish(self, keys):
        """The names of tables that differ."""
        different = []
        for table in keys:
            counts = {digest(session, table) for session in self.sessions.values()}
            if len(counts) > 1:
                different.append(table)
            else:
                print(f"{table}: {counts.pop()[0]} rows, equal")
        for session in self.sessions.values():
            session.run("ROLLBACK")
            session.connection.close()
        return different


def digest(session, table):
    """The number of rows, and a sum over them that does not depend on their order."""
    columns = sorted(name for name, *_ in session.rows(COLUMNS, [oid_of(session, "public", table)]))
    row = sql.SQL(", ").join(map(sql.Identifier, columns))
    read = sql.SQL("SELECT count(*), sum(hashtextextended(ROW({})::text, 0)) FROM public.{}")
    return session.rows(read.format(row, sql.Identifier(table)))[0]
