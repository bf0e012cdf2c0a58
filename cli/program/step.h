/* All steps of a move, of its undo, and of their ends. A step is a transaction, or the statements
 * of one that others do not see. */

#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace program
{

enum class Step : std::uint8_t {
    none,
    /* Before the cutover. */
    repair,
    drop_old,
    keep_options,
    make_source,
    make_slot,
    make_tables,
    copy_rows,
    write_ready, /* only without its guard: the record and the subscription are apart */
    subscribe,
    tell_target,
    write_compared,
    back_publication,
    back_slot,
    make_triggers,
    /* The cutover. */
    begin_opening,
    pause,
    close_tables,
    note_writers,
    await_writers,
    read_sequences,
    keep_positions,
    end_sequences,
    send_marker,
    await_marker,
    open,
    write_opened, /* only without its guard */
    /* The fence is lowered. */
    erase_marker,
    release_sequences,
    lift,
    resume_clients,
    /* After the opening. */
    lead,
    drop_subscription,
    drop_slot,
    drop_publication,
    drop_left_back,
    subscribe_back,
    advance_origin,
    enable_back,
    write_follower, /* only without its guard */
    finish_reverse,
    discard_slot,
    discard_publication,
    write_moved,
    drop_target_record,
    /* --abort and --complete. */
    reset_record,
    remove_rehearsal,
    drop_copy,
    drop_copy_alone, /* only without its guard */
    drop_source_record,
    drop_follower,
    drop_closed,
    drop_closed_alone, /* only without its guard */
    /* Ends of the command. */
    done,
    failed,
};

/* Where it is done. The keeper is a second session on the source. */
enum class Side : std::uint8_t { source, target, keeper, routers, none };

struct StepRow {
    Step step;
    Side side;
    const char* text; /* for people */
};

/* In the order of Step. */
constexpr StepRow kSteps[] = {
    {Step::none, Side::none, ""},
    {Step::repair, Side::target, "the record becomes that of reverse replication"},
    {Step::drop_old, Side::target, "the rows of an earlier move are dropped"},
    {Step::keep_options, Side::source, "the options are stored"},
    {Step::make_source, Side::source, "record and publication"},
    {Step::make_slot, Side::source, "slot with a snapshot"},
    {Step::make_tables, Side::target, "tables, closed, and record"},
    {Step::copy_rows, Side::target, "rows of the snapshot"},
    {Step::write_ready, Side::target, "the record is ready"},
    {Step::subscribe, Side::target, "indexes and subscription; the record is ready"},
    {Step::tell_target, Side::target, "the record says that the set is held"},
    {Step::write_compared, Side::source, "the record says that the rows were compared"},
    {Step::back_publication, Side::target, "publication of reverse replication"},
    {Step::back_slot, Side::target, "slot of reverse replication"},
    {Step::make_triggers, Side::source, "triggers of the fence"},
    {Step::begin_opening, Side::target, "BEGIN of the opening"},
    {Step::pause, Side::routers, "the alias is paused"},
    {Step::close_tables, Side::source, "FENCE: the tables are closed"},
    {Step::note_writers, Side::source, "looks for transactions that write"},
    {Step::await_writers, Side::source, "they have ended"},
    {Step::read_sequences, Side::source, "locks and reads the sequence"},
    {Step::keep_positions, Side::keeper, "keeps its position"},
    {Step::end_sequences, Side::source, "sets the sequence to its end"},
    {Step::send_marker, Side::source, "MARKER, with the position"},
    {Step::await_marker, Side::target, "the marker has come"},
    {Step::open, Side::target, "COMMIT of the opening"},
    {Step::write_opened, Side::target, "the record says that it is open"},
    {Step::erase_marker, Side::source, "the marker is erased from the record"},
    {Step::release_sequences, Side::source, "the sequence gets its position again"},
    {Step::lift, Side::source, "THE FENCE IS LOWERED"},
    {Step::resume_clients, Side::routers, "the alias is resumed"},
    {Step::lead, Side::routers, "the alias leads to the target"},
    {Step::drop_subscription, Side::target, "the subscription is dropped"},
    {Step::drop_slot, Side::source, "the slot is dropped"},
    {Step::drop_publication, Side::source, "the publication is dropped"},
    {Step::drop_left_back, Side::source, "a subscription that was left is dropped"},
    {Step::subscribe_back, Side::source, "subscription of reverse replication"},
    {Step::advance_origin, Side::source, "it begins at the opening"},
    {Step::enable_back, Side::source, "it is enabled; the record says that the source follows"},
    {Step::write_follower, Side::source, "the record says that the source follows"},
    {Step::finish_reverse, Side::target, "the record becomes that of reverse replication"},
    {Step::discard_slot, Side::target, "the slot of reverse replication is dropped"},
    {Step::discard_publication, Side::target, "and its publication"},
    {Step::write_moved, Side::source, "the record says that the shard has moved"},
    {Step::drop_target_record, Side::target, "the record is dropped"},
    {Step::reset_record, Side::source, "the record becomes that of reverse replication"},
    {Step::remove_rehearsal, Side::source, "the slot of a rehearsal is dropped"},
    {Step::drop_copy, Side::target, "the copy is dropped, with its record"},
    {Step::drop_copy_alone, Side::target, "the copy is dropped"},
    {Step::drop_source_record, Side::source, "the record is dropped"},
    {Step::drop_follower, Side::source, "the subscription of reverse replication is dropped"},
    {Step::drop_closed, Side::source, "the closed rows are dropped"},
    {Step::drop_closed_alone, Side::source, "the closed rows are dropped"},
    {Step::done, Side::none, ""},
    {Step::failed, Side::none, ""},
};

constexpr const StepRow& row_of(Step step)
{
    return kSteps[static_cast<std::size_t>(step)];
}

constexpr bool are_in_order()
{
    for (std::size_t i = 0; i < std::size(kSteps); ++i)
        if (static_cast<std::size_t>(kSteps[i].step) != i)
            return false;
    return static_cast<std::size_t>(Step::failed) + 1 == std::size(kSteps);
}
static_assert(are_in_order());

} // namespace program
