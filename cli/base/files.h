/* Files that are read as a whole. */

#pragma once

#include <string>

/* Failure if it cannot be read, with the reason. */
std::string read_file(const std::string& name);

/* A file that the command line names, - for the standard input. UsageError if it cannot be read. */
std::string read_given_file(const std::string& name);

/* Writes the whole text; false if that fails, with the reason in errno. */
bool write_all(int file, const std::string& text);

/* A file that a command reads and then replaces. It is made if it is missing. It can be in a folder
 * where others may write, so no symbolic link is followed, and nothing but a regular file is read.
 * While this lives, a second command with it is a Failure; a kill ends that. */
class KeptFile
{
public:
    /* UsageError if it is a link or no regular file. */
    explicit KeptFile(std::string name);
    KeptFile(const KeptFile&) = delete;
    KeptFile& operator=(const KeptFile&) = delete;
    ~KeptFile();

    const std::string& name() const { return name_; }
    std::string read() const;
    /* Replaces the file in one step and on the disk: after a kill or a crash of the machine it has
     * the old text or the new one. Failure if it cannot be written. */
    void replace(const std::string& text);

private:
    bool open_locked();

    const std::string name_;
    int file_ = -1;
};
