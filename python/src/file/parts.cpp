// What adapters to other tensor libraries build on: an archive's storages, entries and structure, taken apart.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "archive/archive_state.h"
#include "archive/unchanged.h"
#include "arrays/arrays.h"
#include "arrays/foreign.h"
#include "bindings.h"
#include "call/arguments.h"
#include "call/progress.h"
#include "content/archive.h"
#include "content/contents.h"
#include "content/value.h"
#include "core/format.h"
#include "core/shared_walk.h"
#include "core/view.h"
#include "format/numpy/npy_header.h"
#include "format/pt/legacy.h"
#include "format/pt/pickle/read_pickle.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "io/source/composed_source.h"
#include "penstock/error.h"
#include "penstock/source.h"
#include "tensor/indexing.h"
#include "value/nodes.h"

namespace penstock::python {
namespace {

using Node = ValueGraph::Node;

/// For behind reads of its files that are not the archive's own.
void require_unchanged(const PyArchive& opened) {
  const Archive archive = opened.get();
  for (const Source& source : archive.sources()) archive::require_unchanged(*source);
}

/// Entries of each storage.
std::vector<std::uint32_t> uses_of_storages(const Archive& archive) {
  std::vector<std::uint32_t> uses(archive.storages().size());
  for (const TensorEntry& entry : archive.entries()) ++uses[entry.storage];
  return uses;
}

/// Whether a tensor is all there is in its storage, as it lies there.
bool is_whole(const TensorEntry& entry, const StorageEntry& storage, std::uint32_t uses) {
  return uses == 1 && entry.nbytes() == storage.nbytes && entry.nbytes() != 0 && !entry.encoding.has_math_bits() &&
         entry.strides == entry.shape.contiguous_strides();
}

/// (tensors, storages): a Tensor for each entry that is a whole storage by itself, None for the others, whose storages
/// are in the second list.
TupleOf<nb::list, nb::list> load_parts(const PyArchive& source, nb::handle progress) {
  const Archive archive = source.get();
  LoadOptions options;
  options.verify = source.verify();
  std::vector<Tensor> loaded;
  with_progress(progress, "loading", path_text(archive.path()), [archive, options, &loaded] {
    loaded = interruptible(ReadEffort::of(archive).takes_long(), [archive, options](std::stop_token stop) mutable {
      options.stop = std::move(stop);
      return archive.load_storages(options);
    });
    return nb::object(nb::none());
  });
  const std::vector<std::uint32_t> uses = uses_of_storages(archive);
  nb::list tensors;
  nb::list storages;
  for (std::size_t i = 0; i < loaded.size(); ++i) storages.append(nb::none());
  for (const TensorEntry& entry : archive.entries()) {
    const Tensor& whole = loaded[entry.storage];
    if (whole.defined() && is_whole(entry, archive.storages()[entry.storage], uses[entry.storage])) {
      const Tensor tensor(whole.buffer(), entry.dtype, entry.shape, entry.strides, whole.byte_offset());
      tensors.append(nb::cast(tensor.with_requires_grad(entry.requires_grad)));
      continue;
    }
    tensors.append(nb::none());
    if (whole.defined()) storages[entry.storage] = nb::cast(whole);
  }
  return nb::make_tuple(tensors, storages);
}

/// Of a list in an index; kIndexOutOfRange names what there is none of.
template <class Item>
const Item& item_at(std::span<const Item> items, std::size_t index, const char* what) {
  if (index < items.size()) return items[index];
  throw Error(ErrorCode::kIndexOutOfRange, core::format("there is no such {}", what));
}

/// (storage, dtype, shape, strides, byte_offset, requires_grad, conj, neg) of an entry.
TupleOf<int, nb::str, Sizes, Sizes, int, bool, bool, bool> entry_parts(const PyArchive& opened, std::size_t index) {
  const Archive archive = opened.get();
  const TensorEntry& entry = item_at(archive.entries(), index, "entry");
  return nb::make_tuple(entry.storage, text_from(std::string(entry.dtype.name())), tuple_of(entry.shape),
                        tuple_of(entry.strides), entry.byte_offset, entry.requires_grad, entry.encoding.conjugate,
                        entry.encoding.negative);
}

/// (nbytes, location, source, offset) of a storage; offset is None when its bytes do not lie in a file as they are.
TupleOf<int, nb::str, nb::str, std::optional<int>> storage_parts(const PyArchive& opened, std::size_t index) {
  const Archive archive = opened.get();
  const StorageEntry& storage = item_at(archive.storages(), index, "storage");
  const Source& source = archive.sources()[storage.source];
  const bool in_one_place = storage.lies_in_file() && io::as_composed(source) == nullptr;
  const nb::object offset = in_one_place ? nb::object(nb::int_(storage.offset)) : nb::object(nb::none());
  return nb::make_tuple(storage.nbytes, text_from(storage.location), path_text(source.name()), offset);
}

/// (path, offset, (device, inode, size, modified)) of a storage that can be mapped, with the version of its file that
/// was opened; None where its bytes lie in several places and have to be read. kUnsupported, kIndexOutOfRange.
Typed<std::optional<TupleOf<nb::str, int, TupleOf<int, int, int, int>>>> mappable_place(const PyArchive& opened,
                                                                                        std::size_t index) {
  const Archive archive = opened.get();
  const StorageEntry& storage = item_at(archive.storages(), index, "storage");
  const Source& source = archive.sources()[storage.source];
  if (io::as_composed(source) != nullptr) return nb::none();
  if (!storage.lies_in_file()) {
    throw Error(ErrorCode::kUnsupported,
                "mmap can only be used where tensors lie in the file as they are, and here they are compressed or "
                "inside the pickle; leave mmap out",
                {.path = source.name()});
  }
  const std::optional<FileVersion> version = source.version();
  if (!version) {
    throw Error(ErrorCode::kUnsupported, "mmap can only be used with files of this machine; leave mmap out",
                {.path = source.name()});
  }
  return nb::make_tuple(path_text(source.name()), storage.offset,
                        nb::make_tuple(version->device, version->inode, version->size, version->modified));
}

/// Of each storage how its tensors want to be aligned, in bytes; 0 where one has another byte order than this machine.
std::vector<std::size_t> alignments(const PyArchive& opened) {
  const Archive archive = opened.get();
  std::vector<std::size_t> out(archive.storages().size(), 1);
  for (const TensorEntry& entry : archive.entries()) {
    std::size_t& wanted = out[entry.storage];
    if (entry.encoding.swapped) wanted = 0;
    if (wanted != 0) wanted = std::max(wanted, entry.dtype.itemsize());
  }
  return out;
}

/// Whether the file records no device but the host for any storage.
bool is_hosted(const PyArchive& opened) {
  const Archive archive = opened.get();
  const auto storages = archive.storages();
  return std::all_of(storages.begin(), storages.end(),
                     [](const StorageEntry& storage) { return storage.location.empty(); });
}

/// The entries that are NumPy's arrays, whose bytes are in memory since the pickle was read.
ListOf<int> array_entries(const PyArchive& source) {
  const Archive archive = source.get();
  nb::list out;
  const auto storages = archive.storages();
  const auto is_resident = [](const StorageEntry& storage) { return static_cast<bool>(storage.resident); };
  if (std::none_of(storages.begin(), storages.end(), is_resident)) return out;
  for_each_node(archive.structure(), [&out](const Node& node) {
    const auto* entry = std::get_if<Node::Entry>(&node.scalar);
    if (entry != nullptr && !node.type_name.empty() && !node.type_name.starts_with("torch.")) {
      out.append(nb::int_(entry->index));
    }
  });
  return out;
}

/// For each entry its array of NumPy, where its bytes are in memory since the pickle was read and make one as they are;
/// None for the others.
nb::list resident_arrays(const PyArchive& source) {
  const Archive archive = source.get();
  const auto storages = archive.storages();
  const auto is_resident = [](const StorageEntry& storage) { return static_cast<bool>(storage.resident); };
  nb::list out;
  if (!std::all_of(storages.begin(), storages.end(), is_resident)) {
    for (std::size_t i = 0; i < archive.entries().size(); ++i) out.append(nb::none());
    return out;
  }
  LoadOptions options;
  options.verify = source.verify();
  std::vector<Tensor> loaded;
  {
    const ReleasedGil released;
    loaded = archive.load_storages(options);
  }
  const std::vector<std::uint32_t> uses = uses_of_storages(archive);
  for (const TensorEntry& entry : archive.entries()) {
    const Tensor& whole = loaded[entry.storage];
    const bool as_it_is = whole.defined() && !entry.encoding.swapped && !entry.dtype.numpy_descr().empty() &&
                          is_whole(entry, storages[entry.storage], uses[entry.storage]);
    out.append(as_it_is ? to_numpy(Tensor(whole.buffer(), entry.dtype, entry.shape, entry.strides, whole.byte_offset()))
                        : nb::object(nb::none()));
  }
  return out;
}

/// Reads entries into tensors, which may be of any library.
void load_into(const PyArchive& source, const nb::list& entries, const nb::list& tensors, nb::handle progress) {
  std::vector<Placement> placements;
  ReadEffort effort;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    placements.push_back({nb::cast<std::size_t>(entries[i]), memory_from(tensors[i])});
    effort.payload_bytes += placements.back().to.nbytes();
  }
  const Archive archive = source.get();
  const auto read = [archive, placements, verify = source.verify(), effort] {
    interruptible(effort.takes_long(), [archive, placements, verify](std::stop_token stop) {
      archive.load_into(placements, {.verify = verify, .stop = std::move(stop)});
      return true;
    });
    return nb::object(nb::none());
  };
  with_progress(progress, "loading", path_text(archive.path()), read);
}

/// (device, first byte, behind the last byte) of the memory that an array's elements lie in.
TupleOf<nb::str, int, int> span_of(nb::handle array) {
  const Tensor tensor = memory_from(array);
  const std::uint64_t bytes = *core::view_span(tensor.shape(), tensor.strides(), tensor.dtype().itemsize());
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data());
  return nb::make_tuple(tensor.device().to_string(), begin, begin + bytes);
}

/// Reads storages into memory of any library, of the host or a device: {storage: its bytes}.
void load_storages_into(const PyArchive& source, const nb::dict& places, nb::handle progress, const ReportDict& report,
                        std::optional<bool> direct, std::optional<std::int64_t> threads) {
  std::vector<StoragePlacement> placements;
  for (const auto& [storage, bytes] : places) {
    placements.push_back({nb::cast<std::size_t>(storage), memory_from(bytes)});
  }
  const Archive archive = source.get();
  const LoadOptions options{
      .verify = source.verify(), .direct = direct, .threads = threads ? not_negative(*threads, "threads") : 0};
  with_progress(progress, "loading", path_text(archive.path()), [archive, placements, options, report] {
    load_placed(archive, placements, options, report);
    return nb::object(nb::none());
  });
}

/// The structure with leaves[i] for entry i, and what `named` makes of values of named types.
Anything assemble(const PyArchive& opened, const nb::list& leaves, const nb::object& named) {
  const Archive archive = opened.get();
  const EntryLeaf leaf = [&leaves](std::size_t index) { return nb::borrow(leaves[index]); };
  const NamedLeaf make = [&named](const std::string& name, const nb::object& arguments, const nb::object& state,
                                  const nb::object& begun) { return named(text_from(name), arguments, state, begun); };
  return in_file(archive.path(), [&] { return to_python(archive.structure(), leaf, make); });
}

/// Whether the first bytes of a file are those of a `.pt` of before torch 1.6.
bool is_legacy(nb::handle head) {
  const Buffer memory = memory_of(head);
  return format::is_pt_legacy({memory.data(), memory.size()});
}

/// Where the first of several such files in an object with a buffer ends.
std::uint64_t legacy_end(nb::handle data, const std::string& name) {
  const Buffer memory = memory_of(data);
  return format::pt_legacy_end(format::FileBytes(std::span<const std::byte>(memory.data(), memory.size()), name));
}

/// Bytes of the header and of the payload of the `.npy` that `head`, all of its header, begins. The payload need not be
/// there yet; it is None for Python objects, whose pickle does not say how long it is.
TupleOf<int, std::optional<int>> npy_sizes(nb::handle head, const std::string& name) {
  const Buffer memory = memory_of(head);
  const auto header = format::parse_npy_header(std::span<const std::byte>(memory.data(), memory.size()), name);
  return nb::make_tuple(header.size, header.has_objects ? nb::object(nb::none()) : nb::cast(header.payload));
}

/// What numpy.load shows of a `.npz` besides its arrays: the keys, folders among them; the entries whose headers Python
/// 2 wrote; and the keys of arrays of objects, which are no entries.
TupleOf<ListOf<nb::str>, ListOf<int>, ListOf<nb::str>> numpy_facts(const PyArchive& archive) {
  const Archive opened = archive.get();
  const format::NumpyFacts& facts = detail::ArchiveState::of(opened).index.numpy;
  const Value content = opened.structure();
  const std::size_t size = content.is(Value::Kind::kDict) ? content.size() : 0;
  nb::list keys;
  nb::list objects;
  auto folder = facts.folders.begin();
  for (std::size_t i = 0; i <= size; ++i) {
    for (; folder != facts.folders.end() && folder->first == i; ++folder) keys.append(nb::cast(folder->second));
    if (i == size) break;
    const auto [key, item] = content.item(i);
    keys.append(nb::cast(key.as_string()));
    const auto entry = item.is(Value::Kind::kTensor) ? item.entry_index() : std::nullopt;
    if (!entry || opened.entries()[*entry].name != key.as_string()) objects.append(nb::cast(key.as_string()));
  }
  return nb::make_tuple(keys, facts.python2_headers, objects);
}

/// Where the pickle that `data` begins with ends.
std::uint64_t pickle_end(nb::handle data) {
  class PlainPickle final : public format::pickle::Outside {
    std::uint32_t storage(std::string_view, std::uint64_t, std::uint64_t) override {
      throw Error(ErrorCode::kCorrupt, "the pickle refers to a storage of torch's");
    }
  };
  const Buffer memory = memory_of(data);
  format::Index index;
  PlainPickle none;
  const ReleasedGil released;
  return format::pickle::read_pickle({memory.data(), memory.size()}, 0, index, none, {.whole = false});
}

/// `decode` of OpenOptions by a Python function of bytes, which gives text or None; None itself is none.
decltype(OpenOptions::decode) decoder(nb::handle function) {
  if (function.is_none()) return {};
  return [held = keep_alive(nb::borrow(function))](std::string_view bytes) -> std::optional<std::string> {
    const AcquiredGil acquired;
    auto* const decode = static_cast<PyObject*>(const_cast<void*>(held.get()));
    const nb::object text = nb::handle(decode)(nb::bytes(bytes.data(), bytes.size()));
    if (text.is_none()) return std::nullopt;
    Py_ssize_t size = 0;
    const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (utf8 == nullptr) throw nb::python_error();
    return std::string(utf8, static_cast<std::size_t>(size));
  };
}

/// Keeps the parts that it has seen, as mappings may make them anew for each look.
class PySharedWalk {
 public:
  explicit PySharedWalk(std::string advice) : walk_(std::move(advice)) {}

  void visit(nb::handle part, std::uint64_t items, std::uint64_t text) {
    walk_.visit(part.ptr(), items, text);
    parts_.push_back(nb::borrow(part));
  }

 private:
  core::SharedWalk walk_;
  std::vector<nb::object> parts_;
};

/// Walks what lists, tuples, sets and dicts hold, of these types themselves, and what `parts` tells of other objects.
class PlainWalk {
 public:
  PlainWalk(nb::handle leaves, nb::handle parts, std::size_t most) : leaves_(leaves), parts_(parts), most_(most) {}

  bool is_plain(nb::handle root) {
    add(root);
    while (!open_.empty()) {
      const nb::object part = std::move(open_.back());
      open_.pop_back();
      if (is_leaf(part.type()) || !seen_.insert(part.ptr()).second) continue;
      if (seen_.size() > most_ || !opened(part)) return false;
    }
    return true;
  }

 private:
  bool opened(nb::handle part) {
    if (PyList_CheckExact(part.ptr())) {
      const nb::ft_object_guard alone(part);
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(part.ptr()); ++i) add(PyList_GET_ITEM(part.ptr(), i));
    } else if (PyTuple_CheckExact(part.ptr())) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(part.ptr()); ++i) add(PyTuple_GET_ITEM(part.ptr(), i));
    } else if (PyDict_CheckExact(part.ptr())) {
      const nb::ft_object_guard alone(part);
      PyObject* key = nullptr;
      PyObject* value = nullptr;
      for (Py_ssize_t at = 0; PyDict_Next(part.ptr(), &at, &key, &value) != 0;) {
        add(key);
        add(value);
      }
    } else if (part.type().is(reinterpret_cast<PyObject*>(&PySet_Type))) {
      add_all(part);
    } else {
      const nb::object groups = parts_(part, part.type());
      if (groups.is_none()) return false;
      for (const nb::handle group : groups) add_all(group);
    }
    return true;
  }

  void add_all(nb::handle group) {
    for (const nb::handle item : nb::iter(group)) add(item);
  }
  /// Calls nothing of Python's, so that nobody changes the container that the item is in.
  void add(nb::handle item) {
    if (std::find(known_.begin(), known_.end(), item.type().ptr()) == known_.end()) open_.push_back(nb::borrow(item));
  }
  bool is_leaf(const nb::handle type) {
    const int found = PySet_Contains(leaves_.ptr(), type.ptr());
    if (found < 0) nb::raise_python_error();
    if (found != 0 && known_.size() < kMostKnown) known_.push_back(type.ptr());
    return found != 0;
  }

  static constexpr std::size_t kMostKnown = 8;
  nb::handle leaves_;
  nb::handle parts_;
  std::size_t most_;
  std::vector<nb::object> open_;
  std::unordered_set<const PyObject*> seen_;  ///< but for leaves
  std::vector<const PyObject*> known_;        ///< leaves that were met; `leaves_` keeps them
};

PyArchive open_file(nb::handle given, bool verify, nb::handle decode, bool big_endian) {
  const OpenOptions options{.verify = verify, .decode = decoder(decode), .big_endian = big_endian};
  if (nb::isinstance<PySource>(given)) return open_archive(nb::cast<PySource>(given).source, options);
  return open_archive(path_from(given), options);
}

}  // namespace

void bind_parts(nb::module_& module) {
  nb::class_<PySharedWalk>(module, "_SharedWalk",
                           "Bounds a walk that visits shared parts once for each way to them; see core/shared_walk.h.")
      .def(nb::init<std::string>(), nb::arg("advice"))
      .def("visit", &PySharedWalk::visit, nb::arg("part"), nb::arg("items"), nb::arg("text") = 0, nb::lock_self());
  module.def(
      "_is_plain",
      [](nb::handle root, nb::handle leaves, nb::handle parts, std::size_t most) {
        return PlainWalk(leaves, parts, most).is_plain(root);
      },
      nb::arg("root").none(), nb::arg("leaves"), nb::arg("parts"), nb::arg("most"),
      "Whether all of it is of these types, a list, tuple, set or dict of such, or has `parts(object, type)`: "
      "iterables of them, or None. At most so many are no leaves.");
  module.def(
      "_part",
      [](const PyArchive& archive, nb::handle key, nb::handle prefix) {
        return PyArchive(part_of(archive.get(), key, prefix), archive.verify());
      },
      nb::arg("archive"), nb::arg("key").none(), nb::arg("prefix").none());
  module.def("_load_parts", load_parts, nb::arg("archive"), nb::arg("progress") = nb::none());
  module.def("_entry_parts", entry_parts, nb::arg("archive"), nb::arg("index"));
  module.def("_storage_parts", storage_parts, nb::arg("archive"), nb::arg("index"));
  module.def("_mappable_place", mappable_place, nb::arg("archive"), nb::arg("index"));
  module.def("_is_hosted", is_hosted, nb::arg("archive"));
  module.def("_array_entries", array_entries, nb::arg("archive"));
  module.def("_resident_arrays", resident_arrays, nb::arg("archive"));
  module.def("_alignments", alignments, nb::arg("archive"));
  module.def("_require_unchanged", require_unchanged, nb::arg("archive"));
  module.def("_storage_count", [](const PyArchive& opened) {
    const Archive archive = opened.get();
    return archive.storages().size();
  });
  module.def("_load_into", load_into, nb::arg("archive"), nb::arg("entries"), nb::arg("tensors"),
             nb::arg("progress") = nb::none());
  module.def("_span", span_of, nb::arg("array"));
  module.def("_load_storages_into", load_storages_into, nb::arg("archive"), nb::arg("places"),
             nb::arg("progress") = nb::none(), nb::arg("report") = nb::none(), nb::arg("direct") = nb::none(),
             nb::arg("threads") = nb::none());
  module.def("_assemble", assemble, nb::arg("archive"), nb::arg("leaves"), nb::arg("named"));
  module.def("_legacy_end", legacy_end, nb::arg("data"), nb::arg("name"));
  module.def("_is_legacy", is_legacy, nb::arg("head"));
  module.def("_npy_sizes", npy_sizes, nb::arg("head"), nb::arg("name"));
  module.def("_numpy_facts", numpy_facts, nb::arg("archive"));
  module.def("_pickle_end", pickle_end, nb::arg("data"));
  module.def("_open_file", open_file, nb::arg("path").none(), nb::arg("verify") = true, nb::arg("decode") = nb::none(),
             nb::arg("big_endian") = false);
  module.def(
      "_open_memory",
      [](nb::handle data, const std::string& name, bool verify, nb::handle decode, bool big_endian) {
        return open_memory(data, name, {.verify = verify, .decode = decoder(decode), .big_endian = big_endian});
      },
      nb::arg("data"), nb::arg("name"), nb::arg("verify") = true, nb::arg("decode") = nb::none(),
      nb::arg("big_endian") = false);
}

}  // namespace penstock::python
