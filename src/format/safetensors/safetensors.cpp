// The file is a length of 8 bytes, the header of that length, and the data. docs/formats/safetensors.md describes it
// byte by byte.

#include "format/safetensors/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "format/flat_tensors.h"
#include "format/rows.h"
#include "format/safetensors/header.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
/// White space before the header that sniffing looks through.
constexpr std::uint64_t kMaxLeadingSpace = 64 * 1024;

std::uint64_t read_length(std::span<const std::byte> head) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t length = 0;
  std::memcpy(&length, head.data(), sizeof length);
  return length;
}

bool is_json_space(std::byte c) {
  return c == std::byte{' '} || c == std::byte{'\t'} || c == std::byte{'\r'} || c == std::byte{'\n'};
}

/// Whether the header begins with '{' after white space. Lengths beyond 32 bits are not looked at: bytes 4 to 7 of a
/// real file are zero, which tells it from text.
bool sniff(std::span<const std::byte> head, const ByteSource& source) {
  if (head.size() <= kLengthBytes || read_length(head) > std::numeric_limits<std::uint32_t>::max()) return false;
  std::vector<std::byte> more;
  auto text = head.subspan(kLengthBytes);
  auto first = std::find_if_not(text.begin(), text.end(), is_json_space);
  if (first == text.end() && source.size() > head.size()) {
    more.resize(static_cast<std::size_t>(std::min(source.size() - kLengthBytes, kMaxLeadingSpace)));
    source.read(kLengthBytes, more);
    text = more;
    first = std::find_if_not(text.begin(), text.end(), is_json_space);
  }
  return first != text.end() && *first == std::byte{'{'};
}

std::uint64_t index_bytes(const ByteSource& source) {
  std::array<std::byte, kLengthBytes> head;
  if (source.size() < head.size()) return source.size();
  source.read(0, head);
  return std::min(read_length(head), source.size());
}

struct File {
  SafetensorsHeader header;
  std::uint64_t data_start = 0;  ///< byte of the file that offsets count from
};

File read_header(const ByteSource& source) {
  const std::string& path = source.name();
  if (source.size() < kLengthBytes) {
    throw Error(ErrorCode::kTruncated,
                core::format("the file has {}; safetensors begins with the 8-byte length of its header",
                             core::counted(source.size(), "byte")),
                {path, 0});
  }
  std::array<std::byte, kLengthBytes> head;
  source.read(0, head);
  const std::uint64_t length = read_length(head);
  if (length > kMaxSafetensorsHeader) {
    throw Error(ErrorCode::kLimit,
                core::format("the header claims {}; safetensors allows {}", core::counted(length, "byte"),
                             kMaxSafetensorsHeader),
                {path, 0});
  }
  if (length > source.size() - kLengthBytes) {
    throw Error(ErrorCode::kTruncated,
                core::format("the header claims {}, but the file ends after {}; fetch or write it again",
                             core::counted(length, "byte"), source.size() - kLengthBytes),
                {path, 0});
  }
  std::string json(static_cast<std::size_t>(length), '\0');
  source.read(kLengthBytes, std::as_writable_bytes(std::span(json)));
  const std::uint64_t data_start = kLengthBytes + length;
  return {parse_safetensors_header(json, source.size() - data_start, path), data_start};
}

/// Gives the entry of a type that packs several values in an element the shape of these elements.
void set_packed_shape(const SafetensorsTensor& tensor, std::int64_t packed, TensorEntry& entry) {
  const std::size_t rank = tensor.shape.rank();
  if (rank != 0 && tensor.shape[rank - 1] % packed == 0) {
    entry.shape[rank - 1] /= packed;
  } else {
    entry.shape = Shape{tensor.shape.numel() / packed};
  }
}

/// The unknown type's name, in such a way that nobody takes it for one of ours or another library's ("int8"): those of
/// safetensors are capitals.
std::string opaque_name(const std::string& name) {
  const auto of_safetensors = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  return std::ranges::all_of(name, of_safetensors) ? name : "safetensors type " + core::quoted(name);
}

/// Gives the entry of an unknown type elements that the bytes divide into.
void set_opaque(const SafetensorsTensor& tensor, TensorEntry& entry) {
  const std::uint64_t bytes = tensor.end - tensor.begin;
  const auto elements = static_cast<std::uint64_t>(tensor.shape.numel());
  std::uint64_t itemsize = 1;
  if (elements != 0 && bytes != 0 && bytes % elements == 0 && bytes / elements <= 0xFFFF) {
    itemsize = bytes / elements;
  } else if (elements != bytes) {
    entry.shape = Shape{static_cast<std::int64_t>(bytes)};
  }
  entry.dtype =
      DType::with_descr(DType::Code::kOpaque, static_cast<std::size_t>(itemsize), opaque_name(tensor.foreign_dtype));
}

/// Adds the tensor's entry and storage. Types below a byte get the shape of our packed elements; one that Penstock does
/// not know becomes opaque, with its shape where that divides its bytes, else flat.
void add_tensor(const SafetensorsTensor& tensor, std::uint64_t data_start, Index& index) {
  TensorEntry& entry = index.entries.emplace_back();
  entry.name = tensor.name;
  entry.shape = tensor.shape;
  if (tensor.dtype == nullptr) {
    set_opaque(tensor, entry);
  } else {
    entry.dtype = DType(tensor.dtype->code);
    if (tensor.dtype->packed > 1) set_packed_shape(tensor, tensor.dtype->packed, entry);
  }
  entry.strides = entry.shape.contiguous_strides();
  entry.storage = index.storages.size();
  StorageEntry& storage = index.storages.emplace_back();
  storage.name = tensor.name;
  storage.offset = data_start + tensor.begin;
  storage.stored_bytes = storage.nbytes = tensor.end - tensor.begin;
}

Index read_index(const Source& source, const OpenOptions&) {
  File file = read_header(*source);
  Index index;
  index.sources = {source};
  index.metadata = std::move(file.header.metadata);
  index.empty_metadata = file.header.has_metadata && index.metadata.empty();
  index.entries.reserve(file.header.tensors.size());
  index.storages.reserve(file.header.tensors.size());
  for (const SafetensorsTensor& tensor : file.header.tensors) add_tensor(tensor, file.data_start, index);
  index.structure = dict_of_entries(index.entries);
  return index;
}

/// The length and the header.
std::uint64_t fingerprint(const Index&, std::span<const std::byte> head) { return kLengthBytes + read_length(head); }

constexpr auto kExtensions = std::to_array<std::string_view>({".safetensors"});

}  // namespace

constinit const Format kSafetensorsFormat{.name = "safetensors",
                                          .extensions = kExtensions,
                                          .sniff = sniff,
                                          .read_index = read_index,
                                          .write = write_safetensors,
                                          .stream = stream_safetensors,
                                          .index_bytes = index_bytes,
                                          .fingerprint = fingerprint,
                                          .keeps_metadata = true,
                                          .write_unloaded = write_unloaded_safetensors,
                                          .has_shards = true};

}  // namespace penstock::format
