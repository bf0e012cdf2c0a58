#!/usr/bin/env python3
"""An application that writes before, during and after a distribution. Prints each acknowledged write.

    app.py OLD NEW SHARDS USERS [THREADS [PAUSE]]      until it is ended by SIGTERM
"""

import random
import signal
import sys
import threading
import time

import psycopg
from psycopg import sql


def shard_of_user(user_id, shards):
    """An old user has a number from a sequence. A later one has the shard in the ID, as snowflake_shard(id)."""
    return user_id % shards if user_id < 2**53 else user_id >> 10 & 8191


class Service:
    """Each thread has its own."""

    def __init__(self, old, new, shards):
        self.old, self.new = (psycopg.connect(dsn, prepare_threshold=None) for dsn in (old, new))
        self.shards, self.is_distributed = shards, False

    def transaction(self, shard, work, patience=30):
        """Returns work(connection), done in one transaction: in the old database or in the shard. The one that is not
        written now refuses with SQLSTATE 25006. Nothing was written then."""
        deadline = time.monotonic() + patience
        while True:
            connection, schema = (self.new, f"insta{shard}") if self.is_distributed else (self.old, "public")
            try:
                with connection.transaction():
                    connection.execute(sql.SQL("SET LOCAL search_path = {}, public").format(sql.Identifier(schema)))
                    return work(connection)
            except psycopg.errors.ReadOnlySqlTransaction:
                if time.monotonic() > deadline:
                    raise
                self.is_distributed = not self.is_distributed
                time.sleep(0.005)

    def of_user(self, user_id, statement, parameters):
        """Not by the ID of a row: that of an old row has no shard in it."""
        shard = shard_of_user(user_id, self.shards)
        return self.transaction(shard, lambda connection: connection.execute(statement, parameters).fetchone()[0])

    def sign_up(self, name):
        """In any shard. The ID says which."""
        insert = "INSERT INTO users (name) VALUES (%s) RETURNING id"
        shard = random.randrange(self.shards)
        return self.transaction(shard, lambda connection: connection.execute(insert, [name]).fetchone()[0])

    def post(self, user_id, caption):
        """A photo, which its user likes."""
        return self.of_user(user_id, """
            WITH photo AS (INSERT INTO photos (user_id, caption) VALUES (%s, %s) RETURNING id, user_id),
                liked AS (INSERT INTO likes SELECT id, user_id FROM photo)
            SELECT id FROM photo""", [user_id, caption])

    def edit(self, user_id, photo_id, caption):
        return self.of_user(user_id, "UPDATE photos SET caption = %s WHERE id = %s RETURNING id", [caption, photo_id])

    def unlike(self, user_id, photo_id):
        delete = "DELETE FROM likes WHERE user_id = %s AND photo_id = %s RETURNING photo_id"
        return self.of_user(user_id, delete, [user_id, photo_id])


def main(old, new, shards, users, threads=4, pause=0.01):
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    lock = threading.Lock()

    def say(*words):
        with lock:
            print(*words, flush=True)

    def request(call, *parameters):
        begin = time.monotonic()
        answer = call(*parameters)
        say("waited", round((time.monotonic() - begin) * 1000))
        return answer

    def write(number):
        service, mine = Service(old, new, int(shards)), []
        for n in range(1_000_000):
            if ended.is_set():
                return
            name = f"app{number}_{n}"
            if n % 10 == 0:
                mine.append(request(service.sign_up, name))
                say("user", mine[-1], name)
            user_id = random.choice(mine) if n % 2 else random.randint(1, int(users))
            photo_id = request(service.post, user_id, name)
            say("photo", photo_id, user_id, name)
            if n % 3 == 0:
                request(service.edit, user_id, photo_id, name + "+")
                say("photo", photo_id, user_id, name + "+")
            elif n % 3 == 1:
                request(service.unlike, user_id, photo_id)
                say("unlike", photo_id, user_id)
            time.sleep(float(pause))

    def run(number):
        try:
            write(number)
        except BaseException as error:  # pylint: disable=broad-except
            say("error", repr(error))

    workers = [threading.Thread(target=run, args=(number,)) for number in range(int(threads))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
