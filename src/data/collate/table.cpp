#include <array>
#include <cstdint>
#include <vector>

#include "data/collate/rule.h"

namespace penstock::data {

namespace {
constexpr std::array kCollates = {
    CollateEntry{"stack", [] { return collate::stack(); }},
    CollateEntry{"stack_in_order", stack_in_order},
    CollateEntry{"pad", [] { return collate::pad(); }},
    CollateEntry{"pad_to", [] { return collate::pad_to(8); }},
    CollateEntry{"pad_to_sizes", [] { return collate::pad_to(std::vector<std::int64_t>{8}); }},
    CollateEntry{"ragged", [] { return collate::ragged(); }},
    CollateEntry{"ragged_joined", [] { return collate::ragged({.cu_seqlens = true}); }},
    CollateEntry{"samples", [] { return collate::samples(); }},
    CollateEntry{"samples_in_order", samples_in_order},
    CollateEntry{"function",
                 [] { return collate::function([](const std::vector<Value>& all) { return Value::list(all); }); }},
};
}  // namespace

std::span<const CollateEntry> collates() noexcept { return kCollates; }

}  // namespace penstock::data
