/* Work that is done at the same time. */

#pragma once

#include <future>
#include <type_traits>
#include <vector>

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
