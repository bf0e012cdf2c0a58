"""Many rows at once, and what their keys are in an index."""

import io
import time

from rivals import NEXTVAL_32, TICKET

SAMPLE = 100_000  # rows that are looked up


def measure_bulk(server, rivals, sizes, results):
    """INSERT ... SELECT and COPY into a table with a primary key."""
    lines = "1\n" * sizes.bulk_rows
    for rival in rivals:
        if rival is not TICKET:  # its time grows with the square of a transaction's rows
            server.run(f"CREATE TABLE {table_of(rival)} (id {rival.type} PRIMARY KEY DEFAULT {rival.expression}, payload integer)")
    for number in range(sizes.bulk_rounds + 1):
        for rival in rivals:
            if rival is TICKET:
                continue
            table = table_of(rival)
            for measure in ("INSERT ... SELECT", "COPY"):
                server.run(f"TRUNCATE {table}; CHECKPOINT")
                server.await_clock(rival.sequence)
                seconds = load(server, measure, table, sizes.bulk_rows, lines)
                if number > 0:
                    results.add("bulk", measure, "rows/s", rival.name, "", number, sizes.bulk_rows / seconds)
    for rival in rivals:
        server.run(f"DROP TABLE IF EXISTS {table_of(rival)}")


def load(server, measure, table, rows, lines):
    if measure == "INSERT ... SELECT":
        return server.seconds(f"INSERT INTO {table} (payload) SELECT 1 FROM generate_series(1, {rows})")
    source = io.StringIO(lines)
    start = time.perf_counter()
    server.session.copy_expert(f"COPY {table} (payload) FROM STDIN", source)
    return time.perf_counter() - start


def measure_index(server, rivals, sizes, results):
    """The primary key after many INSERTs of a thousand rows each, and lookups of random rows."""
    for rival in rivals:
        if rival in (TICKET, NEXTVAL_32):
            continue
        table = table_of(rival)
        server.run(f"CREATE TABLE {table} (id {rival.type} PRIMARY KEY DEFAULT {rival.expression}, payload integer)")
        server.await_clock(rival.sequence)
        seconds = 0
        for _ in range(0, sizes.index_rows, 100_000):
            seconds += server.seconds(f"INSERT INTO {table} (payload) SELECT 1 FROM generate_series(1, 100000)")
        results.add("index", "filling", "rows/s", rival.name, "", 1, sizes.index_rows / seconds)
        size = server.value(f"SELECT pg_relation_size(indexrelid) FROM pg_index WHERE indrelid = '{table}'::regclass")
        results.add("index", "size of the primary key", "MB", rival.name, "", 1, size / 1e6)
        server.run(f"VACUUM ANALYZE {table}")
        server.run(f"CREATE TEMP TABLE sample AS SELECT id FROM {table} ORDER BY random() LIMIT {SAMPLE}; "
                   "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off")
        for number in range(1, sizes.few_rounds + 1):
            ns = server.seconds(f"SELECT count(payload) FROM sample JOIN {table} USING (id)") / SAMPLE * 1e9
            results.add("index", "a lookup", "ns", rival.name, "", number, ns)
        server.run(f"RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_seqscan; DROP TABLE sample, {table}")


def table_of(rival):
    return '"rows ' + rival.name + '"'
