/* A word that was probably meant. */

#pragma once

#include <string>
#include <vector>

/* ", did you mean move?" for moove; "" if none of the words is near. */
std::string suggestion(const std::string& word, const std::vector<std::string>& words);
