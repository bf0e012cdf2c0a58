/* Names and constants in SQL text as the server writes it. */

#pragma once

#include <string>
#include <string_view>

bool is_word_part(char c);

/* Behind the string constant or the quoted name that begins here. */
std::size_t end_of_quoted(std::string_view sql, std::size_t begin);

/* Behind the token that begins here: a quoted name, a constant, also one between $$, a comment to
 * the end of its line, or a single character. */
std::size_t end_of_token(std::string_view sql, std::size_t begin);

/* With blanks in place of string constants and quoted names. */
std::string code_of(std::string sql);

/* A time as a value of lock_timeout; never 0, which is none. */
std::string milliseconds_of(double seconds);

struct Range {
    std::size_t begin;
    std::size_t end;
};
