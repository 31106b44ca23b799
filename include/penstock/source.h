#pragma once

/// Where bytes come from: a file, memory, or a class of your own derived from ByteSource. Programs that load files give
/// paths to `load` and `open` and need nothing from here; `memory_source` is for bytes that are in memory already.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "penstock/buffer.h"
#include "penstock/text_view.h"

namespace penstock {

/// Tells one version of a file from another. A write changes `modified`, in steps of the file system's clock.
struct FileVersion {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified = 0;  ///< nanoseconds since 1970

  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

/// What a source of your own implements: the bytes of a file, wherever they are. Their number never changes, and any
/// threads may read at any offset at once.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Path or description, as errors name it.
  virtual const std::string& name() const noexcept = 0;
  virtual std::uint64_t size() const noexcept = 0;
  /// Fills `into` from `offset`. kTruncated when the source ends before, kIo with the system's text otherwise.
  virtual void read(std::uint64_t offset, std::span<std::byte> into) const = 0;
  /// An open descriptor to read from, or -1.
  virtual int descriptor() const noexcept { return -1; }
  /// The version of the file that was opened. After loads and loaders have read, they compare it with the file of
  /// `descriptor`, and give kChanged when the file was written to. Nothing: they do not compare.
  virtual std::optional<FileVersion> version() const noexcept { return {}; }
  /// Whether `read` mostly waits, as for a network, so that a load may call it from as many threads as bring more:
  /// hundreds, each for 8 MiB at most. Otherwise there are no more of them than processors.
  virtual bool waits() const noexcept { return false; }
  /// The content, when it is in memory already (memory sources); else an empty buffer.
  virtual Buffer memory() const { return {}; }
};

/// A source of bytes. A value handle on an immutable ByteSource; thread-safe, and copies cost nothing: a file stays
/// open while a copy lives. Made by `open_source` and `memory_source`, or from an object of a class derived from
/// ByteSource.
class Source {
 public:
  /// No bytes.
  Source();
  template <std::derived_from<ByteSource> Own>
  Source(Own own)  // NOLINT(google-explicit-constructor): programs write `open(MySource(url))`
      : impl_(std::make_shared<const Own>(std::move(own))) {}
  /// Shares an object, one that cannot be moved for example. kInvalidArgument for null.
  template <std::derived_from<ByteSource> Own>
  Source(std::shared_ptr<Own> own)  // NOLINT(google-explicit-constructor): as above
      : impl_(not_null(std::move(own))) {}

  Source(const Source&) = default;
  Source(Source&&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  Source& operator=(const Source&) & = default;
  Source& operator=(Source&&) & noexcept = default;
  ~Source() = default;

  /// What ByteSource says of each.
  const std::string& name() const& noexcept { return impl_->name(); }
  const std::string name() const&& { return impl_->name(); }
  std::uint64_t size() const noexcept { return impl_->size(); }
  void read(std::uint64_t offset, std::span<std::byte> into) const;
  int descriptor() const noexcept { return impl_->descriptor(); }
  const std::optional<FileVersion> version() const noexcept { return impl_->version(); }
  Buffer memory() const { return impl_->memory(); }

  /// The object itself, which lives while a handle on it does; so a temporary refuses to give it.
  const ByteSource& operator*() const& noexcept { return *impl_; }
  const ByteSource& operator*() const&& = delete;
  /// Whether both are handles on one object.
  friend bool operator==(const Source&, const Source&) noexcept = default;

 private:
  static std::shared_ptr<const ByteSource> not_null(std::shared_ptr<const ByteSource> own);

  std::shared_ptr<const ByteSource> impl_;
};

/// Opens `path`: a file, or `scheme:...` of a source in the table. A folder is kIsDirectory, a missing file
/// kNotFound, a FIFO or device kUnsupported. The descriptor stays open while the source lives.
Source open_source(TextView path);
/// Bytes in memory; the buffer is shared, not copied.
Source memory_source(Buffer bytes, std::string name = "<memory>");

}  // namespace penstock
