/* Rows on the standard output: as an aligned table, as JSON, as lines of JSON or as CSV. */

#pragma once

#include <cstdint>
#include <string>
#include <vector>

enum class Kind {
    null,
    text,
    number,
    long_number, /* of more digits than programs keep that read JSON: text there */
    boolean
};

struct Value {
    Value() = default;
    Value(Kind of, std::string shown) : kind(of), text(std::move(shown)) {}
    Value(std::string shown) : Value(Kind::text, std::move(shown)) {}
    Value(const char* shown) : Value(Kind::text, shown) {}
    Value(std::int64_t number);
    Value(int number) : Value(std::int64_t{number}) {}

    Kind kind = Kind::null;
    std::string text{};
};

/* NULL for an empty text. */
Value text_or_null(const std::string& text);

/* The kind of a number as PostgreSQL writes it. NaN and Infinity are text, because JSON has no such
 * numbers. */
Kind kind_of_number(const std::string& text);

using Row = std::vector<Value>;

/* The bytes of a row in memory. */
std::size_t size_of(const Row& row);

struct Table {
    std::vector<std::string> columns;
    std::vector<Row> rows;
};

/* JSON is an array with a line for each row, or without the array; CSV has a line with the
 * headings.
 */
enum class Format { table, json, json_lines, csv };

/* The format that --format and --json ask for. */
Format format_of(const std::string& name, bool json);

void print(const Table& table, Format format);

/* Whether a terminal, if the standard output is one, would break its rows. */
bool is_wider_than_terminal(const Table& table);

/* Prints rows of the same columns as they come. The first rows decide the widths of a table's
 * columns; wider values of later rows stand out. Not for several threads at once. */
class RowPrinter
{
public:
    /* has_heading: of CSV. */
    explicit RowPrinter(Format format, bool has_heading = true)
        : format_(format), has_heading_(has_heading)
    {
    }

    /* Names must differ from each other. */
    void begin(const std::vector<std::string>& columns);
    void print(const Row& row);
    /* Call it without rows, too: it prints the heading of a table, or [] in JSON. begin() must have
     * been called. */
    void end();

private:
    void print_json_row(const Row& row);
    void print_table_row(const Row& row);
    void print_first_rows();

    const Format format_;
    const bool has_heading_;
    Row heading_;
    std::vector<Row> first_rows_; /* that the widths are taken of */
    std::size_t first_size_ = 0;
    std::vector<std::size_t> widths_;
    std::vector<bool> is_number_;
    bool has_rows_ = false;
};

/* Rows of finding, server, object, problem and hint, as a list with a last line; or in JSON. */
void print_findings(const Table& findings, bool json, const std::string& summary);
