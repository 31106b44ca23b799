#include "data/dataset/mapped_rows.h"

#include <optional>

#include "data/files/file_sample.h"
#include "io/reader.h"

namespace penstock::data {
namespace {

std::optional<Tensor> mapped(const LazyTensor& lazy) {
  if (!lies_plain(lazy.entry(), lazy.storage()) || lazy.entry().pickled) return std::nullopt;
  const Buffer file = io::map_source(*lazy.source());
  if (!file) return std::nullopt;
  const std::uint64_t offset = lazy.storage().offset + lazy.entry().byte_offset;
  return Tensor(file, lazy.dtype(), lazy.shape(), lazy.strides(), static_cast<std::size_t>(offset));
}

}  // namespace

Tensor mapped_or_loaded(const LazyTensor& lazy) {
  std::optional<Tensor> array = mapped(lazy);
  return array ? *array : lazy.load();
}

}  // namespace penstock::data
