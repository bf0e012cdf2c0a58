"""What snowflake_settled_id() costs its caller, and the writers beside it."""

import threading

from rivals import NATIVE

CALLS = 20_000
PAUSE = 0.005  # of the consumer after each look
ALONE = "without a consumer"


def measure_settled(server, sizes, results):
    """A call while nobody writes; INSERTs with and without a consumer in turns, so that a slow machine slows both."""
    server.run("CREATE SEQUENCE settled_s; "
               "CREATE TABLE settled (id bigint PRIMARY KEY DEFAULT snowflake_next_id(7, 'settled_s'), payload integer); "
               "INSERT INTO settled (payload) VALUES (1)")
    loop = f"DO $$BEGIN FOR i IN 1..{CALLS} LOOP PERFORM snowflake_settled_id(7, 'settled_s'); END LOOP; END$$"
    for number in range(sizes.few_rounds + 1):  # the first is for caches, and does not count
        microseconds = server.seconds(loop) / CALLS * 1e6
        if number > 0:
            results.add("settled", "an idle call", "us", NATIVE.name, "", number, microseconds)
    for number in range(1, sizes.insert_rounds + 1):
        for subject in (NATIVE.name, ALONE):
            server.run("TRUNCATE settled; CHECKPOINT")
            results.add("settled", "INSERTs", "transactions/s", subject, "", number,
                        rate_of(server, sizes.seconds, subject == NATIVE.name))
    server.run("DROP TABLE settled; DROP SEQUENCE settled_s")


def rate_of(server, seconds, has_consumer):
    end = threading.Event()
    consumer = threading.Thread(target=consume, args=(server.connect(), end))
    if has_consumer:
        consumer.start()
    rate = server.rate("INSERT INTO settled (payload) VALUES (1);", 8, seconds)
    end.set()
    if has_consumer:
        consumer.join()
    return rate


def consume(session, end):
    last = 0
    while not end.wait(PAUSE):
        session.execute("SELECT snowflake_settled_id(7, 'settled_s')")
        (settled,) = session.fetchone()
        # Counted: to read the rows takes Python time on the cores of the writers.
        session.execute("SELECT count(*) FROM settled WHERE id > %s AND id <= %s", (last, settled))
        last = settled
