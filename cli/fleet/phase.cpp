#include "fleet/phase.h"

namespace
{

constexpr Motion moving = Motion::moving, reversed = Motion::reverse, at_rest = Motion::rest;
constexpr Act begins = Act::begins, goes_on = Act::goes_on, leads = Act::leads,
              aborts = Act::aborts, discards = Act::discards, drops = Act::drops,
              nothing = Act::nothing, refuses = Act::refuses, objects = Act::objects;

constexpr StateText kOpen = {"open", "moved"};
constexpr StateText kReverse = {"open with reverse replication", "moved, follows"};
constexpr StateText kMoving = {"moving", "moving"};
constexpr StateText kFollowing = {"following", "following"};
constexpr StateText kClosed = {"closed", "closed"};

constexpr NextOptions kToEnd = {"--resume", "--abort"};
constexpr NextOptions kToCutover = {"--cutover", "--abort"};
constexpr NextOptions kBack = {"--complete", "--undo"};

constexpr Acts kCopying = {refuses, goes_on, goes_on, aborts, refuses, refuses, goes_on, refuses};
constexpr Acts kHeld = {refuses, objects, refuses, aborts, refuses, refuses, goes_on, goes_on};
constexpr Acts kFenced = {refuses, goes_on, goes_on, aborts, refuses, refuses, refuses, goes_on};
constexpr Acts kOpened = {refuses, goes_on, goes_on, refuses, refuses, refuses, refuses, goes_on};
constexpr Acts kFollowed = {leads, leads, leads, refuses, goes_on, drops, leads, leads};
constexpr Acts kUndoing = {refuses, refuses, refuses, refuses, goes_on, refuses, refuses, refuses};
constexpr Acts kRefused = {refuses, refuses, refuses, refuses, refuses, refuses, refuses, refuses};

// clang-format off
/* The pairs of records, source and target, each by the first letter of its step: in upper case of
 * reverse replication, = at the end of an undo whose rows are equal, h and H of a set that waits
 * for --cutover, - if there is none. One letter: only one server was asked, and this is its record. All
 * other pairs are faulty. The acts are in the order of Verb. */
constexpr PhaseRow kRows[kPhases] = {
    {Phase::none, at_rest, "--", "not begun, or aborted", kOpen, {}, false,
     {begins, begins, refuses, refuses, refuses, refuses, begins, refuses}},
    {Phase::prepared, moving, "p p- h-", "prepared", kMoving, kToEnd, false, kCopying},
    {Phase::copying, moving, "c C r pc pr pH", "copying", kMoving, kToEnd, false, kCopying},
    {Phase::held, moving, "h H hr hH", "held", kFollowing, kToCutover, false, kHeld},
    {Phase::fenced, moving, "f F fr fH FR", "fenced", kClosed, kToEnd, false, kFenced},
    {Phase::opened, moving, "o O fo FO", "open, not ended", kMoving, {"--resume"}, false, kOpened},
    {Phase::ended, moving, "mo MO =O", "open, ended but for a record", kMoving, {"--resume"}, false, kOpened},
    {Phase::moved, at_rest, "m M = m- M- =-", "moved", kOpen, {"--complete"}, false,
     {leads, leads, leads, refuses, refuses, drops, leads, leads}},
    {Phase::reverse, reversed, "RP", "with reverse replication", kReverse, kBack, false, kFollowed},
    {Phase::turning, reversed, "Ro RO", nullptr, kReverse, kBack, false, kFollowed},
    {Phase::reverse_lost, reversed, "R-", "with reverse replication, half dropped", kReverse, {"--complete"}, false,
     {leads, leads, leads, refuses, refuses, drops, leads, leads}},
    {Phase::undo_fenced, moving, "RF", "fenced by an undo", kClosed, kToEnd, true, kUndoing},
    {Phase::undo_opened, moving, "OF OM O= OR", "opened by an undo, not ended", kMoving, {"--resume"}, true, kUndoing},
    {Phase::undone, at_rest, "-=", "undone", kOpen, {"--complete"}, true,
     {begins, begins, refuses, refuses, leads, drops, begins, refuses}},
    {Phase::unequal, at_rest, "-m -M", "undone, rows may differ", kOpen, {"--complete"}, true,
     {objects, objects, refuses, refuses, leads, drops, objects, refuses}},
    {Phase::undone_reverse, reversed, "P R PR", "undone with reverse replication", kReverse, kBack, true,
     {goes_on, goes_on, refuses, discards, leads, refuses, refuses, goes_on}},
    {Phase::dropped, at_rest, "", "dropped", kOpen, {}, false,
     {leads, leads, leads, refuses, refuses, nothing, leads, leads}},
    {Phase::source_lost, moving, "-c -r -H", nullptr, kMoving, {"--abort"}, false,
     {refuses, refuses, refuses, aborts, refuses, refuses, refuses, refuses}},
    {Phase::target_lost, moving, "f- F-", nullptr, kClosed, {}, false, kRefused},
    {Phase::opposite, moving, "-p -h cp rp Hp rh Hh rf Hf of om oR -R c- r- H- -f -F", nullptr, kMoving, {}, true, kRefused},
    {Phase::faulty, moving, "", nullptr, kMoving, {}, false, kRefused},
};
// clang-format on

char letter_of(const std::optional<MoveState>& record)
{
    if (!record)
        return '-';
    if (record->step == Step::moved && record->is_reverse && record->is_equal)
        return '=';
    if (record->waits())
        return record->is_of_source() ? 'h' : 'H';
    /* The letters have the order of Step. */
    return (record->is_reverse ? "PFMCRO" : "pfmcro")[static_cast<std::size_t>(record->step)];
}

Phase phase_in_table(const std::string& records)
{
    for (const PhaseRow& row : kRows)
        if ((' ' + std::string(row.records) + ' ').find(' ' + records + ' ') != std::string::npos)
            return row.phase;
    return Phase::faulty;
}

} // namespace

Phase phase_of(const std::optional<MoveState>& source, const std::optional<MoveState>& target)
{
    return source && target && source->id != target->id
               ? Phase::faulty
               : phase_in_table({letter_of(source), letter_of(target)});
}

Phase phase_of(const MoveState& record)
{
    return phase_in_table({letter_of(record)});
}

const PhaseRow& row_of(Phase phase)
{
    return kRows[static_cast<std::size_t>(phase)];
}

Act act_of(Phase phase, Verb verb)
{
    return row_of(phase).acts[static_cast<std::size_t>(verb)];
}
