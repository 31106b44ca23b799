// The common type of the samples' tensors is found in headers, each place in a sample by itself, and then cast to as by
// Dataset::cast.
#include "penstock/promote.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "core/format.h"
#include "core/text.h"
#include "data/dataset/lengths.h"
#include "penstock/error.h"
#include "penstock/ops.h"

namespace penstock {

namespace {

/// The tensors of all samples in one place.
struct TensorTypes {
  std::string key;
  DType common;
  bool mixed = false;
};
using TypesByPath = std::map<std::string, TensorTypes>;

void add(TypesByPath& places, const data::Leaf& leaf, const DType& dtype) {
  const auto [at, is_new] = places.emplace(leaf.path, TensorTypes{leaf.key, dtype, false});
  TensorTypes& place = at->second;
  if (is_new || place.common == dtype) return;
  place.common = promote_types(place.common, dtype);
  place.mixed = true;
}

TypesByPath places_of(const Dataset& dataset, const PromoteOptions& options) {
  std::mutex mutex;
  TypesByPath places;
  const auto add_sample = [&](std::int64_t, const data::Layout& layout) {
    const std::scoped_lock lock(mutex);
    for (const data::Leaf& leaf : layout.structure->leaves) {
      if (leaf.kind == data::LeafKind::kTensor) add(places, leaf, layout.tensors[leaf.number].dtype);
    }
  };
  data::visit_headers(dataset, {.num_workers = options.num_workers, .stop = options.stop}, add_sample);
  return places;
}

}  // namespace

Dataset promote(const Dataset& dataset, const PromoteOptions& options) {
  const TypesByPath places = places_of(dataset, options);
  std::map<std::string, DType> casts;
  for (const auto& [path, place] : places) {
    if (place.mixed) casts.emplace(place.key, place.common);
  }
  for (const auto& [path, place] : places) {
    const auto all = casts.find("");  // what has no key cannot be cast alone
    const auto cast = all == casts.end() ? casts.find(place.key) : all;
    if (cast == casts.end() || cast->second == place.common) continue;
    throw Error(
        ErrorCode::kUnsupported,
        core::format("the tensors {} are {}, and others {}, which no key tells apart; cast the datasets before "
                     "they are put together",
                     path.empty() ? "of some samples" : "at " + path, place.common.name(), cast->second.name()));
  }
  Dataset out = dataset;
  for (const auto& [key, dtype] : casts) {
    out = key.empty() ? out.cast(dtype) : out.cast(dtype, false, {key});
  }
  return out;
}

}  // namespace penstock
