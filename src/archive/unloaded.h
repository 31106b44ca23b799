#pragma once

// Files that are written from another file piece by piece, in little memory (`convert`): when that can be done, and
// how.

#include <optional>
#include <stop_token>

#include "format/format.h"
#include "format/unloaded.h"
#include "penstock/load.h"

namespace penstock::archive {

/// What becomes of elements on their way from one file to another.
class ElementChange {
 public:
  virtual ~ElementChange() = default;
  /// What elements of that type become. The same type: they stay as they are.
  virtual DType type_of(const DType& dtype) const { return dtype; }
  /// A tensor, or a piece of one, whose type changes.
  virtual Tensor operator()(const Tensor& tensor) { return tensor; }
};

/// Whether views of the mapped file are its tensors as they are: those that the file does not align would each be read
/// alone, and share no storage any more.
bool can_be_mapped(const Archive& archive);

/// Whether the format has a tensor in another order of its elements than the file, so that a piece of it lies all over
/// the file.
bool is_reordered(const Archive& archive, const format::Format& target);

/// Whether each tensor is one for itself, so that they can be written one after the other without the others. A file
/// that has tensors share their bytes is loaded, because the writer says what it makes of that.
bool is_apart(const Archive& archive);

/// The archive's tensors as a file of the format will hold them, each to be read in pieces when it is written. Recorded
/// checksums are verified on the way. Nothing where the tensors have to be loaded: a format without storages cannot
/// say that they share bytes, and the writer of loaded tensors says what it makes of that; or those of one storage
/// differ in type or in the order of their bytes. `archive` is copied; the others must outlive what is given.
std::optional<format::Unloaded> unloaded(const Archive& archive, const format::Format& target, ElementChange& change,
                                         const std::stop_token& stop);

}  // namespace penstock::archive
