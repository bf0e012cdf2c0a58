/*
 * Expressions of an ID function, read and understood in one go: PostgreSQL's precedences, and for
 * each operator and function its meaning from legacy_arithmetic.h. Pure.
 *
 * Names of functions, types and operators are taken as those of pg_catalog.
 */
#pragma once

#include <array>

#include "legacy_arithmetic.h"
#include "legacy_cursor.h"

namespace snowflake::legacy
{

struct Variable {
    Token name;
    Type type;
    bool is_constant; /* declared CONSTANT */
    Value value;
};

class Variables
{
public:
    Variable* find(const Token& name);
    bool add(const Variable& variable); /* false: there are too many */

private:
    std::array<Variable, 32> variables_ = {};
    std::size_t count_ = 0;
};

class Expressions
{
public:
    Expressions(Cursor& cursor, Variables& variables) : cursor_(cursor), variables_(variables) {}

    /* Up to the first token that cannot go on with it; a refusal is left in the cursor. */
    Value expression();
    Type type();

    /* As expression(), as PostgreSQL assigns it to this type. */
    Value expression_of(Type type);

    /* Of the nextval() and of the clock, once they were read. */
    std::string_view sequence() const { return sequence_; }

private:
    Value understood(const Token& at, const Outcome& outcome);
    Value sum();
    Value product();
    Value sign();
    Value cast();
    Value primary();
    Value parenthesis();
    Value literal();
    Value variable(const Token& name);

    /* In legacy_calls.cpp. */
    Value call(const Token& function);
    Value argument();
    Value nextval(const Token& function);
    std::string_view sequence_name();
    Value clock(const Token& function);
    Value extract();
    Value date_part();
    Value modulo_call();
    Value cast_call();
    void expect_epoch();
    void open();
    void close();

    Cursor& cursor_;
    Variables& variables_;
    std::string_view sequence_ = {};
    bool has_sequence_ = false;
    bool has_clock_ = false;
    int depth_ = 0;
};

} // namespace snowflake::legacy
