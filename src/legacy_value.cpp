#include "legacy_value.h"

namespace snowflake::legacy
{
namespace
{

/* Above it there are integers that a float8 skips. */
constexpr std::int64_t kMaxExactFloat8 = std::int64_t{1} << 53;

Field either(const Field& a, const Field& b)
{
    return a.present ? a : b;
}

/* `shift` is the layout's own, and so tells which field it is. */
const char* defect_of_field(const Field& field, int shift)
{
    if (field.shift == shift)
        return nullptr;
    switch (shift) {
    case kTimeShift:
        return "the time is not shifted by 23 bits: this is another layout";
    case kShardShift:
        return "the shard is not shifted by 10 bits: this is another layout";
    default:
        return "the counter is not in the lowest 10 bits: this is another layout";
    }
}
static_assert(kTimeShift == 23 && kShardShift == 10 && kMaxCounter == 1023,
              "the messages name the layout's numbers");

} // namespace

/* A numeric holds more, but no number larger than a bigint gets as far as here. */
bool fits(std::int64_t number, Type type)
{
    switch (type) {
    case Type::int4:
        return number >= INT32_MIN && number <= INT32_MAX;
    case Type::float8:
        return number >= -kMaxExactFloat8 && number <= kMaxExactFloat8;
    case Type::int8:
    case Type::numeric:
        return true;
    case Type::timestamptz:
        return false;
    }
    return false;
}

Value constant(std::int64_t number, Type type)
{
    Value value = of_kind(Kind::constant, type);
    value.number = number;
    return value;
}

Value of_kind(Kind kind, Type type)
{
    Value value = {};
    value.kind = kind;
    value.type = type;
    return value;
}

/*
 * Only what keeps the meaning. Where PostgreSQL would round the clock to seconds, or a float8 would
 * lose low bits, the value is another; where an int4 is too small, the function never ran.
 */
Outcome convert(const Value& value, Type type)
{
    Value converted = value;
    converted.type = type;
    if (type == value.type)
        return good(value);
    if (type == Type::timestamptz || value.type == Type::timestamptz)
        return bad("a time and a number cannot be converted into each other");

    /* Not even the age of an ID does, after its first 25 days. */
    const bool has_time = value.kind == Kind::millis || value.time.present;
    if (type == Type::int4 && has_time)
        return bad("milliseconds do not fit type integer");
    if (is_integer(type) && value.kind == Kind::seconds)
        return bad(kCutToSeconds);
    if (value.kind == Kind::constant && !fits(value.number, type))
        return bad("the number does not fit its type");
    if (type == Type::float8 &&
        (value.kind == Kind::draw || (value.kind == Kind::fields && !is_age(value))))
        return bad("double precision does not hold all bits of an ID");
    return good(converted);
}

bool is_age(const Value& value)
{
    return value.kind == Kind::fields && value.time.present && value.time.shift == 0 &&
           !value.shard.present && !value.counter.present;
}

/*
 * The clock without an epoch would be an epoch of 0, and nextval() without % 1024 would run into
 * the shard: both are slips, not layouts of their own.
 */
Outcome as_fields(const Value& value)
{
    if (value.kind == Kind::fields)
        return good(value);
    if (value.kind == Kind::draw)
        return bad("nextval() must be taken % 1024 before it goes into the ID");
    if (value.kind == Kind::millis)
        return bad("the clock goes into the ID without an epoch taken off it");
    if (value.kind != Kind::constant)
        return bad("this is neither a part of an ID nor a number");
    Value shard = of_kind(Kind::fields, value.type);
    shard.shard.present = true;
    shard.shard_number = value.number;
    return good(shard);
}

/* A field that is there twice is harmless in |, but not in +; nobody writes either on purpose. */
Outcome merge(const Value& left, const Value& right)
{
    const Outcome a = as_fields(left);
    const Outcome b = as_fields(right);
    if (a.problem != nullptr || b.problem != nullptr)
        return a.problem != nullptr ? a : b;
    if (a.value.time.present && b.value.time.present)
        return bad("the time goes into the ID twice");
    if (a.value.shard.present && b.value.shard.present)
        return bad("two numbers go into the ID; only the shard is expected to be one");
    if (a.value.counter.present && b.value.counter.present)
        return bad("nextval() goes into the ID twice");

    Value both = of_kind(Kind::fields, left.type);
    both.time = either(a.value.time, b.value.time);
    both.shard = either(a.value.shard, b.value.shard);
    both.counter = either(a.value.counter, b.value.counter);
    both.epoch = a.value.time.present ? a.value.epoch : b.value.epoch;
    both.shard_number = a.value.shard.present ? a.value.shard_number : b.value.shard_number;
    return good(both);
}

/* A field that is missing explains more than one that stands in the wrong place. */
Defect defect_of_id(const Value& value)
{
    if (value.kind != Kind::fields)
        return {"this is not an ID made of time, shard and counter", 0};
    if (!value.time.present)
        return {"the time is missing in the ID", 0};
    if (!value.shard.present)
        return {"the shard is missing in the ID", 0};
    if (!value.counter.present)
        return {"the counter, nextval() % 1024, is missing in the ID", 0};
    if (const char* problem = defect_of_field(value.time, kTimeShift); problem != nullptr)
        return {problem, value.time.line};
    if (const char* problem = defect_of_field(value.shard, kShardShift); problem != nullptr)
        return {problem, value.shard.line};
    return {defect_of_field(value.counter, 0), value.counter.line};
}

} // namespace snowflake::legacy
