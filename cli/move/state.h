/* Writes the record of a move in its two databases, which fleet/records.h reads. A Standing is the
 * state of the move by both records. */

#pragma once

#include <optional>
#include <string>

#include "fleet/records.h"
#include "move/session.h"

/* This move; nothing if the server has no part in it, or if read_moves() does not trust the
 * schema. A Failure if the record has other shards. */
std::optional<MoveState> read_state(Connection& connection, const Move& move);
/* In the middle of a move. A Failure if it is gone, or not trusted any more. */
MoveState require_state(Connection& connection, const Move& move);

/* Makes the schema of the move and its tables, in a transaction of the caller. The source has no ID
 * yet, and gets a new one. */
void make_state(Connection& connection, const Move& move, const std::string& id,
                const Address& other, Step step);

/* Locks the numbers and the names of the schemas until the transaction ends; an error if another
 * schema has one of the numbers. */
void claim_shards(Connection& target, const Move& move);

/* In the transaction that does the step, if there is one. The marker is erased if none is given. */
void write_step(Connection& connection, const Move& move, Step step,
                const std::string& marker = "");

/* Keeps on the source where in the target's WAL the changes of clients begin, and says it. Empty if
 * it is not known. */
std::string write_positions(Servers& servers, const Move& move);

void make_reversible(Connection& source, const Move& move);

/* The end of a move. is_equal: its rows were compared, and no difference was found. Only then the
 * closed copy of an undo may be dropped for a new move. */
void write_moved(Connection& source, const Move& move, bool is_equal);

/* The move is reverse replication of one that is done, with its sides exchanged: prepared on the
 * source, ready on the target. Its undo has no reverse replication of its own, unless --reversible
 * is given again. */
void write_reverse(Connection& connection, const Move& move, Step step);

/* The end of a move, for people: "moved", "moved with reverse replication". */
inline const std::string kMoved = "moved";
inline const std::string kWithReverse = " with reverse replication";

/* The state of a move, derived from the rows on both servers. They are read once, when the object
 * is made: after a step a new object is needed. */
class Standing
{
public:
    Standing(Servers& servers, const Move& move)
        : Standing(read_state(servers.source, move), read_state(servers.target, move))
    {
    }
    Standing(std::optional<MoveState> of_source, std::optional<MoveState> of_target)
        : source(std::move(of_source)), target(std::move(of_target))
    {
    }

    const std::optional<MoveState> source;
    const std::optional<MoveState> target;

    /* A move of the shard has begun, in this direction or the other, and is not at its end. */
    bool has_begun() const;
    /* The target is open, and the move is not at its end. */
    bool is_cut_over() const { return is_at(target, Step::open); }
    /* At its end: the shard is on the target, and no rows follow it. */
    bool has_moved() const { return is_at(source, Step::moved) && !target; }
    /* At its end: the shard is on the target, and the source follows it. */
    bool has_reverse() const { return is_followed() && is_at(target, Step::prepared); }
    /* The source is the side that follows, also if the target's part is lost. */
    bool is_followed() const { return is_at(source, Step::ready) && source->is_way_back; }
    /* The source is open, and the target follows it: the move would be the cutover of an undo. */
    bool leads_back() const;
    /* A move from the target to the source is at its end, and has left its closed copy on the
     * target. */
    bool has_come_back() const { return !source && is_at(target, Step::moved); }
    /* That move was an undo, whose rows were compared: the source had all of the copy's. */
    bool is_undone() const { return has_come_back() && target->is_way_back; }
    /* The record that says most. */
    bool is_told_by_source() const;
    /* The move is such an undo, or would be: the shard has come from the target, which follows. At
     * the step moved the source says it only if the rows were compared. */
    bool is_undo() const
    {
        return source && source->is_of_source() &&
               (source->is_way_back || (target && target->is_way_back));
    }

    /* An error if the states are not of one move from this source to this target. A fence must not
     * be lifted by a command that asks the wrong target, and the rows of a source must not be
     * dropped as those of a target. */
    void require_same_servers(Servers& servers, const Move& move) const;

private:
    static bool is_at(const std::optional<MoveState>& state, Step step)
    {
        return state && state->step == step;
    }
};
