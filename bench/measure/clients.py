"""Many clients: keys on one sequence and on many, and transactions that insert a row."""

import statistics
import time

from rivals import NATIVE, NEXTVAL

BATCH = 1000  # keys of a statement, so that the keys and not the statements are measured


def measure_rates(server, sizes, results):
    """Keys a second of 1 to 32 clients, all on one sequence, or each on its own."""
    calls = {NATIVE: "snowflake_next_id(5, '{}')", NEXTVAL: "nextval('{}')"}
    for client in range(max(sizes.rate_clients)):
        server.run(f"CREATE SEQUENCE native_{client}; CREATE SEQUENCE core_{client}")
    for number in range(1, sizes.few_rounds + 1):
        for clients in sizes.rate_clients:
            for rival, call in calls.items():
                kind = rival.sequence.removesuffix("_s") or "core"
                for measure, name in (("one sequence", f"{kind}_s"), ("many sequences", f"{kind}_:client_id")):
                    server.await_clock(rival.sequence)
                    script = f"SELECT count({call.format(name)}) FROM generate_series(1, {BATCH})"
                    rate = server.rate(script, clients, sizes.seconds)
                    results.add("rate", measure, "keys/s", rival.name, clients, number, rate * BATCH)


def measure_pace(server, sizes, results):
    """After the burst a sequence makes 1024 IDs a millisecond, and the clients sleep meanwhile."""
    script = f"SELECT count({NATIVE.expression}) FROM generate_series(1, {BATCH})"
    load = server.start_pgbench(script, 32, sizes.pace_seconds + 4)
    time.sleep(3)  # the burst is a second of IDs, and over by then
    last, cpu, start = position(server), server.cpu_seconds(), time.perf_counter()
    time.sleep(sizes.pace_seconds)
    seconds = time.perf_counter() - start
    results.add("pace", "one sequence", "keys/s", NATIVE.name, 32, 1, (position(server) - last) / seconds)
    cores = (server.cpu_seconds() - cpu) / seconds / 32
    results.add("pace", "cores in use by each backend", "", NATIVE.name, 32, 1, cores)
    load.wait()


def position(server):
    return server.value(f"SELECT last_value FROM {NATIVE.sequence}")


def measure_inserts(server, rivals, sizes, results):
    """Transactions of one INSERT. The two that are compared most closely take more rounds than the others."""
    for rival in rivals:
        server.run(f"CREATE TABLE {table_of(rival)} (id {rival.type} PRIMARY KEY DEFAULT {rival.expression}, payload integer)")
    closely = [r for r in rivals if r in (NATIVE, NEXTVAL)]
    for clients in sizes.insert_clients:
        for number in range(1, sizes.insert_rounds + 1):
            # One client inserts into either table at random. Many insert into one table and then into the other, because
            # each waits for the transactions of all. Neither table always comes first.
            order = closely if number % 2 else closely[::-1]
            groups = [closely] if clients == 1 else [[r] for r in order]
            groups += [[r] for r in rivals if r not in closely] if number <= sizes.few_rounds else []
            for group in groups:
                insert_for_a_while(server, group, clients, number, sizes, results)


def insert_for_a_while(server, rivals, clients, number, sizes, results):
    for rival in rivals:
        server.run(f"TRUNCATE {table_of(rival)}")
        server.await_clock(rival.sequence)
    scripts = [f"INSERT INTO {table_of(rival)} (payload) VALUES (1)" for rival in rivals]
    for rival, latencies in zip(rivals, server.latencies(scripts, clients, sizes.seconds)):
        cuts = statistics.quantiles(latencies, n=100)
        results.add("INSERT", "transactions", "/s", rival.name, clients, number, clients * 1000 / statistics.mean(latencies))
        results.add("INSERT", "p50", "ms", rival.name, clients, number, cuts[49])
        results.add("INSERT", "p99", "ms", rival.name, clients, number, cuts[98])


def table_of(rival):
    return '"insert ' + rival.name + '"'
