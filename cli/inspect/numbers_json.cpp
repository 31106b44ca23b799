#include "cli/inspect/numbers_json.h"

#include <cstdint>
#include <string_view>

#include "archive/inspect/summary.h"
#include "cli/inspect/look_at.h"
#include "core/format.h"

namespace penstock::cli {
namespace {

using archive::Histogram;
using archive::Statistics;

void write_histogram(JsonWriter& out, const Histogram& histogram, std::size_t most) {
  const Histogram::Bins bins = histogram.bins(most);
  out.write_key("histogram");
  out.begin_object(JsonWriter::Layout::kCompact);
  out.write_key("begin");
  out.write_raw(core::format("{}", bins.begin));
  out.write_key("width");
  out.write_raw(core::format("{}", bins.width));
  out.write_key("counts");
  out.begin_array(JsonWriter::Layout::kCompact);
  for (const std::uint64_t count : bins.counts) out.write_raw(core::format("{}", count));
  out.end();
  out.end();
}

}  // namespace

bool has_numbers(const TensorEntry& entry) { return entry.dtype.is_numeric() && !entry.pickled; }

std::vector<Statistics> summarise_shown(const Archive& archive, const std::vector<bool>& wanted) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const TensorEntry& entry = archive.entries()[i];
    all += wanted[i] && has_numbers(entry) ? entry.nbytes() : 0;
  }
  SharedProgress progress("read", all);
  return archive::summarise(
      archive, [&](std::uint64_t bytes) { progress.add(bytes); }, asked_of(archive, wanted));
}

std::string bound_text(const Statistics& of, bool least) {
  const std::int64_t exact = least ? of.least() : of.greatest();
  if (of.dtype() == DType::uint64) return core::format("{}", static_cast<std::uint64_t>(exact));
  if (of.dtype().is_integer() || of.dtype() == DType::boolean) return core::format("{}", exact);
  return core::format("{}", least ? of.min() : of.max());
}

void write_numbers(JsonWriter& out, const Statistics& of, std::size_t bins) {
  write_members(out, Json{{"zeros", of.zeros()},
                          {"denormals", of.denormals()},
                          {"nan", of.nans()},
                          {"inf", of.positive_infinities()},
                          {"negative_inf", of.negative_infinities()},
                          {"finite", of.finite()}});
  const auto number = [&](std::string_view key, const std::string& text) {
    out.write_key(key);
    out.write_raw(of.finite() == 0 ? "null" : text);
  };
  number("min", bound_text(of, true));
  number("max", bound_text(of, false));
  number("mean", core::format("{}", of.mean()));
  number("std", core::format("{}", of.deviation()));
  write_histogram(out, of.histogram(), bins);
}

}  // namespace penstock::cli
