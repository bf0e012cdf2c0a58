/* The known word that a wrong one is meant for. */

#pragma once

#include <string>
#include <vector>

/* ", did you mean move?" for moove; "" if none of the words is near. */
std::string suggestion(const std::string& word, const std::vector<std::string>& words);

/* The same for a schema. Only one with the same digits is suggested: another number is another
 * shard, and not a misspelled one. */
std::string schema_suggestion(const std::string& schema, const std::vector<std::string>& schemas);
