#include "output.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "verbs.h"

namespace
{

using Line = std::vector<std::string>;

std::string text_of(const Cell& cell)
{
    if (const auto* size = std::get_if<Size>(&cell))
        return size->text;
    if (const auto* number = std::get_if<std::int64_t>(&cell))
        return std::to_string(*number);
    const auto* text = std::get_if<std::string>(&cell);
    return text == nullptr ? "" : *text;
}

/* The headings, then the rows. */
std::vector<Line> lines_of(const Table& table)
{
    std::vector<Line> lines = {table.columns};
    for (const auto& row : table.rows) {
        lines.emplace_back();
        for (const Cell& cell : row)
            lines.back().push_back(text_of(cell));
    }
    return lines;
}

/* Characters, not bytes. */
std::size_t width_of(const std::string& text)
{
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/* Numbers stand at the right, with their heading. */
void print_aligned(const Table& table)
{
    const std::vector<Line> lines = lines_of(table);
    std::vector<std::size_t> widths(table.columns.size());
    for (const Line& line : lines)
        for (std::size_t i = 0; i < line.size(); i++)
            widths[i] = std::max(widths[i], width_of(line[i]));
    for (std::size_t n = 0; n < lines.size(); n++)
        for (std::size_t i = 0; i < widths.size(); i++) {
            const std::string& text = lines[n][i];
            const std::string space(widths[i] - width_of(text), ' ');
            const bool is_text = table.rows.empty() || std::holds_alternative<std::string>(
                                                           table.rows[n == 0 ? 0 : n - 1][i]);
            const bool is_last = i + 1 == widths.size();
            std::cout << (is_text ? text + (is_last ? "" : space) : space + text)
                      << (is_last ? "\n" : "  ");
        }
}

void print_json(const Table& table)
{
    using Json = nlohmann::ordered_json;
    Json array = Json::array();
    for (const auto& row : table.rows) {
        Json object = Json::object();
        for (std::size_t i = 0; i < row.size(); i++) {
            Json& value = object[table.columns[i]];
            if (const auto* text = std::get_if<std::string>(&row[i]))
                value = *text;
            else if (const auto* number = std::get_if<std::int64_t>(&row[i]))
                value = *number;
            else if (const auto* size = std::get_if<Size>(&row[i]))
                value = size->bytes;
        }
        array.push_back(object);
    }
    std::cout << array.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

void print_csv(const Line& line)
{
    for (std::size_t i = 0; i < line.size(); i++) {
        std::string quoted;
        for (const char c : line[i])
            quoted.append(c == '"' ? 2 : 1, c);
        const bool is_plain = quoted.find_first_of(",\"\r\n") == std::string::npos;
        std::cout << (i == 0 ? "" : ",") << (is_plain ? quoted : "\"" + quoted + "\"");
    }
    std::cout << "\n";
}

} // namespace

void print(const Table& table, Format format)
{
    if (format == Format::json)
        print_json(table);
    else if (format == Format::table)
        print_aligned(table);
    else
        for (const Line& line : lines_of(table))
            print_csv(line);
}

int print_states(const std::vector<ShardState>& states, bool json)
{
    Table table = {{"shard", "schema", "state", "error"}, {}};
    std::map<std::string, ShardSet> shards;
    for (const auto& [shard, state, error] : states) {
        shards[state].insert(shard.number);
        table.rows.push_back({std::int64_t{shard.number}, shard.schema, state,
                              error.empty() ? Cell() : Cell(error)});
        if (!error.empty())
            warn("shard " + std::to_string(shard.number) + ", schema " + shard.schema + ": " +
                 error);
    }
    if (json)
        print_json(table);
    else
        for (const auto& [state, set] : shards)
            std::cout << count_of(set.size(), "shard") << " " << state << ": " << format_shards(set)
                      << "\n";
    return shards.count("failed") + shards.count("not done") > 0 ? kFailed : kDone;
}

void warn(const std::string& message)
{
    std::cerr << (isatty(STDERR_FILENO) != 0 ? "\r\33[K" : "") << "snowflake-shard: " << message
              << std::endl;
}

std::string count_of(std::size_t count, const std::string& thing)
{
    return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

Progress::Progress(std::string what, std::size_t total)
    : what_(std::move(what)), is_terminal_(isatty(STDERR_FILENO) != 0), total_(total)
{
}

Progress::~Progress()
{
    if (is_terminal_)
        std::cerr << "\r\33[K" << std::flush;
}

void Progress::show(std::size_t done)
{
    const std::lock_guard<std::mutex> lock(showing_);
    if (done == 0 || milliseconds_since(shown_) < (is_terminal_ ? 200 : 5000))
        return;
    shown_ = Clock::now();
    const auto passed = static_cast<std::size_t>(milliseconds_since(start_));
    const std::size_t left = passed * (total_ - done) / done / 1000;
    std::fprintf(stderr, "%s%s: %zu of %zu, %zu:%02zu left%s", is_terminal_ ? "\r\33[K" : "",
                 what_.c_str(), done, total_.load(), left / 60, left % 60,
                 is_terminal_ ? "" : "\n");
}
