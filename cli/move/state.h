/* Writes the record of a move in its two databases, which fleet/records.h reads. */

#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fleet/phase.h"
#include "fleet/records.h"
#include "move/session.h"
#include "program/view.h"

/* This move; nothing if the server has no part in it, or if read_moves() does not trust the
 * schema. A Failure if the record has other shards. */
std::optional<MoveState> read_state(Connection& connection, const Move& move);
/* The record in the middle of a move. A Failure if it is gone, or not trusted any more. */
MoveState require_state(Connection& connection, const Move& move);

/* Makes the schema of the move and its tables, in a transaction of the caller. The source has no ID
 * yet, and gets a new one. */
void make_state(Connection& connection, const Move& move, const std::string& id,
                const Address& other, Step step);

/* Runs in the transaction that does the step, if there is one. The marker is erased if none is
 * given. */
void write_step(Connection& connection, const Move& move, Step step,
                const std::string& marker = "");

/* Keeps on the source where in the target's WAL the changes of clients begin, and says it. Empty if
 * it is not known. */
std::string write_positions(Servers& servers, const Move& move);

/* How long ago the fence was raised that stands. */
Clock::duration time_since_closing(Connection& source, const Move& move);

void make_reversible(Connection& source, const Move& move);
void make_held(Connection& source, const Move& move);

/* The comparison of the rows before the cutover: the tables that it has compared, so that another
 * command continues it; its end, on each side; and a new copy, to be compared anew. */
std::set<std::string> read_compared(Connection& source, const Move& move);
void add_compared(Connection& source, const Move& move, const std::vector<std::string>& tables);
void write_compared(Connection& connection, const Move& move, bool is_held);
void forget_compared(Connection& source, const Move& move);
/* The tables alone: all are compared anew, and a set that is held remains so. */
void forget_compared_tables(Connection& source, const Move& move);

/* The end of a move. is_equal: its rows were compared, and no difference was found. Only then the
 * closed copy of an undo may be dropped for a new move. */
void write_moved(Connection& source, const Move& move, bool is_equal);

/* The record of reverse replication of a move that is done: a move with its sides exchanged,
 * prepared on the source, ready on the target. The undo has no reverse replication of its own,
 * unless --reversible is given again. */
void write_reverse(Connection& connection, const Move& move, Step step);

/* The end of a move, for people: "moved", "moved with reverse replication". */
inline const std::string kMoved = "moved";
inline const std::string kHeld = "held";
inline const std::string kWithReverse = " with reverse replication";

/* A move on both servers. Each record is read once, when it is asked for: after a step a new object
 * is needed. */
class Standing : public program::View
{
public:
    Standing(Servers& servers, const Move& move) : servers_(servers), move_(move) {}

    const std::optional<MoveState>& source() const;
    const std::optional<MoveState>& target() const;
    /* In the middle of a move. A Failure if it is gone, or not trusted any more. */
    const MoveState& required_source() const;
    const MoveState& required_target() const;

    Phase phase() const override;
    program::Record source_record() const override;
    program::Record target_record() const override;
    bool has_slot() const override;
    bool has_back_slot() const override;
    bool has_follower() const override;

    /* The target is open, and the move is not at its end. */
    bool is_cut_over() const { return phase() == Phase::opened || phase() == Phase::ended; }
    /* The move is an undo, or would be: the shard has come from the target, which follows. */
    bool is_undo() const { return source() && source()->is_of_source() && source()->is_reverse; }

private:
    Servers& servers_;
    const Move& move_;
    /* Nothing: it was not read yet. */
    mutable std::optional<std::optional<MoveState>> source_;
    mutable std::optional<std::optional<MoveState>> target_;
};
