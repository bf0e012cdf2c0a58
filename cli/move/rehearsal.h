/* move --rehearse: the steps up to the cutover with their times, and the pause of a cutover of
 * throw-away tables. */

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/table.h"
#include "move/session.h"
#include "routers/routing.h"

/* A line of the report. */
struct Lap {
    std::string item; /* rows, comparison ... */
    std::optional<std::int64_t> ms{};
    std::optional<std::int64_t> bytes{};
    std::string text{};
};

class Laps
{
public:
    /* Adds the time since the last lap, or since the object was made. */
    void add(const std::string& item, std::optional<std::int64_t> bytes = {},
             const std::string& text = "")
    {
        const std::int64_t ms = milliseconds_since(start_);
        laps_.push_back({item, ms, bytes, text});
        start_ = Clock::now();
    }
    void note(const Lap& lap) { laps_.push_back(lap); }
    /* columns: shards, item, ms, bytes, text */
    void add_to(Table& table, const Shards& shards) const;

private:
    Clock::time_point start_ = Clock::now();
    std::vector<Lap> laps_;
};

Table table_of_laps();

/* Adds the WAL that the source keeps, the lag of the target, and the pause that is to be expected:
 * that of a move of as many tables and sequences, which are made on both servers and dropped at the
 * end. */
void rehearse(Servers& servers, const Move& move, const std::string& publisher,
              const CutoverOptions& options, Laps& laps);

/* Drops the tables that rehearse() has made, if it was killed. */
void remove_rehearsal(Servers& servers, const Move& move, Clock::time_point deadline);
