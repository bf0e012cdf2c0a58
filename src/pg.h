/*
 * PostgreSQL's headers, for all of our files: the only place that includes them, and the only one
 * that looks at PG_VERSION_NUM.
 */
#pragma once

#include <cstdint>

/* The server's headers are C, and not written for our warnings. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"

extern "C" {
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/printtup.h"
#include "access/relation.h"
#include "access/rmgr.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/tsmapi.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_control.h"
#include "catalog/pg_database.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_index.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_publication.h"
#include "catalog/pg_sequence.h"
#include "catalog/pg_subscription.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/comment.h"
#include "commands/copy.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/event_trigger.h"
#include "commands/schemacmds.h"
#include "commands/sequence.h"
#include "commands/trigger.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "funcapi.h"
#include "jit/jit.h"
#include "libpq/pqformat.h"
#include "libpq/pqmq.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/analyze.h"
#include "parser/parse_node.h"
#include "parser/parse_relation.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "replication/origin.h"
#include "replication/slot.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "storage/shm_mq.h"
#include "storage/shm_toc.h"
#include "tcop/dest.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#if PG_VERSION_NUM >= 170000
#include "utils/wait_event.h"
#endif
#if PG_VERSION_NUM >= 190000
#include "commands/sequence_xlog.h"
#endif
}

#pragma GCC diagnostic pop

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "snowflake supports PostgreSQL 15 to 19"
#endif

/* Before 16 the mark for exported functions was empty; we hide every unmarked function. */
#if PG_VERSION_NUM < 160000
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#endif

namespace snowflake::pg
{

/* 16 renamed RelFileNode to RelFileLocator, in the WAL record and in macros too. */
#if PG_VERSION_NUM >= 160000
using FileLocator = RelFileLocator;
inline FileLocator file_locator(Relation relation)
{
    return relation->rd_locator;
}
inline void set_locator(xl_seq_rec* record, FileLocator locator)
{
    record->locator = locator;
}
#else
using FileLocator = RelFileNode;
inline FileLocator file_locator(Relation relation)
{
    return relation->rd_node;
}
inline void set_locator(xl_seq_rec* record, FileLocator locator)
{
    record->node = locator;
}
#endif

/* The path of a relation's file in this database. tablespace: 0 is the default one. 18 returns the
 * path in a struct. */
inline const char* path_of_file(Oid tablespace, Oid file, ForkNumber fork)
{
    constexpr int no_session = -1; /* not of a temporary table; 17 gave the constant another name */
    const Oid place = OidIsValid(tablespace) ? tablespace : MyDatabaseTableSpace;
#if PG_VERSION_NUM >= 180000
    return pstrdup(GetRelationPath(MyDatabaseId, place, file, no_session, fork).str);
#else
    return GetRelationPath(MyDatabaseId, place, file, no_session, fork);
#endif
}

/* 16 made the length of WAL data unsigned. */
#if PG_VERSION_NUM >= 160000
using WalDataLength = std::uint32_t;
#else
using WalDataLength = int;
#endif

/* Before 16 a walker was declared without arguments, which means something else in C++. */
using Walker = bool (*)(Node*, void*);
#if PG_VERSION_NUM >= 160000
inline bool walk_children(Node* node, Walker walker, void* state)
{
    return expression_tree_walker(node, walker, state);
}
inline bool walk_query(Query* query, Walker walker, void* state)
{
    return query_tree_walker(query, walker, state, 0);
}
#else
using UndeclaredWalker = bool (*)();
inline UndeclaredWalker undeclared(Walker walker)
{
    return reinterpret_cast<UndeclaredWalker>(reinterpret_cast<void (*)()>(walker));
}
inline bool walk_children(Node* node, Walker walker, void* state)
{
    return expression_tree_walker(node, undeclared(walker), state);
}
inline bool walk_query(Query* query, Walker walker, void* state)
{
    return query_tree_walker(query, undeclared(walker), state, 0);
}
#endif

/* 18 added an argument that counts for EXPLAIN ANALYZE, 19 flags. */
inline IndexScanDesc begin_index_scan(Relation table, Relation index, Snapshot snapshot, int keys)
{
#if PG_VERSION_NUM >= 190000
    return index_beginscan(table, index, snapshot, nullptr, keys, 0, SO_NONE);
#elif PG_VERSION_NUM >= 180000
    return index_beginscan(table, index, snapshot, nullptr, keys, 0);
#else
    return index_beginscan(table, index, snapshot, keys, 0);
#endif
}

/* 19 made an enum of the system caches' identifiers. */
#if PG_VERSION_NUM >= 190000
using SystemCache = SysCacheIdentifier;
#else
using SystemCache = int;
#endif

/* 19 added flags to these, too. */
inline TableScanDesc begin_table_scan(Relation table, Snapshot snapshot)
{
#if PG_VERSION_NUM >= 190000
    return table_beginscan(table, snapshot, 0, nullptr, SO_NONE);
#else
    return table_beginscan(table, snapshot, 0, nullptr);
#endif
}
inline TableScanDesc begin_sample_scan(Relation table, Snapshot snapshot,
                                       const SampleScanState* sample)
{
#if PG_VERSION_NUM >= 190000
    return table_beginscan_sampling(table, snapshot, 0, nullptr, sample->use_bulkread, false,
                                    sample->use_pagemode, SO_NONE);
#else
    return table_beginscan_sampling(table, snapshot, 0, nullptr, sample->use_bulkread, false,
                                    sample->use_pagemode);
#endif
}

/* 16 made one function each of those for all kinds of objects. */
#if PG_VERSION_NUM >= 160000
inline bool is_owner(Oid relation)
{
    return object_ownercheck(RelationRelationId, relation, GetUserId());
}
inline bool has_database_right(Oid role, AclMode right)
{
    return object_aclcheck(DatabaseRelationId, MyDatabaseId, role, right) == ACLCHECK_OK;
}
inline bool has_schema_right(Oid schema, AclMode right)
{
    return object_aclcheck(NamespaceRelationId, schema, GetUserId(), right) == ACLCHECK_OK;
}
#else
inline bool is_owner(Oid relation)
{
    return pg_class_ownercheck(relation, GetUserId());
}
inline bool has_database_right(Oid role, AclMode right)
{
    return pg_database_aclcheck(MyDatabaseId, role, right) == ACLCHECK_OK;
}
inline bool has_schema_right(Oid schema, AclMode right)
{
    return pg_namespace_aclcheck(schema, GetUserId(), right) == ACLCHECK_OK;
}
#endif

inline Oid owner_of_database()
{
    const HeapTuple database = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
    if (!HeapTupleIsValid(database))
        elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
    const Oid datdba = reinterpret_cast<Form_pg_database>(GETSTRUCT(database))->datdba;
    ReleaseSysCache(database);
    return datdba;
}

/* Whether this transaction has a lock of any mode on the relation. 17 added the last argument. */
inline bool has_lock(Oid relation)
{
    LOCKTAG tag;
    SET_LOCKTAG_RELATION(tag, MyDatabaseId, relation);
#if PG_VERSION_NUM >= 170000
    return LockHeldByMe(&tag, AccessShareLock, true);
#else
    for (LOCKMODE mode = AccessShareLock; mode <= MaxLockMode; mode++)
        if (LockHeldByMe(&tag, mode))
            return true;
    return false;
#endif
}

/* 17 lets a background worker be of a role without LOGIN. */
#if PG_VERSION_NUM >= 170000
constexpr std::uint32_t kAlsoWithoutLogin = BGWORKER_BYPASS_ROLELOGINCHECK;
#else
constexpr std::uint32_t kAlsoWithoutLogin = 0;
#endif

/* Without elements. 19 passes the state of a parser. */
inline void create_schema(CreateSchemaStmt* statement)
{
#if PG_VERSION_NUM >= 190000
    CreateSchemaCommand(make_parsestate(nullptr), statement, -1, 0);
#else
    CreateSchemaCommand(statement, "", -1, 0);
#endif
}

/* Runs all of it at the top level. 18 has dropped an argument that nothing used. */
inline void run_portal(Portal portal, DestReceiver* receiver)
{
    QueryCompletion completion;
#if PG_VERSION_NUM >= 180000
    PortalRun(portal, FETCH_ALL, true, receiver, receiver, &completion);
#else
    PortalRun(portal, FETCH_ALL, true, true, receiver, receiver, &completion);
#endif
}

/* As PostgresMain() does after an error. 17 added an argument for slots of a standby. */
inline void release_replication_slots()
{
    if (MyReplicationSlot != nullptr)
        ReplicationSlotRelease();
#if PG_VERSION_NUM >= 170000
    ReplicationSlotCleanup(false);
#else
    ReplicationSlotCleanup();
#endif
}

/* 16 gave memberships the option SET, which SET ROLE needs. */
inline bool may_become(Oid role)
{
#if PG_VERSION_NUM >= 160000
    return member_can_set_role(GetUserId(), role);
#else
    return is_member_of_role(GetUserId(), role);
#endif
}

/* 15.1 gave SetSingleFuncCall() the name that it has in 16. All of 15 have the old name, too. */
#if PG_VERSION_NUM >= 160000
constexpr std::uint32_t kRowsAsExpected = MAT_SRF_USE_EXPECTED_DESC;
inline void begin_rows(FunctionCallInfo call, std::uint32_t flags)
{
    InitMaterializedSRF(call, flags);
}
#else
constexpr std::uint32_t kRowsAsExpected = SRF_SINGLE_USE_EXPECTED;
inline void begin_rows(FunctionCallInfo call, std::uint32_t flags)
{
    SetSingleFuncCall(call, flags);
}
#endif

/* 17 moved the local transaction ID into a struct. */
#if PG_VERSION_NUM >= 170000
inline LocalTransactionId my_lxid()
{
    return MyProc->vxid.lxid;
}
#else
inline LocalTransactionId my_lxid()
{
    return MyProc->lxid;
}
#endif

/* The replication origin of this session's changes. 19 moved it into a struct, and renamed the
 * constant. */
#if PG_VERSION_NUM >= 190000
constexpr std::uint16_t kNoOrigin = InvalidReplOriginId;
inline auto& origin_of_writes()
{
    return replorigin_xact_state.origin;
}
#else
constexpr std::uint16_t kNoOrigin = InvalidRepOriginId;
inline auto& origin_of_writes()
{
    return replorigin_session_origin;
}
#endif

/* Before 19 the special area of a sequence's page was private to commands/sequence.c. */
#if PG_VERSION_NUM >= 190000
using SequenceMagic = sequence_magic;
constexpr std::uint32_t kSequenceMagic = SEQ_MAGIC;
#else
struct SequenceMagic {
    std::uint32_t magic;
};
constexpr std::uint32_t kSequenceMagic = 0x1717;
#endif

/* False for a corrupted page, such as one of zeros. */
inline bool is_sequence_page(const char* page)
{
    constexpr LocationIndex special = BLCKSZ - MAXALIGN(sizeof(SequenceMagic));
    return reinterpret_cast<const PageHeaderData*>(page)->pd_special == special &&
           reinterpret_cast<const SequenceMagic*>(page + special)->magic == kSequenceMagic;
}

/* The buffer is shared, pinned, and locked in exclusive mode. */
inline bool is_dirty(Buffer buffer)
{
#if PG_VERSION_NUM >= 190000
    return BufferIsDirty(buffer);
#else
    BufferDesc* descriptor = GetBufferDescriptor(static_cast<std::uint32_t>(buffer - 1));
    return (pg_atomic_read_u32(&descriptor->state) & BM_DIRTY) != 0;
#endif
}

/* pg_buffercache_mark_dirty() of 19 marks a page that nothing has changed. */
constexpr bool kIsMarkedOnlyByChanges = PG_VERSION_NUM < 190000;

/* 17 lets an extension name its waits; before, all of them show as "Extension". */
#if PG_VERSION_NUM >= 170000
inline std::uint32_t new_wait_event(const char* name)
{
    return WaitEventExtensionNew(name);
}
#else
inline std::uint32_t new_wait_event(const char*)
{
    return PG_WAIT_EXTENSION;
}
#endif

} // namespace snowflake::pg
