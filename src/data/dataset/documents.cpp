// Documents are slices of one long array. Where they lie is said by an index, or found by looking for the token that
// each of them begins with.

#include "penstock/documents.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "archive/archive_state.h"
#include "core/format.h"
#include "data/dataset/sample_array.h"
#include "data/dataset/slices.h"
#include "data/dataset_impl.h"
#include "data/scan/glob.h"
#include "data/scan/name_match.h"
#include "format/format.h"
#include "io/file/file_url.h"
#include "io/locations.h"
#include "penstock/error.h"
#include "penstock/windows.h"

namespace penstock {
namespace {

constexpr std::string_view kIndexEnd = ".idx";
constexpr std::string_view kTokensEnd = ".bin";
/// Tokens that are read at a time where all are looked at.
constexpr std::int64_t kTokensAtOnce = std::int64_t{4} << 20;

/// The archive at a location, or nothing where no file is, or one of no known format.
std::optional<Archive> open_if_known(const std::string& location) {
  std::optional<Source> source;
  try {
    source = open_source(location);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIsDirectory && !io::tells_absence(error, location)) throw;
    return std::nullopt;
  }
  return format::find_format(**source) == nullptr ? std::nullopt : std::optional(open(*source));
}

/// `location` with this end in place of what follows `keep` characters of it; the query of a URL stays.
std::string with_end(const std::string& location, std::size_t keep, std::string_view end) {
  return location.substr(0, keep) + std::string(end) + location.substr(io::query_begin(location));
}

/// The archive that NAME.idx, NAME.bin or NAME means.
Archive open_tokens_at(const std::string& location) {
  const std::string_view whole = io::path_part(location);
  if (whole.ends_with(kIndexEnd)) return open(location);
  const bool is_tokens = whole.ends_with(kTokensEnd);
  if (is_tokens) {
    if (auto own = open_if_known(location)) return *std::move(own);
  }
  const std::size_t name = whole.size() - (is_tokens ? kTokensEnd.size() : 0);
  if (auto index = open_if_known(with_end(location, name, kIndexEnd))) return *std::move(index);
  return open(location);  // or its error
}

void require_tokens(const LazyTensor& tokens, const std::string& path) {
  if (tokens.shape().rank() == 1) return;
  throw Error(
      ErrorCode::kShapeMismatch,
      core::format("documents lie in an array of one dimension, found one of shape {}", tokens.shape().to_string()),
      {.path = path});
}

/// Where the tokens that are `begin` lie.
template <class Token>
void find_all(std::span<const Token> tokens, Token begin, std::int64_t first, std::vector<std::int64_t>& out) {
  for (auto at = std::ranges::find(tokens, begin); at != tokens.end(); at = std::find(at + 1, tokens.end(), begin)) {
    out.push_back(first + (at - tokens.begin()));
  }
}

void find_begins(const Tensor& tokens, std::int64_t begin, std::int64_t first, std::vector<std::int64_t>& out) {
  const auto find = [&]<class Token>() {
    if (!std::in_range<Token>(begin)) return;
    find_all<Token>(tokens.values<const Token>(), static_cast<Token>(begin), first, out);
  };
  const DType& dtype = tokens.dtype();
  if (dtype == DType::uint8) return find.operator()<std::uint8_t>();
  if (dtype == DType::uint16) return find.operator()<std::uint16_t>();
  if (dtype == DType::uint32) return find.operator()<std::uint32_t>();
  if (dtype == DType::uint64) return find.operator()<std::uint64_t>();
  if (dtype == DType::int8) return find.operator()<std::int8_t>();
  if (dtype == DType::int16) return find.operator()<std::int16_t>();
  if (dtype == DType::int32) return find.operator()<std::int32_t>();
  if (dtype == DType::int64) return find.operator()<std::int64_t>();
  throw Error(ErrorCode::kDTypeMismatch,
              core::format("documents are found by a token, and {} is no type of tokens", dtype.name()));
}

Dataset beginning_with(const LazyTensor& tokens, std::int64_t begin, OptionalFlag mmap) {
  const std::string& path = tokens.source().name();
  require_tokens(tokens, path);
  const std::int64_t count = tokens.size(0);
  std::vector<std::int64_t> starts;
  for (std::int64_t at = 0; at < count; at += kTokensAtOnce) {
    const LazyTensor part = tokens.slice(0, at, std::min(count, at + kTokensAtOnce));
    find_begins(part.load(), begin, at, starts);
  }
  if (count > 0 && (starts.empty() || starts.front() != 0)) starts.insert(starts.begin(), 0);
  std::vector<std::int64_t> lengths(starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    lengths[i] = (i + 1 < starts.size() ? starts[i + 1] : count) - starts[i];
  }
  return slices(rows(tokens, mmap), starts, lengths);
}

/// The format of a file that has documents.
const format::Format& format_of(const Archive& archive) {
  const format::Format& format = *detail::ArchiveState::of(archive).format;
  if (format.documents != nullptr) return format;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("a file of the format {} says nothing of documents; give their tokens, as an array, and the "
                           "token that each begins with",
                           format.name),
              {.path = archive.path()});
}

Dataset documents_in(const Archive& archive, const DocumentsOptions& options) {
  const format::DocumentUnit unit =
      options.sequences ? format::DocumentUnit::kSequence : format::DocumentUnit::kDocument;
  const format::Documents found = format_of(archive).documents(detail::ArchiveState::of(archive).index, unit);
  const LazyTensor tokens = archive.entry(found.tokens);
  if (found.begin) return beginning_with(tokens, options.begin.value_or(*found.begin), options.mmap);
  if (options.begin) {
    throw Error(ErrorCode::kInvalidArgument, "found a token to begin documents with, but the file says where they lie",
                {.path = archive.path()});
  }
  return slices(rows(tokens, options.mmap), found.starts, found.lengths);
}

/// Slices of all files, in one table; samples of several kinds where their tokens have several types.
Dataset put_together(const std::vector<Dataset>& parts) {
  if (parts.empty()) return concat(parts);
  std::vector<std::shared_ptr<const data::SlicedArrays>> slices;
  for (const Dataset& part : parts) slices.push_back(part.impl().slices());
  const DType& first = slices.front()->parts.dtype();
  const auto is_like_first = [&](const auto& part) { return part->parts.dtype() == first; };
  if (!std::all_of(slices.begin(), slices.end(), is_like_first)) return concat(parts);
  return data::sliced(data::SlicedArrays::joined(slices));
}

/// Documents of files that are mapped, or not, together.
Dataset joined(const std::vector<Archive>& archives, const DocumentsOptions& options) {
  std::uint64_t bytes = 0;
  for (const Archive& archive : archives) {
    for (const Source& source : archive.sources()) bytes += source.size();
  }
  DocumentsOptions all = options;
  all.mmap = data::access_for(options.mmap, bytes) == data::Access::kMapped;
  std::vector<Dataset> parts;
  for (const Archive& archive : archives) parts.push_back(documents_in(archive, all));
  return parts.size() == 1 ? parts.front() : put_together(parts);
}

/// A file may have a name with brackets.
bool is_pattern(const std::string& location) {
  std::error_code ignored;
  const auto is_there = [&](const std::string& path) { return std::filesystem::exists(path, ignored); };
  return data::is_magic(location) && !is_there(location) && !is_there(location + std::string(kIndexEnd));
}

}  // namespace

Dataset documents(TextView location, const DocumentsOptions& options) {
  const std::string text = io::local_path(location);
  if (!is_pattern(text)) return joined({open_tokens_at(text)}, options);
  const data::PathTable found = data::expand(text);
  std::vector<Archive> archives;
  std::set<std::string> seen;  // NAME.bin and NAME.idx are one
  for (std::int64_t i = 0; i < found.size(); ++i) {
    Archive archive = open_tokens_at(found.path(i));
    if (seen.insert(archive.path()).second) archives.push_back(std::move(archive));
  }
  return joined(archives, options);
}

Dataset documents(const std::vector<std::string>& locations, const DocumentsOptions& options) {
  std::vector<Archive> archives;
  for (const std::string& location : locations) archives.push_back(open_tokens_at(location));
  return joined(archives, options);
}

Dataset documents(const LazyTensor& tokens, Integer begin, OptionalFlag mmap) {
  return beginning_with(tokens, begin, mmap);
}

}  // namespace penstock
