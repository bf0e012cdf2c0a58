#include "verbs/reporter.h"

#include <iostream>

#include <nlohmann/json.hpp>

void Reporter::print(const ShardState& state)
{
    if (!json_)
        return;
    const auto or_null = [](const std::string& text) {
        return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
    };
    const nlohmann::ordered_json line = {
        {"shard", state.shard.number},         {"schema", or_null(state.shard.schema)},
        {"server", or_null(state.server)},     {"state", state.state},
        {"sqlstate", or_null(state.sqlstate)}, {"message", or_null(state.error)}};
    const std::lock_guard<std::mutex> lock(printing_);
    /* replace: the messages of libpq are in the encoding of the locale, and text that is not UTF-8
     * would be an exception. */
    std::cout << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
}
