#!/usr/bin/env python3
"""Copies each photo of the shard insta5 into its feed, exactly once: feed and last ID are committed together.

PGHOST, PGDATABASE and the like lead to the shard's server; docs/consume.md has the tables.
"""

import select
import sys
import time

import psycopg


def consume(connection):
    """Copies the next photos, 1000 at most, and returns how many they are."""
    with connection.transaction():
        # FOR UPDATE: of two consumers one waits, also where the other was killed and its session still runs.
        (last,) = connection.execute("SELECT last_id FROM insta5.consumers WHERE name = 'feed' FOR UPDATE").fetchone()
        (settled,) = connection.execute("SELECT insta5.settled_id()").fetchone()
        photos = connection.execute(
            "SELECT id, caption FROM insta5.photos WHERE id > %s AND id <= %s ORDER BY id LIMIT 1000", (last, settled)).fetchall()
        connection.cursor().executemany("INSERT INTO insta5.feed (photo_id, caption) VALUES (%s, %s)", photos)
        last_read = photos[-1][0] if len(photos) == 1000 else settled
        if last_read > last:
            connection.execute("UPDATE insta5.consumers SET last_id = %s WHERE name = 'feed'", (last_read,))
    return len(photos)


def main():
    news = []
    while True:
        try:
            # Behind PgBouncer each transaction can have another server connection, without the statements prepared before. In a
            # database of encoding SQL_ASCII texts would be bytes without a client_encoding.
            with psycopg.connect(autocommit=True, prepare_threshold=None, client_encoding="utf8") as connection:
                connection.add_notify_handler(news.append)
                connection.execute("LISTEN insta5_photos")
                while True:
                    news.clear()
                    if not consume(connection) and not news:
                        select.select([connection], [], [], 1)
        # The connection is lost, or the shard has moved to another server (SQLSTATE 25006).
        except (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction) as error:
            print(error, file=sys.stderr)
            time.sleep(1)


main()
