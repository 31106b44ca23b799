// Megatron's tokens: NAME.bin is the tokens alone, and NAME.idx says what they are and where sequences and documents
// lie. docs/formats/megatron.md describes the bytes.

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "core/counted.h"
#include "core/cursor.h"
#include "core/format.h"
#include "core/text.h"
#include "format/flat_tensors.h"
#include "format/rows.h"
#include "io/locations.h"
#include "io/source/source.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

using namespace std::string_view_literals;
using enum DType::Code;

constexpr auto kMagic = "MMIDIDX\0\0"sv;
constexpr std::uint64_t kIdxHeader = 34;
constexpr std::string_view kIdx = ".idx";
constexpr auto kMegatronExtensions = std::to_array<std::string_view>({kIdx});

/// By the code in the header, which counts from 1.
constexpr std::array kCodes = {kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat64, kFloat32, kUInt16};

bool sniff_megatron(std::span<const std::byte> head, const ByteSource&) {
  return head.size() >= kMagic.size() && core::Cursor(head).take_text(kMagic.size()) == kMagic;
}

struct IdxHeader {
  DType dtype;
  std::uint64_t sequences = 0;
  std::uint64_t documents = 0;  ///< bounds of documents, one more than there are
};

IdxHeader read_idx_header(const ByteSource& source) {
  std::array<std::byte, kIdxHeader> bytes{};
  source.read(0, bytes);  // kTruncated when the file ends before
  core::Cursor header(bytes);
  header.skip(kMagic.size());
  if (const std::uint64_t version = header.u64(); version != 1) {
    throw Error(ErrorCode::kUnsupported, core::format("found version {} of Megatron's index, expected 1", version),
                {source.name(), kMagic.size()});
  }
  const std::uint8_t code = header.u8();
  if (code < 1 || code > kCodes.size()) {
    throw Error(ErrorCode::kUnsupported,
                core::format("found the code {} for the tokens' type, expected 1 to {}", code, kCodes.size()),
                {source.name(), header.offset() - 1});
  }
  return {.dtype = DType(kCodes[code - 1U]), .sequences = header.u64(), .documents = header.u64()};
}

/// The name of the file of tokens: of an index "a/b.idx" it is "b.bin", beside it.
Source open_tokens(const Source& index) {
  const std::string& path = index.name();
  if (!io::opened_by_name(*index)) {
    throw Error(ErrorCode::kUnsupported,
                "an index of tokens must be opened by its path or URL: its tokens are beside it", {path});
  }
  const std::string_view whole = io::path_part(path);
  const std::string_view name = whole.substr(whole.rfind('/') + 1);
  if (!name.ends_with(kIdx)) {
    throw Error(ErrorCode::kUnsupported, "the tokens of an index NAME.idx are in NAME.bin beside it; name it so",
                {path});
  }
  const std::string tokens = std::string(name.substr(0, name.size() - kIdx.size())) + ".bin";
  try {
    return open_source(io::beside(path, tokens));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw Error(ErrorCode::kNotFound,
                core::format("its tokens should be in {} beside it, which is not there; fetch both files",
                             core::quoted(tokens)),
                {path});
  }
}

/// Adds the arrays of an index, one behind the other.
class IdxArrays {
 public:
  IdxArrays(const Source& source, Index& index) : source_(source), index_(index) {}

  void add(std::string name, const DType& dtype, std::uint64_t count) {
    const auto bytes = core::try_mul<std::uint64_t>(count, dtype.itemsize());
    if (!bytes || !core::range_fits(at_, *bytes, source_.size())) {
      throw Error(ErrorCode::kTruncated,
                  core::format("it should hold {} of {}, but the file ends after {}; fetch or write it again", count,
                               dtype.name(), core::counted(source_.size(), "byte")),
                  {source_.name(), at_, std::move(name)});
    }
    add_entry(std::move(name), dtype, 0, *bytes);
    at_ += *bytes;
  }
  void add_entry(std::string name, const DType& dtype, std::uint32_t source, std::uint64_t bytes) {
    TensorEntry entry;
    entry.name = std::move(name);
    entry.dtype = dtype;
    entry.shape = {static_cast<std::int64_t>(bytes / dtype.itemsize())};
    entry.strides = {1};
    entry.storage = index_.storages.size();
    entry.encoding.swapped = std::endian::native != std::endian::little;
    index_.storages.push_back({.name = entry.name,
                               .source = source,
                               .offset = source == 0 ? at_ : 0,
                               .stored_bytes = bytes,
                               .nbytes = bytes});
    index_.entries.push_back(std::move(entry));
  }
  std::uint64_t left() const noexcept { return source_.size() - at_; }
  std::uint64_t at() const noexcept { return at_; }

 private:
  const Source& source_;
  Index& index_;
  std::uint64_t at_ = kIdxHeader;
};

// Places in Index::entries.
constexpr std::size_t kTokens = 0;
constexpr std::size_t kLengths = 1;
constexpr std::size_t kOffsets = 2;
constexpr std::size_t kBounds = 3;

Index read_megatron(const Source& source, const OpenOptions&) {
  const IdxHeader header = read_idx_header(*source);
  Index index;
  const Source tokens = open_tokens(source);
  index.sources = {source, tokens};
  if (tokens.size() % header.dtype.itemsize() != 0) {
    throw Error(ErrorCode::kCorrupt,
                core::format("its {} are no whole number of {}, which the index says it holds",
                             core::counted(tokens.size(), "byte"), header.dtype.name()),
                {tokens.name()});
  }
  IdxArrays arrays(source, index);
  arrays.add_entry("tokens", header.dtype, 1, tokens.size());
  arrays.add("lengths", DType::int32, header.sequences);
  arrays.add("offsets", DType::int64, header.sequences);
  arrays.add("documents", DType::int64, header.documents);
  if (arrays.left() > 0 && arrays.left() == header.sequences) arrays.add("modes", DType::int8, header.sequences);
  if (arrays.left() > 0) {
    throw Error(ErrorCode::kCorrupt,
                core::format("{} behind what its header counts", core::counted(arrays.left(), "byte is", "bytes are")),
                {source.name(), arrays.at()});
  }
  index.metadata = {{"version", "1"}};
  index.structure = dict_of_entries(index.entries);
  return index;
}

// --- documents ---

template <class Number>
std::vector<Number> numbers(const Index& index, std::size_t entry) {
  const StorageEntry& storage = index.storages[index.entries[entry].storage];
  std::vector<Number> out(static_cast<std::size_t>(storage.nbytes / sizeof(Number)));
  index.sources[storage.source].read(storage.offset, std::as_writable_bytes(std::span(out)));
  if constexpr (std::endian::native != std::endian::little) {
    for (Number& number : out) {
      const auto bytes = std::as_writable_bytes(std::span(&number, 1));
      std::reverse(bytes.begin(), bytes.end());
    }
  }
  return out;
}

/// Where the sequences of an index lie, each of which was found to lie among the tokens.
class Sequences {
 public:
  explicit Sequences(const Index& index)
      : index_(index),
        lengths_(numbers<std::int32_t>(index, kLengths)),
        offsets_(numbers<std::int64_t>(index, kOffsets)),
        itemsize_(static_cast<std::int64_t>(index.entries[kTokens].dtype.itemsize())) {
    for (std::size_t i = 0; i < lengths_.size(); ++i) check(i);
  }

  Documents each() const {
    Documents out{.tokens = kTokens, .starts = offsets_, .lengths = {lengths_.begin(), lengths_.end()}};
    for (std::int64_t& start : out.starts) start /= itemsize_;
    return out;
  }

  Documents joined() const {
    const std::vector<std::int64_t> bounds = numbers<std::int64_t>(index_, kBounds);
    check_bounds(bounds);
    Documents out{.tokens = kTokens};
    std::int64_t end = 0;
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const auto first = static_cast<std::size_t>(bounds[i]);
      const auto [start, length] = join(first, static_cast<std::size_t>(bounds[i + 1]), i);
      out.starts.push_back(length == 0 ? end : start);
      out.lengths.push_back(length);
      end = out.starts.back() + length;
    }
    return out;
  }

 private:
  [[noreturn]] void refuse(std::size_t entry, std::size_t position, std::string what,
                           ErrorCode code = ErrorCode::kCorrupt) const {
    const StorageEntry& storage = index_.storages[index_.entries[entry].storage];
    const std::uint64_t offset = storage.offset + position * index_.entries[entry].dtype.itemsize();
    throw Error(code, std::move(what), {index_.sources.front().name(), offset, storage.name});
  }

  void check(std::size_t i) const {
    const std::int64_t length = lengths_[i];
    const std::int64_t offset = offsets_[i];
    if (length < 0) refuse(kLengths, i, core::format("sequence {} has the length {}", i, length));
    if (offset < 0 || offset % itemsize_ != 0) {
      refuse(kOffsets, i,
             core::format("sequence {} begins at byte {}, which is the beginning of no token of {}", i, offset,
                          core::counted(static_cast<std::uint64_t>(itemsize_), "byte")));
    }
    const std::uint64_t size = index_.sources[1].size();
    const auto bytes = static_cast<std::uint64_t>(length * itemsize_);
    if (!core::range_fits(static_cast<std::uint64_t>(offset), bytes, size)) {
      refuse(kOffsets, i,
             core::format("sequence {} takes {} from byte {} on, but its file {} has {}: it was cut, or is of another "
                          "index",
                          i, core::counted(bytes, "byte"), offset, core::quoted(index_.sources[1].name()), size),
             ErrorCode::kTruncated);
    }
  }

  void check_bounds(const std::vector<std::int64_t>& bounds) const {
    const auto count = static_cast<std::int64_t>(lengths_.size());
    if (bounds.empty() && count == 0) return;
    if (bounds.empty() || bounds.front() != 0) refuse(kBounds, 0, "the first document does not begin at sequence 0");
    for (std::size_t i = 1; i < bounds.size(); ++i) {
      if (bounds[i] >= bounds[i - 1] && bounds[i] <= count) continue;
      refuse(kBounds, i,
             core::format("document {} ends at sequence {}, which is not from {} to {}", i - 1, bounds[i],
                          bounds[i - 1], count));
    }
    if (bounds.back() != count) {
      refuse(kBounds, bounds.size() - 1,
             core::format("the last document ends at sequence {}, and there are {}; take the sequences, with "
                          "sequences=True",
                          bounds.back(), count));
    }
  }

  /// The sequences [first, last), which follow each other among the tokens.
  std::pair<std::int64_t, std::int64_t> join(std::size_t first, std::size_t last, std::size_t document) const {
    std::int64_t begin = -1;
    std::int64_t end = 0;
    for (std::size_t i = first; i < last; ++i) {
      if (lengths_[i] == 0) continue;
      if (begin < 0) begin = end = offsets_[i];
      if (offsets_[i] != end) {
        refuse(kOffsets, i,
               core::format("sequence {} of document {} begins at byte {}, and the one before it ends at byte {}; take "
                            "the sequences, with sequences=True",
                            i, document, offsets_[i], end));
      }
      end += lengths_[i] * itemsize_;
    }
    return begin < 0 ? std::pair<std::int64_t, std::int64_t>(0, 0)
                     : std::pair(begin / itemsize_, (end - begin) / itemsize_);
  }

  const Index& index_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int64_t> offsets_;
  std::int64_t itemsize_;
};

Documents documents_of_megatron(const Index& index, DocumentUnit unit) {
  const Sequences sequences(index);
  return unit == DocumentUnit::kSequence ? sequences.each() : sequences.joined();
}

}  // namespace

constinit const Format kMegatronFormat{.name = "megatron",
                                       .extensions = kMegatronExtensions,
                                       .sniff = sniff_megatron,
                                       .read_index = read_megatron,
                                       .write = nullptr,
                                       .index_bytes = [](const ByteSource&) { return kIdxHeader; },
                                       .metadata_is_own = true,
                                       .is_index = true,
                                       .documents = documents_of_megatron};

}  // namespace penstock::format
