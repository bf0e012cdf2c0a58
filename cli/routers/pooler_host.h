/* The machine that has the files of a PgBouncer: this one, or another one, where a command of the
 * user runs scripts, such as `ssh app3`. */

#pragma once

#include <string>
#include <vector>

#include "routers/replacement.h"

class PoolerHost
{
public:
    /* command: empty for this machine; else /bin/sh runs it with a script of sh as its last
     * argument. */
    explicit PoolerHost(std::string command) : command_(std::move(command)) {}

    /* The path without symbolic links. Failure if there is no such file. */
    std::string real_path(const std::string& file) const;
    std::string read(const std::string& file) const;
    /* The functions of replacement.h on this host. */
    std::vector<FileProblem> find_problems(const std::string& file) const;
    void prepare(const std::string& file, const Edit& edit) const;
    void replace(const std::string& file, const Edit& edit) const;
    void discard_prepared(const std::string& file) const;

private:
    std::string run(const std::string& file, const std::string& script,
                    const std::string& input = "") const;

    const std::string command_;
};
