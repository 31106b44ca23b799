#include "cli/report/diff_report.h"

#include "cli/inspect/compare.h"
#include "cli/inspect/diff_text.h"
#include "cli/json/json.h"

namespace penstock::cli {
namespace {

Json side(const Archive& archive) {
  std::uint64_t bytes = 0;
  for (const TensorEntry& entry : archive.entries()) bytes += entry.nbytes();
  return Json{
      {"path", archive.path()}, {"format", archive.format()}, {"tensors", archive.entries().size()}, {"bytes", bytes}};
}

}  // namespace

void write_how(JsonWriter& out, const archive::CompareOptions& how) {
  write_members(
      out, Json{{"rtol", how.tolerance.rtol}, {"atol", how.tolerance.atol}, {"nan_equal", how.tolerance.nan_equal}});
}

void write_diff(JsonWriter& out, const Archive& a, const Archive& b, const archive::Comparison& comparison) {
  write_members(out, Json{{"a", side(a)},
                          {"b", side(b)},
                          {"equal", comparison.is_equal()},
                          {"equal_tensors", comparison.equal_tensors},
                          {"equal_values", comparison.equal_leaves},
                          {"different_metadata", different_metadata(a, b)}});
  out.write_key("differences");
  out.begin_array();
  for (const archive::Mismatch& place : comparison.places) write_json(out, to_json({a, b, comparison}, place));
  out.end();
}

}  // namespace penstock::cli
