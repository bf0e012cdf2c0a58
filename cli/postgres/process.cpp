#include "postgres/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "postgres/connection.h"
#include "interrupt.h"

namespace
{

/* The program beside this one, because that in PATH may be older than the servers. A name without a
 * slash is looked up in PATH. */
std::string path_of(const std::string& name)
{
    std::array<char, 4096> self = {};
    const ssize_t size = readlink("/proc/self/exe", self.data(), self.size());
    const std::string path(self.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    const std::string beside = path.substr(0, path.rfind('/') + 1) + name;
    return beside != name && access(beside.c_str(), X_OK) == 0 ? beside : name;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts)
{
    std::vector<char*> pointers;
    for (std::string& text : texts)
        pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

/* Ours, with these variables (KEY=value) in the place of those of the same names. */
std::vector<std::string> environment_with(const std::vector<std::string>& variables)
{
    std::vector<std::string> environment = variables;
    for (char** variable = environ; *variable != nullptr; variable++) {
        const std::string key = std::string(*variable).substr(0, std::strcspn(*variable, "=") + 1);
        if (std::none_of(variables.begin(), variables.end(), [&](const std::string& ours) {
                return ours.compare(0, key.size(), key) == 0;
            }))
            environment.emplace_back(*variable);
    }
    return environment;
}

/* Its standard output is this file. The copy that dup2() makes has no close-on-exec flag, so it is
 * the only end of a pipe that the child keeps. */
pid_t start(const std::string& path, std::vector<std::string> words, int output,
            std::vector<std::string> environment)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    pid_t child = 0;
    const int error = posix_spawnp(&child, path.c_str(), &actions, nullptr,
                                   pointers_to(words).data(), pointers_to(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        throw Failure("cannot run " + path + ": " + std::strerror(error));
    return child;
}

int await_end(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* Its output until it closes the pipe. Ctrl-C ends it, too: it may wait for a lock. pg_dump answers
 * SIGTERM with a cancel request for its statement, so it leaves the lock's queue on the server. It
 * ignores the signals that follow. */
std::string read_all(int file, pid_t child)
{
    std::string output;
    std::array<char, 65536> buffer;
    for (;;) {
        pollfd pipe = {file, POLLIN, 0};
        if (poll(&pipe, 1, 100) <= 0) {
            if (is_interrupted())
                kill(child, SIGTERM);
            continue;
        }
        const ssize_t size = read(file, buffer.data(), buffer.size());
        if (size == 0)
            return output;
        if (size > 0)
            output.append(buffer.data(), static_cast<std::size_t>(size));
        else if (errno != EINTR)
            throw Failure(std::string("cannot read from a pipe: ") + std::strerror(errno));
    }
}

} // namespace

std::string run_program(const std::string& name, const std::vector<std::string>& arguments,
                        const std::string& password)
{
    std::vector<std::string> words = {name};
    words.insert(words.end(), arguments.begin(), arguments.end());
    /* O_CLOEXEC: a child that another thread starts must not keep the writing end open, or
     * read_all() never sees the end. */
    std::array<int, 2> pipe = {};
    if (pipe2(pipe.data(), O_CLOEXEC) != 0)
        throw Failure(std::string("cannot make a pipe: ") + std::strerror(errno));
    pid_t child = 0;
    try {
        /* The password is in the environment, because ps shows arguments to every user. */
        child = start(path_of(name), words, pipe[1],
                      environment_with(password.empty()
                                           ? std::vector<std::string>()
                                           : std::vector<std::string>{"PGPASSWORD=" + password}));
    } catch (...) {
        close(pipe[0]);
        close(pipe[1]);
        throw;
    }
    /* Ours is closed first: the end is seen when no process has the writing end open. The output is
     * read before the wait, because a program whose pipe is full does not end. */
    close(pipe[1]);
    std::string output = read_all(pipe[0], child);
    close(pipe[0]);
    if (await_end(child) != 0)
        throw Failure(is_interrupted() ? "stopped" : name + " failed; its message stands above");
    return output;
}

std::string run_shell(const std::string& command, const std::vector<std::string>& variables)
{
    /* Standard output has the results of the command itself, also as JSON. */
    const int status = await_end(
        start("/bin/sh", {"sh", "-c", command}, STDERR_FILENO, environment_with(variables)));
    if (WIFSIGNALED(status))
        return "was ended by signal " + std::to_string(WTERMSIG(status));
    return status == 0 ? "" : "has failed with exit status " + std::to_string(WEXITSTATUS(status));
}
