#pragma once

// What datasets give and batches are made of: of each sample its layout, and for each of its tensors where the payload
// lies. Nothing here owns memory. Who prepares a batch keeps it all in a Scratch.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>

#include "data/sample/layout.h"
#include "penstock/error.h"

namespace penstock::data {

class Conversion;
class LargeFile;
class HeldFile;

/// Payload in memory that stays: it is copied.
struct InMemory {
  const std::byte* data = nullptr;  ///< the first element
};

/// Payload in a mapping of `file`: it is copied under a guard, because another program may cut the file meanwhile.
struct InMapping {
  const std::byte* data = nullptr;
  const HeldFile* file = nullptr;
};

/// Payload in `file`, without gaps: it is read.
struct InFile {
  const HeldFile* file = nullptr;
  std::uint64_t offset = 0;
};

/// Entry `entry` of `file`: that file is read when the batch has its block.
struct InLargeFile {
  const LargeFile* file = nullptr;
  std::uint32_t entry = 0;
};

/// Where the payload of one tensor of a sample lies, and what happens to it on the way.
struct Payload {
  /// std::monostate: nowhere, for a tensor without elements, or because only headers were asked for.
  std::variant<std::monostate, InMemory, InMapping, InFile, InLargeFile> place = {};
  /// What makes the sample's tensor of that payload, which lies as Conversion::input says. Null: it needs none.
  const Conversion* conversion = nullptr;
  /// Of the random numbers that the conversion takes: a key for each index by which its steps draw, Conversion::keys.
  const std::uint64_t* keys = nullptr;

  /// The first element where it has an address, or null.
  const std::byte* data() const noexcept {
    if (const auto* const memory = std::get_if<InMemory>(&place)) return memory->data;
    const auto* const mapping = std::get_if<InMapping>(&place);
    return mapping == nullptr ? nullptr : mapping->data;
  }
  bool in_large_file() const noexcept { return std::holds_alternative<InLargeFile>(place); }
};

/// One sample: a layout and a payload for each of its tensors. Both are valid until the Scratch is reset, and while the
/// dataset lives.
struct Sample {
  const Layout* layout = nullptr;  ///< null: it cannot be had (CallContext::sets_aside)
  union {
    const Payload* payloads = nullptr;
    const Error* failure;  ///< without a layout: why
  };

  bool failed() const noexcept { return layout == nullptr; }
};

/// One tensor of samples of which those numbered `at` are taken: each lies as many steps behind sample 0 as its number.
struct EvenColumn {
  Payload first;  ///< of sample 0: in memory, in a mapping, in a file, or nowhere
  std::size_t step = 0;
  std::span<const std::int64_t> at;  ///< one for each sample that is taken

  std::uint64_t behind(std::size_t position) const noexcept { return static_cast<std::uint64_t>(at[position]) * step; }
  Payload payload(std::size_t position) const noexcept {
    Payload out = first;
    if (auto* const memory = std::get_if<InMemory>(&out.place)) memory->data += behind(position);
    if (auto* const mapping = std::get_if<InMapping>(&out.place)) mapping->data += behind(position);
    if (auto* const file = std::get_if<InFile>(&out.place)) file->offset += behind(position);
    return out;
  }
};

/// Samples that lie at equal steps and have one layout, with a column for each of its tensors. Valid as a Sample is.
struct EvenRows {
  const Layout* layout = nullptr;
  std::span<const EvenColumn> columns;
};

/// An Error that belongs to one of the samples that were asked for; carries its position among them. Never leaves this
/// layer.
class SampleError {
 public:
  SampleError(std::size_t position, Error error) : position_(position), error_(std::move(error)) {}
  std::size_t position() const noexcept { return position_; }
  const Error& error() const noexcept { return error_; }

 private:
  std::size_t position_;
  Error error_;
};

}  // namespace penstock::data
