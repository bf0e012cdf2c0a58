/* The phases of a move: properties of all pairs of records, and of what each verb does. The table
 * of docs/move-failures.md is made from the same rows. */
#include "fleet/phase.h"
#include "program/refusal.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

namespace
{

using Record = std::optional<MoveState>;

struct Records {
    Record source;
    Record target;

    Phase phase() const { return phase_of(source, target); }
    Records exchanged() const { return {target, source}; }
    std::string text() const
    {
        std::string text;
        for (const Record& record : {source, target})
            text += !record ? "none "
                            : std::to_string(static_cast<int>(record->step)) +
                                  (record->is_reverse ? " reverse" : "") +
                                  (record->is_held ? " held" : "") +
                                  (record->is_equal ? " equal, " : ", ");
        return text;
    }
};

Record record_of(Step step, bool is_reverse, bool is_equal, bool is_held = false)
{
    return MoveState{"snowflake_move_5",
                     {{5, "insta5"}},
                     "id",
                     {},
                     step,
                     "",
                     false,
                     is_reverse,
                     is_equal,
                     is_held,
                     is_held ? "2026-01-01" : ""};
}

/* None; each step, of reverse replication or not; the last one also with equal rows; held. */
std::vector<Record> all_records()
{
    std::vector<Record> records = {{}};
    for (const Step step :
         {Step::prepared, Step::fenced, Step::moved, Step::copying, Step::ready, Step::open})
        for (const bool is_reverse : {false, true})
            for (const bool is_equal : {false, true})
                if (!is_equal || step == Step::moved)
                    records.push_back(record_of(step, is_reverse, is_equal));
    for (const Step step : {Step::prepared, Step::ready})
        records.push_back(record_of(step, false, false, true));
    return records;
}

std::vector<Records> all_pairs()
{
    std::vector<Records> pairs;
    for (const Record& source : all_records())
        for (const Record& target : all_records())
            pairs.push_back({source, target});
    return pairs;
}

std::vector<Phase> all_phases()
{
    std::vector<Phase> phases;
    for (std::size_t i = 0; i < kPhases; i++)
        phases.push_back(static_cast<Phase>(i));
    return phases;
}

constexpr std::array<Verb, kVerbs> kAllVerbs = {Verb::move,  Verb::list,   Verb::resume,
                                                Verb::abort, Verb::undo,   Verb::complete,
                                                Verb::hold,  Verb::cutover};

bool is_refused(Phase phase, Verb verb)
{
    return act_of(phase, verb) == Act::refuses || act_of(phase, verb) == Act::objects;
}

Verb verb_of(const std::string& option)
{
    return option == "--resume"    ? Verb::resume
           : option == "--abort"   ? Verb::abort
           : option == "--undo"    ? Verb::undo
           : option == "--cutover" ? Verb::cutover
                                   : Verb::complete;
}

/* Sorted. */
std::vector<std::string> next_of(Phase phase)
{
    std::vector<std::string> options;
    for (const char* const option : row_of(phase).next)
        if (option != nullptr)
            options.emplace_back(option);
    std::sort(options.begin(), options.end());
    return options;
}

} // namespace

TEST(Phase, RowsAreInOrder)
{
    for (const Phase phase : all_phases())
        EXPECT_EQ(row_of(phase).phase, phase);
}

/* The sentence of a refusal is by this table. */
TEST(Phase, EachRefusalHasAReason)
{
    for (const Phase phase : all_phases())
        for (const Verb verb : kAllVerbs)
            EXPECT_EQ(program::refusal_of(phase, verb) != program::Refusal::none,
                      act_of(phase, verb) == Act::refuses)
                << "phase " << static_cast<int>(phase) << ", verb " << static_cast<int>(verb);
}

/* Of two records of one move; dropped differs from none by the shard alone. */
TEST(Phase, EachIsThePhaseOfAPair)
{
    std::set<Phase> found = {Phase::dropped};
    for (const Records& pair : all_pairs())
        found.insert(pair.phase());
    EXPECT_EQ(found.size(), kPhases);
}

TEST(Phase, TwoMovesAreFaulty)
{
    for (Records pair : all_pairs())
        if (pair.source && pair.target) {
            pair.target->id = "other";
            EXPECT_EQ(pair.phase(), Phase::faulty) << pair.text();
        }
}

/* 289 pairs; a kill makes some of them, in this direction or the other. */
TEST(Phase, PairsOfAFault)
{
    const auto pairs = all_pairs();
    const auto count = [&](Phase phase) {
        return std::count_if(pairs.begin(), pairs.end(),
                             [&](const Records& pair) { return pair.phase() == phase; });
    };
    EXPECT_EQ(pairs.size(), 289U);
    EXPECT_EQ(count(Phase::source_lost), 3);
    EXPECT_EQ(count(Phase::target_lost), 2);
    EXPECT_EQ(count(Phase::faulty), 230);
    for (const Records& pair : pairs)
        EXPECT_EQ(pair.phase() == Phase::faulty, pair.exchanged().phase() == Phase::faulty)
            << pair.text();
}

TEST(Phase, BothSidesOpenIsFaulty)
{
    for (const Records& pair : all_pairs())
        if (pair.source && pair.target && pair.source->is_open() && pair.target->is_open()) {
            EXPECT_EQ(pair.phase(), Phase::faulty) << pair.text();
        }
}

/* The source is never opened again when the target may be open. */
TEST(Phase, NoAbortWhenTheTargetIsOpen)
{
    for (const Records& pair : all_pairs()) {
        const bool may_be_open =
            pair.target ? pair.target->step == Step::open : pair.source && !pair.source->is_open();
        if (may_be_open) {
            EXPECT_TRUE(is_refused(pair.phase(), Verb::abort)) << pair.text();
        }
    }
}

/* --complete drops the source's rows, or, if there is no record, the target's. */
TEST(Phase, OnlyClosedRowsAreDropped)
{
    for (const Records& pair : all_pairs())
        if (act_of(pair.phase(), Verb::complete) == Act::drops) {
            const Record& closed = pair.source ? pair.source : pair.target;
            EXPECT_FALSE(closed->is_open()) << pair.text();
            EXPECT_FALSE(row_of(pair.phase()).motion == Motion::moving) << pair.text();
        }
}

/* Each command of a hint is carried out. */
TEST(Phase, NextCommandsAreNotRefused)
{
    for (const Records& pair : all_pairs()) {
        const PhaseRow& row = row_of(pair.phase());
        const Phase there = (row.is_exchanged ? pair.exchanged() : pair).phase();
        for (const std::string& option : next_of(row.phase))
            EXPECT_FALSE(is_refused(there, verb_of(option))) << pair.text() << option;
        const bool has_none =
            row.phase == Phase::none || row.phase == Phase::target_lost ||
            row.phase == Phase::faulty ||
            row.phase == Phase::opposite; /* the same commands, named from the other side */
        EXPECT_EQ(next_of(row.phase).empty(), has_none) << pair.text();
        EXPECT_FALSE(row.phase == Phase::opposite && there == Phase::opposite) << pair.text();
    }
}

/* A server that has only its record names commands that both records allow, or refuse with the
 * right one. */
TEST(Phase, OneRecordHasANextCommand)
{
    for (const Record& record : all_records())
        if (record) {
            const Phase alone = phase_of(*record);
            EXPECT_NE(alone, Phase::faulty);
            EXPECT_FALSE(next_of(alone).empty());
            EXPECT_EQ(row_of(alone).motion == Motion::rest, record->step == Step::moved);
        }
}

/* --- the page --- */

namespace
{

std::string refusal(Phase phase)
{
    std::string text = "refused";
    for (const std::string& option : next_of(phase))
        text += (text == "refused" ? ": `" : ", `") + option + "`";
    return text;
}

std::string cell_of(Phase phase, Verb verb)
{
    switch (act_of(phase, verb)) {
    case Act::begins:
    case Act::goes_on:
        return verb == Verb::undo ? "undone" : verb == Verb::hold ? "held" : "moved";
    case Act::leads:
    case Act::discards:
    case Act::nothing:
        return "nothing";
    case Act::aborts:
        return "aborted";
    case Act::drops:
        return "dropped";
    default:
        return refusal(phase);
    }
}

/* By the record of each server alone: one that is open on the target tells most, and a follower
 * less than any other. */
std::string run_of(const Records& pair)
{
    std::optional<Phase> told;
    for (const Record& record : {pair.source, pair.target})
        if (const Phase phase = record ? phase_of(*record) : Phase::none;
            row_of(phase).motion != Motion::rest &&
            (!told || phase == Phase::opened || row_of(*told).motion == Motion::reverse))
            told = phase;
    return told ? refusal(*told) : "possible";
}

std::string line_of(const Records& pair, Phase phase)
{
    const PhaseRow& row = row_of(phase);
    std::string line = std::string("| ") + row.title + " |";
    for (const Verb verb : kAllVerbs)
        line += " " + cell_of(phase, verb) + " |";
    line += " " + (pair.source ? refusal(phase_of(*pair.source)) : "possible") + " |";
    line += " " + run_of(pair) + " | `" + row.listed.open + "`";
    return line + (row.next[0] != nullptr ? std::string(", `") + row.next[0] + "` |" : " |");
}

} // namespace

TEST(Phase, ThePageHasTheTable)
{
    const auto program = std::filesystem::read_symlink("/proc/self/exe");
    std::ifstream file(program.parent_path() / "../../docs/move-failures.md");
    std::stringstream page;
    page << file.rdbuf();
    const auto pairs = all_pairs();
    for (const Phase phase : all_phases()) {
        if (row_of(phase).title == nullptr)
            continue;
        const Phase by_records = phase == Phase::dropped ? Phase::none : phase;
        const auto pair = std::find_if(pairs.begin(), pairs.end(), [&](const Records& one) {
            return one.phase() == by_records;
        });
        ASSERT_NE(pair, pairs.end());
        const std::string line = line_of(*pair, phase);
        EXPECT_NE(page.str().find("\n" + line + "\n"), std::string::npos) << line;
    }
}
