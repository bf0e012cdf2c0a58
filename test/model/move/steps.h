/*
 * The steps of the command. A step is a transaction, or the statements of one that others do not
 * see; its name is printed in traces. A step without an effect on the model is not here: patterns.h
 * has those.
 */
#pragma once

#include "state.h"

namespace model::moves
{

enum class Step : Byte {
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

enum class Side : Byte { source, target, keeper, routers, none };

struct StepText {
    Step step;
    Side side;
    const char* text;
    const char* statements; /* a regular expression; empty: none that changes anything */
};

/* In the order of Step. */
constexpr StepText kSteps[] = {
    {Step::none, Side::none, "", ""},
    {Step::repair, Side::target, "the record becomes that of reverse replication",
     "is_reverse = true"},
    {Step::drop_old, Side::target, "the rows of an earlier move are dropped", "DROP SCHEMA"},
    {Step::keep_options, Side::source, "the options are stored",
     "is_(reversible|held) = true|\\.poolers"},
    {Step::make_source, Side::source, "record and publication",
     "CREATE (SCHEMA|TABLE|PUBLICATION)|INSERT INTO "
     "\\S+\\.(state|shards|poolers)|is_(reversible|held) = true|DROP TABLE IF EXISTS "
     "\\S+\\.poolers"},
    {Step::make_slot, Side::source, "slot with a snapshot",
     "SET compared_at = NULL|pg_drop_replication_slot|CREATE_REPLICATION_SLOT"},
    {Step::make_tables, Side::target, "tables, closed, and record",
     "claim_shard|session_|GRANT|REVOKE|CREATE (SCHEMA|TABLE)|INSERT INTO "
     "\\S+\\.(state|shards)|CREATE OR REPLACE TRIGGER|set_body|\\.mark\\(|DROP SCHEMA"},
    {Step::copy_rows, Side::target, "rows of the snapshot", "copy_rows"},
    {Step::write_ready, Side::target, "the record is ready", ""},
    {Step::subscribe, Side::target, "indexes and subscription; the record is ready",
     "session_|ANALYZE|set_body|SET step = |CREATE SUBSCRIPTION"},
    {Step::tell_target, Side::target, "the record says that the set is held",
     "SET compared_at = now"},
    {Step::write_compared, Side::source, "the record says that the rows were compared",
     "SET compared_at = now"},
    {Step::back_publication, Side::target, "publication of reverse replication",
     "CREATE PUBLICATION"},
    {Step::back_slot, Side::target, "slot of reverse replication",
     "pg_(drop|create_logical)_replication_slot"},
    {Step::make_triggers, Side::source, "triggers of the fence", "CREATE OR REPLACE TRIGGER"},
    {Step::begin_opening, Side::target, "BEGIN of the opening", "open_marked"},
    {Step::pause, Side::routers, "the alias is paused", "PAUSE \"shard"},
    {Step::close_tables, Side::source, "FENCE: the tables are closed", "set_body|SET step = "},
    {Step::note_writers, Side::source, "looks for transactions that write", ""},
    {Step::await_writers, Side::source, "they have ended", ""},
    {Step::read_sequences, Side::source, "locks and reads the sequence", "lock_sequence"},
    {Step::keep_positions, Side::keeper, "keeps its position", "keep_positions"},
    {Step::end_sequences, Side::source, "sets the sequence to its end", "\\.end_sequences"},
    {Step::send_marker, Side::source, "MARKER, with the position",
     "note_closing|INSERT INTO \\S+\\.marker SELECT|SET step = "},
    {Step::await_marker, Side::target, "the marker has come", ""},
    {Step::open, Side::target, "COMMIT of the opening", "noted SET at|setval|SET step = "},
    {Step::write_opened, Side::target, "the record says that it is open", ""},
    {Step::erase_marker, Side::source, "the marker is erased from the record", "SET step = "},
    {Step::release_sequences, Side::source, "the sequence gets its position again",
     "release_sequences"},
    {Step::lift, Side::source, "THE FENCE IS LOWERED", R"(\.lift\(\)|SET step = )"},
    {Step::resume_clients, Side::routers, "the alias is resumed", "RESUME"},
    {Step::lead, Side::routers, "the alias leads to the target", "RELOAD|RESUME"},
    {Step::drop_subscription, Side::target, "the subscription is dropped",
     "DROP SUBSCRIPTION|ALTER SUBSCRIPTION .* DISABLE"},
    {Step::drop_slot, Side::source, "the slot is dropped",
     "pg_terminate_backend|pg_drop_replication_slot"},
    {Step::drop_publication, Side::source, "the publication is dropped", "DROP PUBLICATION"},
    {Step::drop_left_back, Side::source, "a subscription that was left is dropped",
     "DROP SUBSCRIPTION|ALTER SUBSCRIPTION .* DISABLE"},
    {Step::subscribe_back, Side::source, "subscription of reverse replication",
     "CREATE SUBSCRIPTION|CREATE OR REPLACE TRIGGER"},
    {Step::advance_origin, Side::source, "it begins at the opening",
     "pg_replication_origin_advance"},
    {Step::enable_back, Side::source, "it is enabled; the record says that the source follows",
     "is_reverse = true|ALTER SUBSCRIPTION .* ENABLE"},
    {Step::write_follower, Side::source, "the record says that the source follows", ""},
    {Step::finish_reverse, Side::target, "the record becomes that of reverse replication",
     "is_reverse = true"},
    {Step::discard_slot, Side::target, "the slot of reverse replication is dropped",
     "pg_terminate_backend|pg_drop_replication_slot"},
    {Step::discard_publication, Side::target, "and its publication", "DROP PUBLICATION"},
    {Step::write_moved, Side::source, "the record says that the shard has moved", "is_equal = "},
    {Step::drop_target_record, Side::target, "the record is dropped",
     "DROP TRIGGER|DROP SCHEMA IF EXISTS snowflake_move"},
    {Step::reset_record, Side::source, "the record becomes that of reverse replication",
     "is_reverse = true"},
    {Step::remove_rehearsal, Side::source, "the slot of a rehearsal is dropped; the model has none",
     "pg_terminate_backend|pg_drop_replication_slot"},
    {Step::drop_copy, Side::target, "the copy is dropped, with its record", "DROP SCHEMA"},
    {Step::drop_copy_alone, Side::target, "the copy is dropped", ""},
    {Step::drop_source_record, Side::source, "the record is dropped",
     "DROP TRIGGER|DROP SCHEMA IF EXISTS snowflake_move"},
    {Step::drop_follower, Side::source, "the subscription of reverse replication is dropped",
     "DROP SUBSCRIPTION|ALTER SUBSCRIPTION .* DISABLE"},
    {Step::drop_closed, Side::source, "the closed rows are dropped", "DROP SCHEMA"},
    {Step::drop_closed_alone, Side::source, "the closed rows are dropped", ""},
    {Step::done, Side::none, "", ""},
    {Step::failed, Side::none, "", ""},
};

constexpr const StepText& text_of(Step step)
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

} // namespace model::moves
