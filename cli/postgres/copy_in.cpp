#include "postgres/copy_in.h"

#include <poll.h>

#include "postgres/error_text.h"

CopyIn::CopyIn(Connection& connection, const std::string& sql) : connection_(connection)
{
    connection.begin_copy(sql, PGRES_COPY_IN);
}

/* libpq would take any number of lines into its buffer, because the connection does not block. */
void CopyIn::put(const std::string& lines)
{
    PGconn* const handle = connection_.handle_.get();
    if (PQputCopyData(handle, lines.data(), static_cast<int>(lines.size())) != 1)
        throw ServerError(trimmed(PQerrorMessage(handle)), "");
    flush();
}

void CopyIn::end()
{
    const bool is_sent = PQputCopyEnd(connection_.handle_.get(), nullptr) == 1;
    connection_.finish(Result(nullptr), is_sent);
}

/* Input is read meanwhile, because a server that cannot send its notices does not read, either. */
void CopyIn::flush()
{
    PGconn* const handle = connection_.handle_.get();
    for (int state = 0; (state = PQflush(handle)) != 0;) {
        if (state < 0 || PQconsumeInput(handle) == 0)
            throw ServerError(trimmed(PQerrorMessage(handle)), "");
        pollfd socket = {PQsocket(handle), POLLIN | POLLOUT, 0};
        poll(&socket, 1, 50);
    }
}

std::string copy_value(const std::string& text)
{
    std::string value;
    for (const char c : text)
        switch (c) {
        case '\\':
            value += "\\\\";
            break;
        case '\t':
            value += "\\t";
            break;
        case '\n':
            value += "\\n";
            break;
        case '\r':
            value += "\\r";
            break;
        default:
            value += c;
        }
    return value;
}
