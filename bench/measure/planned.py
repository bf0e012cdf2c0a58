"""Server CPU of an INSERT of one row that is planned each time, as most web frameworks send it."""

from rivals import NATIVE


def measure_planned(server, sizes, results):
    """Many short runs, interleaved: what slows the machine down for a while slows the runs with each DEFAULT."""
    server.run("SELECT snowflake_create_shard(6, 'insta6'); CREATE SEQUENCE planned_s")
    defaults = {
        NATIVE.name: "bigint DEFAULT snowflake_next_id(5, 'planned_s')",
        "insta6.next_id()": "bigint DEFAULT insta6.next_id()",
        "bigserial": "bigserial",
    }
    for subject, definition in defaults.items():
        server.run(f'CREATE TABLE "planned {subject}" (id {definition} PRIMARY KEY, payload integer)')
    for number in range(sizes.planned_rounds + 1):  # the first is for caches, and does not count
        for subject in defaults:
            insert = f'INSERT INTO "planned {subject}" (payload) VALUES (1)'
            server.run(f'TRUNCATE "planned {subject}"; CHECKPOINT')
            start = server.session_cpu_ns()
            for _ in range(sizes.planned_rows):
                server.run(insert)
            microseconds = (server.session_cpu_ns() - start) / sizes.planned_rows / 1000
            if number > 0:
                results.add("planned", "server CPU of an INSERT", "us", subject, "", number, microseconds)
    for subject in defaults:
        server.run(f'DROP TABLE "planned {subject}"')
    server.run("DROP SCHEMA insta6 CASCADE; DROP SEQUENCE planned_s")
