/* The help: CLI11's, in lines of at most 100 characters. */

#pragma once

#include <CLI/CLI.hpp>

class Help : public CLI::Formatter
{
public:
    std::string make_help(const CLI::App* app, std::string name,
                          CLI::AppFormatMode mode) const override;

protected:
    std::string make_subcommand(const CLI::App* verb) const override;
};
