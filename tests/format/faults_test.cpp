// Whatever step of a save fails, what was there before is there still, or the new content is, whole.

#include "support/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "penstock/error.h"
#include "penstock/load.h"
#include "penstock/ops.h"
#include "penstock/save.h"
#include "penstock/writer.h"
#include "support/files.h"

namespace penstock::format {
namespace {

using test::WriteFault;

Tensor rows(int first, std::int64_t count) { return arange(first, first + count, 1, DType::float32); }

Value content(int first) { return Value::dict({{"w", Value::tensor(rows(first, 1000))}}); }

/// A way to replace what lies at a path, and what that path holds.
struct Way {
  const char* name;
  std::function<void(const std::string& path)> before;
  std::function<void(const std::string& path)> act;
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

void append(const std::string& path, bool resume, int first) {
  Writer writer(path, {.resume = resume});
  writer.append(rows(first, 100));
  writer.finish();
}

void write_tensors(const std::string& path, int first) {
  Writer writer(path);
  writer.add("w", rows(first, 1000));
  writer.finish();
}

Way saved(const char* name) {
  return {name, [](const std::string& path) { save(content(1), path); },
          [](const std::string& path) { save(content(2), path); }};
}

Way written(const char* name) {
  return {name, [](const std::string& path) { write_tensors(path, 1); },
          [](const std::string& path) { write_tensors(path, 2); }};
}

const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      saved("a.pt"),
      saved("a.npz"),
      saved("a.safetensors"),
      saved("checkpoint/"),
      written("w.pt"),
      written("w.npz"),
      written("w.safetensors"),
      {"rows.npy", [](const std::string& path) { append(path, false, 1); },
       [](const std::string& path) { append(path, false, 2); }},
      {"resumed.npy", [](const std::string& path) { append(path, false, 1); },
       [](const std::string& path) { append(path, true, 2); }},
  };
  return all;
}

std::string text_of(const std::string& path) {
  const Value value = load(path);
  const Tensor tensor = value.is(Value::Kind::kTensor) ? value.as_tensor() : value["w"].as_tensor();
  const auto values = tensor.values<float>();
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

class FaultsOfSaves : public testing::TestWithParam<Way> {};

TEST_P(FaultsOfSaves, LeaveTheOldOrTheNew) {
  for (const auto kind : {WriteFault::Kind::kRefused, WriteFault::Kind::kLost}) {
    bool happened = true;
    for (int number = 0; happened; ++number) {
      SCOPED_TRACE(testing::Message() << "call " << number << (kind == WriteFault::Kind::kLost ? " lost" : " refused"));
      const test::TemporaryFolder folder;
      const std::string path = folder / GetParam().name;
      GetParam().before(path);
      const std::string before = text_of(path);
      std::optional<Error> error;
      {
        const WriteFault fault(kind, number);
        try {
          GetParam().act(path);
        } catch (const Error& thrown) {
          error = thrown;
        }
        happened = WriteFault::happened();
      }
      const std::string after = text_of(path);
      if (happened) {
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), ErrorCode::kIo);
      } else {
        ASSERT_FALSE(error) << error->what();
        EXPECT_NE(after, before);
      }
      if (after != before) {
        const test::TemporaryFolder other;
        GetParam().before(other / GetParam().name);
        GetParam().act(other / GetParam().name);
        EXPECT_EQ(after, text_of(other / GetParam().name));
      }
      EXPECT_NO_THROW(GetParam().act(path));
      ASSERT_LT(number, 100);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, FaultsOfSaves, testing::ValuesIn(ways()));

}  // namespace
}  // namespace penstock::format
