#include "data/dataset/pair_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/support.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Dataset in(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  for (const std::string& name : names) paths.push_back(folder + "/" + name);
  return files(paths);
}

/// What zip says of pairs of these names; "" where it says nothing.
std::string said(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::string out;
  int times = 0;
  zip({in("a", a), in("b", b)}, {.warn = [&](const std::string& message) {
        out = message;
        ++times;
      }});
  EXPECT_LE(times, 1);
  return out;
}

TEST(PairNames, ThatBelongToOtherPlacesAreTold) {
  EXPECT_THAT(said({"1.npy", "2.npy", "3.npy"}, {"2.npy", "3.npy", "4.npy"}),
              AllOf(HasSubstr("of 3 pairs 3 have unlike names"), HasSubstr("a/2.npy is paired with b/3.npy"),
                    HasSubstr("b/2.npy has its name"), HasSubstr("join()")));
  EXPECT_NE(said({"1.npy", "2.npy"}, {"2.npy", "1.npy"}), "");
  EXPECT_NE(said({"1.npy", "2.npy", "3.npy"}, {"2_mask.png", "3_mask.png", "4_mask.png"}), "") << "behind an affix";
  EXPECT_NE(said({"img_08", "img_09", "img_10"}, {"mask_09", "mask_10", "mask_11"}), "");
  EXPECT_NE(said({"x/1.npy", "y/1.npy", "y/2.npy"}, {"x/1.npy", "x/2.npy", "y/1.npy"}), "");
}

TEST(PairNames, OneStrangerAmongEqualsIsTold) {
  EXPECT_THAT(said({"1.npy", "2.npy", "3.npy", "4.npy"}, {"1.npy", "2.npy", "3.npy", "9.npy"}),
              AllOf(HasSubstr("of 4 pairs 1 has unlike names"), HasSubstr("a/4.npy is paired with b/9.npy")));
}

TEST(PairNames, ThatSayNothingAreNotTold) {
  EXPECT_EQ(said({"1.npy", "2.npy"}, {"1.pt", "2.pt"}), "");
  EXPECT_EQ(said({"001.jpg", "002.jpg", "010.jpg"}, {"001_mask.png", "002_mask.png", "010_mask.png"}), "");
  EXPECT_EQ(said({"img001", "img002"}, {"label_001", "label_002"}), "");
  EXPECT_EQ(said({"cat", "dog"}, {"x", "y"}), "") << "other names on both sides";
  EXPECT_EQ(said({"001", "002", "003"}, {"010", "011", "012"}), "") << "the zeros that all begin with are no affix";
  EXPECT_EQ(said({"0", "10", "20", "30", "40", "50"}, {"0", "1", "2", "3", "4", "5"}), "") << "another count";
  EXPECT_EQ(said({"1", "2", "3"}, {"1", "2", "3_crowd"}), "");
  EXPECT_EQ(said({"1.npy"}, {"2.npy"}), "") << "one pair is no order";
  EXPECT_EQ(said({}, {}), "");
}

TEST(PairNames, OfTheSameFilesAreMeant) {
  const Dataset frames = in("a", {"1", "2", "3", "4"});
  std::string out;
  const ZipOptions options{.warn = [&](const std::string& message) { out += message; }};
  zip({subset(frames, {0, 1, 2}), subset(frames, {1, 2, 3})}, options);
  zip({frames, subset(frames, {0, 1, 3, 2})}, options);
  EXPECT_EQ(out, "");
}

TEST(PairNames, AreComparedWithTheFirstFilesAndOnlyIfAsked) {
  const Dataset numbers = rows(Tensor::zeros({3, 1}));
  const Dataset a = in("a", {"1", "2", "3"});
  const Dataset b = in("b", {"2", "3", "4"});
  int times = 0;
  const ZipOptions options{.warn = [&](const std::string&) { ++times; }};
  zip({{"n", numbers}, {"a", a}, {"c", in("c", {"1", "2", "3"})}, {"b", b.map([](const Value& v) { return v; })}},
      options);
  EXPECT_EQ(times, 1);
  zip({a, b}, {.compare_names = false, .warn = options.warn});
  zip({numbers, b}, options);
  EXPECT_EQ(times, 1);
  testing::internal::CaptureStderr();
  zip(a, b);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("penstock: warning: zip pairs"));
  EXPECT_THROW(zip({a, b}, {.warn = [](const std::string&) { throw std::runtime_error("no"); }}), std::runtime_error);
}

}  // namespace
}  // namespace penstock
