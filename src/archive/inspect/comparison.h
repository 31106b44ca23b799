#pragma once

// `penstock diff`: which tensors and leaves of two archives differ. difference.h compares the elements of two tensors.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "archive/inspect/difference.h"
#include "penstock/load.h"
#include "penstock/value.h"

namespace penstock::archive {

struct CompareOptions {
  Tolerance tolerance = {};
  /// Whether dtypes, and kinds of numbers, may differ where the values are equal.
  bool any_dtype = false;
};

/// A place where two contents differ: a tensor, or a leaf (leaves.h).
struct Mismatch {
  enum class Kind : std::uint8_t {
    kOnlyInA,
    kOnlyInB,
    kShape,
    kDType,   ///< and perhaps the values, where `values` says so
    kValues,  ///< of a tensor
    kLeaf,    ///< another value, or a tensor in one and none in the other
  };
  Kind kind;
  std::string path;                   ///< in A, or in B where A does not have it
  std::optional<std::size_t> a = {};  ///< the tensor, by its position in entries()
  std::optional<std::size_t> b = {};
  std::optional<Value> a_leaf = {};
  std::optional<Value> b_leaf = {};
  std::optional<Difference> values = {};  ///< where shapes agree and types can be compared
};

struct Comparison {
  std::vector<Mismatch> places;  ///< in the order of A, then those that only B has
  std::size_t equal_tensors = 0;
  std::size_t equal_leaves = 0;

  bool is_equal() const noexcept { return places.empty(); }
};

/// Compares what two archives hold, whatever their formats: tensors and leaves by the keys that lead to them, whose
/// order does not matter, nor which kinds of containers they lie in. Two contents of one bare tensor each, or one and a
/// content of a single tensor, are compared whatever the names. Metadata has no part in it. Tensors are read once, in
/// little memory, on all processors. `seen` is told bytes that were read, from any thread. Errors are those of loading,
/// but kUnsafe: arrays of Python objects are compared by the bytes of their pickles.
Comparison compare(const Archive& a, const Archive& b, const CompareOptions& options,
                   const std::function<void(std::uint64_t bytes)>& seen = {});

}  // namespace penstock::archive
