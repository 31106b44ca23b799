// From wanted pieces to reads. Pieces are ordered by their place in the file; those that lie close together are read as
// one range, with the gaps between them, and ranges that would be too long are split:
//
//   pieces   |--a--| gap |--b--|             |-------------- c --------------|
//   ranges   |----- range -----|             |--- range ---|--- range ---|---|
//
// Pieces that overlap in the file cannot share one contiguous read, so they go to different chains, each of which is
// planned by itself.

#include "io/move/plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "core/checked.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

std::uint64_t checked_end(std::uint64_t begin, std::uint64_t length, const char* what) {
  if (const auto end = core::try_add(begin, length)) return *end;
  throw Error(ErrorCode::kLimit,
              std::string(what) + " of a planned read ends beyond 64 bits; the sizes that asked for it are wrong",
              {.offset = begin});
}

/// The pieces that have bytes, checked, in file order.
std::vector<Piece> ordered(std::span<const Piece> pieces) {
  std::vector<Piece> out;
  out.reserve(pieces.size());
  for (const Piece& piece : pieces) {
    if (piece.length == 0) continue;
    if (piece.buffer == kDiscard) throw Error(ErrorCode::kInvalidArgument, "a planned read names no buffer");
    checked_end(piece.offset, piece.length, "the file range");
    checked_end(piece.buffer_offset, piece.length, "the buffer range");
    out.push_back(piece);
  }
  const auto key = [](const Piece& p) { return std::tie(p.source, p.offset, p.length, p.buffer, p.buffer_offset); };
  const auto before = [&](const Piece& a, const Piece& b) { return key(a) < key(b); };
  if (!std::is_sorted(out.begin(), out.end(), before)) std::sort(out.begin(), out.end(), before);
  return out;
}

/// The costs of sources, each of which is asked once where its pieces come together.
class CostsOf {
 public:
  explicit CostsOf(const ReadCosts& of_all) : costs_(of_all) {}
  explicit CostsOf(std::span<const Source> sources) : sources_(sources) {}

  const ReadCosts& operator()(std::uint32_t source) {
    if (!sources_.empty() && source != last_) {
      costs_ = costs_of(*sources_[source]);
      last_ = source;
    }
    return costs_;
  }

 private:
  std::span<const Source> sources_;
  std::uint32_t last_ = UINT32_MAX;
  ReadCosts costs_;
};

/// Orders pieces so that each follows one it can be read together with, where there is one: pieces that overlap in the
/// file cannot share a contiguous read, so they go to different chains.
class Chains {
 public:
  explicit Chains(CostsOf& costs) : costs_(costs) {}

  /// The chain that `piece`, next in file order, belongs to.
  std::uint32_t place(const Piece& piece) {
    if (piece.source != source_) open_.clear();
    source_ = piece.source;
    const std::uint64_t most = costs_(source_).most_gap;
    // Pieces come in file order, so a chain that ends too far before this one is too far before all that follow.
    while (!open_.empty() && piece.offset - std::min(open_.begin()->first, piece.offset) > most) {
      open_.erase(open_.begin());
    }
    // The nearest end at or before the piece makes the smallest gap.
    const auto after = open_.upper_bound(piece.offset);
    const std::uint64_t end = piece.offset + piece.length;
    if (after == open_.begin()) {
      open_.emplace(end, count_);
      return count_++;
    }
    auto node = open_.extract(std::prev(after));
    node.key() = end;
    const std::uint32_t chain = node.mapped();
    open_.insert(std::move(node));
    return chain;
  }
  std::uint32_t count() const noexcept { return count_; }

 private:
  CostsOf& costs_;
  std::uint32_t source_ = 0;
  std::uint32_t count_ = 0;
  std::multimap<std::uint64_t, std::uint32_t> open_;  // end of the last piece -> chain
};

/// Groups the pieces by chain, file order kept within each. Returns the chain of each.
std::vector<std::uint32_t> group_by_chain(std::vector<Piece>& pieces, CostsOf& costs) {
  Chains chains(costs);
  std::vector<std::uint32_t> chain(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) chain[i] = chains.place(pieces[i]);
  if (std::is_sorted(chain.begin(), chain.end())) return chain;

  std::vector<std::size_t> start(std::size_t{chains.count()} + 1, 0);
  for (const std::uint32_t c : chain) ++start[std::size_t{c} + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<Piece> grouped(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) grouped[start[chain[i]]++] = pieces[i];
  pieces = std::move(grouped);
  std::sort(chain.begin(), chain.end());
  return chain;
}

/// Appends ranges and targets to a plan within the limits of the costs.
class Builder {
 public:
  Builder(Plan& plan, CostsOf& costs, std::size_t max_targets)
      : plan_(plan), costs_of_(costs), max_targets_(max_targets) {}

  void start_chain(const Piece& first) {
    finish_range();
    range_.source = first.source;
    costs_ = costs_of_(first.source);
    position_ = first.offset;
  }

  /// Adds the next piece of the chain, after the gap before it.
  void add(const Piece& piece) {
    if (const std::uint64_t gap = piece.offset - position_; gap > 0) skip(gap);
    for (std::uint64_t done = 0; done < piece.length;) {
      const Target target{piece.buffer, piece.buffer_offset + done, 0};
      if (range_.length == costs_.piece || !has_room(target)) finish_range();
      const std::uint64_t length = std::min(piece.length - done, costs_.piece - range_.length);
      append({target.buffer, target.buffer_offset, length});
      done += length;
    }
    plan_.payload_bytes = checked_end(plan_.payload_bytes, piece.length, "the payload");
  }

  void finish_range() {
    if (range_.length > 0) {
      plan_.read_bytes = checked_end(plan_.read_bytes, range_.length, "the sum");
      plan_.ranges.push_back(range_);
    }
    range_.length = 0;
    range_.target_count = 0;
  }

 private:
  /// A gap is read only inside a range: at either end of one it would be read for nothing.
  void skip(std::uint64_t gap) {
    // A long range may hold a wider gap, whose bytes cost little beside its own. Two targets: the gap's and the one
    // behind.
    const bool fits = range_.length > 0 && gap <= costs_.gap_behind(range_.length) &&
                      gap < costs_.piece - range_.length && range_.target_count + 2 <= max_targets_;
    if (fits) {
      append({kDiscard, 0, gap});
    } else {
      finish_range();
      position_ += gap;
    }
  }

  bool continues(const Target& target) const {
    if (range_.target_count == 0) return false;
    const Target& last = plan_.targets.back();
    return last.buffer == target.buffer && last.buffer_offset + last.length == target.buffer_offset;
  }
  bool has_room(const Target& target) const { return range_.target_count < max_targets_ || continues(target); }

  void append(const Target& target) {
    if (range_.length == 0) {
      range_.offset = position_;
      range_.first_target = plan_.targets.size();
    }
    if (continues(target)) {
      plan_.targets.back().length += target.length;
    } else {
      plan_.targets.push_back(target);
      ++range_.target_count;
    }
    range_.length += target.length;
    position_ += target.length;
  }

  Plan& plan_;
  CostsOf& costs_of_;
  const std::size_t max_targets_;
  ReadCosts costs_;  ///< of the chain's source
  ReadRange range_;
  std::uint64_t position_ = 0;
};

Plan planned(std::span<const Piece> pieces, CostsOf& costs, std::size_t max_targets) {
  std::vector<Piece> sorted = ordered(pieces);
  const std::vector<std::uint32_t> chain = group_by_chain(sorted, costs);

  Plan plan;
  plan.ranges.reserve(sorted.size());
  plan.targets.reserve(sorted.size());
  Builder builder(plan, costs, max_targets);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || chain[i] != chain[i - 1]) builder.start_chain(sorted[i]);
    builder.add(sorted[i]);
  }
  builder.finish_range();

  const auto before = [](const ReadRange& a, const ReadRange& b) {
    return std::tie(a.source, a.offset) < std::tie(b.source, b.offset);
  };
  // Threads take ranges in this order, so that a file is read forward, whichever chain a range is of.
  if (!std::is_sorted(plan.ranges.begin(), plan.ranges.end(), before)) {
    std::stable_sort(plan.ranges.begin(), plan.ranges.end(), before);
  }
  return plan;
}

}  // namespace

Plan make_plan(std::span<const Piece> pieces, std::span<const Source> sources) {
  CostsOf costs(sources);
  return planned(pieces, costs, kMostTargets);
}

Plan make_plan(std::span<const Piece> pieces, const ReadCosts& costs, std::size_t max_targets) {
  if (costs.piece == 0 || max_targets == 0) {
    throw Error(ErrorCode::kInvalidArgument, "the pieces and max_targets of a plan must be at least 1");
  }
  CostsOf of_all(costs);
  return planned(pieces, of_all, max_targets);
}

}  // namespace penstock::io
