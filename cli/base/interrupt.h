/* SIGINT (Ctrl-C), SIGTERM and SIGHUP: noted here, and acted upon by the verb where that does no
 * harm. A second one ends the program. A verb that does not call note_interrupts() is ended by the
 * first one. */

#pragma once

#include <csignal>
#include <initializer_list>

#include "base/failure.h"

inline volatile std::sig_atomic_t interrupts = 0;

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
        /* Nothing else: POSIX permits few functions in a handler, and signal() is one of them. */
        interrupts = 1;
        std::signal(signal, SIG_DFL);
    };
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        if (std::signal(signal, note) == SIG_IGN) /* as nohup sets SIGHUP */
            std::signal(signal, SIG_IGN);
}
