#pragma once

// Handles that the loader's parts have in Python. Everything here needs the
// GIL.

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>

#include "penstock/sampler.h"

namespace nb = nanobind;

namespace penstock::python {

/// The size that an argument named `dataset` means: an integer, or what has a
/// length.
std::int64_t size_from(nb::handle dataset);

/// Base of the sampler classes; each is a handle on a C++ sampler.
struct PySampler {
  SamplerPtr sampler;
};
struct PyBatchSampler {
  BatchSamplerPtr sampler;
};

/// Between a loader and its Python sampler.
struct Raised {
  /// An exception of Python code that C++ called, until the call returns.
  std::exception_ptr exception;
  /// Nobody waits for the order that is being read.
  std::atomic<bool> stopped{false};
};

/// A sampler of ours, or any iterable of integers, which is gone through anew
/// at each epoch (after `set_epoch(epoch)` when it has that), as far as its
/// length says, or where it has none to kMostUncounted. The result
/// borrows `sampler`, which must outlive it; `raised` gets what it raises.
SamplerPtr sampler_from(nb::handle sampler, const std::shared_ptr<Raised>& raised);
inline constexpr std::size_t kMostUncounted = std::size_t{1} << 26;
/// The same for an iterable of lists of integers.
BatchSamplerPtr batch_sampler_from(nb::handle sampler, const std::shared_ptr<Raised>& raised);

}  // namespace penstock::python
