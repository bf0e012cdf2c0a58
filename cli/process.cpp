#include "process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "connection.h"

namespace
{

/* A name without a slash is looked up in PATH. */
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

std::vector<std::string> environment_with(const std::string& password)
{
    const std::string key = "PGPASSWORD=";
    std::vector<std::string> environment;
    for (char** variable = environ; *variable != nullptr; variable++)
        if (password.empty() || std::strncmp(*variable, key.c_str(), key.size()) != 0)
            environment.emplace_back(*variable);
    if (!password.empty())
        environment.push_back(key + password);
    return environment;
}

std::string read_all(int file)
{
    std::string output;
    std::array<char, 65536> buffer;
    for (ssize_t size = 0; (size = read(file, buffer.data(), buffer.size())) != 0;)
        if (size > 0)
            output.append(buffer.data(), static_cast<std::size_t>(size));
        else if (errno != EINTR)
            throw Failure(std::string("cannot read from a pipe: ") + std::strerror(errno));
    return output;
}

} // namespace

std::string run_program(const std::string& name, const std::vector<std::string>& arguments,
                        const std::string& password)
{
    std::vector<std::string> words = {name};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> environment = environment_with(password);
    std::array<int, 2> pipe = {};
    if (pipe2(pipe.data(), O_CLOEXEC) != 0)
        throw Failure(std::string("cannot make a pipe: ") + std::strerror(errno));

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
    const std::string path = path_of(name);
    pid_t child = 0;
    const int error = posix_spawnp(&child, path.c_str(), &actions, nullptr,
                                   pointers_to(words).data(), pointers_to(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    close(pipe[1]);
    if (error != 0) {
        close(pipe[0]);
        throw Failure("cannot run " + path + ": " + std::strerror(error));
    }
    std::string output = read_all(pipe[0]);
    close(pipe[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        throw Failure(name + " failed; its message stands above");
    return output;
}
