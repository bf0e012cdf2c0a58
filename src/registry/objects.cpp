#include "registry/objects.h"

namespace snowflake::registry
{
namespace
{

/* Appends the calls in one attribute of a row of a system catalogue. */
List* append_calls(List* calls, const NativeFunctions& natives, pg::SystemCache cache,
                   HeapTuple tuple, AttrNumber attribute)
{
    bool is_null = false;
    const Datum expression = SysCacheGetAttr(cache, tuple, attribute, &is_null);
    return is_null ? calls : list_concat(calls, read_calls(natives, expression));
}

/* The calls in a body in SQL that was parsed when the function was made, and in defaults of
 * arguments. A body that is a string, in any language, is not parsed here: its calls are not known.
 */
List* calls_of_function(const NativeFunctions& natives, Oid function)
{
    const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple))
        return NIL;
    List* calls = append_calls(NIL, natives, PROCOID, tuple, Anum_pg_proc_prosqlbody);
    const int in_body = list_length(calls);
    calls = append_calls(calls, natives, PROCOID, tuple, Anum_pg_proc_proargdefaults);
    ReleaseSysCache(tuple);
    /* With a call in an argument's default, the function does more than one call. */
    ListCell* cell = nullptr;
    foreach (cell, calls)
        static_cast<Call*>(lfirst(cell))->is_plain &= list_length(calls) == in_body;
    return calls;
}

List* calls_of_domain(const NativeFunctions& natives, Oid domain)
{
    const HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(domain));
    if (!HeapTupleIsValid(tuple))
        return NIL;
    List* calls = append_calls(NIL, natives, TYPEOID, tuple, Anum_pg_type_typdefaultbin);
    ReleaseSysCache(tuple);
    return calls;
}

/* Reads pg_attrdef and not the relation cache: opening the table would take a lock, and wait behind
 * an ALTER TABLE. */
List* calls_of_column(const NativeFunctions& natives, const Caller& column)
{
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], Anum_pg_attrdef_adrelid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(column.object));
    ScanKeyInit(&keys[1], Anum_pg_attrdef_adnum, BTEqualStrategyNumber, F_INT2EQ,
                Int16GetDatum(static_cast<std::int16_t>(column.column)));
    const Relation defaults = table_open(AttrDefaultRelationId, AccessShareLock);
    const SysScanDesc scan =
        systable_beginscan(defaults, AttrDefaultIndexId, true, nullptr, 2, keys);
    List* calls = NIL;
    const HeapTuple tuple = systable_getnext(scan);
    if (HeapTupleIsValid(tuple)) {
        /* Not heap_getattr(): in the headers of some minor versions it calls a function that older
         * minor versions of the server do not have. */
        Datum values[Natts_pg_attrdef];
        bool is_null[Natts_pg_attrdef];
        heap_deform_tuple(tuple, RelationGetDescr(defaults), values, is_null);
        if (!is_null[Anum_pg_attrdef_adbin - 1])
            calls = read_calls(natives, values[Anum_pg_attrdef_adbin - 1]);
    }
    systable_endscan(scan);
    table_close(defaults, AccessShareLock);
    return calls;
}

/* Other relations have columns of domains, too: views, composite types. */
bool has_defaults(Oid relation)
{
    const char kind = get_rel_relkind(relation);
    return kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE ||
           kind == RELKIND_FOREIGN_TABLE;
}

/*
 * The object of a row of pg_depend, if it calls the object that it depends on. A function is called
 * by a DEFAULT, a function or a domain that names it; the DEFAULT of a domain by the columns of
 * that type, if they have no other.
 */
bool read_dependent(const FormData_pg_depend* row, Caller* caller)
{
    *caller = {row->classid, row->objid, row->objsubid};
    if (row->refclassid == TypeRelationId)
        return row->classid == RelationRelationId && default_domain(*caller) == row->refobjid;
    if (row->classid == AttrDefaultRelationId) {
        /* A DROP DEFAULT may have been committed since the row of pg_depend was read. Then there is
         * no column. */
        const ObjectAddress column = GetAttrDefaultColumnAddress(row->objid);
        *caller = {RelationRelationId, column.objectId, column.objectSubId};
        return OidIsValid(column.objectId);
    }
    return row->classid == ProcedureRelationId ||
           (row->classid == TypeRelationId && get_typtype(row->objid) == TYPTYPE_DOMAIN);
}

/* Types, then functions, then columns; the older objects first. */
int compare_callers(const ListCell* a, const ListCell* b)
{
    const auto* left = static_cast<const Caller*>(lfirst(a));
    const auto* right = static_cast<const Caller*>(lfirst(b));
    if (left->catalog != right->catalog)
        return left->catalog < right->catalog ? -1 : 1;
    if (left->object != right->object)
        return left->object < right->object ? -1 : 1;
    return left->column - right->column;
}

/* Rows of pg_depend by one of its two indexes. */
class DependScan
{
public:
    DependScan(Oid index, AttrNumber catalog_key, Oid catalog, AttrNumber object_key, Oid object)
        : depend_(table_open(DependRelationId, AccessShareLock))
    {
        ScanKeyData keys[2];
        ScanKeyInit(&keys[0], catalog_key, BTEqualStrategyNumber, F_OIDEQ,
                    ObjectIdGetDatum(catalog));
        ScanKeyInit(&keys[1], object_key, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(object));
        scan_ = systable_beginscan(depend_, index, true, nullptr, 2, keys);
    }
    /* This is not run when an error jumps past it; the resource owner ends the scan then. */
    ~DependScan()
    {
        systable_endscan(scan_);
        table_close(depend_, AccessShareLock);
    }
    DependScan(const DependScan&) = delete;
    DependScan& operator=(const DependScan&) = delete;

    const FormData_pg_depend* next()
    {
        /* A function that every role may use can have any number of dependents. */
        CHECK_FOR_INTERRUPTS();
        const HeapTuple tuple = systable_getnext(scan_);
        return HeapTupleIsValid(tuple) ? reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple))
                                       : nullptr;
    }

private:
    Relation depend_;
    SysScanDesc scan_;
};

} // namespace

Oid schema_of(const Caller& caller)
{
    if (caller.catalog == RelationRelationId)
        return get_rel_namespace(caller.object);
    if (caller.catalog == ProcedureRelationId)
        return get_func_namespace(caller.object);
    const HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(caller.object));
    if (!HeapTupleIsValid(tuple))
        return InvalidOid;
    const Oid schema = reinterpret_cast<Form_pg_type>(GETSTRUCT(tuple))->typnamespace;
    ReleaseSysCache(tuple);
    return schema;
}

Oid default_domain(const Caller& column)
{
    const HeapTuple tuple =
        SearchSysCache2(ATTNUM, ObjectIdGetDatum(column.object),
                        Int16GetDatum(static_cast<std::int16_t>(column.column)));
    if (!HeapTupleIsValid(tuple))
        return InvalidOid;
    const auto* form = reinterpret_cast<Form_pg_attribute>(GETSTRUCT(tuple));
    /* The default of the type counts only if the column has none of its own, as in
     * build_column_default(). A generated column has atthasdef, too. */
    const bool has_own = form->atthasdef || form->attidentity != '\0' || form->attisdropped;
    const Oid type = form->atttypid;
    ReleaseSysCache(tuple);
    return !has_own && get_typtype(type) == TYPTYPE_DOMAIN && has_defaults(column.object)
               ? type
               : InvalidOid;
}

List* own_calls(const NativeFunctions& natives, const Caller& caller)
{
    if (caller.catalog == RelationRelationId)
        return calls_of_column(natives, caller);
    if (caller.catalog == ProcedureRelationId)
        return calls_of_function(natives, caller.object);
    return caller.catalog == TypeRelationId ? calls_of_domain(natives, caller.object) : NIL;
}

List* dependents_of(Oid catalog, Oid object)
{
    DependScan scan(DependReferenceIndexId, Anum_pg_depend_refclassid, catalog,
                    Anum_pg_depend_refobjid, object);
    List* dependents = NIL;
    Caller caller = {};
    while (const FormData_pg_depend* row = scan.next()) {
        if (!read_dependent(row, &caller))
            continue;
        auto* copy = static_cast<Caller*>(palloc(sizeof(Caller)));
        *copy = caller;
        dependents = lappend(dependents, copy);
    }
    /* Equal keys of an index are in the order of their places in the table, which a VACUUM frees.
     */
    list_sort(dependents, compare_callers);
    return dependents;
}

/* pg_depend has the dependencies of a DEFAULT under its row of pg_attrdef, not the column. A column
 * without a DEFAULT has no such row: the scan for InvalidOid finds none. */
List* functions_named_by(const Caller& caller)
{
    Oid catalog = caller.catalog;
    Oid object = caller.object;
    if (catalog == RelationRelationId) {
        catalog = AttrDefaultRelationId;
        object = GetAttrDefaultOid(caller.object, static_cast<AttrNumber>(caller.column));
    }
    DependScan scan(DependDependerIndexId, Anum_pg_depend_classid, catalog, Anum_pg_depend_objid,
                    object);
    List* functions = NIL;
    while (const FormData_pg_depend* row = scan.next())
        if (row->refclassid == ProcedureRelationId)
            functions = lappend_oid(functions, row->refobjid);
    return functions;
}

} // namespace snowflake::registry
