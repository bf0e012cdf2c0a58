#include "base/quoting.h"

#include <algorithm>
#include <cstdint>

#include "base/failure.h"

namespace
{

unsigned char byte_of(char c)
{
    return static_cast<unsigned char>(c);
}

bool is_letter_or_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool has_only(const std::string& text, const std::string& more)
{
    return std::all_of(text.begin(), text.end(), [&](char c) {
        return is_letter_or_digit(c) || more.find(c) != std::string::npos;
    });
}

/* These characters have no meaning to a shell, libpq and PgBouncer. A list of those that have one
 * would depend on their versions and on the locale: libpq separates settings by isspace(). */
bool is_plain(const std::string& text)
{
    return !text.empty() && has_only(text, "_./:@%+=,-");
}

bool is_control(char c)
{
    return byte_of(c) < 0x20 || c == 0x7F;
}

bool has_control(const std::string& text)
{
    return std::any_of(text.begin(), text.end(), is_control);
}

std::string hex_of(char c)
{
    const std::string digits = "0123456789ABCDEF";
    return {digits[byte_of(c) >> 4], digits[byte_of(c) & 15]};
}

std::string escape_of(char c)
{
    return c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : "\\x" + hex_of(c);
}

/* Three digits, so that digits of the text can follow. */
std::string octal_of(char c)
{
    const auto digit = [&](int shift) {
        return static_cast<char>('0' + ((byte_of(c) >> shift) & 7));
    };
    return {'\\', digit(6), digit(3), digit(0)};
}

/* Bytes of the UTF-8 character that begins here; 0 if none does. A form that is longer than needed
 * is none: a lenient terminal could read an ESC in it. */
std::size_t character_length(const std::string& text, std::size_t at)
{
    const unsigned char first = byte_of(text[at]);
    const std::size_t length = first < 0x80                     ? 1
                               : first >= 0xC2 && first <= 0xDF ? 2
                               : first >= 0xE0 && first <= 0xEF ? 3
                               : first >= 0xF0 && first <= 0xF4 ? 4
                                                                : 0;
    if (length == 0 || at + length > text.size())
        return 0;
    std::uint32_t code = length == 1 ? first : first & (0x7FU >> length);
    for (std::size_t i = 1; i < length; i++) {
        if ((byte_of(text[at + i]) & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (byte_of(text[at + i]) & 0x3FU);
    }
    const bool is_long = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    return is_long || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF) ? 0 : length;
}

} // namespace

/* '...' is for every shell. $'...' is for a text with control characters, which would not pass
 * visible() as they are; all its other special characters are escaped as well. A word that begins
 * with - is an option for the program also between quotes. */
std::string shell_quoted(const std::string& text)
{
    if (is_plain(text) && text[0] != '-')
        return text;
    std::string quoted;
    if (visible(text) == text) {
        for (const char c : text)
            quoted += c == '\'' ? "'\\''" : std::string(1, c);
        return "'" + quoted + "'";
    }
    for (const char c : text)
        quoted += is_plain({c}) ? std::string(1, c) : octal_of(c);
    return "$'" + quoted + "'";
}

std::string dsn_setting(const std::string& key, const std::string& value)
{
    if (is_plain(value))
        return key + "=" + value;
    std::string quoted;
    for (const char c : value)
        /* The escapes of a connection string: a backslash before a quote or a backslash. */
        quoted += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
    return key + "='" + quoted + "'";
}

std::string uri_encoded(const std::string& text)
{
    std::string encoded;
    for (const char c : text)
        encoded += has_only(std::string(1, c), "-._~") ? std::string(1, c) : "%" + hex_of(c);
    return encoded;
}

/* PgBouncer's file has one line for a database. A quote between quotes is doubled, and a backslash
 * is an ordinary character (cstr_get_pair() in PgBouncer's loader.c, which refuses an empty value,
 * too). */
std::string pooler_value(const std::string& text)
{
    if (text.empty() || has_control(text))
        throw Failure("PgBouncer's file cannot hold the value \"" + visible(text) + "\"");
    return is_plain(text) ? text : "'" + doubled(text) + "'";
}

/* Quotes around a name are a syntax error before PgBouncer 1.22. */
std::string pooler_key(const std::string& alias)
{
    if (alias.empty() || !has_only(alias, "_.-"))
        throw Failure("PgBouncer's file cannot hold the alias \"" + visible(alias) +
                      "\": it may have letters, digits, and the characters _ . -");
    return alias;
}

std::string console_name(const std::string& name)
{
    return "\"" + doubled(name, '"') + "\"";
}

/* C1, U+0080 to U+009F, are control characters, too: U+009B is ESC [. Their bytes alone are those
 * of an 8-bit terminal, and can be in a text of SQL_ASCII. */
std::string visible(const std::string& text, const std::string& kept)
{
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        const std::size_t length = std::max<std::size_t>(character_length(text, at), 1);
        const bool is_c1 = length == 2 ? byte_of(c) == 0xC2 && byte_of(text[at + 1]) < 0xA0
                                       : length == 1 && byte_of(c) >= 0x80 && byte_of(c) < 0xA0;
        if (is_c1)
            shown += "\\x" + hex_of(text[at + length - 1]);
        else if (is_control(c) && kept.find(c) == std::string::npos)
            shown += escape_of(c);
        else
            shown.append(text, at, length);
        at += length;
    }
    return shown;
}

std::string doubled(const std::string& text, char quote)
{
    std::string doubled;
    for (const char c : text)
        doubled.append(c == quote ? 2 : 1, c);
    return doubled;
}

/* Quotes and backslashes are escaped as array_in() reads them. */
std::string sql_array(const std::vector<std::string>& texts)
{
    std::string array;
    for (const std::string& text : texts) {
        array += array.empty() ? "\"" : ",\"";
        for (const char c : text)
            array += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
        array += '"';
    }
    return "{" + array + "}";
}

std::string joined(const std::vector<std::string>& texts, const std::string& separator,
                   const std::string& before)
{
    std::string list;
    for (const std::string& text : texts)
        list += (list.empty() ? "" : separator) + before + text;
    return list;
}
