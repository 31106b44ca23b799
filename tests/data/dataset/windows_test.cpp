#include "penstock/windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/support.h"
#include "penstock/ops.h"
#include "support/served_folder.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Numbers = std::vector<std::int64_t>;
using Tokens = std::vector<std::uint16_t>;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

/// 0, 1, 2, ...
Tensor tokens_up_to(std::int64_t count) {
  Tensor out = Tensor::empty(Shape{count}, DType::uint16);
  std::int64_t next = 0;
  for (std::uint16_t& value : out.values<std::uint16_t>()) value = static_cast<std::uint16_t>(next++);
  return out;
}

/// Windows of an array by their definition.
std::vector<std::vector<Tensor>> windows_of(const Tensor& array, std::int64_t length, std::int64_t stride,
                                            std::int64_t shift) {
  std::vector<std::vector<Tensor>> out;
  for (std::int64_t begin = 0; begin + length + shift <= array.shape()[0]; begin += stride) {
    out.push_back({array.slice(0, begin, begin + length)});
    if (shift > 0) out.back().push_back(array.slice(0, begin + shift, begin + shift + length));
  }
  return out;
}

Value sample_of(const std::vector<Tensor>& parts) {
  if (parts.size() == 1) return Value::tensor(parts[0]);
  return Value::tuple({Value::tensor(parts[0]), Value::tensor(parts[1])});
}

/// Alone, in batches of any order, and behind a transform.
void expect_samples(const Dataset& dataset, const std::vector<std::vector<Tensor>>& expected, const std::string& what) {
  ASSERT_EQ(dataset.size(), std::ssize(expected)) << what;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    ASSERT_EQ(test::bits_of(dataset.get(i)), test::bits_of(sample_of(expected[static_cast<std::size_t>(i)])))
        << what << " " << i;
  }
  for (const bool cast : {false, true}) {
    DataLoader loader(cast ? dataset.cast(DType::int64) : dataset,
                      {.batch_size = 5, .shuffle = true, .num_workers = 2, .seed = 3});
    std::int64_t seen = 0;
    while (const auto batch = loader.next()) {
      for (std::size_t i = 0; i < batch->indices.size(); ++i, ++seen) {
        const auto& parts = expected[static_cast<std::size_t>(batch->indices[i])];
        for (std::size_t p = 0; p < parts.size(); ++p) {
          const Tensor stacked = (parts.size() == 1 ? batch->value : batch->value[p]).as_tensor();
          const Tensor wanted = cast ? parts[p].to(DType::int64) : parts[p].contiguous();
          ASSERT_TRUE(Tensor::identical(stacked[static_cast<std::int64_t>(i)], wanted)) << what << " " << i;
        }
      }
    }
    ASSERT_EQ(seen, dataset.size()) << what;
  }
}

TEST(Windows, AreThoseOfTheArrayHoweverItLies) {
  std::mt19937 random(3);
  test::TemporaryFolder folder;
  const Tensor array = test::numbered_rows(40, 3);
  save(array, folder / "a.npy", {.sync = false});
  const Tensor turned = test::numbered_rows(3, 40).transpose(0, 1);
  for (int round = 0; round < 30; ++round) {
    const auto length = 1 + static_cast<std::int64_t>(random() % 9);
    const auto stride = 1 + static_cast<std::int64_t>(random() % 12);
    const auto shift = static_cast<std::int64_t>(random() % 4);
    const std::string what = std::to_string(length) + " " + std::to_string(stride) + " " + std::to_string(shift);
    const WindowsOptions options{.stride = stride, .shift = shift};
    const auto expected = windows_of(array, length, stride, shift);
    expect_samples(windows(rows(array), length, options), expected, what);
    for (const bool mmap : {true, false}) {
      expect_samples(windows(rows(folder / "a.npy", {}, mmap), length, options), expected, what);
    }
    expect_samples(windows(rows(turned), length, options), windows_of(turned, length, stride, shift), what);
  }
}

TEST(Windows, BeginAtEachLengthByDefault) {
  const Dataset plain = windows(rows(tokens_up_to(10)), 3);
  EXPECT_EQ(plain.size(), 3);
  EXPECT_THAT(test::values_of<std::uint16_t>(plain.get(2).as_tensor()), ElementsAre(6, 7, 8));
  const Dataset pairs = windows(rows(tokens_up_to(10)), 3, {.shift = 1});
  EXPECT_EQ(pairs.size(), 3);
  EXPECT_THAT(test::values_of<std::uint16_t>(pairs.get(2)[0].as_tensor()), ElementsAre(6, 7, 8));
  EXPECT_THAT(test::values_of<std::uint16_t>(pairs.get(2)[1].as_tensor()), ElementsAre(7, 8, 9));
  EXPECT_EQ(windows(rows(tokens_up_to(9)), 3, {.shift = 1}).size(), 2) << "the last one lacks a token";
  EXPECT_EQ(pairs.describe(2), "<tensor>[6:10]");
}

TEST(Windows, AreEvenRows) {
  data::Scratch scratch;
  const Numbers some = {0, 2, 1};
  const Dataset array = windows(rows(tokens_up_to(40)), 4, {.stride = 3, .shift = 2});
  EXPECT_THAT(array.impl().even_rows(some, scratch)->columns, SizeIs(2));
  const Dataset apart = windows(slices(rows(tokens_up_to(40)), {15, 25}), 4);
  EXPECT_THAT(apart.impl().even_rows(some, scratch)->columns, SizeIs(1));
}

TEST(Windows, OfSlicesLieWithinOne) {
  std::mt19937 random(5);
  const Tensor array = tokens_up_to(200);
  for (int round = 0; round < 20; ++round) {
    Numbers starts;
    Numbers lengths;
    for (int i = 0; i < 12; ++i) {
      starts.push_back(static_cast<std::int64_t>(random() % 200));
      lengths.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(201 - starts.back())) / 4);
    }
    lengths[7] = 11;
    starts[7] = 100;
    const auto length = 1 + static_cast<std::int64_t>(random() % 9);
    const auto stride = 1 + static_cast<std::int64_t>(random() % 12);
    const auto shift = static_cast<std::int64_t>(random() % 3);
    std::vector<std::vector<Tensor>> expected;
    std::int64_t without = 0;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const auto own = windows_of(array.slice(0, starts[i], starts[i] + lengths[i]), length, stride, shift);
      expected.insert(expected.end(), own.begin(), own.end());
      without += own.empty() ? 1 : 0;
    }
    const Dataset dataset = windows(slices(rows(array), starts, lengths), length, {.stride = stride, .shift = shift});
    expect_samples(dataset, expected, std::to_string(round));
    const std::string remark = dataset.impl().remark();
    if (without == 0) {
      EXPECT_EQ(remark, "");
    } else {
      EXPECT_THAT(remark, HasSubstr(std::to_string(without) + " of 12 slices"));
    }
  }
}

/// Megatron's index of samples, by its description: sample i begins at entry i, a place in the order of documents and a
/// token of that document, and ends with the token of entry i + 1, which both have.
std::vector<std::pair<std::size_t, std::int64_t>> sample_index(const Numbers& sizes, const Numbers& order,
                                                               std::int64_t length) {
  std::int64_t tokens = 0;
  for (const std::int64_t document : order) tokens += sizes[static_cast<std::size_t>(document)];
  std::vector<std::pair<std::size_t, std::int64_t>> out = {{0, 0}};
  std::size_t place = 0;
  std::int64_t offset = 0;
  for (std::int64_t sample = 0; sample < (tokens - 1) / length; ++sample) {
    std::int64_t remaining = length + 1;
    while (remaining != 0) {
      const std::int64_t left = sizes[static_cast<std::size_t>(order[place])] - offset;
      remaining -= left;
      if (remaining <= 0) {
        offset += remaining + left - 1;
        remaining = 0;
      } else {
        ++place;
        offset = 0;
      }
    }
    out.emplace_back(place, offset);
  }
  return out;
}

/// The documents of an array in which document d has the tokens from starts[d] on.
struct Documents {
  Numbers sizes;
  Numbers starts;

  explicit Documents(std::mt19937& random, std::size_t count, std::int64_t most) {
    std::int64_t end = 0;
    for (std::size_t d = 0; d < count; ++d) {
      sizes.push_back(1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most)));
      starts.push_back(end);
      end += sizes.back();
    }
  }
  std::int64_t tokens() const { return starts.back() + sizes.back(); }
  std::int64_t of(std::uint16_t token) const {
    return std::upper_bound(starts.begin(), starts.end(), std::int64_t{token}) - starts.begin() - 1;
  }
};

/// The samples of an epoch, in order: the tokens of x, and behind them those of y.
std::vector<Tokens> epoch_of(const Dataset& dataset, std::uint64_t seed, std::uint64_t epoch, std::size_t workers) {
  DataLoader loader(dataset, {.batch_size = 7, .num_workers = workers, .seed = seed});
  loader.set_epoch(epoch);
  std::vector<Tokens> out;
  while (const auto batch = loader.next()) {
    for (std::int64_t i = 0; i < batch->size(); ++i) {
      const bool is_pair = !batch->value.is(Value::Kind::kTensor);
      Tokens own = test::values_of<std::uint16_t>((is_pair ? batch->value[0] : batch->value).as_tensor()[i]);
      if (is_pair) {
        const Tokens y = test::values_of<std::uint16_t>(batch->value[1].as_tensor()[i]);
        own.insert(own.end(), y.begin(), y.end());
      }
      out.push_back(std::move(own));
    }
  }
  return out;
}

/// In which order an epoch joins the documents, as windows of one token show it.
Numbers order_of(const Dataset& slices, const Documents& documents, std::uint64_t seed, std::uint64_t epoch) {
  Numbers out;
  for (const Tokens& token : epoch_of(windows(slices, 1, {.join = JoinSlices::kShuffled}), seed, epoch, 0)) {
    const std::int64_t document = documents.of(token[0]);
    if (out.empty() || out.back() != document) out.push_back(document);
  }
  return out;
}

TEST(Windows, OfShuffledSlicesAreMegatronsSamples) {
  std::mt19937 random(7);
  for (int round = 0; round < 12; ++round) {
    const Documents documents(random, 1 + random() % 60, 1 + static_cast<std::int64_t>(random() % 40));
    const auto length = 1 + static_cast<std::int64_t>(random() % 12);
    if (documents.tokens() <= length) continue;
    const Tensor array = tokens_up_to(documents.tokens());
    const Dataset sliced = slices(rows(array), documents.sizes);
    const Dataset joined = windows(sliced, length, {.shift = 1, .join = JoinSlices::kShuffled});
    for (const std::uint64_t epoch : {0, 1}) {
      const Numbers order = order_of(sliced, documents, 5, epoch);
      ASSERT_EQ(std::set(order.begin(), order.end()).size(), documents.sizes.size());
      const auto index = sample_index(documents.sizes, order, length);
      const std::vector<Tokens> found = epoch_of(joined, 5, epoch, 2);
      ASSERT_EQ(found.size() + 1, index.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        Tokens text;
        for (auto [place, offset] = index[i]; place <= index[i + 1].first; ++place, offset = 0) {
          const auto document = static_cast<std::size_t>(order[place]);
          const std::int64_t end = place == index[i + 1].first ? index[i + 1].second + 1 : documents.sizes[document];
          for (; offset < end; ++offset)
            text.push_back(static_cast<std::uint16_t>(documents.starts[document] + offset));
        }
        ASSERT_EQ(std::ssize(text), length + 1);
        Tokens both(text.begin(), text.end() - 1);
        both.insert(both.end(), text.begin() + 1, text.end());
        ASSERT_EQ(found[i], both) << round << " " << i;
      }
    }
  }
}

TEST(Windows, OfShuffledSlicesFollowFromSeedAndEpochAlone) {
  std::mt19937 random(9);
  const Documents documents(random, 40, 30);
  test::TemporaryFolder folder;
  save(tokens_up_to(documents.tokens()), folder / "a.npy", {.sync = false});
  const auto made = [&](bool mmap) {
    return windows(slices(rows(folder / "a.npy", {}, mmap), documents.sizes), 16, {.join = JoinSlices::kShuffled});
  };
  const std::vector<Tokens> one = epoch_of(made(true), 5, 1, 0);
  EXPECT_EQ(epoch_of(made(true), 5, 1, 3), one);
  EXPECT_EQ(epoch_of(made(false), 5, 1, 2), one);
  EXPECT_NE(epoch_of(made(true), 5, 2, 0), one);
  EXPECT_NE(epoch_of(made(true), 6, 1, 0), one);
  const Dataset dataset = made(true);
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch) epoch_of(dataset, 5, epoch, 2);
  EXPECT_EQ(epoch_of(dataset, 5, 1, 2), one) << "orders that were forgotten are made again";
}

/// Documents that lie in several arrays, as mapped files, files that are read, and memory; nothing is of one alone.
std::vector<Dataset> slices_in_pieces(const Documents& documents, const Tensor& array, const test::TemporaryFolder& in,
                                      std::size_t pieces) {
  std::vector<Dataset> out;
  const std::size_t each = documents.sizes.size() / pieces;
  for (std::size_t p = 0; p < pieces; ++p) {
    const std::size_t first = p * each;
    const std::size_t last = p + 1 == pieces ? documents.sizes.size() : first + each;
    const std::int64_t end = last == documents.sizes.size() ? documents.tokens() : documents.starts[last];
    const Tensor own = array.slice(0, documents.starts[first], end);
    const std::string path = in / (std::to_string(p) + ".npy");
    save(own.contiguous(), path, {.sync = false});
    const Numbers sizes(documents.sizes.begin() + static_cast<std::ptrdiff_t>(first),
                        documents.sizes.begin() + static_cast<std::ptrdiff_t>(last));
    out.push_back(slices(p % 3 == 2 ? rows(own) : rows(path, {}, p % 3 == 0), sizes));
  }
  return out;
}

TEST(Windows, OfSlicesInSeveralArraysAreThoseOfOneArray) {
  std::mt19937 random(13);
  test::TemporaryFolder folder;
  for (int round = 0; round < 8; ++round) {
    const Documents documents(random, 7 + random() % 60, 1 + static_cast<std::int64_t>(random() % 30));
    const Tensor array = tokens_up_to(documents.tokens());
    const Dataset one = slices(rows(array), documents.sizes);
    const Dataset many = concat(slices_in_pieces(documents, array, folder, 1 + random() % 7));
    const auto length = 1 + static_cast<std::int64_t>(random() % 12);
    for (const JoinSlices join : {JoinSlices::kNot, JoinSlices::kInOrder, JoinSlices::kShuffled}) {
      const WindowsOptions options{.stride = length + 1, .shift = 1, .join = join};
      Dataset expected = one;
      try {
        expected = windows(one, length, options);
      } catch (const Error& error) {
        EXPECT_EQ(test::code_of([&] { windows(many, length, options); }), error.code());
        continue;
      }
      const Dataset found = windows(many, length, options);
      for (const std::uint64_t epoch : {0, 1}) {
        ASSERT_EQ(epoch_of(found, 5, epoch, 2), epoch_of(expected, 5, epoch, 0)) << round;
      }
      EXPECT_EQ(found.impl().remark(), expected.impl().remark());
      ASSERT_EQ(test::bits_of(found.get(-1)), test::bits_of(expected.get(-1)));
      const Dataset cast = found.cast(DType::int64);
      ASSERT_EQ(test::bits_of(cast.get(-1)), test::bits_of(expected.cast(DType::int64).get(-1)));
    }
    const Dataset anywhere = random_windows(many, 1, 50);
    EXPECT_EQ(epoch_of(anywhere, 5, 1, 2), epoch_of(random_windows(one, 1, 50), 5, 1, 0));
  }
}

TEST(Windows, OfSlicesOverTheEndsOfArraysAreThoseOfOneArray) {
  std::mt19937 random(23);
  const Tensor array = tokens_up_to(500);
  test::TemporaryFolder folder;
  for (int round = 0; round < 6; ++round) {
    std::vector<Dataset> pieces;
    for (std::int64_t begin = 0; begin < 500;) {
      const std::int64_t end = std::min<std::int64_t>(500, begin + static_cast<std::int64_t>(random() % 60));
      const std::string path = folder / (std::to_string(round) + "_" + std::to_string(begin) + ".npy");
      if (round % 2 == 1) save(array.slice(0, begin, end), path, {.sync = false});
      pieces.push_back(round % 2 == 0 ? rows(array.slice(0, begin, end)) : rows(path, {}, round == 1));
      begin = end;
    }
    const Numbers sizes = {0, 130, 1, 200, 169};
    const Dataset one = slices(rows(array), sizes);
    const Dataset many = slices(concat(pieces), sizes);
    for (const JoinSlices join : {JoinSlices::kNot, JoinSlices::kInOrder, JoinSlices::kShuffled}) {
      const WindowsOptions options{.stride = 11, .shift = 2, .join = join};
      EXPECT_EQ(epoch_of(windows(many, 40, options), 5, 1, 2), epoch_of(windows(one, 40, options), 5, 1, 0)) << round;
      const Dataset cast = windows(many, 40, options).cast(DType::int64);
      EXPECT_EQ(test::bits_of(cast.get(-1)), test::bits_of(windows(one, 40, options).cast(DType::int64).get(-1)));
    }
    EXPECT_EQ(epoch_of(random_windows(many, 33, 20, 1), 5, 1, 2), epoch_of(random_windows(one, 33, 20, 1), 5, 1, 0));
  }
}

TEST(Windows, OfSeveralArraysOfWhichTheFirstHasOneRowOrNone) {
  const Tensor array = tokens_up_to(24).reshape({12, 2});
  // The step from row to row of such an array is that of nothing, and libraries give it any.
  const Tensor none = Tensor::zeros({2, 0}, DType::uint16).transpose(0, 1);
  const Tensor one = array.slice(0, 0, 1).reshape({2, 1}).transpose(0, 1);
  ASSERT_EQ(one.strides()[0], 1);
  for (const Dataset& many : {concat({rows(none), rows(array)}), concat({rows(one), rows(array.slice(0, 1, 12))})}) {
    expect_samples(windows(many, 3, {.join = JoinSlices::kInOrder}), windows_of(array, 3, 3, 0), "windows");
    expect_samples(slices(many, {0, 4}, {4, 4}), {{array.slice(0, 0, 4)}, {array.slice(0, 4, 8)}}, "slices");
  }
}

TEST(Windows, OfSeveralArraysLieWithinOneOrOverTheirEnds) {
  const Tensor array = tokens_up_to(30);
  const Dataset many =
      concat({rows(array.slice(0, 0, 11)), rows(array.slice(0, 11, 13)), rows(array.slice(0, 13, 30))});
  std::vector<std::vector<Tensor>> apart = windows_of(array.slice(0, 0, 11), 4, 3, 1);
  const auto last = windows_of(array.slice(0, 13, 30), 4, 3, 1);
  apart.insert(apart.end(), last.begin(), last.end());
  expect_samples(windows(many, 4, {.stride = 3, .shift = 1}), apart, "apart");
  const Dataset some = windows(many, 4, {.shift = 1});
  EXPECT_THAT(some.impl().remark(), HasSubstr("1 of 3 slices"));
  expect_samples(windows(many, 4, {.stride = 3, .shift = 1, .join = JoinSlices::kInOrder}), windows_of(array, 4, 3, 1),
                 "joined");
  EXPECT_EQ(windows(many, 7).describe(1), "<tensor>[0:7]") << "of its own array";
}

TEST(Windows, OfArraysWhoseRowsDifferAreRefused) {
  const Dataset tokens = rows(tokens_up_to(30));
  const auto refused = [&](const Dataset& other) {
    return test::error_of([&] { windows(concat({tokens, other}), 4, {.join = JoinSlices::kShuffled}); });
  };
  const auto types = refused(rows(tokens_up_to(30).to(DType::int32)));
  EXPECT_EQ(types->code(), ErrorCode::kDTypeMismatch);
  EXPECT_THAT(types->what(), AllOf(HasSubstr("int32"), HasSubstr("uint16")));
  EXPECT_EQ(refused(rows(tokens_up_to(30).reshape({10, 3})))->code(), ErrorCode::kShapeMismatch);
  EXPECT_EQ(refused(rows(tokens_up_to(60).slice(0, 0, 60, 2)))->code(), ErrorCode::kUnsupported);
  EXPECT_EQ(refused(tokens.cast(DType::uint16))->code(), ErrorCode::kInvalidArgument);
}

TEST(Windows, AFileThatWasCutIsNamedAmongSeveral) {
  std::mt19937 random(17);
  test::TemporaryFolder folder;
  const Documents documents(random, 40, 3000);
  const Tensor array = tokens_up_to(documents.tokens());
  const Dataset joined =
      windows(concat(slices_in_pieces(documents, array, folder, 4)), 3000, {.join = JoinSlices::kInOrder});
  std::filesystem::resize_file(folder / "3.npy", 200);
  const auto error = test::error_of([&] {
    for (std::int64_t i = 0; i < joined.size(); ++i) static_cast<void>(joined.get(i));
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->path(), folder / "3.npy");
}

TEST(Windows, ByUrlAreReadOnceForXAndY) {
  test::TemporaryFolder folder;
  const test::ServedFolder served(folder.path());
  const Tensor array = tokens_up_to(600'000);
  save(array, folder / "a.npy", {.sync = false});
  const Dataset pairs = windows(rows(served.url("a.npy")), 1000, {.stride = 20'000, .shift = 1});
  for (const Dataset& dataset : {pairs, pairs.cast(DType::int64)}) {
    const std::size_t before = served.requests().size();
    DataLoader loader(dataset, {.batch_size = 29, .shuffle = true, .num_workers = 0, .seed = 3});
    const Batch batch = *loader.next();
    for (std::int64_t i = 0; i < batch.size(); ++i) {
      const std::int64_t begin = batch.indices[static_cast<std::size_t>(i)] * 20'000;
      const Tensor x = array.slice(0, begin, begin + 1000);
      const Tensor y = array.slice(0, begin + 1, begin + 1001);
      EXPECT_TRUE(Tensor::identical(batch[0][i].to(DType::uint16), x.contiguous()));
      EXPECT_TRUE(Tensor::identical(batch[1][i].to(DType::uint16), y.contiguous()));
    }
    // A window has 1,001 tokens, and few are asked for twice because a first answer was slow.
    EXPECT_LE(served.bytes_asked(before), std::uint64_t{29} * 2002 * 3 / 2);
    EXPECT_GE(served.bytes_asked(before), std::uint64_t{20} * 2002) << "opening brought the first ones";
  }
}

TEST(Windows, OfSlicesInSeveralObjectsAreThoseOfFiles) {
  std::mt19937 random(19);
  test::TemporaryFolder folder;
  const test::ServedFolder served(folder.path());
  const Documents documents(random, 40, 4000);
  const Tensor array = tokens_up_to(documents.tokens());
  slices_in_pieces(documents, array, folder, 4);
  std::vector<Dataset> here;
  std::vector<Dataset> there;
  std::size_t first = 0;
  for (std::size_t p = 0; p < 4; ++p, first += 10) {
    const Numbers sizes(documents.sizes.begin() + static_cast<std::ptrdiff_t>(first),
                        documents.sizes.begin() + static_cast<std::ptrdiff_t>(first + 10));
    const std::string name = std::to_string(p) + ".npy";
    here.push_back(slices(rows(folder / name), sizes));
    there.push_back(slices(rows(served.url(name)), sizes));
  }
  const WindowsOptions options{.shift = 1, .join = JoinSlices::kShuffled};
  EXPECT_EQ(epoch_of(windows(concat(there), 3000, options), 5, 1, 2),
            epoch_of(windows(concat(here), 3000, options), 5, 1, 0));
}

TEST(Windows, OfSlicesInOrderAreThoseOfTheArray) {
  std::mt19937 random(11);
  const Documents documents(random, 30, 20);
  const Tensor array = tokens_up_to(documents.tokens());
  const Dataset joined =
      windows(slices(rows(array), documents.sizes), 7, {.stride = 5, .shift = 2, .join = JoinSlices::kInOrder});
  expect_samples(joined, windows_of(array, 7, 5, 2), "joined");
  EXPECT_FALSE(joined.impl().is_random());
  // Some slices, with those without rows among them.
  const Numbers starts = {9, 4, 30, 0, 2};
  const Numbers lengths = {4, 3, 0, 6, 3};
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < starts.size(); ++i) parts.push_back(array.slice(0, starts[i], starts[i] + lengths[i]));
  expect_samples(windows(slices(rows(array), starts, lengths), 5, {.stride = 1, .join = JoinSlices::kInOrder}),
                 windows_of(cat(parts), 5, 1, 0), "some");
}

TEST(Windows, OfOneKindOfSlicesAreJoinedAlike) {
  const Tensor array = tokens_up_to(60);
  const Numbers lengths = {10, 7, 3, 20, 15, 5};
  const Dataset tokens = windows(slices(rows(array), lengths), 8, {.join = JoinSlices::kShuffled});
  const Dataset masks = windows(slices(rows(array.to(DType::float32)), lengths), 8, {.join = JoinSlices::kShuffled});
  DataLoader loader(zip(tokens, masks), {.batch_size = 7, .shuffle = true, .seed = 3});
  loader.set_epoch(2);
  const Batch batch = *loader.next();
  EXPECT_TRUE(Tensor::identical(batch[0].to(DType::float32), batch[1]));
}

TEST(Windows, DrawnAnywhereCoverAllPlaces) {
  const Dataset anywhere = random_windows(rows(tokens_up_to(20)), 4, 4000, 1);
  EXPECT_EQ(anywhere.size(), 4000);
  std::vector<int> begins(16, 0);
  for (const Tokens& tokens : epoch_of(anywhere, 1, 0, 2)) {
    ASSERT_LT(tokens[0], 16);
    ++begins[tokens[0]];
    for (std::uint16_t i = 0; i < 4; ++i) ASSERT_EQ(tokens[i], tokens[0] + i);
    for (std::uint16_t i = 0; i < 4; ++i) ASSERT_EQ(tokens[4U + i], tokens[0] + 1 + i);
  }
  // 250 each, give or take five times their deviation.
  EXPECT_GT(*std::min_element(begins.begin(), begins.end()), 170);
  EXPECT_LT(*std::max_element(begins.begin(), begins.end()), 330);
  EXPECT_EQ(epoch_of(anywhere, 1, 3, 0), epoch_of(anywhere, 1, 3, 4));
  EXPECT_NE(epoch_of(anywhere, 1, 3, 0), epoch_of(anywhere, 1, 4, 0));
  const Dataset apart = random_windows(slices(rows(tokens_up_to(20)), {5, 12, 3}), 4, 500);
  std::set<std::uint16_t> places;
  for (const Tokens& tokens : epoch_of(apart, 1, 0, 2)) places.insert(tokens[0]);
  EXPECT_THAT(places, ElementsAreArray({0, 1, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
  EXPECT_THAT(apart.impl().remark(), HasSubstr("1 of 3 slices"));
  EXPECT_EQ(random_windows(rows(tokens_up_to(4)), 4, 0).size(), 0);
}

TEST(Windows, ThatCannotBeAreRefused) {
  const Dataset ten = rows(tokens_up_to(10));
  const Dataset parts = slices(ten, {4, 6});
  const auto code = [](auto&&... arguments) { return test::code_of([&] { windows(arguments...); }); };
  for (const std::int64_t length : {std::int64_t{0}, std::int64_t{-1}, -kMost}) {
    EXPECT_EQ(code(ten, length), ErrorCode::kInvalidArgument);
  }
  using Options = WindowsOptions;
  EXPECT_EQ(code(ten, 2, Options{.stride = 0}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(ten, 2, Options{.stride = -2}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(ten, 2, Options{.shift = -1}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(ten, kMost, Options{.shift = 1}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(ten, 2, Options{.join = JoinSlices::kShuffled}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(ten.cast(DType::int64), 2), ErrorCode::kInvalidArgument);
  EXPECT_EQ(windows(ten, 2, {.stride = kMost}).size(), 1);
  const auto longer = test::error_of([&] { windows(ten, 10, {.shift = 1}); });
  EXPECT_EQ(longer->code(), ErrorCode::kShapeMismatch);
  EXPECT_THAT(longer->message(), AllOf(HasSubstr("10 rows"), HasSubstr("11 rows"), HasSubstr("shift 1")));
  const auto apart = test::error_of([&] { windows(parts, 7); });
  EXPECT_EQ(apart->code(), ErrorCode::kShapeMismatch);
  EXPECT_THAT(apart->message(), AllOf(HasSubstr("2 slices"), HasSubstr("7 rows"), HasSubstr("has 6")));
  EXPECT_EQ(windows(parts, 7, {.join = JoinSlices::kInOrder}).size(), 1);
  EXPECT_EQ(code(parts, 11, Options{.join = JoinSlices::kShuffled}), ErrorCode::kShapeMismatch);
  EXPECT_EQ(code(slices(ten, Numbers{}, Numbers{}), 1), ErrorCode::kShapeMismatch);
  const Dataset turned = slices(rows(test::numbered_rows(3, 8).transpose(0, 1)), {3, 5});
  EXPECT_EQ(code(turned, 2, Options{.join = JoinSlices::kInOrder}), ErrorCode::kUnsupported);
  EXPECT_EQ(test::code_of([&] { random_windows(ten, 2, -1); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { random_windows(ten, 11, 3); }), ErrorCode::kShapeMismatch);
}

TEST(Windows, OfAFileThatIsCutAreAnError) {
  test::TemporaryFolder folder;
  for (const bool mmap : {true, false}) {
    const std::string path = folder / (mmap ? "mapped.npy" : "read.npy");
    save(tokens_up_to(60'000), path, {.sync = false});
    const Dataset sliced = slices(rows(path, {}, mmap), {10, 29'990, 30'000});
    const Dataset joined = windows(sliced, 15, {.join = JoinSlices::kShuffled});
    const Dataset plain = windows(rows(path, {}, mmap), 15);
    std::filesystem::resize_file(path, 128 + 2 * 20'000);
    for (const Dataset& dataset : {joined, plain}) {
      EXPECT_TRUE(test::error_of([&] {
        for (std::int64_t i = 0; i < dataset.size(); ++i) dataset.get(i);
      }));
    }
  }
}

}  // namespace
}  // namespace penstock
