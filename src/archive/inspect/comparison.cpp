// Both contents become lists of tensors and leaves by path. Paths that both have are paired, the n-th of one path with
// the n-th of the other; what remains is in one of them alone. Pairs of tensors of one shape are then read together.

#include "archive/inspect/comparison.h"

#include <deque>
#include <map>
#include <string_view>
#include <utility>

#include "archive/inspect/elements.h"
#include "archive/inspect/leaves.h"
#include "archive/inspect/parts.h"
#include "io/source/composed_source.h"

namespace penstock::archive {
namespace {

using Kind = Value::Kind;

/// A tensor or a leaf.
struct Item {
  std::string path;
  std::optional<std::size_t> tensor = {};
  std::optional<Value> leaf = {};
};

std::vector<Item> items_of(const Archive& archive) {
  std::vector<Item> out;
  for (std::size_t i = 0; i < archive.entries().size(); ++i) {
    out.push_back({.path = archive.entries()[i].name, .tensor = i});
  }
  for (Leaf& leaf : leaves_of(archive)) out.push_back({.path = std::move(leaf.path), .leaf = std::move(leaf.value)});
  return out;
}

bool is_bare(const Archive& archive) { return archive.structure().is(Kind::kTensor); }

/// A bare tensor has no name, or one that its format makes up.
bool names_matter(const Archive& a, const std::vector<Item>& of_a, const Archive& b, const std::vector<Item>& of_b) {
  const bool single = of_a.size() == 1 && of_b.size() == 1 && of_a[0].tensor && of_b[0].tensor;
  return !single || !(is_bare(a) || is_bare(b));
}

/// Ints beyond 2^53 fit no double.
std::optional<long double> number_of(const Value& value) {
  if (value.is(Kind::kInt)) return static_cast<long double>(value.as_int());
  return value.is(Kind::kFloat) ? std::optional<long double>(value.as_float()) : std::nullopt;
}

bool is_nan(const Value& value) { return value.is(Kind::kFloat) && value.as_float() != value.as_float(); }

bool are_equal(const Value& a, const Value& b, const CompareOptions& options) {
  if (is_nan(a) && is_nan(b)) return options.tolerance.nan_equal;
  if (canonical(a) == canonical(b)) return true;
  const bool same_kind = a.kind() == b.kind();
  if (!same_kind && !options.any_dtype) return false;
  const std::optional<long double> of_a = number_of(a);
  const std::optional<long double> of_b = number_of(b);
  if (!of_a || !of_b) return false;
  const bool is_exact = options.tolerance.rtol == 0 && options.tolerance.atol == 0;
  if (is_exact) return *of_a == *of_b;
  return is_close(static_cast<double>(*of_a), static_cast<double>(*of_b), options.tolerance);
}

class Comparer {
 public:
  Comparer(const Archive& a, const Archive& b, const CompareOptions& options)
      : a_(a), b_(b), options_(options), a_files_(a), b_files_(b) {}

  Comparison run(const std::function<void(std::uint64_t)>& seen) {
    pair_up();
    add_unpaired();
    read(seen);
    return finish();
  }

 private:
  void pair_up() {
    std::vector<Item> of_a = items_of(a_);
    std::vector<Item> of_b = items_of(b_);
    if (!names_matter(a_, of_a, b_, of_b)) return add(of_a[0], of_b[0]);
    std::map<std::string_view, std::deque<std::size_t>> by_path;
    for (std::size_t i = 0; i < of_b.size(); ++i) by_path[of_b[i].path].push_back(i);
    std::vector<bool> paired(of_b.size());
    for (const Item& item : of_a) {
      const auto found = by_path.find(item.path);
      if (found == by_path.end() || found->second.empty()) {
        places_.push_back({.kind = Mismatch::Kind::kOnlyInA, .path = item.path, .a = item.tensor, .a_leaf = item.leaf});
        continue;
      }
      const std::size_t other = found->second.front();
      found->second.pop_front();
      paired[other] = true;
      add(item, of_b[other]);
    }
    for (std::size_t i = 0; i < of_b.size(); ++i) {
      if (paired[i]) continue;
      places_.push_back(
          {.kind = Mismatch::Kind::kOnlyInB, .path = of_b[i].path, .b = of_b[i].tensor, .b_leaf = of_b[i].leaf});
    }
  }

  void add(const Item& of_a, const Item& of_b) {
    Mismatch place{.kind = Mismatch::Kind::kLeaf,
                   .path = of_a.path,
                   .a = of_a.tensor,
                   .b = of_b.tensor,
                   .a_leaf = of_a.leaf,
                   .b_leaf = of_b.leaf};
    if (place.a && place.b) return add_tensors(std::move(place));
    if (place.a_leaf && place.b_leaf && are_equal(*place.a_leaf, *place.b_leaf, options_)) {
      ++result_.equal_leaves;
    } else {
      places_.push_back(std::move(place));
    }
  }

  void add_tensors(Mismatch place) {
    const TensorEntry& of_a = a_.entries()[*place.a];
    const TensorEntry& of_b = b_.entries()[*place.b];
    const Elements& a = a_elements_.emplace_back(a_files_, *place.a, ElementOrder::kC);
    const Elements& b = b_elements_.emplace_back(b_files_, *place.b, ElementOrder::kC);
    place.kind = of_a.shape != of_b.shape   ? Mismatch::Kind::kShape
                 : of_a.dtype != of_b.dtype ? Mismatch::Kind::kDType
                                            : Mismatch::Kind::kValues;
    // Pickles of arrays of one shape may have other lengths.
    const bool same_count = place.kind != Mismatch::Kind::kShape && a.count() == b.count();
    if (same_count && of_a.pickled == of_b.pickled && Difference::comparable(a.dtype(), b.dtype())) {
      jobs_.push_back({&a, &b});
      place_of_.push_back(places_.size());
      differences_.emplace_back(Difference(a.dtype(), b.dtype(), options_.tolerance));
    }
    places_.push_back(std::move(place));
  }

  /// Tensors that are in one content alone, or have another shape there, are read for their checksums: damage is no
  /// difference.
  void add_unpaired() {
    std::vector<bool> is_paired(places_.size());
    for (const std::size_t place : place_of_) is_paired[place] = true;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (is_paired[i]) continue;
      if (places_[i].a) add_checked(a_files_, *places_[i].a, a_elements_);
      if (places_[i].b) add_checked(b_files_, *places_[i].b, b_elements_);
    }
  }

  void add_checked(const ElementFiles& files, std::size_t entry, std::deque<Elements>& elements) {
    const StorageEntry& storage = files.state().storage_of(files.archive().entries()[entry]);
    const bool is_composed = io::as_composed(files.state().index.sources[storage.source]) != nullptr;
    if (storage.crc32 || is_composed) jobs_.push_back({&elements.emplace_back(files, entry, ElementOrder::kStored)});
  }

  void read(const std::function<void(std::uint64_t)>& seen) {
    for_each_part(
        jobs_,
        [&](const ElementPart& part) {
          const Job& job = jobs_[part.job];
          if (job.b == nullptr) return part.go_through([](auto, auto, auto) {});
          Difference own(job.a->dtype(), job.b->dtype(), options_.tolerance);
          part.go_through([&](std::int64_t first, std::span<const std::byte> a, std::span<const std::byte> b) {
            own.add(first, a, b);
          });
          differences_[part.job].add(part.number, std::move(own));
        },
        seen);
    a_files_.require_unchanged();
    b_files_.require_unchanged();
  }

  Comparison finish() {
    for (std::size_t i = 0; i < place_of_.size(); ++i) places_[place_of_[i]].values = differences_[i].all();
    for (Mismatch& place : places_) {
      const bool equal_values = place.values && place.values->different() == 0;
      const bool is_equal = equal_values && (place.kind == Mismatch::Kind::kValues ||
                                             (place.kind == Mismatch::Kind::kDType && options_.any_dtype));
      if (is_equal) {
        ++result_.equal_tensors;
      } else {
        result_.places.push_back(std::move(place));
      }
    }
    return std::move(result_);
  }

  const Archive& a_;
  const Archive& b_;
  const CompareOptions& options_;
  ElementFiles a_files_;
  ElementFiles b_files_;
  std::deque<Elements> a_elements_;
  std::deque<Elements> b_elements_;
  std::vector<Mismatch> places_;
  std::vector<Job> jobs_;  ///< pairs, then tensors that are only read
  std::vector<std::size_t> place_of_;
  std::deque<InOrder<Difference>> differences_;
  Comparison result_;
};

}  // namespace

Comparison compare(const Archive& a, const Archive& b, const CompareOptions& options,
                   const std::function<void(std::uint64_t bytes)>& seen) {
  return Comparer(a, b, options).run(seen);
}

}  // namespace penstock::archive
