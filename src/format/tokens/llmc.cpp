// Tokens as llm.c writes them: 256 integers of 32 bits (a number that tells the kind, a version, how many tokens), then
// the tokens. docs/formats/llmc.md describes the bytes.

#include <algorithm>
#include <array>
#include <bit>

#include "core/counted.h"
#include "core/cursor.h"
#include "core/format.h"
#include "format/rows.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

constexpr std::uint64_t kLlmcHeader = 256 * 4;

/// What the tokens of a tokenizer are.
struct TokenKind {
  std::uint32_t magic;
  std::int32_t version;
  DType::Code dtype;
  std::int64_t begin;  ///< the token that each document begins with
};

constexpr std::array<TokenKind, 2> kKinds = {
    {{20240520, 1, DType::Code::kUInt16, 50256}, {20240801, 7, DType::Code::kUInt32, 128000}}};

const TokenKind* kind_of(std::span<const std::byte> head) {
  if (head.size() < 4) return nullptr;
  const std::uint32_t magic = core::Cursor(head).u32();
  const auto* found = std::ranges::find(kKinds, magic, &TokenKind::magic);
  return found == kKinds.end() ? nullptr : found;
}

bool sniff_llmc(std::span<const std::byte> head, const ByteSource&) { return kind_of(head) != nullptr; }

/// How many tokens the header says.
std::int64_t read_count(const ByteSource& source, core::Cursor& header, const TokenKind& kind) {
  if (const std::int32_t version = header.i32(); version != kind.version) {
    throw Error(ErrorCode::kUnsupported,
                core::format("found version {} of llm.c's tokens, expected {}; numbers behind a header are read by "
                             "penstock.raw(path, dtype, offset=)",
                             version, kind.version),
                {source.name(), 4});
  }
  const std::int32_t count = header.i32();
  if (count < 0) throw Error(ErrorCode::kCorrupt, core::format("found {} tokens", count), {source.name(), 8});
  return count;
}

void require_exact(const ByteSource& source, std::uint64_t bytes) {
  const std::uint64_t rest = source.size() - kLlmcHeader;
  if (bytes > rest) {
    throw Error(ErrorCode::kTruncated,
                core::format("the tokens take {}, but {} follow the header: the file was cut short; fetch or write it "
                             "again",
                             core::counted(bytes, "byte"), rest),
                {source.name(), kLlmcHeader});
  }
  if (bytes < rest) {
    throw Error(ErrorCode::kCorrupt,
                core::format("{} behind the last token that the header counts",
                             core::counted(rest - bytes, "byte is", "bytes are")),
                {source.name(), kLlmcHeader + bytes});
  }
}

Index read_llmc(const Source& source, const OpenOptions&) {
  std::array<std::byte, kLlmcHeader> bytes{};
  source.read(0, bytes);  // kTruncated when the file ends before
  const TokenKind* const known = kind_of(bytes);
  if (known == nullptr) {  // it was another file's number when the format was looked for
    throw Error(ErrorCode::kCorrupt, "the first number is not that of llm.c's tokens; write the file anew",
                {source.name(), 0});
  }
  const TokenKind& kind = *known;
  core::Cursor header(bytes);
  header.skip(4);
  TensorEntry entry;
  entry.dtype = DType(kind.dtype);
  entry.shape = {read_count(*source, header, kind)};
  entry.strides = {1};
  entry.encoding.swapped = std::endian::native != std::endian::little;
  require_exact(*source, entry.nbytes());

  Index index;
  index.sources = {source};
  index.storages = {{.offset = kLlmcHeader, .stored_bytes = entry.nbytes(), .nbytes = entry.nbytes()}};
  index.entries = {std::move(entry)};
  index.structure = Value::entry(0);
  index.metadata = {{"magic", core::format("{}", kind.magic)}, {"version", core::format("{}", kind.version)}};
  return index;
}

Documents documents_of_llmc(const Index& index, DocumentUnit unit) {
  if (unit == DocumentUnit::kSequence) {
    throw Error(ErrorCode::kInvalidArgument,
                "a file of llm.c has documents alone, and no sequences that they consist of",
                {index.sources.front().name()});
  }
  return {.begin = index.entries.front().dtype == DType::uint16 ? kKinds[0].begin : kKinds[1].begin};
}

constexpr auto kExtensions = std::to_array<std::string_view>({".bin"});

}  // namespace

constinit const Format kLlmcFormat{.name = "llmc",
                                   .extensions = kExtensions,
                                   .sniff = sniff_llmc,
                                   .read_index = read_llmc,
                                   .write = nullptr,
                                   .index_bytes = [](const ByteSource&) { return kLlmcHeader; },
                                   .fingerprint = [](const Index&, std::span<const std::byte>) { return kLlmcHeader; },
                                   .metadata_is_own = true,
                                   .is_one_tensor = true,
                                   .documents = documents_of_llmc};

}  // namespace penstock::format
