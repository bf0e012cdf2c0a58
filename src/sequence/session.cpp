/* The session's table of sequences: see session.h. After init_sequence() in sequence.c. */
#include "sequence/session.h"

#include "errors.h"
#include "rule/bounds.h"

namespace snowflake::session
{
namespace
{

HTAB* entries = nullptr;

SequenceEntry* find_entry(Oid sequence, HASHACTION action)
{
    bool found = false;
    auto* entry = static_cast<SequenceEntry*>(hash_search(entries, &sequence, action, &found));
    if (action == HASH_ENTER && !found) {
        entry->locked_in = InvalidLocalTransactionId;
        entry->read_in = InvalidLocalTransactionId;
        entry->address.buffer = InvalidBuffer;
    }
    return entry;
}

/*
 * Relcache callback. TRUNCATE ... RESTART IDENTITY, ALTER SEQUENCE and SET LOGGED give a sequence a
 * new file, a rollback gives it the old one back, and GRANT changes its privileges. The next call
 * reads the entry again and checks the privileges again.
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

/* A hint to widen its bounds would lead to IDs that the shard's new server makes, too. */
[[noreturn]] void sequence_is_closed(Oid sequence, const char* detail)
{
    ereport(ERROR,
            (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
             errmsg("sequence %s is closed", errors::name_of(sequence)),
             errdetail_internal("%s", detail),
             errhint("Draw on the server that has the shard: snowflake-shard map shows it.")));
}

/* The schema in which a move or a split has its record; see snowflake_internal.has_record(). */
bool has_record()
{
    const Relation schemas = table_open(NamespaceRelationId, AccessShareLock);
    const SysScanDesc scan = systable_beginscan(schemas, InvalidOid, false, nullptr, 0, nullptr);
    bool found = false;
    for (HeapTuple tuple = nullptr; !found && (tuple = systable_getnext(scan)) != nullptr;) {
        const char* name = NameStr(reinterpret_cast<Form_pg_namespace>(GETSTRUCT(tuple))->nspname);
        found = strcmp(name, "snowflake_split") == 0 || strncmp(name, "snowflake_move_", 15) == 0;
    }
    systable_endscan(scan);
    table_close(schemas, AccessShareLock);
    return found;
}

/* A hint to widen its bounds would lead to IDs that other nodes make, too. */
[[noreturn]] void sequence_is_of_citus(Oid sequence, const FormData_pg_sequence& form)
{
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("sequence %s makes no IDs on this Citus worker", errors::name_of(sequence)),
             errdetail("Its MINVALUE %lld and MAXVALUE %lld are those that Citus gives the copy of "
                       "a sequence on a worker of group %lld. Two copies would make the same IDs.",
                       errors::number(form.seqmin), errors::number(form.seqmax),
                       errors::number(form.seqmin >> kCitusGroupShift)),
             errhint("Insert through the coordinator. To insert on every node: ALTER SYSTEM SET "
                     "snowflake.shard on each node, to a number of its own, and DEFAULT "
                     "snowflake_next_id(); see docs/citus.md.")));
}

[[noreturn]] void no_such_sequence(Oid relation)
{
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                    errmsg("sequence with OID %u does not exist", relation),
                    errhint("Give a sequence by its name: 'schema.sequence'::regclass.")));
}

[[noreturn]] void not_a_sequence(Oid relation)
{
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                    errmsg("%s is not a sequence", errors::name_of(relation)),
                    errhint("CREATE SEQUENCE makes one; snowflake_next_id(shard, "
                            "'schema.sequence') uses it.")));
}

/* With UPDATE a role can make IDs come twice: the hint names it only where USAGE is not enough. */
[[noreturn]] void permission_denied(Oid sequence, AclMode privileges)
{
    const char* name = errors::name_of(sequence);
    const char* role = quote_identifier(GetUserNameFromId(GetUserId(), false));
    ereport(ERROR,
            (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
             errmsg("permission denied for sequence %s", name),
             (privileges & ACL_USAGE) != 0
                 ? errhint("GRANT USAGE ON SEQUENCE %s TO %s;", name, role)
                 : errhint("Let its owner do this. A role with UPDATE can do it, and can set the "
                           "sequence back, too: GRANT UPDATE ON SEQUENCE %s TO %s;",
                           name, role)));
}

/*
 * As lock_and_open_sequence(): the lock belongs to the top transaction, so that ROLLBACK TO does
 * not release it while the entry says that it is held.
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
    const Position max_value{form->seqmax};
    entry->holds_positions = form->seqtypid == INT8OID && form->seqincrement == 1 &&
                             !is_citus_copy(form->seqmin, form->seqmax);
    entry->max_value = max_value < kMaxPosition ? max_value : kMaxPosition;
    ReleaseSysCache(tuple);
}

/* Once per transaction and sequence, and after every invalidation. */
void refresh(SequenceEntry* entry)
{
    lock_sequence(entry);

    const Relation relation = try_relation_open(entry->relation, NoLock);
    if (relation == nullptr)
        no_such_sequence(entry->relation);
    if (relation->rd_rel->relkind != RELKIND_SEQUENCE)
        not_a_sequence(entry->relation);

    page_pin::release();
    const Buffer recent = entry->address.buffer;
    entry->address = {entry->relation, pg::file_locator(relation), recent,
                      RelationNeedsWAL(relation) != 0};
    entry->is_own_temp = relation->rd_islocaltemp;
    read_definition(entry);
    relation_close(relation, NoLock);

    /* Setting this last loses no invalidation: our lock keeps the definition as it was read. */
    entry->read_in = pg::my_lxid();
}

/* Checked at each call: a transaction can become read-only after its first ID. */
void require_writable(const SequenceEntry* entry, const char* function)
{
    if (!entry->is_own_temp)
        PreventCommandIfReadOnly(function);
    PreventCommandIfParallelMode(function);
}

/*
 * The entry of a relation that is looked up by its kind first: a wrong OID leaves no entry, and a
 * table is not locked.
 */
SequenceEntry* entry_of(Oid sequence)
{
    if (SequenceEntry* entry = find_entry(sequence, HASH_FIND))
        return entry;
    const char kind = get_rel_relkind(sequence);
    if (kind == '\0')
        no_such_sequence(sequence);
    if (kind != RELKIND_SEQUENCE)
        not_a_sequence(sequence);
    return find_entry(sequence, HASH_ENTER);
}

/* Once per call site and transaction, and after every invalidation or change of role. */
SequenceEntry* check_sequence(CallSite& site, Oid sequence, AclMode privileges)
{
    SequenceEntry* entry = entry_of(sequence);
    if (entry->read_in != pg::my_lxid())
        refresh(entry);

    if (pg_class_aclcheck(sequence, GetUserId(), privileges) != ACLCHECK_OK)
        permission_denied(sequence, privileges);
    if (!entry->holds_positions)
        cannot_hold_positions(sequence);

    site.entry = entry;
    site.role = GetUserId();
    return entry;
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

SequenceEntry* open_sequence(CallSite& site, Oid sequence, AclMode privileges)
{
    SequenceEntry* entry = site.entry;
    const bool is_checked = entry != nullptr && entry->relation == sequence &&
                            entry->read_in == pg::my_lxid() && site.role == GetUserId();
    if (!is_checked)
        entry = check_sequence(site, sequence, privileges);
    require_writable(entry, site.function);
    return entry;
}

void cannot_hold_positions(Oid sequence)
{
    const HeapTuple tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
    if (!HeapTupleIsValid(tuple))
        no_such_sequence(sequence);
    const FormData_pg_sequence form = *reinterpret_cast<Form_pg_sequence>(GETSTRUCT(tuple));
    ReleaseSysCache(tuple);
    if (is_closed(form.seqmin, form.seqmax))
        sequence_is_closed(sequence, "Its MINVALUE and MAXVALUE leave no value to be drawn, as "
                                     "snowflake-shard move sets them when a shard has left.");
    if (is_citus_copy(form.seqmin, form.seqmax))
        sequence_is_of_citus(sequence, form);

    const char* name = errors::name_of(sequence);
    const char* statement =
        psprintf("ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE;", name);
    /* A serial column's limits are those of its type; others may be there on purpose. */
    const bool is_serial =
        form.seqincrement == 1 && (form.seqmax == PG_INT16_MAX || form.seqmax == PG_INT32_MAX);
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("sequence %s cannot hold a position", name),
         errdetail("It is %s with INCREMENT %lld and MAXVALUE %lld; a position is a bigint that "
                   "grows by 1024 each millisecond and by 1 each ID.",
                   format_type_be(form.seqtypid), errors::number(form.seqincrement),
                   errors::number(form.seqmax)),
         is_serial ? errhint("%s", statement)
                   : errhint("If no replication or other program has set these limits: %s If one "
                             "has, draw from another sequence.",
                             statement)));
}

/*
 * The fence of a move or a split sets a sequence to its end; the bounds that is_closed() knows come
 * later. A hint to set it back would lead to IDs that the shard's other server makes, too.
 */
void refuse_if_ended(Oid sequence, std::int64_t value)
{
    const HeapTuple tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
    const bool is_ended = HeapTupleIsValid(tuple) &&
                          value == reinterpret_cast<Form_pg_sequence>(GETSTRUCT(tuple))->seqmax;
    if (HeapTupleIsValid(tuple))
        ReleaseSysCache(tuple);
    if (is_ended && has_record())
        sequence_is_closed(sequence, "It is at its end, as snowflake-shard move and split set it "
                                     "while a shard is closed.");
}

} // namespace snowflake::session
