#include "postgres/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/interrupt.h"
#include "base/match.h"
#include "base/quoting.h"
#include "postgres/error_text.h"

namespace
{

/* The folder of the program that is running. */
std::string own_folder()
{
    std::array<char, 4096> self = {};
    const ssize_t size = readlink("/proc/self/exe", self.data(), self.size());
    const std::string path(self.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return path.substr(0, path.rfind('/') + 1);
}

int major_of(int server_version)
{
    return server_version / 10000;
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

/* O_CLOEXEC: a child that another thread starts must not keep the writing end open, or read_all()
 * never sees the end. */
class Pipe
{
public:
    Pipe()
    {
        if (pipe2(ends_.data(), O_CLOEXEC) != 0)
            throw Failure(std::string("cannot make a pipe: ") + std::strerror(errno));
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe()
    {
        close(ends_[0]);
        close_writing();
    }

    int writing() const { return ends_[1]; }
    /* The end is seen when no process has the writing end open. */
    void close_writing()
    {
        if (ends_[1] >= 0)
            close(std::exchange(ends_[1], -1));
    }
    /* The argument of poll(); the descriptor is -1 when all is read. */
    pollfd polled() const { return {is_read_ ? -1 : ends_[0], POLLIN, 0}; }
    void read_some()
    {
        std::array<char, 65536> buffer;
        const ssize_t size = read(ends_[0], buffer.data(), buffer.size());
        if (size > 0)
            text_.append(buffer.data(), static_cast<std::size_t>(size));
        else if (size < 0 && errno != EINTR)
            throw Failure(std::string("cannot read from a pipe: ") + std::strerror(errno));
        is_read_ = size == 0;
    }
    bool is_read() const { return is_read_; }
    const std::string& text() const { return text_; }

private:
    std::array<int, 2> ends_ = {};
    bool is_read_ = false;
    std::string text_;
};

int await_end(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* with_us: after a kill -9 of the command, too. pg_dump would wait for a lock as long as others
 * hold it. It answers SIGTERM with a cancel request for its statement. in_group: by a signal to the
 * group of its own that it has, with the processes that a shell has started. */
enum class Ends { with_us, by_itself, in_group };

/* Starts a program with these files as its standard output and standard error, and as its standard
 * input if that is not ours. The copy that dup2() makes has no close-on-exec flag, so it is the
 * only end of a pipe that the child keeps. posix_spawn() cannot ask for a signal. A process with
 * threads permits only few calls between fork() and exec. */
pid_t start(const std::string& path, std::vector<std::string> words, int output, int errors,
            std::vector<std::string> environment, Ends ends, int input = STDIN_FILENO)
{
    const std::vector<char*> arguments = pointers_to(words);
    const std::vector<char*> variables = pointers_to(environment);
    Pipe failure; /* exec closes it */
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGTERM, SIG_DFL);
        if (ends == Ends::with_us) {
            prctl(PR_SET_PDEATHSIG, SIGTERM);
            if (getppid() != parent) /* it has ended before the request */
                _exit(1);
        }
        if (ends == Ends::in_group)
            setpgid(0, 0);
        if (dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
            dup2(errors, STDERR_FILENO) >= 0)
            execvpe(path.c_str(), arguments.data(), variables.data());
        const int error = errno;
        _exit(write(failure.writing(), &error, sizeof(error)) < 0 ? 2 : 1);
    }
    if (child < 0)
        throw Failure(std::string("cannot start a process: ") + std::strerror(errno));
    failure.close_writing();
    while (!failure.is_read())
        failure.read_some();
    int error = 0;
    failure.text().copy(reinterpret_cast<char*>(&error), sizeof(error));
    if (error != 0) {
        await_end(child);
        throw Failure("cannot run " + path + ": " + std::strerror(error));
    }
    return child;
}

/* Reads until the child closes the pipes. check() runs several times a second. */
void read_all(Pipe& output, Pipe& errors, const std::function<void()>& check)
{
    while (!output.is_read() || !errors.is_read()) {
        std::array<pollfd, 2> pipes = {output.polled(), errors.polled()};
        if (poll(pipes.data(), pipes.size(), 100) <= 0) {
            check();
            continue;
        }
        if (pipes[0].revents != 0)
            output.read_some();
        if (pipes[1].revents != 0)
            errors.read_some();
    }
}

struct Ended {
    int status;
    std::string output;
    std::string errors;
};

/* variables: KEY=value */
Ended run(const std::string& path, const std::vector<std::string>& arguments,
          const std::vector<std::string>& variables)
{
    std::vector<std::string> words = {path};
    words.insert(words.end(), arguments.begin(), arguments.end());
    Pipe output;
    Pipe errors;
    const pid_t child = start(path, words, output.writing(), errors.writing(),
                              environment_with(variables), Ends::with_us);
    /* All is read before the wait, because a program whose pipe is full does not end. */
    output.close_writing();
    errors.close_writing();
    /* Ctrl-C ends it, too: it may wait for a lock. pg_dump answers SIGTERM with a cancel request
     * for its statement, so it leaves the lock's queue on the server. It ignores the signals that
     * follow. */
    read_all(output, errors, [child] {
        if (is_interrupted())
            kill(child, SIGTERM);
    });
    return {await_end(child), output.text(), errors.text()};
}

std::string describe_end(int status)
{
    if (WIFSIGNALED(status))
        return "was ended by signal " + std::to_string(WTERMSIG(status));
    return "has failed with exit status " + std::to_string(WEXITSTATUS(status));
}

/* The program begins each message with its name: "error: ...; detail: ...". */
std::string in_one_line(const std::string& program, const std::string& messages)
{
    const std::string begin = "\n" + program + ": ";
    std::string line;
    std::string left = "\n" + trimmed(messages);
    while (!left.empty()) {
        const std::size_t from = left.rfind(begin, 0) == 0 ? begin.size() : 1;
        const std::size_t end = std::min(left.find(begin, from), left.size());
        line += (line.empty() ? "" : "; ") + visible(left.substr(from, end - from));
        left.erase(0, end);
    }
    return line;
}

/* A file without a name, to be read from its beginning. */
class TextFile
{
public:
    explicit TextFile(const std::string& text) : number_(memfd_create("text", MFD_CLOEXEC))
    {
        if (number_ < 0 || write(number_, text.data(), text.size()) != ssize_t(text.size()) ||
            lseek(number_, 0, SEEK_SET) != 0)
            throw Failure(std::string("cannot write a file in memory: ") + std::strerror(errno));
    }
    TextFile(const TextFile&) = delete;
    TextFile& operator=(const TextFile&) = delete;
    ~TextFile() { close(number_); }

    int number() const { return number_; }

private:
    const int number_;
};

/* The version that the program prints: pg_dump (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1). */
std::string read_version(const std::string& path)
{
    static std::mutex mutex;
    static std::map<std::string, std::string> versions;
    const std::lock_guard<std::mutex> lock(mutex);
    const auto [known, is_new] = versions.emplace(path, "");
    if (is_new) {
        const std::string before = "(PostgreSQL) ";
        const std::string text = run(path, {"--version"}, {}).output;
        const std::size_t at = text.find(before);
        if (at != std::string::npos)
            std::istringstream(text.substr(at + before.size())) >> known->second;
    }
    return known->second;
}

/* /usr/lib/postgresql/15/bin/, if this command is in such a folder of another release; else that of
 * this command. */
std::string folder_of(int release)
{
    const std::string own = own_folder();
    const auto parts = match(own, "^(.*/)[0-9]+(/bin/)$");
    return parts.empty() ? own : parts[1] + std::to_string(release) + parts[2];
}

} // namespace

bool Program::is_for(int server_version) const
{
    return std::atoi(version.c_str()) >= major_of(server_version);
}

Program find_program(const std::string& name, int server_version)
{
    const int release = major_of(server_version);
    std::vector<std::string> folders = {own_folder(), folder_of(release)};
    const char* const path = std::getenv("PATH");
    std::istringstream rest(path == nullptr ? "" : path);
    for (std::string folder; std::getline(rest, folder, ':');)
        folders.push_back(folder + "/");
    Program chosen = {name, ""};
    for (const std::string& folder : folders) {
        const std::string there = folder + name;
        if (there.front() != '/' || access(there.c_str(), X_OK) != 0)
            continue;
        Program program = {there, read_version(there)};
        if (std::atoi(program.version.c_str()) == release)
            return program;
        if (chosen.version.empty() ||
            (!chosen.is_for(server_version) && program.is_for(server_version)))
            chosen = program;
    }
    return chosen;
}

std::string run_program(const std::string& path, const std::vector<std::string>& arguments,
                        const std::string& password)
{
    const Ended ended = run(path, arguments,
                            password.empty() ? std::vector<std::string>()
                                             : std::vector<std::string>{"PGPASSWORD=" + password});
    if (ended.status != 0) {
        const std::string name = path.substr(path.rfind('/') + 1);
        throw Failure(is_interrupted()
                          ? "stopped"
                          : name + " failed: " +
                                (ended.errors.empty() ? "it " + describe_end(ended.status)
                                                      : in_one_line(name, ended.errors)));
    }
    /* pg_dump names objects as their owners did. */
    std::cerr << visible(ended.errors, "\n\t") << std::flush;
    return ended.output;
}

std::string run_shell(const std::string& command, const std::vector<std::string>& variables)
{
    /* Standard output has the results of the command itself, also as JSON. */
    const int status =
        await_end(start("/bin/sh", {"sh", "-c", command}, STDERR_FILENO, STDERR_FILENO,
                        environment_with(variables), Ends::by_itself));
    return status == 0 ? "" : describe_end(status);
}

std::string run_shell_with(const std::string& command, const std::string& input,
                           Clock::time_point deadline)
{
    const TextFile file(input);
    Pipe output;
    Pipe errors;
    const pid_t child = start("/bin/sh", {"sh", "-c", command}, output.writing(), errors.writing(),
                              environment_with({}), Ends::in_group, file.number());
    output.close_writing();
    errors.close_writing();
    bool is_late = false;
    read_all(output, errors, [&] {
        is_late = is_late || Clock::now() > deadline;
        if (is_late)
            kill(-child, SIGKILL);
    });
    const int status = await_end(child);
    if (is_late || status != 0)
        throw Failure((is_late ? "did not end in time" : describe_end(status)) +
                      (errors.text().empty() ? "" : ": " + visible(trimmed(errors.text()))));
    return output.text();
}
