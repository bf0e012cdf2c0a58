#include "base/files.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
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

void sync_folder(const std::string& name)
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

bool write_all(int file, const std::string& text)
{
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t count = write(file, text.data() + at, text.size() - at);
        if (count < 0 && errno != EINTR)
            return false;
        at += count < 0 ? 0 : static_cast<std::size_t>(count);
    }
    return true;
}

std::string read_file(const std::string& name)
{
    /* Opening a folder for reading is no error, so this is checked before. */
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

KeptFile::KeptFile(std::string name) : name_(std::move(name))
{
    try {
        while (!open_locked())
            close(file_);
    } catch (...) {
        if (file_ >= 0)
            close(file_);
        throw;
    }
}

KeptFile::~KeptFile()
{
    close(file_);
}

/* False if the file was replaced before it was locked. Others cannot read a new one, and so cannot
 * lock it. O_NONBLOCK: without it, open() of a FIFO waits for its other end. */
bool KeptFile::open_locked()
{
    file_ = open(name_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                 S_IRUSR | S_IWUSR);
    if (file_ < 0 && errno == ELOOP)
        throw UsageError(name_ + " is a symbolic link: name the file itself");
    check(file_ >= 0, "open", name_);
    struct stat opened = {};
    check(fstat(file_, &opened) == 0, "read", name_);
    if (!S_ISREG(opened.st_mode))
        throw UsageError(name_ + " is no regular file");
    const bool is_locked = flock(file_, LOCK_EX | LOCK_NB) == 0;
    if (!is_locked && errno == EWOULDBLOCK)
        throw Failure("another command works with " + name_ + " just now");
    check(is_locked, "lock", name_);
    struct stat named = {};
    return lstat(name_.c_str(), &named) == 0 && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

std::string KeptFile::read() const
{
    std::string text;
    std::array<char, 65536> part = {};
    ssize_t count = 0;
    while ((count = pread(file_, part.data(), part.size(), static_cast<off_t>(text.size()))) > 0)
        text.append(part.data(), static_cast<std::size_t>(count));
    check(count == 0, "read", name_);
    return text;
}

/* The new file is in the same folder, because rename() does not reach another file system. It is
 * synced before rename(), or a crash could leave the name with an empty file; the folder is synced
 * after it. O_EXCL follows no link that another user has put there; a file that a killed command
 * has left is removed before. The new file is locked before it has the name, and the old one until
 * then. */
void KeptFile::replace(const std::string& text)
{
    const std::string scratch = name_ + ".new";
    struct stat old = {};
    check(fstat(file_, &old) == 0, "read", name_);
    unlink(scratch.c_str());
    const int made =
        open(scratch.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    check(made >= 0, "write", scratch);
    const bool is_written = flock(made, LOCK_EX | LOCK_NB) == 0 && write_all(made, text) &&
                            fchmod(made, old.st_mode & 0777) == 0 && fsync(made) == 0;
    const bool is_renamed = is_written && std::rename(scratch.c_str(), name_.c_str()) == 0;
    const int reason = errno;
    close(is_renamed ? std::exchange(file_, made) : made);
    errno = reason;
    check(is_written, "write", scratch);
    check(is_renamed, "replace", name_);
    sync_folder(std::filesystem::absolute(name_).parent_path());
}
