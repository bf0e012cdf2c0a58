#include "lexer.h"

#include <algorithm>
#include <cctype>

namespace
{

bool is_word_part(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80) != 0;
}

/* Behind the next occurrence of the text. */
std::size_t behind(std::string_view sql, std::string_view text, std::size_t at)
{
    const std::size_t found = sql.find(text, at);
    return found == std::string_view::npos ? sql.size() : found + text.size();
}

std::size_t end_of_word(std::string_view sql, std::size_t at)
{
    while (at < sql.size() && (is_word_part(sql[at]) || sql[at] == '$'))
        at++;
    return at;
}

/* A doubled quote does not end the text. */
std::size_t end_of_quoted(std::string_view sql, std::size_t at, bool has_escapes)
{
    const char quote = sql[at++];
    for (; at < sql.size(); at++) {
        if ((has_escapes && sql[at] == '\\') || sql.substr(at, 2) == std::string(2, quote))
            at++;
        else if (sql[at] == quote)
            return at + 1;
    }
    return sql.size();
}

std::size_t end_of_block_comment(std::string_view sql, std::size_t at)
{
    int depth = 0;
    do {
        const std::string_view pair = sql.substr(at, 2);
        const int step = pair == "/*" ? 1 : pair == "*/" ? -1 : 0;
        depth += step;
        at += step == 0 ? 1 : 2;
    } while (depth > 0 && at < sql.size());
    return std::min(at, sql.size());
}

/* Behind $tag$...$tag$, or "at" if none begins there. */
std::size_t end_of_dollar(std::string_view sql, std::size_t at)
{
    std::size_t tag_end = at + 1;
    while (tag_end < sql.size() && is_word_part(sql[tag_end]))
        tag_end++;
    const bool is_parameter =
        std::isdigit(static_cast<unsigned char>(sql[std::min(at + 1, sql.size() - 1)]));
    if (tag_end == sql.size() || sql[tag_end] != '$' || is_parameter)
        return at;
    return behind(sql, sql.substr(at, tag_end + 1 - at), tag_end + 1);
}

Token next_token(std::string_view sql, std::size_t at)
{
    const char c = sql[at];
    const std::string_view pair = sql.substr(at, 2);
    const auto until = [&](TokenKind kind, std::size_t end) {
        return Token{kind, sql.substr(at, end - at)};
    };
    if (std::isspace(static_cast<unsigned char>(c)))
        return until(TokenKind::blank,
                     std::min(sql.find_first_not_of(" \t\r\n\f\v", at), sql.size()));
    if (pair == "--" || c == '\\')
        return until(TokenKind::blank, std::min(sql.find('\n', at), sql.size()));
    if (pair == "/*")
        return until(TokenKind::blank, end_of_block_comment(sql, at));
    if (pair == "E'" || pair == "e'")
        return until(TokenKind::string, end_of_quoted(sql, at + 1, true));
    if (c == '\'' || c == '"')
        return until(c == '"' ? TokenKind::quoted : TokenKind::string,
                     end_of_quoted(sql, at, false));
    if (c == '$' && end_of_dollar(sql, at) > at)
        return until(TokenKind::dollar, end_of_dollar(sql, at));
    if (is_word_part(c))
        return until(TokenKind::word, end_of_word(sql, at));
    return until(TokenKind::symbol, at + 1);
}

/* Knows which semicolons end a statement: not those in parentheses (CREATE RULE), and not those of
 * a function's body in SQL, BEGIN ATOMIC ...; END, with CASE ... END in it. psql does it in the
 * same way. */
class StatementEnd
{
public:
    bool is_at(const Token& token)
    {
        const std::string text = lower(token.text);
        if (text == ";" && parentheses_ == 0 && blocks_ == 0) {
            *this = {};
            return true;
        }
        if (token.kind == TokenKind::blank)
            return false;
        parentheses_ += text == "(" ? 1 : text == ")" ? -1 : 0;
        words_++;
        is_create_ = words_ == 1 ? text == "create" : is_create_;
        is_routine_ |= is_create_ && words_ <= 4 && (text == "function" || text == "procedure");
        if (is_routine_ && parentheses_ == 0) {
            if (text == "begin" || (text == "case" && blocks_ > 0))
                blocks_++;
            else if (text == "end" && blocks_ > 0)
                blocks_--;
        }
        return false;
    }
    bool is_begun() const { return words_ > 0; }

private:
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
    for (std::size_t at = 0; at < sql.size(); at += tokens.back().text.size())
        tokens.push_back(next_token(sql, at));
    return tokens;
}

std::vector<std::string> split_statements(std::string_view sql)
{
    std::vector<std::string> statements(1);
    StatementEnd end;
    for (const Token& token : tokens_of(sql)) {
        if (end.is_at(token))
            statements.emplace_back();
        else
            statements.back() += token.text;
    }
    if (!end.is_begun())
        statements.pop_back();
    return statements;
}
