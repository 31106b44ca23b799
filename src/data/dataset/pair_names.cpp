// Whether files that are zipped belong together by name. A warning that is wrong teaches people to look past the right
// ones, so names have to speak against the pairs: it is not enough that they differ.

#include "data/dataset/pair_names.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ascii.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "data/dataset_impl.h"
#include "data/files/path_name.h"

namespace penstock::data {
namespace {

using core::is_digit;

/// Bytes of other characters count as letters.
bool is_of_word(char c) noexcept { return core::is_letter(c) || static_cast<unsigned char>(c) >= 0x80; }
/// Whether a name may be cut between two characters: not inside of a number or a word.
bool may_cut(char before, char behind) noexcept {
  return !(is_digit(before) && is_digit(behind)) && !(is_of_word(before) && is_of_word(behind));
}

/// What all names begin and end with.
class Affixes {
 public:
  void add(std::string_view name) {
    if (first_) {
      front_ = back_ = name;
      first_ = false;
      return;
    }
    const auto front = std::mismatch(front_.begin(), front_.end(), name.begin(), name.end()).first;
    front_.erase(front, front_.end());
    const auto back = std::mismatch(back_.rbegin(), back_.rend(), name.rbegin(), name.rend()).first;
    back_.erase(back_.begin(), back.base());
  }
  /// `name`, which is one of them, without both, as far as that cuts no word or number of it. It stays whole where
  /// nothing would be left.
  std::string_view without(std::string_view name) const noexcept {
    if (front_.size() + back_.size() >= name.size()) return name;
    std::size_t begin = front_.size();
    while (begin > 0 && !may_cut(name[begin - 1], name[begin])) --begin;
    std::size_t end = name.size() - back_.size();
    while (end < name.size() && !may_cut(name[end - 1], name[end])) ++end;
    return name.substr(begin, end - begin);
  }

 private:
  bool first_ = true;
  std::string front_;
  std::string back_;
};

/// The files of a part, by name.
struct Side {
  const detail::DatasetImpl& files;
  Affixes affixes = {};

  std::string stem(std::int64_t i) const { return std::string(PathName(files.path(i)).stem()); }
  std::string bare(std::int64_t i) const { return std::string(affixes.without(stem(i))); }
};

class Comparison {
 public:
  Comparison(const Dataset& a, const Dataset& b) : a_{a.impl()}, b_{b.impl()}, size_(a.size()) {}

  std::string run() {
    if (size_ < 2 || stems_agree()) return {};
    for (std::int64_t i = 0; i < size_; ++i) {
      if (a_.bare(i) != b_.bare(i)) unlike_.push_back(i);
    }
    if (unlike_.empty()) return {};
    if (const auto elsewhere = at_other_places()) {
      return told(elsewhere->first,
                  core::format(", although {} has its name", core::escaped(b_.files.describe(elsewhere->second))));
    }
    const std::optional<std::int64_t> stranger = among_equals();
    return stranger ? told(*stranger, "") : std::string();
  }

 private:
  using Hashed = std::pair<std::size_t, std::int64_t>;  ///< a name and its place

  bool stems_agree() {
    bool agree = true;
    for (std::int64_t i = 0; i < size_; ++i) {
      const std::string a = a_.stem(i);
      const std::string b = b_.stem(i);
      agree &= a == b;
      a_.affixes.add(a);
      b_.affixes.add(b);
    }
    return agree;
  }

  /// The first of the pairs whose name stands at another place of the other side, and that place, where it is so with
  /// at least half of them.
  std::optional<std::pair<std::int64_t, std::int64_t>> at_other_places() const {
    std::vector<Hashed> names;
    names.reserve(static_cast<std::size_t>(size_));
    for (std::int64_t i = 0; i < size_; ++i) names.emplace_back(std::hash<std::string>()(b_.bare(i)), i);
    std::sort(names.begin(), names.end());
    std::optional<std::pair<std::int64_t, std::int64_t>> first;
    std::size_t found = 0;
    for (const std::int64_t i : unlike_) {
      const std::optional<std::int64_t> at = place_of(i, names);
      if (!at) continue;
      ++found;
      if (!first) first.emplace(i, *at);
    }
    return 2 * found >= unlike_.size() ? first : std::nullopt;
  }

  /// Where the other side has a file of the name of file i of the first one, which is not that file itself.
  std::optional<std::int64_t> place_of(std::int64_t i, const std::vector<Hashed>& names) const {
    const std::string name = a_.bare(i);
    const std::size_t hash = std::hash<std::string>()(name);
    auto at = std::lower_bound(names.begin(), names.end(), Hashed{hash, 0});
    if (at == names.end() || at->first != hash || b_.bare(at->second) != name) return std::nullopt;
    if (b_.files.path(at->second) == a_.files.path(i)) return std::nullopt;
    return at->second;
  }

  /// The first pair of unlike names where most of the others agree, and not because they are the same files. Names of
  /// which one goes on from the other ("7" and "7_crowd") are no strangers.
  std::optional<std::int64_t> among_equals() const {
    if (2 * unlike_.size() > static_cast<std::size_t>(size_)) return std::nullopt;
    std::int64_t like = 0;
    while (std::binary_search(unlike_.begin(), unlike_.end(), like)) ++like;
    if (a_.files.path(like) == b_.files.path(like)) return std::nullopt;
    const auto stranger = std::find_if(unlike_.begin(), unlike_.end(), [&](std::int64_t i) {
      const std::string a = a_.bare(i);
      const std::string b = b_.bare(i);
      return !goes_on(a, b) && !goes_on(b, a);
    });
    return stranger == unlike_.end() ? std::nullopt : std::optional(*stranger);
  }

  static bool goes_on(const std::string& longer, const std::string& name) noexcept {
    return !name.empty() && longer.size() > name.size() && longer.starts_with(name) &&
           may_cut(name.back(), longer[name.size()]);
  }

  std::string told(std::int64_t i, std::string_view more) const {
    return core::format(
        "zip pairs samples by their places, and of {} {} unlike names: {} is paired with {}{}; join() "
        "pairs files by name",
        core::counted(static_cast<std::uint64_t>(size_), "pair"), core::counted(unlike_.size(), "has", "have"),
        core::escaped(a_.files.describe(i)), core::escaped(b_.files.describe(i)), more);
  }

  Side a_;
  Side b_;
  std::int64_t size_;
  std::vector<std::int64_t> unlike_;  ///< pairs, in order
};

}  // namespace

std::string unlike_pairs(std::span<const Dataset> parts) {
  const Dataset* first = nullptr;
  for (const Dataset& part : parts) {
    if (!part.impl().samples_are_files()) continue;
    if (first == nullptr) {
      first = &part;
      continue;
    }
    if (std::string told = Comparison(*first, part).run(); !told.empty()) return told;
  }
  return {};
}

}  // namespace penstock::data
