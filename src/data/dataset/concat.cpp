#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "data/dataset/map.h"
#include "data/dataset/slices.h"
#include "data/dataset_impl.h"
#include "data/sample/require_samples.h"

namespace penstock {

namespace {

class Concat final : public detail::DatasetImpl {
 public:
  explicit Concat(std::vector<Dataset> parts) : parts_(std::move(parts)) {
    std::int64_t end = 0;
    for (const Dataset& part : parts_) {
      data::require_samples(part, "concat");
      end = data::joined_size(end, part.size());
      ends_.push_back(end);
    }
  }

  std::int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  std::string describe(std::int64_t index) const override {
    const std::size_t part = part_of(index);
    return parts_[part].impl().describe(index - begin(part));
  }
  std::string path(std::int64_t index) const override {
    const std::size_t part = part_of(index);
    return parts_[part].impl().path(index - begin(part));
  }
  std::size_t root_size(std::int64_t index) const override {
    const std::size_t part = part_of(index);
    return parts_[part].impl().root_size(index - begin(part));
  }
  const FilesOptions* file_options() const noexcept override {
    const FilesOptions* const first = parts_.empty() ? nullptr : parts_[0].impl().file_options();
    const auto same = [&](const Dataset& part) {
      const FilesOptions* const other = part.impl().file_options();
      return other == first || (first != nullptr && other != nullptr && other->raw == first->raw &&
                                other->keys == first->keys && !other->source && !first->source);
    };
    return std::all_of(parts_.begin(), parts_.end(), same) ? first : nullptr;
  }
  bool samples_are_files() const noexcept override {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const Dataset& part) { return part.impl().samples_are_files(); });
  }
  std::uint32_t draws() const noexcept override { return data::most_of(parts_, &DatasetImpl::draws); }
  std::uint64_t read_bytes(std::int64_t index) const override {
    const std::size_t part = part_of(index);
    return parts_[part].impl().read_bytes(index - begin(part));
  }
  bool is_at_hand(std::int64_t index, io::ResidentPages& pages) const override {
    const std::size_t part = part_of(index);
    return parts_[part].impl().is_at_hand(index - begin(part), pages);
  }

  std::shared_ptr<const data::ArrayParts> arrays() const override {
    return joined<data::ArrayParts>(&DatasetImpl::arrays);
  }
  std::shared_ptr<const data::SlicedArrays> slices() const override {
    return joined<data::SlicedArrays>(&DatasetImpl::slices);
  }

  void fetch(std::span<const std::int64_t> indices, const data::Work& work,
             std::span<data::Sample> out) const override {
    const std::span<const PartSample> wanted = by_part(indices, work.scratch);
    const auto inner = work.scratch.arena.array<std::int64_t>(indices.size());
    const auto samples = work.scratch.arena.array<data::Sample>(indices.size());
    for (std::size_t first = 0, last = 0; first < wanted.size(); first = last) {
      const std::size_t part = wanted[first].part;
      for (; last < wanted.size() && wanted[last].part == part; ++last) {
        inner[last] = indices[wanted[last].position] - begin(part);
      }
      try {
        parts_[part].impl().fetch(inner.subspan(first, last - first), work, samples.subspan(first, last - first));
      } catch (const data::SampleError& error) {
        throw data::SampleError(wanted[first + error.position()].position, error.error());
      }
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) out[wanted[i].position] = samples[i];
  }
  std::optional<data::EvenRows> even_rows(std::span<const std::int64_t> indices,
                                          data::Scratch& scratch) const override {
    if (indices.empty()) return std::nullopt;
    const std::size_t part = part_of(indices[0]);
    const std::int64_t first = begin(part);
    const std::int64_t end = ends_[part];
    const auto is_there = [=](std::int64_t index) { return first <= index && index < end; };
    if (!std::all_of(indices.begin(), indices.end(), is_there)) return std::nullopt;
    const auto inner = scratch.arena.array<std::int64_t>(indices.size());
    std::transform(indices.begin(), indices.end(), inner.begin(), [=](std::int64_t index) { return index - first; });
    return parts_[part].impl().even_rows(inner, scratch);
  }
  Value value(std::int64_t index, const data::Work& work) const override {
    const std::size_t part = part_of(index);
    return parts_[part].impl().value(index - begin(part), work);
  }
  std::uint32_t random_stages() const noexcept override { return data::most_of(parts_, &DatasetImpl::random_stages); }

 private:
  /// A sample that was asked for.
  struct PartSample {
    std::size_t part;
    std::size_t position;
  };

  /// What all parts are rows or slices of; null where one is something else.
  template <class Of>
  std::shared_ptr<const Of> joined(std::shared_ptr<const Of> (DatasetImpl::*of)() const) const {
    std::vector<std::shared_ptr<const Of>> all;
    for (const Dataset& part : parts_) {
      all.push_back((part.impl().*of)());
      if (!all.back()) return nullptr;
    }
    return all.empty() ? nullptr : std::make_shared<const Of>(Of::joined(all));
  }

  /// The samples part by part, those of a part in order of position.
  std::span<const PartSample> by_part(std::span<const std::int64_t> indices, data::Scratch& scratch) const {
    const auto wanted = scratch.arena.array<PartSample>(indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) wanted[i] = {part_of(indices[i]), i};
    if (parts_.size() > indices.size()) {
      std::sort(wanted.begin(), wanted.end(), [](const PartSample& a, const PartSample& b) {
        return a.part != b.part ? a.part < b.part : a.position < b.position;
      });
      return wanted;
    }
    const auto next = scratch.arena.array<std::size_t>(parts_.size() + 1);  // where the next one of each part goes
    std::fill(next.begin(), next.end(), 0);
    for (const PartSample& each : wanted) ++next[each.part + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    const auto sorted = scratch.arena.array<PartSample>(indices.size());
    for (const PartSample& each : wanted) sorted[next[each.part]++] = each;
    return sorted;
  }

  std::int64_t begin(std::size_t part) const noexcept { return part == 0 ? 0 : ends_[part - 1]; }
  std::size_t part_of(std::int64_t index) const noexcept {
    return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  }

  std::vector<Dataset> parts_;
  std::vector<std::int64_t> ends_;
};

}  // namespace

Dataset concat(const std::vector<Dataset>& datasets) { return Dataset(std::make_shared<Concat>(datasets)); }

}  // namespace penstock
