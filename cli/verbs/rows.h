/* The rows of a query, printed as they come. Rows are kept only for the order of the shards and for
 * the widths of a table, because a query may return more than memory. */

#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "base/output.h"
#include "postgres/catalog.h"

enum class Kind {
    null,
    text,
    number,
    long_number, /* of more digits than programs keep that read JSON: text there */
    boolean
};

struct Value {
    Kind kind;
    std::string text;
};

using ValueRow = std::vector<Value>;

/* type: its OID; that of a domain is its base type, so a domain over bigint is a number, too. */
struct Column {
    std::string name;
    unsigned int type;
};

std::vector<Column> columns_of(const Result& result);

/* The columns can have other types than those of the result, whose values are all text then. */
ValueRow row_of(const Result& result, int row, const std::vector<Column>& columns);

/* Prints rows of the same columns. The first rows decide the widths of a table's columns; wider
 * values of later rows stand out. Not for several threads at once: RowOrder calls print() under its
 * lock. */
class RowPrinter
{
public:
    explicit RowPrinter(Format format) : format_(format) {}

    /* Names must differ from each other. */
    void begin(const std::vector<std::string>& columns);
    void print(const ValueRow& row);
    /* Also without rows: the heading of a table, [] in JSON. begin() must have been called. */
    void end();

private:
    void print_table_row(const ValueRow& row);
    void print_first_rows();

    const Format format_;
    std::vector<std::string> columns_;
    std::vector<ValueRow> first_rows_; /* that the widths are taken of */
    std::vector<std::size_t> widths_;
    std::vector<bool> is_number_;
    bool has_rows_ = false;
};

/* Puts the rows of shards that are asked at the same time into the order of the shards. Threads add
 * them; those of the shard whose turn it is are printed at once, and a thread that is too far ahead
 * waits. That needs two things of the caller, or the waits would not end: each server's shards are
 * taken in this order, so that the shard whose turn it is has a thread, or gets the next one that
 * is free; and end() is called for each shard, also after an error. */
class RowOrder
{
public:
    RowOrder(std::size_t shards, RowPrinter& printer) : waiting_(shards), printer_(printer) {}

    /* shard: its place in the order. */
    void add(std::size_t shard, std::vector<ValueRow> rows);
    /* The shard has no more rows. */
    void end(std::size_t shard);

private:
    struct Waiting {
        std::vector<ValueRow> rows;
        std::size_t bytes = 0;
        bool has_ended = false;
    };

    void print_waiting();

    std::mutex lock_;
    std::condition_variable turn_;
    std::vector<Waiting> waiting_;
    RowPrinter& printer_;
    std::size_t now_ = 0; /* whose turn it is */
    std::size_t bytes_ = 0;
};
