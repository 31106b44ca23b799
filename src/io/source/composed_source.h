#pragma once

#include <span>
#include <stop_token>

#include "penstock/source.h"

namespace penstock::io {

/// A source whose bytes lie in several others, such as a tensor that is cut into chunks. Whoever reads it reads them,
/// each byte once; nothing is put together elsewhere.
class ComposedSource : public ByteSource {
 public:
  /// Where its bytes lie.
  virtual std::span<const Source> parts() const noexcept = 0;
  /// Compares every part that has a recorded checksum with it. Parts that were read whole meanwhile have been compared
  /// on the way; others are read now, once for each source. kChecksum, kCancelled and what reading gives.
  virtual void verify(std::stop_token stop) const = 0;
};

/// The source as a composed one; null for any other.
inline const ComposedSource* as_composed(const Source& source) noexcept {
  return dynamic_cast<const ComposedSource*>(&*source);
}

}  // namespace penstock::io
