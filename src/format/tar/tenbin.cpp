// WebDataset's arrays: a chunk that says what an array is, then a chunk of its elements, one pair behind the other. No
// number says how many there are, so all headers are read, and a file that was cut between two arrays looks whole.
#include "format/tar/tenbin.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "core/counted.h"
#include "core/cursor.h"
#include "core/format.h"
#include "core/text.h"
#include "format/rows.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

using namespace std::string_view_literals;
using enum DType::Code;

constexpr auto kTenbinMagic = "~TenBin~"sv;
/// In front of a chunk: the magic, and how many bytes it has.
constexpr std::uint64_t kChunkHead = 16;
/// Chunks are padded to a multiple of this.
constexpr std::uint64_t kChunkStep = 64;
/// Of a chunk that describes an array: its type, a name, and how many dimensions follow.
constexpr std::uint64_t kArrayHead = 24;

struct TenbinType {
  std::string_view name;
  DType::Code dtype;
};
constexpr std::array<TenbinType, 11> kTenbinTypes = {{{"f2", kFloat16},
                                                      {"f4", kFloat32},
                                                      {"f8", kFloat64},
                                                      {"i1", kInt8},
                                                      {"i2", kInt16},
                                                      {"i4", kInt32},
                                                      {"i8", kInt64},
                                                      {"u1", kUInt8},
                                                      {"u2", kUInt16},
                                                      {"u4", kUInt32},
                                                      {"u8", kUInt64}}};

struct Chunk {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;

  std::uint64_t padded() const noexcept { return (bytes + kChunkStep - 1) / kChunkStep * kChunkStep; }
  std::uint64_t end() const noexcept { return begin + padded(); }
};

/// The chunk that begins at `at`, whose bytes and padding the file has.
Chunk chunk_at(const ByteSource& source, std::uint64_t at) {
  std::array<std::byte, kChunkHead> head{};
  source.read(at, head);  // kTruncated when the file ends before
  core::Cursor cursor(head);
  if (cursor.take_text(kTenbinMagic.size()) != kTenbinMagic) {
    throw Error(ErrorCode::kCorrupt,
                core::format("expected {}, with which each part of WebDataset's arrays begins; write the file anew",
                             core::quoted(kTenbinMagic)),
                {source.name(), at});
  }
  const std::int64_t bytes = cursor.i64();
  if (bytes < 0) {
    throw Error(ErrorCode::kCorrupt, core::format("found a part of {} bytes; write the file anew", bytes),
                {source.name(), at + kTenbinMagic.size()});
  }
  const Chunk out{at + kChunkHead, static_cast<std::uint64_t>(bytes)};
  const std::uint64_t rest = source.size() - out.begin;
  if (out.bytes > rest || out.padded() > rest) {
    throw Error(ErrorCode::kTruncated,
                core::format("a part of {} and its padding begin here, but the file ends after {}; copy it again",
                             core::counted(out.bytes, "byte"), rest),
                {source.name(), out.begin});
  }
  return out;
}

[[noreturn]] void throw_wrong_header(const ByteSource& source, const Chunk& chunk, const std::string& found) {
  throw Error(ErrorCode::kCorrupt, core::format("{}; write the file anew", found), {source.name(), chunk.begin});
}

DType type_called(std::string_view field, const ByteSource& source, const Chunk& chunk) {
  const std::string_view name = field.substr(0, field.find_last_not_of('\0') + 1);
  const auto* const found = std::ranges::find(kTenbinTypes, name, &TenbinType::name);
  if (found != kTenbinTypes.end()) return DType(found->dtype);
  throw Error(ErrorCode::kUnsupported,
              core::format("found an array of type {}, expected f2 to f8, i1 to i8 or u1 to u8", core::quoted(name)),
              {source.name(), chunk.begin});
}

/// What the chunk says of the array whose elements the next one has.
TensorEntry read_array_header(const ByteSource& source, const Chunk& chunk) {
  constexpr std::uint64_t kMost = kArrayHead + 8 * Shape::kMaxRank;
  if (chunk.bytes < kArrayHead || chunk.bytes > kMost) {
    throw_wrong_header(source, chunk,
                       core::format("found a header of {} bytes, expected {} to {}", chunk.bytes, kArrayHead, kMost));
  }
  std::array<std::byte, kMost> bytes{};
  const std::span<std::byte> used = std::span(bytes).first(static_cast<std::size_t>(chunk.bytes));
  source.read(chunk.begin, used);
  core::Cursor header(used, chunk.begin);
  TensorEntry out;
  out.dtype = type_called(header.take_text(8), source, chunk);
  header.skip(8);  // a name, which WebDataset passes by too
  const std::int64_t rank = header.i64();
  if (rank < 0 || static_cast<std::uint64_t>(rank) != header.remaining() / 8 || header.remaining() % 8 != 0) {
    throw_wrong_header(source, chunk, core::format("found {} dimensions in a header of {} bytes", rank, chunk.bytes));
  }
  std::int64_t most = std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(out.dtype.itemsize());
  for (std::int64_t i = 0; i < rank; ++i) {
    const std::int64_t size = header.i64();
    if (size < 0 || size > most) {
      throw_wrong_header(source, chunk, core::format("found dimension {} of size {}", i, size));
    }
    most /= std::max<std::int64_t>(size, 1);
    out.shape.push_back(size);
  }
  out.strides = out.shape.contiguous_strides();
  out.encoding.swapped = std::endian::native != std::endian::little;
  return out;
}

bool sniff_tenbin(std::span<const std::byte> head, const ByteSource&) {
  return core::text_of(head).starts_with(kTenbinMagic);
}

Index read_tenbin(const Source& source, const OpenOptions&) {
  Index index;
  index.sources = {source};
  std::vector<Value> arrays;
  for (std::uint64_t at = 0; at < source.size();) {
    const Chunk header = chunk_at(*source, at);
    TensorEntry entry = read_array_header(*source, header);
    const Chunk elements = chunk_at(*source, header.end());
    if (elements.bytes != entry.nbytes()) {
      throw Error(ErrorCode::kCorrupt,
                  core::format("found {} of elements, but {} of shape {} has {}; write the file anew",
                               core::counted(elements.bytes, "byte"), entry.dtype.name(), entry.shape.to_string(),
                               entry.nbytes()),
                  {source.name(), elements.begin});
    }
    entry.name = std::to_string(arrays.size());
    entry.storage = index.storages.size();
    index.storages.push_back(
        {.name = entry.name, .offset = elements.begin, .stored_bytes = elements.bytes, .nbytes = elements.bytes});
    arrays.push_back(Value::entry(index.entries.size()));
    index.entries.push_back(std::move(entry));
    at = elements.end();
  }
  index.structure = Value::list(std::move(arrays));
  return index;
}

/// Of one array all that is not its elements. The headers of several lie between them.
std::uint64_t tenbin_fingerprint(const Index& index, std::span<const std::byte>) {
  return index.storages.size() == 1 ? index.storages.front().offset : 0;
}

/// Chunks on their way out.
class TenbinChunks {
 public:
  explicit TenbinChunks(io::ByteSink& sink) noexcept : sink_(sink) {}

  void add(std::span<const std::byte> content) {
    static constexpr std::array<std::byte, kChunkStep> kZeros{};
    const Chunk chunk{0, content.size()};
    sink_.write_text(kTenbinMagic);
    const std::int64_t bytes = std::ssize(content);
    sink_.write(std::as_bytes(std::span(&bytes, 1)));
    sink_.write(content);
    sink_.write(std::span(kZeros).first(static_cast<std::size_t>(chunk.padded() - chunk.bytes)));
  }

 private:
  io::ByteSink& sink_;
};

std::string array_header(const Tensor& tensor) {
  const auto* const type =
      std::ranges::find_if(kTenbinTypes, [&](const TenbinType& known) { return tensor.dtype() == DType(known.dtype); });
  if (type == kTenbinTypes.end()) {
    throw Error(ErrorCode::kUnsupported,
                core::format("fields .ten hold integers and floats of up to 64 bits, but not {}; name the field .npy "
                             "or .pt",
                             tensor.dtype().name()));
  }
  std::string out(type->name);
  out.resize(16);  // and no name
  const auto add = [&](std::int64_t number) { out.append(reinterpret_cast<const char*>(&number), sizeof number); };
  add(static_cast<std::int64_t>(tensor.rank()));
  for (const std::int64_t size : tensor.shape()) add(size);
  return out;
}

constexpr auto kTenbinExtensions = std::to_array<std::string_view>({".ten"});

}  // namespace

void write_tenbin(const Value& value, io::ByteSink& sink) {
  std::vector<Tensor> tensors;
  if (value.is(Value::Kind::kTensor)) tensors.push_back(value.as_tensor());
  for (std::size_t i = 0; value.is(Value::Kind::kList) && i < value.size(); ++i) {
    if (value[i].is(Value::Kind::kTensor)) tensors.push_back(value[i].as_tensor());
  }
  const std::size_t wanted = value.is(Value::Kind::kList) ? value.size() : 1;
  if (tensors.empty() || tensors.size() != wanted) {
    throw Error(ErrorCode::kUnsupported, core::format("found {} for a field .ten, expected a tensor or a list of them; "
                                                      "name the field .pt",
                                                      value.to_string()));
  }
  TenbinChunks chunks(sink);
  for (const Tensor& tensor : tensors) {
    const Tensor bytes = tensor.to(Device{}).contiguous();
    const std::string header = array_header(bytes);
    chunks.add(std::as_bytes(std::span(header)));
    chunks.add({bytes.data(), bytes.nbytes()});
  }
}

constinit const Format kTenbinFormat{.name = "tenbin",
                                     .extensions = kTenbinExtensions,
                                     .sniff = sniff_tenbin,
                                     .read_index = read_tenbin,
                                     .write = nullptr,
                                     .fingerprint = tenbin_fingerprint};

}  // namespace penstock::format
