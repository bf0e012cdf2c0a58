/* The indexes of a shard on the target, which of them are made before the rows and which after
 * them. A large index is built in a fraction of the time that it takes to grow row by row. */

#pragma once

#include <atomic>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "move/session.h"
#include "postgres/dump.h"

/* Keys are primary keys, unique and exclusion constraints, and indexes that are replica identities.
 * Those of large tables wait for the rows. */
std::vector<Archive::Item> keys_before_rows(Connection& source, const Move& move,
                                            const Archive& archive);
/* The other objects that pg_dump makes after the rows. */
std::vector<Archive::Item> all_but_keys(Connection& source, const Move& move,
                                        const Archive& archive);

/* The keys that the target lacks, each made as soon as the rows of its table are copied. */
class KeysBehindRows
{
public:
    /* jobs: so many tables get their keys at the same time, and in addition those that are being
     * copied: the servers set how many these are. */
    KeysBehindRows(Servers& servers, const Move& move, int jobs);
    KeysBehindRows(const KeysBehindRows&) = delete;
    KeysBehindRows& operator=(const KeysBehindRows&) = delete;
    ~KeysBehindRows() { is_given_up_ = true; }

    /* To be called several times a second: begins each piece of work that can begin. Raises an
     * error of the work. */
    bool are_built();

private:
    struct Keys {
        std::string name; /* of one of them */
        std::string statements;
    };

    void build(const std::string& table, const Keys& keys);

    Servers& servers_;
    const Move& move_;
    const std::size_t jobs_;
    std::string sole_owner_;
    std::map<std::string, Keys> missing_; /* by the tables that wait */
    std::atomic<bool> is_given_up_ = false;
    std::vector<std::future<void>> running_; /* the last one: its destructor waits for them */
};

/* Takes the large ones out of the items, and returns those that the target does not have yet, the
 * largest first. They are ordinary indexes: a partitioned one is made without its parts. */
std::vector<Archive::Item> take_large_indexes(Servers& servers, const Move& move,
                                              std::vector<Archive::Item>& items);

/* Each statement in a transaction of its own, by as many sessions of the target. An index that is
 * built stays if another one fails or the command is killed. */
void build_indexes(Connection& target, const Move& move, const std::vector<std::string>& statements,
                   const std::string& sole_owner, int sessions);
