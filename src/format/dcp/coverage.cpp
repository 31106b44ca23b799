// Boxes that do not overlap and have as many elements as the tensor cover it. Overlaps are looked for along one
// dimension, that in which the boxes begin at the most places: sorted by their begin there, a box is compared only with
// those that have not ended.

#include "format/dcp/coverage.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "format/dcp/item_error.h"
#include "penstock/error.h"

namespace penstock::format::dcp {
namespace {

constexpr std::uint64_t kMaxComparisons = 2'000'000'000;

std::string text_of(const Box& box) {
  return core::format("the chunk of shape {} at {}", box.shape.to_string(), box.at.to_string());
}

void require_inside(const Box& box, const Shape& shape, const std::string& item) {
  const std::size_t rank = shape.rank();
  bool inside = box.at.rank() == rank && box.shape.rank() == rank;
  for (std::size_t d = 0; inside && d < rank; ++d) {
    inside = core::range_fits(static_cast<std::uint64_t>(box.at[d]), static_cast<std::uint64_t>(box.shape[d]),
                              static_cast<std::uint64_t>(shape[d]));
  }
  if (inside) return;
  fail(core::format("{} does not lie inside the tensor's shape {}; .metadata is damaged or was put together from "
                    "several saves",
                    text_of(box), shape.to_string()),
       item);
}

bool overlap(const Box& a, const Box& b) {
  for (std::size_t d = 0; d < a.at.rank(); ++d) {
    if (a.at[d] + a.shape[d] <= b.at[d] || b.at[d] + b.shape[d] <= a.at[d]) return false;
  }
  return true;
}

/// The dimension in which boxes begin at the most places.
std::size_t sweep_dimension(const std::vector<Chunk>& chunks) {
  std::size_t best = 0;
  std::size_t most = 0;
  for (std::size_t d = 0; d < chunks.front().box.at.rank(); ++d) {
    std::set<std::int64_t> places;
    for (const Chunk& chunk : chunks) places.insert(chunk.box.at[d]);
    if (places.size() > most) {
      most = places.size();
      best = d;
    }
  }
  return best;
}

void refuse_overlap(std::vector<Chunk>& chunks, const std::string& item) {
  const std::size_t dim = sweep_dimension(chunks);
  std::sort(chunks.begin(), chunks.end(),
            [dim](const Chunk& a, const Chunk& b) { return a.box.at[dim] < b.box.at[dim]; });
  std::vector<const Box*> open;
  std::uint64_t compared = 0;
  for (const Chunk& chunk : chunks) {
    const Box& box = chunk.box;
    std::erase_if(open, [&](const Box* other) { return other->at[dim] + other->shape[dim] <= box.at[dim]; });
    compared += open.size();
    if (compared > kMaxComparisons) {
      fail(core::format("{} in a pattern that takes too long to check", core::counted(chunks.size(), "chunk is")), item,
           ErrorCode::kLimit);
    }
    for (const Box* const other : open) {
      if (!overlap(*other, box)) continue;
      fail(core::format("{} overlaps {}; .metadata is damaged or was put together from several saves", text_of(box),
                        text_of(*other)),
           item);
    }
    open.push_back(&box);
  }
}

}  // namespace

void require_cover(std::vector<Chunk>& chunks, const Shape& shape, const std::string& item) {
  const auto wanted = static_cast<std::uint64_t>(shape.numel());
  for (const Chunk& chunk : chunks) require_inside(chunk.box, shape, item);
  std::erase_if(chunks, [](const Chunk& chunk) { return chunk.box.shape.numel() == 0; });
  if (shape.rank() > 0 && !chunks.empty()) refuse_overlap(chunks, item);
  if (shape.rank() == 0 && chunks.size() > 1) fail("it has no dimension and yet several chunks", item);
  std::uint64_t elements = 0;  // without overlap there are no more than the tensor has
  for (const Chunk& chunk : chunks) elements += static_cast<std::uint64_t>(chunk.box.shape.numel());
  if (elements == wanted) return;
  fail(
      core::format("{} of {} elements are in its {}: a file is missing, or .metadata is not that of a whole save; copy "
                   "or save the checkpoint again",
                   elements, wanted, core::counted(chunks.size(), "chunk")),
      item);
}

void require_apart(std::vector<ItemPlace> places) {
  std::erase_if(places, [](const ItemPlace& each) { return each.place->length == 0; });
  std::sort(places.begin(), places.end(), [](const ItemPlace& a, const ItemPlace& b) {
    return std::tie(a.place->file, a.place->offset) < std::tie(b.place->file, b.place->offset);
  });
  for (std::size_t i = 1; i < places.size(); ++i) {
    const StreamSpan& before = *places[i - 1].place;
    const StreamSpan& place = *places[i].place;
    if (before.file != place.file || before.length <= place.offset - before.offset) continue;
    fail(core::format("the bytes from {} of {} belong to it and to {}; .metadata is damaged, or its files were "
                      "overwritten by another save",
                      place.offset, core::quoted(place.file), core::quoted(places[i - 1].item)),
         places[i].item);
  }
}

}  // namespace penstock::format::dcp
