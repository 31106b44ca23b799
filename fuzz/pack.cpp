// Samples that are packed come back as they were, or packing is refused, as it is where a file of theirs is damaged.
// The second file is the first one with a few bytes changed.

#include "penstock/pack.h"

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "penstock/load.h"
#include "support/edited.h"
#include "support/input.h"
#include "support/input_file.h"
#include "support/mutator.h"
#include "support/outcome.h"
#include "support/payload.h"
#include "support/same_value.h"
#include "support/sample_value.h"
#include "support/scratch_folder.h"

PENSTOCK_FUZZ_MUTATOR(mutate_file_and_choices)

namespace penstock::fuzz {
namespace {

namespace fs = std::filesystem;
using Kind = Value::Kind;

/// A folder that is not there, in one that lasts as long as the program runs.
std::string fresh_folder() {
  static const ScratchFolder scratch;
  const fs::path folder = scratch.path() / "packed";
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return folder;
}

/// Empty where `packed` is `sample` with its numbers as tensors and its dicts and tuples plain.
std::string difference_when_packed(const Value& packed, const Value& sample) {
  switch (sample.kind()) {
    case Kind::kTensor:
      return difference_of(packed.as_tensor(), sample.as_tensor(), kValuesAlone);
    case Kind::kBool:
      return packed.as_tensor().item<bool>() == sample.as_bool() ? "" : "another truth value";
    case Kind::kInt:
      return packed.as_tensor().item<std::int64_t>() == sample.as_int() ? "" : "another integer";
    case Kind::kFloat: {
      const double number = packed.as_tensor().item<double>();
      const bool same = number == sample.as_float() || (number != number && sample.as_float() != sample.as_float());
      return same ? "" : "another number";
    }
    default:
      break;
  }
  if (packed.kind() != sample.kind() || packed.size() != sample.size()) return "another structure";
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const bool dict = sample.is(Kind::kDict);
    if (dict && packed.item(i).first.as_string() != sample.item(i).first.as_string()) return "another key";
    std::string found = dict ? difference_when_packed(packed.item(i).second, sample.item(i).second)
                             : difference_when_packed(packed[i], sample[i]);
    if (!found.empty()) return found;
  }
  return {};
}

void check(std::span<const std::byte> content, Choices choices) {
  const std::vector<std::byte> other = edited(content, choices);
  const InputFile first(content);
  const InputFile second(other);
  const std::vector<std::string> paths{first.path(), second.path(), first.path()};
  std::vector<Outcome<Value>> loaded;
  for (const std::string& path : paths) {
    loaded.push_back(attempt([&] {
      const Archive archive = open(path);
      return is_small(archive) ? archive.load({.threads = 1}) : Value();
    }));
    if (loaded.back().ok() && fit_of(*loaded.back().value) != SampleFit::kGood) return;
  }
  std::optional<bool> mmap;
  if (const std::size_t way = choices.below(3)) mmap = way == 1;
  const std::uint64_t shard_bytes = choices.flag() ? 1 : 1 << 20;

  const std::string folder = fresh_folder();
  const auto done = attempt([&] { return pack(files(paths), folder, {.shard_bytes = shard_bytes, .num_workers = 0}); });
  if (!done.ok()) {
    if (fs::exists(folder)) fail("a refused packing left a folder behind: " + done.text());
    return;
  }
  for (const Outcome<Value>& one : loaded) {
    if (!one.ok()) fail("a file was packed that load refuses: " + one.text());
  }
  const auto read = attempt([&] {
    const Dataset dataset = packed(folder, mmap);
    if (dataset.size() != std::ssize(paths)) fail("another number of samples was packed");
    for (std::int64_t i = 0; i < dataset.size(); ++i) {
      const std::string found = difference_when_packed(dataset.get(i), *loaded[static_cast<std::size_t>(i)].value);
      if (!found.empty()) fail("a packed sample is not what load gives: " + found);
    }
    return true;
  });
  if (!read.ok()) fail("what was packed cannot be read: " + read.text());
}

}  // namespace
}  // namespace penstock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock::fuzz;
  const Input input = split_input(data, size);
  check(input.file, Choices(input.choices));
  return 0;
}
