/* The state of a move on both servers, as far as the next step follows from it. */

#pragma once

#include <optional>

#include "fleet/phase.h"

namespace program
{

/* The record of one server. */
struct Record {
    std::optional<::Step> step; /* nothing: there is no record */
    bool has_marker = false;    /* of the fence that stands */
    bool is_reversible = false;
    bool is_reverse = false;
    bool is_held = false;

    /* It is that of the server that the shards leave. */
    bool is_of_source() const
    {
        return step == ::Step::prepared || step == ::Step::fenced || step == ::Step::moved;
    }
    bool has_copy() const { return step && step != ::Step::copying; }
};

/* The source is the server that the shards leave now, also in an undo. Before each step there is a
 * new view. It asks a server only if the next step depends on the answer: a fence is lowered also
 * while the target does not answer. */
class View
{
public:
    View() = default;
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    virtual ~View() = default;

    virtual Phase phase() const = 0; /* by the two records */
    virtual Record source_record() const = 0;
    virtual Record target_record() const = 0;
    /* The slot from which the target follows, and that of reverse replication. It is there, and has
     * lost no WAL. */
    virtual bool has_slot() const = 0;
    virtual bool has_back_slot() const = 0;
    /* The source has a subscription of reverse replication. */
    virtual bool has_follower() const = 0;
};

} // namespace program
