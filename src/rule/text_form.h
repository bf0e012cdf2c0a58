/*
 * IDs as text, for URLs and for people: the alphabets, writing and reading. Pure.
 *
 * A form is a number system. In the forms of a fixed width the digits stand in the order of their
 * bytes, so texts sort as their IDs do (under COLLATE "C"). base64url is Instagram's shortcode,
 * without digits in front that stand for 0.
 *
 * An ID has one text in a form, and is written with it. Reading base32 also takes what Crockford's
 * definition takes for a digit: lower case, I and L for 1, O for 0.
 */
#pragma once

#include "rule/layout.h"

namespace snowflake
{

struct TextForm {
    const char* name;
    const char* digits;
    const char* aliases; /* pairs: what is read as a digit, too, and that digit */
    int base;
    int width;     /* of the largest ID */
    bool is_fixed; /* digits in front that stand for 0 are written */
};

constexpr TextForm kTextForms[] = {
    {"base32", "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
     "aAbBcCdDeEfFgGhHjJkKmMnNpPqQrRsStTvVwWxXyYzZI1i1L1l1O0o0", 32, 13, true},
    {"base62", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "", 62, 11, true},
    {"base58", "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", "", 58, 11, true},
    {"base64url", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", "", 64, 11,
     false},
};
constexpr int kMaxTextWidth = 13;

/* The value of each byte as a digit; kNoDigit: it is none. */
struct DigitValues {
    static constexpr std::int8_t kNoDigit = -1;
    std::int8_t of[256];
};

constexpr DigitValues digit_values(const TextForm& form)
{
    DigitValues values = {};
    for (std::int8_t& value : values.of)
        value = DigitValues::kNoDigit;
    for (int i = 0; i < form.base; ++i)
        values.of[static_cast<unsigned char>(form.digits[i])] = static_cast<std::int8_t>(i);
    for (const char* alias = form.aliases; *alias != '\0'; alias += 2)
        values.of[static_cast<unsigned char>(alias[0])] =
            values.of[static_cast<unsigned char>(alias[1])];
    return values;
}

/* The width of a number below 2^63 in a base. */
constexpr int width_in(int base)
{
    int width = 0;
    for (std::uint64_t rest = kMaxId; rest > 0; rest /= static_cast<std::uint64_t>(base))
        ++width;
    return width;
}
static_assert(width_in(32) == kTextForms[0].width && width_in(62) == kTextForms[1].width &&
                  width_in(58) == kTextForms[2].width && width_in(64) == kTextForms[3].width,
              "the widest ID has as many digits as its form says");

/* Base: a constant, so that the compiler makes multiplications of the divisions. */
template <int Base>
int write_digits(std::uint64_t id, const TextForm& form, char* text)
{
    char reversed[kMaxTextWidth];
    int length = 0;
    do {
        reversed[length++] = form.digits[id % Base];
        id /= Base;
    } while (id > 0 || (form.is_fixed && length < form.width));
    for (int i = 0; i < length; ++i)
        text[i] = reversed[length - 1 - i];
    return length;
}

/* Writes an ID that is not negative, and returns the length: at most kMaxTextWidth, no '\0'. */
inline int write_text(Id id, const TextForm& form, char* text)
{
    const auto value = static_cast<std::uint64_t>(raw(id));
    switch (form.base) {
    case 32:
        return write_digits<32>(value, form, text);
    case 58:
        return write_digits<58>(value, form, text);
    case 62:
        return write_digits<62>(value, form, text);
    default:
        return write_digits<64>(value, form, text);
    }
}

enum class TextFault {
    none,
    length,       /* not the width of the form, or none */
    no_digit,     /* at the place */
    leading_zero, /* a form without a fixed width begins with one */
    too_large     /* from the digit at the place on */
};

struct TextReading {
    TextFault fault;
    int place; /* of the byte, from 0 */
    Id id;
};

inline TextReading read_text(const char* text, int length, const TextForm& form,
                             const DigitValues& values)
{
    std::uint64_t id = 0;
    int too_large_at = -1;
    for (int i = 0; i < length; ++i) {
        const int value = values.of[static_cast<unsigned char>(text[i])];
        if (value == DigitValues::kNoDigit)
            return {TextFault::no_digit, i, Id{0}};
        if (too_large_at >= 0)
            continue;
        const auto digit = static_cast<std::uint64_t>(value);
        const auto base = static_cast<std::uint64_t>(form.base);
        if (id > (static_cast<std::uint64_t>(kMaxId) - digit) / base)
            too_large_at = i;
        else
            id = id * base + digit;
    }
    if (form.is_fixed ? length != form.width : length == 0)
        return {TextFault::length, 0, Id{0}};
    if (!form.is_fixed && length > 1 && text[0] == form.digits[0])
        return {TextFault::leading_zero, 0, Id{0}};
    if (too_large_at >= 0)
        return {TextFault::too_large, too_large_at, Id{0}};
    return {TextFault::none, 0, Id{static_cast<std::int64_t>(id)}};
}

} // namespace snowflake
