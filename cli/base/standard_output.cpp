#include "base/standard_output.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <streambuf>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "base/failure.h"

namespace
{

std::atomic<int> reason = 0; /* errno of the first error; 0: none */

bool noted(bool is_done)
{
    int none = 0;
    if (!is_done)
        reason.compare_exchange_strong(none, errno);
    return is_done;
}

/* Passes all on to stdio, as the buffer of std::cout does, but notes the reason of an error:
 * streams forget it, and stdio drops the bytes, so that a later flush succeeds. */
class NotedBuffer : public std::streambuf
{
protected:
    int_type overflow(int_type c) override
    {
        if (traits_type::eq_int_type(c, traits_type::eof()))
            return traits_type::not_eof(c);
        return noted(std::putc(c, stdout) != EOF) ? c : traits_type::eof();
    }
    std::streamsize xsputn(const char* text, std::streamsize size) override
    {
        const auto wanted = static_cast<std::size_t>(size);
        const std::size_t count = std::fwrite(text, 1, wanted, stdout);
        noted(count == wanted);
        return static_cast<std::streamsize>(count);
    }
    int sync() override { return noted(std::fflush(stdout) == 0) ? 0 : -1; }
};

} // namespace

/* A standard file that is closed (>&-) would be the number of the next connection to a server,
 * which would get the output. In its place comes a file that cannot be used in its direction, so
 * that a write is the same error as with the closed one. */
void open_output()
{
    for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(file, F_GETFD) < 0)
            static_cast<void>(open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY));
    /* Never destroyed: std::cout is flushed once more behind the last destructor. */
    static NotedBuffer& buffer = *new NotedBuffer;
    std::cout.rdbuf(&buffer);
}

void require_output()
{
    if (reason != 0)
        throw Failure("the output cannot be written: " + std::generic_category().message(reason));
}

void flush_output()
{
    std::cout << std::flush;
    require_output();
}

void close_output()
{
    flush_output();
    noted(close(STDOUT_FILENO) == 0);
    require_output();
}
