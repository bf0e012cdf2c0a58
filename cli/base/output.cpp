#include "base/output.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iostream>

#include <unistd.h>

#include "base/quoting.h"

thread_local std::string prefix_of_thread;
static bool are_timed = false;

namespace
{

/* 17:04:59, and a space; else nothing. */
std::string time_of_day()
{
    if (!are_timed || isatty(STDERR_FILENO) != 0)
        return "";
    const std::time_t now = std::time(nullptr);
    std::tm local = {};
    std::array<char, 16> text = {};
    std::strftime(text.data(), text.size(), "%H:%M:%S ", localtime_r(&now, &local));
    return text.data();
}

} // namespace

void time_messages()
{
    are_timed = true;
}

Prefix::Prefix(std::string text) : other_(std::move(text))
{
    prefix_of_thread.swap(other_);
}

Prefix::~Prefix()
{
    prefix_of_thread.swap(other_);
}

/* A message has lines of its own, and a message of libpq tabs. All names and texts of others in it
 * have passed visible() where a line of theirs could be taken for one of the command.
 *
 * It is written in one piece, so that lines of threads do not mix. On a terminal, the line of a
 * Progress is erased first: it has no newline, and the message would be written after it. */
void warn(const std::string& message)
{
    std::cerr << (isatty(STDERR_FILENO) != 0 ? "\r\33[K" : "") + time_of_day() +
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
    /* The text is that of pg_size_pretty(), which psql's users know. */
    for (; size >= 10 * 1024 && unit + 1 < kUnits.size(); unit++)
        size /= 1024;
    return std::to_string(std::llround(size)) + " " + kUnits.at(unit);
}

Progress::Progress(const std::string& what, std::size_t total, bool is_in_bytes)
    : what_(visible(what)), is_in_bytes_(is_in_bytes), is_terminal_(isatty(STDERR_FILENO) != 0),
      total_(total)
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
    /* A file gets a line for each report, so it gets fewer of them. Work that is shorter than the
     * interval shows nothing. For 0 there is no rate to compute the rest from. */
    if (done == 0 || milliseconds_since(shown_) < (is_terminal_ ? 200 : 3000))
        return;
    shown_ = Clock::now();
    const double seconds = static_cast<double>(milliseconds_since(start_)) / 1000;
    const double rate = static_cast<double>(done) / seconds;
    const auto left = static_cast<std::size_t>(static_cast<double>(total_ - done) / rate);
    std::array<char, 40> left_text = {};
    /* The first of them wait for connections and caches, and say little about the rest. */
    if (done >= total_ / 10)
        std::snprintf(left_text.data(), left_text.size(), ", %zu:%02zu left", left / 60, left % 60);
    const auto count = [this](std::size_t number) {
        return is_in_bytes_ ? pretty_size(static_cast<std::int64_t>(number))
                            : std::to_string(number);
    };
    std::fprintf(stderr, "%s%s: %s of %s%s%s%s", is_terminal_ ? "\r\33[K" : time_of_day().c_str(),
                 what_.c_str(), count(done).c_str(), count(total_).c_str(),
                 is_in_bytes_ ? (", " + count(static_cast<std::size_t>(rate)) + "/s").c_str() : "",
                 left_text.data(), is_terminal_ ? "" : "\n");
}
