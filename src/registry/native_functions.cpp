#include "registry/native_functions.h"

namespace snowflake::registry
{
namespace
{

constexpr const char* kExtension = "snowflake";

[[noreturn]] void no_extension()
{
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                    errmsg("extension \"%s\" does not exist", kExtension)));
}

/* The schema of the public functions. It is that of the extension and is not found by search_path:
 * another role may have planted functions of the same names in a schema of the path. */
Oid extension_schema()
{
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
                CStringGetDatum(kExtension));
    const Relation extensions = table_open(ExtensionRelationId, AccessShareLock);
    const SysScanDesc scan =
        systable_beginscan(extensions, ExtensionNameIndexId, true, nullptr, 1, &key);
    const HeapTuple tuple = systable_getnext(scan);
    if (!HeapTupleIsValid(tuple))
        no_extension();
    const Oid schema = reinterpret_cast<Form_pg_extension>(GETSTRUCT(tuple))->extnamespace;
    systable_endscan(scan);
    table_close(extensions, AccessShareLock);
    return schema;
}

} // namespace

Oid function_in(Oid schema, const char* name, const Oid* arguments, int count)
{
    return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
                           PointerGetDatum(buildoidvector(arguments, count)),
                           ObjectIdGetDatum(schema));
}

NativeFunctions native_functions()
{
    constexpr const char* name = "snowflake_next_id";
    const Oid arguments[] = {INT4OID, REGCLASSOID, INT8OID};
    /* Looked up in each call of an SQL function, and not kept in the session: the extension can be
     * dropped and made anew, or get another schema. */
    const Oid schema = extension_schema();
    /* Overloads with two, three and no arguments. */
    return {function_in(schema, name, arguments, 2), function_in(schema, name, arguments, 3),
            function_in(schema, name, arguments, 0), get_relname_relid("snowflake_id_seq", schema)};
}

} // namespace snowflake::registry
