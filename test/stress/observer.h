/*
 * The clients of --observe: each draws until its connection is lost, connects again and draws in a
 * new session, until it is told to stop. The test that crashes, stops or moves the server asks for
 * the progress by a line of input.
 */
#pragma once

#include "checker.h"
#include "client.h"
#include "options.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace stress
{

class Observer
{
public:
    Observer(const Options& options, std::vector<Load> loads)
        : options_(options), loads_(std::move(loads))
    {
        for (std::size_t i = 0; i < loads_.size(); ++i)
            progress_.push_back(std::make_unique<Progress>());
        for (std::size_t i = 0; i < loads_.size(); ++i)
            threads_.emplace_back([this, i] { keep_drawing(i); });
        if (options.checkpoint_ms > 0)
            threads_.emplace_back([this] { keep_checkpointing(); });
    }

    /*
     * Each answer is one line; the clients draw meanwhile. "forsake" holds until the session ends:
     * its server will be lost, with all that it makes from now on.
     */
    void answer_until_told_to_stop()
    {
        for (std::string line; std::getline(std::cin, line) && line != "stop";) {
            for (const auto& progress : progress_) {
                if (line == "forsake")
                    progress->forsaken = true;
            }
            std::size_t ids = 0;
            std::string statements;
            for (const auto& progress : progress_) {
                ids += progress->ids;
                statements +=
                    (statements.empty() ? "" : ",") + std::to_string(progress->statements);
            }
            std::cout << "{\"ids\":" << ids << ",\"statements\":[" << statements << "]}"
                      << std::endl;
        }
        stopping_ = true;
        for (const auto& progress : progress_)
            progress->stopping = true;
        for (std::thread& thread : threads_)
            thread.join();
    }

    const std::vector<History>& histories() const { return histories_; }
    const std::map<std::string, std::size_t>& errors() const { return errors_; }
    const std::vector<std::string>& troubles() const { return troubles_; }

private:
    void keep_drawing(std::size_t number)
    {
        Progress& progress = *progress_[number];
        for (std::uint32_t session = 0; !progress.stopping; ++session) {
            std::unique_ptr<Client> client;
            try {
                const auto mix = static_cast<std::uint32_t>(number) << 20 | session;
                client = std::make_unique<Client>(options_.conninfo, loads_[number], options_.seed,
                                                  mix, progress);
                progress.forsaken = false;
                client->run();
            } catch (const SqlError& error) {
                take_note_of(error);
            }
            if (client != nullptr)
                keep(client->take_history());
            else
                std::this_thread::sleep_for(kBetweenAttempts);
        }
    }

    void keep_checkpointing()
    {
        std::mt19937_64 random(options_.seed);
        std::uniform_int_distribution<int> pause(0, 2 * options_.checkpoint_ms);
        while (!stopping_) {
            try {
                const Connection connection(options_.conninfo);
                while (!stopping_) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(pause(random)));
                    connection.execute("CHECKPOINT");
                }
            } catch (const SqlError& error) {
                take_note_of(error);
                std::this_thread::sleep_for(kBetweenAttempts);
            }
        }
    }

    void keep(History history)
    {
        if (history.ids.empty())
            return;
        const std::lock_guard<std::mutex> guard(mutex_);
        histories_.push_back(std::move(history));
    }

    /* A lost server is expected. Every other error is counted, and reported unless tolerated. */
    void take_note_of(const SqlError& error)
    {
        constexpr const char* kOperatorIntervention = "57P0";
        if (error.connection_lost || error.sqlstate.rfind(kOperatorIntervention, 0) == 0)
            return;
        const std::lock_guard<std::mutex> guard(mutex_);
        ++errors_[error.sqlstate];
        if (std::find(options_.tolerated.begin(), options_.tolerated.end(), error.sqlstate) ==
            options_.tolerated.end())
            troubles_.push_back(error.sqlstate + " " + error.what());
    }

    static constexpr std::chrono::milliseconds kBetweenAttempts{5};

    const Options& options_;
    const std::vector<Load> loads_;
    std::vector<std::unique_ptr<Progress>> progress_;
    std::vector<std::thread> threads_;
    std::atomic<bool> stopping_{false};
    std::mutex mutex_; /* protects the members below */
    std::vector<History> histories_;
    std::map<std::string, std::size_t> errors_;
    std::vector<std::string> troubles_;
};

/* One line of JSON. SQLSTATEs need no escapes; messages go to standard error. */
inline std::string to_json(const Findings& findings, const Observer& observer)
{
    std::string errors;
    for (const auto& [sqlstate, count] : observer.errors())
        errors += (errors.empty() ? "\"" : ",\"") + sqlstate + "\":" + std::to_string(count);
    const auto field = [](const char* name, std::size_t value) {
        return "\"" + std::string(name) + "\":" + std::to_string(value) + ",";
    };
    return "{" + field("sessions", observer.histories().size()) + field("ids", findings.ids) +
           field("duplicates", findings.duplicates) +
           field("session_inversions", findings.session_inversions) +
           field("late_ids", findings.late_ids) +
           field("duplicates_of_seen", findings.duplicates_of_seen) +
           field("late_after_seen", findings.late_after_seen) +
           field("troubles", observer.troubles().size()) + "\"errors\":{" + errors + "}}";
}

} // namespace stress
