#include "generator.h"

#include "durability.h"
#include "errors.h"
#include "rollback.h"
#include "settings.h"

namespace snowflake
{

/*
 * A sequence that this session has used. Entries live as long as the session, as those of core's
 * seqhashtab do: call sites point at them, and a dropped sequence leaves a hundred bytes.
 */
struct SequenceEntry {
    Oid relation;                 /* hash key */
    LocalTransactionId locked_in; /* transaction that took the lock */
    LocalTransactionId read_in;   /* transaction for which all below was read; invalid: stale */
    PageAddress address;
    Share share; /* of its millisecond, while core draws from it too */
    bool is_own_temp;
    bool holds_positions; /* bigint, INCREMENT 1 */
    Position max_value;
};

namespace generator
{
namespace
{

constexpr long kPaceMs = 1;

HTAB* entries = nullptr;
std::uint32_t pace_wait_event = 0;

SequenceEntry* find_entry(Oid sequence, HASHACTION action)
{
    bool found = false;
    auto* entry = static_cast<SequenceEntry*>(hash_search(entries, &sequence, action, &found));
    if (action == HASH_ENTER && !found) {
        entry->locked_in = InvalidLocalTransactionId;
        entry->read_in = InvalidLocalTransactionId;
        entry->address.recent_buffer = InvalidBuffer;
        entry->share = {};
    }
    return entry;
}

/*
 * Something about a relation has changed, in this session or another: TRUNCATE ... RESTART
 * IDENTITY, ALTER SEQUENCE and SET LOGGED give it a new file, a rollback the old one back, GRANT
 * changes who may use it. The entry is read anew, and privileges are checked again.
 */
void forget_entry(Datum, Oid relation)
{
    if (OidIsValid(relation)) {
        if (SequenceEntry* entry = find_entry(relation, HASH_FIND))
            entry->read_in = InvalidLocalTransactionId;
        return;
    }
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, entries);
    while (auto* entry = static_cast<SequenceEntry*>(hash_seq_search(&scan)))
        entry->read_in = InvalidLocalTransactionId;
}

/*
 * As lock_and_open_sequence() in commands/sequence.c: the lock belongs to the top transaction, so
 * that a ROLLBACK TO does not release it while the entry says that it is held.
 */
void lock_sequence(SequenceEntry* entry)
{
    const LocalTransactionId lxid = pg::my_lxid();
    if (entry->locked_in == lxid)
        return;
    const ResourceOwner current = CurrentResourceOwner;
    CurrentResourceOwner = TopTransactionResourceOwner;
    LockRelationOid(entry->relation, RowExclusiveLock);
    CurrentResourceOwner = current;
    entry->locked_in = lxid;
}

void read_definition(SequenceEntry* entry)
{
    const HeapTuple tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(entry->relation));
    if (!HeapTupleIsValid(tuple))
        elog(ERROR, "cache lookup failed for sequence %u", entry->relation);
    const auto* form = reinterpret_cast<Form_pg_sequence>(GETSTRUCT(tuple));
    entry->holds_positions = form->seqtypid == INT8OID && form->seqincrement == 1;
    entry->max_value = Position{form->seqmax};
    ReleaseSysCache(tuple);
}

/* Once per transaction and sequence, and after every invalidation. */
void refresh(SequenceEntry* entry)
{
    lock_sequence(entry);

    const Relation relation = try_relation_open(entry->relation, NoLock);
    if (relation == nullptr)
        errors::no_such_sequence(entry->relation);
    if (relation->rd_rel->relkind != RELKIND_SEQUENCE)
        errors::not_a_sequence(entry->relation);

    const Buffer recent = entry->address.recent_buffer;
    entry->address = {entry->relation, pg::file_locator(relation), recent,
                      RelationNeedsWAL(relation) != 0,
                      pg::first_file_change(relation) != InvalidSubTransactionId};
    entry->is_own_temp = relation->rd_islocaltemp;
    read_definition(entry);
    relation_close(relation, NoLock);

    /* No invalidation is lost by setting this last: our lock keeps the definition as we read it. */
    entry->read_in = pg::my_lxid();
}

/* Cheap, and a transaction can become read-only after its first ID: so it is asked at each call. */
void require_writable(const SequenceEntry* entry, const char* function)
{
    if (!entry->is_own_temp)
        PreventCommandIfReadOnly(function);
    PreventCommandIfParallelMode(function);
}

/*
 * The gate, in nextval()'s order: privilege, read-only, parallel mode. Any one of
 * `privileges` is enough, as for nextval().
 *
 * Nothing but a sequence is locked or remembered: the kind is looked up first, so that a wrong OID
 * leaves no entry behind, and a table that the caller has no business with no lock.
 */
SequenceEntry* open_sequence(CallSite& site, Oid sequence, AclMode privileges)
{
    SequenceEntry* entry = site.entry;
    if (entry != nullptr && entry->relation == sequence && entry->read_in == pg::my_lxid() &&
        site.role == GetUserId()) {
        require_writable(entry, site.function);
        return entry;
    }

    entry = find_entry(sequence, HASH_FIND);
    if (entry == nullptr) {
        const char kind = get_rel_relkind(sequence);
        if (kind == '\0')
            errors::no_such_sequence(sequence);
        if (kind != RELKIND_SEQUENCE)
            errors::not_a_sequence(sequence);
        entry = find_entry(sequence, HASH_ENTER);
    }
    if (entry->read_in != pg::my_lxid())
        refresh(entry);

    if (pg_class_aclcheck(sequence, GetUserId(), privileges) != ACLCHECK_OK)
        errors::permission_denied(sequence);
    require_writable(entry, site.function);
    if (!entry->holds_positions)
        errors::cannot_hold_positions(sequence);

    site.entry = entry;
    site.role = GetUserId();
    return entry;
}

Limits limits_of(const SequenceEntry* entry, Epoch epoch)
{
    return {settings::max_lead(), settings::max_drift(), time_at(Age{0}, epoch),
            time_at(Age{kMaxAge}, epoch), entry->max_value};
}

/*
 * Outside of every lock; a cancel, a timeout and a terminated postmaster end it. False where
 * something else woke us before the millisecond was over.
 */
bool wait_for_clock()
{
    /* Not in initialize(): a preloaded library comes before the shared memory that this is in. */
    if (pace_wait_event == 0)
        pace_wait_event = pg::new_wait_event("SnowflakePace");
    const int events = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, kPaceMs,
                                 pace_wait_event);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
    return (events & WL_TIMEOUT) != 0;
}

} // namespace

void initialize()
{
    HASHCTL control = {};
    control.keysize = sizeof(Oid);
    control.entrysize = sizeof(SequenceEntry);
    entries = hash_create("snowflake sequences", 16, &control, HASH_ELEM | HASH_BLOBS);
    CacheRegisterRelcacheCallback(forget_entry, Datum{0});
}

PositionBlock draw(CallSite& site, Oid sequence, Epoch epoch, std::int64_t wanted)
{
    SequenceEntry* entry = open_sequence(site, sequence, ACL_USAGE | ACL_UPDATE);
    const Limits limits = limits_of(entry, epoch);

    Position paced_at{};
    bool has_paced = false;
    for (;;) {
        PageResult result;
        draw_positions(entry->address, wanted, limits, has_paced ? &paced_at : nullptr,
                       entry->share, result);
        if (result.needs_xid) {
            GetTopTransactionId();
            continue;
        }
        switch (result.decision.verdict) {
        case Verdict::issue:
            if (entry->address.may_be_lost)
                rollback::note_at_stake(ms_of(last_position(result.decision)));
            make_durable(result.lease, ms_of(last_position(result.decision)) > result.now);
            return {result.decision.first, result.decision.count};
        case Verdict::pace:
            paced_at = result.stored.position;
            has_paced = wait_for_clock();
            break;
        default:
            errors::no_position(sequence, result, epoch);
        }
    }
}

void advance(CallSite& site, Oid sequence, Id past, Epoch epoch)
{
    SequenceEntry* entry = open_sequence(site, sequence, ACL_UPDATE);
    if (raw(age_of(past)) >= kMaxAge)
        errors::nothing_follows(past, epoch);

    const Position floor = past_id(past, epoch);
    const Limits limits = limits_of(entry, epoch);
    PageResult result;
    raise_position(entry->address, floor, limits, result);
    if (result.needs_xid) {
        GetTopTransactionId();
        raise_position(entry->address, floor, limits, result);
    }
    if (result.decision.verdict != Verdict::issue)
        errors::cannot_hold_positions(sequence);
    make_durable(result.lease, false);

    if (settings::max_drift() != settings::kDriftUnlimited &&
        result.decision.lead > settings::max_drift() && result.decision.lead > settings::max_lead())
        errors::warn_far_ahead(sequence, result.decision.lead, result.decision.first);
}

} // namespace generator
} // namespace snowflake
