#include "legacy_expression.h"

namespace snowflake::legacy
{
namespace
{

/* now() stands still within a transaction, but it is the clock, and so is what replaces it. */
bool is_clock(std::string_view name)
{
    return same_word(name, "now") || same_word(name, "clock_timestamp") ||
           same_word(name, "statement_timestamp") || same_word(name, "transaction_timestamp");
}

} // namespace

/*
 * A quoted name is the same function if it is in lower case, but extract and cast are syntax. Since
 * nobody quotes these, none is taken.
 */
Value Expressions::call(const Token& function)
{
    const std::string_view name = function.text;
    if (function.kind == TokenKind::word) {
        if (same_word(name, "nextval"))
            return nextval(function);
        if (is_clock(name)) {
            open();
            close();
            return clock(function);
        }
        if (same_word(name, "floor") || same_word(name, "trunc") || same_word(name, "round"))
            return understood(function, to_whole(argument()));
        if (same_word(name, "mod"))
            return modulo_call();
        if (same_word(name, "extract"))
            return extract();
        if (same_word(name, "date_part"))
            return date_part();
        if (same_word(name, "cast"))
            return cast_call();
    }
    cursor_.refuse(function, "no function can be read but the clock, nextval, floor and the like");
    return {};
}

/* A second call would skip a value, even if nothing were done with it. */
Value Expressions::nextval(const Token& function)
{
    if (has_sequence_)
        cursor_.refuse(function, "nextval() is called twice");
    has_sequence_ = true;
    open();
    sequence_ = sequence_name();
    close();
    return of_kind(Kind::draw, Type::int8);
}

/* Casts to text and regclass decide when the name is looked up, not what it is. */
std::string_view Expressions::sequence_name()
{
    std::size_t parentheses = 0;
    while (cursor_.accept_symbol("("))
        ++parentheses;
    const Token literal = cursor_.take();
    if (literal.kind != TokenKind::string)
        cursor_.refuse(literal, "the sequence is not given as a plain string");
    for (;;) {
        if (cursor_.accept_symbol("::")) {
            if (!cursor_.accept_word("text"))
                cursor_.expect_word("regclass", "a sequence's name is text or a regclass");
        } else if (parentheses > 0) {
            close();
            --parentheses;
        } else {
            return literal.text;
        }
    }
}

/* Two readings may be a millisecond apart; which of them is the ID's would have to be guessed. */
Value Expressions::clock(const Token& function)
{
    if (has_clock_)
        cursor_.refuse(function, "the clock is read twice");
    has_clock_ = true;
    return of_kind(Kind::instant, Type::timestamptz);
}

/* Its field is a word of its own, not a variable, or a string. */
Value Expressions::extract()
{
    open();
    if (!cursor_.accept_word("epoch"))
        expect_epoch();
    cursor_.expect_word("from", "FROM is expected here");
    const Token at = cursor_.token();
    const Value time = expression();
    close();
    return understood(at, epoch_of(time, Type::numeric));
}

Value Expressions::date_part()
{
    open();
    expect_epoch();
    cursor_.expect_symbol(",", "a comma is expected here");
    const Token at = cursor_.token();
    const Value time = expression();
    close();
    return understood(at, epoch_of(time, Type::float8));
}

/* The other fields of a time are no count of milliseconds: they begin again with each minute. */
void Expressions::expect_epoch()
{
    const Token field = cursor_.take();
    if (field.kind != TokenKind::string || !same_word(field.text, "epoch"))
        cursor_.refuse(field, "only the epoch of a time is known to go into an ID");
}

Value Expressions::modulo_call()
{
    open();
    const Value left = expression();
    const Token comma = cursor_.token();
    cursor_.expect_symbol(",", "a comma is expected here");
    const Value right = expression();
    close();
    return understood(comma, apply(Operator::modulo, left, right));
}

/* CAST(x AS type) is x::type. */
Value Expressions::cast_call()
{
    open();
    const Value value = expression();
    const Token as = cursor_.token();
    cursor_.expect_word("as", "AS is expected here");
    const Outcome converted = convert(value, type());
    close();
    return understood(as, converted);
}

Value Expressions::argument()
{
    open();
    const Value value = expression();
    close();
    return value;
}

} // namespace snowflake::legacy
