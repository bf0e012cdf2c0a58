/* The checks and orders of a split that protect a shard, each with a switch that removes it. */
#pragma once

namespace model::splits
{

struct Guards {
    bool locks_old = true; /* no command begins while a session of another one runs there */
    bool locks_standby = true;
    /* fence.cpp, split.sql */
    bool awaits_writers = true;
    bool ends_sequences = true;
    bool stays_with_slot = true;    /* those that stay are open only where the slot is */
    bool seals_anew = true;         /* each closing has a seal of its own */
    bool erases_seal = true;        /* before a sequence is released */
    bool closes_before_seal = true; /* the sequences are closed before the seal */
    /* standby.cpp, cutover.cpp */
    bool is_read_only = true;     /* the standby, for direct draws after the promotion */
    bool stays_read_only = true;  /* until the sequences of those that stay are ended */
    bool awaits_seal = true;      /* on the standby */
    bool compares_seal = true;    /* before the promoted standby is opened */
    bool ends_staying = true;     /* the sequences of those that stay, on the promoted standby */
    bool releases_leaving = true; /* the positions of those that leave are set there */
    bool notes_request = true;    /* the record says promoting before the request */
    bool renews_note = true;      /* --resume notes the start of the standby anew */
    bool commit_is_final = true;  /* after that note the fence is not lowered */
    bool sends_flushed = true;    /* the standby replays no WAL that a crash can lose */
    /* ends.cpp */
    bool looks_for_restart = true;  /* --abort after the note: the standby was started again */
    bool looks_for_recovery = true; /* ... and is in recovery */
    bool asks_standby = true;       /* ... and can be asked */
    bool keeps_stray_closed = true; /* --abort leaves a promoted standby read-only */
    bool lowers_first = true;       /* --abort lowers the fence before it drops the triggers */
    bool drops_rows_first = true;   /* --complete drops the closed rows before the fence */
    bool reopens_first = true;      /* --resume lowers a fence that was left */
};

} // namespace model::splits
