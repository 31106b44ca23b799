#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "data/dataset_impl.h"

namespace penstock::data {

/// Sample i is sample `map(i)` of another dataset. `Map` is plain arithmetic or a table, and const calls of it may come
/// from any thread.
template <class Map>
class Reindexed final : public detail::DatasetImpl {
 public:
  Reindexed(Dataset dataset, Map map, std::int64_t size)
      : dataset_(std::move(dataset)), map_(std::move(map)), size_(size) {}

  std::int64_t size() const override { return size_; }
  std::string describe(std::int64_t index) const override { return below().describe(map_(index)); }
  std::string path(std::int64_t index) const override { return below().path(map_(index)); }
  std::size_t root_size(std::int64_t index) const override { return below().root_size(map_(index)); }
  const FilesOptions* file_options() const noexcept override { return below().file_options(); }
  bool samples_are_files() const noexcept override { return below().samples_are_files(); }
  std::uint32_t draws() const noexcept override { return below().draws(); }
  std::uint32_t random_stages() const noexcept override { return below().random_stages(); }
  std::span<const std::string> classes() const noexcept override { return below().classes(); }
  std::uint64_t read_bytes(std::int64_t index) const override { return below().read_bytes(map_(index)); }
  bool is_at_hand(std::int64_t index, io::ResidentPages& pages) const override {
    return below().is_at_hand(map_(index), pages);
  }
  std::span<const UserFunction> batch_functions() const noexcept override { return below().batch_functions(); }

  void fetch(std::span<const std::int64_t> indices, const Work& work, std::span<Sample> out) const override {
    // Samples stay at their places of the batch, and so do the slots.
    below().fetch(mapped(indices, work.scratch), work.with(work.slots.handed_on(this, &below())), out);
  }
  std::optional<EvenRows> even_rows(std::span<const std::int64_t> indices, Scratch& scratch) const override {
    return below().even_rows(mapped(indices, scratch), scratch);
  }
  Value value(std::int64_t index, const Work& work) const override { return below().value(map_(index), work); }

 private:
  const detail::DatasetImpl& below() const noexcept { return dataset_.impl(); }
  std::span<const std::int64_t> mapped(std::span<const std::int64_t> indices, Scratch& scratch) const {
    const std::span<std::int64_t> out = scratch.arena.array<std::int64_t>(indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) out[i] = map_(indices[i]);
    return out;
  }

  Dataset dataset_;
  Map map_;
  std::int64_t size_;
};

template <class Map>
Dataset reindexed(const Dataset& dataset, Map map, std::int64_t size) {
  return Dataset(std::make_shared<Reindexed<Map>>(dataset, std::move(map), size));
}

}  // namespace penstock::data
