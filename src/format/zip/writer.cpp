// Writes an archive front to back. A header comes before its member, so that size and CRC must be known or follow in a
// descriptor behind the data; the two styles differ in that. Bytes are checksummed and written in pieces while they are
// in a cache.

#include "format/zip/writer.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <utility>

#include "format/zip/layout.h"
#include "format/zip/reader.h"
#include "io/copy/crc32.h"
#include "penstock/error.h"

namespace penstock::format {

namespace {

using namespace zip;  // NOLINT(google-build-using-namespace): the records' own names, in this file alone

constexpr std::uint16_t kVersionPlain = 20;
constexpr std::uint16_t kVersionZip64 = 45;
constexpr std::uint16_t kMadeOnUnix = 3 << 8;
/// Unix, version 3.0, as torch has it.
constexpr std::uint16_t kEnd64MadeBy = kMadeOnUnix | 30;
/// 1980-01-01, the first day that DOS knows, so that equal content gives equal files.
constexpr std::uint16_t kDate = 0x0021;
/// rw------- in the upper half, where Unix modes live.
constexpr std::uint32_t kUnixMode = 0600u << 16;
/// Checksum and write while the bytes are in cache.
constexpr std::size_t kWrittenAtOnce = 512 * 1024;

template <class T>
void put(std::string& record, std::type_identity_t<T> value) {
  record.append(reinterpret_cast<const char*>(&value), sizeof value);
}

bool is_wide(std::uint64_t value) noexcept { return value >= kSentinel32; }
std::uint32_t narrow(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, kSentinel32));
}

std::uint64_t total_of(std::span<const std::span<const std::byte>> parts) noexcept {
  std::uint64_t total = 0;
  for (const auto& part : parts) total += part.size();
  return total;
}

/// The zip64 field for whichever of these are wide, in the order that the format asks for.
std::string zip64_extra(std::initializer_list<std::pair<bool, std::uint64_t>> values) {
  std::string body;
  for (const auto& [wanted, value] : values) {
    if (wanted) put<std::uint64_t>(body, value);
  }
  std::string field;
  if (body.empty()) return field;
  put<std::uint16_t>(field, kZip64Extra);
  put<std::uint16_t>(field, static_cast<std::uint16_t>(body.size()));
  return field + body;
}

/// torch's alignment: a field of 'Z' that makes what follows it begin at a multiple of `alignment`.
std::string padding_extra(std::uint64_t offset, std::size_t alignment) {
  const std::size_t padding = (alignment - (offset + 4) % alignment) % alignment;
  std::string field;
  put<std::uint16_t>(field, kPaddingExtra);
  put<std::uint16_t>(field, static_cast<std::uint16_t>(padding));
  field.append(padding, 'Z');
  return field;
}

}  // namespace

ZipWriter::ZipWriter(io::ByteSink& sink, ZipStyle style, std::size_t alignment)
    : sink_(sink), style_(style), alignment_(alignment), base_(sink.position()) {}

void ZipWriter::check(std::string_view name) const {
  const auto refuse = [name](std::string message) {
    throw Error(ErrorCode::kInvalidArgument, std::move(message), {{}, std::nullopt, std::string(name)});
  };
  try {
    check_zip_name(name);
  } catch (const Error& error) {
    refuse(error.message());
  }
  if (name.size() > kSentinel16) refuse("the name is longer than the 65535 bytes that a zip archive can hold");
  if (names_.contains(name)) refuse("two members of the archive would have this name; rename one");
}

ZipWriter::Member& ZipWriter::start(std::string_view name) {
  check(name);
  const auto place = names_.emplace(name).first;
  const bool ascii = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
  Member& member = members_.emplace_back();
  member.name = *place;
  member.header_offset = sink_.position() - base_;
  if (style_ == ZipStyle::kTorch || !ascii) member.flags |= kUtf8Flag;
  return member;
}

void ZipWriter::add(std::string_view name, std::span<const std::span<const std::byte>> parts) {
  if (style_ == ZipStyle::kTorch) {
    begin(name, total_of(parts));
    for (const auto& part : parts) write(part);
    return end();
  }
  Member& member = start(name);
  member.size = member.compressed_size = total_of(parts);
  for (const auto& part : parts) member.crc32 = io::crc32(member.crc32, part);
  write_local_header(member);
  for (const auto& part : parts) sink_.write(part);
}

void ZipWriter::add_deflated(std::string_view name, std::span<const std::span<const std::byte>> parts) {
  begin(name, total_of(parts), true);
  for (const auto& part : parts) write(part);
  end();
}

void ZipWriter::begin(std::string_view name, std::uint64_t size, bool deflated) {
  Member& member = start(name);
  member.size = size;
  if (deflated) {
    member.method = kZipDeflate;
    deflate_ = std::make_unique<DeflateStream>([this](std::span<const std::byte> piece) { sink_.write(piece); });
  } else {
    member.compressed_size = size;
  }
  // torch describes an empty member in its header alone.
  if (deflated || size > 0) member.flags |= kDescriptorFlag;
  write_local_header(member);
  data_begin_ = sink_.position();
}

void ZipWriter::write(std::span<const std::byte> bytes) {
  Member& member = members_.back();
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kWrittenAtOnce));
    member.crc32 = io::crc32(member.crc32, piece);
    deflate_ ? deflate_->add(piece) : sink_.write(piece);
    bytes = bytes.subspan(piece.size());
  }
}

void ZipWriter::end() {
  Member& member = members_.back();
  if (deflate_) {
    deflate_->finish();
    deflate_.reset();
    member.compressed_size = sink_.position() - data_begin_;
  }
  if ((member.flags & kDescriptorFlag) != 0) write_descriptor(member);
}

/// Whether sizes get 64 bits in the local header, which is written before the compressed size is known: deflate can add
/// a few bytes in ten thousand.
bool ZipWriter::has_wide_sizes(const Member& member) noexcept {
  return is_wide(member.method == kZipDeflate ? member.size + member.size / 512 : member.size);
}

void ZipWriter::write_local_header(const Member& member) {
  const bool torch = style_ == ZipStyle::kTorch;
  const bool wide = has_wide_sizes(member);
  const std::uint64_t known = (member.flags & kDescriptorFlag) != 0 ? 0 : member.size;
  std::string extra;
  if (torch) {
    extra = zip64_extra({{wide, member.size}, {wide, 0}, {is_wide(member.header_offset), member.header_offset}});
    extra += padding_extra(member.header_offset + kLocalBytes + member.name.size() + extra.size(), alignment_);
  } else {
    extra = zip64_extra({{wide, known}, {wide, known}});
  }
  const std::uint32_t size = wide && !torch ? kSentinel32 : narrow(known);
  put<std::uint32_t>(record_, kLocalSignature);
  put<std::uint16_t>(record_, version_of(wide));
  put<std::uint16_t>(record_, member.flags);
  put<std::uint16_t>(record_, member.method);
  put<std::uint16_t>(record_, 0);
  put<std::uint16_t>(record_, torch ? 0 : kDate);
  put<std::uint32_t>(record_, known == 0 ? 0 : member.crc32);
  put<std::uint32_t>(record_, size);
  put<std::uint32_t>(record_, size);
  put<std::uint16_t>(record_, static_cast<std::uint16_t>(member.name.size()));
  put<std::uint16_t>(record_, static_cast<std::uint16_t>(extra.size()));
  record_ += member.name;
  record_ += extra;
  flush();
}

void ZipWriter::write_descriptor(const Member& member) {
  put<std::uint32_t>(record_, kDescriptorSignature);
  put<std::uint32_t>(record_, member.crc32);
  if (has_wide_sizes(member) || (style_ == ZipStyle::kTorch && is_wide(member.header_offset))) {
    put<std::uint64_t>(record_, member.compressed_size);
    put<std::uint64_t>(record_, member.size);
  } else {
    put<std::uint32_t>(record_, static_cast<std::uint32_t>(member.compressed_size));
    put<std::uint32_t>(record_, static_cast<std::uint32_t>(member.size));
  }
  flush();
}

void ZipWriter::write_central_header(const Member& member) {
  const bool torch = style_ == ZipStyle::kTorch;
  const std::string extra = zip64_extra({{is_wide(member.size), member.size},
                                         {is_wide(member.compressed_size), member.compressed_size},
                                         {is_wide(member.header_offset), member.header_offset}});
  const std::uint16_t version = version_of(has_wide_sizes(member) || !extra.empty());
  put<std::uint32_t>(record_, kCentralSignature);
  put<std::uint16_t>(record_, torch ? 0 : static_cast<std::uint16_t>(kMadeOnUnix | version));
  put<std::uint16_t>(record_, version);
  put<std::uint16_t>(record_, member.flags);
  put<std::uint16_t>(record_, member.method);
  put<std::uint16_t>(record_, 0);
  put<std::uint16_t>(record_, torch ? 0 : kDate);
  put<std::uint32_t>(record_, member.crc32);
  put<std::uint32_t>(record_, narrow(member.compressed_size));
  put<std::uint32_t>(record_, narrow(member.size));
  put<std::uint16_t>(record_, static_cast<std::uint16_t>(member.name.size()));
  put<std::uint16_t>(record_, static_cast<std::uint16_t>(extra.size()));
  put<std::uint16_t>(record_, 0);
  put<std::uint16_t>(record_, 0);
  put<std::uint16_t>(record_, 0);
  put<std::uint32_t>(record_, torch ? 0 : kUnixMode);
  put<std::uint32_t>(record_, narrow(member.header_offset));
  record_ += member.name;
  record_ += extra;
  flush();
}

void ZipWriter::finish() {
  const std::uint64_t offset = sink_.position() - base_;
  for (const Member& member : members_) write_central_header(member);
  const std::uint64_t end = sink_.position() - base_;
  if (style_ == ZipStyle::kTorch || is_wide(offset) || is_wide(end - offset) || members_.size() >= kSentinel16) {
    write_end64(offset, end);
  }
  const auto count = static_cast<std::uint16_t>(std::min<std::size_t>(members_.size(), kSentinel16));
  put<std::uint32_t>(record_, kEndSignature);
  put<std::uint32_t>(record_, 0);
  put<std::uint16_t>(record_, count);
  put<std::uint16_t>(record_, count);
  put<std::uint32_t>(record_, narrow(end - offset));
  put<std::uint32_t>(record_, narrow(offset));
  put<std::uint16_t>(record_, 0);
  flush();
}

void ZipWriter::write_end64(std::uint64_t offset, std::uint64_t end) {
  put<std::uint32_t>(record_, kEnd64Signature);
  put<std::uint64_t>(record_, kEnd64Bytes - 12);
  put<std::uint16_t>(record_, kEnd64MadeBy);
  put<std::uint16_t>(record_, kVersionZip64);
  put<std::uint64_t>(record_, 0);
  put<std::uint64_t>(record_, members_.size());
  put<std::uint64_t>(record_, members_.size());
  put<std::uint64_t>(record_, end - offset);
  put<std::uint64_t>(record_, offset);
  put<std::uint32_t>(record_, kLocatorSignature);
  put<std::uint32_t>(record_, 0);
  put<std::uint64_t>(record_, end);
  put<std::uint32_t>(record_, 1);
  flush();
}

std::uint16_t ZipWriter::version_of(bool wide) const noexcept {
  if (style_ == ZipStyle::kTorch) return 0;
  return wide ? kVersionZip64 : kVersionPlain;
}

void ZipWriter::flush() {
  sink_.write_text(record_);
  record_.clear();
}

}  // namespace penstock::format
