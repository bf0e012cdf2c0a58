#include "cutover/lag.h"

namespace
{

constexpr auto kWindow = std::chrono::seconds(3);
/* Servers write some WAL without a client. */
constexpr std::int64_t kAlmostNothing = 16 << 10;

} // namespace

bool Lag::is_small(std::int64_t left, std::int64_t done)
{
    const Clock::time_point now = Clock::now();
    samples_.push_back({now, done});
    while (samples_.front().at < now - kWindow)
        samples_.pop_front();
    if (left <= kAlmostNothing)
        return true;
    const auto bytes = static_cast<double>(done - samples_.front().done);
    const std::chrono::duration<double> time = now - samples_.front().at;
    return bytes > 0 && time * (static_cast<double>(left) / bytes) <= most_;
}
