// What a loader gives for a file is what `load` gives, in every way in which a loader reads it: recognised by its
// likeness to the files before, parsed, payload straight into the batch, or in two steps as a large file. The same
// values, or an error in both. The second file is the first one with a few bytes changed, which comes closest to being
// taken for it.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/batch/batch_maker.h"
#include "data/sample/work.h"
#include "penstock/load.h"
#include "support/edited.h"
#include "support/input.h"
#include "support/input_file.h"
#include "support/mutator.h"
#include "support/outcome.h"
#include "support/payload.h"
#include "support/same_value.h"
#include "support/sample_value.h"

PENSTOCK_FUZZ_MUTATOR(mutate_file_and_choices)

namespace penstock::fuzz {
namespace {

using Order = std::vector<std::int64_t>;

constexpr std::size_t kFiles = 2;

/// What `load` says of a file, and whether a sample may not be what it gives.
struct Expected {
  Outcome<Value> loaded;
  SampleFit fit = SampleFit::kGood;
  bool opaque = false;
};
using Expectations = std::array<Expected, kFiles>;

Expected expected_of(Outcome<Value> loaded) {
  Expected out{.loaded = std::move(loaded)};
  if (!out.loaded.ok()) return out;
  out.fit = fit_of(*out.loaded.value);
  out.opaque = out.fit == SampleFit::kGood && has_opaque_tensor(*out.loaded.value);
  return out;
}

/// The first key that is text, of a dict.
std::optional<std::string> some_key(const Value& content) {
  for (std::size_t i = 0; content.is(Value::Kind::kDict) && i < content.size(); ++i) {
    const Value key = content.item(i).first;
    if (key.is(Value::Kind::kString)) return key.as_string();
  }
  return std::nullopt;
}

enum class Rule : std::uint8_t { kSamples, kStack, kPadTo };

/// One dataset of the two files, and what its samples are to be.
class Comparison {
 public:
  /// `whole`: a sample is all of its file, so that damage anywhere in it is an error.
  Comparison(Dataset dataset, const Expectations& expected, bool verify, bool whole)
      : dataset_(std::move(dataset)), expected_(expected), verify_(verify), whole_(whole) {}

  void run(std::size_t length) const {
    for (std::size_t i = 0; i < kFiles && verify_; ++i) {
      check_sample(i, attempt([&] { return dataset_.get(static_cast<std::int64_t>(i)); }), "a sample read alone");
    }
    for (const bool large : {false, true}) {
      data::Workspace own;
      own.call.verify = verify_;
      if (large) own.call.whole_file_bytes = 0;
      for (const Rule rule : {Rule::kSamples, Rule::kStack, Rule::kPadTo}) check_batches(rule, length, own);
    }
  }

 private:
  void check_sample(std::size_t i, const Outcome<Value>& sample, const char* what) const {
    const Expected& expected = expected_[i];
    if (whole_ && sample.ok() && !expected.loaded.ok()) fail(named(what, i) + " was read: " + expected.loaded.text());
    if (!expected.loaded.ok() || (!sample.ok() && expected.fit == SampleFit::kRefused)) return;
    if (!sample.ok()) fail(named(what, i) + " was refused, and load reads the file: " + sample.text());
    const std::string found = difference_of(*sample.value, *expected.loaded.value, kValuesAlone);
    if (!found.empty()) fail(named(what, i) + " is not what load gives: " + found);
  }

  std::string named(const char* what, std::size_t i) const {
    return std::string(what) + " of file " + std::to_string(i) + (verify_ ? "" : ", unverified,");
  }

  void check_batches(Rule rule, std::size_t length, data::Workspace& own) const {
    const Collate collate = rule == Rule::kSamples ? collate::samples()
                            : rule == Rule::kStack ? collate::stack()
                                                   : collate::pad_to(static_cast<std::int64_t>(length));
    const data::BatchMaker maker(dataset_, collate, Device{}, 0);
    std::int64_t number = 0;
    for (const Order& order : {Order{0, 0}, Order{0, 1, 0}, Order{1, 0}, Order{1, 1}, Order{0, 0, 1}}) {
      const auto batch = attempt([&] { return maker.make(order, number++, own, [](std::uint64_t) {}).value; });
      check_batch(rule, length, order, batch);
    }
  }

  bool any(const Order& order, bool (*wanted)(const Expected&)) const {
    return std::any_of(order.begin(), order.end(), [&](auto i) { return wanted(expected_[std::size_t(i)]); });
  }

  void check_batch(Rule rule, std::size_t length, const Order& order, const Outcome<Value>& batch) const {
    const bool readable = !any(order, [](const Expected& one) { return !one.loaded.ok(); });
    // What is cut off is not read, and not verified.
    if (whole_ && rule != Rule::kPadTo && batch.ok() && !readable) fail("a batch was made of a file that load refuses");
    if (!readable) return;
    if (!batch.ok()) {
      const bool fits = !any(order, [](const Expected& one) { return one.fit != SampleFit::kGood || one.opaque; });
      const bool alike = std::all_of(order.begin(), order.end(), [&](auto i) { return i == order[0]; });
      const bool sure = rule == Rule::kSamples || (rule == Rule::kStack && alike);
      if (fits && sure) fail("a batch was refused, and load reads its files: " + batch.text());
      return;
    }
    for (std::size_t at = 0; at < order.size(); ++at) {
      const auto i = static_cast<std::size_t>(order[at]);
      if (rule == Rule::kSamples) {
        check_sample(i, {.value = (*batch.value)[at], .error = {}}, "a sample in a list of samples");
        continue;
      }
      const std::optional<std::size_t> cut = rule == Rule::kPadTo ? std::optional(length) : std::nullopt;
      const std::string found = difference_in_batch(*batch.value, at, *expected_[i].loaded.value, cut);
      if (!found.empty()) fail(named("a sample in a batch", i) + " is not what load gives: " + found);
    }
  }

  Dataset dataset_;
  const Expectations& expected_;
  bool verify_;
  bool whole_;
};

/// What load gives; None and `small` false for a file that is more than is worth the time.
Outcome<Value> load_small(const std::string& path, bool verify, bool& small) {
  return attempt([&] {
    const Archive archive = open(path, {.verify = verify});
    small = small && is_small(archive);
    return small ? archive.load({.verify = verify, .threads = 1}) : Value();
  });
}

void check(std::span<const std::byte> content, Choices choices) {
  const bool verify = !choices.flag();
  const std::vector<std::byte> other = edited(content, choices);
  const std::array<InputFile, kFiles> inputs{InputFile(content), InputFile(other)};
  const std::vector<std::string> paths{inputs[0].path(), inputs[1].path()};
  const std::size_t length = choices.below(40);

  Expectations expected;
  bool small = true;
  for (std::size_t i = 0; i < kFiles && small; ++i) expected[i] = expected_of(load_small(paths[i], verify, small));
  const auto huge = [](const Expected& one) { return one.fit == SampleFit::kHuge; };
  if (!small || std::any_of(expected.begin(), expected.end(), huge)) return;
  Comparison(files(paths), expected, verify, true).run(length);

  const std::optional<std::string> key = expected[0].loaded.ok() ? some_key(*expected[0].loaded.value) : std::nullopt;
  if (!key) return;
  Expectations parts;
  for (std::size_t i = 0; i < kFiles; ++i) {
    parts[i] = expected_of(attempt([&] {
      if (!expected[i].loaded.ok()) throw *expected[i].loaded.error;
      return Value::dict({{*key, (*expected[i].loaded.value)[*key]}});
    }));
  }
  Comparison(files(paths, {.keys = {*key}}), parts, verify, false).run(length);
}

}  // namespace
}  // namespace penstock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock::fuzz;
  const Input input = split_input(data, size);
  check(input.file, Choices(input.choices));
  return 0;
}
