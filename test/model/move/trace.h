/* An action as a line of text. */
#pragma once

#include "actions.h"

#include <string>

namespace model::moves
{

inline std::string name_of(std::size_t server)
{
    return server == 0 ? "one" : "two";
}

inline std::string text_of(Verb verb)
{
    switch (verb) {
    case Verb::move:
        return "move";
    case Verb::move_reversible:
        return "move --reversible";
    case Verb::hold:
        return "move --hold --reversible";
    case Verb::cutover:
        return "move --cutover";
    case Verb::resume:
        return "move --resume";
    case Verb::abort:
        return "move --abort";
    case Verb::undo:
        return "move --undo";
    case Verb::undo_reversible:
        return "move --undo --reversible";
    case Verb::complete:
        return "move --complete";
    }
    return "";
}

inline std::string text_of(Statement sent)
{
    const program::StepRow& step = row_of(sent.step);
    if (step.side == Side::routers || step.side == Side::none)
        return step.text;
    return name_of(server_of(sent)) + ": " + step.text;
}

inline std::string position_of(const State& state, std::size_t server)
{
    return std::to_string(state.servers[server].now.position);
}

inline std::string step_text(const State& before, const State& after, Action action)
{
    const std::string server = name_of(action.who % kServers) + ": ";
    const std::string client = "  client " + std::to_string(action.who + 1) + ", ";
    switch (action.kind) {
    case Kind::begin:
        return text_of(static_cast<Verb>(action.what)) + " --from " + name_of(action.who) +
               " --to " + name_of(1 - action.who);
    case Kind::step: {
        const Statement sent = statement_of(before);
        const bool is_lost =
            row_of(sent.step).side != Side::routers && !has_session(before, server_of(sent));
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
    case Kind::keep_late:
        return "  the session that was left ends it: " + text_of(before.keeping);
    case Kind::drop_keep:
        return "  the session that was left rolls it back: " + text_of(before.keeping);
    case Kind::apply: {
        const Entry entry =
            before.servers[1 - action.who].now.wal[before.servers[action.who].now.applied];
        return "  " + server + "the worker applies " +
               (entry.row != 0 ? "row " + std::to_string(entry.row) : "the marker");
    }
    case Kind::flush:
        return "  " + server + "WAL is flushed";
    case Kind::crash:
        return "CRASH of " + name_of(action.who) + ", and restart";
    case Kind::write:
        return client + name_of(action.what) + ": INSERT of row " + std::to_string(after.rows) +
               " with ID " + position_of(after, action.what);
    case Kind::commit:
        return client + name_of(before.clients[action.who].server) + ": COMMIT of row " +
               std::to_string(before.clients[action.who].row + 1);
    case Kind::draw:
        return "  a client draws ID " + position_of(after, action.who) + " on " +
               name_of(action.who);
    case Kind::lose_slot:
        return "  " + server + "the slot has lost WAL";
    case Kind::lose_triggers:
        return "  " + server + "ALTER TABLE ... DISABLE TRIGGER ALL";
    }
    return "";
}

} // namespace model::moves
