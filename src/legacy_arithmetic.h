/*
 * The operators and functions of an ID function, each with its meaning for an ID and on the types
 * on which PostgreSQL has it. Pure.
 */
#pragma once

#include "legacy_value.h"

namespace snowflake::legacy
{

enum class Operator { add, subtract, multiply, modulo, bit_and, bit_or };

Outcome apply(Operator op, const Value& left, const Value& right);

/* Not one of them, as its operands are not promoted to one type. `line`: where it stands. */
Outcome shift_left(const Value& value, const Value& bits, int line);

Outcome negate(const Value& value);

/* floor(), trunc() or round() */
Outcome to_whole(const Value& value);

/* extract(epoch from ...) gives numeric, date_part('epoch', ...) float8. */
Outcome epoch_of(const Value& value, Type type);

} // namespace snowflake::legacy
