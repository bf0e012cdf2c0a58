"""What a key costs in one session: time, instructions, WAL; and what it costs to read one."""

import random
import subprocess
import time

from rivals import NATIVE, NEXTVAL

EPOCH = 1314220021721
SHARDS = 2000


def count(expression, rows):
    return f"SELECT count({expression}) FROM (SELECT generate_series(1, {rows}) AS i) AS s"


def measure_time(server, rivals, sizes, results):
    """ns a key: the time of the same statement without the key is taken off."""
    for number in range(sizes.rounds + 1):  # the first is for caches, and does not count
        for rival in rivals:
            keys = min(sizes.keys, rival.most)
            server.await_clock(rival.sequence)
            server.run(count(rival.expression, keys // 10))  # a session that has slept is slow for a while
            loop = server.seconds(count("i", sizes.keys)) / sizes.keys
            ns = (server.seconds(count(rival.expression, keys)) / keys - loop) * 1e9
            if number > 0:
                results.add("time", "one key", "ns", rival.name, "", number, ns)
        server.await_clock(NATIVE.sequence)
        ids = f"SELECT count(i) FROM (SELECT snowflake_next_ids(5, '{NATIVE.sequence}', {sizes.keys}) AS i) AS s"
        ns = server.seconds(ids) / sizes.keys * 1e9
        if number > 0:
            results.add("time", "one key", "ns", "snowflake_next_ids(), with its loop", "", number, ns)


def measure_instructions(counter, rivals, folder, results):
    """Of the C function alone, by callgrind. floor() reads the clock and returns."""
    setup = ["CREATE EXTENSION snowflake", f"""CREATE FUNCTION floor_id(integer, regclass) RETURNS bigint
LANGUAGE c VOLATILE STRICT AS '{folder}/floor.so', 'floor_id'"""]
    counted = {"floor_id": ("a function that reads the clock", f"floor_id(5, '{NATIVE.sequence}')")}
    for rival in rivals:
        if rival.function and rival.function not in counted:
            setup.append(rival.setup)
            counted[rival.function] = (rival.name, rival.expression)
    sql = "".join(f"{statements};\n\n" for statements in setup)
    arguments = [text for function, (_, expression) in counted.items() for text in (function, function, expression)]
    output = subprocess.run([counter, folder, "5000", *arguments], input=sql, stdout=subprocess.PIPE, text=True, check=True)
    for line in output.stdout.splitlines():
        function, instructions = line.split("\t")
        results.add("instructions", "one key", "", counted[function][0], "", 1, int(instructions))


def measure_wal(server, sizes, results):
    for number in range(1, sizes.few_rounds + 1):
        for rival in (NATIVE, NEXTVAL):
            server.await_clock(rival.sequence)
            server.run("CHECKPOINT")  # the first change of a page after a checkpoint costs most
            start = server.value("SELECT pg_current_wal_insert_lsn()")
            server.run(count(rival.expression, 1_000_000))
            results.add("WAL", "a million keys", "bytes", rival.name, "", number, wal_since(server, start))
            server.run("CHECKPOINT")
            start = server.value("SELECT pg_current_wal_insert_lsn()")
            for _ in range(100):
                server.run(f"SELECT {rival.expression}")
                time.sleep(0.04)
            results.add("WAL", "100 calls, 40 ms apart", "bytes", rival.name, "", number, wal_since(server, start))


def wal_since(server, start):
    return int(server.value(f"SELECT pg_current_wal_insert_lsn() - '{start}'::pg_lsn"))


def measure_decoding(server, sizes, results):
    """Functions against the shifts that one would write by hand, over IDs in a table."""
    server.run("CREATE TEMP TABLE decoded (id bigint)")
    server.run(f"INSERT INTO decoded SELECT (i * 8388608) | (i & 8388607) FROM generate_series(1::bigint, {sizes.decoded}) AS i")
    pairs = {
        "shard": ("snowflake_shard(id)", "(id >> 10) & 8191"),
        "time": ("snowflake_timestamp(id)", f"to_timestamp(((id >> 23) + {EPOCH}) / 1000.0)"),
    }
    for number in range(1, sizes.few_rounds + 1):
        for measure, expressions in pairs.items():
            for subject, expression in zip((NATIVE.name, "by hand"), expressions):
                ns = server.seconds(f"SELECT count({expression}) FROM decoded") / sizes.decoded * 1e9
                results.add("decoding", measure, "ns", subject, "", number, ns)
    server.run("DROP TABLE decoded")


def measure_shards(server, sizes, results):
    """A session that makes keys in 2,000 shards, in random order."""
    server.run("CREATE SCHEMA shards")
    for shard in range(SHARDS):
        server.run(f"CREATE SEQUENCE shards.native_{shard}; CREATE SEQUENCE shards.core_{shard}")
    order = [random.Random(shard).randrange(SHARDS) for shard in range(sizes.shard_keys)]
    server.run("CREATE TEMP TABLE visits (shard integer, native regclass, core regclass)")
    server.session.execute(
        "INSERT INTO visits SELECT s, ('shards.native_' || s)::regclass, ('shards.core_' || s)::regclass "
        "FROM unnest(%s) AS s", (order,))
    for number in range(sizes.few_rounds + 1):
        for rival, call in ((NATIVE, "snowflake_next_id(shard, native)"), (NEXTVAL, "nextval(core)")):
            loop = server.seconds("SELECT count(shard) FROM visits")
            ns = (server.seconds(f"SELECT count({call}) FROM visits") - loop) / sizes.shard_keys * 1e9
            if number > 0:
                results.add("2,000 shards", "one key", "ns", rival.name, "", number, ns)
    server.run("DROP TABLE visits; DROP SCHEMA shards CASCADE")
