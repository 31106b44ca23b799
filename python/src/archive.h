#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "penstock/error.h"
#include "penstock/load.h"

namespace nb = nanobind;

namespace penstock::python {

/// Payload from which a load takes long enough to look for signals meanwhile.
inline constexpr std::uint64_t kLongLoad = std::uint64_t{4} << 20;
/// Whether loading all of it does.
bool takes_long(const Archive& archive) noexcept;

/// An Archive that can be closed, as Python has it.
class PyArchive {
 public:
  PyArchive(Archive archive, bool verify) : archive_(std::move(archive)), verify_(verify) {}

  /// kInvalidArgument when it is closed.
  const Archive& get() const;
  bool verify() const noexcept { return verify_; }
  void close() noexcept { archive_.reset(); }

 private:
  std::optional<Archive> archive_;
  bool verify_;
};

/// One tensor of an archive, or a slice of one, that is not loaded.
struct Entry {
  LazyTensor tensor;
  bool verify;
  nb::tuple keys;  ///< the indices that led from the tensor to the slice
};

/// penstock.open: reads the index; answers signals while it does.
PyArchive open_archive(const std::string& path, const OpenOptions& options);
/// The dict that a caller wants filled with how a load was done.
using ReportDict = std::optional<nb::dict>;
/// Everything in it; answers signals while it loads.
Value load_archive(const Archive& archive, const LoadOptions& options, const ReportDict& report);
/// The same as Python's objects.
nb::object load_value(const Archive& archive, const LoadOptions& options, const ReportDict& report);
/// What `make` makes; its errors say which file they are about.
template <class Make>
nb::object in_archive(const Archive& archive, const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    throw error.within({.path = archive.path()});
  }
}
Tensor load_entry(const Entry& entry, const LoadOptions& options, const ReportDict& report);

}  // namespace penstock::python
