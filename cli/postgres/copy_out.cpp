#include "postgres/copy_out.h"

#include <utility>

CopyOut::CopyOut(Connection& connection, const std::string& sql)
    : connection_(connection), row_(nullptr, PQfreemem)
{
    connection.begin_copy(sql, PGRES_COPY_OUT);
}

/* The end of the COPY has a result, which can be an error, and so has a lost connection. */
bool CopyOut::next(std::string_view& row)
{
    PGconn* const handle = connection_.handle_.get();
    char* data = nullptr;
    int length = 0;
    while ((length = PQgetCopyData(handle, &data, 1)) == 0) {
        connection_.wait(false);
        if (PQconsumeInput(handle) == 0) {
            length = -1;
            break;
        }
    }
    row_.reset(data);
    if (length < 0)
        connection_.finish(Result(nullptr), length == -1);
    else
        row = std::string_view(data, static_cast<std::size_t>(length));
    return length > 0;
}

/* Input is read meanwhile, because a server that cannot send its notices does not read, either. A
 * lost connection is an error of finish(). */
void SentQuery::send(const std::string& sql, const std::vector<std::string>& parameters,
                     const std::string& bytes)
{
    std::vector<const char*> values;
    for (const std::string& parameter : parameters)
        values.push_back(parameter.c_str());
    values.push_back(bytes.data());
    std::vector<int> lengths(values.size());
    std::vector<int> formats(values.size());
    lengths.back() = static_cast<int>(bytes.size());
    formats.back() = 1;
    connection_.prepare(sql);
    PGconn* const handle = connection_.handle_.get();
    is_sent_ = true;
    if (PQsendQueryParams(handle, sql.c_str(), static_cast<int>(values.size()), nullptr,
                          values.data(), lengths.data(), formats.data(), 0) != 1)
        finish();
    while (PQflush(handle) == 1 && PQconsumeInput(handle) == 1)
        connection_.wait(true);
}

void SentQuery::finish()
{
    if (std::exchange(is_sent_, false))
        connection_.finish(Result(nullptr), true);
}
