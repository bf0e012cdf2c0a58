/*
 * The steps of each verb, as the models take them without a fault: a line for the verb, and one for
 * each step with its server, its text, and the statements of the command of which it is the model.
 * "idle" is a step that changes nothing in this run, for which the command may send no statement.
 * test/gaps/model.pl compares them with the statements of a real run.
 */
#pragma once

#include "move/moves.h"
#include "split/splits.h"

namespace model
{

template <typename State>
void print_step(const State& before, const State& after, const std::string& server,
                const char* text, const char* statements)
{
    State was = before;
    State is = after;
    was.command = is.command = {};
    const bool is_idle = std::memcmp(&was, &is, sizeof was) == 0;
    std::cout << (is_idle ? "idle\t" : "step\t") << server << '\t' << text << '\t' << statements
              << '\n';
}

/* Commands that come before, one of which may be killed. */
struct ListedMove {
    const char* title;
    std::vector<moves::Verb> before;
    moves::Verb verb;
    moves::Step killed_at = moves::Step::none; /* the last of those before */
};

inline void print_steps(const ListedMove& listed)
{
    using namespace moves;
    const Guards guards;
    State state = moves::first_state({0, 0, UINT8_MAX, 0, 0, 0, 0});
    state.servers[0].now.rows[0] = 1;
    for (const Verb verb : listed.before) {
        if (listed.killed_at == Step::none) {
            run_command(state, verb, 0, guards, [](const State&, const State&, Action) {});
            continue;
        }
        begin(state, 0, verb, guards);
        while (state.command.at != listed.killed_at)
            if (can_end(state, guards))
                do_step(state, guards);
            else
                let_run(state, guards);
        end_sessions(state);
    }
    const auto print = [](const State& before, const State& after, Action action) {
        const Statement sent = statement_of(before);
        const program::StepRow& step = row_of(sent.step);
        if (action.kind == Kind::step)
            print_step(before, after,
                       step.side == Side::routers ? "pooler" : name_of(server_of(sent)), step.text,
                       statements_of(step.step));
    };
    std::cout << "verb\t" << listed.title << '\n';
    run_command(state, listed.verb, 0, guards, print);
}

struct ListedSplit {
    const char* title;
    std::vector<splits::Verb> before;
    splits::Verb verb;
};

/* The standby is server two there, and there is no PgBouncer. */
inline void print_steps(const ListedSplit& listed)
{
    using namespace splits;
    const Guards guards;
    State state = splits::first_state({0, 0, UINT8_MAX, 0, 0, 0, 0});
    for (const Verb verb : listed.before)
        run_command(state, verb, guards, [](const State&, const State&, Action) {});
    const auto print = [](const State& before, const State& after, Action action) {
        const StepText& step = text_of(before.command.at);
        if (action.kind == Kind::step && step.side != Side::routers)
            print_step(before, after, step.side == Side::old ? "one" : "two", step.text,
                       step.statements);
    };
    std::cout << "verb\t" << listed.title << '\n';
    run_command(state, listed.verb, guards, print);
}

inline void print_all_steps()
{
    using Move = moves::Verb;
    using Split = splits::Verb;
    for (const ListedMove& listed : std::vector<ListedMove>{
             {"move --reversible", {}, Move::move_reversible},
             {"move --abort", {Move::move_reversible}, Move::abort, moves::Step::read_sequences},
             {"move --undo", {Move::move_reversible}, Move::undo},
             {"move --undo --reversible", {Move::move_reversible}, Move::undo_reversible},
             {"move --complete", {Move::move_reversible}, Move::complete},
             {"move --hold", {}, Move::hold},
             {"move --cutover", {Move::hold}, Move::cutover}})
        print_steps(listed);
    for (const ListedSplit& listed : std::vector<ListedSplit>{
             {"split", {}, Split::split}, {"split --complete", {Split::split}, Split::complete}})
        print_steps(listed);
}

} // namespace model
