#include "postgres/notices.h"

#include <algorithm>
#include <utility>

#include "base/output.h"
#include "postgres/error_text.h"

namespace
{

/* The notices of one label that are kept. A terminal shows so many lines, and the memory is
 * bounded. */
constexpr std::size_t kKept = 20;
constexpr std::size_t kLength = 2000;

} // namespace

void Notices::receive_from(PGconn* handle)
{
    PQsetNoticeReceiver(handle, receive, this);
}

void Notices::receive(void* notices, const PGresult* notice)
{
    static_cast<Notices*>(notices)->add(text_of(notice));
}

void Notices::add(std::string text)
{
    if (text.size() > kLength) {
        text.resize(kLength);
        text += " ...";
    }
    const auto equal = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const Notice& notice) { return notice.text == text; });
    if (equal != kept_.end())
        equal->times++;
    else if (kept_.size() < kKept)
        kept_.push_back({std::move(text), 1});
    else
        left_out_++;
}

void Notices::label(const std::string& label)
{
    flush();
    label_ = label;
}

void Notices::flush()
{
    const std::string begin = label_.empty() ? server_ + ": " : label_;
    for (const auto& [text, times] : kept_) {
        const std::string first = first_line(text);
        warn(begin + first + (times > 1 ? ", " + std::to_string(times) + " times" : "") +
             text.substr(first.size()));
    }
    if (left_out_ > 0)
        warn(begin + "and " + count_of(left_out_, "more notice"));
    kept_.clear();
    left_out_ = 0;
}
