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

std::string format_bytes(std::int64_t count)
{
    const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
    std::size_t unit = 0;
    for (; count >= 10240 && unit < 4; unit++)
        count /= 1024;
    return std::to_string(count) + " " + units[unit];
}

std::string text_of(const Cell& cell, bool is_for_people)
{
    if (const auto* bytes = std::get_if<Bytes>(&cell))
        return is_for_people ? format_bytes(bytes->count) : std::to_string(bytes->count);
    if (const auto* number = std::get_if<std::int64_t>(&cell))
        return std::to_string(*number);
    const auto* text = std::get_if<std::string>(&cell);
    return text == nullptr ? "" : *text;
}

/* Characters, not bytes. */
std::size_t width_of(const std::string& text)
{
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/* Numbers stand at the right. */
void print_aligned(const Table& table)
{
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < table.columns.size(); i++) {
        widths.push_back(table.columns[i].size());
        for (const auto& row : table.rows)
            widths[i] = std::max(widths[i], width_of(text_of(row[i], true)));
    }
    const auto put = [&](std::size_t i, const std::string& text, const Cell& like) {
        const std::string space(widths[i] - width_of(text), ' ');
        const bool is_text = std::holds_alternative<std::string>(like);
        const bool is_last = i + 1 == widths.size();
        std::cout << (is_text ? text + (is_last ? "" : space) : space + text)
                  << (is_last ? "\n" : "  ");
    };
    for (std::size_t i = 0; i < table.columns.size(); i++)
        put(i, table.columns[i], table.rows.empty() ? Cell("") : table.rows[0][i]);
    for (const auto& row : table.rows)
        for (std::size_t i = 0; i < row.size(); i++)
            put(i, text_of(row[i], true), row[i]);
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
            else if (!std::holds_alternative<std::monostate>(row[i]))
                value = std::stoll(text_of(row[i], false));
        }
        array.push_back(object);
    }
    std::cout << array.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

void print_csv(const std::vector<std::string>& fields)
{
    for (std::size_t i = 0; i < fields.size(); i++) {
        std::string quoted;
        for (const char c : fields[i])
            quoted.append(c == '"' ? 2 : 1, c);
        const bool is_plain = fields[i].find_first_of(",\"\r\n") == std::string::npos;
        std::cout << (i == 0 ? "" : ",") << (is_plain ? fields[i] : "\"" + quoted + "\"");
    }
    std::cout << "\n";
}

} // namespace

void print(const Table& table, Format format)
{
    if (format == Format::json)
        return print_json(table);
    if (format == Format::table)
        return print_aligned(table);
    print_csv(table.columns);
    for (const auto& row : table.rows) {
        std::vector<std::string> fields;
        for (const Cell& cell : row)
            fields.push_back(text_of(cell, false));
        print_csv(fields);
    }
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
    : what_(std::move(what)), is_terminal_(isatty(STDERR_FILENO) != 0), start_(Clock::now()),
      shown_(start_), total_(total)
{
}

Progress::~Progress()
{
    if (is_terminal_)
        std::cerr << "\r\33[K" << std::flush;
}

void Progress::expect(std::size_t count)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    if (done_ == 0) /* what came before has another pace */
        start_ = shown_ = Clock::now();
    total_ += count;
}

void Progress::step()
{
    const std::lock_guard<std::mutex> lock(mutex_);
    done_++;
    show();
}

void Progress::reach(std::size_t done)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = done;
    show();
}

void Progress::show()
{
    const auto now = Clock::now();
    const auto pause = is_terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(5);
    if (done_ == 0 || now - shown_ < pause)
        return;
    shown_ = now;
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - start_).count();
    const auto left = static_cast<std::size_t>(passed) * (total_ - done_) / done_ / 1000;
    std::fprintf(stderr, "%s%s: %zu of %zu, %zu:%02zu left%s", is_terminal_ ? "\r\33[K" : "",
                 what_.c_str(), done_, total_, left / 60, left % 60, is_terminal_ ? "" : "\n");
}
