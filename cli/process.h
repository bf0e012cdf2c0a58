/* Running another program. */

#pragma once

#include <map>
#include <string>
#include <vector>

/* What the program writes to its standard output; its errors go to ours. An error if it fails. */
std::string output_of(const std::vector<std::string>& command,
                      const std::map<std::string, std::string>& environment);

/* From here on Ctrl-C and SIGTERM are only noted: the verb ends after the shard that it is at. The
 * second one ends the program at once. */
void catch_interrupts();
bool is_interrupted();
