/* A file that is replaced as a whole: a reader meets the old text or the new one, also after a
 * crash of the machine. */

#pragma once

#include <functional>
#include <string>
#include <vector>

/* Makes the new text of the old one. It runs again if the file was changed between prepare_file()
 * and replace_file(), so the same text must give the same result. */
using Edit = std::function<std::string(const std::string&)>;

/* The file without symbolic links. Failure if there is none. */
std::string real_path(const std::string& file);

/* The reason why we cannot replace the file, and the hint; nothing if we can. Changes nothing. */
struct FileProblem {
    std::string problem;
    std::string hint;
};
std::vector<FileProblem> find_problems(const std::string& file);

/* Writes the edited text beside the file, as FILE.snowflake-shard, and reads it back. */
void prepare_file(const std::string& file, const Edit& edit);
/* Moves that into its place. If somebody has changed the file since, his text is edited. */
void replace_file(const std::string& file, const Edit& edit);
/* Removes the prepared file; never an error, also if there is none. */
void discard_prepared(const std::string& file);
