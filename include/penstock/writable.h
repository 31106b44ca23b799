#pragma once

/// Files whose tensors are changed in place.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "penstock/entry.h"
#include "penstock/tensor.h"
#include "penstock/text_view.h"

namespace penstock {

/// A file that is mapped to be written to: its tensors are views of the file, and what is written to them is written to
/// it. For tensors that lie in the file as their values are: in an `.npy`, a `.safetensors` or a zipped `.pt`. (NumPy
/// does not align the members of an `.npz`.) The file is changed in place and not whole or not at all: other readers
/// see changes at once, and a process that is killed leaves those that it made. The checksums that a `.pt` records are
/// compared when a tensor is first asked for, which reads it. Those of tensors that were changed are mended by flush()
/// and close(), and are wrong before.
///
/// A value handle; const members may be called from any thread, and who writes to one tensor in two threads orders
/// that. Tensors keep the mapping alive, but must not be written to after close(), as no checksum follows then. If
/// another program cuts the file, or the disk has no room for a hole that is written to, using a tensor raises SIGBUS.
class WritableArchive {
 public:
  /// No file: an archive without tensors.
  WritableArchive();
  WritableArchive(const WritableArchive&) = default;
  WritableArchive(WritableArchive&&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  WritableArchive& operator=(const WritableArchive&) & = default;
  WritableArchive& operator=(WritableArchive&&) & noexcept = default;
  ~WritableArchive() = default;

  const std::string_view format() const noexcept;
  const std::string& path() const& noexcept;
  const std::string& path() const&& = delete;
  const std::span<const TensorEntry> entries() const& noexcept;
  std::span<const TensorEntry> entries() const&& = delete;

  bool contains(TextView name) const noexcept;
  /// The tensor of that name, whose elements are written by Tensor::copy_from and values(); kKeyNotFound lists near
  /// names. kUnsupported where the file does not hold it as its values are (compressed, in the other byte order, marked
  /// by torch as conjugate or negative, not aligned). kChecksum where its bytes do not have the checksum that the file
  /// records; with OpenOptions::verify off it is given all the same, and its checksum is never mended.
  Tensor operator[](TextView name) const;
  /// The tensor at this place in entries().
  Tensor entry(Integer index) const;
  template <detail::IndexLike T>
  Tensor operator[](T index) const {
    return entry(index);
  }
  /// The only tensor of the file; kInvalidArgument when there are none or several.
  Tensor tensor() const;

  /// Mends the checksums and waits until everything is on the disk. kIo. kChanged where the file was removed, or
  /// another came in its place.
  void flush();
  /// flush(), and the end of this archive: asking it for tensors is kInvalidArgument from here on. May be called again.
  /// Without it, checksums are mended when the last handle goes, and errors of that are lost.
  void close();

 private:
  friend WritableArchive open_writable(TextView path, const OpenOptions& options);
  class Impl;
  explicit WritableArchive(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  std::shared_ptr<Impl> impl_;
};

/// Errors as of `open`; kPermission for a file that may not be written to, kUnsupported for what is no plain file,
/// cannot be mapped, or only lists other files.
WritableArchive open_writable(TextView path, const OpenOptions& options = {});

}  // namespace penstock
