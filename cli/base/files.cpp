#include "base/files.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include <fcntl.h>
#include <unistd.h>

#include "base/failure.h"

namespace
{

std::string rest_of(std::istream& input)
{
    return {std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
}

/* The reason is in errno, as the last call left it. */
void check(bool is_done, const std::string& what, const std::string& name)
{
    if (!is_done)
        throw Failure("cannot " + what + " " + name + ": " +
                      std::generic_category().message(errno));
}

/* A file or a folder. */
void sync(const std::string& name)
{
    const int file = open(name.c_str(), O_RDONLY | O_CLOEXEC);
    const bool is_synced = file >= 0 && fsync(file) == 0;
    const int reason = errno;
    if (file >= 0)
        close(file);
    errno = reason;
    check(is_synced, "sync", name);
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
    check(input.is_open() && !input.bad(), "read", name);
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

/* In the same folder, because rename() does not reach another file system. The file is synced
 * before rename(), or a crash could leave the name with an empty file; the folder behind it. */
void write_file(const std::string& name, const std::string& text)
{
    const std::string scratch = name + ".new";
    std::ofstream output(scratch, std::ios::trunc);
    output << text << std::flush;
    check(output.good(), "write", scratch);
    output.close();
    sync(scratch);
    check(std::rename(scratch.c_str(), name.c_str()) == 0, "replace", name);
    const std::filesystem::path folder = std::filesystem::absolute(name).parent_path();
    sync(folder);
}
