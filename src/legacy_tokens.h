/*
 * The words and symbols of a PL/pgSQL body, told apart as PostgreSQL's own scanner does (scan.l),
 * for the little of the language that an ID function is made of. Pure.
 *
 * Where the scanner's answer depends on a setting, the encoding or the server's version (escapes in
 * literals, letters outside ASCII, 0x10 and 1_000), the token is malformed: it must not be guessed.
 */
#pragma once

#include <string_view>

namespace snowflake::legacy
{

enum class TokenKind { end, word, quoted_word, number, string, symbol, malformed };

struct Token {
    TokenKind kind;
    std::string_view text; /* of a quoted word or a string: what stands between the quotes */
    int line;
    const char* problem; /* of a malformed token: what is wrong */
};

/* Names fold to lower case unless they are quoted. */
bool same_name(const Token& a, const Token& b);

/* An ASCII word, in whatever case; `lower` is in lower case. */
bool same_word(std::string_view text, std::string_view lower);

/* An unquoted word that SQL or PL/pgSQL reserves, so that it is never a variable. */
bool is_reserved(const Token& token);

class Scanner
{
public:
    explicit Scanner(std::string_view body) : body_(body) {}
    Token next();

private:
    char peek(std::size_t ahead = 0) const;
    void skip(std::size_t count);
    bool skip_comment();
    bool skip_blanks();
    std::size_t operator_length() const;
    Token token(TokenKind kind, std::size_t length);
    Token malformed(std::size_t length, const char* problem);
    Token word();
    Token number();
    Token quoted(char quote);

    std::string_view body_;
    std::size_t position_ = 0;
    int line_ = 1;
};

} // namespace snowflake::legacy
