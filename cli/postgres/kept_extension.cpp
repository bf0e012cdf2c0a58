/* The extension is kept while a connection calls its functions.
 *
 * The command calls functions of snowflake_internal by their names, with its own rights. The owner
 * of the database or of the extension's schema may drop the extension, and make a schema of that
 * name with functions of its own. So before a statement with such a call, the connection reads the
 * OID of keep_extension(), and calls it by this OID: it locks the extension for the session, and
 * the OID can lead to no other function. If the extension was as it should be when the OID was
 * read, it still is: all changes but DROP EXTENSION are those of superusers or of this role.
 *
 * PostgreSQL releases the lock when a transaction fails: it is taken again before the next
 * statement. On a standby it is that of a transaction. */

#include <chrono>
#include <future>

#include <sys/socket.h>

#include "postgres/connection.h"
#include "sql/sql.h"

namespace
{

bool has_call(const std::string& sql)
{
    return sql.find("snowflake_internal.") != std::string::npos;
}

bool is_standby(PGconn* handle)
{
    const char* const state = PQparameterStatus(handle, "in_hot_standby");
    return state != nullptr && std::string(state) == "on";
}

unsigned int oid_of(const Result& row, int column)
{
    return static_cast<unsigned int>(row.number(0, column));
}

} // namespace

/* Before each statement. Functions of the command's own, such as those of the fence, call the
 * extension, too, so all statements after the first call are those of a kept extension. */
void Connection::prepare(const std::string& sql)
{
    settle();
    if (PQtransactionStatus(handle_.get()) == PQTRANS_INERROR)
        return;
    if (extension_ == Kept::lost || (extension_ == Kept::never && has_call(sql)))
        keep_extension();
}

/* A statement by itself gets a transaction on a standby. */
Result Connection::in_transaction(const std::string& sql, const std::function<Result()>& statement)
{
    if (!is_standby(handle_.get()) || !has_call(sql) || is_in_transaction()) {
        prepare(sql);
        return statement();
    }
    try {
        run("BEGIN");
        prepare(sql);
        Result result = statement();
        run("COMMIT");
        return result;
    } catch (...) {
        rollback();
        throw;
    }
}

void Connection::keep_extension()
{
    extension_ = Kept::never;
    const Result found = query(kept_extension_sql);
    if (!found.is_null(0, 2))
        throw Failure(server() + ": " + visible(found.text(0, 2)) +
                      ", so code of another role could run here with the rights of role " +
                      visible(user()) +
                      (found.is_null(0, 3) ? "" : "\nHINT:  " + visible(found.text(0, 3))));
    if (found.is_null(0, 0) || found.is_null(0, 1))
        throw Failure(server() + ": extension snowflake is not installed there, or is of another "
                                 "version\nHINT:  CREATE EXTENSION snowflake; or ALTER EXTENSION "
                                 "snowflake UPDATE;");
    call_by_oid(oid_of(found, 0), oid_of(found, 1));
    extension_ = is_standby(handle_.get()) ? Kept::never : Kept::now;
}

/* PQfn() blocks, so a thread calls it. To give it up, the connection is closed. */
void Connection::call_by_oid(unsigned int function, unsigned int argument)
{
    PGconn* const handle = handle_.get();
    PQArgBlock block = {};
    block.len = 4;
    block.isint = 1;
    block.u.integer = static_cast<int>(argument);
    int value = 0;
    int length = 0;
    std::future<PGresult*> answer = std::async(std::launch::async, [&] {
        return PQfn(handle, static_cast<int>(function), &value, &length, 0, &block, 1);
    });
    try {
        while (answer.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready)
            if (check_)
                check_();
    } catch (...) {
        shutdown(PQsocket(handle), SHUT_RDWR);
        PQclear(answer.get());
        throw;
    }
    finish(Result(answer.get()), false);
}

/* ROLLBACK is the tag of a COMMIT that failed, too, and that of ROLLBACK TO, which keeps the lock:
 * to take it twice does no harm. */
void Connection::take_note(const Result& result)
{
    if (extension_ == Kept::now && (!result.sqlstate().empty() || result.tag() == "ROLLBACK"))
        extension_ = Kept::lost;
}
