#!/usr/bin/env python3
"""IDs from a column's DEFAULT in psycopg 3.

PGHOST, PGDATABASE and the like name an empty database. If anything does not hold, the program says
what, and exits with 1.
"""

import json
import sys
from datetime import datetime, timedelta, timezone

import psycopg

# pg_get_serial_sequence() finds the sequence because the column owns it.
TABLE = """
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE SEQUENCE photos_id_seq;
CREATE TABLE photos (
    id      bigint PRIMARY KEY DEFAULT snowflake_next_id(0, 'photos_id_seq'),
    caption text NOT NULL);
ALTER SEQUENCE photos_id_seq OWNED BY photos.id;
"""


def check(holds, problem):
    if not holds:
        sys.exit(f"psycopg: {problem}")


def insert(connection, captions):
    """Inserts rows in one round trip, and returns their IDs."""
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO photos (caption) VALUES (%s) RETURNING id",
                           [(caption,) for caption in captions], returning=True)
        ids = [cursor.fetchone()[0]]
        while cursor.nextset():
            ids.append(cursor.fetchone()[0])
        return ids


def pages(connection, size):
    """All IDs, page by page: each page begins after the last ID of the page before it."""
    last = 0
    while page := connection.execute("SELECT id FROM photos WHERE id > %s ORDER BY id LIMIT %s",
                                     (last, size)).fetchall():
        last = page[-1][0]
        yield [row[0] for row in page]


def made_between(connection, start, end):
    return [row[0] for row in connection.execute(
        "SELECT id FROM photos WHERE snowflake_between(id, %s, %s) ORDER BY id", (start, end))]


def main():
    connection = psycopg.connect("", autocommit=True)
    connection.execute(TABLE)

    ids = insert(connection, [f"photo {i}" for i in range(25)])
    check(ids == sorted(set(ids)), f"the IDs do not increase: {ids}")
    check(ids[0] >= 1 << 53, f"{ids[0]} is a position or a counter, and no ID")
    paged = list(pages(connection, 10))
    check([len(page) for page in paged] == [10, 10, 5], f"the pages are {paged}")
    check(sum(paged, []) == ids, "the pages do not have all IDs in order")

    # A back-dated row has the ID of its time.
    leap_day = datetime(2024, 2, 29, 12, tzinfo=timezone.utc)
    (old,) = connection.execute("INSERT INTO photos VALUES (snowflake_encode(%s, 0, 0), 'old') RETURNING id",
                                (leap_day,)).fetchone()
    now, minute = datetime.now(timezone.utc), timedelta(minutes=1)
    check(made_between(connection, now - minute, now + minute) == ids, "the last minute has other IDs")
    check(made_between(connection, leap_day, leap_day + minute) == [old], "2024-02-29 12:00 has other IDs")

    # A row comes from a server whose clock is a second fast. Then the sequence is reset.
    (imported,) = connection.execute("INSERT INTO photos VALUES (snowflake_encode(%s, 0, 0), 'imported') RETURNING id",
                                     (datetime.now(timezone.utc) + timedelta(seconds=1),)).fetchone()
    connection.execute("SELECT setval(pg_get_serial_sequence('photos', 'id'), max(id)) FROM photos")
    more = insert(connection, ["after the reset"] * 10)
    check(more == sorted(set(more)) and more[0] > imported, f"after {imported} and a reset came {more}")

    # IDs that are drawn ahead: the rows that refer to each other are known before any is stored.
    ahead = [row[0] for row in connection.execute("SELECT snowflake_next_ids(0, 'photos_id_seq', %s)", (1000,))]
    check(ahead == sorted(set(ahead)) and ahead[0] > more[-1], "the IDs drawn ahead do not increase")
    with connection.cursor().copy("COPY photos (id, caption) FROM STDIN") as copy:
        for photo_id in ahead:
            copy.write_row((photo_id, "drawn ahead"))

    # In JSON an ID is a string: JavaScript rounds numbers of this size.
    sent = json.dumps({"id": str(more[-1])})
    (made_at,) = connection.execute("SELECT snowflake_timestamp(%s)", (int(json.loads(sent)["id"]),)).fetchone()
    check(now - minute < made_at < now + minute, f"{sent} was made at {made_at}")
    (text,) = connection.execute("SELECT snowflake_to_text(%s)", (more[-1],)).fetchone()
    (back,) = connection.execute("SELECT snowflake_from_text(%s)", (text,)).fetchone()
    check(back == more[-1], f"{more[-1]} is {text} as text, which is {back}")

    print(f"psycopg {psycopg.__version__}: {len(ids) + len(more)} IDs by INSERT, {len(ahead)} drawn ahead; the last one is {text}.")


main()
