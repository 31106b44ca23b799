#pragma once

// Arguments of operations from Python. Everything here needs the GIL, but `computed`, which releases it.

#include <optional>
#include <utility>
#include <vector>

#include "interpreter/interrupt.h"
#include "interpreter/nanobind.h"
#include "penstock/ops.h"

namespace penstock::python {

/// A tensor or a number that outlives its Python object: an Operand refers to it.
class HeldOperand {
 public:
  explicit HeldOperand(Tensor tensor) : tensor_(std::move(tensor)), number_(false) {}
  explicit HeldOperand(const Scalar& number) : number_(number) {}
  Operand operand() const { return tensor_.defined() ? Operand(tensor_) : Operand(number_); }
  std::size_t nbytes() const { return tensor_.defined() ? tensor_.nbytes() : 0; }

 private:
  Tensor tensor_;
  Scalar number_;
};

/// A bool, int, float or complex; nothing for other objects. kInvalidArgument beyond 64 bits.
std::optional<Scalar> scalar_from(nb::handle object);
/// A Tensor or a number; nothing for other objects.
std::optional<HeldOperand> operand_from(nb::handle object);
/// Tensors in a sequence; TypeError for other objects in it.
std::vector<Tensor> tensors_from(nb::handle sequence);

/// work() without the GIL; from so many bytes on it answers Ctrl-C, so it must own all it uses.
template <class Work>
auto computed(std::size_t bytes, Work work) {
  constexpr std::size_t long_work = std::size_t{16} << 20;
  return interruptible(bytes >= long_work, [work = std::move(work)](std::stop_token) mutable { return work(); });
}

}  // namespace penstock::python
