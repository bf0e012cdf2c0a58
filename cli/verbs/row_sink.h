/* Where query puts the rows of the shards. */

#pragma once

#include <vector>

#include "base/shards.h"
#include "postgres/values.h"

/* Threads call all but finish() at the same time. place: that of the shard in the order of all. */
struct RowSink {
    RowSink() = default;
    RowSink(const RowSink&) = delete;
    RowSink& operator=(const RowSink&) = delete;
    virtual ~RowSink() = default;

    /* The columns of the shard's rows: before the first of them, and for each batch. A Failure if
     * they are not those of the other shards. */
    virtual void begin(const Shard& shard, const std::vector<Column>& columns) = 0;
    /* The first two values of each row are the shard and its schema. May wait for others. */
    virtual void add(std::size_t place, std::vector<Row> rows) = 0;
    /* The shard has no more rows; also after an error. */
    virtual void end(std::size_t place) = 0;
    /* is_complete: all shards have answered. */
    virtual void finish(bool is_complete) = 0;
};

/* The names behind those that are there, with a number if they are there already: a key of JSON
 * comes once, and a query may have a column shard of its own. */
std::vector<std::string> names_behind(std::vector<std::string> names,
                                      const std::vector<Column>& columns);

/* The columns that stand first in all rows of query. */
inline const std::vector<std::string> kShardColumns = {"shard", "schema"};
