/* Draws and advances: see generator.h. */
#include "sequence/generator.h"

#include "errors.h"
#include "sequence/durability.h"
#include "sequence/page.h"
#include "settings.h"

namespace snowflake::generator
{
namespace
{

/* A wait for the clock; twice as long each time that other sessions were faster meanwhile. */
constexpr long kPaceMs = 1;
constexpr long kMaxPaceMs = 16;

std::uint32_t pace_wait_event = 0;

Limits limits_of(const SequenceEntry* entry, Epoch epoch)
{
    return {settings::max_lead, settings::max_drift, epoch, entry->max_value};
}

/*
 * Waits outside of every lock. A cancel, a timeout and the postmaster's death end the wait. False:
 * something else set the latch before the time was over.
 */
bool wait_for_clock(long milliseconds)
{
    /* Not in _PG_init(): a preloaded library runs that before shared memory exists. */
    if (pace_wait_event == 0)
        pace_wait_event = pg::new_wait_event("SnowflakePace");
    const int events = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                                 milliseconds, pace_wait_event);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
    return (events & WL_TIMEOUT) != 0;
}

/* Statements that make the sequence start anew, behind the IDs that are stored. */
const char* start_anew(Oid sequence, Epoch epoch)
{
    const char* name = errors::name_of(sequence);
    const char* epoch_argument =
        epoch == kInstagramEpoch ? "" : psprintf(", %lld", errors::number(raw(epoch)));
    return psprintf("BEGIN; ALTER SEQUENCE %s RESTART; SELECT snowflake_advance(%s, max(id)%s) "
                    "FROM each of its tables; COMMIT;",
                    name, quote_literal_cstr(name), epoch_argument);
}

[[noreturn]] void clock_behind(Oid sequence, UnixMs now, std::int64_t lead, Epoch epoch)
{
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("clock is %lld ms behind sequence %s", errors::number(lead),
                           errors::name_of(sequence)),
                    errdetail("The clock says %s, the sequence has reached %s; snowflake.max_drift "
                              "is %lld ms.",
                              errors::date_of(now), errors::date_of(UnixMs{raw(now) + lead}),
                              errors::number(settings::max_drift)),
                    errhint("Set the clock right. If it is right, the sequence was set to a wrong "
                            "value: %s To go on from where the sequence is: SET "
                            "snowflake.max_drift = -1.",
                            start_anew(sequence, epoch))));
}

/* For every verdict but issue and pace. */
[[noreturn]] void refuse(Oid sequence, const Draw& draw, UnixMs now, Epoch epoch)
{
    const UnixMs time{raw(now) + draw.lead};
    switch (draw.verdict) {
    case Verdict::clock_behind:
        clock_behind(sequence, now, draw.lead, epoch);
    case Verdict::before_epoch:
        errors::before_epoch(time, epoch);
    case Verdict::past_last_ms:
        errors::past_last_ms(time, epoch, last_ms_of(epoch));
    default:
        session::cannot_hold_positions(sequence);
    }
}

[[noreturn]] void nothing_follows(Id past, Epoch epoch)
{
    ereport(ERROR,
            (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
             errmsg("no ID can follow %lld", errors::number(raw(past))),
             errdetail("With the epoch_ms %lld it is of %s, and the last ID is of %s.",
                       errors::number(raw(epoch)), errors::date_of(time_at(age_of(past), epoch)),
                       errors::date_of(last_ms_of(epoch))),
             errhint("Give the largest ID that was made with this epoch.")));
}

void warn_if_far_ahead(Oid sequence, const AdvanceResult& result, Epoch epoch)
{
    const UnixMs reached = ms_of(result.advance.position);
    const std::int64_t lead = raw(reached) - raw(result.now);
    if (settings::max_drift == settings::kDriftUnlimited || lead <= settings::max_drift ||
        lead <= settings::max_lead)
        return;
    session::refuse_if_ended(sequence, result.value);
    ereport(WARNING,
            (errmsg("sequence %s is %lld ms ahead of the clock now", errors::name_of(sequence),
                    errors::number(lead)),
             errdetail("It makes no IDs until the clock is within snowflake.max_drift (%lld ms) of "
                       "%s.",
                       errors::number(settings::max_drift), errors::date_of(reached)),
             errhint("If the ID given was none of this scheme and epoch, undo it: %s",
                     start_anew(sequence, epoch))));
}

} // namespace

PositionBlock draw(CallSite& site, Oid sequence, Epoch epoch, std::int64_t wanted)
{
    SequenceEntry* entry = session::open_sequence(site, sequence, ACL_USAGE | ACL_UPDATE);
    const Limits limits = limits_of(entry, epoch);

    PageVersion waited_at{};
    bool has_waited = false;
    long pace = kPaceMs;
    for (;;) {
        const DrawResult result =
            draw_positions(entry->address, wanted, limits, has_waited ? &waited_at : nullptr);
        if (result.needs_xid) {
            GetTopTransactionId();
            continue;
        }
        switch (result.draw.verdict) {
        case Verdict::issue:
            make_durable(result.record, ms_of(last_position(result.draw)) > result.now);
            return {result.draw.first, result.draw.count};
        case Verdict::pace:
            waited_at = result.version;
            has_waited = wait_for_clock(pace);
            pace = pace < kMaxPaceMs ? pace * 2 : pace;
            break;
        default:
            session::refuse_if_ended(sequence, result.version.value);
            refuse(sequence, result.draw, result.now, epoch);
        }
    }
}

void advance(CallSite& site, Oid sequence, Id past, Epoch epoch)
{
    SequenceEntry* entry = session::open_sequence(site, sequence, ACL_UPDATE);
    const Limits limits = limits_of(entry, epoch);

    AdvanceResult result = advance_position(entry->address, past, limits);
    if (result.needs_xid) {
        GetTopTransactionId();
        result = advance_position(entry->address, past, limits);
    }
    switch (result.advance.verdict) {
    case AdvanceVerdict::raise:
    case AdvanceVerdict::is_past:
        break;
    case AdvanceVerdict::past_last_ms:
        nothing_follows(past, epoch);
    case AdvanceVerdict::past_max_value:
        session::cannot_hold_positions(sequence);
    }
    make_durable(result.record, false);
    warn_if_far_ahead(sequence, result, epoch);
}

} // namespace snowflake::generator
