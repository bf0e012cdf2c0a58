#include "registry/files.h"

#include <cerrno>

#include <sys/stat.h>

namespace snowflake::registry
{

/* As calculate_relation_size() reads it. A file can be gone since its name was read. */
std::int64_t size_of_fork(Oid tablespace, Oid file, ForkNumber fork)
{
    constexpr off_t kSegment = static_cast<off_t>(RELSEG_SIZE) * BLCKSZ;
    const char* path = pg::path_of_file(tablespace, file, fork);
    std::int64_t size = 0;
    for (int segment = 0; size == kSegment * segment; ++segment) {
        const char* name = segment == 0 ? path : psprintf("%s.%d", path, segment);
        struct stat status = {};
        if (stat(name, &status) == 0)
            size += status.st_size;
        else if (errno != ENOENT)
            ereport(ERROR,
                    (errcode_for_file_access(), errmsg("could not stat file \"%s\": %m", name)));
        else
            break;
    }
    return size;
}

bool is_empty(Oid table)
{
    const HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
    if (!HeapTupleIsValid(tuple))
        return false;
    const FormData_pg_class row = *reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
    ReleaseSysCache(tuple);
    return row.relkind == RELKIND_RELATION && row.relpersistence != RELPERSISTENCE_TEMP &&
           OidIsValid(row.relfilenode) &&
           size_of_fork(row.reltablespace, row.relfilenode, MAIN_FORKNUM) == 0;
}

} // namespace snowflake::registry
