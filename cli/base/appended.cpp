#include "base/appended.h"

#include <cerrno>
#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/standard_output.h"

Appended look_at_output()
{
    struct stat status = {};
    const int flags = fcntl(STDOUT_FILENO, F_GETFL);
    if (flags < 0 || (flags & O_APPEND) == 0 || fstat(STDOUT_FILENO, &status) != 0 ||
        !S_ISREG(status.st_mode))
        return {};
    return {std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino), status.st_size};
}

void cut_output(std::int64_t length)
{
    if (ftruncate(STDOUT_FILENO, length) != 0)
        throw Failure("cannot cut the output to " + std::to_string(length) +
                      " bytes: " + std::generic_category().message(errno));
}

/* The standard output can be open for writing alone. */
bool ends_within_line()
{
    struct stat status = {};
    if (fstat(STDOUT_FILENO, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
        return false;
    std::ifstream written("/proc/self/fd/1");
    written.seekg(-1, std::ios::end);
    return written.get() != '\n';
}

/* A pipe and a terminal cannot be synced (EINVAL). */
void sync_output()
{
    flush_output();
    if (fsync(STDOUT_FILENO) != 0 && errno != EINVAL && errno != EROFS)
        throw Failure("the output cannot be written: " + std::generic_category().message(errno));
}
