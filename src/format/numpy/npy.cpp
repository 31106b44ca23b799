// The rows of `.npy`: a header (npy_header.h), then the elements. docs/formats/npy.md describes the bytes.

#include <algorithm>
#include <array>
#include <string_view>

#include "format/file_bytes.h"
#include "format/format.h"
#include "format/numpy/npy_array.h"
#include "format/numpy/npy_objects.h"
#include "format/numpy/npy_stream.h"
#include "format/pt/pickle_window.h"
#include "format/rows.h"
#include "penstock/error.h"

namespace penstock::format {

namespace {

bool sniff(std::span<const std::byte> head, const ByteSource&) { return is_npy(head); }

/// Of an array of objects the whole pickle is read.
std::uint64_t index_bytes(const ByteSource& source) {
  std::array<std::byte, kUsualNpyHeader> head;
  const auto start = std::span(head).first(std::min<std::uint64_t>(source.size(), head.size()));
  source.read(0, start);
  if (start.size() < kNpyPrefix) return source.size();
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (text.find("|O") != text.npos) return source.size();
  return npy_header_size(start).value_or(kMaxNpyHeader);
}

/// The objects of an array that begins at `header.size`.
Index read_object_index(const Source& source, const NpyHeader& header, const OpenOptions& options) {
  constexpr std::uint64_t kFirst = std::uint64_t{64} << 20;  // more arrays may follow, which are not read
  Index index;
  index.sources = {source};
  index.structure =
      with_window(FileBytes(*source), header.size, source.size(), kFirst, [&](std::span<const std::byte> bytes) {
        return read_objects(bytes, header.size, header, {}, pickle::Limits::of(bytes.size()), options, index);
      });
  return index;
}

Index read_index(const Source& source, const OpenOptions& options) {
  const auto head = [&source](std::span<std::byte> out) {
    source.read(0, out);
    return out.size();
  };
  std::array<std::byte, kUsualNpyHeader> start;
  const std::size_t count = head(std::span(start).first(std::min<std::uint64_t>(source.size(), start.size())));
  const NpyHeader header =
      read_npy_header(std::span<const std::byte>(start).first(count), head, source.size(), source.name());
  if (header.has_objects) return read_object_index(source, header, options);
  Index index;
  index.sources = {source};
  index.storages = {StorageEntry{.offset = header.size, .stored_bytes = header.payload, .nbytes = header.payload}};
  index.entries = {npy_entry(header)};
  if (header.python2) index.numpy.python2_headers = {0};
  index.structure = Value::entry(0);
  return index;
}

/// The header, which the payload follows. Of objects no header says where their arrays lie.
std::uint64_t fingerprint(const Index& index, std::span<const std::byte>) {
  const bool is_array = index.structure.is(Value::Kind::kTensor) && !index.storages.front().resident;
  return is_array ? index.storages.front().offset : 0;
}

void require_one_tensor(const Value& value) {
  if (value.is(Value::Kind::kTensor)) return;
  throw Error(ErrorCode::kUnsupported,
              ".npy holds one tensor and nothing else: save a dict of tensors as .npz, anything else as .pt");
}

void write_unloaded(const Unloaded& content, io::ByteSink& sink, const SaveOptions&, std::string_view path) {
  try {
    require_one_tensor(content.structure);
    const TensorEntry& entry = content.entries[content.structure.entry_index().value()];
    sink.write_text(npy_header_of(entry));
    content.payload(entry.storage, sink);
  } catch (const Error& error) {
    throw error.within({std::string(path)});
  }
}

void write(const Value& value, io::ByteSink& sink, const SaveOptions&, std::string_view path) {
  try {
    require_one_tensor(value);
    const NpyImage image(value.as_tensor());
    sink.write_text(image.header);
    sink.write(image.payload);
  } catch (const Error& error) {
    throw error.within({std::string(path)});
  }
}

constexpr auto kExtensions = std::to_array<std::string_view>({".npy"});

}  // namespace

constinit const Format kNpyFormat{.name = "npy",
                                  .extensions = kExtensions,
                                  .sniff = sniff,
                                  .read_index = read_index,
                                  .write = write,
                                  .stream = stream_npy,
                                  .index_bytes = index_bytes,
                                  .fingerprint = fingerprint,
                                  .is_one_tensor = true,
                                  .write_unloaded = write_unloaded,
                                  .keeps_order = true};

}  // namespace penstock::format
