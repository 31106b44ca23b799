#pragma once

#include <functional>
#include <string>

#include "data/pack/sample_form.h"
#include "penstock/value.h"

namespace penstock::data {

/// The samples of one batch as arrays.
struct Shard {
  Value arrays;     ///< a dict of tensors
  SampleForm form;  ///< with offsets where there are any
};

/// `batch` was collated by stack() or ragged() from samples of the form. `describe(i)` is its sample i, for errors.
/// kShapeMismatch, kDTypeMismatch name the first sample that does not go with the ones before.
Shard make_shard(const Value& batch, const SampleForm& form, const std::function<std::string(std::size_t)>& describe);

}  // namespace penstock::data
