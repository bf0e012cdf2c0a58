#include "program/refusal.h"

namespace program
{

namespace
{

/* In the order of Verb: move, list, resume, abort, undo, complete, hold, cutover. */
using Letters = char[kVerbs + 1];

struct Row {
    Phase phase;
    Letters refusals;
};

// clang-format off
constexpr Row kRows[kPhases] = {
    {Phase::none, "..sanm.s"},
    {Phase::prepared, "w...ye.w"},
    {Phase::copying, "w...ye.w"},
    {Phase::held, "w.w.ye.."},
    {Phase::fenced, "w...yew."},
    {Phase::opened, "w..oyew."},
    {Phase::ended, "w..oyew."},
    {Phase::moved, "...hr..."},
    {Phase::reverse, "...a...."},
    {Phase::turning, "...a...."},
    {Phase::reverse_lost, "...ay..."},
    {Phase::undo_fenced, "wwww.eww"},
    {Phase::undo_opened, "wwww.eww"},
    {Phase::undone, "..sa...s"},
    {Phase::unequal, "..sa...s"},
    {Phase::undone_reverse, "..w..es."},
    {Phase::dropped, "...ar..."},
    {Phase::source_lost, "www.yeww"},
    {Phase::target_lost, "uuuuyuuu"},
    {Phase::opposite, "xxxxyxxx"},
    {Phase::faulty, "xxxxyxxx"},
};
// clang-format on

constexpr bool are_in_order()
{
    for (std::size_t i = 0; i < kPhases; i++)
        if (static_cast<std::size_t>(kRows[i].phase) != i)
            return false;
    return true;
}

} // namespace

static_assert(are_in_order());

Refusal refusal_of(Phase phase, Verb verb)
{
    return static_cast<Refusal>(
        kRows[static_cast<std::size_t>(phase)].refusals[static_cast<std::size_t>(verb)]);
}

} // namespace program
