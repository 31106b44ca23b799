#pragma once

#include <optional>
#include <string>
#include <utility>

#include "penstock/dataset.h"
#include "penstock/sample_stream.h"

namespace penstock::data {

/// By what a loader's position tells a dataset from others of equal size: the names of its first, its last and some
/// samples between. Computed when it is asked for first.
class DatasetName {
 public:
  explicit DatasetName(Dataset dataset) : dataset_(std::move(dataset)) {}
  /// Of a stream, its name.
  explicit DatasetName(const SampleStream& stream);

  /// "cats/0001.npy to dogs/0900.npy, 5f0e33c1": folders above the last one are left out.
  const std::string& name() const;

 private:
  std::optional<Dataset> dataset_;  ///< none: name_ is known
  mutable std::string name_;
};

}  // namespace penstock::data
