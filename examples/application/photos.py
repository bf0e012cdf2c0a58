#!/usr/bin/env python3
"""A service for photos in many shards, with psycopg.

    photos.py sign-up NAME             prints the user's ID
    photos.py post NAME CAPTION        prints the photo's ID
    photos.py timeline NAME            the user's photos, the newest first
    photos.py photo ID
    photos.py like NAME PHOTO_ID
    photos.py rename NAME NEW_NAME
    photos.py deliver                  the second step of likes, for all shards
    photos.py load SECONDS [THREADS]   writes all the time, and prints each write that was acknowledged

PGBOUNCER is the connection string of PgBouncer, without a database.
"""

import os
import sys

import psycopg

from load import load
from route import SHARDS, Router, shard_of_id, shard_of_name

router = Router(os.environ.get("PGBOUNCER", "host=/tmp port=6432"))


class NameTaken(Exception):
    pass


def sign_up(name):
    """The user's shard is that of the first name, so one transaction is enough. The ID keeps it."""
    def work(connection):
        (user_id,) = connection.execute("INSERT INTO users (name) VALUES (%s) RETURNING id", (name,)).fetchone()
        connection.execute("INSERT INTO names (name, user_id) VALUES (%s, %s)", (name, user_id))
        return user_id
    try:
        return router.transaction(shard_of_name(name), work)
    except psycopg.errors.UniqueViolation as error:
        raise NameTaken(name) from error


def find_user(name):
    rows = router.rows(shard_of_name(name), "SELECT user_id FROM names WHERE name = %s", (name,))
    return rows[0][0] if rows else sys.exit(f"there is no user {name}")


def post(user_id, caption):
    (photo_id,), = router.rows(
        shard_of_id(user_id), "INSERT INTO photos (user_id, caption) VALUES (%s, %s) RETURNING id", (user_id, caption))
    return photo_id


def timeline(user_id, before=2**63 - 1, limit=20):
    """The next page begins before the last ID of this one."""
    return router.rows(
        shard_of_id(user_id),
        "SELECT id, caption, snowflake_timestamp(id) FROM photos WHERE user_id = %s AND id < %s ORDER BY id DESC LIMIT %s",
        (user_id, before, limit))


def photo(photo_id):
    rows = router.rows(
        shard_of_id(photo_id),
        "SELECT id, user_id, caption, (SELECT count(*) FROM likes WHERE photo_id = id) FROM photos WHERE id = %s", (photo_id,))
    return rows[0] if rows else None


def like(user_id, photo_id):
    """In the shard of the photo. The row of the outbox says what is to be done in the shard of the user."""
    def work(connection):
        made = connection.execute(
            "INSERT INTO likes (photo_id, user_id) VALUES (%s, %s) ON CONFLICT DO NOTHING", (photo_id, user_id)).rowcount
        if made:
            connection.execute("INSERT INTO outbox (user_id, photo_id) VALUES (%s, %s)", (user_id, photo_id))
    router.transaction(shard_of_id(photo_id), work)


def deliver(shard):
    """Rows are deleted when they are done, so none is missed. One that is done twice makes no second row."""
    rows = router.rows(shard, "SELECT id, user_id, photo_id FROM outbox ORDER BY id LIMIT 100")
    for outbox_id, user_id, photo_id in rows:
        router.transaction(shard_of_id(user_id), lambda connection: connection.execute(
            "INSERT INTO liked (user_id, photo_id) VALUES (%s, %s) ON CONFLICT DO NOTHING", (user_id, photo_id)))
        router.transaction(shard, lambda connection: connection.execute("DELETE FROM outbox WHERE id = %s", (outbox_id,)))
    return len(rows)


def rename(user_id, new_name):
    """Up to three shards, so three transactions. Each can be done again, so a rename that was
    interrupted is continued by the same call; until then the user has both names."""
    (old_name,), = router.rows(shard_of_id(user_id), "SELECT name FROM users WHERE id = %s", (user_id,))
    (owner,), = router.rows(
        shard_of_name(new_name),
        "INSERT INTO names AS n (name, user_id) VALUES (%s, %s) "
        "ON CONFLICT (name) DO UPDATE SET user_id = n.user_id RETURNING user_id", (new_name, user_id))
    if owner != user_id:
        raise NameTaken(new_name)
    router.transaction(shard_of_id(user_id), lambda connection: connection.execute(
        "UPDATE users SET name = %s WHERE id = %s", (new_name, user_id)))
    if old_name != new_name:
        router.transaction(shard_of_name(old_name), lambda connection: connection.execute(
            "DELETE FROM names WHERE name = %s AND user_id = %s", (old_name, user_id)))


def main(verb, *words):
    if verb == "sign-up":
        print(sign_up(words[0]))
    elif verb == "post":
        print(post(find_user(words[0]), words[1]))
    elif verb == "timeline":
        for row in timeline(find_user(words[0])):
            print(*row)
    elif verb == "photo":
        print(*photo(int(words[0])))
    elif verb == "like":
        like(find_user(words[0]), int(words[1]))
    elif verb == "rename":
        rename(find_user(words[0]), words[1])
    elif verb == "deliver":
        print(sum(deliver(shard) for shard in range(SHARDS)))
    elif verb == "load":
        load("py", sign_up, post, timeline, like, *words)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:] or ["help"])
    except NameTaken as taken:
        sys.exit(f"the name {taken} is taken")
