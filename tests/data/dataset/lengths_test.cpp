// Lengths come from headers alone, whatever lies below; and sequences are packed by them.

#include "penstock/lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "data/support.h"
#include "penstock/mix.h"
#include "penstock/pack.h"

namespace penstock {
namespace {

using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

Tensor sequence(std::int64_t length, std::int32_t first = 0) {
  Tensor out = Tensor::empty(Shape{length}, DType::int32);
  auto values = out.values<std::int32_t>();
  std::iota(values.begin(), values.end(), first);
  return out;
}

/// Tensors of these lengths whose tokens are all different.
std::vector<Tensor> sequences(const std::vector<std::int64_t>& lengths) {
  std::vector<Tensor> out;
  std::int32_t first = 1;
  for (const std::int64_t length : lengths) {
    out.push_back(sequence(length, first));
    first += static_cast<std::int32_t>(length);
  }
  return out;
}

class LengthsOfFiles : public ::testing::TestWithParam<const char*> {};

TEST_P(LengthsOfFiles, AreWhatTheyHold) {
  TemporaryFolder folder;
  const std::vector<std::int64_t> expected = {3, 0, 70'000, 1, 3};
  test::write_tensors(folder, sequences(expected), GetParam());
  const Dataset loose = files(folder.path().string());
  EXPECT_EQ(lengths(loose), expected);
  EXPECT_EQ(lengths(loose, {.dim = -1, .num_workers = 1}), expected);
  EXPECT_THAT(lengths(subset(loose, {4, 2})), ElementsAre(3, 70'000));
  EXPECT_EQ(lengths(loose.cast(DType::float32)), expected);
  EXPECT_THAT(lengths(loose.pad({1}, {2})), ElementsAre(6, 3, 70'003, 4, 6));
  EXPECT_EQ(lengths(zip(loose, rows(Tensor::of<std::int64_t>({1, 2, 3, 4, 5})))), expected);
  EXPECT_THAT(lengths(concat({skip(loose, 3), take(loose, 1)})), ElementsAre(1, 3, 3));
}
INSTANTIATE_TEST_SUITE_P(Formats, LengthsOfFiles, ::testing::Values(".npy", ".npz", ".pt", ".safetensors"),
                         [](const auto& row) { return std::string(row.param + 1); });

TEST(Lengths, ReadNoPayload) {
  TemporaryFolder folder;
  const std::int64_t length = std::int64_t{1} << 33;
  save(sequence(8).to(DType::uint8), folder / "a.npy", {.sync = false});
  std::string text = test::read_file(folder / "a.npy");
  // A header of the same size that speaks of more than this machine could read in the time of a test.
  const std::size_t at = text.find("(8,)");
  const std::string shape = "(" + std::to_string(length) + ",)";
  const std::size_t spaces = text.find("  ", at);
  text.replace(spaces, shape.size() - 4, "");
  text.replace(at, 4, shape);
  test::write_file(folder / "a.npy", text);
  std::filesystem::resize_file(folder / "a.npy", text.size() - 8 + static_cast<std::uintmax_t>(length));
  EXPECT_THAT(lengths(files(folder.path().string())), ElementsAre(length));
  EXPECT_THAT(lengths(files(folder.path().string(), {.raw = true})),
              ElementsAre(static_cast<std::int64_t>(text.size()) - 8 + length));
}

TEST(Lengths, OfClassFoldersPacksAndMemory) {
  TemporaryFolder folder;
  for (const char* name : {"cat", "dog"}) std::filesystem::create_directory(folder / name);
  save(sequence(3), folder / "cat/a.npy", {.sync = false});
  save(sequence(5), folder / "dog/a.npy", {.sync = false});
  const Dataset classes = files(folder / "*/*.npy", {.class_folders = true});
  EXPECT_THAT(lengths(classes), ElementsAre(3, 5));
  pack(dataset(sequences({4, 2, 9})), folder / "packed");
  EXPECT_THAT(lengths(packed(folder / "packed")), ElementsAre(4, 2, 9));
  EXPECT_THAT(lengths(dataset(sequences({4, 0}))), ElementsAre(4, 0));
  EXPECT_THAT(lengths(rows(test::numbered_rows(3, 7))), ElementsAre(7, 7, 7));
  EXPECT_TRUE(lengths(dataset(std::vector<Tensor>{})).empty());
}

TEST(Lengths, OfAPartOfADict) {
  const auto sample = [](std::int64_t tokens, std::int64_t mels) {
    return Value::dict({{"tokens", Value::tensor(sequence(tokens))},
                        {"mel", Value::tensor(Tensor::zeros(Shape{80, mels}))},
                        {"label", Value::integer(1)}});
  };
  const Dataset dicts = dataset(std::vector<Value>{sample(3, 7), sample(4, 9)});
  EXPECT_THAT(lengths(dicts, {.key = "tokens"}), ElementsAre(3, 4));
  EXPECT_THAT(lengths(dicts, {.dim = 1, .key = "mel"}), ElementsAre(7, 9));
  EXPECT_THAT(lengths(dicts, {.dim = 1}), ElementsAre(7, 9)) << "only one has that dimension";
  const auto several = test::error_of([&] { lengths(dicts); });
  EXPECT_EQ(several->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(several->message(), AllOf(HasSubstr("sample 0"), HasSubstr("key")));
  const auto missing = test::error_of([&] { lengths(dicts, {.key = "token"}); });
  EXPECT_EQ(missing->code(), ErrorCode::kKeyNotFound);
  EXPECT_THAT(missing->message(), HasSubstr("tokens"));
  EXPECT_EQ(test::code_of([&] { lengths(dicts, {.dim = 2}); }), ErrorCode::kShapeMismatch);
}

TEST(Lengths, RefuseANumberOfThreadsBelowZero) {
  const Dataset texts = dataset({Tensor::of({1, 2}), Tensor::of({3})});
  EXPECT_EQ(test::code_of([&] { lengths(texts, {.num_workers = -2}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(lengths(texts, {.num_workers = -1}), lengths(texts, {.num_workers = 0}));
}

TEST(Lengths, NameTheFirstBadSample) {
  TemporaryFolder folder;
  test::write_tensors(folder, sequences(std::vector<std::int64_t>(1000, 4)), ".npy");
  const Dataset loose = files(folder.path().string());
  test::write_file(folder / "0900.npy", "no array");
  std::filesystem::remove(folder / "0700.npy");
  const auto error = test::error_of([&] { lengths(loose); });
  EXPECT_EQ(error->code(), ErrorCode::kNotFound);
  EXPECT_THAT(error->message(), HasSubstr("sample 700"));
  EXPECT_THAT(error->path(), HasSubstr("0700.npy"));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(test::code_of([&] { lengths(take(loose, 500), {.stop = stop.get_token()}); }), ErrorCode::kCancelled);
  const Dataset mapped = take(loose, 5).map([](const Tensor& tensor) { return tensor; });
  const auto unknown = test::error_of([&] { lengths(mapped); });
  EXPECT_EQ(unknown->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(unknown->message(), HasSubstr("below it"));
}

/// All tokens of a batch's rows by segment, checked on the way.
std::vector<std::vector<std::int32_t>> segments_of(const Batch& batch, std::int64_t length) {
  std::vector<std::vector<std::int32_t>> out;
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    const auto tokens = test::values_of<std::int32_t>(batch["tokens"][row]);
    const auto positions = test::values_of<std::int64_t>(batch["positions"][row]);
    const auto segments = test::values_of<std::int64_t>(batch["segments"][row]);
    EXPECT_EQ(std::ssize(tokens), length);
    std::int64_t last = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (segments[i] == 0) {
        EXPECT_EQ(tokens[i], -1);
        EXPECT_EQ(positions[i], 0);
        continue;
      }
      if (segments[i] != last) {
        EXPECT_EQ(segments[i], last + 1);
        EXPECT_EQ(positions[i], 0);
        last = segments[i];
        out.emplace_back();
      }
      EXPECT_EQ(positions[i], std::ssize(out.back()));
      out.back().push_back(tokens[i]);
    }
  }
  return out;
}

/// The number of rows that best fit takes, found the slow way.
std::size_t rows_by_best_fit(std::vector<std::int64_t> lengths, std::int64_t row) {
  std::sort(lengths.rbegin(), lengths.rend());
  std::vector<std::int64_t> rooms;
  for (const std::int64_t length : lengths) {
    if (length == 0) continue;
    auto best = rooms.end();
    for (auto it = rooms.begin(); it != rooms.end(); ++it) {
      if (*it >= length && (best == rooms.end() || *it < *best)) best = it;
    }
    if (best == rooms.end()) best = rooms.insert(rooms.end(), row);
    *best -= length;
  }
  return rooms.size();
}

TEST(PackSequences, EveryTokenOnceInRowsOfOneLength) {
  std::mt19937 random(3);
  TemporaryFolder folder;
  for (int round = 0; round < 20; ++round) {
    const auto length = 1 + static_cast<std::int64_t>(random() % 40);
    std::vector<std::int64_t> sizes(random() % 40);
    for (auto& size : sizes) size = static_cast<std::int64_t>(random()) % (length + 1);
    const std::vector<Tensor> all = sequences(sizes);
    const Dataset packed = pack_sequences(dataset(all), length, {.value = -1});
    EXPECT_EQ(static_cast<std::size_t>(packed.size()), rows_by_best_fit(sizes, length));
    std::vector<std::vector<std::int32_t>> found;
    DataLoader loader(packed, {.batch_size = 3, .num_workers = 2});
    for (const Batch& batch : loader) {
      for (auto& one : segments_of(batch, length)) found.push_back(std::move(one));
    }
    std::vector<std::vector<std::int32_t>> expected;
    for (const Tensor& tensor : all) {
      if (tensor.numel() > 0) expected.push_back(test::values_of<std::int32_t>(tensor));
    }
    std::sort(found.begin(), found.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(found, expected);
  }
}

TEST(PackSequences, OfLooseFilesIsResumedExactly) {
  TemporaryFolder folder;
  test::write_tensors(folder, sequences({7, 2, 5, 9, 1, 4, 4, 3, 8, 6}), ".npy");
  const Dataset packed = pack_sequences(files(folder.path().string()), 10);
  EXPECT_THAT(packed.describe(0), AllOf(HasSubstr("0000.npy"), HasSubstr("more")));
  const LoaderOptions options{.batch_size = 2, .shuffle = true, .num_workers = 2, .seed = 5};
  DataLoader loader(packed, options);
  loader.next();
  const LoaderPosition position = loader.position();
  const auto rest = test::rest_of_epoch(loader);
  DataLoader again(pack_sequences(files(folder.path().string()), 10), options);
  again.seek(position);
  EXPECT_EQ(test::rest_of_epoch(again), rest);
  // A file that was written again since rows were planned is noticed.
  save(sequence(3), folder / "0000.npy", {.sync = false});
  const auto changed = test::error_of([&] { packed.get(0); });
  EXPECT_EQ(changed->code(), ErrorCode::kChanged);
  EXPECT_THAT(changed->message(), HasSubstr("0000.npy"));
}

TEST(PackSequences, LongOnesAreRefusedCutOrSplit) {
  const Dataset some = dataset(sequences({2, 7}));
  const auto error = test::error_of([&] { pack_sequences(some, 3); });
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error->message(), AllOf(HasSubstr("sample 1"), HasSubstr("7 elements"), HasSubstr("too_long")));
  const auto tokens = [&](LongSequence too_long) {
    DataLoader loader(pack_sequences(some, 3, {.too_long = too_long, .value = -1}), {.batch_size = 10});
    return segments_of(*loader.next(), 3);
  };
  EXPECT_THAT(tokens(LongSequence::kCut), ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4, 5)));
  EXPECT_THAT(tokens(LongSequence::kSplit),
              ElementsAre(ElementsAre(1, 2), ElementsAre(9), ElementsAre(3, 4, 5), ElementsAre(6, 7, 8)));
}

TEST(PackSequences, SayWhereSequencesEnd) {
  const Dataset packed = pack_sequences(dataset(sequences({5, 2, 9, 4, 12})), 12, {.cu_seqlens = true});
  DataLoader loader(packed, {.batch_size = 10});
  const Batch batch = *loader.next();
  std::int64_t most = 0;
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    const auto segments = test::values_of<std::int64_t>(batch["segments"][row]);
    // Where the number of the sequence changes, which is 0 for what fills the row.
    std::vector<std::int32_t> ends = {0};
    std::int64_t longest = 0;
    for (std::size_t i = 1; i <= segments.size(); ++i) {
      if (i < segments.size() && segments[i] == segments[i - 1]) continue;
      longest = std::max(longest, static_cast<std::int64_t>(i) - ends.back());
      ends.push_back(static_cast<std::int32_t>(i));
    }
    most = std::max(most, std::ssize(ends));
    const auto found = test::values_of<std::int32_t>(batch["cu_seqlens"][row]);
    ends.resize(found.size(), 12);
    EXPECT_EQ(found, ends) << row;
    EXPECT_EQ(batch["max_seqlen"][row].item<std::int64_t>(), longest) << row;
  }
  EXPECT_EQ(batch["cu_seqlens"].shape(), (Shape{batch.size(), most}));
  EXPECT_EQ(batch["cu_seqlens"].dtype(), DType::int32);
  const std::int64_t long_row = std::int64_t{1} << 31;
  EXPECT_EQ(test::code_of([&] { pack_sequences(dataset(sequences({3})), long_row, {.cu_seqlens = true}); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(pack_sequences(dataset(sequences({3})), long_row).size(), 1);
}

TEST(PackSequences, RefusesWhatIsNoSequence) {
  const auto code_of = [](const Dataset& dataset, std::int64_t length = 4, double value = 0) {
    return test::code_of([&] { pack_sequences(dataset, length, {.value = value}); });
  };
  EXPECT_EQ(code_of(dataset(sequences({1})), 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(dataset(std::vector<Tensor>{sequence(4).reshape({2, 2})})), ErrorCode::kShapeMismatch);
  EXPECT_EQ(code_of(dataset(std::vector<Tensor>{sequence(2), sequence(2).to(DType::int64)})),
            ErrorCode::kDTypeMismatch);
  EXPECT_EQ(code_of(dataset(sequences({1})), 4, 0.5), ErrorCode::kInvalidArgument);
  EXPECT_EQ(pack_sequences(dataset(sequences({0, 0})), 4).size(), 0);
  EXPECT_EQ(pack_sequences(dataset(std::vector<Tensor>{}), 4).size(), 0);
}

}  // namespace
}  // namespace penstock
