/* The manual page, from the same text as --help. */

#pragma once

#include <string>

#include <CLI/CLI.hpp>

void print_manual(const CLI::App& app, const std::string& version);
