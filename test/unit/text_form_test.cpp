#include "rule/text_form.h"

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "random_seed.h"

using namespace snowflake;

namespace
{

constexpr int kTextRounds = 100000;

std::string written(std::int64_t id, const TextForm& form)
{
    char text[kMaxTextWidth];
    return {text, static_cast<std::size_t>(write_text(Id{id}, form, text))};
}

TextReading read(const std::string& text, const TextForm& form)
{
    return read_text(text.data(), static_cast<int>(text.size()), form, digit_values(form));
}

/* Ids of each length in bits, and the ends. */
std::int64_t random_id(std::mt19937_64& random)
{
    const std::int64_t ends[] = {0, 1, kMaxId, kMaxId - 1};
    const std::int64_t choice = between(random, 0, 66);
    return choice > 62 ? ends[choice - 63] : between(random, 0, kMaxId >> choice);
}

TEST(TextForm, WhatIsWrittenIsRead)
{
    auto random = seeded_random("WhatIsWrittenIsRead");
    for (const TextForm& form : kTextForms)
        for (int i = 0; i < kTextRounds; ++i) {
            const std::int64_t id = random_id(random);
            const std::string text = written(id, form);
            const TextReading reading = read(text, form);
            ASSERT_EQ(reading.fault, TextFault::none) << text;
            ASSERT_EQ(raw(reading.id), id) << text;
            ASSERT_TRUE(form.is_fixed ? text.size() == static_cast<std::size_t>(form.width)
                                      : id == 0 || text[0] != form.digits[0]);
        }
}

TEST(TextForm, FixedWidthSortsAsTheIds)
{
    auto random = seeded_random("FixedWidthSortsAsTheIds");
    for (const TextForm& form : kTextForms)
        for (int i = 0; form.is_fixed && i < kTextRounds; ++i) {
            const std::int64_t a = random_id(random);
            const std::int64_t b = random_id(random);
            ASSERT_EQ(a < b, written(a, form) < written(b, form)) << a << ' ' << b;
        }
}

/* Each text that is read is the one that is written for its ID, but for the aliases of base32. */
TEST(TextForm, NoOtherTextIsRead)
{
    auto random = seeded_random("NoOtherTextIsRead");
    for (const TextForm& form : kTextForms)
        for (int i = 0; i < kTextRounds; ++i) {
            std::string text = written(random_id(random), form);
            text[static_cast<std::size_t>(
                between(random, 0, static_cast<std::int64_t>(text.size()) - 1))] =
                static_cast<char>(between(random, 0, 255));
            const TextReading reading = read(text, form);
            if (reading.fault == TextFault::none && form.base != 32) {
                ASSERT_EQ(written(raw(reading.id), form), text);
            }
        }
}

TEST(TextForm, Limits)
{
    const TextForm& base32 = kTextForms[0];
    EXPECT_EQ(written(kMaxId, base32), "7ZZZZZZZZZZZZ");
    EXPECT_EQ(raw(read("7zzzzzzzzzzzz", base32).id), kMaxId);
    EXPECT_EQ(raw(read("OoIiLl0000000", base32).id), raw(read("0011110000000", base32).id));
    const TextReading above = read("8000000000000", base32);
    EXPECT_EQ(above.fault, TextFault::too_large);
    EXPECT_EQ(above.place, 12);
    EXPECT_EQ(read("U000000000000", base32).fault, TextFault::no_digit);
    EXPECT_EQ(read("000000000000", base32).fault, TextFault::length);
    EXPECT_EQ(read("", kTextForms[3]).fault, TextFault::length);
    EXPECT_EQ(read("AB", kTextForms[3]).fault, TextFault::leading_zero);
    EXPECT_EQ(raw(read("A", kTextForms[3]).id), 0);
    EXPECT_EQ(raw(read("BqvsDleB3lV", kTextForms[3]).id), 1922949326347663701);
}

} // namespace
