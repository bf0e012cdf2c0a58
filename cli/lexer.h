/* SQL text as tokens, and as statements. */

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

enum class TokenKind { word, quoted, string, dollar, number, comment, space, symbol, meta };

struct Token {
    TokenKind kind;
    std::string_view text; /* with its quotes */
};

/* All tokens; their texts joined are the input. A line that begins a statement with a backslash is
 * a psql command (pg_dump writes \restrict): kind meta. */
std::vector<Token> tokens_of(std::string_view sql);

/* Statements without the final semicolon; comments stay with the statement that they precede. */
std::vector<std::string> split_statements(std::string_view sql);

/* The first word of a statement in lower case. */
std::string first_word(std::string_view statement);

std::string lower(std::string_view text);
