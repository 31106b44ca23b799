#pragma once

#include <span>

#include "format/format.h"
#include "penstock/error.h"

namespace penstock::archive {

/// `error`, which reading the bytes of `tensors` gave, with the name of the one that it happened at: the first whose
/// storage ends behind the error's offset in the error's file. As it is where it has a tensor or no offset.
Error with_tensor(const Error& error, const format::Index& index, std::span<const TensorEntry* const> tensors);

}  // namespace penstock::archive
