#include "verbs/rows.h"

#include <algorithm>
#include <cctype>
#include <iostream>

#include <nlohmann/json.hpp>

namespace
{

/* How many rows the widths of a table are taken of. They are kept until then, and nothing is
 * printed. */
constexpr std::size_t kFirstRows = 1000;

/* Bytes of rows that wait for their turn, of all shards. A bound, because a query may return more
 * than memory. */
constexpr std::size_t kMaxWaiting = 16 << 20;

/* NaN and Infinity are text, because JSON has no such numbers. All other output of PostgreSQL's
 * numeric types is a number of JSON as it is, with an exponent, too. */
Kind kind_of_number(const std::string& text)
{
    constexpr int kSafeDigits = 15; /* that every reader of JSON keeps: it may read a double */
    if (text.find_first_of("NI") != std::string::npos)
        return Kind::text;
    const auto digits = std::count_if(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
    return digits <= kSafeDigits ? Kind::number : Kind::long_number;
}

Kind kind_of(unsigned int type, const std::string& text)
{
    /* OIDs of pg_type.dat, which never change: bool; bigint, smallint, integer, oid, real, double
     * precision, numeric. */
    constexpr unsigned int kBool = 16;
    const std::set<unsigned int> kNumbers = {20, 21, 23, 26, 700, 701, 1700};
    return type == kBool              ? Kind::boolean
           : kNumbers.count(type) > 0 ? kind_of_number(text)
                                      : Kind::text;
}

std::size_t size_of(const std::vector<ValueRow>& rows)
{
    std::size_t size = 0;
    for (const ValueRow& row : rows)
        for (const Value& value : row)
            size += sizeof(Value) + value.text.capacity();
    return size;
}

/* Characters, not bytes: the connection's encoding is UTF-8, where every byte of a character but
 * the first is 10xxxxxx. */
std::size_t width_of(const std::string& text)
{
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/* replace: text of a database in SQL_ASCII may be no UTF-8, and would be an exception in the middle
 * of the output. */
std::string json_of(const std::string& text)
{
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_of(const Value& value)
{
    switch (value.kind) {
    case Kind::null:
        return "null";
    case Kind::number:
        return value.text;
    case Kind::boolean:
        return value.text == "t" ? "true" : "false";
    default:
        return json_of(value.text);
    }
}

/* An empty text is quoted, because NULL is empty. COPY ... WITH (FORMAT csv) writes and reads the
 * two in the same way. */
std::string csv_of(const Value& value)
{
    const bool is_plain =
        value.kind == Kind::null ||
        (!value.text.empty() && value.text.find_first_of(",\"\r\n") == std::string::npos);
    return is_plain ? value.text : "\"" + doubled(value.text, '"') + "\"";
}

void print_csv_row(const ValueRow& row)
{
    for (std::size_t i = 0; i < row.size(); i++)
        std::cout << (i == 0 ? "" : ",") << csv_of(row[i]);
    std::cout << "\n";
}

} // namespace

std::vector<Column> columns_of(const Result& result)
{
    std::vector<Column> columns;
    for (int i = 0; i < result.columns(); i++)
        columns.push_back({result.name(i), result.type(i)});
    return columns;
}

ValueRow row_of(const Result& result, int row, const std::vector<Column>& columns)
{
    ValueRow values;
    for (int i = 0; i < result.columns(); i++) {
        const unsigned int type = columns[static_cast<std::size_t>(i)].type;
        const std::string text = result.text(row, i);
        values.push_back({result.is_null(row, i) ? Kind::null : kind_of(type, text), text});
    }
    return values;
}

void RowPrinter::begin(const std::vector<std::string>& columns)
{
    columns_ = columns;
    ValueRow heading;
    for (const std::string& column : columns) {
        heading.push_back({Kind::text, column});
        widths_.push_back(width_of(visible(column)));
    }
    if (format_ == Format::csv)
        print_csv_row(heading);
    is_number_.assign(columns.size(), false);
}

void RowPrinter::print(const ValueRow& row)
{
    if (format_ == Format::csv)
        return print_csv_row(row);
    if (format_ == Format::json) {
        std::cout << (has_rows_ ? ",\n" : "[\n");
        for (std::size_t i = 0; i < row.size(); i++)
            std::cout << (i == 0 ? "  {" : ", ") << json_of(columns_[i]) << ": " << json_of(row[i]);
        std::cout << "}";
        has_rows_ = true;
        return;
    }
    if (has_rows_)
        return print_table_row(row);
    first_rows_.push_back(row);
    if (first_rows_.size() == kFirstRows)
        print_first_rows();
}

void RowPrinter::print_first_rows()
{
    for (const ValueRow& row : first_rows_)
        for (std::size_t i = 0; i < row.size(); i++) {
            widths_[i] = std::max(widths_[i], width_of(visible(row[i].text)));
            is_number_[i] =
                is_number_[i] || row[i].kind == Kind::number || row[i].kind == Kind::long_number;
        }
    ValueRow heading;
    for (const std::string& column : columns_)
        heading.push_back({Kind::text, column});
    print_table_row(heading);
    for (const ValueRow& row : first_rows_)
        print_table_row(row);
    first_rows_.clear();
    has_rows_ = true;
}

/* Numbers stand at the right, with their heading. No blanks at the end of a line. A newline in a
 * value must not begin a row. */
void RowPrinter::print_table_row(const ValueRow& row)
{
    for (std::size_t i = 0; i < row.size(); i++) {
        const std::string text = visible(row[i].text);
        const std::size_t width = width_of(text);
        const std::string space(widths_[i] - std::min(widths_[i], width), ' ');
        const bool is_last = i + 1 == row.size();
        const bool is_end = is_last && (!is_number_[i] || text.empty());
        std::cout << (is_end          ? text
                      : is_number_[i] ? space + text
                                      : text + space)
                  << (is_last ? "\n" : "  ");
    }
}

void RowPrinter::end()
{
    if (format_ == Format::json)
        std::cout << (has_rows_ ? "\n]\n" : "[]\n");
    else if (format_ == Format::table && !has_rows_)
        print_first_rows();
    std::cout << std::flush;
}

/* The one whose turn it is never waits, so the others go on some time. Rows that are larger than
 * the bound by themselves wait for their turn, and are printed then. */
void RowOrder::add(std::size_t shard, std::vector<ValueRow> rows)
{
    const std::size_t size = size_of(rows);
    std::unique_lock<std::mutex> lock(lock_);
    turn_.wait(lock, [&] { return shard == now_ || bytes_ + size <= kMaxWaiting; });
    Waiting& waiting = waiting_[shard];
    std::move(rows.begin(), rows.end(), std::back_inserter(waiting.rows));
    waiting.bytes += size;
    bytes_ += size;
    print_waiting();
}

void RowOrder::end(std::size_t shard)
{
    const std::lock_guard<std::mutex> lock(lock_);
    waiting_[shard].has_ended = true;
    print_waiting();
}

void RowOrder::print_waiting()
{
    for (; now_ < waiting_.size(); now_++) {
        Waiting& waiting = waiting_[now_];
        for (const ValueRow& row : waiting.rows)
            printer_.print(row);
        bytes_ -= std::exchange(waiting.bytes, 0);
        waiting.rows = {};
        if (!waiting.has_ended)
            break;
    }
    /* All: one of them may have got its turn, and others may have room now. */
    turn_.notify_all();
}
