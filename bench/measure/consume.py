"""Measures ways to read each new row, on the server that PGHOST and its like name: see bench/consume, which starts it.

16 clients insert one row a transaction, and commit some time later; one of 1,000 rolls back. A second after they have begun,
another transaction writes into a table of its own, and stays open for 10 s. A row's wait is the time from its commit to its
arrival at the consumer.
"""

import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

import psycopg2

CLIENTS = 16
UNRELATED_SECONDS = 10
GAP_SECONDS = 1  # after which a gap is taken for a rollback


@dataclass(frozen=True)
class Way:
    name: str
    columns: str  # of the table photos; the first one is n, by which rows are counted
    read: callable  # of a cursor and the position: the new rows, and the position after them
    before_insert: str = ""
    trigger: bool = False


def rows_of(cursor, sql, *values):
    cursor.execute(sql, values)
    return cursor.fetchall()


def read_plain(cursor, last):
    ids = [row[0] for row in rows_of(cursor, "SELECT n FROM photos WHERE n > %s ORDER BY n", last or 0)]
    return ids, ids[-1] if ids else last


def read_settled(cursor, last):
    ((settled,),) = rows_of(cursor, "SELECT snowflake_settled_id(0, 's')")
    return [row[0] for row in rows_of(cursor, "SELECT n FROM photos WHERE n > %s AND n <= %s ORDER BY n", last or 0, settled)], settled


def read_xmin(cursor, last):
    """The snapshot that reads the rows is also the one whose xmin is asked, so one statement is enough."""
    found = rows_of(cursor, """
        WITH now AS MATERIALIZED (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xmin)
        SELECT n, xmin::text FROM now LEFT JOIN photos ON xid >= %s::text::xid8 AND xid < now.xmin ORDER BY xid, n""",
                    last or "0")
    return [row[0] for row in found if row[0] is not None], found[0][1]


def read_with_gaps(cursor, last):
    """Reads on after a gap, and looks for its row until GAP_SECONDS are over."""
    position, gaps = last or (0, {})
    now = time.time()
    gaps = {n: since for n, since in gaps.items() if now - since < GAP_SECONDS}
    found = rows_of(cursor, "SELECT n FROM photos WHERE n > %s OR n = ANY (%s::bigint[]) ORDER BY n", position, list(gaps))
    ids = [row[0] for row in found]
    gaps.update((n, now) for n in range(position + 1, max(ids, default=position)))
    for n in ids:
        gaps.pop(n, None)
    return ids, (max(ids + [position]), gaps)


def read_locked(cursor, last):
    """Has the writers of the shared lock end, and keeps out others while it reads."""
    cursor.execute("SELECT pg_advisory_lock(1)")
    ids, last = read_plain(cursor, last)
    cursor.execute("SELECT pg_advisory_unlock(1)")
    return ids, last


ID = "n bigint PRIMARY KEY DEFAULT snowflake_next_id(0, 's'), caption text"
WAYS = (
    Way("id > last", ID, read_plain),
    Way("snowflake_settled_id()", ID, read_settled),
    Way("the same, and NOTIFY by a trigger", ID, read_settled, trigger=True),
    Way("pg_snapshot_xmin()", f"{ID}, xid xid8 NOT NULL DEFAULT pg_current_xact_id(), UNIQUE (xid, n)", read_xmin),
    Way("a list of gaps", "n bigserial PRIMARY KEY, caption text", read_with_gaps),
    Way("advisory locks", ID, read_locked, before_insert="SELECT pg_advisory_xact_lock_shared(1);"),
)


def connect():
    connection = psycopg2.connect("")
    connection.autocommit = True
    return connection.cursor()


def make_tables(cursor, way):
    cursor.execute(f"""
        DROP TABLE IF EXISTS photos, unrelated;
        CREATE TABLE photos ({way.columns});
        CREATE TABLE unrelated (n integer);""")
    if way.trigger:
        cursor.execute("""
            CREATE OR REPLACE FUNCTION announce() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NOTIFY photos; RETURN NULL; END';
            CREATE TRIGGER announce AFTER INSERT ON photos FOR EACH STATEMENT EXECUTE FUNCTION announce();""")


def start_writers(folder, way, seconds, late):
    script = (f"\\set late random(0, {late})\nBEGIN;\n{way.before_insert}\nINSERT INTO photos (caption) VALUES ('x');\n"
              "\\sleep :late ms\n{end};\n")
    arguments = []
    for end, weight in (("COMMIT", 999), ("ROLLBACK", 1)):
        file = os.path.join(folder, f"{end}.sql")
        with open(file, "w", encoding="ascii") as target:
            target.write(script.replace("{end}", end))
        arguments += ["-f", f"{file}@{weight}"]
    return subprocess.Popen(["pgbench", "-n", "-c", str(CLIENTS), "-j", "2", "-T", str(seconds), *arguments],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def measure(folder, way, seconds, pause, late):
    """Rows that are missed, and read after one with a larger number; the waits; the rows a second."""
    cursor, unrelated = connect(), connect()
    make_tables(cursor, way)
    arrivals, newest, disordered, last = {}, 0, 0, None
    writers = start_writers(folder, way, seconds, late)
    start = time.time()
    begins, ends = start + 1, start + 1 + UNRELATED_SECONDS
    state, arrived = "before", start
    while writers.poll() is None or time.time() < arrived + GAP_SECONDS + 0.5:
        if state == "before" and time.time() >= begins:
            unrelated.execute("BEGIN; INSERT INTO unrelated VALUES (1)")
            state = "open"
        if state == "open" and time.time() >= ends:
            unrelated.execute("COMMIT")
            state = "ended"
        ids, last = way.read(cursor, last)
        if ids:
            arrived = time.time()
        for n in ids:
            if n in arrivals:
                raise SystemExit(f"{way.name}: {n} was read twice")
            disordered += n < newest
            newest = max(newest, n)
            arrivals[n] = arrived
        time.sleep(pause / 1000)
    if writers.returncode != 0:
        raise SystemExit(f"pgbench failed:\n{writers.stderr.read().decode()}")
    commits = dict(rows_of(cursor, "SELECT n, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 FROM photos"))
    waits = [(arrivals[n] - commits[n]) * 1000 for n in arrivals]
    return len(commits) - len(arrivals.keys() & commits.keys()), disordered, waits, len(commits) / seconds


def main():
    folder, seconds, pause, late = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    cursor = connect()
    cursor.execute("CREATE EXTENSION IF NOT EXISTS snowflake; CREATE SEQUENCE IF NOT EXISTS s; SHOW server_version")
    print(f"PostgreSQL {cursor.fetchone()[0]}, {CLIENTS} writers that commit 0 to {late} ms late, {seconds} s each, "
          f"a look every {pause:g} ms")
    print(f"{'':34} {'rows/s':>7} {'missed':>7} {'out of order':>13} {'median ms':>10} {'largest ms':>11}")
    for way in WAYS:
        missed, disordered, waits, rate = measure(folder, way, seconds, pause, late)
        print(f"{way.name:34} {rate:7.0f} {missed:7} {disordered:13} {statistics.median(waits):10.1f} {max(waits):11.0f}", flush=True)


main()
