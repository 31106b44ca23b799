// A join is a zip of subsets, whose indices are found here: each side has a table of its names, and the first one's
// order counts.

#include "penstock/join.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "core/text.h"
#include "data/dataset_impl.h"
#include "data/files/named_after.h"
#include "data/files/path_name.h"
#include "data/sample/require_samples.h"
#include "io/locations.h"
#include "penstock/error.h"

namespace penstock {

namespace {

using core::refuse;
using Numbers = std::vector<std::int64_t>;

constexpr std::size_t kShown = 3;  ///< files in a message

/// What messages call a side: "dataset 1", "dataset 'mask'".
struct JoinedSide {
  Dataset dataset;
  std::string title;
  std::vector<std::string> names = {};  ///< of its files
  std::unordered_map<std::string_view, std::int64_t> places = {};

  std::string file(std::int64_t i) const { return core::escaped(dataset.describe(i)); }
  bool has(const std::string& name) const { return places.contains(name); }
};
using Sides = std::vector<JoinedSide>;

std::string named_by_part(const detail::DatasetImpl& files, std::int64_t index, JoinBy by) {
  const std::string path = files.path(index);
  if (by != JoinBy::kPath) {
    const data::PathName parts(path);
    return std::string(by == JoinBy::kName ? parts.name : parts.stem());
  }
  const std::size_t begin = std::min(files.root_size(index), path.size());
  const std::string_view below = std::string_view(path).substr(0, io::query_begin(path)).substr(begin);
  return std::string(data::without_extension(below));
}

void find_names(JoinedSide& side, const JoinOptions& options) {
  data::require_samples(side.dataset, "a join");
  const detail::DatasetImpl& files = side.dataset.impl();
  if (!files.samples_are_files()) {
    refuse(
        core::format("the samples of {} are not files of their own, so that they have no names to join by; zip() "
                     "pairs by place",
                     side.title));
  }
  const auto count = static_cast<std::size_t>(side.dataset.size());
  side.names.reserve(count);
  side.places.reserve(count);
  for (std::int64_t i = 0; i < side.dataset.size(); ++i) {
    const auto* const part = std::get_if<JoinBy>(&options.by);
    side.names.push_back(part != nullptr ? named_by_part(files, i, *part) : std::get<1>(options.by)(files.path(i)));
    const auto [known, is_new] = side.places.emplace(side.names.back(), i);
    if (is_new) continue;
    refuse(
        core::format("two files of {} have the name {}: {} and {}; join by what tells them apart, such as the path "
                     "below their folder",
                     side.title, core::quoted(side.names.back()), side.file(known->second), side.file(i)));
  }
}

void require_one_with_draws(const Sides& sides) {
  const auto random =
      std::count_if(sides.begin(), sides.end(), [](const JoinedSide& side) { return side.dataset.impl().is_random(); });
  if (random < 2) return;
  refuse(
      "more than one dataset of the join has random steps, which draw by the places that samples had before it, and so "
      "differ for the parts of one sample; put the random steps behind the join");
}

/// The first files of other sides without a partner in this one, and how many there are.
class Absent {
 public:
  void add(const JoinedSide& side, std::int64_t index) {
    if (count_ < kShown) shown_ += (count_ == 0 ? "" : ", ") + side.file(index);
    ++count_;
  }
  /// "2 files have none in dataset 1: a.npy, b.npy"
  std::string told(const std::string& title) const {
    return core::format("{} none in {}: {}{}", core::counted(count_, "file has", "files have"), title, shown_,
                        count_ > kShown ? ", ..." : "");
  }
  bool any() const noexcept { return count_ > 0; }

 private:
  std::uint64_t count_ = 0;
  std::string shown_;
};

/// Says for each side what it lacks. A name that two others have is told once.
void require_partners(const Sides& sides) {
  std::string told;
  for (const JoinedSide& lacking : sides) {
    Absent absent;
    std::unordered_map<std::string_view, bool> seen;
    for (const JoinedSide& side : sides) {
      if (&side == &lacking) continue;
      for (std::size_t i = 0; i < side.names.size(); ++i) {
        if (lacking.has(side.names[i]) || !seen.emplace(side.names[i], true).second) continue;
        absent.add(side, static_cast<std::int64_t>(i));
      }
    }
    if (absent.any()) told += (told.empty() ? "" : "; ") + absent.told(lacking.title);
  }
  if (told.empty()) return;
  refuse(
      core::format("not all files of the join have partners by name: {}; add what is missing, or leave these files "
                   "out (missing: drop)",
                   told));
}

/// The names of the first side that all sides have, as its indices.
Numbers shared_names(const Sides& sides) {
  Numbers out;
  for (std::int64_t i = 0; i < std::ssize(sides[0].names); ++i) {
    const std::string& name = sides[0].names[static_cast<std::size_t>(i)];
    if (std::all_of(sides.begin() + 1, sides.end(), [&](const JoinedSide& side) { return side.has(name); })) {
      out.push_back(i);
    }
  }
  return out;
}

void require_some(const Numbers& shared, const Sides& sides) {
  if (!shared.empty()) return;
  std::string examples;
  for (const JoinedSide& side : sides) {
    if (side.names.empty()) continue;
    examples += core::format("{}{} is {}", examples.empty() ? "" : ", ", side.file(0), core::quoted(side.names[0]));
  }
  if (examples.empty()) return;
  refuse(
      core::format("no name is in all datasets of the join: {}; join by a function that gives files which belong "
                   "together one name",
                   examples));
}

/// The samples of a side that have these names of the first one.
Dataset chosen(const JoinedSide& side, const JoinedSide& first, const Numbers& shared) {
  Numbers indices;
  indices.reserve(shared.size());
  for (const std::int64_t i : shared) indices.push_back(side.places.at(first.names[static_cast<std::size_t>(i)]));
  Numbers all(static_cast<std::size_t>(side.dataset.size()));
  std::iota(all.begin(), all.end(), 0);
  return indices == all ? side.dataset : subset(side.dataset, std::move(indices));
}

/// The datasets with their samples in pairs.
std::vector<Dataset> paired(const std::vector<Dataset>& datasets, const std::vector<std::string>& titles,
                            const JoinOptions& options) {
  if (datasets.empty()) refuse("there is nothing to join; give two datasets or more");
  Sides sides;
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    sides.push_back({.dataset = datasets[i], .title = core::format("dataset {}", titles[i])});
  }
  for (JoinedSide& side : sides) find_names(side, options);
  require_one_with_draws(sides);
  const Numbers shared = shared_names(sides);
  require_some(shared, sides);
  if (options.missing == Missing::kError) require_partners(sides);
  std::vector<Dataset> out;
  for (const JoinedSide& side : sides) out.push_back(chosen(side, sides[0], shared));
  return out;
}

ZipOptions by_name() { return {.compare_names = false, .warn = {}}; }

}  // namespace

Dataset join(const std::vector<Dataset>& datasets, const JoinOptions& options) {
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < datasets.size(); ++i) titles.push_back(core::format("{}", i));
  const std::vector<Dataset> parts = paired(datasets, titles, options);
  return data::named_after(parts[0], zip(parts, by_name()));
}

Dataset join(const std::vector<std::pair<std::string, Dataset>>& datasets, const JoinOptions& options) {
  std::vector<Dataset> given;
  std::vector<std::string> titles;
  for (const auto& [name, dataset] : datasets) {
    given.push_back(dataset);
    titles.push_back(core::quoted(name));
  }
  const std::vector<Dataset> parts = paired(given, titles, options);
  std::vector<std::pair<std::string, Dataset>> named;
  for (std::size_t i = 0; i < parts.size(); ++i) named.emplace_back(datasets[i].first, parts[i]);
  return data::named_after(parts[0], zip(named, by_name()));
}

}  // namespace penstock
