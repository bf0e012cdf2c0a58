#include "readers.h"

#include <cstring>
#include <memory>

namespace
{

/* A byte behind the text is read if it has no bracket. */
void read_past_end(const std::string& text, const std::string& /*file*/)
{
    const std::unique_ptr<char[]> copy(new char[text.size()]);
    text.copy(copy.get(), text.size());
    std::size_t at = 0;
    while (copy[at] != ']')
        at++;
}

void overflow(const std::string& text, const std::string& /*file*/)
{
    volatile int number = 0; /* else it is dead code */
    for (const char c : text)
        number = c >= '0' && c <= '9' ? 10 * number + (c - '0') : 0;
}

/* An exception that no caller expects. */
void throw_foreign(const std::string& text, const std::string& /*file*/)
{
    if (text.find('=') != std::string::npos)
        (void)std::stoi(text.substr(text.find('=') + 1));
}

/* It stays at a backslash. */
void hang(const std::string& text, const std::string& /*file*/)
{
    volatile std::size_t at = 0;
    while (at < text.size())
        at = at + (text[at] == '\\' ? 0 : 1);
}

void return_wrong_result(const std::string& text, const std::string& /*file*/)
{
    require(std::strlen(text.c_str()) == text.size(), "the text is read to its end");
}

void leak(const std::string& text, const std::string& /*file*/)
{
    auto copy = std::make_unique<std::string>(text);
    if (text.find(']') == std::string::npos)
        (void)copy.release();
} // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): on purpose

} // namespace

std::vector<Reader> broken_readers()
{
    const std::vector<std::string> seeds = {"[a]\nport=5432\n", "[b]\nx=7\ny=12\n"};
    std::vector<Reader> readers;
    const auto add = [&](const char* name, auto* read) {
        readers.push_back({name, seeds, {}, 2000, read, false});
    };
    add("read_past_end", read_past_end);
    add("overflow", overflow);
    add("throw_foreign", throw_foreign);
    add("hang", hang);
    add("return_wrong_result", return_wrong_result);
    add("leak", leak);
    return readers;
}
