#pragma once

#include <cstdint>
#include <string>

#include "penstock/save.h"
#include "penstock/value.h"

namespace penstock::data {

/// Where files are written that appear together or not at all: a folder, or a prefix of a bucket.
class NewPlace {
 public:
  virtual ~NewPlace() = default;

  /// Writes a file of it as penstock::save does. Its bytes.
  virtual std::uint64_t save(const Value& value, const std::string& name, const SaveOptions& options) = 0;
  /// All files appear. Call once, last.
  virtual void commit() = 0;
};

}  // namespace penstock::data
