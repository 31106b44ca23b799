// Every file is read twice: by a loader that has seen many like it, whose last batch foretold this one, and by itself.
// Values or errors must be the same: no quick way is less strict, or says something else.

#include "data/files/twins.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "data/support.h"
#include "penstock/load.h"

namespace penstock {
namespace {

using test::outcome_of;
using test::SampleKind;
using test::TemporaryFolder;

constexpr std::int64_t kOdd = 3;    ///< the sample that is changed
constexpr std::size_t kPlace = 2;   ///< where it stands in its batch
constexpr std::int64_t kRows = 64;  ///< payload that is worth a slot of its own
constexpr std::int64_t kLargeRows = 8'500;

/// A loader that goes on and on over good files and one that changes.
class Twins {
 public:
  explicit Twins(const SampleKind& kind) : kind_(kind) {
    for (std::int64_t i = 0; i <= kOdd; ++i) {
      paths_.push_back(test::numbered_path(folder_, i, kind.extension));
      kind.write(static_cast<std::size_t>(i), paths_.back());
    }
    good_ = test::read_file(paths_[kOdd]);
    options_ = {.batch_sampler = sampler::batches({{0, 1, 2, 1}, {0, 1, kOdd, 2}}), .num_workers = 0};
    quick_ = std::make_unique<DataLoader>(files(paths_), options_);
  }

  const std::string& good() const { return good_; }
  const std::string& odd() const { return paths_[kOdd]; }

  void compare(const std::string& content, const std::string& what) {
    test::write_file(odd(), content);
    compare(what);
  }

  void compare(const std::string& what) {
    const std::string text = kind_.name + kind_.extension + ": " + what;
    const std::string first = next_of(*quick_);
    if (good_batch_.empty()) good_batch_ = first;
    ASSERT_EQ(first, good_batch_) << text << " harmed the batch after it";
    Value batch;
    const std::string quick = outcome_of([&] { return batch = quick_->next()->value; });
    ASSERT_FALSE(quick_->next());

    try {
      load(odd());
    } catch (const Error& error) {
      ASSERT_EQ(quick, test::told(error.prefixed("sample " + std::to_string(kOdd) + ": "))) << text;
      return;
    }
    DataLoader fresh(files(paths_), with(sampler::batches({{0, 1, kOdd, 2}})));
    ASSERT_EQ(quick, next_of(fresh)) << text;
    if (!test::is_value(quick)) return;
    DataLoader alone(files(paths_), with(sampler::batches({{kOdd}})));
    ASSERT_EQ(test::print_of(test::sample_of(batch, kPlace)), test::print_of(test::sample_of(alone.next()->value, 0)))
        << text;
  }

 private:
  LoaderOptions with(BatchSampler order) const {
    LoaderOptions out = options_;
    out.batch_sampler = std::move(order);
    return out;
  }
  static std::string next_of(DataLoader& loader) {
    return outcome_of([&] { return loader.next()->value; });
  }

  const SampleKind& kind_;
  TemporaryFolder folder_{test::quick_folder()};
  std::vector<std::string> paths_;
  std::string good_;
  std::string good_batch_;
  LoaderOptions options_;
  std::unique_ptr<DataLoader> quick_;
};

/// Where the largest run of bytes that differ between two files of a kind lies: the payload.
std::pair<std::size_t, std::size_t> payload_of(const std::string& a, const std::string& b) {
  std::size_t begin = a.size();
  std::size_t end = 0;
  if (a.size() != b.size()) return {0, 0};
  const std::size_t kNear = 16;
  std::size_t best = 0;
  for (std::size_t i = 0; i < a.size();) {
    if (a[i] == b[i]) {
      ++i;
      continue;
    }
    std::size_t last = i;
    for (std::size_t k = i; k < a.size() && k <= last + kNear; ++k) {
      if (a[k] != b[k]) last = k;
    }
    if (last + 1 - i > best) {
      best = last + 1 - i;
      begin = i;
      end = last + 1;
    }
    i = last + 1;
  }
  return {begin, end};
}

class TwinFiles : public ::testing::TestWithParam<SampleKind> {};

TEST_P(TwinFiles, AnyByteOfWhatIsNoPayload) {
  Twins twins(GetParam());
  std::mt19937 random(11);
  TemporaryFolder folder;
  const std::string other = folder / ("other" + GetParam().extension);
  GetParam().write(6, other);
  const auto [begin, end] = payload_of(twins.good(), test::read_file(other));
  for (std::size_t at = 0; at < twins.good().size(); ++at) {
    if (at == begin + 2 && end > begin + 4) at = end - 2;  // its edges are looked at
    std::string bytes = twins.good();
    const auto mask = static_cast<char>(random() % 4 == 0 ? 1 + random() % 255 : 1 << random() % 8);
    bytes[at] = static_cast<char>(bytes[at] ^ mask);
    twins.compare(bytes, "byte " + std::to_string(at) + " ^ " + std::to_string(mask));
    if (HasFatalFailure()) return;
  }
}

TEST_P(TwinFiles, AnyBytesOfPayload) {
  Twins twins(GetParam());
  std::mt19937 random(12);
  for (int round = 0; round < 60; ++round) {
    std::string bytes = twins.good();
    const std::size_t at = random() % bytes.size();
    const std::size_t length = std::min<std::size_t>(1 + random() % 40, bytes.size() - at);
    for (std::size_t i = at; i < at + length; ++i) bytes[i] = static_cast<char>(random());
    twins.compare(bytes, std::to_string(length) + " bytes at " + std::to_string(at));
    if (HasFatalFailure()) return;
  }
}

TEST_P(TwinFiles, AnyLength) {
  Twins twins(GetParam());
  const std::string good = twins.good();
  for (std::size_t length = 0; length < good.size(); length += length + 80 < good.size() && length > 200 ? 37 : 1) {
    twins.compare(good.substr(0, length), "cut to " + std::to_string(length));
    if (HasFatalFailure()) return;
  }
  for (const std::size_t more : {1U, 2U, 7U, 8U, 64U, 100U, 4096U, 70'000U, 300'000U}) {
    for (const char with : {'\0', 'x'}) {
      twins.compare(good + std::string(more, with), std::to_string(more) + " more");
      if (HasFatalFailure()) return;
    }
  }
  twins.compare(good + good, "twice");
  twins.compare(good, "good again");
}

TEST_P(TwinFiles, FilesOfOtherKindsOfAnySize) {
  Twins twins(GetParam());
  for (const SampleKind& other : test::sample_kinds(kRows)) {
    TemporaryFolder folder;
    const std::string path = folder / ("other" + other.extension);
    other.write(5, path);
    std::string bytes = test::read_file(path);
    twins.compare(bytes, other.name + other.extension);
    bytes.resize(twins.good().size());
    twins.compare(bytes, other.name + other.extension + " of the same size");
    if (HasFatalFailure()) return;
  }
}

/// Samples whose files are read in two steps.
class TwinLargeFiles : public ::testing::TestWithParam<SampleKind> {};

TEST_P(TwinLargeFiles, AnyBytesAndAnyLength) {
  Twins twins(GetParam());
  const std::string good = twins.good();
  std::mt19937 random(14);
  for (int round = 0; round < 12; ++round) {
    std::string bytes = good;
    const std::size_t near = round % 3 == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 1000);
    const std::size_t at = round % 3 == 1 ? random() % near : bytes.size() - 1 - random() % near;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    twins.compare(bytes, "bit in byte " + std::to_string(at));
    if (HasFatalFailure()) return;
  }
  for (const std::size_t cut : {std::size_t{1}, std::size_t{700}, good.size() / 2, good.size() - 100}) {
    twins.compare(good.substr(0, good.size() - cut), std::to_string(cut) + " missing");
    if (HasFatalFailure()) return;
  }
  twins.compare(good + "x", "one more");
  twins.compare(good, "good again");
}

std::string kind_name(const ::testing::TestParamInfo<SampleKind>& info) {
  std::string out = info.param.name + "_" + info.param.extension.substr(1);
  for (char& c : out) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return out;
}
INSTANTIATE_TEST_SUITE_P(Kinds, TwinFiles, ::testing::ValuesIn(test::sample_kinds(kRows)), kind_name);
INSTANTIATE_TEST_SUITE_P(Kinds, TwinLargeFiles, ::testing::ValuesIn(test::sample_kinds(kLargeRows)), kind_name);

}  // namespace
}  // namespace penstock
