// What adapters to other tensor libraries build on where tensors become another type while they are loaded: the
// elements of those that do, and the storages of all others.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "archive/archive_part.h"
#include "archive/archive_state.h"
#include "archive/load_converted.h"
#include "arrays/foreign.h"
#include "bindings.h"
#include "call/progress.h"
#include "content/archive.h"
#include "core/progress.h"
#include "core/view.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

/// The type of a load, None without one. The errors of penstock.load for what cannot be.
Typed<std::optional<DType>> load_dtype(nb::handle dtype, nb::handle strict, std::optional<bool> mmap) {
  const nb::str device("cpu");
  const LoadArguments arguments = {device, mmap, {}, {}, {}, dtype, strict};
  const LoadOptions options = arguments.options(true);
  archive::require_convertible(options);
  return options.dtype ? nb::cast(*options.dtype) : nb::none();
}

ListOf<int> converted_entries(const PyArchive& opened, const DType& dtype) {
  const Archive archive = opened.get();
  nb::list out;
  const auto entries = archive.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (archive::is_converted(entries[i].dtype, {.dtype = dtype})) out.append(nb::int_(i));
  }
  return out;
}

/// An archive of these entries alone, whose content is the list of them.
Archive part_of_entries(const Archive& archive, const std::vector<std::size_t>& entries) {
  std::vector<Value> items;
  items.reserve(entries.size());
  for (const std::size_t entry : entries) {
    if (entry >= archive.entries().size()) throw Error(ErrorCode::kIndexOutOfRange, "there is no such entry");
    items.push_back(Value::entry(entry));
  }
  const auto& state = detail::ArchiveState::of(archive);
  return detail::ArchiveState::handle(archive::narrowed(state, Value::list(std::move(items)), {}));
}

/// Two loads that are one for who watches the progress.
template <class First, class Second>
void load_both(const ReadEffort& effort, const First& first, const Second& second) {
  core::MeteredOperation metered;
  if (metered) metered.begin(effort.payload_bytes);
  first();
  second();
  metered.end();
}

/// All memory from a tensor's first to its last element, as bytes.
Tensor bytes_of(const Tensor& tensor) {
  const auto bytes =
      static_cast<std::int64_t>(*core::view_span(tensor.shape(), tensor.strides(), tensor.dtype().itemsize()));
  return {tensor.buffer(), DType::uint8, Shape{bytes}, Strides{1}, tensor.byte_offset()};
}

/// (runs, places, storages): the memory of the converted entries, where in it each of them lies as (run, strides), and
/// the storages that the other entries lie in, None for the rest. Entries that are the same view have one run.
nb::tuple load_typed(const PyArchive& source, const std::vector<std::size_t>& converted,
                     const std::vector<std::size_t>& others, const DType& dtype, bool strict, nb::handle progress) {
  const Archive archive = source.get();
  const Archive typed = part_of_entries(archive, converted);
  const Archive rest = part_of_entries(archive, others);
  ReadEffort effort = ReadEffort::of(typed);
  effort.payload_bytes += ReadEffort::of(rest).payload_bytes;
  std::pair<std::optional<Value>, std::vector<Tensor>> loaded;
  with_progress(progress, "loading", path_text(archive.path()), [&, verify = source.verify()] {
    loaded = interruptible(effort.takes_long(), [typed, rest, effort, dtype, strict, verify](std::stop_token stop) {
      std::pair<std::optional<Value>, std::vector<Tensor>> out;
      load_both(
          effort, [&] { out.first = typed.load({.verify = verify, .dtype = dtype, .strict = strict, .stop = stop}); },
          [&] { out.second = rest.load_storages({.verify = verify, .stop = stop}); });
      return out;
    });
    return nb::object(nb::none());
  });
  nb::list runs;
  nb::list places;
  std::unordered_map<const void*, std::size_t> numbers;
  for (std::size_t i = 0; i < converted.size(); ++i) {
    const Tensor tensor = (*loaded.first)[i].as_tensor();
    const auto [at, is_new] = numbers.try_emplace(tensor.numel() == 0 ? nullptr : tensor.data(), nb::len(runs));
    if (is_new || tensor.numel() == 0) at->second = nb::len(runs);
    if (at->second == nb::len(runs)) runs.append(nb::cast(bytes_of(tensor)));
    places.append(nb::make_tuple(at->second, tuple_of(tensor.strides())));
  }
  nb::list storages;
  for (std::size_t i = 0; i < archive.storages().size(); ++i) storages.append(nb::none());
  for (std::size_t i = 0; i < others.size(); ++i) {
    const std::size_t number = rest.entries()[*rest.structure()[i].entry_index()].storage;
    const Tensor& whole = loaded.second[number];
    if (whole.defined()) storages[archive.entries()[others[i]].storage] = nb::cast(whole);
  }
  return nb::make_tuple(runs, places, storages);
}

/// The same into memory of any library: {entry: (its memory as bytes, its strides)} and {storage: its bytes}.
void load_typed_into(const PyArchive& source, const nb::dict& converted, const nb::dict& storages, const DType& dtype,
                     bool strict, nb::handle progress) {
  const Archive archive = source.get();
  ReadEffort effort = {.asks_server = ReadEffort::of(archive).asks_server};
  const auto memory = [&effort](nb::handle object) {
    Tensor to = memory_from(object);
    effort.payload_bytes += to.nbytes();
    return to;
  };
  std::vector<Placement> typed;
  for (const auto& [number, place] : converted) {
    const auto entry = nb::cast<std::size_t>(number);
    if (entry >= archive.entries().size()) throw Error(ErrorCode::kIndexOutOfRange, "there is no such entry");
    const Shape& shape = archive.entries()[entry].shape;
    const Tensor bytes = memory(place[0]);
    const Strides strides(std::span<const std::int64_t>(integers_from(place[1])));
    const std::optional<std::uint64_t> span = core::view_span(shape, strides, dtype.itemsize());
    if (!bytes.is_contiguous() || strides.rank() != shape.rank() || !span || *span > bytes.nbytes()) {
      throw Error(ErrorCode::kShapeMismatch, "found memory that the tensor does not lie in");
    }
    typed.push_back({entry, Tensor(bytes.buffer(), dtype, shape, strides, bytes.byte_offset())});
  }
  std::vector<StoragePlacement> whole;
  for (const auto& [storage, bytes] : storages) whole.push_back({nb::cast<std::size_t>(storage), memory(bytes)});
  with_progress(progress, "loading", path_text(archive.path()), [&, verify = source.verify()] {
    interruptible(effort.takes_long(), [archive, typed, whole, effort, strict, verify](std::stop_token stop) {
      load_both(
          effort, [&] { archive.load_into(typed, {.verify = verify, .strict = strict, .stop = stop}); },
          [&] { archive.load_storages_into(whole, {.verify = verify, .stop = stop}); });
      return true;
    });
    return nb::object(nb::none());
  });
}

}  // namespace

void bind_typed_parts(nb::module_& module) {
  module.def("_load_dtype", load_dtype, nb::arg("dtype").none(), nb::arg("strict") = false,
             nb::arg("mmap") = nb::none());
  module.def("_converted_entries", converted_entries, nb::arg("archive"), nb::arg("dtype"));
  module.def("_load_typed", load_typed, nb::arg("archive"), nb::arg("converted"), nb::arg("others"), nb::arg("dtype"),
             nb::arg("strict") = false, nb::arg("progress") = nb::none());
  module.def("_load_typed_into", load_typed_into, nb::arg("archive"), nb::arg("converted"), nb::arg("storages"),
             nb::arg("dtype"), nb::arg("strict") = false, nb::arg("progress") = nb::none());
}

}  // namespace penstock::python
