#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::io {

/// Bytes on their way out. Implementations throw Error.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;
  void write_text(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Bytes written so far.
  virtual std::uint64_t position() const noexcept = 0;
};

/// Writes a temporary file in the target's folder and renames it over the target on commit; without commit nothing
/// remains. Follows a symbolic link to its target; keeps an existing file's permission bits.
class AtomicFile final : public ByteSink {
 public:
  /// kNotFound when the folder is missing, kPermission, kIsDirectory, kIo.
  explicit AtomicFile(std::string path, bool sync = true);
  ~AtomicFile() override;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes) override;
  std::uint64_t position() const noexcept override { return position_; }
  /// Flushes (fsync of file and folder when `sync`) and renames. Call once, last.
  void commit();

 private:
  void flush();

  std::string path_;
  std::string temporary_;
  std::string pending_;
  std::uint64_t position_ = 0;
  int fd_ = -1;
  bool sync_;
};

}  // namespace penstock::io
