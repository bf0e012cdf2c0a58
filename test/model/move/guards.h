/* The checks of the command that protect a shard, each with a switch that removes it. Those of the
 * order of the steps are in cli/program/guards.h. */
#pragma once

#include "program/guards.h"

namespace model::moves
{

struct Guards : program::Guards {
    /* session.cpp */
    bool locks_source = true; /* no command begins while a session of another one runs there */
    bool locks_target = true;
    bool locks_keeper = true; /* the same for the session that keeps positions */
    /* copy.cpp */
    bool snapshot_is_of_slot = true; /* rows are copied as of the beginning of the slot */
    bool copy_is_closed = true;      /* the tables and their fence come in one transaction */
    bool drops_partial_copy = true;  /* a copy that was interrupted begins anew */
    /* fence.cpp, sequences.cpp */
    bool looks_at_triggers = true;     /* they are there when the fence stands */
    bool fences_with_record = true;    /* the closing and its record are one transaction */
    bool ends_sequences = true;        /* direct draws end, too */
    bool locks_sequence = true;        /* from reading a position to the end */
    bool keeps_first_position = true;  /* a sequence at its end has kept its position */
    bool sends_flushed = true;         /* the walsender sends no WAL that a crash can lose */
    bool releases_closed_alone = true; /* a sequence that was drawn from since is left alone */
    /* cutover.cpp */
    bool marker_is_of_fence = true; /* not of an earlier one */
    bool sets_positions = true;     /* of the marker, in the opening */
    bool commit_is_final = true;    /* once it is sent, the fence stays */
    bool reads_target = true;       /* the fence is lifted if the target is not open */
    /* forward.cpp, reverse.cpp, ends.cpp */
    bool flushes = true;        /* commits of the command are synchronous */
    bool repairs_target = true; /* a record that is one step behind */
    bool repairs_both = true;   /* ... also if the servers are exchanged, as by --undo */
};

} // namespace model::moves
