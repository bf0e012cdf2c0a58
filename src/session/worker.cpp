/*
 * The process that is the session of another role: a dynamic background worker, authenticated as
 * that role. There is no way from it to the rights of the caller, because it never has them.
 *
 * It ends when the caller detaches from the shared memory: when the caller's process ends, or gives
 * the session up.
 */
#include "channel.h"
#include "execute.h"

using namespace snowflake;
using namespace snowflake::session;

namespace
{

struct Channel {
    const Head* head;
    shm_mq_handle* requests;
};

/* Errors of the start go to the caller, too. */
Channel attach(dsm_handle handle)
{
    dsm_segment* segment = dsm_attach(handle);
    if (segment == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("the caller of the session is gone")));
    dsm_pin_mapping(segment);
    shm_toc* parts = shm_toc_attach(kMagic, dsm_segment_address(segment));
    auto* requests = static_cast<shm_mq*>(shm_toc_lookup(parts, kRequests, false));
    auto* answers = static_cast<shm_mq*>(shm_toc_lookup(parts, kAnswers, false));
    shm_mq_set_receiver(requests, MyProc);
    shm_mq_set_sender(answers, MyProc);
    pq_redirect_to_shm_mq(segment, shm_mq_attach(answers, segment, nullptr));
    return {static_cast<const Head*>(shm_toc_lookup(parts, kHead, false)),
            shm_mq_attach(requests, segment, nullptr)};
}

struct Setting {
    const char* name;
    const char* value;
};

/* In place of the settings of the role and the database, as the command has them in its own
 * session. synchronous_commit: a change that is told to be done survives a crash. row_security: a
 * policy that would hide rows is an error. The SQL may change them. */
constexpr Setting kSettings[] = {
    {"default_transaction_isolation", "read committed"},
    {"default_transaction_read_only", "off"},
    {"lock_timeout", "0"},
    {"row_security", "off"},
    {"session_replication_role", "origin"},
    {"standard_conforming_strings", "on"},
    {"synchronous_commit", "on"},
    {"transaction_timeout", "0"}, /* since PostgreSQL 17 */
};

/* PGC_S_OVERRIDE: DISCARD ALL comes back to them. */
void set_settings()
{
    for (const Setting& setting : kSettings)
        if (GetConfigOption(setting.name, true, false) != nullptr)
            SetConfigOption(setting.name, setting.value, PGC_SUSET, PGC_S_OVERRIDE);
    SetConfigOption(
        "application_name",
        psprintf("snowflake-shard session of process %d", MyBgworkerEntry->bgw_notify_pid),
        PGC_SUSET, PGC_S_OVERRIDE);
    SetConfigOption("client_encoding", GetDatabaseEncodingName(), PGC_USERSET, PGC_S_OVERRIDE);
}

void report_ready()
{
    const char status = TransactionBlockStatusCode();
    if (status == 'I') {
        pgstat_report_stat(true);
        pgstat_report_activity(STATE_IDLE, nullptr);
    } else {
        pgstat_report_activity(
            status == 'T' ? STATE_IDLEINTRANSACTION : STATE_IDLEINTRANSACTION_ABORTED, nullptr);
    }
    StringInfoData message;
    pq_beginmessage(&message, 'Z');
    pq_sendbyte(&message, static_cast<std::uint8_t>(status));
    pq_endmessage(&message);
}

/* As the error handler of PostgresMain(). The error itself is the answer. */
void recover()
{
    HOLD_INTERRUPTS();
    disable_all_timeouts(false);
    QueryCancelPending = false;
    EmitErrorReport();
    debug_query_string = nullptr;
    AbortCurrentTransaction();
    PortalErrorCleanup();
    pg::release_replication_slots();
    jit_reset_after_error();
    FlushErrorState();
    RESUME_INTERRUPTS();
}

void answer(StringInfo request, Oid role, MemoryContext memory)
{
    PG_TRY();
    {
        execute(request, role, memory);
    }
    PG_CATCH();
    {
        recover();
    }
    PG_END_TRY();
    debug_query_string = nullptr;
}

void serve(const Channel& channel)
{
    const MemoryContext memory =
        AllocSetContextCreate(TopMemoryContext, "snowflake request", ALLOCSET_DEFAULT_SIZES);
    for (;;) {
        MemoryContextSwitchTo(memory);
        MemoryContextReset(memory);
        InvalidateCatalogSnapshotConditionally();
        Size size = 0;
        void* data = nullptr;
        if (shm_mq_receive(channel.requests, &size, &data, false) != SHM_MQ_SUCCESS)
            return;
        if (ConfigReloadPending) {
            ConfigReloadPending = false;
            ProcessConfigFile(PGC_SIGHUP);
        }
        SetCurrentStatementStartTimestamp();
        /* Texts in it have their terminator: see channel.h. */
        StringInfoData request = {static_cast<char*>(data), static_cast<int>(size),
                                  static_cast<int>(size), 0};
        answer(&request, channel.head->role, memory);
        report_ready();
    }
}

} // namespace

extern "C" {

/* bgw_function_name of start() in session.cpp. */
PGDLLEXPORT void snowflake_session_main(Datum handle);

void snowflake_session_main(Datum handle)
{
    pqsignal(SIGTERM, die);
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    BackgroundWorkerUnblockSignals();
    CurrentResourceOwner = ResourceOwnerCreate(nullptr, "snowflake session");
    const Channel channel = attach(DatumGetUInt32(handle));
    BackgroundWorkerInitializeConnectionByOid(channel.head->database, channel.head->role,
                                              pg::kAlsoWithoutLogin);
    set_settings();
    serve(channel);
    proc_exit(0);
}
}
