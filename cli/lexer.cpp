#include "lexer.h"

#include <cctype>

namespace
{

bool is_word_start(char c)
{
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80) != 0;
}

bool is_word_part(char c)
{
    return is_word_start(c) || std::isdigit(static_cast<unsigned char>(c)) || c == '$';
}

bool is_space(char c)
{
    return std::isspace(static_cast<unsigned char>(c)) != 0;
}

template <typename Condition>
std::size_t skip_while(std::string_view sql, std::size_t at, Condition condition)
{
    while (at < sql.size() && condition(sql[at]))
        at++;
    return at;
}

/* Behind the quote that ends what began at "at". A doubled quote does not end it. */
std::size_t end_of_quoted(std::string_view sql, std::size_t at, bool has_escapes)
{
    const char quote = sql[at++];
    for (; at < sql.size(); at++) {
        if (has_escapes && sql[at] == '\\')
            at++;
        else if (sql[at] == quote && at + 1 < sql.size() && sql[at + 1] == quote)
            at++;
        else if (sql[at] == quote)
            return at + 1;
    }
    return sql.size();
}

std::size_t end_of_block_comment(std::string_view sql, std::size_t at)
{
    int depth = 0;
    while (at < sql.size()) {
        const std::string_view pair = sql.substr(at, 2);
        if (pair == "/*" || pair == "*/") {
            depth += pair == "/*" ? 1 : -1;
            at += 2;
            if (depth == 0)
                return at;
        } else {
            at++;
        }
    }
    return at;
}

/* Behind $tag$...$tag$, or "at" if none begins there. */
std::size_t end_of_dollar(std::string_view sql, std::size_t at)
{
    std::size_t tag_end = at + 1;
    if (tag_end < sql.size() && is_word_start(sql[tag_end]))
        tag_end = skip_while(sql, tag_end, [](char c) { return is_word_part(c) && c != '$'; });
    if (tag_end >= sql.size() || sql[tag_end] != '$')
        return at;
    const std::string_view tag = sql.substr(at, tag_end + 1 - at);
    const std::size_t end = sql.find(tag, tag_end + 1);
    return end == std::string_view::npos ? sql.size() : end + tag.size();
}

struct End {
    TokenKind kind;
    std::size_t at;
};

End end_of_token(std::string_view sql, std::size_t at, bool begins_statement)
{
    const char c = sql[at];
    const char next = at + 1 < sql.size() ? sql[at + 1] : '\0';
    const auto in_line = [](char d) { return d != '\n'; };
    if (is_space(c))
        return {TokenKind::space, skip_while(sql, at, is_space)};
    if (c == '\\' && begins_statement)
        return {TokenKind::meta, skip_while(sql, at, in_line)};
    if (c == '-' && next == '-')
        return {TokenKind::comment, skip_while(sql, at, in_line)};
    if (c == '/' && next == '*')
        return {TokenKind::comment, end_of_block_comment(sql, at)};
    if (c == '\'')
        return {TokenKind::string, end_of_quoted(sql, at, false)};
    if ((c == 'E' || c == 'e') && next == '\'')
        return {TokenKind::string, end_of_quoted(sql, at + 1, true)};
    if (c == '"')
        return {TokenKind::quoted, end_of_quoted(sql, at, false)};
    if (c == '$' && end_of_dollar(sql, at) > at)
        return {TokenKind::dollar, end_of_dollar(sql, at)};
    if (is_word_start(c))
        return {TokenKind::word, skip_while(sql, at, is_word_part)};
    if (std::isdigit(static_cast<unsigned char>(c)))
        return {TokenKind::number, skip_while(sql, at, is_word_part)};
    return {TokenKind::symbol, at + 1};
}

bool is_blank(TokenKind kind)
{
    return kind == TokenKind::space || kind == TokenKind::comment || kind == TokenKind::meta;
}

/* Knows which semicolons end a statement: not those in parentheses (CREATE RULE), and not those of
 * a function's body in SQL: BEGIN ATOMIC ...; END, with CASE ... END in it. As psql does it. */
class StatementEnd
{
public:
    bool is_begun() const { return words_ > 0; }

    bool at(const Token& token)
    {
        if (token.text == "(" || token.text == ")")
            parentheses_ += token.text == "(" ? 1 : -1;
        if (token.text == ";" && parentheses_ <= 0 && blocks_ == 0) {
            *this = {};
            return true;
        }
        if (!is_blank(token.kind))
            words_++;
        if (token.kind == TokenKind::word)
            count_block(lower(token.text));
        return false;
    }

private:
    void count_block(const std::string& word)
    {
        if (words_ == 1)
            is_create_ = word == "create";
        else if (is_create_ && words_ <= 4 && (word == "function" || word == "procedure"))
            is_routine_ = true;
        if (is_routine_ && parentheses_ == 0) {
            if (word == "begin" || (word == "case" && blocks_ > 0))
                blocks_++;
            else if (word == "end" && blocks_ > 0)
                blocks_--;
        }
    }

    int words_ = 0;
    int parentheses_ = 0;
    int blocks_ = 0;
    bool is_create_ = false;
    bool is_routine_ = false;
};

} // namespace

std::string lower(std::string_view text)
{
    std::string result(text);
    for (char& c : result)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

std::vector<Token> tokens_of(std::string_view sql)
{
    std::vector<Token> tokens;
    StatementEnd statement;
    for (std::size_t at = 0; at < sql.size();) {
        const End end = end_of_token(sql, at, !statement.is_begun());
        tokens.push_back({end.kind, sql.substr(at, end.at - at)});
        statement.at(tokens.back());
        at = end.at;
    }
    return tokens;
}

std::vector<std::string> split_statements(std::string_view sql)
{
    std::vector<std::string> statements;
    std::string text;
    StatementEnd end;
    for (const Token& token : tokens_of(sql)) {
        if (end.at(token)) {
            statements.push_back(text);
            text.clear();
        } else if (token.kind != TokenKind::meta) {
            text += token.text;
        }
    }
    if (end.is_begun())
        statements.push_back(text);
    return statements;
}

std::string first_word(std::string_view statement)
{
    for (const Token& token : tokens_of(statement))
        if (!is_blank(token.kind))
            return lower(token.text);
    return "";
}
