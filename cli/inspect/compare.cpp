#include "cli/inspect/compare.h"

#include <cmath>
#include <map>

#include "archive/archive_state.h"
#include "cli/inspect/look_at.h"
#include "cli/option.h"
#include "core/parse_number.h"
#include "format/format.h"

namespace penstock::cli {
namespace {

void take_tolerance(Arguments& arguments, const std::string& name, double& value, const std::string& description) {
  const auto parse = [name, &value](const std::string& text) {
    const auto given = core::parse_number<double>(text);
    if (!given || !std::isfinite(*given) || *given < 0) {
      throw WrongUsage(name + ": takes a number that is not below 0, such as 1e-5");
    }
    value = *given;
  };
  arguments.add(name, parse, description).takes("NUMBER");
}

}  // namespace

void take_comparison(Arguments& arguments, archive::CompareOptions& how) {
  archive::Tolerance& tolerance = how.tolerance;
  take_tolerance(arguments, "--rtol", tolerance.rtol,
                 "Tolerated difference relative to B: |a - b| <= atol + rtol * |b|");
  take_tolerance(arguments, "--atol", tolerance.atol, "Tolerated absolute difference");
  arguments.add(
      "--nan-differs", [&how] { how.tolerance.nan_equal = false; },
      "NaN equals nothing; without it, two NaNs are equal (equal_nan=True of NumPy and torch)");
  arguments.add("--any-dtype", &how.any_dtype, "Compare values alone: dtypes may differ, and 7 is 7.0");
}

archive::Comparison compare_shown(const Archive& a, const Archive& b, const archive::CompareOptions& how) {
  std::uint64_t all = 0;
  for (const TensorEntry& entry : a.entries()) all += entry.nbytes();
  for (const TensorEntry& entry : b.entries()) all += entry.nbytes();
  SharedProgress progress("compared", all);
  return archive::compare(a, b, how, [&](std::uint64_t bytes) { progress.add(bytes); });
}

std::vector<std::string> different_metadata(const Archive& a, const Archive& b) {
  const auto of = [](const Archive& archive) {
    return detail::ArchiveState::of(archive).format->metadata_is_own ? std::map<std::string, std::string>()
                                                                     : archive.metadata();
  };
  const auto of_a = of(a);
  const auto of_b = of(b);
  std::vector<std::string> keys;
  for (const auto& [key, text] : of_a) {
    const auto found = of_b.find(key);
    if (found == of_b.end() || found->second != text) keys.push_back(key);
  }
  for (const auto& [key, text] : of_b) {
    if (!of_a.contains(key)) keys.push_back(key);
  }
  return keys;
}

}  // namespace penstock::cli
