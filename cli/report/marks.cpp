#include "cli/report/marks.h"

namespace penstock::cli {
namespace {

/// Whether the least normal number is so small that denormals are what is left of something larger.
bool has_wide_exponent(const DType& dtype) {
  return dtype == DType::float64 || dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::complex64 ||
         dtype == DType::complex128;
}

bool is_denormal(const archive::Statistics& of) {
  if (of.denormals() == 0) return false;
  return has_wide_exponent(of.dtype()) || of.denormals() * 2 > of.finite() - of.zeros();
}

}  // namespace

std::vector<std::string_view> marks_of(const archive::Statistics& of) {
  std::vector<std::string_view> marks;
  if (of.nans() > 0) marks.emplace_back("nan");
  if (of.positive_infinities() + of.negative_infinities() > 0) marks.emplace_back("inf");
  if (of.finite() > 1 && of.finite() == of.count()) {
    if (of.zeros() == of.count()) {
      marks.emplace_back("zero");
    } else if (of.min() == of.max() && of.least() == of.greatest()) {
      marks.emplace_back("constant");
    }
  }
  if (is_denormal(of)) marks.emplace_back("denormal");
  return marks;
}

}  // namespace penstock::cli
