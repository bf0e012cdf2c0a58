/* The steps from the first state of a model to a finding, as lines of text. */
#pragma once

#include <iostream>
#include <vector>

namespace model
{

/* Of the model: text(before, after, action) is the line of a step; text_of(finding);
 * tell_end(state), if more belongs to the last step. */
template <typename Model>
void print_way(const Model& model, const std::vector<typename Model::Action>& way)
{
    auto state = model.first_state();
    auto finding = Model::Finding::none;
    for (std::size_t i = 0; i < way.size(); ++i) {
        const auto before = state;
        finding = model.apply(state, way[i]);
        std::cout << (i < 9 ? "     " : "    ") << i + 1 << "  "
                  << model.text(before, state, way[i]) << '\n';
    }
    model.tell_end(state);
    std::cout << "     => " << text_of(finding) << '\n';
}

} // namespace model
