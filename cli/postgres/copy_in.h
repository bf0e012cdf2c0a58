/* COPY ... FROM STDIN. */

#pragma once

#include <string>

#include "postgres/connection.h"

/* While it lives, the connection can do nothing else. One that is not ended leaves the connection
 * of no use. An error of a row is one of end(). */
class CopyIn
{
public:
    /* sql: a COPY with the format text. Throws ServerError. */
    CopyIn(Connection& connection, const std::string& sql);
    CopyIn(const CopyIn&) = delete;
    CopyIn& operator=(const CopyIn&) = delete;

    /* Any number of whole lines. Returns when they are sent, so memory holds no others. */
    void put(const std::string& lines);
    void end();

private:
    void flush();

    Connection& connection_;
};

/* A value as a line has it between its tabs. */
std::string copy_value(const std::string& text);
