#pragma once

#include <span>

#include "format/format.h"
#include "penstock/error.h"

namespace penstock::archive {

/// Adds the name of a tensor to an error that reading the bytes of `tensors` gave: the first tensor whose storage ends
/// behind the error's offset, in the error's file. Errors that have a tensor already, or no offset, stay as they are.
Error with_tensor(const Error& error, const format::Index& index, std::span<const TensorEntry* const> tensors);

}  // namespace penstock::archive
