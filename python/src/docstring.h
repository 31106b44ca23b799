#pragma once

// Docstrings in NumPy's style, put together of what functions have in common.

#include <initializer_list>
#include <string>
#include <string_view>

namespace penstock::python::docs {

struct Parameter {
  std::string_view name;
  std::string_view text;
};

/// `summary`, which may have further paragraphs, the parameters and what is returned, in lines of 96 characters at
/// most.
std::string docstring(std::string_view summary, std::initializer_list<Parameter> parameters = {},
                      std::string_view returns = {});

inline constexpr Parameter kDims{"dim", "The dimension or dimensions that are reduced; None for all of them."};
inline constexpr Parameter kOneDim{"dim", "The dimension that is reduced; None for all of them together."};
inline constexpr Parameter kKeepdim{"keepdim", "Keep reduced dimensions, with size 1."};
inline constexpr Parameter kSumType{"dtype", "The dtype of the result, in which the elements are added."};
inline constexpr Parameter kMadeType{"dtype", "The dtype of the elements; float32 unless given."};
inline constexpr Parameter kMadeDevice{"device", "Where the memory is taken; the CPU unless given."};
inline constexpr Parameter kSize{"size", "The sizes of the dimensions, each by itself or all in one sequence."};
inline constexpr Parameter kGenerator{
    "generator", "Where the random bits come from. Without one the numbers are other ones at each call."};
inline constexpr Parameter kWhichDevice{"device", "A Device, its text or its index; the current one unless given."};

}  // namespace penstock::python::docs
