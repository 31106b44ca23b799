#include "support/written_checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "penstock/load.h"
#include "penstock/save.h"
#include "support/outcome.h"
#include "support/same_value.h"
#include "support/scratch_folder.h"

namespace penstock::fuzz {

namespace {

namespace fs = std::filesystem;
using Kind = Value::Kind;

/// Tensors that are leaves lose their marks; objects keep the states of what is in them.
constexpr SameOptions kAsWritten{.states = true, .marks = false, .arrays = false};

bool is_taken_apart(const Value& value) {
  if (!value.is(Kind::kList)) return value.is(Kind::kTensor) || value.is(Kind::kDict);
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (is_taken_apart(value[i])) return true;
  }
  return false;
}

/// What a checkpoint of `value` is read as: plain dicts with text as keys. Only of what could be saved, which does not
/// nest deep or hold itself.
Value as_read(const Value& value) {
  if (value.is(Kind::kDict) && value.size() != 0) {
    std::vector<std::pair<std::string, Value>> items;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const auto [key, item] = value.item(i);
      items.emplace_back(key.is(Kind::kInt) ? std::to_string(key.as_int()) : key.as_string(), as_read(item));
    }
    return Value::dict(std::move(items));
  }
  if (!value.is(Kind::kList) || !is_taken_apart(value)) return value;
  std::vector<Value> items;
  for (std::size_t i = 0; i < value.size(); ++i) items.push_back(as_read(value[i]));
  return Value::list(std::move(items));
}

Value root_as_read(const Value& root) {
  using Items = std::vector<std::pair<std::string, Value>>;
  if (root.is(Kind::kTensor)) return Value::dict(Items{{"tensor", root}});
  return root.size() == 0 ? Value::dict(Items{}) : as_read(root);
}

bool is_refusal(ErrorCode code) {
  return code == ErrorCode::kUnsupported || code == ErrorCode::kLimit || code == ErrorCode::kInvalidArgument;
}

}  // namespace

void check_written_checkpoint(const Value& value) {
  static const ScratchFolder scratch;
  const fs::path folder = scratch.path() / "checkpoint";
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  const auto save_once = [&] {
    return attempt([&] {
      save(value, folder, {.format = "dcp", .sync = false});
      return true;
    });
  };
  const auto written = save_once();
  if (!written.ok()) {
    if (!is_refusal(written.error->code())) fail("a checkpoint was not written: " + written.text());
    if (fs::exists(folder)) fail("a checkpoint was refused, and its folder is there: " + written.text());
    return;
  }
  if (const auto again = save_once(); !again.ok()) fail("a checkpoint was not replaced: " + again.text());
  const auto files = std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  if (files != 2) fail("a checkpoint that was replaced has " + std::to_string(files) + " files");
  const auto read = attempt([&] { return open(folder).load({.threads = 1}); });
  if (!read.ok()) fail("a checkpoint that was written cannot be read: " + read.text());
  const std::string found = difference_of(root_as_read(value), *read.value, kAsWritten);
  if (!found.empty()) fail("a checkpoint is read as another value: " + found);
}

}  // namespace penstock::fuzz
