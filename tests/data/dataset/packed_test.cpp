#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/support.h"
#include "penstock/ops.h"
#include "penstock/pack.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using Items = std::vector<std::pair<std::string, Value>>;

Value numbers(std::vector<std::int64_t> values) {
  return Value::tensor(Tensor::of(std::span<const std::int64_t>(values)));
}

constexpr const char* kRagged = R"({"dict":[["x",{"values":"x","offsets":"o"}]]})";
constexpr const char* kRows = R"({"dict":[["x",{"values":"x"}],["y",{"values":"y"}]]})";

class PackedTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const Items& arrays, const std::string& form) const {
    save(Value::dict(arrays), folder_ / name,
         {.metadata = std::map<std::string, std::string>{{"penstock.samples", form}}, .sync = false});
    return folder_ / name;
  }
  /// The error of a shard alone.
  ErrorCode refusal(const Items& arrays, const std::string& form) const {
    const std::string path = write("bad.safetensors", arrays, form);
    const auto error = test::error_of([&] { packed(path); });
    EXPECT_THAT(error->what(), HasSubstr("bad.safetensors"));
    return error->code();
  }

  test::TemporaryFolder folder_;
};

TEST_F(PackedTest, WhatOthersWriteByTheSameRules) {
  const Value x = Value::tensor(test::numbered_rows(6, 2));
  write("a.safetensors", {{"x", x}, {"o", numbers({0, 1, 1, 6})}}, kRagged);
  write("b.safetensors", {{"x", Value::tensor(test::numbered_rows(6, 2).reshape(Shape{2, 3, 2}))}},
        R"({"dict":[["x",{"values":"x"}]]})");
  const Dataset both = packed(folder_ / "*.safetensors");
  ASSERT_EQ(both.size(), 5);
  EXPECT_EQ(both.get(0)["x"].as_tensor().shape(), (Shape{1, 2}));
  EXPECT_EQ(both.get(1)["x"].as_tensor().shape(), (Shape{0, 2}));
  const Tensor third = both.get(2)["x"].as_tensor();
  const Tensor last = both.get(-1)["x"].as_tensor();
  EXPECT_EQ(third.values<const std::int32_t>()[1], 1001);
  EXPECT_EQ(last.values<const std::int32_t>()[0], 3000);
  EXPECT_EQ(both.describe(4), folder_ / "b.safetensors[1]");
}

TEST_F(PackedTest, OffsetsThatLie) {
  const Value x = Value::tensor(test::numbered_rows(6, 2));
  for (const std::vector<std::int64_t>& offsets : std::vector<std::vector<std::int64_t>>{
           {0, 7}, {0, 5}, {1, 6}, {-1, 6}, {0, 4, 2, 6}, {0, 7, 6}, {0, INT64_MAX, 6}, {6}, {}}) {
    EXPECT_EQ(refusal({{"x", x}, {"o", numbers(offsets)}}, kRagged), ErrorCode::kCorrupt) << offsets.size();
  }
  EXPECT_EQ(refusal({{"x", x}, {"o", Value::tensor(full(Shape{2}, 0, DType::int32))}}, kRagged), ErrorCode::kCorrupt);
  EXPECT_EQ(refusal({{"x", x}, {"o", Value::tensor(full(Shape{2, 1}, 0, DType::int64))}}, kRagged),
            ErrorCode::kCorrupt);
}

TEST_F(PackedTest, ArraysThatDoNotGoTogether) {
  const auto rows = [](std::int64_t count) { return Value::tensor(test::numbered_rows(count, 2)); };
  EXPECT_EQ(refusal({{"x", rows(3)}, {"y", rows(4)}}, kRows), ErrorCode::kCorrupt);
  EXPECT_EQ(refusal({{"x", rows(3)}}, kRows), ErrorCode::kCorrupt) << "y is not there";
  EXPECT_EQ(refusal({{"x", rows(3)}, {"y", Value::tensor(full(Shape{}, 1, DType::int32))}}, kRows),
            ErrorCode::kCorrupt);
}

TEST_F(PackedTest, FormsThatAreNone) {
  const Items arrays = {{"x", Value::tensor(test::numbered_rows(3, 2))}};
  for (const char* form :
       {"", "x", "{", "[]", "{}", "3", R"({"values":3})", R"({"values":"x","offsets":[]})", R"({"dict":[]})",
        R"({"dict":{"x":{"values":"x"}}})", R"({"dict":[["x"]]})", R"({"dict":[[1,{"values":"x"}]]})",
        R"({"set":[{"values":"x"}]})", R"({"list":[{"values":"x"}],"tuple":[]})", R"({"list":[[]]})",
        R"({"list":[{"values":"x"},{"values":"x"}]})"}) {
    EXPECT_EQ(refusal(arrays, form), ErrorCode::kCorrupt) << form;
  }
  std::string deep = R"({"values":"x"})";
  for (int i = 0; i < 100; ++i) deep = R"({"list":[)" + deep + "]}";
  EXPECT_EQ(refusal(arrays, deep), ErrorCode::kLimit);
  EXPECT_EQ(refusal(arrays, std::string(2'000'000, '[')), ErrorCode::kCorrupt);
  EXPECT_EQ(refusal(arrays, R"({"list":)" + std::string(1'000'000, '[')), ErrorCode::kCorrupt);
  EXPECT_EQ(refusal(arrays, R"({"values":"x","more":)" + std::string(1'000'000, '[')), ErrorCode::kLimit);
  EXPECT_EQ(refusal(arrays, R"({"values":"x","values":"x"})"), ErrorCode::kCorrupt);
  EXPECT_EQ(refusal(arrays, R"({"dict":[["a",{"values":"x"},{"values":"x"}]]})"), ErrorCode::kCorrupt);
  EXPECT_EQ(refusal(arrays, R"({"dict":[["a","b"]]})"), ErrorCode::kCorrupt);
  EXPECT_EQ(refusal(arrays, R"({"dict":[{"values":"x"}]})"), ErrorCode::kCorrupt);
  EXPECT_EQ(refusal(arrays, R"({"list":[["a",{"values":"x"}]]})"), ErrorCode::kCorrupt);
  EXPECT_EQ(refusal(arrays, R"({"list":[],"values":"x"})"), ErrorCode::kCorrupt);
}

TEST_F(PackedTest, NamesThatRepeatInEveryPlaceAreBounded) {
  std::string form = R"({"dict":[[")" + std::string(1 << 20, 'k') + R"(",{"list":[)";
  for (int i = 0; i < 200; ++i) form += R"({"values":"x)" + std::to_string(i) + R"("},)";
  form.back() = ']';
  EXPECT_EQ(refusal({{"x", Value::tensor(test::numbered_rows(3, 2))}}, form + "}]]}"), ErrorCode::kLimit);
}

TEST_F(PackedTest, WhatOtherVersionsAddToAnArrayIsSteppedOver) {
  const std::string path =
      write("a.safetensors", {{"x", Value::tensor(test::numbered_rows(3, 2))}}, R"({"more":[1],"values":"x"})");
  EXPECT_EQ(packed(path).size(), 3);
}

TEST_F(PackedTest, FilesOfOtherFormsAreNamed) {
  const auto rows = [](std::int64_t width) { return Value::tensor(test::numbered_rows(3, width)); };
  write("a.safetensors", {{"x", rows(2)}, {"y", rows(2)}}, kRows);
  const auto with = [&](const Items& arrays, const std::string& form) {
    write("b.safetensors", arrays, form);
    const auto error = test::error_of([&] { packed(folder_ / "*.safetensors"); });
    EXPECT_THAT(error->what(), HasSubstr("b.safetensors: "));
    EXPECT_THAT(error->what(), HasSubstr("a.safetensors"));
    return error->code();
  };
  EXPECT_EQ(with({{"x", rows(2)}}, R"({"dict":[["x",{"values":"x"}]]})"), ErrorCode::kShapeMismatch);
  EXPECT_EQ(with({{"x", rows(2)}, {"y", Value::tensor(full(Shape{3, 2}, 1, DType::int64))}}, kRows),
            ErrorCode::kDTypeMismatch);
  EXPECT_EQ(with({{"x", rows(2)}, {"y", Value::tensor(full(Shape{3, 2, 2}, 1, DType::int32))}}, kRows),
            ErrorCode::kShapeMismatch);
  write("b.safetensors", {{"x", rows(2)}, {"y", rows(5)}}, kRows);
  EXPECT_EQ(packed(folder_ / "*.safetensors").size(), 6) << "dimension 0 of samples may differ";
}

TEST_F(PackedTest, OtherFilesAreSaidToBeNone) {
  save(test::numbered_rows(3, 2), folder_ / "plain.safetensors");
  const auto error = test::error_of([&] { packed(folder_ / "plain.safetensors"); });
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error->what(), HasSubstr("not written by pack"));
  EXPECT_EQ(test::code_of([&] { packed(folder_ / "none"); }), ErrorCode::kNotFound);
}

TEST_F(PackedTest, AFileThatIsCutLaterIsAnErrorOfItsSamples) {
  const Value x = Value::tensor(full(Shape{100, 1000}, 1, DType::int32));
  const std::string path = write("a.safetensors", {{"x", x}}, R"({"values":"x"})");
  const Dataset dataset = packed(path);
  std::filesystem::resize_file(path, 100'000);
  EXPECT_EQ(test::code_of([&] { static_cast<void>(dataset.get(1)); }), ErrorCode::kTruncated);
  EXPECT_THAT(test::error_of([&] { static_cast<void>(dataset.get(99)); })->what(), HasSubstr("a.safetensors"));
}

}  // namespace
}  // namespace penstock
