// The indices are cut into as many contiguous parts as there are nodes. Position p of the order belongs to part
// (p / g) % nodes, where g is the number of ranks on a node: ranks take positions in turn, so that all ranks of a node
// take theirs from one part. The order does not depend on how many nodes take part. With half as many nodes, each of
// them has two parts, and a run goes on exactly.

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "core/format.h"
#include "data/sampler/narrow.h"
#include "data/sampler/torch_random.h"
#include "penstock/error.h"
#include "penstock/sampler.h"

namespace penstock {

namespace {

class NodeLocal final : public SamplerInterface {
 public:
  /// Parts behind the last sample are empty, and are not gone through.
  NodeLocal(std::int64_t size, const NodeLocalOptions& options)
      : size_(size), options_(options), parts_(std::min<std::int64_t>(options.nodes, size)) {}

  std::int64_t size() const noexcept override { return size_; }
  std::string_view kind() const noexcept override {
    return options_.shuffle ? "node local" : "node local, not shuffled";
  }

  Order order(std::uint64_t seed, std::uint64_t epoch) const override {
    return data::narrowest(size_, size_, [&](auto out) { deal(out, seed + epoch); });
  }

 private:
  template <class T>
  void deal(std::span<T> out, std::uint64_t seed) const {
    const std::vector<T> parts = shuffled_parts<T>(seed);
    std::vector<std::int64_t> next(static_cast<std::size_t>(parts_));
    for (std::int64_t part = 0; part < parts_; ++part) next[static_cast<std::size_t>(part)] = begin_of(part);
    // Parts differ by one sample at most, and the last turn may be shorter than a rank's for each of a node: the rest
    // is dealt out to whichever part still has some.
    std::size_t at = 0;
    while (at < out.size()) {
      for (std::int64_t part = 0; part < parts_; ++part) {
        std::int64_t& from = next[static_cast<std::size_t>(part)];
        const std::int64_t taken = std::min<std::int64_t>(options_.ranks_per_node, begin_of(part + 1) - from);
        std::copy_n(parts.begin() + from, taken, out.begin() + static_cast<std::ptrdiff_t>(at));
        from += taken;
        at += static_cast<std::size_t>(taken);
      }
    }
  }

  /// All indices, each part of them in an order of its own.
  template <class T>
  std::vector<T> shuffled_parts(std::uint64_t seed) const {
    std::vector<T> parts(static_cast<std::size_t>(size_));
    std::iota(parts.begin(), parts.end(), T{0});
    if (!options_.shuffle) return parts;
    data::Generator generator(seed);
    std::vector<T> order;
    for (std::int64_t part = 0; part < parts_; ++part) {
      const std::int64_t begin = begin_of(part);
      order.resize(static_cast<std::size_t>(begin_of(part + 1) - begin));
      data::randperm(std::span(order), generator);
      std::transform(order.begin(), order.end(), parts.begin() + begin,
                     [begin](T index) { return static_cast<T>(index + static_cast<T>(begin)); });
    }
    return parts;
  }

  /// The first parts have one sample more where the size does not divide evenly.
  std::int64_t begin_of(std::int64_t part) const noexcept {
    return size_ / options_.nodes * part + std::min(part, size_ % options_.nodes);
  }

  std::int64_t size_;
  NodeLocalOptions options_;
  std::int64_t parts_;
};

}  // namespace

Sampler sampler::node_local(Integer size, const NodeLocalOptions& options) {
  if (size >= 0 && options.nodes >= 1 && options.ranks_per_node >= 1) return NodeLocal(size, options);
  throw Error(ErrorCode::kInvalidArgument,
              core::format("an order for {} nodes of {} ranks over {} samples; there must be at least one node and one "
                           "rank, and no fewer than 0 samples",
                           options.nodes, options.ranks_per_node, size));
}

}  // namespace penstock
