/* An action as a line of text. */
#pragma once

#include "actions.h"

#include <string>

namespace model::splits
{

inline std::string name_of(std::size_t server)
{
    return server == kOld ? "old" : "standby";
}

inline std::string name_of_shard(std::size_t number)
{
    return number == kLeaves ? "the shard that leaves" : "the shard that stays";
}

inline std::string text_of(Verb verb)
{
    switch (verb) {
    case Verb::split:
        return "split";
    case Verb::resume:
        return "split --resume";
    case Verb::abort:
        return "split --abort";
    case Verb::complete:
        return "split --complete";
    }
    return "";
}

inline std::string text_of(Statement sent)
{
    const StepText& step = text_of(sent.step);
    return (step.side == Side::routers ? "" : name_of(server_of(sent.step)) + ": ") + step.text;
}

inline std::string step_text(const State& before, const State& after, Action action)
{
    const std::string server = name_of(action.who % kServers) + ": ";
    const std::string client = "  client " + std::to_string(action.who + 1) + ", ";
    switch (action.kind) {
    case Kind::begin:
        return text_of(static_cast<Verb>(action.what));
    case Kind::blind:
        return text_of(static_cast<Verb>(action.what)) + ", and the standby cannot be reached";
    case Kind::step: {
        const Statement sent = statement_of(before);
        const bool is_lost =
            text_of(sent.step).side != Side::routers && !has_session(before, server_of(sent.step));
        return text_of(sent) + (is_lost ? ": the connection is lost" : "") +
               (after.command.is_running ? "" : "; the command ends");
    }
    case Kind::late:
        return text_of(statement_of(before)) + ": late, and given up";
    case Kind::kill:
        return "KILL of the command, before: " + text_of(statement_of(before));
    case Kind::kill_late:
        return "KILL of the command, during: " + text_of(statement_of(before));
    case Kind::end_late:
        return "  the session that was left ends it: " + text_of(before.running[action.who]);
    case Kind::drop_late:
        return "  the session that was left rolls it back: " + text_of(before.running[action.who]);
    case Kind::replay:
        return "  standby: replays WAL";
    case Kind::flush:
        return "  " + server + "WAL is flushed";
    case Kind::crash:
        return "CRASH of " + name_of(action.who) + ", and restart";
    case Kind::promote:
        return "  standby: PROMOTION";
    case Kind::stray_promotion:
        return "  standby: PROMOTION by somebody else";
    case Kind::write:
        return client + name_of(action.what / kShards) + ": INSERT of row " +
               std::to_string(after.rows) + " into " + name_of_shard(action.what % kShards);
    case Kind::commit:
        return client + name_of(before.clients[action.who].server) + ": COMMIT of row " +
               std::to_string(before.clients[action.who].row + 1);
    case Kind::draw:
        return "  a client draws ID " +
               std::to_string(after.servers[action.who].now.shards[action.what].position) + " of " +
               name_of_shard(action.what) + " on " + name_of(action.who);
    }
    return "";
}

} // namespace model::splits
