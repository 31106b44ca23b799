// What every row of the table of formats must do.

#include "format/format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "penstock/load.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"

namespace penstock::format {
namespace {

using test::bytes_of;
using test::code_of;
using test::dict_of;
using test::error_of;
using test::numbered_tensor;
using test::source_of;

std::string written(const Format& format, const Value& value) {
  test::StringSink sink;
  format.write(value, sink, {}, "sample" + std::string(format.extensions.front()));
  return sink.text;
}

/// A dict of tensors, or the first of them alone where the format holds no more; of a format that holds samples, a list
/// of one.
Value sample_for(const Format& format, const std::vector<std::pair<std::string, Tensor>>& tensors) {
  const Value dict = dict_of(tensors);
  if (format.holds_samples) {
    Value one{{"__key__", "first"}};
    for (const auto& [name, tensor] : tensors) one = one.with(name + ".npy", tensor);
    return Value::list({one});
  }
  try {
    written(format, dict);
    return dict;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << error.what();
    return Value::tensor(tensors.front().second);
  }
}

Value small_sample(const Format& format) {
  return sample_for(format, {{"weight", numbered_tensor({3, 4}, DType::float32)},
                             {"steps", numbered_tensor({5}, DType::int64, 1)},
                             {"flag", numbered_tensor({}, DType::boolean, 2)},
                             {"none", numbered_tensor({0, 2}, DType::float16, 3)}});
}

void expect_same(const Value& loaded, const Value& saved) {
  ASSERT_EQ(loaded.kind(), saved.kind());
  if (saved.is(Value::Kind::kTensor)) {
    EXPECT_TRUE(Tensor::identical(loaded.as_tensor(), saved.as_tensor()));
    return;
  }
  if (saved.is(Value::Kind::kString)) {
    EXPECT_EQ(loaded, saved);
    return;
  }
  ASSERT_EQ(loaded.size(), saved.size());
  if (saved.is(Value::Kind::kList)) return expect_same(loaded[0], saved[0]);
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const auto [key, item] = saved.item(i);
    expect_same(loaded[key.as_string()], item);
  }
}

/// The tensor of a sample that an entry of this name is.
Tensor saved_as(const Value& sample, const std::string& entry) {
  if (sample.is(Value::Kind::kTensor)) return sample.as_tensor();
  if (!sample.is(Value::Kind::kList)) return sample[entry].as_tensor();
  return sample[0][entry.substr(entry.find('.') + 1)].as_tensor();
}

std::set<const Format*> sniffed_by(const std::string& file) {
  std::set<const Format*> out;
  const Source source = source_of(file);
  for (const Format& format : formats()) {
    if (format.sniff(bytes_of(std::string_view(file).substr(0, kSniffBytes)), *source)) out.insert(&format);
  }
  return out;
}

class EveryFormat : public testing::TestWithParam<const Format*> {};
class EveryFile : public testing::TestWithParam<const Format*> {};
class EveryWriter : public testing::TestWithParam<const Format*> {};

TEST_P(EveryFormat, HasAWholeRow) {
  const Format& format = *GetParam();
  EXPECT_FALSE(format.name.empty());
  EXPECT_FALSE(format.extensions.empty());
  for (const std::string_view extension : format.extensions) {
    EXPECT_TRUE(extension.starts_with('.')) << extension;
    EXPECT_TRUE(std::none_of(extension.begin(), extension.end(), [](unsigned char c) { return std::isupper(c); }));
  }
  EXPECT_NE(format.sniff, nullptr);
  EXPECT_NE(format.read_index, nullptr);
  for (const Format& other : formats()) {
    if (&other == &format || format.write == nullptr || other.write == nullptr) continue;
    EXPECT_NE(other.name, format.name);
    for (const std::string_view extension : format.extensions) {
      EXPECT_EQ(std::count(other.extensions.begin(), other.extensions.end(), extension), 0) << extension;
    }
  }
}

TEST_P(EveryFormat, KnowsNoForeignBytes) {
  for (const std::string& bytes : {std::string(), std::string("\0", 1), std::string(1000, '\0'), std::string(1000, ' '),
                                   std::string("plain text\n"), std::string("\x89PNG\r\n\x1a\n")}) {
    EXPECT_TRUE(sniffed_by(bytes).empty()) << bytes;
  }
}

TEST_P(EveryWriter, WhatIsWrittenComesBack) {
  const Format& format = *GetParam();
  const Value sample = small_sample(format);
  const std::string file = written(format, sample);
  const Source source = source_of(file);
  EXPECT_EQ(&detect(*source), &format);
  const Archive archive = open(source);
  EXPECT_EQ(archive.format(), format.name);
  expect_same(archive.load(), sample);
  for (std::size_t i = 0; i < archive.entries().size(); ++i) {
    const LazyTensor lazy = archive.entry(i);
    EXPECT_TRUE(Tensor::identical(lazy.load(), saved_as(sample, lazy.name()))) << lazy.name();
  }
}

TEST_P(EveryWriter, OnlyItsOwnFormatKnowsIt) {
  const Format& format = *GetParam();
  EXPECT_EQ(sniffed_by(written(format, small_sample(format))), std::set<const Format*>{&format});
}

TEST_P(EveryWriter, TheIndexReadsNoPayload) {
  const Format& format = *GetParam();
  const Value sample = sample_for(format, {{"large", numbered_tensor({1 << 20}, DType::uint8)}});
  const auto source = std::make_shared<test::CountingSource>(written(format, sample));
  open(source);
  EXPECT_LT(source->bytes_read, 256U * 1024);
}

bool loads(const std::string& file) {
  try {
    open(source_of(file)).load();
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Whole files of a format that holds its tensors itself: what it writes. A format that is only read has those seeds of
/// the fuzzers (fuzz/corpus) that load.
std::vector<std::string> samples_of(const Format& format) {
  if (format.write != nullptr) return {written(format, small_sample(format))};
  std::vector<std::string> out;
  for (const auto& seed : std::filesystem::recursive_directory_iterator("fuzz/corpus")) {
    if (!seed.is_regular_file()) continue;
    const std::string file = test::read_file(seed.path().string());
    if (sniffed_by(file) != std::set<const Format*>{&format}) continue;
    if (loads(file)) out.push_back(file);
  }
  return out;
}

/// Bytes at the end of a file that no reader misses: of an archive all but the first block of zeros.
std::size_t padding_of(const Format& format, const std::string& file) {
  constexpr std::size_t kBlock = 512;
  if (!format.holds_samples) return 0;
  const std::size_t content = file.find_last_not_of('\0') + 1;
  return file.size() - ((content + kBlock - 1) / kBlock + 1) * kBlock;
}

/// Of arrays that stand one behind the other nobody says how many there are, so a cut between two leaves a whole file.
bool is_whole_cut(const Format& format, const std::string& file, std::size_t bytes) {
  return format.name == "tenbin" && bytes != 0 && std::string_view(file).substr(bytes).starts_with("~TenBin~") &&
         loads(file.substr(0, bytes));
}

TEST_P(EveryFile, HasASample) {
  EXPECT_FALSE(samples_of(*GetParam()).empty())
      << "a format that is only read needs a file that loads in fuzz/corpus/" << GetParam()->name;
}

TEST_P(EveryFile, EveryTruncationIsAnError) {
  for (const std::string& file : samples_of(*GetParam())) {
    const std::size_t needed = file.size() - padding_of(*GetParam(), file);
    for (std::size_t n = 0; n < needed; ++n) {
      if (is_whole_cut(*GetParam(), file, n)) continue;
      const auto error = error_of([&] { open(source_of(file.substr(0, n), "cut")).load(); });
      ASSERT_TRUE(error) << "cut to " << n << " of " << file.size();
      EXPECT_EQ(error->path(), "cut") << n;
    }
  }
}

TEST_P(EveryFile, DamageIsAnErrorOrOtherValues) {
  const std::vector<std::string> files = samples_of(*GetParam());
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = files[static_cast<std::size_t>(round) % files.size()];
    for (std::size_t i = 0; i <= random() % 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      open(source_of(damaged)).load();
    } catch (const Error& error) {
      EXPECT_FALSE(error.message().empty());
    }
  }
}

/// From an odd element to the end, and the first half, of each dimension.
void expect_slices_of(const LazyTensor& lazy) {
  const Tensor whole = lazy.load();
  for (std::size_t dim = 0; dim < whole.shape().rank(); ++dim) {
    const std::int64_t size = whole.shape()[dim];
    const std::int64_t one = std::min<std::int64_t>(1, size);
    for (const auto& [begin, end] : {std::pair(one, size), std::pair(std::int64_t{0}, size / 2)}) {
      EXPECT_TRUE(Tensor::identical(lazy.slice(dim, begin, end).load(), whole.slice(dim, begin, end)))
          << lazy.name() << " dimension " << dim << " " << begin << ":" << end;
    }
  }
}

TEST_P(EveryFile, ASliceIsAPartOfTheWhole) {
  for (const std::string& file : samples_of(*GetParam())) {
    const Archive archive = open(source_of(file));
    for (std::size_t i = 0; i < archive.entries().size(); ++i) {
      if (archive.entries()[i].pickled) continue;
      expect_slices_of(archive.entry(i));
    }
  }
}

/// The rows that are as asked.
template <class Predicate>
std::vector<const Format*> rows(Predicate is_wanted) {
  std::vector<const Format*> out;
  for (const Format& format : formats()) {
    if (is_wanted(format)) out.push_back(&format);
  }
  return out;
}

bool any(const Format&) { return true; }
bool is_written(const Format& format) { return format.write != nullptr; }
/// Not so an index or a folder, whose tensors lie in other files.
bool holds_its_tensors(const Format& format) { return !format.is_index && !format.is_folder; }

std::string name_of(const testing::TestParamInfo<const Format*>& info) {
  std::string out(info.param->name);
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return out + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat, testing::ValuesIn(rows(any)), name_of);
INSTANTIATE_TEST_SUITE_P(Formats, EveryFile, testing::ValuesIn(rows(holds_its_tensors)), name_of);
INSTANTIATE_TEST_SUITE_P(Formats, EveryWriter, testing::ValuesIn(rows(is_written)), name_of);

}  // namespace
}  // namespace penstock::format
