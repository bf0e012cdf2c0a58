#include "legacy_cursor.h"

namespace snowflake::legacy
{

Cursor::Cursor(std::string_view body) : scanner_(body), token_()
{
    take();
}

/* A malformed token is refused when it is met, before anything is made of it. */
Token Cursor::take()
{
    const Token taken = token_;
    if (refused())
        return taken;
    token_ = scanner_.next();
    if (token_.kind == TokenKind::malformed)
        refuse(token_.problem);
    return taken;
}

bool Cursor::at_word(std::string_view lower) const
{
    return token_.kind == TokenKind::word && same_word(token_.text, lower);
}

bool Cursor::at_symbol(std::string_view symbol) const
{
    return token_.kind == TokenKind::symbol && token_.text == symbol;
}

bool Cursor::accept_word(std::string_view lower)
{
    const bool there = at_word(lower);
    if (there)
        take();
    return there;
}

bool Cursor::accept_symbol(std::string_view symbol)
{
    const bool there = at_symbol(symbol);
    if (there)
        take();
    return there;
}

void Cursor::expect_word(std::string_view lower, const char* problem)
{
    if (!accept_word(lower))
        refuse(problem);
}

void Cursor::expect_symbol(std::string_view symbol, const char* problem)
{
    if (!accept_symbol(symbol))
        refuse(problem);
}

/* Only the first counts: what follows from it would be said of a body cut short. */
void Cursor::refuse(const Token& at, const char* problem)
{
    if (refused())
        return;
    refused_ = at;
    refused_.problem = problem;
    token_ = {TokenKind::end, {}, at.line, nullptr};
}

} // namespace snowflake::legacy
