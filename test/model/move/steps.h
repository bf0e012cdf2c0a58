/* The statements of the command that belong to each of its steps (cli/program/step.h), which
 * test/gaps/model.pl looks for. */
#pragma once

#include "state.h"

namespace model::moves
{

struct StepStatements {
    Step step;
    const char* statements; /* a regular expression */
};

constexpr StepStatements kStatements[] = {
    {Step::repair, "is_reverse = true"},
    {Step::drop_old, "DROP SCHEMA"},
    {Step::keep_options, "is_(reversible|held) = true|\\.poolers"},
    {Step::make_source,
     "CREATE (SCHEMA|TABLE|PUBLICATION)|INSERT INTO "
     "\\S+\\.(state|shards|poolers)|is_(reversible|held) = true|DROP TABLE IF EXISTS "
     "\\S+\\.poolers"},
    {Step::make_slot, "SET compared_at = NULL|pg_drop_replication_slot|CREATE_REPLICATION_SLOT"},
    {Step::make_tables,
     "claim_shard|session_|GRANT|REVOKE|CREATE (SCHEMA|TABLE)|INSERT INTO "
     "\\S+\\.(state|shards)|CREATE OR REPLACE TRIGGER|set_body|\\.mark\\(|DROP SCHEMA"},
    {Step::copy_rows, "copy_rows"},
    {Step::subscribe, "session_|ANALYZE|set_body|SET step = |CREATE SUBSCRIPTION"},
    {Step::tell_target, "SET compared_at = now"},
    {Step::write_compared, "SET compared_at = now"},
    {Step::back_publication, "CREATE PUBLICATION"},
    {Step::back_slot, "pg_(drop|create_logical)_replication_slot"},
    {Step::make_triggers, "CREATE OR REPLACE TRIGGER"},
    {Step::begin_opening, "open_marked"},
    {Step::pause, "PAUSE \"shard"},
    {Step::close_tables, "set_body|SET step = "},
    {Step::read_sequences, "lock_sequence"},
    {Step::keep_positions, "keep_positions"},
    {Step::end_sequences, "\\.end_sequences"},
    {Step::send_marker, "note_closing|INSERT INTO \\S+\\.marker SELECT|SET step = "},
    {Step::open, "noted SET at|setval|SET step = "},
    {Step::erase_marker, "SET step = "},
    {Step::release_sequences, "release_sequences"},
    {Step::lift, R"(\.lift\(\)|SET step = )"},
    {Step::resume_clients, "RESUME"},
    {Step::lead, "RELOAD|RESUME"},
    {Step::drop_subscription, "DROP SUBSCRIPTION|ALTER SUBSCRIPTION .* DISABLE"},
    {Step::drop_slot, "pg_terminate_backend|pg_drop_replication_slot"},
    {Step::drop_publication, "DROP PUBLICATION"},
    {Step::drop_left_back, "DROP SUBSCRIPTION|ALTER SUBSCRIPTION .* DISABLE"},
    {Step::subscribe_back, "CREATE SUBSCRIPTION|CREATE OR REPLACE TRIGGER"},
    {Step::advance_origin, "pg_replication_origin_advance"},
    {Step::enable_back, "is_reverse = true|ALTER SUBSCRIPTION .* ENABLE"},
    {Step::finish_reverse, "is_reverse = true"},
    {Step::discard_slot, "pg_terminate_backend|pg_drop_replication_slot"},
    {Step::discard_publication, "DROP PUBLICATION"},
    {Step::write_moved, "is_equal = "},
    {Step::drop_target_record, "DROP TRIGGER|DROP SCHEMA IF EXISTS snowflake_move"},
    {Step::reset_record, "is_reverse = true"},
    {Step::remove_rehearsal, "pg_terminate_backend|pg_drop_replication_slot"},
    {Step::drop_copy, "DROP SCHEMA"},
    {Step::drop_source_record, "DROP TRIGGER|DROP SCHEMA IF EXISTS snowflake_move"},
    {Step::drop_follower, "DROP SUBSCRIPTION|ALTER SUBSCRIPTION .* DISABLE"},
    {Step::drop_closed, "DROP SCHEMA"},
};

/* Empty: none that changes anything. */
constexpr const char* statements_of(Step step)
{
    for (const StepStatements& row : kStatements)
        if (row.step == step)
            return row.statements;
    return "";
}

} // namespace model::moves
