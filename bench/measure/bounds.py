"""What the project promises of its speed, against what was measured."""

from collections import namedtuple

from rivals import NATIVE, NEXTVAL, PLPGSQL, UUID_4

Bound = namedtuple("Bound", "text limit measured holds")


def all_bounds(results, sizes):
    """Of all rounds the median; of two generators the median of their ratios, round by round."""
    bounds = []

    def at_most(text, limit, measured):
        bounds.append(Bound(text, f"at most {limit:g}", measured, measured <= limit))

    def at_least(text, limit, measured):
        bounds.append(Bound(text, f"at least {limit:g}", measured, measured >= limit))

    def time(one, other):
        return results.ratio("time", "one key", one.name, other.name)

    at_most("time of an ID / nextval()", 0.3, time(NATIVE, NEXTVAL))
    at_least("PL/pgSQL original / an ID", 60, time(PLPGSQL, NATIVE))
    at_least("gen_random_uuid() / an ID", 15, time(UUID_4, NATIVE))
    for clients in sizes.insert_clients:
        at_least(f"INSERTs a second / those with nextval(), {clients} {'client' if clients == 1 else 'clients'}", 0.98,
                 results.ratio("INSERT", "transactions", NATIVE.name, NEXTVAL.name, clients))
    at_least("INSERT ... SELECT, rows a second / those with nextval()", 1,
             results.ratio("bulk", "INSERT ... SELECT", NATIVE.name, NEXTVAL.name))
    paced = results.median("pace", "one sequence", NATIVE.name, 32)
    at_least("one sequence, IDs a second / 1,024,000", 0.97, paced / 1_024_000)
    at_most("one sequence, cores that each of 32 paced backends uses", 0.02,
            results.median("pace", "cores in use by each backend", NATIVE.name, 32))
    many = max(c for c in sizes.rate_clients if c <= 8)
    at_least(f"{many} sequences, IDs a second / those of one", 2,
             results.median("rate", "many sequences", NATIVE.name, many) / paced)
    at_most("WAL of a million IDs, bytes", 2000, results.median("WAL", "a million keys", NATIVE.name))
    at_most("WAL of 100 IDs, 40 ms apart, bytes", 1000, results.median("WAL", "100 calls, 40 ms apart", NATIVE.name))
    for measure in ("shard", "time"):
        at_most(f"decoding the {measure} / by hand", 1.5, results.ratio("decoding", measure, NATIVE.name, "by hand"))
    at_most("an idle call of snowflake_settled_id(), microseconds", 5,
            results.median("settled", "an idle call", NATIVE.name))
    at_least("INSERTs a second beside a consumer that looks every 5 ms / those without", 0.97,
             results.ratio("settled", "INSERTs", NATIVE.name, "without a consumer"))
    return bounds
