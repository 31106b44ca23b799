#pragma once

// One walk over a sample's elements that does all steps of its transforms: moves decide which element comes next, steps
// what becomes of a chunk of them.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "data/transform/conversion.h"
#include "data/transform/geometry.h"
#include "data/transform/loops.h"
#include "data/transform/walk.h"

namespace penstock::data {

/// What happens to a chunk of elements: a conversion to another type where `loop` is null, else that loop. It may give
/// another type than it takes.
struct PassStep {
  DType::Code from = DType::Code::kFloat32;
  DType::Code to = DType::Code::kFloat32;
  Loop loop = nullptr;
  bool strict = false;          ///< of a conversion: values that `to` has no number for are refused
  std::int32_t parameter = -1;  ///< whose values the loop takes
  Operands operands = {};       ///< constants
};

/// The values of a normalize step, in the type that it computes in: means, then deviations.
struct Parameter {
  std::vector<std::byte> mean;
  std::vector<std::byte> std;
  std::size_t width = 4;  ///< bytes of a value
  std::size_t view = 0;   ///< its number among the views that are walked
};

/// What an element pass is made of; element_plan.cpp makes it from the ops.
struct ElementPlan {
  TensorLayout input;
  TensorLayout output;         ///< what it gives, padding included
  Geometry geometry;           ///< the views of source and parameters behind all moves
  std::vector<Op> moves = {};  ///< permute, crop, flip and normalize, in order: what decided the views
  bool random = false;         ///< some of the moves differ from sample to sample: the views are made anew for each
  std::vector<PassStep> steps = {};
  std::vector<Parameter> parameters = {};
  View target = {};  ///< where the elements go in the output
  bool padded = false;
  std::array<std::byte, 16> padding = {};  ///< an element of what lies around them
};

/// The views behind all moves of the plan, with the random numbers of one sample.
Geometry geometry_of(const ElementPlan& plan, Draws* draws);

std::unique_ptr<const Pass> element_pass(ElementPlan plan);

}  // namespace penstock::data
