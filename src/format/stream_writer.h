#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "penstock/dtype.h"
#include "penstock/shape.h"
#include "penstock/value.h"

namespace penstock::format {

/// A file of one format that is written tensor by tensor: what a format has for penstock::Writer, which checks the
/// order of calls. For each tensor `check`, `begin`, `write` until all elements are there, `end`; then `finish`. The
/// file is dropped with the object unless it was finished. Not thread-safe.
class StreamWriter {
 public:
  virtual ~StreamWriter() = default;

  /// Throws for what the format cannot hold. Writes nothing.
  virtual void check(const std::string& name, const DType& dtype, const Shape& shape) const = 0;
  /// Where Format::is_one_tensor, shape[0] is how many rows there are already, else how many there will be.
  virtual void begin(const std::string& name, const DType& dtype, const Shape& shape) = 0;
  /// The next elements, in C order.
  virtual void write(std::span<const std::byte> bytes) = 0;
  /// `shape`: with all rows.
  virtual void end(const Shape& shape) = 0;
  /// A whole sample, of a format that holds samples (Format::holds_samples): throws for what is wrong with it, and
  /// gives what writes it.
  virtual std::function<void()> sample(const Value&) { return {}; }
  /// The file appears under its name.
  virtual void finish() = 0;

  /// What a file that is resumed holds.
  struct Rows {
    DType dtype;
    Shape shape;
    std::int64_t limit;  ///< its header has no room for more rows
  };
  virtual std::optional<Rows> present() const { return std::nullopt; }
};

}  // namespace penstock::format
