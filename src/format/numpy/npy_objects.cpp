#include "format/numpy/npy_objects.h"

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "format/pt/pickle/read_pickle.h"
#include "penstock/error.h"
#include "value/graph.h"

namespace penstock::format {
namespace {

bool is_objects(const Value& value) {
  return value.is(Value::Kind::kList) && value.type_name() == pickle::kObjectsName;
}

/// The array in the pickle is the one that the header describes. Arrays of structures with objects in them stay what
/// they are in the pickle.
void require_described(const Value& root, const NpyHeader& header) {
  if (root.is(Value::Kind::kObject) && root.type_name() == "numpy.ndarray") return;
  if (!is_objects(root)) throw Error(ErrorCode::kCorrupt, "the pickle of the array holds something else than an array");
  const Value shape = root.state().value();
  bool same = shape.size() == header.shape.rank();
  for (std::size_t dim = 0; same && dim < shape.size(); ++dim) same = shape[dim].as_int() == header.shape[dim];
  if (same) return;
  throw Error(ErrorCode::kCorrupt, core::format("the array has another shape in its pickle than {} in its header",
                                                header.shape.to_string()));
}

/// Moves what was read into the index of the file.
Value merged(Index&& read, const Value& root, std::string_view prefix, Index& index) {
  std::vector<std::size_t> positions(read.entries.size());
  std::iota(positions.begin(), positions.end(), index.entries.size());
  const bool keep_numbers = index.entries.empty();  // then no copy is made of thousands of objects
  const std::size_t storages = index.storages.size();
  for (TensorEntry& entry : read.entries) {
    entry.storage += storages;
    entry.name = prefix.empty() ? entry.name : core::format("{}.{}", prefix, entry.name);
    index.entries.push_back(std::move(entry));
  }
  for (StorageEntry& storage : read.storages) index.storages.push_back(std::move(storage));
  for (std::string& name : read.unknown_globals) index.unknown_globals.push_back(std::move(name));
  return keep_numbers ? root : with_entries(root, positions);
}

}  // namespace

Value read_objects(std::span<const std::byte> bytes, std::uint64_t base, const NpyHeader& header,
                   std::string_view prefix, const pickle::Limits& limits, const OpenOptions& options, Index& index) {
  Index read;
  pickle::NoStorages none;
  pickle::read_pickle(bytes, base, read, none,
                      {.whole = false, .object_lists = true, .limits = limits, .decode = options.decode});
  require_described(read.structure, header);
  const bool has_one = is_objects(read.structure) && header.shape.rank() == 0 && !is_objects(read.structure[0]);
  const Value root = has_one ? read.structure[0] : read.structure;
  return merged(std::move(read), root, prefix, index);
}

}  // namespace penstock::format
