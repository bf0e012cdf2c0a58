#include "process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"

extern char** environ;

namespace
{

volatile std::sig_atomic_t interrupted = 0;

void note_interrupt(int signal)
{
    interrupted = 1;
    std::signal(signal, SIG_DFL);
}

std::vector<char*> pointers_to(std::vector<std::string>& texts)
{
    std::vector<char*> pointers;
    for (std::string& text : texts)
        pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes)
{
    std::vector<std::string> variables;
    for (char** variable = environ; *variable != nullptr; variable++) {
        const std::string text = *variable;
        if (changes.count(text.substr(0, text.find('='))) == 0)
            variables.push_back(text);
    }
    for (const auto& [name, value] : changes)
        variables.push_back(name + "=" + value);
    return variables;
}

std::string read_all(int file)
{
    std::string text;
    std::array<char, 65536> buffer;
    ssize_t size = 0;
    while ((size = read(file, buffer.data(), buffer.size())) != 0) {
        if (size > 0)
            text.append(buffer.data(), static_cast<std::size_t>(size));
        else if (errno != EINTR)
            break;
    }
    return text;
}

int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

} // namespace

std::string output_of(const std::vector<std::string>& command,
                      const std::map<std::string, std::string>& environment)
{
    std::vector<std::string> arguments = command;
    std::vector<std::string> variables = environment_with(environment);
    int ends[2];
    if (pipe(ends) != 0)
        throw Failure(std::string("pipe: ") + std::strerror(errno));

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    pid_t child = 0;
    const int error = posix_spawn(&child, command[0].c_str(), &actions, nullptr,
                                  pointers_to(arguments).data(), pointers_to(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    const std::string output = error == 0 ? read_all(ends[0]) : "";
    close(ends[0]);
    if (error != 0)
        throw Failure(command[0] + ": " + std::strerror(error));
    const int status = wait_for(child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        throw Failure(command[0] + " failed; its message stands above");
    return output;
}

void catch_interrupts()
{
    std::signal(SIGINT, note_interrupt);
    std::signal(SIGTERM, note_interrupt);
}

bool is_interrupted()
{
    return interrupted != 0;
}
