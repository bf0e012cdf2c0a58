"""The server that is measured: sessions, pgbench, and the waits between measurements."""

import glob
import os
import re
import subprocess
import time

import psycopg2


class Server:
    def __init__(self, folder):
        self.folder = folder  # for the scripts and logs of pgbench
        self.session = self.connect()

    @staticmethod
    def connect():
        """PGHOST and its like say where. Compiling a statement is no part of a key's cost."""
        connection = psycopg2.connect("")
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute("SET jit = off; SET client_min_messages = warning; SET max_parallel_workers_per_gather = 0")
        return cursor

    def run(self, sql):
        self.session.execute(sql)

    def value(self, sql):
        self.session.execute(sql)
        return self.session.fetchone()[0]

    def seconds(self, sql):
        start = time.perf_counter()
        self.session.execute(sql)
        return time.perf_counter() - start

    def await_clock(self, sequence):
        """A burst runs ahead of the clock for a second of IDs, and is then held to 1024 a millisecond: that
        is the layout's limit and not the cost of an ID, so a measurement begins when the last burst is over."""
        if sequence:
            lead = f"(last_value >> 10) / 1000.0 - extract(epoch FROM clock_timestamp())"
            self.run(f"SELECT pg_sleep(greatest(0, {lead}) + 0.01) FROM {sequence}")

    def rate(self, script, clients, seconds):
        """Transactions a second."""
        output = self.pgbench([script], clients, seconds, "simple")
        return float(re.search(r"tps = ([0-9.]+)", output).group(1))

    def latencies(self, scripts, clients, seconds):
        """Of each script those of its transactions, in ms; a client takes one of the scripts at random each time."""
        prefix = os.path.join(self.folder, "latency")
        self.pgbench(scripts, clients, seconds, "prepared", "-l", f"--log-prefix={prefix}")
        latencies = [[] for _ in scripts]
        for path in glob.glob(f"{prefix}.*"):
            with open(path, encoding="ascii") as log:
                for line in log:
                    _, _, microseconds, script, *_ = line.split()
                    latencies[int(script)].append(int(microseconds) / 1000)
            os.remove(path)
        return latencies

    def pgbench(self, scripts, clients, seconds, protocol, *options):
        command = ["pgbench", "-n", "-M", protocol, "-c", str(clients), "-j", str(min(clients, 2)), "-T", str(seconds), *options]
        for number, script in enumerate(scripts):
            file = os.path.join(self.folder, f"script{number}.sql")
            with open(file, "w", encoding="utf-8") as target:
                target.write(script)
            command += ["-f", file]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise SystemExit(f"pgbench failed:\n{result.stderr}")
        return result.stdout

    def start_pgbench(self, script, clients, seconds):
        file = os.path.join(self.folder, "background.sql")
        with open(file, "w", encoding="utf-8") as target:
            target.write(script)
        command = ["pgbench", "-n", "-c", str(clients), "-j", "2", "-T", str(seconds), "-f", file]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def session_cpu_ns(self):
        """Of the session's backend, which waits for the next statement: the kernel's count is complete."""
        with open(f"/proc/{self.session.connection.get_backend_pid()}/schedstat", encoding="ascii") as schedstat:
            return int(schedstat.read().split()[0])

    def cpu_seconds(self):
        """Of all backends that pgbench uses."""
        self.session.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'pgbench'")
        total = 0
        for (pid,) in self.session.fetchall():
            with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
                fields = stat.read().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")
