#include "format/tar/writer.h"

#include <algorithm>
#include <array>

#include "core/format.h"
#include "core/text.h"
#include "format/tar/header.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

/// Programs write archives in units of twenty blocks.
constexpr std::uint64_t kRecord = 20 * kTarBlock;

/// "LENGTH KEY=VALUE\n", whose length counts its own digits.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (length != rest + std::to_string(length).size()) length = rest + std::to_string(length).size();
  return core::format("{} {}={}\n", length, key, value);
}

/// A name of at most 100 bytes for programs that know no pax headers.
std::string short_name(std::string_view name) {
  constexpr std::size_t kMost = 100;
  return std::string(name.substr(name.size() - std::min(name.size(), kMost)));
}

}  // namespace

SampleName WrittenFields::place_of(std::string_view member) const {
  if (member.empty() || member.find('\0') != member.npos || member.ends_with('/')) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found {} as the name of a member, expected one without zero bytes and '/' at its end",
                             core::quoted(member)));
  }
  std::optional<SampleName> place = sample_name({.name = std::string(member)});
  if (!place || is_own_field(place->field)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        core::format("found the member {}, which readers would take for a part of no sample; names begin with no "
                     "dot and are not of the form __x__, and no field is called __key__ or __url__",
                     core::quoted(member)));
  }
  if (place->key == key_ && fields_.contains(place->field)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        core::format("the sample {} has the field {} already, whose name readers take in lower case; name one of them "
                     "otherwise",
                     core::quoted(place->key), core::quoted(place->field)));
  }
  return *std::move(place);
}

void WrittenFields::add(SampleName place) {
  if (place.key != key_) {
    key_ = std::move(place.key);
    fields_.clear();
  }
  fields_.insert(std::move(place.field));
}

void WrittenFields::require_other(const std::string& key) const {
  if (key != key_ || fields_.empty()) return;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("the sample before this one has the key {} too, and readers would take both for one; give "
                           "each a key of its own",
                           core::quoted(key)));
}

void TarWriter::begin(std::string_view name, std::uint64_t size) {
  last_.add(last_.place_of(name));
  std::optional<std::string> header = tar_header_of(name, size);
  if (!header) {
    const std::string records = pax_record("path", name) + pax_record("size", std::to_string(size));
    const std::string first = short_name(name);
    sink_.write_text(*tar_header_of("././@PaxHeader", records.size(), 'x'));
    sink_.write_text(records);
    pad(records.size());
    header = tar_header_of(first, size);  // for programs that know no records
    if (!header) header = tar_header_of(first, 0);
  }
  sink_.write_text(*header);
  begun_ = sink_.position();
  size_ = size;
}

void TarWriter::write(std::span<const std::byte> bytes) { sink_.write(bytes); }

void TarWriter::end() {
  const std::uint64_t written = sink_.position() - begun_;
  if (written != size_) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("a member of {} bytes was begun, and {} were written", size_, written));
  }
  pad(size_);
}

void TarWriter::add(const TarSample& sample) {
  check(sample);
  for (const auto& [name, content] : sample.members) {
    begin(name, content.size());
    write(std::as_bytes(std::span(content)));
    end();
  }
}

void TarWriter::finish() {
  constexpr std::array<std::byte, 2 * kTarBlock> kEnd{};
  sink_.write(kEnd);
  constexpr std::array<std::byte, kTarBlock> kZeros{};
  while (sink_.position() % kRecord != 0) sink_.write(kZeros);
}

void TarWriter::pad(std::uint64_t bytes) {
  constexpr std::array<std::byte, kTarBlock> kZeros{};
  const std::uint64_t over = bytes % kTarBlock;
  if (over != 0) sink_.write(std::span(kZeros).first(static_cast<std::size_t>(kTarBlock - over)));
}

}  // namespace penstock::format
