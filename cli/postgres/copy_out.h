/* The two ends of a copy that goes through the command: COPY ... TO STDOUT, and a query that is
 * sent while the caller reads on. */

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "postgres/connection.h"

/* While it lives, the connection can do nothing else. One that was not read to its end leaves the
 * connection of no use. */
class CopyOut
{
public:
    /* Throws ServerError. */
    CopyOut(Connection& connection, const std::string& sql);
    CopyOut(const CopyOut&) = delete;
    CopyOut& operator=(const CopyOut&) = delete;

    /* A message, which is a row; valid until the next call. False at the end. */
    bool next(std::string_view& row);

private:
    Connection& connection_;
    std::unique_ptr<char, void (*)(void*)> row_;
};

/* A query of the connection whose result is taken later. */
class SentQuery
{
public:
    explicit SentQuery(Connection& connection) : connection_(connection) {}

    /* The last parameter is bytes, in the binary format. Returns when all is sent. */
    void send(const std::string& sql, const std::vector<std::string>& parameters,
              const std::string& bytes);
    /* Throws ServerError. Nothing if no query was sent. */
    void finish();

private:
    Connection& connection_;
    bool is_sent_ = false;
};
