#include "legacy_expression.h"

namespace snowflake::legacy
{
namespace
{

/* A bound on the stack. Each level is seven C++ frames; nobody's ID function has ten levels. */
constexpr int kMaxDepth = 50;

constexpr char kNotUnderstood[] = "an expression is expected here that can be read";

/*
 * %% is how the published article prints %. There is no such operator in PostgreSQL, so no ID was
 * ever made with it, and it can mean only one thing.
 */
Operator operator_of(std::string_view symbol)
{
    return symbol == "+"   ? Operator::add
           : symbol == "-" ? Operator::subtract
           : symbol == "*" ? Operator::multiply
           : symbol == "&" ? Operator::bit_and
           : symbol == "|" ? Operator::bit_or
                           : Operator::modulo; /* % or %% */
}

} // namespace

Variable* Variables::find(const Token& name)
{
    for (std::size_t i = 0; i < count_; ++i)
        if (same_name(variables_[i].name, name))
            return &variables_[i];
    return nullptr;
}

bool Variables::add(const Variable& variable)
{
    if (count_ == variables_.size())
        return false;
    variables_[count_++] = variable;
    return true;
}

Value Expressions::understood(const Token& at, const Outcome& outcome)
{
    if (outcome.problem != nullptr)
        cursor_.refuse(at, outcome.problem);
    return outcome.value;
}

/*
 * From weak to strong: all operators that standard SQL does not have, then + -, then * / %, the
 * sign, and ::. So <<, | and & are equally strong and go from left to right, unlike in C:
 * a << 23 | b << 10 is ((a << 23) | b) << 10.
 */
Value Expressions::expression()
{
    if (++depth_ > kMaxDepth)
        cursor_.refuse("the expression is nested too deeply");
    Value left = sum();
    while (cursor_.at_symbol("<<") || cursor_.at_symbol("|") || cursor_.at_symbol("&") ||
           cursor_.at_symbol("%%")) {
        const Token op = cursor_.take();
        const Value right = sum();
        left = understood(op, op.text == "<<" ? shift_left(left, right, op.line)
                                              : apply(operator_of(op.text), left, right));
    }
    --depth_;
    return left;
}

/* Operators of one strength go from left to right, here as in C. */
Value Expressions::sum()
{
    Value left = product();
    while (cursor_.at_symbol("+") || cursor_.at_symbol("-")) {
        const Token op = cursor_.take();
        const Value right = product();
        left = understood(op, apply(operator_of(op.text), left, right));
    }
    return left;
}

Value Expressions::product()
{
    Value left = sign();
    while (cursor_.at_symbol("*") || cursor_.at_symbol("%")) {
        const Token op = cursor_.take();
        const Value right = sign();
        left = understood(op, apply(operator_of(op.text), left, right));
    }
    return left;
}

/* Stronger than * / %, weaker than ::, so -5::int is -(5::int). */
Value Expressions::sign()
{
    if (!cursor_.at_symbol("-"))
        return cast();
    const Token op = cursor_.take();
    return understood(op, negate(cast()));
}

Value Expressions::cast()
{
    Value value = primary();
    while (cursor_.at_symbol("::")) {
        const Token op = cursor_.take();
        value = understood(op, convert(value, type()));
    }
    return value;
}

Value Expressions::primary()
{
    if (cursor_.token().kind == TokenKind::number)
        return literal();
    if (cursor_.at_symbol("("))
        return parenthesis();
    if (cursor_.at_word("current_timestamp"))
        return clock(cursor_.take());
    if (cursor_.token().kind != TokenKind::word && cursor_.token().kind != TokenKind::quoted_word) {
        cursor_.refuse(kNotUnderstood);
        return {};
    }
    const Token name = cursor_.take();
    return cursor_.at_symbol("(") ? call(name) : variable(name);
}

Value Expressions::parenthesis()
{
    open();
    cursor_.accept_word("select"); /* without FROM it has one row, and is its expression */
    const Value value = expression();
    close();
    return value;
}

/* PostgreSQL gives a literal the first type that holds it; a decimal point makes it numeric. */
Value Expressions::literal()
{
    const Token token = cursor_.take();
    std::int64_t number = 0;
    bool overflow = false;
    Type type = Type::int4;
    for (const char c : token.text) {
        if (c == '.') {
            type = Type::numeric;
            break;
        }
        overflow = __builtin_mul_overflow(number, 10, &number) ||
                   __builtin_add_overflow(number, c - '0', &number) || overflow;
    }
    if (overflow)
        cursor_.refuse(token, "the number is larger than a bigint");
    if (type == Type::int4 && number > INT32_MAX)
        type = Type::int8;
    return constant(number, type);
}

/* An OUT parameter may be named "user"; unquoted, that is the current user all the same. */
Value Expressions::variable(const Token& name)
{
    const Variable* variable = is_reserved(name) ? nullptr : variables_.find(name);
    if (variable == nullptr) {
        cursor_.refuse(name, "this is neither a variable of the function nor a known expression");
        return {};
    }
    if (variable->value.kind == Kind::unset)
        cursor_.refuse(name, "the variable is used before it has a value");
    return variable->value;
}

void Expressions::open()
{
    cursor_.expect_symbol("(", "an opening parenthesis is expected here");
}

void Expressions::close()
{
    cursor_.expect_symbol(")", "the expression goes on with something that cannot be read");
}

/* Quoted, "integer" would be the name of somebody's own type. */
Type Expressions::type()
{
    const Token name = cursor_.take();
    if (name.kind == TokenKind::word) {
        if (same_word(name.text, "bigint") || same_word(name.text, "int8"))
            return Type::int8;
        if (same_word(name.text, "integer") || same_word(name.text, "int") ||
            same_word(name.text, "int4"))
            return Type::int4;
        if (same_word(name.text, "numeric") || same_word(name.text, "decimal"))
            return Type::numeric;
        if (same_word(name.text, "float8") ||
            (same_word(name.text, "double") && cursor_.accept_word("precision")))
            return Type::float8;
        if (same_word(name.text, "timestamptz"))
            return Type::timestamptz;
        if (same_word(name.text, "timestamp") && cursor_.accept_word("with")) {
            cursor_.expect_word("time", "TIME ZONE is expected here");
            cursor_.expect_word("zone", "TIME ZONE is expected here");
            return Type::timestamptz;
        }
    }
    cursor_.refuse(name, "only types bigint, integer, numeric, double precision and timestamptz "
                         "can be read");
    return Type::int8;
}

Value Expressions::expression_of(Type type)
{
    const Token first = cursor_.token();
    return understood(first, convert(expression(), type));
}

} // namespace snowflake::legacy
