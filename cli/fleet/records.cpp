#include "fleet/records.h"

#include <algorithm>
#include <array>

#include "base/output.h"
#include "base/quoting.h"
#include "postgres/trust.h"

namespace
{

/* The texts have the order of Step and of SplitStep. */
constexpr std::array<const char*, 6> kSteps = {"prepared", "fenced", "moved",
                                               "copying",  "ready",  "open"};
constexpr std::array<const char*, 5> kSplitSteps = {"prepared", "closed", "sealed", "promoting",
                                                    "split"};

template <typename Steps>
std::size_t parse_step(const Steps& steps, const std::string& text, const std::string& what)
{
    const auto found = std::find(steps.begin(), steps.end(), text);
    if (found != steps.end())
        return static_cast<std::size_t>(found - steps.begin());
    throw Failure(what + " is at step \"" + text + "\", which this snowflake-shard does not know");
}

/* The record of a move or of the split, with the OIDs of two of its tables. */
struct Record {
    std::string schema;
    std::string state;
    std::string shards;
};

/* A query of the rows of such a table and no other, found by the OID: when a command ends, any role
 * can make a schema of the same name. They are read as they are stored, in no session of the owner:
 * any role may ask for any number of records, also in a transaction that has written one. */
std::string rows_of(const std::string& oid, const std::string& columns)
{
    return "snowflake_internal.stored_rows(" + oid + ") AS r (" + columns + ")";
}

/* The records in schemas that match a pattern, an expression of SQL. A schema of that name can be
 * planted, with statements that the command would run. So all of it must belong to trusted roles.
 * This query reads catalogs only. */
std::vector<Record> find_records(Connection& connection, const std::string& pattern)
{
    std::vector<Record> records;
    /* Mostly there is no such schema. To plan the query below takes ten times as long. */
    if (connection.query("SELECT FROM pg_namespace WHERE nspname ~ " + pattern).rows() == 0)
        return records;
    const Result rows = connection.query(
        R"(
        SELECT nspname, c.oid, coalesce((SELECT oid FROM pg_class WHERE relnamespace = n.oid AND relname = 'shards'), 0)
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relname = 'state' AND c.relkind = 'r' AND n.nspname ~ )" +
        pattern + " AND n.oid NOT IN (" + untrusted_schemas(pattern) + ")");
    for (int i = 0; i < rows.rows(); i++)
        records.push_back({rows.text(i, 0), rows.text(i, 1), rows.text(i, 2)});
    return records;
}

/* A row for each shard. */
std::vector<MoveState> read_matching_moves(Connection& connection, const std::string& pattern)
{
    std::string sql;
    for (const Record& record : find_records(connection, pattern))
        sql +=
            (sql.empty() ? "SELECT '" : " UNION ALL SELECT '") + record.schema +
            R"(', s.number, s.schema_name, id, other, step, marker, is_reversible, is_reverse, is_equal, is_held,
                  to_char(compared_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
                  FROM )" +
            rows_of(record.state,
                    "id uuid, other text, step text, marker uuid, is_reversible boolean, "
                    "is_reverse boolean, is_equal boolean, is_held boolean, compared_at "
                    "timestamptz") +
            " CROSS JOIN (SELECT * FROM " +
            rows_of(record.shards, "number integer, schema_name name") + ") AS s";
    std::vector<MoveState> moves;
    if (sql.empty())
        return moves;
    const Result rows =
        connection.query("SELECT * FROM (" + sql +
                         ") AS s (name) ORDER BY substring(name, '[0-9]+$')::integer, number");
    for (int i = 0; i < rows.rows(); i++) {
        if (moves.empty() || moves.back().name != rows.text(i, 0))
            moves.push_back({rows.text(i, 0),
                             {},
                             rows.text(i, 3),
                             address_of(rows.text(i, 4)),
                             Step(parse_step(kSteps, rows.text(i, 5), "a move")),
                             rows.text(i, 6),
                             rows.flag(i, 7),
                             rows.flag(i, 8),
                             rows.flag(i, 9),
                             rows.flag(i, 10),
                             rows.text(i, 11)});
        moves.back().shards.push_back({static_cast<int>(rows.number(i, 1)), rows.text(i, 2)});
    }
    return moves;
}

} // namespace

std::string name_of_move(int shard)
{
    return "snowflake_move_" + std::to_string(shard);
}

std::string text_of(Step step)
{
    return kSteps.at(static_cast<std::size_t>(step));
}

std::string text_of(SplitStep step)
{
    return kSplitSteps.at(static_cast<std::size_t>(step));
}

std::vector<MoveState> read_moves(Connection& connection)
{
    for (int left = 10;; left--)
        try {
            return read_matching_moves(connection, "'^snowflake_move_[0-9]{1,4}$'");
        } catch (const ServerError& error) {
            if (error.sqlstate != kUndefinedTable || left == 0)
                throw;
            /* Another command has dropped a record between the two queries. */
        }
}

/* Does not call read_moves(), because this may be in a transaction, which an error would end. */
std::optional<MoveState> read_move(Connection& connection, const std::string& name)
{
    const auto moves = read_matching_moves(connection, "'^" + name + "$'");
    return moves.empty() ? std::nullopt : std::optional<MoveState>(moves.front());
}

std::string read_noted_definition(Connection& connection, const std::string& name)
{
    const std::string pattern = "'^" + name + "$'";
    const Result table = connection.query(
        "SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace "
        "WHERE relname = 'noted' AND nspname ~ " +
        pattern + " AND n.oid NOT IN (" + untrusted_schemas(pattern) + ")");
    if (table.rows() == 0)
        return "";
    const Result noted = connection.query("SELECT of_definition FROM " +
                                          rows_of(table.text(0, 0), "of_definition text"));
    return noted.rows() == 0 ? "" : noted.text(0, 0);
}

void warn_of_unread_records(Connection& connection)
{
    const Result found = untrusted_objects(connection, "'^snowflake_(move_[0-9]{1,4}|split)$'");
    for (int i = 0; i < found.rows(); i++)
        warn(connection.server() + ": the record in schema " + found.text(i, 2) +
             " is not read, because " + visible(found.text(i, 0)) + " belongs to role " +
             visible(found.text(i, 1)) +
             ", which is neither this role nor a superuser\nHINT:  If that role moves shards, run "
             "this as that role. Else: DROP SCHEMA " +
             found.text(i, 2) + " CASCADE;");
}

/* home is the name of a slot that only the old server has. A standby has the row by the WAL, but
 * not the slot. While it is in recovery, is_home is true there, too, because nobody can write to
 * it. home is NULL while no shard is closed, and again at the end. */
std::optional<SplitState> read_split(Connection& connection)
{
    const std::vector<Record> found = find_records(connection, "'^snowflake_split$'");
    if (found.empty())
        return {};
    const Result row = connection.query(
        "SELECT id, old_server, new_server, step, is_new, seal, standby_start, "
        "pg_is_in_recovery() OR home IS NULL OR EXISTS (SELECT FROM pg_replication_slots "
        "WHERE slot_name = home) FROM " +
        rows_of(found[0].state, "id uuid, old_server text, new_server text, step text, is_new "
                                "boolean, seal uuid, standby_start text, home text"));
    if (row.rows() == 0)
        return {};
    return SplitState{row.text(0, 0),
                      address_of(row.text(0, 1)),
                      address_of(row.text(0, 2)),
                      SplitStep(parse_step(kSplitSteps, row.text(0, 3), "the split")),
                      row.flag(0, 4),
                      row.flag(0, 7),
                      row.text(0, 5),
                      row.text(0, 6)};
}

std::vector<SplitShard> read_split_shards(Connection& connection)
{
    const std::vector<Record> found = find_records(connection, "'^snowflake_split$'");
    if (found.empty())
        return {};
    const Result rows = connection.query(
        "SELECT number, schema_name, quote_ident(schema_name), leaves FROM " +
        rows_of(found[0].shards, "number integer, schema_name name, leaves boolean") +
        " ORDER BY number");
    std::vector<SplitShard> shards;
    for (int i = 0; i < rows.rows(); i++)
        shards.push_back({{static_cast<int>(rows.number(i, 0)), rows.text(i, 1), rows.text(i, 2)},
                          rows.flag(i, 3)});
    return shards;
}
