#include "base/table.h"

#include <algorithm>
#include <cctype>
#include <iostream>

#include <sys/ioctl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/output.h"
#include "base/quoting.h"

namespace
{

/* How many rows the widths of a table are taken of, and how many bytes. They are kept until then,
 * and nothing is printed. */
constexpr std::size_t kFirstRows = 1000;
constexpr std::size_t kFirstSize = 8 << 20;

/* Characters, not bytes: the text is UTF-8, where every byte of a character but the first is
 * 10xxxxxx. */
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

/* RFC 4180. An empty text is quoted, because NULL is empty. COPY ... WITH (FORMAT csv) writes and
 * reads the two in the same way. */
std::string csv_of(const Value& value)
{
    const bool is_plain =
        value.kind == Kind::null ||
        (!value.text.empty() && value.text.find_first_of(",\"\r\n") == std::string::npos);
    return is_plain ? value.text : "\"" + doubled(value.text, '"') + "\"";
}

void print_csv_row(const Row& row)
{
    for (std::size_t i = 0; i < row.size(); i++)
        std::cout << (i == 0 ? "" : ",") << csv_of(row[i]);
    std::cout << "\n";
}

} // namespace

/* All output of PostgreSQL's numeric types but NaN and Infinity is a number of JSON as it is, with
 * an exponent, too. */
Kind kind_of_number(const std::string& text)
{
    constexpr int kSafeDigits = 15; /* that every reader of JSON keeps: it may read a double */
    if (text.find_first_of("NI") != std::string::npos)
        return Kind::text;
    const auto digits = std::count_if(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
    return digits <= kSafeDigits ? Kind::number : Kind::long_number;
}

Value::Value(std::int64_t number) : text(std::to_string(number))
{
    kind = kind_of_number(text);
}

std::size_t size_of(const Row& row)
{
    std::size_t size = 0;
    for (const Value& value : row)
        size += sizeof(Value) + value.text.capacity();
    return size;
}

Value text_or_null(const std::string& text)
{
    return text.empty() ? Value() : Value(text);
}

Format format_of(const std::string& name, bool json)
{
    return json || name == "json" ? Format::json
           : name == "jsonl"      ? Format::json_lines
           : name == "csv"        ? Format::csv
                                  : Format::table;
}

void print(const Table& table, Format format)
{
    RowPrinter printer(format);
    printer.begin(table.columns);
    for (const Row& row : table.rows)
        printer.print(row);
    printer.end();
}

bool is_wider_than_terminal(const Table& table)
{
    winsize size = {};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return false;
    std::size_t width = 0;
    for (std::size_t i = 0; i < table.columns.size(); i++) {
        std::size_t widest = width_of(visible(table.columns[i]));
        for (const Row& row : table.rows)
            widest = std::max(widest, width_of(visible(row[i].text)));
        width += widest + (i == 0 ? 0 : 2);
    }
    return width > size.ws_col;
}

void RowPrinter::begin(const std::vector<std::string>& columns)
{
    heading_.assign(columns.begin(), columns.end());
    for (const std::string& column : columns)
        widths_.push_back(width_of(visible(column)));
    if (format_ == Format::csv && has_heading_)
        print_csv_row(heading_);
    is_number_.assign(columns.size(), false);
}

void RowPrinter::print(const Row& row)
{
    if (format_ == Format::csv)
        return print_csv_row(row);
    if (format_ == Format::json || format_ == Format::json_lines)
        return print_json_row(row);
    if (has_rows_)
        return print_table_row(row);
    first_rows_.push_back(row);
    first_size_ += size_of(row);
    if (first_rows_.size() == kFirstRows || first_size_ >= kFirstSize)
        print_first_rows();
}

void RowPrinter::print_json_row(const Row& row)
{
    const bool is_array = format_ == Format::json;
    std::cout << (!is_array ? "{" : has_rows_ ? ",\n  {" : "[\n  {");
    for (std::size_t i = 0; i < row.size(); i++)
        std::cout << (i == 0 ? "" : ", ") << json_of(heading_[i]) << ": " << json_of(row[i]);
    std::cout << (is_array ? "}" : "}\n");
    has_rows_ = true;
}

void RowPrinter::print_first_rows()
{
    for (const Row& row : first_rows_)
        for (std::size_t i = 0; i < row.size(); i++) {
            widths_[i] = std::max(widths_[i], width_of(visible(row[i].text)));
            is_number_[i] =
                is_number_[i] || row[i].kind == Kind::number || row[i].kind == Kind::long_number;
        }
    print_table_row(heading_);
    for (const Row& row : first_rows_)
        print_table_row(row);
    first_rows_.clear();
    has_rows_ = true;
}

/* Numbers stand at the right, with their heading. No blanks at the end of a line. A newline in a
 * value must not begin a row. */
void RowPrinter::print_table_row(const Row& row)
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

void print_findings(const Table& findings, bool json, const std::string& summary)
{
    if (json)
        return print(findings, Format::json);
    for (const Row& row : findings.rows)
        std::cout << visible(row[1].text) << ": " << visible(row[2].text) << ": "
                  << visible(row[3].text) << "\n    HINT:  " << visible(row[4].text) << "\n";
    std::cout << summary << ", " << count_of(findings.rows.size(), "finding") << "\n";
}
