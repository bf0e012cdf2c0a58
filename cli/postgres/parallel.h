/* Work that is done at the same time. */

#pragma once

#include <exception>
#include <future>
#include <mutex>
#include <type_traits>
#include <vector>

#include "base/interrupt.h"

/* Calls function(0) ... function(count - 1), each in a thread of its own. The results are in this
 * order; an error of one of them is raised when all have ended. The destructor of a future of
 * std::async() waits for its thread, so no thread uses the caller's variables after an error. */
template <typename Function>
auto at_once(std::size_t count, Function function)
{
    std::vector<std::future<std::invoke_result_t<Function, std::size_t>>> futures;
    for (std::size_t i = 0; i < count; i++)
        futures.push_back(std::async(std::launch::async, function, i));
    std::vector<std::invoke_result_t<Function, std::size_t>> results;
    for (auto& future : futures)
        results.push_back(future.get());
    return results;
}

/* Calls function(i, check) for each i below count, each in a thread of its own. An error of one, or
 * Ctrl-C, ends the others: check(), which each calls several times a second, throws then. The first
 * error is raised. */
template <typename Function>
void all_or_none(std::size_t count, Function function)
{
    std::exception_ptr first_error;
    std::mutex mutex;
    const auto check = [&] {
        stop_if_interrupted();
        const std::lock_guard<std::mutex> lock(mutex);
        if (first_error)
            throw Failure("other work at the same time has failed");
    };
    at_once(count, [&](std::size_t i) {
        try {
            function(i, check);
        } catch (...) {
            const std::lock_guard<std::mutex> lock(mutex);
            if (!first_error)
                first_error = std::current_exception();
        }
        return true;
    });
    if (first_error)
        std::rethrow_exception(first_error);
}
