// Some callers want storages and no tensors, such as penstock.torch, which makes torch's tensors itself. One entry over
// all bytes of a storage lets the loads of tensors serve them too.

#include "archive/whole_storages.h"

#include <cstdint>

#include "archive/archive_state.h"
#include "penstock/error.h"

namespace penstock::archive {

namespace {

[[noreturn]] void throw_different(const TensorEntry& entry) {
  throw Error(ErrorCode::kUnsupported,
              "tensors of one storage have different byte orders or types; load them one by one",
              {.tensor = entry.name});
}

TensorEntry whole_of(const format::Index& index, const TensorEntry& first) {
  TensorEntry entry;
  entry.name = first.name;
  entry.storage = first.storage;
  entry.pickled = first.pickled;
  const std::uint64_t bytes = index.storages[first.storage].nbytes;
  const std::size_t itemsize = first.dtype.itemsize();
  const bool divides = itemsize != 0 && bytes % itemsize == 0;
  if (first.encoding.swapped && !divides) throw_different(first);
  entry.dtype = divides ? first.dtype : DType(DType::uint8);
  entry.encoding = first.encoding;
  entry.encoding.conjugate = entry.encoding.negative = false;
  entry.shape = Shape{static_cast<std::int64_t>(bytes / entry.dtype.itemsize())};
  entry.strides = Strides{1};
  return entry;
}

/// Makes `whole` fit for `other` too, a further tensor of its storage.
void widen(TensorEntry& whole, const TensorEntry& other, const format::Index& index) {
  const bool swap = other.encoding.swapped;
  if (whole.encoding.swapped != swap || (swap && whole.dtype != other.dtype)) {
    throw_different(other);
  }
  if (whole.dtype == other.dtype) return;
  whole.dtype = DType::uint8;
  whole.shape = Shape{static_cast<std::int64_t>(index.storages[whole.storage].nbytes)};
}

}  // namespace

std::vector<TensorEntry> whole_storages(const format::Index& index) {
  std::vector<std::size_t> position(index.storages.size(), kNowhere);
  std::vector<TensorEntry> out;
  for (const TensorEntry& entry : index.entries) {
    if (entry.nbytes() == 0) continue;
    std::size_t& at = position[entry.storage];
    if (at == kNowhere) {
      at = out.size();
      out.push_back(whole_of(index, entry));
    } else {
      widen(out[at], entry, index);
    }
  }
  return out;
}

}  // namespace penstock::archive
