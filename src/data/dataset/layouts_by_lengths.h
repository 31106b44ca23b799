#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "data/sample/layout.h"
#include "data/sample/scratch.h"

namespace penstock::data {

/// Layouts of samples seen by a thread, by the sizes of dimension 0 of their tensors, which are all that they differ
/// in.
class LayoutsByLengths final : public Scratch::State {
 public:
  std::vector<std::int64_t> lengths;  ///< of the sample that is looked for

  /// Valid until the Scratch is reset.
  template <class Make>
  const Layout* find(const Make& make, Scratch& scratch) {
    if (last_ != nullptr && lengths == last_lengths_) return last_;
    auto found = known_.find(lengths);
    if (found == known_.end()) {
      if (known_.size() == kRemembered) forget(scratch);
      found = known_.emplace(lengths, make(lengths)).first;
    }
    last_lengths_ = lengths;
    last_ = found->second.get();
    return last_;
  }

 private:
  static constexpr std::size_t kRemembered = 4096;
  void forget(Scratch& scratch) {
    for (auto& [key, layout] : known_) scratch.objects.push_back(std::move(layout));
    known_.clear();
  }

  std::map<std::vector<std::int64_t>, LayoutPtr> known_;
  std::vector<std::int64_t> last_lengths_;
  const Layout* last_ = nullptr;
};

}  // namespace penstock::data
