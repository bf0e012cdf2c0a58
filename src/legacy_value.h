/*
 * What an expression of an ID function stands for, without running it: the clock, the sequence, a
 * number, or bits of an ID. Pure.
 *
 * Each operation here has one meaning for an ID, and the types on which PostgreSQL has it; anything
 * else is a problem, in words. So what comes out at the end is proved, step by step, to be
 *
 *     (ms of the clock - epoch) << 23 | shard << 10 | nextval % 1024
 *
 * if its three fields are there once each, at their shifts: with 0 <= shard <= 8191, which the
 * caller checks, and a sequence above zero, they do not overlap, so + and | are the same.
 */
#pragma once

#include "rule/layout.h"

namespace snowflake::legacy
{

/* In the order in which PostgreSQL promotes the operands of an operator to one type. */
enum class Type { int4, int8, numeric, float8, timestamptz };

enum class Kind {
    unset,    /* a variable before its first assignment: NULL */
    constant, /* `number` */
    instant,  /* the clock, as a timestamptz */
    seconds,  /* the clock, in seconds with a fraction */
    millis,   /* the clock, in milliseconds since 1970 */
    draw,     /* the sequence's nextval() */
    fields,   /* bits of an ID */
};

/* One field of an ID, so many bits to the left of where it begins; `line`: of the last shift. */
struct Field {
    bool present;
    int shift;
    int line;
};

struct Value {
    Kind kind;
    Type type;
    std::int64_t number;
    Field time;
    Field shard;
    Field counter;
    Epoch epoch;               /* of `time` */
    std::int64_t shard_number; /* of `shard`; any, the caller checks it */
};

struct Outcome {
    Value value;
    const char* problem; /* nullptr: none */
};

constexpr Outcome good(const Value& value)
{
    return {value, nullptr};
}
constexpr Outcome bad(const char* problem)
{
    return {{}, problem};
}

constexpr bool is_integer(Type type)
{
    return type == Type::int4 || type == Type::int8;
}

/* Whether a value of this type can hold the number exactly. */
bool fits(std::int64_t number, Type type);

inline constexpr char kCutToSeconds[] =
    "the clock is cut to whole seconds; an ID needs the milliseconds: * 1000 comes first";

Value constant(std::int64_t number, Type type);
Value of_kind(Kind kind, Type type);

/* A cast or an assignment, which PostgreSQL treats alike here: to an integer it rounds. */
Outcome convert(const Value& value, Type type);

/* A number that goes into an ID can only be its shard. */
Outcome as_fields(const Value& value);

/* `|` or `+` of disjoint fields; that they are disjoint is seen when the ID is complete. */
Outcome merge(const Value& left, const Value& right);

/* The age of an ID, not shifted yet: it has a fraction still, unless its type is an integer. */
bool is_age(const Value& value);

/* Whether the value is an ID, whole and in our layout. `line` is 0 where the problem has none. */
struct Defect {
    const char* problem; /* nullptr: none */
    int line;
};
Defect defect_of_id(const Value& value);

} // namespace snowflake::legacy
