/* The orders of the steps that protect a shard, each with a switch that takes it out. The command
 * takes out none; test/model/move takes out each, and finds the promise that is broken then. */

#pragma once

namespace program
{

struct Guards {
    /* Before the cutover. */
    bool keeps_slot = true;            /* a copy without its slot is not resumed with another one */
    bool subscribes_with_ready = true; /* the record says ready when the subscription is there */
    bool tells_target_first = true;    /* a set is held when the source's record says so */
    bool slot_before_fence = true;     /* of reverse replication */
    /* The cutover. */
    bool makes_triggers = true;       /* before the fence */
    bool awaits_writers = true;       /* those that have begun before the fence */
    bool awaits_writers_again = true; /* also where a killed command has closed the tables */
    bool ends_after_writers = true;   /* the sequences are closed after the tables */
    bool keeps_before_end = true;     /* the position is committed before setval() */
    bool marker_comes_last = true;    /* after the positions are read */
    bool awaits_marker = true;        /* before the target opens */
    bool opens_with_record = true;    /* the opening and its record are one transaction */
    bool erases_marker = true;        /* before a sequence is released */
    bool releases_first = true;       /* ... and before the tables are opened */
    /* The ends. */
    bool drops_subscription_first = true; /* before reverse replication begins */
    bool begins_at_opening = true;        /* reverse replication, not at its slot */
    bool enables_with_record = true;      /* the source follows when its record says so */
    bool source_ends_first = true;        /* at the end of a move */
    bool source_goes_last = true;         /* in --abort and in --complete */
    bool copy_goes_with_record = true;    /* in --abort */
    bool triggers_go_with_rows = true;    /* in --complete */
    bool resumes_at_end = true;           /* --complete resumes an alias that an undo has paused */
    bool drops_undos_slot = true;         /* --complete drops that of an undo that was killed */
    bool discards_reverse = true;         /* in --abort */
};

} // namespace program
