/* SQL text as tokens, and as statements. */

#pragma once

#include <string>
#include <string_view>
#include <vector>

enum class TokenKind { blank, word, quoted, string, dollar, symbol };

struct Token {
    TokenKind kind;
    std::string_view text; /* with its quotes */
};

/* All tokens; their texts joined are the input. Space, comments and psql's commands (pg_dump writes
 * \restrict) are blank; a number is a word. */
std::vector<Token> tokens_of(std::string_view sql);

/* Statements without the final semicolon; blanks stay with the statement that they precede. */
std::vector<std::string> split_statements(std::string_view sql);

std::string lower(std::string_view text);
