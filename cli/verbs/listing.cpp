#include "verbs/listing.h"

#include <algorithm>
#include <iostream>

namespace
{

using Labels = std::vector<std::pair<std::string, std::string>>;

void add_sum(std::optional<std::int64_t>& sum, std::optional<std::int64_t> value)
{
    if (value)
        sum = sum.value_or(0) + *value;
}

void begin_metric(const std::string& name, const std::string& unit, const std::string& help)
{
    std::cout << "# TYPE " << name << " gauge\n";
    if (!unit.empty())
        std::cout << "# UNIT " << name << " " << unit << "\n";
    std::cout << "# HELP " << name << " " << help << "\n";
}

/* The format has no other escapes. */
std::string label_value(const std::string& text)
{
    std::string value;
    for (const char c : text)
        value += c == '\n'               ? "\\n"
                 : c == '"' || c == '\\' ? std::string("\\") + c
                                         : std::string(1, c);
    return value;
}

void print_sample(const std::string& name, const Labels& labels, const std::string& value)
{
    std::string list;
    for (const auto& [label, text] : labels)
        list += (list.empty() ? "" : ",") + label + "=\"" + label_value(text) + "\"";
    std::cout << name << "{" << list << "} " << value << "\n";
}

void print_bytes(const Totals& totals, const std::string& name, const std::string& help,
                 std::optional<std::int64_t> Total::*bytes)
{
    begin_metric(name, "bytes", help);
    for (const auto& [server, total] : totals)
        if (total.*bytes)
            print_sample(name, {{"server", server}}, std::to_string(*(total.*bytes)));
}

Labels labels_of(const Listed& shard)
{
    return {{"shard", std::to_string(shard.number)},
            {"schema", shard.schema},
            {"server", shard.server},
            {"other", shard.transit->other.text()}};
}

void print_transit(const Listing& shards)
{
    const std::string in_transit = "snowflake_shard_in_transit";
    begin_metric(in_transit, "", "1 for each shard of a move or split that is not complete.");
    for (const Listed& shard : shards)
        if (!shard.is_hidden && shard.transit) {
            Labels labels = labels_of(shard);
            labels.emplace_back("state", shard.state());
            print_sample(in_transit, labels, "1");
        }
    const std::string behind = "snowflake_shard_follower_lag_bytes";
    begin_metric(behind, "bytes",
                 "WAL that the other server, which follows the shard, has not confirmed.");
    for (const Listed& shard : shards)
        if (!shard.is_hidden && shard.transit && shard.behind)
            print_sample(behind, labels_of(shard), std::to_string(*shard.behind));
}

} // namespace

Totals totals_of(const Listing& shards, const std::vector<std::string>& servers)
{
    Totals totals;
    std::map<std::string, std::size_t> places;
    const auto total_of = [&](const std::string& server) -> Total& {
        const auto [place, is_new] = places.emplace(server, totals.size());
        if (is_new)
            totals.emplace_back(server, Total());
        return totals[place->second].second;
    };
    for (const std::string& server : servers)
        total_of(server);
    for (const Listed& shard : shards) {
        if (shard.is_hidden)
            continue;
        Total& total = total_of(shard.server);
        total.shards++;
        total.states[shard.state()]++;
        add_sum(total.size, shard.size);
        total.largest = std::max(total.largest, shard.size);
        total.last_id_ms = std::max(total.last_id_ms, shard.last_id_ms);
    }
    return totals;
}

void print_metrics(const Listing& shards, const Totals& totals)
{
    const std::string count = "snowflake_shards";
    begin_metric(count, "", "Shards of a server by their state.");
    for (const auto& [server, total] : totals) {
        /* Always there, so that a server without shards is not one that has failed. */
        if (total.states.count("open") == 0)
            print_sample(count, {{"server", server}, {"state", "open"}}, "0");
        for (const auto& [state, number] : total.states)
            print_sample(count, {{"server", server}, {"state", state}}, std::to_string(number));
    }
    print_bytes(totals, "snowflake_shards_size_bytes", "Size of the shards of a server.",
                &Total::size);
    print_bytes(totals, "snowflake_largest_shard_size_bytes", "Size of a server's largest shard.",
                &Total::largest);
    const std::string last_id = "snowflake_last_id_timestamp_seconds";
    begin_metric(last_id, "seconds", "Time of the last ID of all shards of a server.");
    for (const auto& [server, total] : totals)
        if (total.last_id_ms)
            print_sample(last_id, {{"server", server}},
                         std::to_string(static_cast<double>(*total.last_id_ms) / 1000));
    print_transit(shards);
    std::cout << "# EOF\n";
}
