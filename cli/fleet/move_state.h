/* The record of a move: the schema snowflake_move_N on each of its two servers. records.h reads
 * it. */

#pragma once

#include <string>

#include "base/address.h"
#include "base/shards.h"

enum class Step {
    prepared, /* source: published */
    fenced,   /* source: closed by the fence; the target may be open */
    moved,    /* source: the shard has left for good */
    copying,  /* target: rows come */
    ready,    /* target: indexes, foreign keys and triggers are there, too */
    open,     /* target: the shard is there */
};

/* The tables of the record. */
struct MoveState {
    std::string name;
    Shards shards;  /* the set, by number; without the quoted names */
    std::string id; /* of the move, the same on both servers */
    Address other;  /* the other server */
    Step step;
    std::string marker; /* of the fence that stands on the source; empty until it was sent */
    bool is_reversible; /* source: when the shard has moved, it gets reverse replication */
    bool is_reverse;    /* of reverse replication: the move that made it had the sides exchanged */
    bool is_equal;      /* moved: the rows were compared, and no difference was found */
    bool is_held;       /* --hold was given, so only --cutover goes beyond the comparison */
    std::string compared_at; /* the rows of all tables were compared; else empty */

    /* The row is on the source of the move. */
    bool is_of_source() const
    {
        return step == Step::prepared || step == Step::fenced || step == Step::moved;
    }
    /* The set follows, and waits for --cutover. */
    bool waits() const
    {
        return (step == Step::prepared || step == Step::ready) && is_held && !compared_at.empty();
    }
    /* If it is not open, a fence stands there, because the shard has left or has not come yet. */
    bool is_open() const { return step == Step::prepared || step == Step::open; }
};
