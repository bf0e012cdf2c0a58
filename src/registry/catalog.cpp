#include "registry/catalog.h"

namespace snowflake::catalog
{
namespace
{

struct Dependent {
    Oid catalog;
    Oid object;
    /* The row of pg_depend that says so. It is written anew whenever the expression is. */
    TransactionId row_xmin;
    ItemPointerData row;
};

/* Collected before any of them is read: reading opens other catalogues. */
List* dependents_of(Oid function)
{
    List* dependents = NIL;
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(ProcedureRelationId));
    ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(function));
    const Relation depend = table_open(DependRelationId, AccessShareLock);
    const SysScanDesc scan =
        systable_beginscan(depend, DependReferenceIndexId, true, nullptr, 2, keys);
    HeapTuple tuple = nullptr;
    while (HeapTupleIsValid(tuple = systable_getnext(scan))) {
        const auto* form = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple));
        if (form->classid != AttrDefaultRelationId && form->classid != ProcedureRelationId)
            continue;
        auto* dependent = static_cast<Dependent*>(palloc(sizeof(Dependent)));
        *dependent = {form->classid, form->objid, HeapTupleHeaderGetRawXmin(tuple->t_data),
                      tuple->t_self};
        dependents = lappend(dependents, dependent);
    }
    systable_endscan(scan);
    table_close(depend, AccessShareLock);
    return dependents;
}

bool read_dependent(const NativeFunctions& natives, const Dependent& dependent, Caller* caller,
                    Call* call)
{
    if (dependent.catalog == AttrDefaultRelationId)
        return read_default(natives, dependent.object, caller, call);
    *caller = {ProcedureRelationId, dependent.object, 0};
    return read_call(natives, *caller, call);
}

/*
 * What this session has read already. A session that makes thousands of shards asks before each
 * whether its number is free, and to read all expressions for that took longer than the rest.
 */
struct Remembered {
    Oid catalog; /* the key: both OIDs */
    Oid object;
    TransactionId row_xmin;
    ItemPointerData row;
    Caller caller;
    Call call;
};

HTAB* remembered_calls()
{
    static HTAB* table = nullptr;
    if (table == nullptr) {
        HASHCTL control = {};
        control.keysize = offsetof(Remembered, row_xmin);
        control.entrysize = sizeof(Remembered);
        table = hash_create("snowflake calls", 256, &control, HASH_ELEM | HASH_BLOBS);
    }
    return table;
}

/*
 * Only calls without a function between are remembered: what goes through a function changes with
 * that function's body, and no row of the caller's own changes with it.
 */
bool recall_or_read(const NativeFunctions& natives, const Dependent& dependent, Caller* caller,
                    Call* call)
{
    bool found = false;
    auto* known =
        static_cast<Remembered*>(hash_search(remembered_calls(), &dependent, HASH_FIND, &found));
    if (found && known->row_xmin == dependent.row_xmin &&
        ItemPointerEquals(&known->row, const_cast<ItemPointer>(&dependent.row))) {
        *caller = known->caller;
        *call = known->call;
        return true;
    }
    if (!read_dependent(natives, dependent, caller, call))
        return false;
    if (!OidIsValid(call->through)) {
        known = static_cast<Remembered*>(
            hash_search(remembered_calls(), &dependent, HASH_ENTER, &found));
        known->row_xmin = dependent.row_xmin;
        known->row = dependent.row;
        known->caller = *caller;
        known->call = *call;
    }
    return true;
}

} // namespace

/*
 * From the native functions outwards. An object that calls two of them, or one by two ways, stands
 * in the list of both, and is reported once: by the way that its expression names first. (Not so
 * with Depth::direct, whose callers do not mind, and ask often.)
 */
void visit_calls(const NativeFunctions& natives, Depth depth, Visitor visitor, void* state)
{
    List* functions =
        list_make3_oid(natives.next_id, natives.next_id_epoch, natives.next_id_default);
    HASHCTL control = {};
    control.keysize = offsetof(Dependent, row_xmin);
    control.entrysize = sizeof(Dependent);
    control.hcxt = CurrentMemoryContext;
    HTAB* seen =
        hash_create("snowflake callers", 1024, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

    /* The list grows while it is walked; so by index. */
    for (int i = 0; i < list_length(functions); ++i) {
        ListCell* cell = nullptr;
        foreach (cell, dependents_of(list_nth_oid(functions, i))) {
            const auto* dependent = static_cast<Dependent*>(lfirst(cell));
            bool was_seen = false;
            if (depth == Depth::through_functions)
                hash_search(seen, dependent, HASH_ENTER, &was_seen);
            Caller caller;
            Call call;
            if (was_seen || !recall_or_read(natives, *dependent, &caller, &call))
                continue;
            if (!visitor(caller, call, state))
                return;
            if (depth == Depth::through_functions && dependent->catalog == ProcedureRelationId)
                functions = lappend_oid(functions, dependent->object);
        }
    }
}

} // namespace snowflake::catalog
