// What a loader gives for a file is what `load` gives, in every way in which a loader reads it: recognised by its
// likeness to the files before, parsed, payload straight into the batch, or in two steps as a large file. The same
// values, or an error in both. The second file is the first one with a few bytes changed, which comes closest to being
// taken for it.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "data/batch_maker.h"
#include "data/scratch.h"
#include "penstock/load.h"
#include "support/input.h"
#include "support/input_file.h"
#include "support/mutator.h"
#include "support/outcome.h"
#include "support/payload.h"
#include "support/same_value.h"
#include "support/sample_value.h"
#include "support/zip_mending.h"

PENSTOCK_FUZZ_MUTATOR(mutate_file_and_choices)

namespace penstock::fuzz {
namespace {

using Order = std::vector<std::int64_t>;

constexpr std::size_t kMostEdits = 7;
constexpr std::size_t kFiles = 2;

std::vector<std::byte> edited(std::span<const std::byte> file, Choices& choices) {
  std::vector<std::byte> out(file.begin(), file.end());
  const std::size_t edits = choices.below(kMostEdits + 1);
  for (std::size_t i = 0; i < edits && !out.empty(); ++i) {
    const std::size_t at = choices.word() % out.size();
    // Counted from the end too, where an archive has its directory.
    out[choices.flag() ? out.size() - 1 - at : at] ^= static_cast<std::byte>(choices.byte());
  }
  switch (choices.below(6)) {
    case 1:
      out.resize(out.size() - std::min<std::size_t>(out.size(), choices.byte()));
      break;
    case 2:
      out.resize(out.size() + choices.byte());
      break;
    case 3:
    case 4:
      mend_checksums(out);
      break;
    default:
      break;
  }
  return out;
}

/// What `load` says of a file, and whether a sample may not be what it gives.
struct Expected {
  Outcome<Value> loaded;
  SampleFit fit = SampleFit::kGood;
  bool opaque = false;
};

class Check {
 public:
  Check(std::span<const std::byte> file, Choices choices)
      : choices_(choices),
        verify_(!choices_.flag()),
        other_(edited(file, choices_)),
        files_{InputFile(file), InputFile(other_)},
        dataset_(files(std::vector<std::string>{files_[0].path(), files_[1].path()})) {}

  void run() {
    for (std::size_t i = 0; i < kFiles; ++i) {
      if (!expect(i)) return;
    }
    for (std::size_t i = 0; i < kFiles && verify_; ++i) {
      check_sample(i, attempt([&] { return dataset_.get(static_cast<std::int64_t>(i)); }), "a sample read alone");
    }
    for (const bool large : {false, true}) {
      data::Scratch scratch;
      scratch.verify_checksums = verify_;
      if (large) scratch.whole_file_bytes = 0;
      check_batches(true, scratch);
      check_batches(false, scratch);
    }
  }

 private:
  /// False where the file is more than is worth the time.
  bool expect(std::size_t i) {
    Expected& expected = expected_[i];
    bool small = true;
    expected.loaded = attempt([&] {
      const Archive archive = open(files_[i].path(), {.verify_checksums = verify_});
      small = is_small(archive);
      return small ? archive.load({.verify_checksums = verify_, .threads = 1}) : Value();
    });
    if (!small) return false;
    if (!expected.loaded.ok()) return true;
    expected.fit = fit_of(*expected.loaded.value);
    expected.opaque = expected.fit == SampleFit::kGood && has_opaque_tensor(*expected.loaded.value);
    return expected.fit != SampleFit::kHuge;
  }

  void check_sample(std::size_t i, const Outcome<Value>& sample, const char* what) const {
    const Expected& expected = expected_[i];
    if (sample.ok() && !expected.loaded.ok()) fail(named(what, i) + " was read: " + expected.loaded.text());
    if (!expected.loaded.ok() || (!sample.ok() && expected.fit == SampleFit::kRefused)) return;
    if (!sample.ok()) fail(named(what, i) + " was refused, and load reads the file: " + sample.text());
    const std::string found = difference_of(*sample.value, *expected.loaded.value, kValuesAlone);
    if (!found.empty()) fail(named(what, i) + " is not what load gives: " + found);
  }

  std::string named(const char* what, std::size_t i) const {
    return std::string(what) + " of file " + std::to_string(i) + (verify_ ? "" : ", unverified,");
  }

  void check_batches(bool apart, data::Scratch& scratch) const {
    const data::BatchMaker maker(dataset_, apart ? samples() : stack(), Device{}, 0);
    std::int64_t number = 0;
    for (const Order& order : {Order{0, 0}, Order{0, 1, 0}, Order{1, 0}, Order{1, 1}, Order{0, 0, 1}}) {
      const auto batch = attempt([&] { return maker.make(order, number++, scratch, [](std::uint64_t) {}).value; });
      check_batch(apart, order, batch);
    }
  }

  bool any(const Order& order, bool (*wanted)(const Expected&)) const {
    return std::any_of(order.begin(), order.end(), [&](auto i) { return wanted(expected_[std::size_t(i)]); });
  }

  void check_batch(bool apart, const Order& order, const Outcome<Value>& batch) const {
    const bool readable = !any(order, [](const Expected& one) { return !one.loaded.ok(); });
    if (batch.ok() && !readable) fail("a batch was made of a file that load refuses");
    if (!readable) return;
    if (!batch.ok()) {
      const bool fits = !any(order, [](const Expected& one) { return one.fit != SampleFit::kGood || one.opaque; });
      const bool alike = apart || std::all_of(order.begin(), order.end(), [&](auto i) { return i == order[0]; });
      if (fits && alike) fail("a batch was refused, and load reads its files: " + batch.text());
      return;
    }
    for (std::size_t at = 0; at < order.size(); ++at) {
      const auto i = static_cast<std::size_t>(order[at]);
      if (apart) {
        check_sample(i, {.value = (*batch.value)[at], .error = {}}, "a sample in a list of samples");
        continue;
      }
      const std::string found = difference_in_batch(*batch.value, at, *expected_[i].loaded.value);
      if (!found.empty()) fail(named("a sample in a stack", i) + " is not what load gives: " + found);
    }
  }

  Choices choices_;
  bool verify_;
  std::vector<std::byte> other_;
  std::array<InputFile, kFiles> files_;
  Dataset dataset_;
  std::array<Expected, kFiles> expected_;
};

}  // namespace
}  // namespace penstock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock::fuzz;
  const Input input = split_input(data, size);
  Check(input.file, Choices(input.choices)).run();
  return 0;
}
