/* SIGINT (Ctrl-C), SIGTERM and SIGHUP: noted here, and acted upon by the verb where that does no
 * harm. A second one ends the program, unless it has passed its point of no return. A verb that
 * does not call note_interrupts() is ended by the first one. */

#pragma once

#include <atomic>
#include <csignal>
#include <initializer_list>

#include "base/failure.h"

inline volatile std::sig_atomic_t interrupts = 0;
/* How many parts of the program must come to their end, in all threads. */
inline std::atomic<int> parts_to_end = 0;

inline bool is_interrupted()
{
    return interrupts != 0;
}

/* Throws after Ctrl-C. */
inline void stop_if_interrupted()
{
    if (is_interrupted())
        throw Failure("stopped");
}

inline void note_interrupts()
{
    const auto note = [](int signal) {
        /* The handler does nothing else: POSIX permits few functions in it. These are among them.
         */
        if (is_interrupted() && parts_to_end == 0) {
            std::signal(signal, SIG_DFL);
            std::raise(signal);
        }
        interrupts = 1;
    };
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        if (std::signal(signal, note) == SIG_IGN) /* as nohup sets SIGHUP */
            std::signal(signal, SIG_IGN);
}

/* While it lives, a second signal does not end the program, either. */
class UntilEnd
{
public:
    UntilEnd() { parts_to_end++; }
    UntilEnd(const UntilEnd&) = delete;
    UntilEnd& operator=(const UntilEnd&) = delete;
    ~UntilEnd() { parts_to_end--; }
};
