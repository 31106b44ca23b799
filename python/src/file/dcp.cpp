// A reader of distributed checkpoints that brings a plan of its own (penstock.torch.dcp) knows which streams of which
// files it wants. These become an archive with an entry for each stream, so that parts of them are read like tensors of
// any file: in file order, neighbours together, by several threads, straight into the memory of the plan.

#include "format/dcp/dcp.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "archive/archive_state.h"
#include "archive/load_into.h"
#include "archive/unchanged.h"
#include "arrays/foreign.h"
#include "bindings.h"
#include "content/archive.h"
#include "content/value.h"
#include "core/format.h"
#include "core/text.h"
#include "format/dcp/assembly.h"
#include "format/dcp/coverage.h"
#include "format/dcp/stream.h"
#include "format/dcp/stream_ends.h"
#include "format/file_bytes.h"
#include "format/format.h"
#include "format/pt/pickle/read_pickle.h"
#include "format/pt/zip.h"
#include "format/safetensors/shard_paths.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "io/remote/remote.h"
#include "penstock/error.h"
#include "penstock/report.h"
#include "penstock/source.h"

namespace penstock::python {
namespace {

/// Opening as many takes so long that somebody may want to stop it.
constexpr std::size_t kManyStreams = 64;

struct Wanted {
  format::dcp::StreamSpan place;
  std::string tensor;
  std::string dtype;  ///< that .metadata says
  Shape shape;
};

/// Of a file that `.metadata` names. kNotFound, kUnsafe.
std::string path_beside(const std::string& metadata_path, const std::string& file, const std::string& item) {
  try {
    std::string path = format::shard_path(metadata_path, file);
    if (!path.empty()) return path;
    throw Error(ErrorCode::kNotFound,
                core::format("the file {} beside it is missing; copy it from where the checkpoint was saved",
                             core::quoted(file)));
  } catch (const Error& error) {
    throw error.within({.path = metadata_path, .tensor = item});
  }
}

/// Opens the files of streams, and reads the streams' indexes.
class Streams {
 public:
  /// `wanted` must outlive it.
  Streams(std::string metadata_path, const std::vector<Wanted>& wanted, bool verify)
      : metadata_path_(std::move(metadata_path)) {
    options_.verify = verify;
    open_files(wanted);
    std::vector<format::dcp::StreamEnds::Stream> streams;
    for (const Wanted& each : wanted) streams.push_back({&each.place, index_.sources[files_.at(each.place.file)]});
    ends_.emplace(std::move(streams));
  }

  /// In the order of `wanted`.
  void add(const Wanted& wanted) {
    const std::uint32_t file = files_.at(wanted.place.file);
    format::Index found = format::dcp::read_stream(index_.sources[file], file, wanted.place, ends_->take(wanted.place),
                                                   wanted.tensor, options_);
    const std::optional<std::size_t> only = found.structure.entry_index();
    if (!only) {
      throw Error(
          ErrorCode::kUnsupported,
          "it is not a plain tensor (sparse, quantized or of a class of its own, or the file is of another save "
          "than .metadata); load it with torch's FileSystemReader, or copy both again",
          {index_.sources[file].name(), wanted.place.offset, wanted.tensor});
    }
    TensorEntry entry = std::move(found.entries[*only]);
    format::dcp::require_as_said(entry, wanted.dtype, wanted.shape,
                                 {index_.sources[file].name(), wanted.place.offset, wanted.tensor});
    index_.storages.push_back(std::move(found.storages[entry.storage]));
    index_.storages.back().name = wanted.tensor;  // for errors
    entry.storage = index_.storages.size() - 1;
    entry.name = wanted.tensor;
    index_.entries.push_back(std::move(entry));
  }

  Archive archive() && {
    auto state = std::make_shared<detail::ArchiveState>();
    state->format = &format::kDcpFormat;
    state->index = std::move(index_);
    state->verify_checksums = options_.verify;
    return detail::ArchiveState::handle(std::move(state));
  }

 private:
  void open_files(const std::vector<Wanted>& wanted) {
    std::vector<std::string> paths;
    for (const Wanted& each : wanted) {
      const auto [at, added] = files_.try_emplace(each.place.file, static_cast<std::uint32_t>(paths.size()));
      if (added) paths.push_back(path_beside(metadata_path_, each.place.file, each.tensor));
    }
    try {
      index_.sources = io::remote::open_sources(paths);
    } catch (const Error& error) {
      throw error.within({.path = metadata_path_});
    }
  }

  std::string metadata_path_;
  OpenOptions options_;
  format::Index index_;
  std::map<std::string, std::uint32_t> files_;
  std::optional<format::dcp::StreamEnds> ends_;
};

PyArchive open_streams(nb::handle metadata_path, const nb::list& streams, bool verify) {
  std::vector<Wanted> wanted;
  for (const nb::handle stream : streams) {
    const auto part = nb::cast<nb::tuple>(stream);
    wanted.push_back({{name_from(part[0]), unsigned_from(part[1]), unsigned_from(part[2])},
                      name_from(part[3]),
                      name_from(part[4]),
                      shape_from(part[5])});
  }
  if (wanted.empty()) throw Error(ErrorCode::kInvalidArgument, "no stream is wanted");
  Archive archive = interruptible(wanted.size() >= kManyStreams,
                                  [path = path_from(metadata_path), wanted, verify](const std::stop_token& stop) {
                                    Streams opened(path, wanted, verify);
                                    for (const Wanted& each : wanted) {
                                      if (stop.stop_requested())
                                        throw Error(ErrorCode::kCancelled, "the load was stopped", {path});
                                      opened.add(each);
                                    }
                                    return std::move(opened).archive();
                                  });
  return {std::move(archive), verify};
}

struct Box {
  std::size_t stream = 0;
  std::vector<std::int64_t> at;
  std::vector<std::int64_t> shape;
  Tensor to;  ///< contiguous bytes
};

/// The part of a stream's tensor that a box names, in C order.
TensorEntry entry_of(const Archive& archive, const Box& box) {
  const auto entries = archive.entries();
  if (box.stream >= entries.size()) throw Error(ErrorCode::kIndexOutOfRange, "there is no such stream");
  TensorEntry entry = entries[box.stream];
  bool inside = box.at.size() == entry.shape.rank() && box.shape.size() == entry.shape.rank();
  for (std::size_t dim = 0; inside && dim < box.at.size(); ++dim) {
    const std::int64_t size = entry.shape[dim];
    inside = box.at[dim] >= 0 && box.shape[dim] >= 0 && box.at[dim] <= size && box.shape[dim] <= size - box.at[dim];
    if (inside && box.shape[dim] != 0) {
      entry.byte_offset += static_cast<std::uint64_t>(box.at[dim] * entry.strides[dim]) * entry.dtype.itemsize();
    }
  }
  if (!inside) {
    throw Error(ErrorCode::kShapeMismatch,
                core::format("elements from {} of shape {} are wanted of a chunk of shape {}",
                             Shape(box.at).to_string(), Shape(box.shape).to_string(), entry.shape.to_string()),
                {archive.sources()[archive.storages()[entry.storage].source].name(), {}, entry.name});
  }
  entry.shape = Shape(box.shape);
  return entry;
}

Tensor place_of(const TensorEntry& entry, const Tensor& bytes) {
  if (bytes.dtype() != DType::uint8 || !bytes.is_contiguous() || bytes.nbytes() != entry.nbytes()) {
    throw Error(ErrorCode::kShapeMismatch, core::format("it must be read into {} contiguous bytes", entry.nbytes()),
                {.tensor = entry.name});
  }
  return {bytes.buffer(), entry.dtype, entry.shape, entry.shape.contiguous_strides(), bytes.byte_offset()};
}

/// Reads boxes of streams into memory. Checksums are compared of streams that are read whole.
void read_boxes(const Archive& archive, const std::vector<Box>& boxes, bool verify, const std::stop_token& stop) {
  std::vector<TensorEntry> parts;
  parts.reserve(boxes.size());
  std::vector<archive::Destination> whole;
  std::vector<archive::Destination> cut;
  for (const Box& box : boxes) {
    const TensorEntry& entry = parts.emplace_back(entry_of(archive, box));
    if (entry.nbytes() == 0) continue;
    const bool is_whole = entry.shape == archive.entries()[box.stream].shape;
    (is_whole ? whole : cut).push_back({&entry, place_of(entry, box.to)});
  }
  const detail::ArchiveState& state = detail::ArchiveState::of(archive);
  Report report;
  archive::load_into(state, whole, {.verify = verify, .stop = stop}, report);
  archive::load_into(state, cut, {.verify = false, .stop = stop}, report);
  for (const Source& source : archive.sources()) archive::require_unchanged(*source);
}

void load_streams_into(const PyArchive& source, const nb::list& wanted) {
  std::vector<Box> boxes;
  ReadEffort effort;
  for (const nb::handle each : wanted) {
    const auto part = nb::cast<nb::tuple>(each);
    boxes.push_back(
        {nb::cast<std::size_t>(part[0]), integers_from(part[1]), integers_from(part[2]), memory_from(part[3])});
    effort.payload_bytes += boxes.back().to.nbytes();
  }
  interruptible(effort.takes_long(), [archive = source.get(), boxes = std::move(boxes),
                                      verify = source.verify()](const std::stop_token& stop) {
    read_boxes(archive, boxes, verify, stop);
    return true;
  });
}

std::vector<format::dcp::Chunk> chunks_from(nb::handle boxes) {
  std::vector<format::dcp::Chunk> chunks;
  for (const nb::handle box : nb::iter(boxes)) {
    const auto pair = nb::cast<nb::tuple>(box);
    chunks.push_back({{Shape(integers_from(pair[0])), Shape(integers_from(pair[1]))}, {}});
  }
  return chunks;
}

/// kCorrupt where the chunks that `.metadata` lists of a tensor are not the whole of it, each element once.
void require_cover(nb::handle metadata_path, const nb::list& tensors) {
  const std::string path = path_from(metadata_path);
  for (const nb::handle each : tensors) {
    const auto part = nb::cast<nb::tuple>(each);
    try {
      std::vector<format::dcp::Chunk> chunks = chunks_from(part[2]);
      format::dcp::require_cover(chunks, Shape(integers_from(part[1])), name_from(part[0]));
    } catch (const Error& error) {
      throw error.within({.path = path});
    }
  }
}

/// kCorrupt where `.metadata` has two chunks or objects in the same bytes of a file.
void require_apart(nb::handle metadata_path, const nb::list& places) {
  std::vector<format::dcp::StreamSpan> spans;
  std::vector<std::string> names;
  for (const nb::handle each : places) {
    const auto part = nb::cast<nb::tuple>(each);
    names.push_back(name_from(part[0]));
    spans.push_back({name_from(part[1]), nb::cast<std::uint64_t>(part[2]), nb::cast<std::uint64_t>(part[3])});
  }
  std::vector<format::dcp::ItemPlace> items;
  for (std::size_t i = 0; i < spans.size(); ++i) items.push_back({&spans[i], names[i]});
  try {
    format::dcp::require_apart(std::move(items));
  } catch (const Error& error) {
    throw error.within({.path = path_from(metadata_path)});
  }
}

/// Compares the recorded checksums of a stream of torch.save, which is in memory; one that is no zip has none. An
/// object is not torch's to deflate, so what it inflates to is bounded.
void check_stream(std::span<const std::byte> bytes, const std::string& file, const std::string& name,
                  std::uint64_t offset) {
  constexpr std::uint64_t kMostInflated = std::uint64_t{1} << 30;
  try {
    std::vector<format::ZipEntry> entries;
    format::read_zip_directory(bytes, file, entries, {.max_inflated_bytes = kMostInflated + bytes.size()});
    const format::FileBytes content(bytes, file);
    std::vector<std::byte> store;
    for (const format::ZipEntry& entry : entries) format::read_pt_record(content, entry, true, store);
  } catch (const Error& error) {
    const std::string record = error.tensor().empty() ? "" : core::format("{}: ", core::quoted(error.tensor()));
    throw Error(error.code(), record + error.message(),
                {.path = file, .offset = offset + error.offset().value_or(0), .tensor = name});
  }
}

/// Reads the streams of a checkpoint's objects that are no tensors, and keeps their files open.
class ObjectStreams {
 public:
  ObjectStreams(nb::handle metadata_path, bool verify) : metadata_path_(path_from(metadata_path)), verify_(verify) {}

  nb::bytes read(nb::handle file, std::uint64_t offset, std::uint64_t length, nb::handle item) {
    const format::dcp::StreamSpan place{name_from(file), offset, length};
    const std::string name = name_from(item);
    const Source source = opened(path_beside(metadata_path_, place.file, name));
    const auto bytes = interruptible(true, [source, place, name, verify = verify_](std::stop_token) {
      return content(source, place, name, verify);
    });
    return nb::bytes(bytes.data(), bytes.size());
  }

 private:
  Source opened(const std::string& path) {
    const auto known = files_.find(path);
    if (known != files_.end()) return known->second;
    Source source = interruptible(true, [path](std::stop_token) { return open_source(path); });
    return files_.emplace(path, std::move(source)).first->second;
  }

  static std::vector<std::byte> content(const Source& source, const format::dcp::StreamSpan& place,
                                        const std::string& item, bool verify) {
    format::dcp::require_range(source, place, item);
    std::vector<std::byte> bytes(static_cast<std::size_t>(place.length));
    source.read(place.offset, bytes);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    constexpr std::size_t kZipEnd = 22;  // of what torch.save writes
    if (!text.starts_with("PK")) return bytes;
    if (text.size() < kZipEnd || !text.substr(text.size() - kZipEnd).starts_with("PK\5\6")) {
      throw Error(ErrorCode::kCorrupt,
                  "another stream lies where .metadata says: its file is of another save, or damaged; copy both again",
                  {source.name(), place.offset, item});
    }
    if (verify) check_stream(bytes, source.name(), item, place.offset);
    return bytes;
  }

  std::string metadata_path_;
  bool verify_;
  std::map<std::string, Source> files_;
};

/// The object of a pickle, which our machine reads within its budget. `named` makes what has a name.
Anything unpickled(const nb::bytes& data, const NamedLeaf& named) {
  format::Index index;
  format::pickle::NoStorages none;  // a pickle of `.metadata` has no tensors
  const auto bytes = std::as_bytes(std::span(data.c_str(), data.size()));
  {
    const ReleasedGil released;
    format::pickle::read_pickle(bytes, 0, index, none);
  }
  const EntryLeaf no_entry = [](std::size_t) -> nb::object {
    throw Error(ErrorCode::kCorrupt, "it holds an array, which has no place in it");
  };
  return to_python(index.structure, no_entry, named);
}

}  // namespace

void bind_dcp(nb::module_& module) {
  module.def(
      "_unpickled",
      [](const nb::bytes& data, const nb::callable& named) {
        return unpickled(data, [&named](const std::string& name, const nb::object& arguments, const nb::object& state,
                                        const nb::object& begun) {
          return nb::object(named(text_from(name), arguments, state, begun));
        });
      },
      nb::arg("data"), nb::arg("named"));
  nb::class_<ObjectStreams>(module, "_ObjectStreams")
      .def(nb::init<nb::handle, bool>(), nb::arg("metadata_path"), nb::arg("verify"))
      .def("read", &ObjectStreams::read, nb::arg("file"), nb::arg("offset"), nb::arg("length"), nb::arg("item"));
  module.def("_dcp_open", open_streams, nb::arg("metadata_path"), nb::arg("streams"), nb::arg("verify"));
  module.def("_dcp_require_cover", require_cover, nb::arg("metadata_path"), nb::arg("tensors"));
  module.def("_dcp_require_apart", require_apart, nb::arg("metadata_path"), nb::arg("places"));
  module.def("_dcp_read", load_streams_into, nb::arg("archive"), nb::arg("boxes"));
}

}  // namespace penstock::python
