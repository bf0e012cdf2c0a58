/* Ctrl-C and its like: noted, and acted upon where it does no harm. A second one ends the program.
 */

#pragma once

#include <csignal>

inline volatile std::sig_atomic_t interrupts = 0;

inline bool is_interrupted()
{
    return interrupts != 0;
}

inline void note_interrupts()
{
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        std::signal(signal, [](int received) {
            interrupts = 1;
            std::signal(received, SIG_DFL);
        });
}
