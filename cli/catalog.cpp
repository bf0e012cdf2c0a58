#include "catalog.h"

#include <sstream>

#include "output.h"

namespace
{

constexpr int kMaxShard = 8191;

int parse_number(const std::string& text)
{
    const bool is_number = !text.empty() && text.size() < 6 &&
                           text.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number || std::stoi(text) > kMaxShard)
        throw UsageError("\"" + text + "\" is no shard number, 0 to " + std::to_string(kMaxShard));
    return std::stoi(text);
}

} // namespace

ShardSet parse_shards(const std::string& text)
{
    ShardSet shards;
    std::istringstream list(text);
    for (std::string item; std::getline(list, item, ',');) {
        const std::size_t dash = item.find('-');
        const int first = parse_number(item.substr(0, dash));
        const int last = dash == std::string::npos ? first : parse_number(item.substr(dash + 1));
        if (last < first)
            throw UsageError("the range " + item + " ends before it begins");
        for (int shard = first; shard <= last; shard++)
            shards.insert(shard);
    }
    if (shards.empty())
        throw UsageError("a list of shards is empty; it looks like 0-7,9");
    return shards;
}

std::string format_shards(const ShardSet& shards)
{
    std::string text;
    for (auto i = shards.begin(); i != shards.end();) {
        const int first = *i;
        int last = first;
        while (++i != shards.end() && *i == last + 1)
            last = *i;
        text += (text.empty() ? "" : ",") + std::to_string(first) +
                (first == last ? "" : "-" + std::to_string(last));
    }
    return text.empty() ? "none" : text;
}

std::string schema_name(const std::string& pattern, int shard)
{
    const std::size_t at = pattern.find("{}");
    if (at == std::string::npos)
        throw UsageError("\"" + pattern + "\" needs {} in the place of the shard's number");
    return pattern.substr(0, at) + std::to_string(shard) + pattern.substr(at + 2);
}

std::string extension_schema(Connection& connection)
{
    const Result schema = connection.query("SELECT quote_ident(n.nspname) FROM pg_extension AS e "
                                           "JOIN pg_namespace AS n ON n.oid = e.extnamespace "
                                           "WHERE e.extname = 'snowflake'");
    if (schema.rows() == 0)
        throw Failure(connection.server() + ": the extension is not installed there.\n"
                                            "HINT:  CREATE EXTENSION snowflake;");
    return schema.text(0, 0);
}

std::vector<MoveState> read_moves(Connection& connection)
{
    const Result schemas = connection.query(
        "SELECT n.nspname, pg_catalog.substring(n.nspname, '[0-9]+$') FROM pg_catalog.pg_class AS "
        "c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE c.relname = 'state' AND n.nspname ~ '^snowflake_move_[0-9]{1,4}$' ORDER BY 2");
    std::vector<MoveState> moves;
    for (int i = 0; i < schemas.rows(); i++) {
        const Result state =
            connection.query("SELECT schema_name, id, other, step, marker, is_open FROM " +
                             schemas.text(i, 0) + ".state");
        if (state.rows() == 1)
            moves.push_back({static_cast<int>(schemas.number(i, 1)), state.text(0, 0),
                             state.text(0, 1), state.text(0, 2), state.text(0, 3), state.text(0, 4),
                             state.flag(0, 5)});
    }
    return moves;
}

std::set<std::string> closed_schemas(Connection& connection)
{
    std::set<std::string> schemas;
    for (const MoveState& move : read_moves(connection))
        if (!move.is_open)
            schemas.insert(move.schema);
    return schemas;
}

std::vector<Shard> read_shards(Connection& connection)
{
    const std::set<std::string> closed = closed_schemas(connection);
    const Result rows = connection.query(
        "SELECT DISTINCT shard, schema_name, quote_ident(schema_name) FROM " +
        extension_schema(connection) + ".snowflake_shards ORDER BY shard, schema_name");
    std::vector<Shard> shards;
    for (int i = 0; i < rows.rows(); i++)
        if (closed.count(rows.text(i, 1)) == 0)
            shards.push_back(
                {static_cast<int>(rows.number(i, 0)), rows.text(i, 1), rows.text(i, 2)});
    return shards;
}

std::vector<Shard> choose_shards(Connection& connection, const std::string& numbers)
{
    if (numbers.empty())
        return read_shards(connection);
    ShardSet missing = parse_shards(numbers);
    const ShardSet wanted = missing;
    std::vector<Shard> chosen;
    for (const Shard& shard : read_shards(connection))
        if (wanted.count(shard.number) > 0) {
            chosen.push_back(shard);
            missing.erase(shard.number);
        }
    if (chosen.empty())
        throw Failure("none of these shards is on " + connection.server());
    if (!missing.empty())
        warn("not on " + connection.server() + ": " + format_shards(missing));
    return chosen;
}

Shard find_shard(Connection& connection, const std::string& schema)
{
    std::vector<Shard> found;
    for (const Shard& shard : read_shards(connection))
        if (shard.schema == schema)
            found.push_back(shard);
    if (found.empty())
        throw Failure("schema " + schema + " is no shard of " + connection.server() +
                      "\nHINT:  snowflake_create_shard() makes a schema a shard.");
    if (found.size() > 1)
        throw Failure("schema " + schema + " makes IDs of several shards: " +
                      std::to_string(found[0].number) + ", " + std::to_string(found[1].number));
    return found[0];
}
