/*
 * One token of lookahead, and the first refusal. After it there are no more tokens: whatever the
 * reader is in the middle of falls through to its end, and nothing it still says counts.
 */
#pragma once

#include "legacy_tokens.h"

namespace snowflake::legacy
{

class Cursor
{
public:
    explicit Cursor(std::string_view body);

    const Token& token() const { return token_; }
    bool refused() const { return refused_.problem != nullptr; }
    const Token& refusal() const { return refused_; } /* its problem says why */

    Token take(); /* the present token, moving on to the next */
    bool at_word(std::string_view lower) const;
    bool at_symbol(std::string_view symbol) const;
    bool accept_word(std::string_view lower);
    bool accept_symbol(std::string_view symbol);
    void expect_word(std::string_view lower, const char* problem);
    void expect_symbol(std::string_view symbol, const char* problem);

    void refuse(const char* problem) { refuse(token_, problem); }
    void refuse(const Token& at, const char* problem);

private:
    Scanner scanner_;
    Token token_;
    Token refused_ = {};
};

} // namespace snowflake::legacy
