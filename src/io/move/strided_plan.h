#pragma once

// How a slice whose elements lie apart is read: in parts that are worth one read each. strided_read.h reads them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "io/read/read_costs.h"
#include "penstock/shape.h"

namespace penstock::io {

/// Elements of a file that do not lie one behind the other.
struct StridedView {
  std::uint64_t offset = 0;  ///< of the first element in the source
  Shape shape;
  Strides strides;  ///< in elements
  std::size_t itemsize = 0;
};

/// Cuts a view into parts that are read at once: along the dimensions of the widest strides, until what lies between
/// the elements of a part is not worth skipping and its bytes fit in a bounded scratch. Pure arithmetic: nothing is
/// stored for each part, of which there may be as many as there are elements.
class StridedPlan {
 public:
  /// Bytes of scratch: a part that needs more is one element or one contiguous run.
  static constexpr std::uint64_t kScratchBytes = std::uint64_t{1} << 20;

  /// `view` has elements, all within 63 bits.
  StridedPlan(StridedView view, const ReadCosts& costs);

  /// A box of the view: `shape` elements from `first` (an index in each dimension).
  struct ViewPart {
    std::uint64_t offset = 0;  ///< of its first element in the source
    std::uint64_t bytes = 0;   ///< to the end of its last one
    Shape first;
    Shape shape;
  };
  std::uint64_t size() const noexcept { return count_; }
  ViewPart part(std::uint64_t index) const;
  /// Bytes of all parts; no less than what is read.
  std::uint64_t read_bytes() const noexcept { return read_bytes_; }

 private:
  struct Cut {
    std::size_t dim;
    std::int64_t width;  ///< indices a part has of it
    std::uint64_t parts;
  };

  void cut(const ReadCosts& costs);

  StridedView view_;
  std::vector<Cut> cuts_;  ///< widest stride first
  std::uint64_t count_ = 1;
  std::uint64_t read_bytes_ = 0;
};

}  // namespace penstock::io
