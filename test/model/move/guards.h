/* The checks and orders of the command that protect a shard, each with a switch that removes it. */
#pragma once

namespace model::moves
{

struct Guards {
    /* session.cpp */
    bool locks_source = true; /* no command begins while a session of another one runs there */
    bool locks_target = true;
    bool locks_keeper = true; /* the same for the session that keeps positions */
    /* copy.cpp */
    bool snapshot_is_of_slot = true;   /* rows are copied as of the beginning of the slot */
    bool copy_is_closed = true;        /* the tables and their fence come in one transaction */
    bool drops_partial_copy = true;    /* a copy that was interrupted begins anew */
    bool keeps_slot = true;            /* a copy without its slot is not resumed with another one */
    bool subscribes_with_ready = true; /* the record says ready when the subscription is there */
    bool tells_target_first = true;    /* a set is held when the source's record says so */
    /* fence.cpp, sequences.cpp */
    bool makes_triggers = true;        /* before the fence */
    bool looks_at_triggers = true;     /* and whether they are there, after it */
    bool fences_with_record = true;    /* the closing and its record are one transaction */
    bool awaits_writers = true;        /* those that have begun before the fence */
    bool awaits_writers_again = true;  /* also where a killed command has closed the tables */
    bool ends_sequences = true;        /* direct draws end, too */
    bool ends_after_writers = true;    /* the sequences are closed after the tables */
    bool locks_sequence = true;        /* from reading a position to the end */
    bool keeps_before_end = true;      /* the position is committed before setval() */
    bool keeps_first_position = true;  /* a sequence at its end has kept its position */
    bool marker_comes_last = true;     /* after the positions are read */
    bool sends_flushed = true;         /* the walsender sends no WAL that a crash can lose */
    bool erases_marker = true;         /* before a sequence is released */
    bool releases_first = true;        /* ... and before the tables are opened */
    bool releases_closed_alone = true; /* a sequence that was drawn from since is left alone */
    /* cutover.cpp */
    bool awaits_marker = true;
    bool marker_is_of_fence = true; /* not of an earlier one */
    bool sets_positions = true;     /* of the marker, in the opening */
    bool opens_with_record = true;  /* the opening and its record are one transaction */
    bool commit_is_final = true;    /* once it is sent, the fence stays */
    bool reads_target = true;       /* the fence is lifted if the target is not open */
    /* forward.cpp, reverse.cpp, ends.cpp */
    bool flushes = true;                  /* commits of the command are synchronous */
    bool slot_before_fence = true;        /* of reverse replication */
    bool begins_at_opening = true;        /* reverse replication, not at its slot */
    bool drops_subscription_first = true; /* before reverse replication begins */
    bool enables_with_record = true;      /* the source follows when its record says so */
    bool repairs_target = true;           /* a record that is one step behind */
    bool repairs_both = true;             /* ... also if the servers are exchanged, as by --undo */
    bool source_ends_first = true;        /* at the end of a move */
    bool source_goes_last = true;         /* in --abort and in --complete */
    bool copy_goes_with_record = true;    /* in --abort */
    bool triggers_go_with_rows = true;    /* in --complete */
    bool resumes_at_end = true;           /* --complete resumes an alias that an undo has paused */
    bool drops_undos_slot = true;         /* --complete drops that of an undo that was killed */
    bool discards_reverse = true;         /* in --abort */
};

} // namespace model::moves
