/* The readers of the command, each with good texts and the properties of its results. */
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

/* A result that a reader must not have. */
struct WrongResult : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void require(bool holds, const char* property)
{
    if (!holds)
        throw WrongResult(property);
}

struct Reader {
    const char* name;
    std::vector<std::string> seeds;
    std::vector<std::string> tokens;
    int inputs; /* of different texts */
    /* text is in the file, too. Throws UsageError or Failure for a text that it refuses, and
     * WrongResult. */
    void (*read)(const std::string& text, const std::string& file);
    bool refuses = true; /* some texts */
};

std::vector<Reader> readers_of_command();

/* Defects on purpose, each of another kind: those of a reader that takes its input for a good one.
 */
std::vector<Reader> broken_readers();
