#include "base/files.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/failure.h"

namespace
{

std::string rest_of(std::istream& input)
{
    return {std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
}

} // namespace

std::string read_file(const std::string& name)
{
    /* To open a folder for reading is no error, so this is asked before. */
    std::error_code error;
    errno = std::filesystem::is_directory(name, error) ? EISDIR : 0;
    std::ifstream input;
    if (errno == 0)
        input.open(name);
    std::string text = input.is_open() ? rest_of(input) : "";
    if (!input.is_open() || input.bad())
        throw Failure("cannot read " + name + ": " + std::generic_category().message(errno));
    return text;
}

std::string read_given_file(const std::string& name)
{
    if (name == "-")
        return rest_of(std::cin);
    try {
        return read_file(name);
    } catch (const Failure& error) {
        throw UsageError(error.what());
    }
}
