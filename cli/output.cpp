#include "output.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace
{

std::string format_bytes(std::int64_t count)
{
    const std::array<const char*, 5> units = {"B", "kB", "MB", "GB", "TB"};
    std::size_t unit = 0;
    for (; count >= 10240 && unit + 1 < units.size(); unit++)
        count /= 1024;
    return std::to_string(count) + " " + units[unit];
}

std::string plain(const Cell& cell, bool is_for_people)
{
    if (const auto* number = std::get_if<std::int64_t>(&cell))
        return std::to_string(*number);
    if (const auto* bytes = std::get_if<Bytes>(&cell))
        return is_for_people ? format_bytes(bytes->count) : std::to_string(bytes->count);
    if (const auto* flag = std::get_if<bool>(&cell))
        return *flag ? "yes" : "no";
    if (const auto* text = std::get_if<std::string>(&cell))
        return *text;
    return "";
}

nlohmann::ordered_json json_of(const Cell& cell)
{
    if (const auto* number = std::get_if<std::int64_t>(&cell))
        return *number;
    if (const auto* bytes = std::get_if<Bytes>(&cell))
        return bytes->count;
    if (const auto* flag = std::get_if<bool>(&cell))
        return *flag;
    if (const auto* text = std::get_if<std::string>(&cell))
        return *text;
    return nullptr;
}

bool is_number(const Cell& cell)
{
    return std::holds_alternative<std::int64_t>(cell) || std::holds_alternative<Bytes>(cell);
}

/* Characters, not bytes. */
std::size_t width_of(const std::string& text)
{
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

void print_aligned(const Table& table)
{
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < table.columns.size(); i++) {
        widths.push_back(table.columns[i].size());
        for (const auto& row : table.rows)
            widths[i] = std::max(widths[i], width_of(plain(row[i], true)));
    }
    const auto put = [&](std::size_t i, const std::string& text, bool is_right) {
        const std::string space(widths[i] - width_of(text), ' ');
        const bool is_last = i + 1 == widths.size();
        std::cout << (is_right  ? space + text
                      : is_last ? text
                                : text + space)
                  << (is_last ? "\n" : "  ");
    };
    for (std::size_t i = 0; i < table.columns.size(); i++)
        put(i, table.columns[i], !table.rows.empty() && is_number(table.rows[0][i]));
    for (const auto& row : table.rows)
        for (std::size_t i = 0; i < row.size(); i++)
            put(i, plain(row[i], true), is_number(row[i]));
}

void print_json(const Table& table)
{
    nlohmann::ordered_json array = nlohmann::ordered_json::array();
    for (const auto& row : table.rows) {
        nlohmann::ordered_json object = nlohmann::ordered_json::object();
        for (std::size_t i = 0; i < row.size(); i++)
            object[table.columns[i]] = json_of(row[i]);
        array.push_back(object);
    }
    std::cout << array.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
              << "\n";
}

std::string csv_field(const std::string& text)
{
    if (text.find_first_of(",\"\r\n") == std::string::npos)
        return text;
    std::string quoted = "\"";
    for (const char c : text)
        quoted.append(c == '"' ? 2 : 1, c);
    return quoted + "\"";
}

void print_csv(const Table& table)
{
    for (std::size_t i = 0; i < table.columns.size(); i++)
        std::cout << (i == 0 ? "" : ",") << csv_field(table.columns[i]);
    std::cout << "\n";
    for (const auto& row : table.rows) {
        for (std::size_t i = 0; i < row.size(); i++)
            std::cout << (i == 0 ? "" : ",") << csv_field(plain(row[i], false));
        std::cout << "\n";
    }
}

} // namespace

void print(const Table& table, Format format)
{
    if (format == Format::json)
        print_json(table);
    else if (format == Format::csv)
        print_csv(table);
    else
        print_aligned(table);
    std::cout.flush();
}

void warn(const std::string& message)
{
    std::cerr << "snowflake-shard: " << message << std::endl;
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
    if (is_terminal_ && done_ > 0)
        std::cerr << "\r\33[K" << std::flush;
}

void Progress::expect(std::size_t count)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    total_ += count;
}

void Progress::step()
{
    const std::lock_guard<std::mutex> lock(mutex_);
    done_++;
    const auto now = Clock::now();
    if (now - shown_ >= (is_terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(5)))
        show(now);
}

void Progress::show(Clock::time_point now)
{
    shown_ = now;
    const double passed = std::chrono::duration<double>(now - start_).count();
    const double left = passed / static_cast<double>(done_) * static_cast<double>(total_ - done_);
    char text[200];
    std::snprintf(text, sizeof text, "%s: %zu of %zu, %d:%02d left", what_.c_str(), done_, total_,
                  static_cast<int>(left) / 60, static_cast<int>(left) % 60);
    std::cerr << (is_terminal_ ? std::string("\r\33[K") + text : std::string(text) + "\n")
              << std::flush;
}
