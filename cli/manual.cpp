#include "manual.h"

#include <iostream>
#include <sstream>

namespace
{

/* Text for troff: a backslash and a leading dot or quote would be commands. */
std::string escaped(const std::string& text)
{
    std::string result;
    for (const char c : text) {
        if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n'))
            result += "\\&";
        if (c == '\\')
            result += "\\e";
        else if (c == '-')
            result += "\\-";
        else
            result += c;
    }
    return result;
}

void print_options(const CLI::App& verb)
{
    for (const CLI::Option* option : verb.get_options()) {
        const bool is_flag = option->get_items_expected_max() == 0;
        std::cout << ".TP\n\\fB" << escaped(option->get_name(true)) << "\\fR"
                  << (is_flag || option->get_positional() ? "" : " \\fIVALUE\\fR") << "\n"
                  << escaped(option->get_description()) << "\n";
    }
    for (const CLI::App* group : verb.get_subcommands(nullptr))
        print_options(*group);
}

void print_examples(const std::string& footer)
{
    std::istringstream lines(footer);
    std::cout << ".PP\n.nf\n";
    for (std::string line; std::getline(lines, line);)
        std::cout << escaped(line) << "\n";
    std::cout << ".fi\n";
}

} // namespace

void print_manual(const CLI::App& app, const std::string& version)
{
    std::cout << ".TH SNOWFLAKE\\-SHARD 1 \"\" \"snowflake " << version << "\" \"\"\n"
              << ".SH NAME\nsnowflake\\-shard \\- make, change and check logical shards\n"
              << ".SH SYNOPSIS\n\\fBsnowflake\\-shard\\fR \\fIVERB\\fR [\\fIARGUMENT\\fR...]\n"
              << ".SH DESCRIPTION\n"
              << escaped(app.get_description()) << "\n.SH VERBS\n";
    for (const CLI::App* verb : app.get_subcommands(nullptr)) {
        if (verb->get_group().empty())
            continue;
        std::cout << ".SS " << verb->get_name() << "\n" << escaped(verb->get_description()) << "\n";
        print_options(*verb);
        print_examples(verb->get_footer());
    }
    std::cout << ".SH NOTES\n" << escaped(app.get_footer()) << "\n";
}
