#!/usr/bin/env python3
"""The newest photos of all users, with one statement for each database. The map is that of

    snowflake-shard map @servers --json > map.json
    everyone.py map.json     prints the first page
"""

import heapq
import json
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import psycopg
from psycopg import sql

LIMIT = 50


def newest(database, schemas, before):
    """Every branch reads the end of one index."""
    branch = sql.SQL("(SELECT id, caption FROM {}.photos WHERE id < %(before)s ORDER BY id DESC LIMIT %(limit)s)")
    branches = sql.SQL(" UNION ALL ").join(branch.format(sql.Identifier(schema)) for schema in schemas)
    with psycopg.connect(**dict(zip(("host", "port", "dbname"), database))) as connection:
        return connection.execute(
            branches + sql.SQL(" ORDER BY id DESC LIMIT %(limit)s"), {"before": before, "limit": LIMIT}).fetchall()


def everyone(shards, before=2**63 - 1):
    schemas_of = defaultdict(list)
    for shard in shards:
        schemas_of[shard["host"], shard["port"], shard["dbname"]].append(shard["schema"])
    with ThreadPoolExecutor() as workers:
        pages = workers.map(lambda database: newest(database, schemas_of[database], before), schemas_of)
        return list(islice(heapq.merge(*pages, reverse=True), LIMIT))


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        for photo in everyone(json.load(file)):
            print(*photo)
