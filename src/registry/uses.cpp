#include "registry/uses.h"
#include "registry/caches.h"
#include "registry/objects.h"

namespace snowflake::registry
{
namespace
{

static_assert(sizeof(Caller) == 12, "no padding: hashed as bytes");

/* An object that makes IDs. Direct uses come first in its list, because find_direct() ends before
 * anything is inherited. */
struct Entry {
    Caller caller; /* hash key */
    List* uses;
    bool is_queued; /* its dependents have not inherited all of its uses yet */
};

/* All objects of the database that make IDs, from the native functions upwards. */
struct Walk {
    const NativeFunctions* natives;
    HTAB* entries;
    List* found; /* Entry*, in the order in which they were found */
    List* queue; /* Entry* */
};

bool is_same(const Call& a, const Call& b)
{
    return a.has_shard == b.has_shard && a.shard == b.shard && a.sequence == b.sequence &&
           a.has_epoch == b.has_epoch && a.epoch == b.epoch;
}

/*
 * False where the list has the call already, or has no room for another inherited one. Only so many
 * are compared and passed on, so that many calls cost no more than their number.
 */
bool add_use(List** uses, const Use& use)
{
    if (!use.is_direct && list_length(*uses) >= kMaxInherited)
        return false;
    for (int i = 0; i < Min(list_length(*uses), kMaxInherited); ++i)
        if (is_same(static_cast<const Use*>(list_nth(*uses, i))->call, use.call))
            return false;
    auto* copy = static_cast<Use*>(palloc(sizeof(Use)));
    *copy = use;
    *uses = lappend(*uses, copy);
    return true;
}

void add_own_uses(List** uses, const NativeFunctions& natives, const Caller& caller, Use use)
{
    /* Inherited copies keep this schema: the shard belongs to the schema whose expression names
     * it. */
    use.home = schema_of(caller);
    ListCell* cell = nullptr;
    foreach (cell, own_calls(natives, caller)) {
        use.call = *static_cast<const Call*>(lfirst(cell));
        use.call.is_plain &= use.is_direct;
        add_use(uses, use);
    }
}

Walk begin_walk(const NativeFunctions& natives)
{
    HASHCTL control = {};
    control.keysize = sizeof(Caller);
    control.entrysize = sizeof(Entry);
    control.hcxt = CurrentMemoryContext;
    return {&natives,
            hash_create("snowflake callers", 1024, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT),
            NIL, NIL};
}

Entry* entry_of(Walk* walk, const Caller& caller, bool* is_new)
{
    bool found = false;
    auto* entry = static_cast<Entry*>(hash_search(walk->entries, &caller, HASH_ENTER, &found));
    *is_new = !found;
    if (!found) {
        count_looked_at(1);
        entry->uses = NIL;
        entry->is_queued = false;
        walk->found = lappend(walk->found, entry);
    }
    return entry;
}

/* Nothing inherits from a column. */
void enqueue(Walk* walk, Entry* entry)
{
    if (entry->is_queued || entry->uses == NIL || entry->caller.catalog == RelationRelationId)
        return;
    entry->is_queued = true;
    walk->queue = lappend(walk->queue, entry);
}

void find_direct(Walk* walk)
{
    const NativeFunctions& natives = *walk->natives;
    const Oid functions[] = {natives.next_id, natives.next_id_epoch, natives.next_id_default};
    for (const Oid native : functions) {
        ListCell* cell = nullptr;
        foreach (cell, dependents_of(ProcedureRelationId, native)) {
            bool is_new = false;
            Entry* entry = entry_of(walk, *static_cast<const Caller*>(lfirst(cell)), &is_new);
            /* One that calls two native functions depends on both, and has been read already. */
            if (!is_new)
                continue;
            add_own_uses(&entry->uses, natives, entry->caller, {{}, true, InvalidOid, InvalidOid});
            enqueue(walk, entry);
        }
    }
}

/* True: the object has uses that it did not have, so its own dependents inherit again. */
bool inherit(Entry* to, const Entry& from)
{
    bool is_grown = false;
    for (int i = 0; i < Min(list_length(from.uses), kMaxInherited); ++i) {
        Use use = *static_cast<const Use*>(list_nth(from.uses, i));
        /* The body of the function may do more with the ID: its result need not be the ID. */
        use.call.is_plain = false;
        use.is_direct = false;
        if (from.caller.catalog == ProcedureRelationId)
            use.through = from.caller.object; /* the columns of a domain call the same function */
        is_grown |= add_use(&to->uses, use);
    }
    return is_grown;
}

/*
 * An object comes back into the queue when it has inherited more, so at most kMaxInherited times.
 * Functions that call each other in a circle end like all others. The list grows while it is
 * walked.
 */
void find_inherited(Walk* walk)
{
    for (int i = 0; i < list_length(walk->queue); ++i) {
        auto* from = static_cast<Entry*>(list_nth(walk->queue, i));
        from->is_queued = false;
        List* dependents = dependents_of(from->caller.catalog, from->caller.object);
        ListCell* cell = nullptr;
        foreach (cell, dependents) {
            bool is_new = false;
            Entry* to = entry_of(walk, *static_cast<const Caller*>(lfirst(cell)), &is_new);
            if (inherit(to, *from))
                enqueue(walk, to);
        }
        /* The list is freed at once: an object comes back up to kMaxInherited times, all within one
         * call of an SQL function. */
        list_free_deep(dependents);
    }
}

/* A function, and the one that the search for an object's uses came through to it. */
struct Step {
    Oid function;
    Oid through;
};

/* The native functions end the search. True: there is one among them. */
bool add_steps(const NativeFunctions& natives, const Caller& caller, Oid through, HTAB* seen,
               List** steps)
{
    bool names_native = false;
    ListCell* cell = nullptr;
    foreach (cell, functions_named_by(caller)) {
        const Oid function = lfirst_oid(cell);
        if (function == natives.next_id || function == natives.next_id_epoch ||
            function == natives.next_id_default) {
            names_native = true;
            continue;
        }
        bool was_seen = false;
        hash_search(seen, &function, HASH_ENTER, &was_seen);
        if (was_seen)
            continue;
        auto* step = static_cast<Step*>(palloc(sizeof(Step)));
        *step = {function, OidIsValid(through) ? through : function};
        *steps = lappend(*steps, step);
    }
    return names_native;
}

} // namespace

void visit_uses(const NativeFunctions& natives, Depth depth, Visitor visitor, void* state)
{
    Walk walk = begin_walk(natives);
    find_direct(&walk);
    if (depth == Depth::through_functions)
        find_inherited(&walk);
    ListCell* cell = nullptr;
    foreach (cell, walk.found) {
        const auto* entry = static_cast<const Entry*>(lfirst(cell));
        count_looked_at(1); /* by the visitor */
        ListCell* use = nullptr;
        foreach (use, entry->uses)
            visitor(entry->caller, *static_cast<const Use*>(lfirst(use)), state);
    }
}

/*
 * The other way round, from one object towards the native functions: a lookup of one column must
 * not read all callers of the database. Functions may call each other in a circle, so each is
 * visited once.
 */
List* uses_of(const NativeFunctions& natives, const Caller& caller)
{
    HASHCTL control = {};
    control.keysize = sizeof(Oid);
    control.entrysize = sizeof(Oid);
    control.hcxt = CurrentMemoryContext;
    HTAB* seen =
        hash_create("snowflake functions", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    /* A column that has the DEFAULT of its domain has no expression of its own, so the domain is
     * read in its place. */
    const Oid domain = caller.catalog == RelationRelationId ? default_domain(caller) : InvalidOid;
    const Caller start = OidIsValid(domain) ? Caller{TypeRelationId, domain, 0} : caller;

    List* uses = NIL;
    List* steps = NIL;
    if (add_steps(natives, start, InvalidOid, seen, &steps))
        add_own_uses(&uses, natives, start, {{}, !OidIsValid(domain), InvalidOid, InvalidOid});
    for (int i = 0; i < list_length(steps); ++i) {
        const Step step = *static_cast<const Step*>(list_nth(steps, i));
        const Caller function = {ProcedureRelationId, step.function, 0};
        if (add_steps(natives, function, step.through, seen, &steps))
            add_own_uses(&uses, natives, function, {{}, false, step.through, InvalidOid});
    }
    return uses;
}

} // namespace snowflake::registry
