#include "session.h"
#include "errors.h"

#include <utility>

using namespace snowflake;
using namespace snowflake::session;

namespace
{

struct Current {
    Oid role;
    bool is_superuser;
    Oid caller;           /* the role that has begun it */
    const char* name;     /* of the role, quoted */
    dsm_segment* segment; /* null: there is none */
    shm_mq_handle* requests;
    shm_mq_handle* answers;
    BackgroundWorkerHandle* worker;
    MemoryContext memory; /* of the handles */
    bool is_busy;         /* with a request */
    char status;          /* as in ReadyForQuery */
};

constexpr char kIdle = 'I';
constexpr char kInTransaction = 'T';
constexpr char kAborted = 'E';

Current current = {};

/* Called by dsm_detach(), and so at the end of the backend, too. A worker that waits for a request
 * ends by itself, without a line in the log; one that runs code of the role does not look at its
 * queues. */
void end_worker(dsm_segment*, Datum worker)
{
    if (current.is_busy)
        TerminateBackgroundWorker(
            reinterpret_cast<BackgroundWorkerHandle*>(DatumGetPointer(worker)));
}

/* It does not wait, because the caller's transaction can be aborting. */
void end()
{
    if (dsm_segment* segment = std::exchange(current.segment, nullptr); segment != nullptr)
        dsm_detach(segment);
}

/* The place of the worker is free then. */
void end_and_wait()
{
    end();
    if (current.worker != nullptr)
        WaitForBackgroundWorkerShutdown(current.worker);
    if (current.memory != nullptr)
        MemoryContextDelete(current.memory);
    current = {};
}

/* A transaction of the session does not outlive that of the caller. One that an error has aborted
 * holds no locks any more, so that session is kept. */
void at_end_of_transaction(XactEvent event, void*)
{
    if ((event == XACT_EVENT_ABORT || event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE) &&
        session::is_in_transaction())
        end();
}

shm_mq* make_queue(shm_toc* parts, Part part, Size size)
{
    shm_mq* queue = shm_mq_create(shm_toc_allocate(parts, size), size);
    shm_toc_insert(parts, part, queue);
    return queue;
}

struct Queues {
    shm_mq* requests;
    shm_mq* answers;
};

Queues make_segment(Oid role)
{
    shm_toc_estimator estimator;
    shm_toc_initialize_estimator(&estimator);
    shm_toc_estimate_chunk(&estimator, sizeof(Head));
    shm_toc_estimate_chunk(&estimator, kRequestsSize);
    shm_toc_estimate_chunk(&estimator, kAnswersSize);
    shm_toc_estimate_keys(&estimator, 3);
    const Size size = shm_toc_estimate(&estimator);
    current.segment = dsm_create(size, 0);
    dsm_pin_mapping(current.segment);
    shm_toc* parts = shm_toc_create(kMagic, dsm_segment_address(current.segment), size);
    auto* head = static_cast<Head*>(shm_toc_allocate(parts, sizeof(Head)));
    *head = {MyDatabaseId, role};
    shm_toc_insert(parts, kHead, head);
    const Queues queues = {make_queue(parts, kRequests, kRequestsSize),
                           make_queue(parts, kAnswers, kAnswersSize)};
    shm_mq_set_sender(queues.requests, MyProc);
    shm_mq_set_receiver(queues.answers, MyProc);
    return queues;
}

/* A session that has just ended, with its connection, has its place for some milliseconds. */
bool is_registered(BackgroundWorker& worker)
{
    for (int tries = 0; tries < 50; tries++) {
        if (RegisterDynamicBackgroundWorker(&worker, &current.worker))
            return true;
        WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 20, PG_WAIT_EXTENSION);
        ResetLatch(MyLatch);
        CHECK_FOR_INTERRUPTS();
    }
    return false;
}

void register_worker(Oid role)
{
    BackgroundWorker worker = {};
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker.bgw_start_time = BgWorkerStart_ConsistentState; /* a query on a standby, too */
    worker.bgw_restart_time = BGW_NEVER_RESTART;
    strlcpy(worker.bgw_library_name, "snowflake", sizeof(worker.bgw_library_name));
    strlcpy(worker.bgw_function_name, "snowflake_session_main", sizeof(worker.bgw_function_name));
    strlcpy(worker.bgw_type, "snowflake session", sizeof(worker.bgw_type));
    snprintf(worker.bgw_name, sizeof(worker.bgw_name), "snowflake session of role %u", role);
    worker.bgw_main_arg = UInt32GetDatum(dsm_segment_handle(current.segment));
    worker.bgw_notify_pid = MyProcPid;
    if (!is_registered(worker))
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_RESOURCES),
                 errmsg("no background worker is free for a session of role %s: "
                        "max_worker_processes is %d",
                        current.name, max_worker_processes),
                 errhint("Use fewer connections (--jobs), or ALTER SYSTEM SET max_worker_processes "
                         "= %d; and restart the server.",
                         max_worker_processes + 8)));
}

/* A FATAL error of the session ends the session, and not this one. */
ErrorData* read_error(StringInfo message)
{
    auto* error = static_cast<ErrorData*>(palloc(sizeof(ErrorData)));
    pq_parse_errornotice(message, error);
    const char* const texts[] = {error->message,      error->detail,        error->hint,
                                 error->context,      error->schema_name,   error->table_name,
                                 error->column_name,  error->datatype_name, error->constraint_name,
                                 error->internalquery};
    for (const char* part : texts)
        if (part != nullptr)
            pg_verifymbstr(part, static_cast<int>(strlen(part)), false);
    if (error->elevel > ERROR)
        error->elevel = ERROR;
    return error;
}

/* error: a FATAL one of the session, or null. */
[[noreturn]] void lost(const ErrorData* error)
{
    ereport(ERROR, (errcode(ERRCODE_CONNECTION_FAILURE),
                    errmsg("the session of role %s has ended", current.name),
                    error == nullptr ? 0 : errdetail("%s.", error->message)));
}

/* It reads no catalogue: an error may be under way. */
void tell_role(void*)
{
    if (geterrcode() == ERRCODE_INSUFFICIENT_PRIVILEGE && current.name != nullptr)
        errcontext("The SQL runs in a session of role %s.", current.name);
}

/* Only messages that a client of the session would get. A loop can raise a million. */
void pass_on(StringInfo message)
{
    const MemoryContext before = CurrentMemoryContext;
    const MemoryContext context =
        AllocSetContextCreate(before, "snowflake notice", ALLOCSET_SMALL_SIZES);
    MemoryContextSwitchTo(context);
    if (ErrorData* notice = read_error(message);
        notice->elevel == INFO || notice->elevel == NOTICE || notice->elevel == WARNING)
        ThrowErrorData(notice);
    MemoryContextSwitchTo(before);
    MemoryContextDelete(context);
}

/* Returns the error, if there was one. */
ErrorData* receive(const Answer& answer)
{
    for (ErrorData* error = nullptr;;) {
        Size size = 0;
        void* data = nullptr;
        if (shm_mq_receive(current.answers, &size, &data, false) != SHM_MQ_SUCCESS)
            lost(error);
        StringInfoData message = {static_cast<char*>(data), static_cast<int>(size),
                                  static_cast<int>(size), 0};
        switch (pq_getmsgbyte(&message)) {
        case 'T':
            if (answer.columns != nullptr)
                answer.columns(&message, answer.state);
            break;
        case 'D':
            if (answer.row != nullptr)
                answer.row(&message, answer.state);
            break;
        case 'E':
            error = read_error(&message);
            break;
        case 'N':
            pass_on(&message);
            break;
        case 'Z':
            current.status = static_cast<char>(pq_getmsgbyte(&message));
            return error;
        default: /* of settings, notifications and completed statements */
            break;
        }
    }
}

/* A position is in the text that the session was given, and not in the caller's statement. */
[[noreturn]] void rethrow(ErrorData* error, const char* sql)
{
    if (error->cursorpos > 0) {
        error->internalpos = error->cursorpos;
        error->internalquery = pstrdup(sql);
        error->cursorpos = 0;
    }
    ErrorContextCallback callback = {error_context_stack, tell_role, nullptr};
    error_context_stack = &callback;
    ThrowErrorData(error);
    pg_unreachable();
}

/* A request that is broken off leaves an answer in the queue. */
ErrorData* exchange(shm_mq_iovec (&parts)[2], const Answer& answer)
{
    ErrorData* volatile error = nullptr;
    current.is_busy = true;
    PG_TRY();
    {
        /* If the session has ended, its last message says why. */
        shm_mq_sendv(current.requests, parts, 2, false, true);
        error = receive(answer);
    }
    PG_CATCH();
    {
        end();
        PG_RE_THROW();
    }
    PG_END_TRY();
    current.is_busy = false;
    return error;
}

void start(Oid role)
{
    static bool is_registered = false;
    if (!is_registered)
        RegisterXactCallback(at_end_of_transaction, nullptr);
    is_registered = true;
    end_and_wait();
    PG_TRY();
    {
        current.memory =
            AllocSetContextCreate(TopMemoryContext, "snowflake session", ALLOCSET_SMALL_SIZES);
        const MemoryContext before = MemoryContextSwitchTo(current.memory);
        current.role = role;
        current.is_superuser = superuser_arg(role);
        current.name = errors::name_of_role(role);
        const Queues queues = make_segment(role);
        register_worker(role);
        on_dsm_detach(current.segment, end_worker, PointerGetDatum(current.worker));
        current.requests = shm_mq_attach(queues.requests, current.segment, current.worker);
        current.answers = shm_mq_attach(queues.answers, current.segment, current.worker);
        current.status = kIdle;
        MemoryContextSwitchTo(before);
    }
    PG_CATCH();
    {
        end();
        PG_RE_THROW();
    }
    PG_END_TRY();
}

/* A role that was a superuser when its process began keeps a right of that: before 17 it may
 * become every other role (SET SESSION AUTHORIZATION). */
bool is_usable(Oid role)
{
    pid_t process = 0;
    return current.segment != nullptr && current.role == role &&
           current.is_superuser == superuser_arg(role) && !session::is_in_transaction() &&
           GetBackgroundWorkerPid(current.worker, &process) == BGWH_STARTED;
}

/* Code of another role can run in the caller's process, too, as that of a view does. It gets
 * neither the session nor a session of the caller's. */
void require_caller()
{
    if (current.segment == nullptr)
        ereport(ERROR, (errcode(ERRCODE_CONNECTION_FAILURE), errmsg("there is no session")));
    if (InSecurityRestrictedOperation() || current.caller != GetUserId())
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("the session of role %s was begun by another role", current.name)));
}

} // namespace

void session::begin(Oid role)
{
    PreventCommandIfParallelMode("a session of another role");
    if (InSecurityRestrictedOperation())
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("a session of another role cannot begin within a "
                               "security-restricted operation")));
    if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("a session of another role cannot begin in a transaction that has "
                               "written")));
    if (!is_usable(role)) {
        start(role);
        current.caller = GetUserId();
        return;
    }
    current.caller = GetUserId();
    if (current.status == kAborted)
        ask(Kind::commands, "ROLLBACK");
    ask(Kind::commands, "DISCARD ALL");
}

StringInfoData session::request_of(Kind kind)
{
    StringInfoData request;
    initStringInfo(&request);
    appendStringInfoChar(&request, static_cast<char>(kind));
    return request;
}

void session::append_text(StringInfo request, const char* added)
{
    appendBinaryStringInfo(request, added, static_cast<int>(strlen(added)) + 1);
}

void session::ask(const StringInfoData& request, const char* sql, const Answer& answer,
                  const shm_mq_iovec& rest)
{
    require_caller();
    shm_mq_iovec parts[] = {{request.data, static_cast<Size>(request.len)}, rest};
    if (ErrorData* error = exchange(parts, answer); error != nullptr)
        rethrow(error, sql);
}

void session::ask(Kind kind, const char* sql, const Answer& answer)
{
    StringInfoData request = request_of(kind);
    append_text(&request, sql);
    ask(request, sql, answer);
}

bool session::is_in_transaction()
{
    return current.segment != nullptr && current.status == kInTransaction;
}
