/*
 * Reads the shard, the epoch and the sequence out of the body of an Instagram-style ID function in
 * PL/pgSQL. Pure: the text in, numbers out.
 *
 * A wrong reading would make wrong IDs, so this is no search for numbers near their usual names.
 * Every statement is understood or the body is refused: declarations, assignments, SELECT INTO and
 * a final RETURN; no branch, no loop, no nested block, no call but for the clock, nextval() and
 * arithmetic. What is returned must follow from them to be (legacy_value.h)
 *
 *     (ms of the clock - epoch) << 23 | shard << 10 | nextval(sequence) % 1024
 *
 * What stands outside the body is the caller's to check: in pg_proc, that the function is PL/pgSQL,
 * takes no argument, returns one bigint and has no search_path of its own in which another floor()
 * hides pg_catalog's; that the sequence exists and is above zero, where nextval % 1024 is the
 * counter; and that shard and epoch make valid IDs now. An epoch written in seconds, say, is read
 * as what the body makes of it, milliseconds in January 1970, and such IDs have run out of bits.
 */
#pragma once

#include <string_view>

#include "rule/layout.h"

namespace snowflake::legacy
{

/* Of a body that was read: epoch, shard and sequence. Of one that was refused: line and why. */
struct Reading {
    bool ok;
    Epoch epoch;               /* any bigint */
    std::int64_t shard;        /* any number: the caller refuses what is not 0..8191 */
    std::string_view sequence; /* in the body: nextval()'s literal, as input of regclass */
    int line;                  /* as PL/pgSQL counts them: 1 is the rest of the line of the $$ */
    const char* problem;       /* a phrase to go after the line */
    std::string_view near;     /* the word or symbol that it is about; empty at the end */
};

/*
 * `body` is pg_proc.prosrc; `out_parameter` the name of the function's only OUT parameter, of type
 * bigint, or empty where it RETURNS bigint.
 */
Reading read(std::string_view body, std::string_view out_parameter);

} // namespace snowflake::legacy
