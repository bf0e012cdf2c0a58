#include "legacy_arithmetic.h"

namespace snowflake::legacy
{
namespace
{

constexpr int kBitsInBigint = 64;
constexpr std::int64_t kMsPerSecond = 1000;

bool is_number(const Value& value, std::int64_t number)
{
    return value.kind == Kind::constant && value.number == number;
}

/* The result of checked arithmetic; PostgreSQL, too, raises an error where it does not fit. */
Outcome checked(bool overflow, std::int64_t number, Type type)
{
    if (overflow || !fits(number, type))
        return bad("the number does not fit its type");
    return good(constant(number, type));
}

/* Numbers make a number; everything else that is added up is the ID. */
Outcome add(const Value& left, const Value& right)
{
    if (left.kind != Kind::constant || right.kind != Kind::constant)
        return merge(left, right);
    std::int64_t sum = 0;
    const bool overflow = __builtin_add_overflow(left.number, right.number, &sum);
    return checked(overflow, sum, left.type);
}

/*
 * Either between numbers, or the epoch off the clock. Off the seconds it would be right as well if
 * * 1000 came after, but only for an epoch of whole seconds: that is for a human to look at.
 */
Outcome subtract(const Value& left, const Value& right)
{
    if (left.kind == Kind::seconds)
        return bad("the epoch is taken off the clock in seconds, not in milliseconds");
    if (right.kind != Kind::constant)
        return bad("only a number can be taken off here");
    if (left.kind == Kind::millis) {
        Value age = of_kind(Kind::fields, left.type);
        age.time.present = true;
        age.epoch = Epoch{right.number};
        return good(age);
    }
    if (left.kind != Kind::constant)
        return bad("a number can be taken off the milliseconds of the clock only");
    std::int64_t difference = 0;
    const bool overflow = __builtin_sub_overflow(left.number, right.number, &difference);
    return checked(overflow, difference, left.type);
}

/* Between numbers, or from the clock's seconds to milliseconds; an epoch may be a product too. */
Outcome multiply(const Value& left, const Value& right)
{
    if (left.kind == Kind::seconds || right.kind == Kind::seconds) {
        if (!is_number(left, kMsPerSecond) && !is_number(right, kMsPerSecond))
            return bad("the clock's seconds must be taken * 1000");
        return good(of_kind(Kind::millis, left.type));
    }
    if (left.kind != Kind::constant || right.kind != Kind::constant)
        return bad("only the clock's seconds and numbers can be multiplied");
    std::int64_t product = 0;
    const bool overflow = __builtin_mul_overflow(left.number, right.number, &product);
    return checked(overflow, product, left.type);
}

Outcome counter(Type type)
{
    Value value = of_kind(Kind::fields, type);
    value.counter.present = true;
    return good(value);
}

/* A bigger divisor would spill into the shard, a smaller one wastes bits: other layouts, both. */
Outcome modulo(const Value& left, const Value& right)
{
    if (left.kind != Kind::draw)
        return bad("only nextval() may be taken % 1024");
    if (!is_number(right, kMaxCounter + 1))
        return bad("the counter is not nextval() % 1024: this is another layout");
    return counter(left.type);
}

/* The same as % 1024, as long as the sequence is above zero; there is no & on numeric. */
Outcome bit_and(const Value& left, const Value& right)
{
    if (left.kind != Kind::draw || !is_integer(left.type))
        return bad("only nextval() may be taken & 1023");
    if (!is_number(right, kMaxCounter))
        return bad("the counter is not nextval() & 1023: this is another layout");
    return counter(left.type);
}

Outcome bit_or(const Value& left, const Value& right)
{
    if (!is_integer(left.type))
        return bad("PostgreSQL has | for integers only");
    return merge(left, right);
}

/* Saturated: no layout of 64 bits has such a shift, and it must not come round to a valid one. */
Field shifted(const Field& field, int bits, int line)
{
    const int shift = field.shift + bits < kBitsInBigint ? field.shift + bits : kBitsInBigint;
    return {field.present, shift, line};
}

} // namespace

/* PostgreSQL hands both operands to the operator as the larger of their types. */
Outcome apply(Operator op, const Value& left, const Value& right)
{
    const Type type = left.type > right.type ? left.type : right.type;
    const Outcome a = convert(left, type);
    const Outcome b = convert(right, type);
    if (a.problem != nullptr || b.problem != nullptr)
        return a.problem != nullptr ? a : b;
    switch (op) {
    case Operator::add:
        return add(a.value, b.value);
    case Operator::subtract:
        return subtract(a.value, b.value);
    case Operator::multiply:
        return multiply(a.value, b.value);
    case Operator::modulo:
        return modulo(a.value, b.value);
    case Operator::bit_and:
        return bit_and(a.value, b.value);
    case Operator::bit_or:
        return bit_or(a.value, b.value);
    }
    return bad("this operator is not known");
}

/*
 * An int4 of 2^21 and more would lose bits here, but then it is no shard, and the caller, who is
 * given the number as it was before, sees that.
 */
Outcome shift_left(const Value& value, const Value& bits, int line)
{
    if (!is_integer(value.type))
        return bad("PostgreSQL has << for integers only");
    if (bits.kind != Kind::constant || bits.type != Type::int4)
        return bad("<< needs a plain number of bits, of type integer");
    /* Beyond the width PostgreSQL shifts by some other number, or not at all. */
    if (bits.number < 0 || bits.number >= kBitsInBigint)
        return bad("<< needs 0 to 63 bits");

    Outcome result = as_fields(value);
    const int count = static_cast<int>(bits.number);
    result.value.time = shifted(result.value.time, count, line);
    result.value.shard = shifted(result.value.shard, count, line);
    result.value.counter = shifted(result.value.counter, count, line);
    return result;
}

Outcome negate(const Value& value)
{
    if (value.kind != Kind::constant)
        return bad("only a number may have a sign");
    std::int64_t negative = 0;
    const bool overflow = __builtin_sub_overflow(std::int64_t{0}, value.number, &negative);
    return checked(overflow, negative, value.type);
}

/* Which way it rounds does not matter: the native clock's milliseconds are as good. */
Outcome to_whole(const Value& value)
{
    if (value.kind == Kind::seconds)
        return bad(kCutToSeconds);
    if (value.kind != Kind::millis && !is_age(value))
        return bad("only the clock's milliseconds may be rounded");
    if (is_integer(value.type)) /* there is no floor(bigint): it becomes double precision */
        return convert(value, Type::float8);
    return good(value);
}

/* Of a clock that was moved, cut or set to a time zone's, the epoch would be another. */
Outcome epoch_of(const Value& value, Type type)
{
    if (value.kind != Kind::instant)
        return bad("the time must be now() or clock_timestamp(), as it is");
    return good(of_kind(Kind::seconds, type));
}

} // namespace snowflake::legacy
