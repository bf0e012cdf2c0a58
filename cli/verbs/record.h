/* The changes that a shard has had, as its definition records them: a function snowflake_changes()
 * in its schema returns their names in order. A comment behind each name is the hash of its SQL. So
 * pg_dump, clone and move carry the record, and diff shows which shards lack a change.
 *
 * The function is read from the catalogue and never called: the owner of the shard can have put any
 * code into it. A false record does harm to that shard alone. */

#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/shards.h"
#include "verbs/changes.h"

class Record
{
public:
    /* An empty record. */
    Record() = default;
    /* source: of the function. If run has not written it, has() is an error. No error here:
     * read_records() reads those of all shards, also of shards that are not asked for. */
    explicit Record(const std::string& source);

    /* Whether the shard has had the change; a Failure if its SQL was another. The hash of the
     * change must be there. */
    bool has(const Change& change) const;
    void add(const Change& change) { entries_.push_back({change.name, change.hash}); }

    /* The source of the function. */
    std::string source() const;

private:
    struct Entry {
        std::string name;
        std::string hash;
    };

    /* Returns false if source() cannot have written the line. */
    bool read_entry(const std::string& line);

    std::vector<Entry> entries_;
    bool is_readable_ = true;
};

/* The records of the schemas that have one, by the OID of the schema. One query for all shards of a
 * server, and without locks: a run may be writing one of them. */
std::map<std::string, Record> read_records(Connection& connection);

/* Waits until no other run changes the shard, until the end of the transaction, which must be READ
 * COMMITTED: the caller reads the record in a later statement, with a snapshot of its own. The wait
 * has an end: has_limit says that lock_timeout is set. A ServerError of 55P03 names the holder. */
void lock_record(Connection& connection, const Shard& shard, bool has_limit);

/* The record of one shard. */
Record read_record(Connection& connection, const Shard& shard);

/* Statements that write it, to be run in the transaction of the change, as the change is run. */
std::string writing_of(Connection& connection, const Shard& shard, const Record& record);
