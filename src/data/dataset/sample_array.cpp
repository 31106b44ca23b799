#include "data/dataset/sample_array.h"

#include <string>
#include <utility>

#include "core/format.h"
#include "device/host_memory.h"
#include "io/read/reader.h"

namespace penstock::data {
namespace {

SampleArray placed(const LazyTensor& lazy, const std::shared_ptr<const HeldFile>& file) {
  const std::uint64_t offset = lazy.storage().offset + lazy.entry().byte_offset;
  return {.shape = lazy.shape(),
          .strides = lazy.strides(),
          .dtype = lazy.dtype(),
          .offset = offset,
          .file = file,
          .key = lazy.name(),
          .requires_grad = lazy.entry().requires_grad};
}

SampleArray loaded(const LazyTensor& lazy) {
  SampleArray out = sample_array(lazy.load(), lazy.source().name());
  out.key = lazy.name();
  return out;
}

bool has_whole_rows(const LazyTensor& lazy) {
  if (lazy.shape().rank() == 0) return false;
  const TensorLayout row(lazy.dtype(), lazy.shape().drop_front(1), lazy.strides().drop_front(1));
  return row.contiguous;
}

}  // namespace

std::string SampleArray::name() const {
  return key.empty() ? file->name() : core::format("{}['{}']", file->name(), key);
}

Access access_for(std::optional<bool> mmap, std::uint64_t bytes) {
  if (mmap) return *mmap ? Access::kMapped : Access::kRead;
  // Batches and the program need some, too.
  return bytes > device::host_memory().total_bytes / 4 * 3 ? Access::kRead : Access::kMapped;
}

SampleArray sample_array(const LazyTensor& lazy, Access access, const std::shared_ptr<const HeldFile>& file) {
  if (!lazy.entry().encoding.is_plain() || lazy.entry().pickled) {
    return loaded(lazy);
  }
  SampleArray out = placed(lazy, file);
  const bool is_read = access == Access::kRead || io::costs_of(*lazy.source()).waits();
  if (is_read && has_whole_rows(lazy)) return out;
  const Buffer mapping = io::map_source(*lazy.source());
  if (!mapping) return loaded(lazy);
  out.values = Tensor(mapping, out.dtype, out.shape, out.strides, static_cast<std::size_t>(out.offset));
  return out;
}

SampleArray sample_array(const Tensor& tensor, std::string name) {
  return {.shape = tensor.shape(),
          .strides = tensor.strides(),
          .dtype = tensor.dtype(),
          .values = tensor,
          .file = std::make_shared<const HeldFile>(std::move(name)),
          .requires_grad = tensor.requires_grad()};
}

}  // namespace penstock::data
