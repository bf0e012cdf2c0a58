"""Measures the server that PGHOST and its like name: see bench/run, which starts it."""

import argparse
import os
import platform
import sys
import time
from dataclasses import dataclass

import clients
import keys
import planned
import rows
import settled
from bounds import all_bounds
from plots import write_plots
from report import print_report
from results import Results
from rivals import NATIVE, all_rivals
from server import Server


@dataclass(frozen=True)
class Sizes:
    rounds: int = 15
    few_rounds: int = 3
    keys: int = 600_000  # of a statement; a second of IDs is what may be ahead of the clock
    rate_clients: tuple = (1, 2, 8, 32)
    insert_clients: tuple = (1, 8, 32)
    insert_rounds: int = 21
    seconds: int = 3  # of a run of pgbench
    pace_seconds: int = 10
    planned_rows: int = 2_000
    planned_rounds: int = 100
    bulk_rows: int = 1_000_000
    bulk_rounds: int = 5
    index_rows: int = 10_000_000
    decoded: int = 10_000_000
    shard_keys: int = 200_000


QUICK = Sizes(rounds=5, few_rounds=1, keys=100_000, rate_clients=(1, 8), insert_clients=(1, 8), insert_rounds=3, seconds=1,
              pace_seconds=3, planned_rows=500, planned_rounds=10, bulk_rows=100_000, bulk_rounds=1, index_rows=500_000,
              decoded=1_000_000, shard_keys=50_000)


class Progress:
    """A line for each stage on the standard error, with the time that the rest will take."""

    def __init__(self, stages):
        self.stages = stages
        self.start = time.monotonic()
        self.done = 0

    def next(self, number, text, weight):
        total = sum(weight for _, weight, _ in self.stages)
        passed = time.monotonic() - self.start
        left = (passed / self.done if self.done else 1) * (total - self.done)
        print(f"{number} of {len(self.stages)}: {text}; about {left / 60:.0f} min left", file=sys.stderr, flush=True)
        self.done += weight


def main():
    arguments = parse()
    sizes = QUICK if arguments.quick else Sizes()
    server = Server(arguments.folder)
    server.run("CREATE EXTENSION snowflake")
    rivals = all_rivals(server.session, arguments.rival)
    for rival in rivals:
        if rival.setup:
            server.run(rival.setup)
    results = Results(NATIVE.name)
    run_stages(stages_of(server, rivals, sizes, results, arguments))
    bounds = all_bounds(results, sizes)
    print_report(results, bounds)
    results.write(arguments.output, machine_of(server, sizes), bounds)
    write_plots(results, arguments.output)
    return 0 if all(b.holds for b in bounds) or not arguments.check else 1


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--assert", dest="check", action="store_true")
    parser.add_argument("--rival", action="append", default=[])
    parser.add_argument("--folder", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--counter", required=True)
    return parser.parse_args()


def stages_of(server, rivals, sizes, results, arguments):
    """Text, seconds that it takes about, and the function: the shortest with the least disturbance first."""
    scale = 0.1 if arguments.quick else 1
    return [
        ("time of a key", 40 * scale, lambda: keys.measure_time(server, rivals, sizes, results)),
        ("instructions of a key", 45, lambda: keys.measure_instructions(arguments.counter, rivals, arguments.folder, results)),
        ("WAL", 30 * scale, lambda: keys.measure_wal(server, sizes, results)),
        ("reading an ID", 40 * scale, lambda: keys.measure_decoding(server, sizes, results)),
        ("2,000 shards", 15, lambda: keys.measure_shards(server, sizes, results)),
        ("keys a second", 200 * scale, lambda: clients.measure_rates(server, sizes, results)),
        ("the pace of one sequence", 14, lambda: clients.measure_pace(server, sizes, results)),
        ("INSERTs", 570 * scale, lambda: clients.measure_inserts(server, rivals, sizes, results)),
        ("planned INSERTs", 60 * scale, lambda: planned.measure_planned(server, sizes, results)),
        ("settled IDs", 130 * scale, lambda: settled.measure_settled(server, sizes, results)),
        ("many rows", 180 * scale, lambda: rows.measure_bulk(server, rivals, sizes, results)),
        ("indexes", 240 * scale, lambda: rows.measure_index(server, rivals, sizes, results)),
    ]


def run_stages(stages):
    progress = Progress(stages)
    for number, (text, weight, measure) in enumerate(stages, 1):
        progress.next(number, text, weight)
        measure()


def machine_of(server, sizes):
    with open("/proc/cpuinfo", encoding="ascii") as cpuinfo:
        models = [line.partition(": ")[2].strip() for line in cpuinfo if line.startswith("model name")]
    return {
        "server": server.value("SELECT version()"),
        "processor": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "sizes": sizes.__dict__,
    }


sys.exit(main())
