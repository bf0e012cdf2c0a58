#include "legacy_tokens.h"

namespace snowflake::legacy
{
namespace
{

/* NAMEDATALEN - 1: longer names are cut off, and two of them may become one. */
constexpr std::size_t kMaxNameLength = 63;

/*
 * The words that cannot name a variable, or that mean something of their own in an expression:
 * where a column name may not stand in SQL (reserved and type_func_name in kwlist.h), and
 * PL/pgSQL's reserved ones. Between blanks, so that a word can be looked for as a whole.
 */
constexpr std::string_view kReserved =
    " all analyse analyze and any array as asc asymmetric authorization begin binary both by case "
    "cast check collate collation column concurrently constraint create cross current_catalog "
    "current_date current_role current_schema current_time current_timestamp current_user declare "
    "default deferrable desc distinct do else end except execute false fetch for foreach foreign "
    "freeze from full grant group having if ilike in initially inner intersect into is isnull join "
    "lateral leading left like limit localtime localtimestamp loop natural not notnull null offset "
    "on only or order outer overlaps placing primary references return returning right select "
    "session_user similar some strict symmetric system_user table tablesample then to trailing "
    "true union unique user using variadic verbose when where while window with ";

constexpr bool is_letter(char c)
{
    /* Bytes above ASCII too: they are parts of letters to PostgreSQL's scanner. */
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

constexpr bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

constexpr bool is_in_word(char c)
{
    return is_letter(c) || is_digit(c) || c == '$';
}

constexpr bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

constexpr bool is_one_of(char c, std::string_view set)
{
    for (const char member : set)
        if (c == member)
            return true;
    return false;
}

constexpr char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr bool is_ascii(std::string_view text)
{
    for (const char c : text)
        if ((c & 0x80) != 0)
            return false;
    return true;
}

} // namespace

bool same_name(const Token& a, const Token& b)
{
    if (a.text.size() != b.text.size())
        return false;
    for (std::size_t i = 0; i < a.text.size(); ++i) {
        const char left = a.kind == TokenKind::word ? lower(a.text[i]) : a.text[i];
        const char right = b.kind == TokenKind::word ? lower(b.text[i]) : b.text[i];
        if (left != right)
            return false;
    }
    return true;
}

bool same_word(std::string_view text, std::string_view lower)
{
    return same_name({TokenKind::word, text, 0, nullptr}, {TokenKind::word, lower, 0, nullptr});
}

bool is_reserved(const Token& token)
{
    if (token.kind != TokenKind::word)
        return false;
    const char* word = kReserved.data() + 1;
    for (const char* c = word; c != kReserved.data() + kReserved.size(); ++c) {
        if (*c != ' ')
            continue;
        if (same_word(token.text, {word, static_cast<std::size_t>(c - word)}))
            return true;
        word = c + 1;
    }
    return false;
}

/* A body never holds a NUL, so one can stand for its end. */
char Scanner::peek(std::size_t ahead) const
{
    return position_ + ahead < body_.size() ? body_[position_ + ahead] : '\0';
}

void Scanner::skip(std::size_t count)
{
    for (; count > 0 && position_ < body_.size(); --count, ++position_)
        if (body_[position_] == '\n')
            ++line_;
}

/* False, and nothing is skipped, where it does not end. Comments in slashes nest, unlike C's. */
bool Scanner::skip_comment()
{
    if (peek() == '-') {
        /* A carriage return ends it as well: what follows one is code. */
        while (position_ < body_.size() && peek() != '\n' && peek() != '\r')
            skip(1);
        return true;
    }
    const Scanner start = *this;
    int depth = 0;
    do {
        const bool opens = peek() == '/' && peek(1) == '*';
        const bool closes = peek() == '*' && peek(1) == '/';
        depth += opens ? 1 : closes ? -1 : 0;
        skip(opens || closes ? 2 : 1);
    } while (depth > 0 && position_ < body_.size());
    if (depth > 0)
        *this = start;
    return depth == 0;
}

bool Scanner::skip_blanks()
{
    for (;;) {
        if (is_blank(peek()))
            skip(1);
        else if (!(peek() == '-' && peek(1) == '-') && !(peek() == '/' && peek(1) == '*'))
            return true;
        else if (!skip_comment())
            return false;
    }
}

Token Scanner::token(TokenKind kind, std::size_t length)
{
    const Token token = {kind, {body_.data() + position_, length}, line_, nullptr};
    skip(length);
    return token;
}

Token Scanner::malformed(std::size_t length, const char* problem)
{
    Token broken = token(TokenKind::malformed, length);
    broken.problem = problem;
    return broken;
}

/*
 * The longest run of operator characters, up to where a comment begins. As an operator ends in + or
 * - only if it holds one of those characters that are not in standard SQL, "*-1" is a product and a
 * sign, but "|-1" is an operator that does not exist.
 */
std::size_t Scanner::operator_length() const
{
    std::size_t length = 0;
    bool may_end_in_sign = false;
    for (; is_one_of(peek(length), "~!@#^&|`?+-*/%<>="); ++length) {
        const bool comment = (peek(length) == '-' && peek(length + 1) == '-') ||
                             (peek(length) == '/' && peek(length + 1) == '*');
        if (comment)
            break;
        may_end_in_sign = may_end_in_sign || is_one_of(peek(length), "~!@#^&|`?%");
    }
    while (!may_end_in_sign && length > 1 && is_one_of(peek(length - 1), "+-"))
        --length;
    return length;
}

Token Scanner::word()
{
    std::size_t length = 1;
    while (is_in_word(peek(length)))
        ++length;
    const std::string_view text(body_.data() + position_, length);

    if (length > kMaxNameLength)
        return malformed(length, "the name is longer than 63 bytes");
    if (!is_ascii(text))
        return malformed(length, "a name with letters outside ASCII can be read only in quotes");
    if (peek(length) == '\'' || (same_word(text, "u") && peek(length) == '&' &&
                                 (peek(length + 1) == '\'' || peek(length + 1) == '"')))
        return malformed(length, "only plain quotes can be read, without a prefix");
    return token(TokenKind::word, length);
}

/* Digits, or digits, a point and zeros: 1000.0 is a way to write 1000. */
Token Scanner::number()
{
    std::size_t length = 1;
    while (is_digit(peek(length)))
        ++length;
    if (peek(length) == '.') {
        ++length;
        while (peek(length) == '0')
            ++length;
    }
    const std::size_t plain = length;
    while (is_in_word(peek(length)) || peek(length) == '.') /* 0.5, 1e3, 0x10, 1_000 */
        ++length;
    if (length > plain)
        return malformed(length, "only whole decimal numbers can be read");
    return token(TokenKind::number, length);
}

Token Scanner::quoted(char quote)
{
    std::size_t length = 1;
    while (position_ + length < body_.size() && peek(length) != quote)
        ++length;
    if (position_ + length >= body_.size())
        return malformed(1, "the quotes are not closed");
    if (peek(length + 1) == quote)
        return malformed(length + 2, "doubled quotes cannot be read");

    Token inner = token(quote == '"' ? TokenKind::quoted_word : TokenKind::string, length);
    skip(1);
    inner.text.remove_prefix(1);
    const bool is_name = inner.kind == TokenKind::quoted_word;
    if (is_name && (inner.text.empty() || inner.text.size() > kMaxNameLength))
        inner = {TokenKind::malformed, inner.text, inner.line, "a name has 1 to 63 bytes"};
    /* Whether it escapes depends on standard_conforming_strings. */
    for (const char c : inner.text)
        if (!is_name && c == '\\')
            inner = {TokenKind::malformed, inner.text, inner.line, "a backslash cannot be read"};
    return inner;
}

Token Scanner::next()
{
    if (!skip_blanks())
        return malformed(2, "the comment is not closed");
    if (position_ == body_.size())
        return token(TokenKind::end, 0);
    if (is_letter(peek()))
        return word();
    if (is_digit(peek()))
        return number();
    if (peek() == '"' || peek() == '\'')
        return quoted(peek());
    if (const std::size_t length = operator_length(); length > 0)
        return token(TokenKind::symbol, length);
    const bool pair = peek() == ':' && (peek(1) == ':' || peek(1) == '=');
    return token(TokenKind::symbol, pair ? 2 : 1);
}

} // namespace snowflake::legacy
