#pragma once

// Archive and LazyTensor as Python has them, and how a load that Python asked for is done: its options, its report, and
// whether it may take so long that Ctrl-C is answered meanwhile.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interpreter/nanobind.h"
#include "penstock/error.h"
#include "penstock/load.h"
#include "penstock/source.h"

namespace penstock::python {

/// What a call reads, which decides whether it takes so long that it answers signals meanwhile (interruptible). The one
/// place that decides it: by the bytes that are read, not by the size of a file.
struct ReadEffort {
  std::uint64_t payload_bytes = 0;
  std::uint64_t index_bytes = 0;   ///< that are parsed
  std::uint64_t sample_bytes = 0;  ///< of files that may be deflated
  bool asks_server = false;        ///< which gives them, or never answers

  bool takes_long() const noexcept;

  static ReadEffort of(const Archive& archive) noexcept;
  static ReadEffort of(const LazyTensor& tensor);
};

/// An Archive that can be closed, as Python has it.
class PyArchive {
 public:
  PyArchive(Archive archive, bool verify) : archive_(std::move(archive)), verify_(verify) {}
  PyArchive(PyArchive&& other) noexcept : archive_(std::move(other.archive_)), verify_(other.verify_) {}
  PyArchive& operator=(PyArchive&&) = delete;
  ~PyArchive() = default;

  /// A handle of the caller's own, which outlives a close() by another thread, or by code of Python that the caller
  /// runs. kInvalidArgument when it is closed.
  Archive get() const;
  std::optional<Archive> if_open() const;
  /// The only handle on it, which this is no more.
  Archive take() { return *std::exchange(archive_, std::nullopt); }
  bool verify() const noexcept { return verify_; }
  void close() noexcept;

 private:
  mutable nb::ft_mutex mutex_;  ///< of archive_
  std::optional<Archive> archive_;
  bool verify_;
};

/// One tensor of an archive, or a slice of one, that is not loaded.
struct PyLazyTensor {
  LazyTensor tensor;
  bool verify;
  nb::tuple keys;  ///< the indices that led from the tensor to the slice
  /// The arguments of penstock.raw behind the path, where that made the tensor; else undefined.
  nb::object raw = {};
};

/// penstock.open: reads the index; answers signals while it does.
PyArchive open_archive(const std::string& path, const OpenOptions& options);
PyArchive open_archive(Source source, const OpenOptions& options);
/// The archive in an object with a buffer, whose bytes are shared; `name` stands for a path in errors.
PyArchive open_memory(nb::handle data, const std::string& name, const OpenOptions& options);
/// The archive that an argument of penstock.load means. `bytes` with a zero in them are content, since no path has one
/// and every tensor file does; other bytes are a path.
PyArchive open_given(nb::handle given, const OpenOptions& options);
/// The part of the content that `key` and `prefix` choose: a string is a key, or several with dots between them; an
/// integer is a key or a position; of a list each item is one step. With a prefix the keys that begin with it, without
/// it. kDTypeMismatch for other keys.
Archive part_of(Archive archive, nb::handle key, nb::handle prefix);
/// The dict that a caller wants filled with how a load was done.
using ReportDict = std::optional<nb::dict>;
/// How a caller wants a load done, as the arguments of penstock.load say.
struct LoadArguments {
  nb::handle device;
  std::optional<bool> mmap;
  std::optional<bool> direct;
  std::optional<bool> gds;
  std::optional<std::int64_t> threads;
  nb::handle dtype;
  nb::handle strict;
  bool shared = false;
  bool pinned = false;

  /// kInvalidArgument for what cannot be.
  LoadOptions options(bool verify) const;
};
/// Everything in it, as Python's objects; answers signals while it loads.
nb::object load_value(Archive archive, const LoadOptions& options, const ReportDict& report);
/// What `make` makes; its errors say that they are about the file at `path`.
template <class Make>
nb::object in_file(const std::string& path, const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    throw error.within({.path = path});
  }
}
/// The array that an object is, or nothing; a LazyTensor is loaded.
std::optional<Tensor> array_given(nb::handle object);
Tensor load_entry(const PyLazyTensor& entry, const LoadOptions& options, const ReportDict& report);
/// Storages into memory that is there; answers signals while it loads.
void load_placed(Archive archive, std::vector<StoragePlacement> placements, const LoadOptions& options,
                 const ReportDict& report);

}  // namespace penstock::python
