#include "postgres/values.h"

#include <set>

namespace
{

Kind kind_of(unsigned int type, const std::string& text)
{
    /* OIDs of pg_type.dat, which never change: bool; bigint, smallint, integer, oid, real, double
     * precision, numeric. */
    constexpr unsigned int kBool = 16;
    static const std::set<unsigned int> kNumbers = {20, 21, 23, 26, 700, 701, 1700};
    return type == kBool              ? Kind::boolean
           : kNumbers.count(type) > 0 ? kind_of_number(text)
                                      : Kind::text;
}

} // namespace

std::vector<Column> columns_of(const Result& result)
{
    std::vector<Column> columns;
    for (int i = 0; i < result.columns(); i++)
        columns.push_back({result.name(i), result.type(i)});
    return columns;
}

Row row_of(const Result& result, int row, const std::vector<Column>& columns)
{
    Row values;
    for (int i = 0; i < result.columns(); i++) {
        const unsigned int type = columns[static_cast<std::size_t>(i)].type;
        std::string text = result.text(row, i);
        const Kind kind = result.is_null(row, i) ? Kind::null : kind_of(type, text);
        values.emplace_back(kind, std::move(text));
    }
    return values;
}

void add_rows(Table& table, const Result& result)
{
    const std::vector<Column> columns = columns_of(result);
    for (int row = 0; row < result.rows(); row++)
        table.rows.push_back(row_of(result, row, columns));
}
