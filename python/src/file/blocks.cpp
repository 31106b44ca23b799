// Blocks of memory that adapters to other tensor libraries fill, such as one that other processes map too: what lies
// where in one, where it comes from, and rows of a tensor read to their place in it.

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "archive/archive_state.h"
#include "archive/one_block.h"
#include "arrays/foreign.h"
#include "bindings.h"
#include "content/archive.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "io/file/memory_file.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

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
    const Tensor memory = memory_from(nb::object(given[4]));
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
                 nb::handle strides, bool requires_grad) {
  const std::optional<DType> known = DType::from_name(dtype);
  if (!known) throw Error(ErrorCode::kUnsupported, core::format("there is no type {} here", dtype));
  const Tensor bytes = memory_from(memory);
  return Tensor(bytes.buffer(), *known, shape_from(shape), shape_from(strides),
                bytes.byte_offset() + static_cast<std::size_t>(offset))
      .with_requires_grad(requires_grad);
}

/// Page-locked host memory of undefined content, as bytes.
Tensor pinned_bytes(std::size_t bytes) {
  const ReleasedGil released;
  return {Buffer::allocate_pinned(bytes), DType::uint8, Shape{static_cast<std::int64_t>(bytes)}};
}

/// The descriptor of a new file in memory, for the caller to close.
int memory_file(std::uint64_t bytes) {
  const ReleasedGil released;
  return io::second_descriptor(io::new_memory_file(static_cast<std::size_t>(bytes)).get());
}

/// Such a file, mapped to be written, as bytes; page-locked for this process where that is wanted.
Tensor mapped_memory(int descriptor, std::uint64_t bytes, bool is_pinned) {
  const ReleasedGil released;
  const Buffer memory = io::map_memory_file(descriptor, static_cast<std::size_t>(bytes));
  return {is_pinned ? io::page_locked(memory) : memory, DType::uint8, Shape{static_cast<std::int64_t>(bytes)}};
}

/// ({number: (offset, bytes)}, bytes of all) of the storages with elements in one block, in its order, without those in
/// `left_out` and those that only the entries in `apart` lie in. Behind them, numbered behind the file's storages, runs
/// of so many bytes.
TupleOf<nb::typed<nb::dict, int, TupleOf<int, int>>, int> block_layout(const PyArchive& opened, nb::iterable left_out,
                                                                       nb::iterable apart,
                                                                       const std::vector<std::uint64_t>& runs) {
  const Archive archive = opened.get();
  std::vector<bool> is_apart(archive.size());
  for (const nb::handle entry : apart) is_apart.at(nb::cast<std::size_t>(entry)) = true;
  std::vector<bool> wanted(archive.storages().size());
  for (std::size_t i = 0; i < archive.size(); ++i) {
    const TensorEntry& entry = archive.entries()[i];
    if (entry.nbytes() != 0 && !is_apart[i]) wanted[entry.storage] = true;
  }
  for (const nb::handle storage : left_out) wanted.at(nb::cast<std::size_t>(storage)) = false;
  archive::OneBlock layout = archive::lay_out_in_one(detail::ArchiveState::of(archive).index, wanted);
  nb::dict places;
  for (const auto& [storage, offset, bytes] : layout.places) places[nb::int_(storage)] = nb::make_tuple(offset, bytes);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i] != 0) places[nb::int_(wanted.size() + i)] = nb::make_tuple(layout.add(runs[i]), runs[i]);
  }
  return nb::make_tuple(places, layout.bytes);
}

/// Of each file that was opened its size and when it was modified; None of one that has no such version.
nb::list file_versions(const PyArchive& opened) {
  const Archive archive = opened.get();
  return list_of(archive.sources(), [](const Source& source) {
    const std::optional<FileVersion> version = source.version();
    return version ? nb::object(nb::make_tuple(version->size, version->modified)) : nb::object(nb::none());
  });
}

}  // namespace

void bind_blocks(nb::module_& module) {
  module.def("_block_layout", block_layout, nb::arg("archive"), nb::arg("left_out"), nb::arg("apart"), nb::arg("runs"));
  module.def("_memory_file", memory_file, nb::arg("bytes"));
  module.def("_mapped_memory", mapped_memory, nb::arg("descriptor"), nb::arg("bytes"), nb::arg("pinned") = false);
  module.def("_load_rows_into", load_rows_into, nb::arg("archive"), nb::arg("parts"));
  module.def("_tensor_in", tensor_in, nb::arg("memory"), nb::arg("offset"), nb::arg("dtype"), nb::arg("shape"),
             nb::arg("strides"), nb::arg("requires_grad"));
  module.def("_pinned_bytes", pinned_bytes, nb::arg("bytes"));
  module.def("_file_versions", file_versions, nb::arg("archive"));
}

}  // namespace penstock::python
