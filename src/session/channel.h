/*
 * The shared memory of a session and its caller: the role, and a queue in each direction. A request
 * begins with its kind, and each text in it ends with a zero byte. To the caller go the messages of
 * PostgreSQL's protocol, without their length, as pqmq.c sends them; the last one of each request
 * is ReadyForQuery.
 */
#pragma once

#include "pg.h"

namespace snowflake::session
{

constexpr std::uint64_t kMagic = 0x5F10A4E5E5510A;
constexpr Size kRequestsSize = 1 << 20; /* the rows of a copy: fewer changes of the process */
constexpr Size kAnswersSize = 65536;

enum Part : std::uint64_t { kHead, kRequests, kAnswers };

struct Head {
    Oid database;
    Oid role;
};

enum class Kind : char {
    commands = 'Q', /* SQL of the command, which may begin and end transactions */
    script = 'S',   /* SQL of others, in such a transaction */
    alone = 'A',    /* one statement of others, in no transaction */
    query = 'D',    /* opens the cursor snowflake_rows: the parameters, then the text */
    schema = 'E',   /* the OID of a schema: locks it, and makes it the search_path */
    table = 'T',   /* the OID of a table, whether to wait for its lock, and a query that reads it */
    copy = 'P',    /* the same of a table, then the columns, the format and the rows of a COPY */
    create = 'C',  /* a schema: the OID of the caller's role, then the name */
    rename = 'R',  /* a schema of the role: the same, then the new name */
    comment = 'M', /* the OIDs of the caller's role and of the catalogue, the name, the text */
};

} // namespace snowflake::session
