#pragma once

// How packed samples are nested, as the metadata of each shard says it.

#include <string>
#include <string_view>
#include <vector>

#include "data/sample/layout.h"

namespace penstock::data {

/// Where a shard holds a tensor of its samples; docs/formats/packed.md.
struct PackedArray {
  std::string values;
  std::string offsets;  ///< empty: sample i is row i of `values`
};

/// How samples are nested, each leaf a tensor, and where a shard holds it.
struct SampleForm {
  Structure structure;
  std::vector<PackedArray> arrays;  ///< of each leaf
};

/// The metadata of a shard that says its form.
inline constexpr std::string_view kSampleFormKey = "penstock.samples";

/// `structure` with every number as a tensor, and an array of a name of its own for each leaf. kUnsupported for what
/// arrays cannot hold; `what` is the sample.
SampleForm form_of(const Structure& structure, const std::string& what);

std::string to_json(const SampleForm& form);
/// kCorrupt for what is no such text of the file at `path`, kLimit for extreme nesting.
SampleForm parse_sample_form(std::string_view json, const std::string& path);

}  // namespace penstock::data
