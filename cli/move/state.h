/* The record of a move in its two databases: each has a schema snowflake_move_N with a row of
 * state. Only this file reads and writes it. */

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "move/session.h"

enum class Step {
    prepared, /* source: published */
    fenced,   /* source: behind the fence; the target may be open */
    moved,    /* source: the shard has left for good */
    copying,  /* target: rows come */
    ready,    /* target: indexes, foreign keys and triggers are there, too */
    open,     /* target: the shard is there */
};

/* As the table has it, and people read it. */
std::string text_of(Step step);

/* A row of the table state. */
struct MoveState {
    int shard;
    std::string schema;
    std::string id;    /* of the move, the same on both servers */
    std::string other; /* the other server */
    Step step;
    std::string marker; /* of the fence that stands on the source; empty until it was sent */
    bool is_reversible; /* source: when the shard has moved, it gets a way back */
    bool is_way_back;   /* the source is open, and the target follows it until --undo */

    /* The shard has moved; one side is open, and the other follows it. */
    bool is_standing_way_back() const;
    /* The row is on the source of the move. */
    bool is_of_source() const;
    /* Else a fence stands there, because the shard has left or has not come yet. */
    bool is_open() const;
};

/* All moves of a server whose state can be trusted: made by this role, or by a superuser. */
std::vector<MoveState> read_moves(Connection& connection);

/* This move; nothing if the server has no part in it, or if read_moves() does not trust the
 * schema. */
std::optional<MoveState> read_state(Connection& connection, const Move& move);
/* In the middle of a move. A Failure if it is gone, or not trusted any more. */
MoveState require_state(Connection& connection, const Move& move);

/* Makes the schema of the move and the row, in a transaction of the caller. The source has no ID
 * yet, and gets a new one. */
void make_state(Connection& connection, const Move& move, const std::string& id,
                const std::string& other, Step step);

/* In the transaction that does the step, if there is one. The marker is erased if none is given. */
void write_step(Connection& connection, const Move& move, Step step,
                const std::string& marker = "");

void make_reversible(Connection& source, const Move& move);

/* The move is the way back of one that is done, with its sides exchanged: prepared on the source,
 * ready on the target. Its undo has no way back of its own, unless --reversible is given again. */
void write_way_back(Connection& connection, const Move& move, Step step);
