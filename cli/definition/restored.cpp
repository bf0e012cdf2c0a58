#include "definition/restored.h"

#include <algorithm>
#include <map>
#include <vector>

#include "postgres/sql_text.h"

namespace
{

/* Returns the position after the cast's type: ::character varying(10)[]. The words are in the order
 * in which format_type() writes them. */
std::size_t end_of_cast(std::string_view sql, std::size_t at)
{
    at += 2;
    while (at < sql.size() && (is_word_part(sql[at]) || sql[at] == '.' || sql[at] == '"'))
        at = sql[at] == '"' ? end_of_quoted(sql, at) : at + 1;
    for (const std::string_view word :
         {" varying", " precision", "(", " without time zone", " with time zone", "["})
        if (sql.substr(at, word.size()) == word) {
            at += word.size();
            if (word == "(" || word == "[")
                at = std::min(sql.find(word == "(" ? ')' : ']', at), sql.size() - 1) + 1;
        }
    return at;
}

constexpr std::string_view kArray = "ARRAY[";

/* Returns the position after the elements that begin here, and adds each of them. code
 * is code_of() the text. */
std::size_t split_elements(std::string_view code, std::size_t begin, std::vector<Range>& elements)
{
    int depth = 0;
    for (std::size_t at = begin; at < code.size(); at++) {
        const char c = code[at];
        depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
        if (depth < 0 || (depth == 0 && c == ',')) {
            elements.push_back({begin, at});
            begin = at + 2; /* the server writes ", " */
        }
        if (depth < 0)
            return at;
    }
    return std::string::npos;
}

/* ARRAY[(a)::type, (b)::type], and the same for arrays within the array. */
std::string cast_elements(const std::string& sql, const std::string& code,
                          const std::vector<Range>& elements, const std::string& type,
                          bool has_parentheses)
{
    std::string array;
    for (const Range& element : elements) {
        array += array.empty() ? std::string(kArray) : ", ";
        const std::string text = sql.substr(element.begin, element.end - element.begin);
        std::vector<Range> inner;
        if (code.compare(element.begin, kArray.size(), kArray) == 0 &&
            split_elements(code, element.begin + kArray.size(), inner) == element.end - 1)
            array += cast_elements(sql, code, inner, type, has_parentheses);
        else
            array += has_parentheses ? "(" + text + ")::" + type : text + "::" + type;
    }
    return array + "]";
}

/* The server writes (ARRAY[...])::text[], and without parentheses in an extended statistic. When
 * that is parsed, transformTypeCast() passes the type on to the elements of an ARRAY[], so the
 * restored expression has a cast for each element. */
std::string push_casts_down(const std::string& sql)
{
    const std::string code = code_of(sql);
    std::string pushed;
    std::size_t done = 0;
    for (std::size_t at = 0; (at = code.find(kArray, at)) != std::string::npos; at++) {
        std::vector<Range> elements;
        const std::size_t end = split_elements(code, at + kArray.size(), elements);
        const bool has_parentheses =
            end != std::string::npos && at > done && code[at - 1] == '(' && code[end + 1] == ')';
        const std::size_t cast = end + (has_parentheses ? 2 : 1);
        if (end == std::string::npos || code.compare(cast, 2, "::") != 0)
            continue;
        const std::size_t type_end = end_of_cast(sql, cast);
        /* Only a cast to an array type is passed on. */
        if (sql.compare(type_end - 2, 2, "[]") != 0)
            continue;
        const std::string type = sql.substr(cast + 2, type_end - cast - 4);
        pushed += sql.substr(done, at - (has_parentheses ? 1 : 0) - done) +
                  cast_elements(sql, code, elements, type, has_parentheses);
        done = at = type_end;
    }
    return pushed + sql.substr(done);
}

/* As the server names a column that is such a cast. It writes some types otherwise in SQL.
 * FigureColname() takes the last part of the type's name, and gram.y makes pg_catalog.int4 of
 * integer. */
std::string name_of_type(std::string_view type)
{
    std::string name;
    int depth = 0;
    for (const char c : type) {
        depth += c == '(' || c == '[' ? 1 : 0;
        if (depth == 0)
            name += c;
        depth -= c == ')' || c == ']' ? 1 : 0;
    }
    static const std::map<std::string_view, const char*> kNames = {
        {"integer", "int4"},
        {"bigint", "int8"},
        {"smallint", "int2"},
        {"real", "float4"},
        {"double precision", "float8"},
        {"boolean", "bool"},
        {"character", "bpchar"},
        {"character varying", "varchar"},
        {"bit varying", "varbit"},
        {"timestamp without time zone", "timestamp"},
        {"timestamp with time zone", "timestamptz"},
        {"time without time zone", "time"},
        {"time with time zone", "timetz"},
    };
    const auto found = kNames.find(name);
    return found == kNames.end() ? name.substr(name.rfind('.') + 1) : found->second;
}

/* A constant of the second arm of a UNION has no name at first, and that of its type later. */
std::string drop_names_of_types(std::string sql)
{
    static const std::string kAs = " AS ";
    std::string code = code_of(sql);
    for (std::size_t at = 0; (at = code.find("::", at)) != std::string::npos;) {
        const std::size_t end = end_of_cast(sql, at);
        const std::string name = name_of_type(std::string_view(sql).substr(at + 2, end - at - 2));
        for (const std::string& written : {kAs + name, kAs + "\"" + name + "\""})
            if (sql.compare(end, written.size(), written) == 0 &&
                (end + written.size() == sql.size() || !is_word_part(sql[end + written.size()])))
                for (std::string* text : {&sql, &code})
                    text->erase(end, written.size());
        at = end;
    }
    return sql;
}

/* The parenthesis that the one at this place closes. */
std::size_t begin_of_group(std::string_view code, std::size_t end)
{
    int depth = 0;
    for (std::size_t at = end + 1; at-- > 0;) {
        depth += code[at] == ')' ? 1 : code[at] == '(' ? -1 : 0;
        if (depth == 0)
            return at;
    }
    return std::string::npos;
}

bool has_connective(std::string_view code, const std::string& connective)
{
    int depth = 0;
    for (std::size_t at = 0; at < code.size(); at++) {
        depth += code[at] == '(' ? 1 : code[at] == ')' ? -1 : 0;
        if (depth == 0 && code.compare(at, connective.size(), connective) == 0)
            return true;
    }
    return false;
}

/* The parser appends to an AND on the left (makeAndExpr() in gram.y; makeOrExpr() for OR), and
 * keeps no parentheses. So (a AND b) AND c is one AND of three after a restore. Only the first
 * operand is flattened: one further to the right stays an AND of its own. BETWEEN becomes an AND
 * after that, in parse analysis, so it is flattened only by a restore. */
std::string flatten(std::string sql, const std::string& connective)
{
    std::string code = code_of(sql);
    for (std::size_t at = 1; (at = code.find(connective, at)) != std::string::npos;) {
        const std::size_t begin =
            code[at - 1] == ')' ? begin_of_group(code, at - 1) : std::string::npos;
        if (begin == std::string::npos || begin == 0 || code[begin - 1] != '(' ||
            !has_connective(std::string_view(code).substr(begin + 1, at - begin - 2), connective)) {
            at += connective.size();
            continue;
        }
        for (std::string* text : {&sql, &code})
            text->erase(at - 1, 1).erase(begin, 1);
        at = begin + 1;
    }
    return sql;
}

} // namespace

std::string as_restored(const std::string& sql)
{
    return flatten(flatten(push_casts_down(drop_names_of_types(sql)), " AND "), " OR ");
}

std::string without_casts(const std::string& text)
{
    const std::string sql = drop_names_of_types(text);
    std::string rest;
    for (std::size_t at = 0; at < sql.size();) {
        const bool is_quoted = sql[at] == '\'' || sql[at] == '"';
        const std::size_t end = is_quoted                       ? end_of_quoted(sql, at)
                                : sql.compare(at, 2, "::") == 0 ? end_of_cast(sql, at)
                                                                : at + 1;
        if (is_quoted ||
            (end == at + 1 && std::string("() \t\n").find(sql[at]) == std::string::npos))
            rest.append(sql, at, end - at);
        at = end;
    }
    return rest;
}
