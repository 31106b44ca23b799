#pragma once

// Finds programs that copy the same tensor to a device and back again and again, and warns them once.

#include <string>

#include "penstock/buffer.h"
#include "penstock/tensor.h"

namespace penstock::device {

/// Notes that the bytes at `from` were copied to `to`; true when they have now gone there and back often enough to warn
/// of it, once for each storage. Memory is known by its owner and address, in a table of fixed size that forgets what
/// is gone first. Copies within the host or between devices are not noted. Thread-safe.
bool note_copy(const Buffer& from, const Buffer& to);

/// Gives the warning that `tensor`, copied to `target`, goes to and fro.
void warn_of_round_trips(const Tensor& tensor, Device target, std::string name);

}  // namespace penstock::device
