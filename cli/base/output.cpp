#include "base/output.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "verbs.h"

namespace
{

using Lines = std::vector<std::vector<std::string>>;

/* The headings, then the rows. */
Lines lines_of(const Table& table)
{
    Lines lines = {table.columns};
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

/* Numbers stand at the right, with their heading. A newline in a name must not begin a row. */
void print_aligned(const Table& table)
{
    Lines lines = lines_of(table);
    for (auto& line : lines)
        for (std::string& text : line)
            text = visible(text);
    std::vector<std::size_t> widths(table.columns.size());
    for (const auto& line : lines)
        for (std::size_t i = 0; i < line.size(); i++)
            widths[i] = std::max(widths[i], width_of(line[i]));
    for (std::size_t n = 0; n < lines.size(); n++)
        for (std::size_t i = 0; i < widths.size(); i++) {
            const std::string& text = lines[n][i];
            const std::string space(widths[i] - width_of(text), ' ');
            /* The heading is aligned as the cell of the first row. NULL is empty on either side. */
            const bool is_text = table.rows.empty() || std::holds_alternative<std::string>(
                                                           table.rows[n == 0 ? 0 : n - 1][i]);
            const bool is_last = i + 1 == widths.size();
            std::cout << (is_text ? text + (is_last ? "" : space) : space + text)
                      << (is_last ? "\n" : "  ");
        }
}

void print_json(const Table& table)
{
    /* Keys in the order of the columns, not sorted. */
    using Json = nlohmann::ordered_json;
    Json array = Json::array();
    for (const auto& row : table.rows) {
        Json object;
        for (std::size_t i = 0; i < row.size(); i++)
            if (const auto* number = std::get_if<std::int64_t>(&row[i]))
                object[table.columns[i]] = *number;
            else if (const auto* text = std::get_if<std::string>(&row[i]))
                object[table.columns[i]] = *text;
            else
                object[table.columns[i]] = nullptr;
        array.push_back(object);
    }
    std::cout << array.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

/* Quotes only where RFC 4180 needs them. NULL and an empty text are both an empty field. */
void print_csv(const Table& table)
{
    for (const auto& line : lines_of(table))
        for (std::size_t i = 0; i < line.size(); i++) {
            const bool is_plain = line[i].find_first_of(",\"\r\n") == std::string::npos;
            std::cout << (is_plain ? line[i] : "\"" + doubled(line[i], '"') + "\"")
                      << (i + 1 < line.size() ? "," : "\n");
        }
}

} // namespace

std::string text_of(const Cell& cell)
{
    if (const auto* number = std::get_if<std::int64_t>(&cell))
        return std::to_string(*number);
    const auto* text = std::get_if<std::string>(&cell);
    return text == nullptr ? "" : *text;
}

void Table::add(const Result& result)
{
    for (int row = 0; row < result.rows(); row++) {
        rows.emplace_back();
        for (int column = 0; column < result.columns(); column++)
            rows.back().push_back(result.is_null(row, column) ? Cell()
                                  : result.is_bigint(column)  ? Cell(result.number(row, column))
                                                              : Cell(result.text(row, column)));
    }
}

void print(const Table& table, Format format)
{
    format == Format::json  ? print_json(table)
    : format == Format::csv ? print_csv(table)
                            : print_aligned(table);
}

int exit_code_of(const std::vector<ShardState>& states)
{
    const bool is_done = std::all_of(states.begin(), states.end(), [](const ShardState& state) {
        return state.state != "failed" && state.state != "not done";
    });
    return is_done ? kDone : kFailed;
}

int print_states(const std::vector<ShardState>& states, bool json)
{
    Table table = {{"shard", "schema", "state", "error"}, {}};
    std::map<std::string, ShardSet> shards;
    for (const auto& [shard, state, error, server, sqlstate] : states) {
        shards[state].insert(shard.number);
        table.rows.push_back(
            {shard.number, shard.schema, state, error.empty() ? Cell() : Cell(error)});
        if (!error.empty())
            warn("shard " + std::to_string(shard.number) + ", schema " + visible(shard.schema) +
                 ": " + error);
    }
    /* Ranges, because a run over thousands of shards must end in a few lines. */
    if (json)
        print_json(table);
    else
        for (const auto& [state, set] : shards)
            std::cout << count_of(set.size(), "shard") << " " << state << ": " << format_shards(set)
                      << "\n";
    return exit_code_of(states);
}

thread_local std::string prefix_of_thread;

Prefix::Prefix(const std::string& text)
{
    prefix_of_thread = text;
}

Prefix::~Prefix()
{
    prefix_of_thread.clear();
}

/* A message has lines of its own, and a message of libpq tabs. All names and texts of others in it
 * have passed visible() where a line of theirs could be taken for one of the command.
 *
 * In one piece, so that lines of threads do not mix. On a terminal, the line of a Progress is
 * erased first: it has no newline, and the message would be written behind it. */
void warn(const std::string& message)
{
    std::cerr << (isatty(STDERR_FILENO) != 0 ? "\r\33[K" : "") +
                     ("snowflake-shard: " + visible(prefix_of_thread + message, "\n\t") + "\n")
              << std::flush;
}

std::string first_line(const std::string& text)
{
    return text.substr(0, text.find('\n'));
}

std::string count_of(std::size_t count, const std::string& thing)
{
    return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string pretty_size(std::int64_t bytes)
{
    constexpr std::array<const char*, 6> kUnits = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    auto size = static_cast<double>(bytes);
    std::size_t unit = 0;
    /* As pg_size_pretty(), which psql's users know. */
    for (; size >= 10 * 1024 && unit + 1 < kUnits.size(); unit++)
        size /= 1024;
    return std::to_string(std::llround(size)) + " " + kUnits.at(unit);
}

Progress::Progress(const std::string& what, std::size_t total)
    : what_(visible(what)), is_terminal_(isatty(STDERR_FILENO) != 0), total_(total)
{
}

/* The results that follow on the standard output begin on an empty line. */
Progress::~Progress()
{
    if (is_terminal_)
        std::cerr << "\r\33[K" << std::flush;
}

void Progress::show(std::size_t done)
{
    const std::lock_guard<std::mutex> lock(showing_);
    /* In a file each report is a line of its own, so there are fewer of them. Work that is shorter
     * than the interval shows nothing. For 0 there is no rate to compute the rest from. */
    if (done == 0 || milliseconds_since(shown_) < (is_terminal_ ? 200 : 3000))
        return;
    shown_ = Clock::now();
    const auto passed = static_cast<std::size_t>(milliseconds_since(start_));
    const std::size_t left = passed * (total_ - done) / done / 1000;
    std::fprintf(stderr, "%s%s: %zu of %zu, %zu:%02zu left%s", is_terminal_ ? "\r\33[K" : "",
                 what_.c_str(), done, total_.load(), left / 60, left % 60,
                 is_terminal_ ? "" : "\n");
}
