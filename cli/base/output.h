/* Messages and progress, on the standard error. table.h prints results. */

#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/clock.h"

/* A line on the standard error, or several. */
void warn(const std::string& message);

/* Begins messages and progress with the time of day from now on, unless they go to a terminal:
 * those of a verb that takes hours are read in a log. */
void time_messages();

/* While it lives, warnings of this thread begin with it, because several threads write at once. */
class Prefix
{
public:
    explicit Prefix(std::string text);
    Prefix(const Prefix&) = delete;
    Prefix& operator=(const Prefix&) = delete;
    ~Prefix();

private:
    std::string other_; /* while another one does not live */
};

/* The text of an error without its HINT. */
std::string first_line(const std::string& text);

/* "1 shard", "2 shards". */
std::string count_of(std::size_t count, const std::string& thing);

/* "12 MB", as pg_size_pretty() writes it. */
std::string pretty_size(std::int64_t bytes);

/* How many are done, or how many bytes and how fast, and how long the rest takes: a line that is
 * renewed on a terminal, else a line every three seconds. Threads may share one. The rest is
 * estimated from the time so far. done must not exceed total, because the rest is unsigned. */
class Progress
{
public:
    explicit Progress(const std::string& what, std::size_t total = 0, bool is_in_bytes = false);
    ~Progress();

    /* Adds to the total. A caller that does not know the total at first begins with 0. */
    void expect(std::size_t count) { total_ += count; }
    void step() { add(1); }
    void add(std::size_t count) { show(done_ += count); }

private:
    void show(std::size_t done);

    const std::string what_;
    const bool is_in_bytes_;
    const bool is_terminal_;
    const Clock::time_point start_ = Clock::now();
    Clock::time_point shown_ = start_;
    std::mutex showing_;
    std::atomic<std::size_t> total_;
    std::atomic<std::size_t> done_ = 0;
};
