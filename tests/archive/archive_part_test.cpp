// Parts of a file as archives by themselves.

#include "archive/archive_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "format/rows.h"
#include "penstock/load.h"
#include "penstock/save.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using test::CountingSource;
using test::error_of;
using test::numbered_tensor;
using testing::ElementsAre;
using testing::HasSubstr;

std::string pt_of(const Value& value) {
  test::StringSink sink;
  format::kPtFormat.write(value, sink, {}, "");
  return sink.text;
}

std::vector<std::string> names_of(const Archive& archive) {
  std::vector<std::string> out;
  for (const TensorEntry& entry : archive.entries()) out.push_back(entry.name);
  return out;
}

class ArchivePart : public testing::Test {
 protected:
  const Tensor weight = numbered_tensor({3, 2}, DType::float32, 1);
  const Tensor large = numbered_tensor({200'000}, DType::float32, 2);
  const Value model = Value::dict({{"weight", Value::tensor(weight)}, {"a.b", Value::integer(1)}});
  const Value steps = Value::list({Value::tensor(large), Value::dict({{Value::integer(0), Value::tensor(weight)}})});
  const Value whole = Value::dict({{"model", model},
                                   {"optimizer", Value::dict({{"state", steps}})},
                                   {"a", Value::dict({{"b", Value::integer(2)}})},
                                   {"a.b", Value::integer(3)},
                                   {"epoch", Value::integer(4)}});
  const Archive archive = open(std::make_shared<CountingSource>(pt_of(whole)));
};

TEST_F(ArchivePart, HasTheTensorsWithinByTheirOwnNames) {
  const Archive part = archive.part("model");
  EXPECT_THAT(names_of(part), ElementsAre("weight"));
  EXPECT_TRUE(Tensor::identical(part["weight"].load(), weight));
  EXPECT_TRUE(Tensor::identical(part.load()["weight"].as_tensor(), weight));
  EXPECT_EQ(part.storages().size(), 1U);
  EXPECT_EQ(part.path(), archive.path());
  EXPECT_THAT(names_of(archive.part("optimizer.state.1")), ElementsAre("0"));
  EXPECT_TRUE(Tensor::identical(archive.part("model.weight").load().as_tensor(), weight));
  EXPECT_EQ(archive.part("epoch").load().as_int(), 4);
}

TEST_F(ArchivePart, ReadsNoOtherBytes) {
  Report report;
  archive.part("model").load({.report = &report});
  EXPECT_EQ(report.payload_bytes, weight.nbytes());
  EXPECT_LT(report.read_bytes, 10'000U);
}

TEST_F(ArchivePart, KeysWithDotsGoBeforePaths) {
  EXPECT_EQ(archive.part("a.b").load().as_int(), 3);
  EXPECT_EQ(archive.part("a").part("b").load().as_int(), 2);
  EXPECT_EQ(archive.part("model.a.b").load().as_int(), 1);
}

TEST_F(ArchivePart, OneKeyIsFoundByItsKind) {
  const Value mixed = Value::dict({{Value::string("7"), Value::integer(1)}, {Value::integer(7), Value::integer(2)}});
  const Archive numbers = open(std::make_shared<CountingSource>(pt_of(mixed)));
  EXPECT_EQ(numbers.part(Value::string("7")).load().as_int(), 1);
  EXPECT_EQ(numbers.part(Value::integer(7)).load().as_int(), 2);
  EXPECT_EQ(test::code_of([&] { numbers.part(Value::real(7)); }), ErrorCode::kInvalidArgument);
}

TEST_F(ArchivePart, WhatIsNotThereIsAnErrorThatSaysWhatIs) {
  const auto error = error_of([&] { archive.part("modle"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kKeyNotFound);
  EXPECT_THAT(error->what(), HasSubstr("no 'modle': its keys are 'model', 'optimizer', 'a', 'a.b', 'epoch'"));
  EXPECT_THAT(error->what(), HasSubstr("did you mean 'model'"));
  for (const char* key :
       {"optimizer.state.2", "optimizer.state.-1", "optimizer.state.x", "epoch.0", "", ".", "model."}) {
    EXPECT_EQ(test::code_of([&] { archive.part(key); }), ErrorCode::kKeyNotFound) << key;
  }
  EXPECT_EQ(test::code_of([&] { archive.part("epoch").part("x"); }), ErrorCode::kKeyNotFound);
}

TEST_F(ArchivePart, APrefixIsLeftOut) {
  const Value state = Value::dict({{"module.w", Value::tensor(weight)}, {"other", Value::tensor(large)}});
  const Archive part = open(std::make_shared<CountingSource>(pt_of(state))).with_prefix("module.");
  EXPECT_THAT(names_of(part), ElementsAre("w"));
  EXPECT_EQ(part.structure().size(), 1U);
  EXPECT_TRUE(Tensor::identical(part.load()["w"].as_tensor(), weight));
  EXPECT_EQ(test::code_of([&] { archive.with_prefix("module."); }), ErrorCode::kKeyNotFound);
  EXPECT_EQ(test::code_of([&] { archive.part("epoch").with_prefix("x"); }), ErrorCode::kDTypeMismatch);
}

TEST_F(ArchivePart, TensorsThatOtherPartsHaveTooKeepTheirNamesHere) {
  const Value shared = Value::tensor(weight);
  const Value both = Value::dict({{"first", Value::dict({{"x", shared}})}, {"second", Value::list({shared, shared})}});
  const Archive part = open(std::make_shared<CountingSource>(pt_of(both))).part("second");
  EXPECT_THAT(names_of(part), ElementsAre("0", "1"));
  const Value loaded = part.load();
  EXPECT_TRUE(Tensor::identical(loaded[0].as_tensor(), weight));
  EXPECT_TRUE(loaded[0].as_tensor().buffer().shares_memory_with(loaded[1].as_tensor().buffer()));
}

TEST_F(ArchivePart, PartsHaveParts) {
  Archive part = open(std::make_shared<CountingSource>(pt_of(steps))).part("1");
  EXPECT_EQ(part.entries().size(), 1U);
  part = part.part("0");
  EXPECT_TRUE(Tensor::identical(part.load().as_tensor(), weight));
}

}  // namespace
}  // namespace penstock
