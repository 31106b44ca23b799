#pragma once

// Whether the memory that a torch tensor claims is there. torch lets a storage be freed or shortened under its tensors
// (sharded training does), and has tensors that never had memory; their addresses lead nowhere, or to other people's
// bytes. Every way in for torch tensors asks here before it touches an address. Needs the GIL.

#include <optional>
#include <string>

#include "interpreter/nanobind.h"

namespace penstock::python {

/// Why the elements of a strided torch tensor cannot be touched: no memory (meta, fake, functional and zero tensors,
/// wrappers), or a storage shorter than the tensor reaches. Nothing for a sound tensor, for other layouts, which hand
/// over no address, and for objects that are not torch's.
std::optional<std::string> memory_fault(nb::handle object);
/// The second of these reasons alone: for what torch itself computes on tensors, which it can on those without memory.
std::optional<std::string> storage_fault(nb::handle object);
/// kUnsupported with the reason that `memory_fault` gives.
void require_memory(nb::handle object);
/// For views that outlive the call: from now on torch refuses to resize the storage of a tensor on the CPU, as it does
/// for tensors whose `numpy()` was taken. Does nothing for other objects.
void forbid_resizing(nb::handle object);

}  // namespace penstock::python
