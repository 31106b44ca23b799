#pragma once

// Bytes in memory as sources and sinks, and the files written by others.

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "io/file/atomic_file.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::test {

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

inline Source source_of(std::string_view text, std::string name = "<test>") {
  Buffer buffer = Buffer::allocate(text.size());
  if (!text.empty()) std::memcpy(buffer.data(), text.data(), text.size());
  return memory_source(std::move(buffer), std::move(name));
}

/// A source that is read, not mapped, and counts what it is asked for.
class CountingSource final : public ByteSource {
 public:
  explicit CountingSource(std::string bytes) : bytes_(std::move(bytes)) {}
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    if (offset > bytes_.size() || into.size() > bytes_.size() - offset) {
      throw Error(ErrorCode::kTruncated, "a read beyond the end", {name_, offset});
    }
    if (!into.empty()) std::memcpy(into.data(), bytes_.data() + offset, into.size());
    ++reads;
    bytes_read += into.size();
  }

  mutable std::atomic<std::size_t> reads = 0;
  mutable std::atomic<std::uint64_t> bytes_read = 0;

 private:
  std::string name_ = "<counting>";
  std::string bytes_;
};

class StringSink final : public io::ByteSink {
 public:
  void write(std::span<const std::byte> bytes) override {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::uint64_t position() const noexcept override { return text.size(); }

  std::string text;
};

/// The folder of files written by others: $PENSTOCK_CORPUS, or beside the project. Nothing where there is none.
inline std::optional<std::filesystem::path> corpus() {
  const char* const given = std::getenv("PENSTOCK_CORPUS");
  const std::filesystem::path folder = given != nullptr ? given : "../shared/corpus";
  return std::filesystem::is_directory(folder) ? std::optional(folder) : std::nullopt;
}

}  // namespace penstock::test
