"""What is measured: ways to make a key, each as SQL."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Rival:
    name: str
    expression: str  # makes one key
    setup: str = ""
    type: str = "bigint"
    function: str = ""  # the C function behind the expression, for callgrind
    sequence: str = ""  # whose lead over the clock must be over before a measurement begins
    most: int = 10**9  # keys of one statement: what is slow, or gets slower within a transaction, makes few


NATIVE = Rival(
    "snowflake_next_id()",
    "snowflake_next_id(5, 'native_s')",
    "CREATE SEQUENCE native_s",
    function="snowflake_next_id",
    sequence="native_s",
)
NEXTVAL = Rival("nextval()", "nextval('core_s')", "CREATE SEQUENCE core_s", function="nextval_oid")
NEXTVAL_32 = Rival("nextval(), CACHE 32", "nextval('cached_s')", "CREATE SEQUENCE cached_s CACHE 32", function="nextval_oid")

# As Instagram published it in 2011.
PLPGSQL = Rival(
    "PL/pgSQL original",
    "original()",
    """CREATE SEQUENCE original_s;
CREATE FUNCTION original(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
    shard_id int := 5;
BEGIN
    SELECT nextval('original_s') % 1024 INTO seq_id;
    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
END $$""",
    function="plpgsql_call_handler",
    most=100_000,
)
UUID_4 = Rival("gen_random_uuid()", "gen_random_uuid()", type="uuid", function="gen_random_uuid", most=200_000)
UUID_7 = Rival("uuidv7()", "uuidv7()", type="uuid", function="uuidv7", most=200_000)

# Before 18: a random UUID with the milliseconds in its first 48 bits.
UUID_7_IN_SQL = Rival(
    "UUIDv7 in SQL",
    "uuid_7()",
    """CREATE FUNCTION uuid_7() RETURNS uuid LANGUAGE sql VOLATILE AS $$
SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
    52, 1), 53, 1), 'hex')::uuid $$""",
    type="uuid",
    most=100_000,
)

# A row that each call updates. In one transaction its versions pile up, and each call reads them all.
TICKET = Rival(
    "ticket table",
    "ticket()",
    """CREATE TABLE tickets (last bigint NOT NULL) WITH (fillfactor = 10);
INSERT INTO tickets VALUES (0);
CREATE FUNCTION ticket() RETURNS bigint LANGUAGE sql VOLATILE AS
    'UPDATE tickets SET last = last + 1 RETURNING last'""",
    most=500,
)


def all_rivals(cursor, files):
    """Those that this server has, the native generator first."""
    cursor.execute("SELECT to_regprocedure('uuidv7()') IS NOT NULL")
    has_uuid_7 = cursor.fetchone()[0]
    known = [NATIVE, NEXTVAL, NEXTVAL_32, PLPGSQL, UUID_4, UUID_7 if has_uuid_7 else UUID_7_IN_SQL, TICKET]
    return known + [read_rival(file) for file in files]


def read_rival(file):
    """A file of --rival: the first line is "-- NAME: EXPRESSION [: TYPE]", all of it is run as SQL."""
    with open(file, encoding="utf-8") as source:
        setup = source.read()
    parts = setup.splitlines()[0].removeprefix("-- ").split(": ")
    if not setup.startswith("-- ") or len(parts) not in (2, 3):
        raise SystemExit(f"{file}: the first line must be -- NAME: EXPRESSION, or -- NAME: EXPRESSION: TYPE")
    return Rival(parts[0], parts[1], setup, parts[2] if len(parts) == 3 else "bigint", most=100_000)
