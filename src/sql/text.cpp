/* SQL functions that write and read IDs as text: fetch, call, return. */
#include "rule/text_form.h"
#include "errors.h"
#include "pg.h"

using namespace snowflake;

namespace
{

constexpr DigitValues kDigitValues[] = {digit_values(kTextForms[0]), digit_values(kTextForms[1]),
                                        digit_values(kTextForms[2]), digit_values(kTextForms[3])};
constexpr int kForms = lengthof(kTextForms);
static_assert(kForms == lengthof(kDigitValues), "digits of each form");

struct Argument {
    const char* bytes;
    int length;
};

Argument text_argument(const text* value)
{
    return {VARDATA_ANY(value), static_cast<int>(VARSIZE_ANY_EXHDR(value))};
}

[[noreturn]] void unknown_encoding(Argument name)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("encoding \"%.*s\" is unknown", name.length, name.bytes),
                    errhint("The encodings are %s, %s, %s and %s.", kTextForms[0].name,
                            kTextForms[1].name, kTextForms[2].name, kTextForms[3].name)));
}

int form_argument(FunctionCallInfo fcinfo, int index)
{
    const Argument name = text_argument(PG_GETARG_TEXT_PP(index));
    for (int i = 0; i < kForms; ++i)
        if (static_cast<int>(strlen(kTextForms[i].name)) == name.length &&
            memcmp(kTextForms[i].name, name.bytes, static_cast<std::size_t>(name.length)) == 0)
            return i;
    unknown_encoding(name);
}

[[noreturn]] void negative_id(Id id)
{
    ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                    errmsg("%lld is no ID", errors::number(raw(id))),
                    errdetail("An ID is 0 to %lld.", errors::number(kMaxId))));
}

/* Characters before a byte, from 1 on: a text of the caller may hold others than ASCII. */
int place_of(Argument given, int byte)
{
    return pg_mbstrlen_with_len(given.bytes, byte) + 1;
}

[[noreturn]] void too_large(Argument given, const TextReading& reading)
{
    ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                    errmsg("\"%.*s\" is out of range", given.length, given.bytes),
                    errdetail("With character %d, \"%c\", it is above %lld.",
                              place_of(given, reading.place), given.bytes[reading.place],
                              errors::number(kMaxId))));
}

const char* what_is_wrong(Argument given, const TextForm& form, const TextReading& reading)
{
    const char* at = given.bytes + reading.place;
    if (reading.fault == TextFault::no_digit)
        return psprintf("Character %d, \"%.*s\", is not one of %s.", place_of(given, reading.place),
                        pg_mblen(at), at, form.digits);
    if (reading.fault == TextFault::leading_zero)
        return psprintf("Character 1, \"%c\", stands for 0, and is not written there.", *at);
    if (form.is_fixed)
        return psprintf("It has %d characters, and an ID has %d.",
                        place_of(given, given.length) - 1, form.width);
    return "It is empty.";
}

[[noreturn]] void malformed(Argument given, const TextForm& form, const TextReading& reading)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                    errmsg("\"%.*s\" is no ID in %s", given.length, given.bytes, form.name),
                    errdetail("%s", what_is_wrong(given, form, reading))));
}

} // namespace

extern "C" {

/* snowflake_to_text(id bigint, encoding text) returns text */
PG_FUNCTION_INFO_V1(snowflake_to_text);
PGDLLEXPORT Datum snowflake_to_text(PG_FUNCTION_ARGS)
{
    const Id id{PG_GETARG_INT64(0)};
    const TextForm& form = kTextForms[form_argument(fcinfo, 1)];
    if (raw(id) < 0)
        negative_id(id);
    auto* result = static_cast<text*>(palloc(VARHDRSZ + kMaxTextWidth));
    SET_VARSIZE(result, VARHDRSZ + write_text(id, form, VARDATA(result)));
    PG_RETURN_TEXT_P(result);
}

/* snowflake_from_text(id text, encoding text) returns bigint */
PG_FUNCTION_INFO_V1(snowflake_from_text);
PGDLLEXPORT Datum snowflake_from_text(PG_FUNCTION_ARGS)
{
    const Argument given = text_argument(PG_GETARG_TEXT_PP(0));
    const int form = form_argument(fcinfo, 1);
    const TextReading reading =
        read_text(given.bytes, given.length, kTextForms[form], kDigitValues[form]);
    if (reading.fault == TextFault::too_large)
        too_large(given, reading);
    if (reading.fault != TextFault::none)
        malformed(given, kTextForms[form], reading);
    PG_RETURN_INT64(raw(reading.id));
}
}
