// The functions that open a file and load all of it by one call. load_tensor() looks for the only tensor, which may be
// nested in lists and dicts of one item.

#include "penstock/load.h"

#include <algorithm>

#include "archive/archive_state.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/stop_scope.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "penstock/error.h"

namespace penstock {
namespace {

constexpr std::size_t kNamed = 4;

bool is_sequence(const Value& value) { return value.is(Value::Kind::kList) || value.is(Value::Kind::kTuple); }

/// The entry that is all of `value`: `value` is a tensor, or a container whose only item is one, at any depth.
std::optional<std::size_t> only_entry(const Value& value) {
  Value at = value;
  // The bound ends the search in containers that hold themselves. No real file nests as deep.
  for (int depth = 0; depth < 64; ++depth) {
    if (at.is(Value::Kind::kTensor)) return at.entry_index();
    if (at.size() != 1 || !(is_sequence(at) || at.is(Value::Kind::kDict))) return std::nullopt;
    at = is_sequence(at) ? at[std::size_t{0}] : at.item(0).second;
  }
  return std::nullopt;
}

std::string what_is_there(const Archive& archive) {
  const auto entries = archive.entries();
  if (entries.empty()) return "no tensor";
  if (entries.size() == 1) return core::format("the tensor {} and other values", core::quoted(entries[0].name));
  std::string names;
  for (std::size_t i = 0; i < std::min(entries.size(), kNamed); ++i) {
    names += core::format("{}{}", i == 0 ? "" : ", ", core::quoted(entries[i].name));
  }
  return core::format("{} ({}{})", core::counted(entries.size(), "tensor"), names,
                      entries.size() > kNamed ? ", ..." : "");
}

void add_open_time(const core::Stopwatch& watch, const LoadOptions& options) {
  if (options.report != nullptr) options.report->total_seconds = watch.total();
}

}  // namespace

Tensor load_tensor(TextView path, const LoadOptions& options) {
  core::Stopwatch watch;
  const core::StopScope scope(options.stop);  // a server may not answer
  const Archive archive = open(path, {options.verify});
  const auto only = only_entry(archive.structure());
  if (!only) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the file holds {}, where one tensor alone was expected: open it and take one by name, or "
                             "load the whole value",
                             what_is_there(archive)),
                {archive.path()});
  }
  Tensor tensor = archive.entry(*only).load(options);
  add_open_time(watch, options);
  return tensor;
}

Value load(TextView path, const LoadOptions& options) {
  core::Stopwatch watch;
  const core::StopScope scope(options.stop);
  Value value = open(path, {options.verify}).load(options);
  add_open_time(watch, options);
  return value;
}

}  // namespace penstock
