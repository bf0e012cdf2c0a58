#!/usr/bin/env python3
"""The newest photos of users in many shards. route.py of examples/application is in the same folder.

    feed.py USER_ID...     prints all pages

PGBOUNCER is the connection string of PgBouncer, without a database.
"""

import heapq
import os
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import islice

from route import Router, shard_of_id

END = 2**63 - 1
router = Router(os.environ.get("PGBOUNCER", "host=/tmp port=6432"))
# A thread for each kind of work and shard: one connection each, and a shard that is late delays no other.
workers = defaultdict(lambda: ThreadPoolExecutor(1))


def ask(shards, work, seconds=2):
    """work(shard) of all shards at the same time: the results by shard, and the reasons of those without one."""
    futures = {shard: workers[work.__name__, shard].submit(work, shard) for shard in shards}
    done, late = wait(futures.values(), timeout=seconds)
    answers = {shard: future.result() for shard, future in futures.items() if future in done and not future.exception()}
    missing = {shard: "late" if future in late else str(future.exception()) for shard, future in futures.items()
               if shard not in answers}
    for future in late:
        future.cancel()  # if it has not begun
    return answers, missing


def feed(users, before=END, limit=50, suffix=""):
    """The newest photos with IDs below before, and the shards that are missing in this page. Suffix "_ro" reads standbys."""
    users_of = defaultdict(list)
    for user in users:
        users_of[f"{shard_of_id(user)}{suffix}"].append(user)

    # Each user's newest photos are at the end of the index on (user_id, id), so no more rows than these are read.
    def newest(shard):
        return router.rows(shard, """
            SELECT p.id, p.user_id, p.caption
            FROM unnest(%s::bigint[]) AS u (id) CROSS JOIN LATERAL (
                SELECT * FROM photos WHERE user_id = u.id AND id < %s ORDER BY id DESC LIMIT %s) AS p
            ORDER BY p.id DESC LIMIT %s""", (users_of[shard], before, limit, limit))

    pages, missing = ask(users_of, newest)
    return list(islice(heapq.merge(*pages.values(), reverse=True), limit)), missing


def smallest(answers, missing):
    if missing:
        raise RuntimeError(f"no answer of shards: {missing}")
    return min(answers.values())


def bound(shards, seconds=10):
    """An ID at or below which no new row can appear in any of these shards. It waits for writers."""
    def settled(shard):
        router.rows(shard, "SELECT next_id()")  # a shard without writes would return the ID of an old row
        return router.rows(shard, "SELECT settled_id()")[0][0]

    return smallest(*ask(shards, settled, seconds))


def bound_of_standbys(shards):
    """The same for standbys, as jobs.py has written it: a standby that shows the ID has the rows up to it."""
    def written(shard):
        return router.rows(f"{shard}_ro", "SELECT id FROM settled")[0][0]

    return smallest(*ask(shards, written))


def main(users):
    before = END
    while True:
        photos, missing = feed(users, before)
        for photo in photos:
            print(*photo)
        if missing:
            sys.exit(f"incomplete, no answer of shards: {missing}")
        if not photos:
            return
        before = photos[-1][0]


if __name__ == "__main__":
    main([int(user) for user in sys.argv[1:]])
