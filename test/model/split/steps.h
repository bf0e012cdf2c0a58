/* The steps of the command split, as steps.h of the moves. */
#pragma once

#include "state.h"

#include <iterator>

namespace model::splits
{

enum class Step : Byte {
    none,
    make_record,
    make_read_only,
    make_triggers,
    pause,
    close,
    note_writers,
    await_writers,
    read_sequences,
    keep_positions,
    end_sequences,
    seal,
    await_seal,
    read_start,
    note_request,
    reset_seal,
    release_sequences,
    reopen,
    resume_clients,
    request,
    await_promotion,
    end_staying,
    release_leaving,
    open_sides,
    make_writable,
    lead,
    stay,
    drop_slot,
    make_standby_writable,
    drop_triggers,
    drop_abort_slot,
    drop_record,
    drop_left_rows,
    drop_old_record,
    drop_stayed_rows,
    drop_new_record,
    done,
    failed,
};

enum class Side : Byte { old, standby, routers };

struct StepText {
    Step step;
    Side side;
    const char* text;
    const char* statements; /* a regular expression; empty: none that changes anything */
};

constexpr StepText kSteps[] = {
    {Step::none, Side::routers, "", ""},
    {Step::make_record, Side::old, "record",
     "CREATE (SCHEMA|TABLE)|INSERT INTO snowflake_split|\\.poolers"},
    {Step::make_read_only, Side::standby, "default_transaction_read_only = on",
     "ALTER SYSTEM SET|pg_reload_conf"},
    {Step::make_triggers, Side::old, "triggers of the fence", "CREATE OR REPLACE TRIGGER"},
    {Step::pause, Side::routers, "the alias is paused", "PAUSE"},
    {Step::close, Side::old, "FENCE: the shard that leaves is closed; slot", R"(\.close\(\))"},
    {Step::note_writers, Side::old, "looks for transactions that write", ""},
    {Step::await_writers, Side::old, "they have ended", ""},
    {Step::read_sequences, Side::old, "locks and reads the sequence", "lock_sequence"},
    {Step::keep_positions, Side::old, "keeps its position", "keep_positions"},
    {Step::end_sequences, Side::old, "sets the sequence to its end", "\\.end_sequences"},
    {Step::seal, Side::old, "SEAL", "step = 'sealed'|note_closing"},
    {Step::await_seal, Side::standby, "has replayed the seal", ""},
    {Step::read_start, Side::standby, "the time of its start is read", ""},
    {Step::note_request, Side::old, "NOTE that the promotion is requested", "step = 'promoting'"},
    {Step::reset_seal, Side::old, "the seal is erased", "step = 'closed'"},
    {Step::release_sequences, Side::old, "the sequence gets its position again",
     "release_sequences"},
    {Step::reopen, Side::old, "THE FENCE IS LOWERED", R"(\.reopen\(\))"},
    {Step::resume_clients, Side::routers, "the alias is resumed", "RESUME"},
    {Step::request, Side::standby, "the promotion is requested", "pg_promote"},
    {Step::await_promotion, Side::standby, "is promoted", ""},
    {Step::end_staying, Side::standby, "the sequence of the shard that stays is set to its end",
     "\\.end_sequences"},
    {Step::release_leaving, Side::standby, "that of the shard that leaves gets its position",
     "release_sequences"},
    {Step::open_sides, Side::standby, "THE SHARD THAT LEAVES IS OPEN", "open_sides"},
    {Step::make_writable, Side::standby, "default_transaction_read_only = off",
     "ALTER SYSTEM RESET|pg_reload_conf"},
    {Step::lead, Side::routers, "the alias leads to the new server", "RELOAD|RESUME"},
    {Step::stay, Side::old, "the record says split; the shard that stays needs no slot",
     R"(\.stay\(\))"},
    {Step::drop_slot, Side::old, "the slot is dropped", "pg_drop_replication_slot"},
    {Step::make_standby_writable, Side::standby, "default_transaction_read_only = off",
     "ALTER SYSTEM RESET|pg_reload_conf"},
    {Step::drop_triggers, Side::old, "the triggers are dropped", "DROP TRIGGER"},
    {Step::drop_abort_slot, Side::old, "the slot is dropped", "pg_drop_replication_slot"},
    {Step::drop_record, Side::old, "the record is dropped",
     "DROP SCHEMA IF EXISTS snowflake_split"},
    {Step::drop_left_rows, Side::old, "the closed rows are dropped", "DROP SCHEMA IF EXISTS insta"},
    {Step::drop_old_record, Side::old, "triggers and record are dropped",
     "DROP TRIGGER|pg_drop_replication_slot|DROP SCHEMA IF EXISTS snowflake_split"},
    {Step::drop_stayed_rows, Side::standby, "the closed rows are dropped",
     "DROP SCHEMA IF EXISTS insta"},
    {Step::drop_new_record, Side::standby, "triggers and record are dropped",
     "DROP TRIGGER|pg_drop_replication_slot|DROP SCHEMA IF EXISTS snowflake_split"},
    {Step::done, Side::routers, "", ""},
    {Step::failed, Side::routers, "", ""},
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

} // namespace model::splits
