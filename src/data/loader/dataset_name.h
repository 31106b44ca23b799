#pragma once

#include <optional>
#include <string>
#include <utility>

#include "penstock/dataset.h"
#include "penstock/sample_stream.h"

namespace penstock::data {

/// By what a loader's position tells what it reads from other datasets of equal size, and from other streams. Computed
/// when it is asked for first.
class DatasetName {
 public:
  explicit DatasetName(Dataset dataset) : dataset_(std::move(dataset)) {}
  explicit DatasetName(SampleStream stream) : stream_(std::move(stream)) {}

  const std::string& name() const;

 private:
  Dataset dataset_;
  std::optional<SampleStream> stream_;
  mutable bool is_known_ = false;
  mutable std::string name_;
};

}  // namespace penstock::data
