/* The phase of a move by the records of its two servers, and the effect of each verb in it: one
 * table, from which the commands, their hints, list, run, clone and docs/move-failures.md are made.
 * No server is asked here. */

#pragma once

#include <array>
#include <optional>

#include "fleet/move_state.h"

/* Source and target are the servers of --from and --to. */
enum class Phase {
    none,           /* no record; the source has the shard */
    prepared,       /* publication and slot are on the source */
    copying,        /* the target gets the rows, or has them */
    held,           /* the target follows, all rows were compared, and --cutover is awaited */
    fenced,         /* nobody can write */
    opened,         /* the target is open; routers may still lead to the source */
    ended,          /* the same, and nothing is left but the target's record */
    moved,          /* the source keeps the old rows, closed */
    reverse,        /* the source follows the target */
    turning,        /* the same; the target's record does not say it yet: finish_reverse() */
    reverse_lost,   /* the same; the target's record is gone, as by --complete that was killed */
    undo_fenced,    /* the undo of this move is under way: nobody can write */
    undo_opened,    /* and has opened the source */
    undone,         /* the target keeps its rows, closed; the source had all of them */
    unequal,        /* the same, but that is not known */
    undone_reverse, /* the target follows the source */
    dropped,        /* no record; the target has the shard, and the source does not */
    source_lost,    /* copying, and the source's record is gone: a fault */
    target_lost,    /* fenced, and the target's record is gone: a fault */
    opposite,       /* a move from the target to the source, not at its end */
    faulty,         /* the records are not of one move: a fault */
};
constexpr std::size_t kPhases = static_cast<std::size_t>(Phase::faulty) + 1;

/* The phase by two records, never Phase::dropped: only the servers know which of them has the
 * shard. */
Phase phase_of(const std::optional<MoveState>& source, const std::optional<MoveState>& target);
/* The phase by the record of one server. The step tells whether it is the source. */
Phase phase_of(const MoveState& record);

enum class Motion {
    moving,  /* between the first step and the last */
    reverse, /* it has moved, and the other server follows, or this one */
    rest,    /* nothing moves; triggers and closed rows may wait for --complete */
};

/* move of one set; of a list, by --shards or --plan; and its options. */
enum class Verb { move, list, resume, abort, undo, complete, hold, cutover };
constexpr std::size_t kVerbs = static_cast<std::size_t>(Verb::cutover) + 1;

enum class Act {
    begins,
    goes_on, /* the steps that are left */
    leads,   /* the shard is there: only routers that are given are led there */
    aborts,
    discards, /* reverse replication stands on; a cutover that was prepared ends */
    drops,    /* the closed copy */
    nothing,
    refuses,
    objects, /* refuses; a list tells it before its first move, as an obstacle */
};

using Acts = std::array<Act, kVerbs>;
using NextOptions = std::array<const char*, 2>; /* nullptr: none */

/* The state of a shard, as list prints it. */
struct StateText {
    const char* open;   /* on a server where it is open */
    const char* closed; /* on one where it is not, if list shows no other */
};

struct PhaseRow {
    Phase phase;
    Motion motion;
    const char* records; /* see the table */
    const char* title;   /* in docs/move-failures.md; nullptr: it is not there */
    StateText listed;
    NextOptions next;  /* of the next commands */
    bool is_exchanged; /* their --from is the target, and their --to the source */
    Acts acts;
};

const PhaseRow& row_of(Phase phase);
Act act_of(Phase phase, Verb verb);
