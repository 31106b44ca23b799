// A dataset whose samples are tuples or dicts of the samples of others. It reads nothing itself: the parts fetch their
// samples, and their tensors are joined under one layout. Layouts of tuples are remembered, because samples of equal
// parts must share one layout for the batch to be planned fast. A zip of zips asks the datasets at their ends itself,
// so that what a sample costs does not grow with how deep it is nested.

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

#include "core/format.h"
#include "core/warning.h"
#include "data/dataset/map.h"
#include "data/dataset/pair_names.h"
#include "data/dataset_impl.h"
#include "data/sample/require_samples.h"

namespace penstock {

namespace {

using data::Layout;
using data::LayoutPtr;
using data::Sample;
using Node = data::Structure::Node;

/// Tuples or dicts of layouts seen, so that samples of equal parts share one.
class Composed final : public data::Scratch::State {
 public:
  /// The layout of these parts, nested so; valid until the Scratch is reset.
  const Layout* compose(const Node& nesting, std::span<const Layout* const> parts, data::Scratch& scratch) {
    for (const Entry& entry : entries_) {
      const auto same = [](const Layout* a, const LayoutPtr& b) { return a == b.get(); };
      if (std::equal(parts.begin(), parts.end(), entry.parts.begin(), same)) return entry.layout.get();
    }
    if (entries_.size() == kRemembered) {
      scratch.objects.push_back(entries_.front().layout);
      entries_.erase(entries_.begin());
    }
    Entry entry;
    for (const Layout* part : parts) entry.parts.push_back(part->shared_from_this());
    entry.layout = data::nested_layout(nesting, entry.parts, scratch.structures);
    return entries_.emplace_back(std::move(entry)).layout.get();
  }
  /// How many tensors samples of part `p` had last; 0 where none came yet.
  std::size_t tensors_of(std::size_t p) const noexcept {
    return entries_.empty() ? 0 : entries_.back().parts[p]->tensors.size();
  }

 private:
  static constexpr std::size_t kRemembered = 64;
  struct Entry {
    std::vector<LayoutPtr> parts;
    LayoutPtr layout;
  };
  std::vector<Entry> entries_;
};

/// The datasets that zips of zips end in, and how their samples are nested: the leaves are numbers of `parts`.
struct Ends {
  std::vector<const detail::DatasetImpl*> parts;
  Node nesting;
};

class Zip final : public detail::DatasetImpl {
 public:
  Zip(std::vector<std::string> names, std::vector<Dataset> parts) : names_(std::move(names)), parts_(std::move(parts)) {
    for (const Dataset& part : parts_) {
      const auto* const zip = dynamic_cast<const Zip*>(&part.impl());
      ends_ = std::min(kMostEnds + 1, ends_ + (zip == nullptr ? 1 : zip->ends_));
    }
  }

  std::int64_t size() const override { return parts_[0].size(); }
  bool is_at_hand(std::int64_t index, io::ResidentPages& pages) const override {
    const auto& parts = ends().parts;
    return std::all_of(parts.begin(), parts.end(), [&](const auto* part) { return part->is_at_hand(index, pages); });
  }
  std::string describe(std::int64_t index) const override {
    std::string out;
    for (const Dataset& part : parts_) out += (out.empty() ? "" : ", ") + part.impl().describe(index);
    return out;
  }
  std::uint32_t draws() const noexcept override { return data::most_of(parts_, &DatasetImpl::draws); }
  std::uint64_t read_bytes(std::int64_t index) const override {
    std::uint64_t out = 0;
    for (const Dataset& part : parts_) {
      const std::uint64_t bytes = part.impl().read_bytes(index);
      out += std::min(bytes, std::numeric_limits<std::uint64_t>::max() - out);
    }
    return out;
  }

  void fetch(std::span<const std::int64_t> indices, const data::Work& work, std::span<Sample> out) const override {
    const auto& [parts, nesting] = ends();
    const std::size_t count = indices.size();
    const auto samples = work.scratch.arena.array<Sample>(count * parts.size());  // part by part
    auto& composed = work.scratch.state<Composed>(this);
    std::size_t first = 0;  // of the part's tensors, as in the last batch: slots are for who fits them, which is asked
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const detail::DatasetImpl& part = *parts[p];
      const std::size_t tensors = composed.tensors_of(p);
      const data::ExpectedSlots slots = work.slots.handed_on(this, &part, first, tensors);
      part.fetch(indices, work.with(slots), samples.subspan(p * count, count));
      first += tensors;
    }
    const auto layouts = work.scratch.arena.array<const Layout*>(parts.size());
    std::fill(layouts.begin(), layouts.end(), nullptr);
    const Layout* joined = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      if (const Sample* failed = failed_part(samples, i, count)) {
        out[i] = *failed;
        continue;
      }
      bool as_before = true;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        const Layout* layout = samples[p * count + i].layout;
        as_before &= layout == layouts[p];
        layouts[p] = layout;
      }
      if (!as_before) joined = composed.compose(nesting, layouts, work.scratch);
      const auto payloads = work.scratch.arena.array<data::Payload>(joined->tensors.size());
      auto next = payloads.begin();
      for (std::size_t p = 0; p < parts.size(); ++p) {
        next = std::copy_n(samples[p * count + i].payloads, layouts[p]->tensors.size(), next);
      }
      out[i] = {joined, {payloads.data()}};
    }
  }
  std::optional<data::EvenRows> even_rows(std::span<const std::int64_t> indices,
                                          data::Scratch& scratch) const override {
    const auto& [parts, nesting] = ends();
    const auto rows = scratch.arena.array<data::EvenRows>(parts.size());
    std::size_t count = 0;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const std::optional<data::EvenRows> of_part = parts[p]->even_rows(indices, scratch);
      if (!of_part) return std::nullopt;
      rows[p] = *of_part;
      count += of_part->columns.size();
    }
    const auto layouts = scratch.arena.array<const Layout*>(parts.size());
    const auto columns = scratch.arena.array<data::EvenColumn>(count);
    auto next = columns.begin();
    for (std::size_t p = 0; p < parts.size(); ++p) {
      layouts[p] = rows[p].layout;
      next = std::copy(rows[p].columns.begin(), rows[p].columns.end(), next);
    }
    return data::EvenRows{scratch.state<Composed>(this).compose(nesting, layouts, scratch), columns};
  }
  Value value(std::int64_t index, const data::Work& work) const override {
    std::vector<Value> parts;
    for (const Dataset& part : parts_) parts.push_back(part.impl().value(index, work));
    if (names_.empty()) return Value::tuple(std::move(parts));
    std::vector<std::pair<std::string, Value>> items;
    for (std::size_t p = 0; p < parts.size(); ++p) items.emplace_back(names_[p], std::move(parts[p]));
    return Value::dict(std::move(items));
  }
  std::uint32_t random_stages() const noexcept override { return data::most_of(parts_, &DatasetImpl::random_stages); }

 private:
  /// The first part of sample `i` that cannot be had, or null.
  const Sample* failed_part(std::span<const Sample> samples, std::size_t i, std::size_t count) const {
    for (std::size_t at = i; at < samples.size(); at += count) {
      if (samples[at].failed()) return &samples[at];
    }
    return nullptr;
  }

  /// Found when they are first asked for, because most zips of a zip of zips never are.
  const Ends& ends() const {
    std::call_once(once_, [this] { found_.nesting = nest(found_.parts, ends_ <= kMostEnds); });
    return found_;
  }
  Node nest(std::vector<const detail::DatasetImpl*>& ends, bool deep) const {
    Node out = data::nesting_of(names_, parts_.size());
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const auto* const zip = deep ? dynamic_cast<const Zip*>(&parts_[p].impl()) : nullptr;
      if (zip != nullptr) {
        out.children[p] = zip->nest(ends, deep);
        continue;
      }
      out.children[p].leaf = static_cast<std::uint32_t>(ends.size());
      ends.push_back(&parts_[p].impl());
    }
    return out;
  }

  std::vector<std::string> names_;  ///< of the dict that a sample is; empty: a tuple
  std::vector<Dataset> parts_;
  /// A dataset that stands below in many places ends in more than there is memory for. Such a zip asks its own parts.
  static constexpr std::size_t kMostEnds = std::size_t{1} << 16;
  std::size_t ends_ = 0;  ///< up to one more than that
  mutable std::once_flag once_;
  mutable Ends found_;
};

void require_parts(const std::vector<Dataset>& datasets) {
  if (datasets.empty()) throw Error(ErrorCode::kInvalidArgument, "there is nothing to zip; give one dataset or more");
  for (const Dataset& dataset : datasets) data::require_samples(dataset, "zip");
  data::require_equal_sizes(datasets, "a zip", "take a subset of the longer one");
}

void warn_of_unlike_names(const std::vector<Dataset>& datasets, const ZipOptions& options) {
  if (!options.compare_names) return;
  const std::string told = data::unlike_pairs(datasets);
  if (told.empty()) return;
  core::tell_warning(options.warn, told);
}

}  // namespace

Dataset zip(const std::vector<Dataset>& datasets, const ZipOptions& options) {
  require_parts(datasets);
  warn_of_unlike_names(datasets, options);
  return Dataset(std::make_shared<Zip>(std::vector<std::string>{}, datasets));
}

Dataset zip(const std::vector<std::pair<std::string, Dataset>>& datasets, const ZipOptions& options) {
  std::vector<std::string> names;
  std::vector<Dataset> parts;
  for (const auto& [name, part] : datasets) {
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("found the name '{}' twice in a zip; give each dataset a name of its own", name));
    }
    names.push_back(name);
    parts.push_back(part);
  }
  require_parts(parts);
  warn_of_unlike_names(parts, options);
  return Dataset(std::make_shared<Zip>(std::move(names), std::move(parts)));
}

}  // namespace penstock
