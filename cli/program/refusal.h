/* Why a verb is refused in a phase of a move. move/refusal.cpp has a sentence for each. No server
 * is asked here. */

#pragma once

#include "fleet/phase.h"

namespace program
{

/* With the letters of the table. */
enum class Refusal : char {
    none = '.',            /* act_of() is not Act::refuses */
    nothing_to_undo = 'n', /* there is no record, and the shard is where the undo would lead it */
    no_reverse = 'r',      /* to be undone: the move has ended without reverse replication */
    not_yet_reverse = 'y', /* ... the move is under way */
    not_moved = 'm',       /* to be completed */
    not_ended = 'e',       /* to be completed: the move is under way */
    opened = 'o',          /* to be aborted: clients may have written to the target */
    has_moved = 'h',       /* to be aborted: only another move leads the shard back */
    not_to_abort = 'a',    /* there is no move */
    not_to_resume = 's',   /* there is no move, or none that is held */
    under_way = 'w',       /* another verb is the next one */
    unknown = 'u',         /* the target may be open, and its record is lost */
    other_move = 'x',      /* the records are not of a move from this source to this target */
};

Refusal refusal_of(Phase phase, Verb verb);

} // namespace program
