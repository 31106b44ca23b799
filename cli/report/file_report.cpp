#include "cli/report/file_report.h"

#include <cstdint>
#include <filesystem>

#include "cli/inspect/numbers_json.h"
#include "cli/json/json_type.h"
#include "cli/terminal/terminal.h"
#include "io/source/composed_source.h"

namespace penstock::cli {

namespace {

constexpr std::size_t kBins = 32;
/// A page is no place for long texts, which `cat` prints.
constexpr std::size_t kMostText = 2000;

Json metadata_json(const Archive& archive) {
  Json out = Json::object();
  for (const auto& [key, text] : archive.metadata()) add_member(out, key, shortened(text, kMostText));
  return out;
}

std::uint64_t file_bytes(const Archive& archive) {
  std::uint64_t bytes = 0;
  for (const Source& source : archive.sources()) bytes += io::as_composed(source) ? 0 : source.size();
  return bytes;
}

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

FileReport::FileReport(const Archive& archive, bool with_values, std::size_t most_leaves) : archive_(archive) {
  if (with_values) statistics_ = summarise_shown(archive, std::vector<bool>(archive.entries().size(), true));
  leaves_ = archive::leaves_of(archive);
  if (leaves_.size() <= most_leaves) return;
  leaves_left_out_ = leaves_.size() - most_leaves;
  leaves_.erase(leaves_.begin() + static_cast<std::ptrdiff_t>(most_leaves), leaves_.end());
}

void FileReport::write(JsonWriter& out) const {
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  for (const TensorEntry& entry : archive_.entries()) {
    elements += static_cast<std::uint64_t>(entry.shape.numel());
    bytes += entry.nbytes();
  }
  const auto unknown = archive_.unknown_globals();
  write_members(out, Json{{"format", archive_.format()},
                          {"file_bytes", file_bytes(archive_)},
                          {"elements", elements},
                          {"bytes", bytes},
                          {"values_read", !statistics_.empty() || archive_.entries().empty()},
                          {"metadata", metadata_json(archive_)},
                          {"unknown_globals", std::vector(unknown.begin(), unknown.end())}});
  write_values(out);
  write_tensors(out);
}

void FileReport::write_values(JsonWriter& out) const {
  out.write_key("values");
  out.begin_array();
  for (const archive::Leaf& leaf : leaves_) {
    write_json(out, Json{{"name", leaf.path}, {"value", shortened(leaf.value.to_string(), kMostText)}});
  }
  out.end();
  write_members(out, Json{{"values_left_out", leaves_left_out_}});
}

void FileReport::write_tensors(JsonWriter& out) const {
  out.write_key("tensors");
  out.begin_array(JsonWriter::Layout::kCompact);
  const auto entries = archive_.entries();
  const bool has_shards = archive_.sources().size() > 2;  // an index is one source, and so is each shard
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const TensorEntry& entry = entries[i];
    out.begin_object();
    write_members(out, Json{{"name", entry.name},
                            {"dtype", entry.dtype.name()},
                            {"shape", std::vector(entry.shape.begin(), entry.shape.end())},
                            {"elements", entry.shape.numel()},
                            {"bytes", entry.nbytes()}});
    if (has_shards) {
      const Source& source = archive_.sources()[archive_.storages()[entry.storage].source];
      write_members(out, Json{{"file", std::filesystem::path(source.name()).filename().string()}});
    }
    if (!statistics_.empty() && has_numbers(entry)) {
      write_numbers(out, statistics_[i], kBins);
      write_members(out, Json{{"marks", marks_of(statistics_[i])}});
    }
    out.end();
  }
  out.end();
}

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
