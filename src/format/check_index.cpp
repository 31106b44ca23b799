// The one check that every index passes, whatever its format. A reader of a format may have a mistake, and files are
// hostile: what is not checked here could become a read outside of memory. All arithmetic on sizes and offsets is
// checked for overflow.

#include "format/check_index.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/view.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

void check_storage(const StorageEntry& storage, const Index& index) {
  if (storage.source >= index.sources.size()) {
    throw Error(ErrorCode::kCorrupt, "its bytes are in a file that the archive does not have", {{}, {}, storage.name});
  }
  const ByteSource& source = *index.sources[storage.source];
  const ErrorContext context{source.name(), storage.offset, storage.name};
  if (storage.resident) {
    if (storage.resident.size() == storage.nbytes) return;
    throw Error(ErrorCode::kCorrupt,
                core::format("it has {} where {} were expected", core::counted(storage.resident.size(), "byte"),
                             storage.nbytes),
                context);
  }
  if (!storage.is_deflated() && storage.stored_bytes != storage.nbytes) {
    throw Error(ErrorCode::kCorrupt,
                core::format("{} stored of {}, without compression",
                             core::counted(storage.stored_bytes, "byte is", "bytes are"), storage.nbytes),
                context);
  }
  if (!core::range_fits(storage.offset, storage.stored_bytes, source.size())) {
    throw Error(ErrorCode::kTruncated,
                core::format("its {} bytes end behind the file, which has {}; fetch or write it again",
                             storage.stored_bytes, source.size()),
                context);
  }
}

/// Whether shape and strides still fit when they are counted in bytes. Strides of dimensions of size 1 count too: no
/// element is reached by them, but much code multiplies them.
bool fit_in_bytes(const TensorEntry& entry) {
  const auto itemsize = static_cast<std::int64_t>(entry.dtype.itemsize());
  return std::all_of(entry.strides.begin(), entry.strides.end(),
                     [itemsize](std::int64_t stride) { return core::try_mul(stride, itemsize).has_value(); });
}

void check_entry(const TensorEntry& entry, const Index& index) {
  if (entry.storage >= index.storages.size()) {
    throw Error(ErrorCode::kCorrupt, "it is a view of a storage that the file does not have",
                {index.sources.front().name(), {}, entry.name});
  }
  if (entry.pickled) return;
  const StorageEntry& storage = index.storages[entry.storage];
  const ErrorContext context{index.sources[storage.source].name(), storage.offset, entry.name};
  bool valid = entry.shape.rank() == entry.strides.rank();
  for (const std::int64_t size : entry.shape) valid = valid && size >= 0;
  for (const std::int64_t stride : entry.strides) valid = valid && stride >= 0;
  const auto bytes = valid ? core::view_span(entry.shape, entry.strides, entry.dtype.itemsize()) : std::nullopt;
  if (!bytes || (*bytes > 0 && !fit_in_bytes(entry)) || !core::range_fits(entry.byte_offset, *bytes, storage.nbytes)) {
    throw Error(ErrorCode::kCorrupt,
                core::format("{} of shape {} with strides {} from byte {} does not lie inside its storage of {}",
                             entry.dtype.name(), entry.shape.to_string(), entry.strides.to_string(), entry.byte_offset,
                             core::counted(storage.nbytes, "byte")),
                context);
  }
}

}  // namespace

void write_encodings(Index& index) noexcept {
  for (TensorEntry& entry : index.entries) {
    const StorageEntry& storage = index.storages[entry.storage];
    entry.encoding.swapped = entry.encoding.swapped && entry.dtype.swap_width() > 1;
    entry.encoding.deflated = storage.is_deflated();
    entry.encoding.resident = static_cast<bool>(storage.resident);
  }
}

void check_index(Index& index) {
  for (const StorageEntry& storage : index.storages) check_storage(storage, index);
  for (const TensorEntry& entry : index.entries) {
    check_entry(entry, index);
    entry.nbytes();  // throws where the size of an expanded view does not fit
  }
  write_encodings(index);
  // Parts of a file may name the same.
  std::vector<std::string>& names = index.unknown_globals;
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

}  // namespace penstock::format
