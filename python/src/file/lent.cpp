// Tensors that are lent: parts of a mapped file, for takers who copy them and let go. Whoever lends has a `_Lent` of
// each, which gives a tensor that is kept memory of its own, and costs nothing for one that is not.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "archive/materialise.h"
#include "archive/read_way.h"
#include "bindings.h"
#include "content/archive.h"
#include "interpreter/gil.h"
#include "interpreter/typed.h"
#include "io/read/private_mapping.h"
#include "io/read/residency.h"

namespace penstock::python {
namespace {

// Smaller tensors are copied sooner than mapped and unmapped.
constexpr std::uint64_t kLeastLent = std::uint64_t{512} << 10;
// What is not in the page cache is read sooner by reads of its own than by faults.
constexpr double kCached = 0.95;

struct Lent {
  std::weak_ptr<io::PrivateMapping> mapping;

  /// Whether the tensor is still there; it then has memory of its own.
  bool settle() const {
    const ReleasedGil released;
    const std::shared_ptr<io::PrivateMapping> kept = mapping.lock();
    if (kept) kept->detach();
    return kept != nullptr;
  }
};

std::shared_ptr<io::PrivateMapping> mapping_of(const Archive& archive, const TensorEntry& entry) {
  const StorageEntry& storage = archive.storages()[entry.storage];
  const Source& source = archive.sources()[storage.source];
  const std::uint64_t begin = storage.offset + entry.byte_offset;
  const bool fits = entry.nbytes() >= kLeastLent && archive::lies_as_values(entry) && !storage.resident &&
                    source.descriptor() >= 0 && begin % archive::natural_alignment(entry.dtype) == 0;
  if (!fits || io::cached_share(*source, begin, entry.nbytes()).value_or(0) < kCached) return nullptr;
  return io::PrivateMapping::of(*source, begin, static_cast<std::size_t>(entry.nbytes()));
}

/// An entry's tensor and its Lent; None where it is better read.
Typed<std::optional<TupleOf<Tensor, Lent>>> lend(const PyArchive& opened, std::size_t index) {
  const Archive archive = opened.get();
  const TensorEntry& entry = archive.entries()[index];
  std::shared_ptr<io::PrivateMapping> mapping;
  {
    const ReleasedGil released;
    mapping = mapping_of(archive, entry);
  }
  if (!mapping) return nb::none();
  std::byte* const data = mapping->data();
  const Lent lent{mapping};
  Buffer memory = Buffer::wrap(data, static_cast<std::size_t>(entry.nbytes()), std::move(mapping));
  return nb::make_tuple(Tensor(std::move(memory), entry.dtype, entry.shape), lent);
}

}  // namespace

void bind_lent(nb::module_& module) {
  nb::class_<Lent>(module, "_Lent").def("settle", &Lent::settle);
  module.def("_lend", lend, nb::arg("archive"), nb::arg("index"));
}

}  // namespace penstock::python
