/* Reasons why tables cannot become global. All are collected before anything is made. */

#pragma once

#include <string>
#include <vector>

#include "global/session.h"
#include "global/verb.h"
#include "postgres/obstacles.h"

/* tables: the global ones, and those of the command line; added: the unpublished ones among them.
 * The followers are compared with the writer only if that has no obstacle. */
Obstacles find_obstacles(GlobalSession& session, const GlobalOptions& options,
                         const std::vector<std::string>& tables,
                         const std::vector<std::string>& added);
