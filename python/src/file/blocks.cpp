// Tensors in a block of memory that the caller has made, such as one that other processes map too: values over bytes
// that lie there, and rows of a tensor read to their place in it.

#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays/foreign.h"
#include "bindings.h"
#include "content/archive.h"
#include "content/value.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "io/file/memory_file.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

Tensor memory_in(nb::handle given) {
  std::optional<Tensor> memory = array_from(given);
  if (!memory) throw Error(ErrorCode::kDTypeMismatch, "found no memory to read into");
  return *std::move(memory);
}

Tensor tensor_over(const Tensor& storage, const TensorEntry& entry) {
  const std::size_t offset = storage.byte_offset() + static_cast<std::size_t>(entry.byte_offset);
  return Tensor(storage.buffer(), entry.dtype, entry.shape, entry.strides, offset)
      .with_requires_grad(entry.requires_grad);
}

/// What `load` gives, over values that are in memory already: {storage: its bytes}, and {entry: its tensor} for those
/// that do not lie in their storage as they are.
nb::object value_over(const PyArchive& opened, const nb::dict& storages, const nb::dict& entries) {
  const Archive archive = opened.get();
  std::vector<std::optional<Tensor>> memory(archive.storages().size());
  for (const auto& [number, bytes] : storages) memory.at(nb::cast<std::size_t>(number)) = memory_in(bytes);
  const EntryLeaf leaf = [&](std::size_t index) {
    const TensorEntry& entry = archive.entries()[index];
    if (entries.contains(index)) {
      return nb::cast(nb::cast<Tensor>(entries[nb::int_(index)]).with_requires_grad(entry.requires_grad));
    }
    if (entry.nbytes() == 0) {
      return nb::cast(Tensor::empty(entry.shape, entry.dtype).with_requires_grad(entry.requires_grad));
    }
    return nb::cast(tensor_over(memory[entry.storage].value(), entry));
  };
  return in_file(archive.path(), [&] { return to_python(archive.structure(), leaf); });
}

/// Rows of entries into memory: (entry, dimension, first, behind the last, where to).
void load_rows_into(const PyArchive& opened, const nb::list& parts) {
  struct RowsInto {
    LazyTensor rows;
    Tensor to;
  };
  const Archive archive = opened.get();
  std::vector<RowsInto> all;
  ReadEffort effort;
  for (const nb::handle given : parts) {
    const LazyTensor entry = archive.entry(nb::cast<std::size_t>(nb::object(given[0])));
    const LazyTensor rows =
        entry.slice(nb::cast<std::int64_t>(nb::object(given[1])), nb::cast<std::int64_t>(nb::object(given[2])),
                    nb::cast<std::int64_t>(nb::object(given[3])));
    const Tensor memory = memory_in(nb::object(given[4]));
    const Tensor to(memory.buffer(), rows.dtype(), rows.shape(), rows.shape().contiguous_strides(),
                    memory.byte_offset());
    effort.payload_bytes += rows.nbytes();
    all.push_back({rows, to});
  }
  interruptible(effort.takes_long(), [all = std::move(all), verify = opened.verify()](const std::stop_token& stop) {
    for (const RowsInto& part : all) part.rows.load_into(part.to, {.verify = verify, .stop = stop});
    return true;
  });
}

/// A tensor over bytes that are there; kIndexOutOfRange where it reaches behind them.
Tensor tensor_in(nb::handle memory, std::uint64_t offset, const std::string& dtype, nb::handle shape,
                 nb::handle strides) {
  const std::optional<DType> known = DType::from_name(dtype);
  if (!known) throw Error(ErrorCode::kUnsupported, core::format("there is no type {} here", dtype));
  const Tensor bytes = memory_in(memory);
  return Tensor(bytes.buffer(), *known, shape_from(shape), shape_from(strides),
                bytes.byte_offset() + static_cast<std::size_t>(offset));
}

/// Page-locked host memory of undefined content, as bytes.
Tensor pinned_bytes(std::size_t bytes) {
  const ReleasedGil released;
  return {Buffer::allocate_pinned(bytes), DType::uint8, Shape{static_cast<std::int64_t>(bytes)}};
}

/// Host memory that exists already, page-locked as long as the tensor lives.
Tensor pinned_over(nb::handle given) {
  const Tensor bytes = memory_in(given);
  const ReleasedGil released;
  return {io::page_locked(bytes.buffer()), bytes.dtype(), bytes.shape()};
}

/// Of each file that was opened its size and when it was modified; None of one that has no such version.
nb::list file_versions(const PyArchive& opened) {
  const Archive archive = opened.get();
  nb::list out;
  for (const Source& source : archive.sources()) {
    const std::optional<FileVersion> version = source.version();
    out.append(version ? nb::object(nb::make_tuple(version->size, version->modified)) : nb::object(nb::none()));
  }
  return out;
}

}  // namespace

void bind_blocks(nb::module_& module) {
  module.def("_value_over", value_over, nb::arg("archive"), nb::arg("storages"), nb::arg("entries"),
             nb::sig("def _value_over(archive: Archive, storages: dict[int, typing.Any], "
                     "entries: dict[int, Tensor]) -> typing.Any"));
  module.def("_load_rows_into", load_rows_into, nb::arg("archive"), nb::arg("parts"),
             nb::sig("def _load_rows_into(archive: Archive, "
                     "parts: list[tuple[int, int, int, int, typing.Any]]) -> None"));
  module.def("_tensor_in", tensor_in, nb::arg("memory"), nb::arg("offset"), nb::arg("dtype"), nb::arg("shape"),
             nb::arg("strides"),
             nb::sig("def _tensor_in(memory: object, offset: int, dtype: str, shape: tuple[int, ...], "
                     "strides: tuple[int, ...]) -> Tensor"));
  module.def("_pinned_bytes", pinned_bytes, nb::arg("bytes"), nb::sig("def _pinned_bytes(bytes: int) -> Tensor"));
  module.def("_pinned_over", pinned_over, nb::arg("memory"), nb::sig("def _pinned_over(memory: object) -> Tensor"));
  module.def("_file_versions", file_versions, nb::arg("archive"),
             nb::sig("def _file_versions(archive: Archive) -> list[tuple[int, int] | None]"));
}

}  // namespace penstock::python
