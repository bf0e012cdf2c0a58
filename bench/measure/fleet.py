"""Measures the verbs of snowflake-shard on the server that PGHOST and its like name: see bench/fleet, which starts it."""

import argparse
import math
import os
import subprocess
import sys
import threading
import time

DSN = "dbname=fleet"
SAMPLE_SECONDS = 0.005
BATCH = 100  # shards of a transaction that makes them
MAX_EXPONENT = 1.1
MAX_MB = 100

# The functions of all shards are made before their tables: each CREATE FUNCTION makes the next call by name slow.
FUNCTIONS = """
CREATE SCHEMA s{n};
CREATE SEQUENCE s{n}.table_id_seq;
CREATE FUNCTION s{n}.next_id() RETURNS bigint LANGUAGE sql RETURN snowflake_next_id({n}, 's{n}.table_id_seq');
CREATE FUNCTION s{n}.settled_id() RETURNS bigint LANGUAGE sql RETURN snowflake_settled_id({n}, 's{n}.table_id_seq');
"""
TABLE = """
CREATE TABLE s{n}.{table} (
    id bigint PRIMARY KEY DEFAULT s{n}.next_id(),
    owner_id bigint {reference}, created_at timestamptz NOT NULL DEFAULT now(), name text NOT NULL);
CREATE INDEX {table}_owner ON s{n}.{table} (owner_id);
CREATE INDEX {table}_name ON s{n}.{table} (name);
INSERT INTO s{n}.{table} (name) VALUES ('mia');
"""
TABLES = ("users", "photos", "comments", "likes", "tags")


def tables_of(number):
    sql = ""
    for table in TABLES:
        reference = f"REFERENCES s{number}.users" if table != "users" else ""
        sql += TABLE.format(n=number, table=table, reference=reference)
    return sql


def psql(sql, database="fleet"):
    subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-d", database], input=sql, text=True, check=True,
                   stdout=subprocess.DEVNULL)


def make_shards(first, end):
    """In sessions of their own: a session keeps the definition of each table that it has made."""
    for make in (FUNCTIONS.format, lambda n: tables_of(n)):
        for start in range(first, end, BATCH):
            numbers = range(start, min(start + BATCH, end))
            psql("BEGIN;" + "".join(make(n=number) for number in numbers) + "COMMIT;")
    psql("SELECT format('VACUUM (ANALYZE) %s', oid::regclass) FROM pg_class "
         "WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r' \\gexec")
    psql("CHECKPOINT")


class Processes:
    """The postmaster and its children."""

    def __init__(self, data):
        with open(f"{data}/postmaster.pid", encoding="ascii") as file:
            self.postmaster = int(file.readline())
        self.permanent = set(self.children())
        self.anonymous_kb = 0

    def children(self):
        with open(f"/proc/{self.postmaster}/task/{self.postmaster}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]

    def backends(self):
        return [pid for pid in self.children() if pid not in self.permanent]

    def sample(self):
        for pid in self.backends():
            try:
                with open(f"/proc/{pid}/status", encoding="ascii") as status:
                    lines = [line.split() for line in status if line.startswith("RssAnon")]
            except (FileNotFoundError, ProcessLookupError):
                continue
            self.anonymous_kb = max([self.anonymous_kb] + [int(line[1]) for line in lines])

    def await_end(self):
        while self.backends():
            time.sleep(SAMPLE_SECONDS)

    def cpu_seconds(self):
        """Of backends that have ended."""
        with open(f"/proc/{self.postmaster}/stat", encoding="ascii") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def measure(processes, command):
    """Processor seconds of server and command, and MB of a backend."""
    processes.await_end()
    processes.anonymous_kb = 0
    before = processes.cpu_seconds()
    end = threading.Event()

    def watch():
        while not end.wait(SAMPLE_SECONDS):
            processes.sample()

    watcher = threading.Thread(target=watch)
    watcher.start()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    end.set()
    watcher.join()
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} failed:\n{errors}")
    processes.await_end()
    return usage.ru_utime + usage.ru_stime + processes.cpu_seconds() - before, processes.anonymous_kb / 1024


def commands(shards):
    """Without the shards that the verb clone has made before."""
    shard = ["snowflake-shard"]
    all_shards = ["--shards", f"0-{shards - 1}"]
    return {
        "list": shard + ["list", DSN],
        "plan": shard + ["plan", DSN, "dbname=empty"],
        "plan --by rows": shard + ["plan", "--by", "rows", DSN, "dbname=empty"],
        "snowflake_check()": ["psql", "-qXAt", "-d", "fleet", "-c", "SELECT count(*) FROM snowflake_check()"],
        "verify": shard + ["verify", DSN],
        "pg_dump --schema-only": ["pg_dump", "-s", "-f", "/dev/null", "-d", "fleet"],
        "diff": shard + ["diff", DSN, "--template", "s0"],
        "map": shard + ["map", DSN],
        "query": shard + ["query", DSN, "--sql", "SELECT count(*) FROM photos"],
        "run": shard + ["run", DSN, *all_shards, "--sql", f"ALTER TABLE photos ADD COLUMN c{shards} integer"],
        "clone of one shard": shard + ["clone", DSN, "--template", "s0", "--shards", str(shards), "--schema", "s{}"],
    }


def exponent(sizes, seconds):
    """0.2 s is the start of a command and its sessions, which does not grow."""
    if len(sizes) < 2 or seconds[-2] < 0.2:
        return None
    return math.log(seconds[-1] / seconds[-2]) / math.log(sizes[-1] / sizes[-2])


def print_table(sizes, results):
    """True if the bounds hold."""
    print("| | " + " | ".join(f"{size:,}" for size in sizes) + " | exponent |")
    print("|---|" + "---|" * (len(sizes) + 1))
    holds = True
    for verb, values in results.items():
        grows = exponent(sizes, [seconds for seconds, _ in values])
        if not verb.startswith("pg_dump"):
            holds = holds and (grows or 0) <= MAX_EXPONENT and all(mb <= MAX_MB for _, mb in values)
        print(f"| {verb} | " + " | ".join(f"{seconds:.2f} s, {mb:.0f} MB" for seconds, mb in values)
              + f" | {'' if grows is None else format(grows, '.2f')} |")
    return holds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--sizes", default="500,1000,2000")
    parser.add_argument("--verbs", default="")
    parser.add_argument("--assert", dest="check", action="store_true")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    processes = Processes(arguments.data)
    psql("CREATE DATABASE fleet; CREATE DATABASE empty", "postgres")
    psql("CREATE EXTENSION snowflake", "empty")
    psql("CREATE EXTENSION snowflake")
    results = {}
    made = 0
    for size in sizes:
        print(f"{size} shards", file=sys.stderr, flush=True)
        make_shards(made, size)
        for verb, command in commands(size).items():
            if not arguments.verbs or verb in arguments.verbs.split(","):
                results.setdefault(verb, []).append(measure(processes, command))
        psql(f"SET client_min_messages = warning; DROP SCHEMA IF EXISTS s{size} CASCADE")
        made = size
    holds = print_table(sizes, results)
    return 0 if holds or not arguments.check else 1


sys.exit(main())
