#pragma once

// How both loaders hand batches to Python so that none is lost to a signal. Python runs a signal's handler wherever its
// code is called, and what the handler raises goes through the call that hands a batch over. The batch then stays here,
// and the next call gives it. Python's part of penstock.torch does the same behind it (torch/loader/_iteration.py).

#include <exception>
#include <optional>
#include <utility>

#include "interpreter/interrupt.h"
#include "interpreter/nanobind.h"
#include "penstock/loader.h"

namespace penstock::python {

/// A batch, or the error in its place, that is there and that nobody has got yet.
class KeptBatch {
 public:
  bool holds() const noexcept { return batch_ || error_; }
  void keep(Batch batch) { batch_ = std::move(batch); }
  void keep(std::exception_ptr error) noexcept { error_ = std::move(error); }
  void drop() noexcept {
    batch_.reset();
    error_ = nullptr;
  }
  /// What is kept, which is then kept no longer; throws where that is an error.
  Batch take() {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return *std::exchange(batch_, std::nullopt);
  }

  /// give(batch), behind the handlers of signals that have arrived. Keeps the batch where one of them raises, or
  /// another while `give` runs code of Python's. What else `give` raises is an error of the batch, which is not kept.
  template <class Give>
  auto hand_over(Batch batch, Give give) {
    try {
      check_signals();
    } catch (...) {
      keep(std::move(batch));
      throw;
    }
    try {
      return give(batch);
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) keep(std::move(batch));
      throw;
    }
  }

 private:
  std::optional<Batch> batch_;
  std::exception_ptr error_;
};

}  // namespace penstock::python
