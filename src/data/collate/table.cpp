#include <array>

#include "data/collate/rule.h"

namespace penstock::data {

namespace {
constexpr std::array kCollates = {
    CollateEntry{"stack", [] { return stack(); }},     CollateEntry{"pad", [] { return pad(); }},
    CollateEntry{"pad_to", [] { return pad_to(8); }},  CollateEntry{"ragged", [] { return ragged(); }},
    CollateEntry{"samples", [] { return samples(); }},
};
}  // namespace

std::span<const CollateEntry> collates() noexcept { return kCollates; }

}  // namespace penstock::data
