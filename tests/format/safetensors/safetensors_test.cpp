#include "format/safetensors/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "format/rows.h"
#include "format/safetensors/dtype.h"
#include "penstock/load.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace penstock::format {
namespace {

using test::bytes_of;
using test::code_of;
using test::dict_of;
using test::error_of;
using test::numbered_tensor;
using test::source_of;
using test::StringSink;
using testing::HasSubstr;

std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

using Metadata = std::map<std::string, std::string>;

std::string written(const Value& value, const SaveOptions& options = {}) {
  StringSink sink;
  kSafetensorsFormat.write(value, sink, options, "out.safetensors");
  return sink.text;
}

bool sniffs(const std::string& file) {
  const Source source = source_of(file);
  return kSafetensorsFormat.sniff(bytes_of(std::string_view(file).substr(0, kSniffBytes)), *source);
}

Index read(const std::string& file) { return kSafetensorsFormat.read_index(source_of(file, "m.safetensors"), {}); }

TEST(Safetensors, IndexSaysWhereTensorsLie) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,1],"data_offsets":[2,10]},)"
      R"("a":{"dtype":"I16","shape":[],"data_offsets":[0,2]}})";
  const Index index = read(file_of(header, "0123456789"));
  ASSERT_EQ(index.entries.size(), 2U);
  EXPECT_EQ(index.entries[0].name, "a");
  EXPECT_EQ(index.entries[1].name, "b");
  EXPECT_EQ(index.entries[1].dtype, DType::float32);
  EXPECT_EQ(index.entries[1].shape, (Shape{2, 1}));
  EXPECT_EQ(index.entries[1].strides, (Strides{1, 1}));
  const StorageEntry& storage = index.storages[index.entries[1].storage];
  EXPECT_EQ(storage.offset, 8 + header.size() + 2);
  EXPECT_EQ(storage.nbytes, 8U);
  EXPECT_EQ(storage.stored_bytes, 8U);
  EXPECT_EQ(storage.name, "b");
  EXPECT_EQ(index.metadata.at("format"), "pt");
  EXPECT_EQ(index.structure.size(), 2U);
  EXPECT_EQ(index.structure["b"].entry_index(), 1U);
}

TEST(Safetensors, EveryTypeOfTheTable) {
  for (const SafetensorsDType& type : safetensors_dtypes()) {
    const std::string header = R"({"a":{"dtype":")" + std::string(type.name) + R"(","shape":[3,8],"data_offsets":[0,)" +
                               std::to_string(3 * type.bits) + "]}}";
    const Index index = read(file_of(header, std::string(3 * type.bits, 'x')));
    EXPECT_EQ(index.entries[0].dtype.code(), type.code);
    EXPECT_EQ(index.entries[0].nbytes(), 3 * type.bits) << type.name;
    EXPECT_EQ(index.entries[0].shape, (Shape{3, 8 / static_cast<std::int64_t>(type.packed)})) << type.name;
    EXPECT_EQ(find_safetensors_dtype(DType(type.code)), &type);
  }
}

TEST(Safetensors, PackedValuesThatDoNotFillRowsAreFlat) {
  const Index index = read(file_of(R"({"a":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}})", "abc"));
  EXPECT_EQ(index.entries[0].shape, Shape{3});
  EXPECT_EQ(index.entries[0].nbytes(), 3U);
}

TEST(Safetensors, UnknownTypesAreOpaqueAndTheOthersStillThere) {
  const auto opaque = [](const std::string& shape, std::size_t bytes) {
    return read(file_of(R"({"a":{"dtype":"Q5_K","shape":)" + shape + R"(,"data_offsets":[0,)" + std::to_string(bytes) +
                            R"(]},"b":{"dtype":"U8","shape":[1],"data_offsets":[)" + std::to_string(bytes) + "," +
                            std::to_string(bytes + 1) + "]}}",
                        std::string(bytes + 1, 'x')));
  };
  Index index = opaque("[2,3]", 24);
  EXPECT_EQ(index.entries[0].dtype.code(), DType::Code::kOpaque);
  EXPECT_EQ(index.entries[0].dtype.name(), "Q5_K");
  EXPECT_EQ(index.entries[0].dtype.itemsize(), 4U);
  EXPECT_EQ(index.entries[0].shape, (Shape{2, 3}));
  EXPECT_EQ(index.entries[1].dtype, DType::uint8);
  index = opaque("[2,3]", 5);
  EXPECT_EQ(index.entries[0].shape, Shape{5}) << "the shape does not divide the bytes";
  EXPECT_EQ(index.entries[0].nbytes(), 5U);
  index = opaque("[0]", 3);
  EXPECT_EQ(index.entries[0].shape, Shape{3});
  index = opaque("[7]", 0);
  EXPECT_EQ(index.entries[0].nbytes(), 0U);
}

TEST(Safetensors, SniffsTheContent) {
  EXPECT_TRUE(sniffs(file_of("{}", "")));
  EXPECT_TRUE(sniffs(file_of("  \n{}", "")));
  EXPECT_TRUE(sniffs(file_of(std::string(1000, ' ') + "{}", "")));
  EXPECT_TRUE(sniffs(file_of("{}", "").substr(0, 9))) << "cut files are said to be cut";
  EXPECT_FALSE(sniffs(""));
  EXPECT_FALSE(sniffs(file_of("", "")));
  EXPECT_FALSE(sniffs(file_of("[]", "")));
  EXPECT_FALSE(sniffs("{\"weight_map\": {}}"));
  EXPECT_FALSE(sniffs("some text {"));
  EXPECT_FALSE(sniffs(file_of(std::string(100'000, ' '), "")));
}

TEST(Safetensors, HeaderLengthsThatLie) {
  std::string file = file_of("{}", "");
  const auto with_length = [&](std::uint64_t length) {
    std::memcpy(file.data(), &length, 8);
    return code_of([&] { read(file); });
  };
  EXPECT_EQ(with_length(3), ErrorCode::kTruncated);
  EXPECT_EQ(with_length(100'000'000), ErrorCode::kTruncated);
  EXPECT_EQ(with_length(100'000'001), ErrorCode::kLimit);
  EXPECT_EQ(with_length(~std::uint64_t{0}), ErrorCode::kLimit);
  EXPECT_EQ(with_length(~std::uint64_t{0} - 7), ErrorCode::kLimit);
  EXPECT_EQ(with_length(0), ErrorCode::kCorrupt);
  EXPECT_EQ(with_length(1), ErrorCode::kCorrupt);
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const std::string file =
      written(dict_of({{"a", numbered_tensor({3}, DType::float32)}, {"b", numbered_tensor({2, 2}, DType::int8)}}));
  for (std::size_t n = 0; n < file.size(); ++n) {
    const auto error = error_of([&] { read(file.substr(0, n)); });
    ASSERT_TRUE(error) << n;
    EXPECT_TRUE(error->code() == ErrorCode::kTruncated) << n << ": " << error->what();
  }
  EXPECT_EQ(code_of([&] { read(file + "x"); }), ErrorCode::kCorrupt);
}

TEST(Safetensors, ReadsNoPayload) {
  const std::string file = written(dict_of({{"a", numbered_tensor({1000}, DType::float32)}}));
  const auto source = std::make_shared<test::CountingSource>(file);
  kSafetensorsFormat.read_index(source, {});
  EXPECT_EQ(source->bytes_read, file.size() - 4000);
}

TEST(SafetensorsWrite, PutsWideTypesFirstThenNames) {
  const std::string file = written(dict_of({{"z", numbered_tensor({}, DType::boolean)},
                                            {"b", numbered_tensor({1}, DType::float32)},
                                            {"a", numbered_tensor({1}, DType::float32)},
                                            {"é\"\\\n", numbered_tensor({0, 2}, DType::int64)}}));
  const std::string header =
      R"({"é\"\\\n":{"dtype":"I64","shape":[0,2],"data_offsets":[0,0]},)"
      R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
      R"("z":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]}})";
  EXPECT_EQ(file.substr(8, header.size()), header);
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ(length % 8, 0U);
  EXPECT_EQ(file.size(), 8 + length + 9);
}

TEST(SafetensorsWrite, Metadata) {
  const std::string file =
      written(Value::dict(std::vector<Value::Item>{}), {.metadata = Metadata{{"a", "b"}, {"c", "\"\x01"}}});
  EXPECT_THAT(file, HasSubstr(R"({"__metadata__":{"a":"b","c":"\"\u0001"}})"));
  EXPECT_EQ(read(file).metadata.at("c"), "\"\x01");
}

TEST(SafetensorsWrite, EmptyMetadataIsNotNone) {
  const Value nothing = Value::dict(std::vector<Value::Item>{});
  const std::string empty = written(nothing, {.metadata = Metadata{}});
  EXPECT_THAT(empty, HasSubstr(R"({"__metadata__":{}})"));
  EXPECT_TRUE(open(source_of(empty)).has_metadata());
  EXPECT_FALSE(open(source_of(written(nothing))).has_metadata());
  EXPECT_FALSE(open(source_of(file_of(R"({"__metadata__":null})", ""))).has_metadata()) << "as the reference";
}

TEST(SafetensorsWrite, ContentComesBack) {
  std::mt19937 random(7);
  for (const SafetensorsDType& type : safetensors_dtypes()) {
    const Shape shape = test::random_shape(random, type.packed == 1 ? 0 : 1, 4, 5);
    const Tensor tensor = numbered_tensor(shape, DType(type.code));
    const std::string file = written(Value::tensor(tensor));
    const Index index = read(file);
    EXPECT_EQ(index.entries[0].name, "tensor");
    EXPECT_EQ(index.entries[0].dtype, tensor.dtype());
    const StorageEntry& storage = index.storages[0];
    ASSERT_EQ(storage.nbytes, tensor.nbytes());
    EXPECT_EQ(std::memcmp(file.data() + storage.offset, tensor.data(), tensor.nbytes()), 0) << type.name;
    EXPECT_EQ(index.entries[0].shape, shape) << type.name;
  }
}

TEST(SafetensorsWrite, StridedTensorsAreWrittenInCOrder) {
  const Tensor base = numbered_tensor({3, 4}, DType::int16);
  const std::string file = written(Value::tensor(base.transpose(0, 1)));
  EXPECT_EQ(file, written(Value::tensor(base.transpose(0, 1).contiguous())));
}

TEST(SafetensorsWrite, NestedDictsAreJoined) {
  const Value nested = Value::dict({{"model", dict_of({{"w", numbered_tensor({2}, DType::uint8)}})},
                                    {"x", Value::tensor(numbered_tensor({1}, DType::uint8, 5))}});
  const Index index = read(written(nested));
  EXPECT_EQ(index.entries[0].name, "model.w");
  EXPECT_EQ(index.entries[1].name, "x");
}

/// `leaf` below `levels` dicts, each of which holds the next one twice.
Value held_twice(Value leaf, int levels) {
  for (int i = 0; i < levels; ++i) leaf = Value::dict({{"a", leaf}, {"b", leaf}});
  return leaf;
}

TEST(SafetensorsWrite, SharedDictsAreNamedByEachWay) {
  const Value leaf = dict_of({{"w", Tensor::empty({0}, DType::uint8)}});
  const Index index = read(written(held_twice(leaf, 3)));
  ASSERT_EQ(index.entries.size(), 8);
  EXPECT_EQ(index.entries[0].name, "a.a.a.w");
  EXPECT_EQ(index.entries[7].name, "b.b.b.w");
}

TEST(SafetensorsWrite, RefusesSharedDictsWhoseWaysMultiply) {
  for (const int levels : {25, 60}) {
    const Value leaf = dict_of({{"w", numbered_tensor({2}, DType::float32)}});
    const auto refused = error_of([&] { written(held_twice(leaf, levels)); });
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->code(), ErrorCode::kLimit);
    EXPECT_THAT(refused->message(), HasSubstr("save as .pt, which keeps what is shared"));
    EXPECT_THAT(refused->tensor(), testing::StartsWith("a.a.a"));
    EXPECT_EQ(error_of([&] { written(held_twice(dict_of({}), levels)); })->code(), ErrorCode::kUnsupported);
  }
}

TEST(SafetensorsWrite, RefusesEmptyDictsWithinADict) {
  const auto refused = error_of([&] { written(Value::dict({{"e", dict_of({})}})); });
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(refused->message(), HasSubstr("'e' is an empty dict"));
  EXPECT_NO_THROW(written(dict_of({})));
}

TEST(SafetensorsWrite, RefusesLongKeysAboveManyTensors) {
  std::vector<std::pair<std::string, Value>> tensors;
  for (int i = 0; i < 1000; ++i)
    tensors.emplace_back(std::to_string(i), Value::tensor(Tensor::empty({0}, DType::uint8)));
  const auto refused = error_of([&] { written(Value::dict({{std::string(1'000'000, 'k'), Value::dict(tensors)}})); });
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), ErrorCode::kLimit);
  EXPECT_THAT(refused->message(), HasSubstr("shorten the keys"));
}

TEST(SafetensorsWrite, RefusesWhatItCannotHold) {
  const Tensor tensor = numbered_tensor({2}, DType::float32);
  const Value value = Value::tensor(tensor);
  const auto refused = [](const Value& what) { return error_of([&] { written(what); }); };
  EXPECT_EQ(refused(Value::integer(3))->code(), ErrorCode::kUnsupported);
  const auto list = refused(Value::dict({{"a", Value::list({value})}}));
  EXPECT_EQ(list->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(list->message(), HasSubstr("'a' is a list"));
  EXPECT_THAT(refused(Value::dict({{"m", Value::dict({{"epoch", Value::integer(3)}})}}))->message(),
              HasSubstr("'m.epoch' is an integer"));
  EXPECT_EQ(refused(Value::dict(std::vector<Value::Item>{{Value::integer(1), value}}))->code(),
            ErrorCode::kUnsupported);
  EXPECT_EQ(refused(Value::tensor(numbered_tensor({2}, DType::complex128)))->code(), ErrorCode::kUnsupported);
  const auto packed =
      refused(Value::dict({{"w", Value::tensor(numbered_tensor({}, DType(DType::Code::kFloat4E2M1FNx2)))}}));
  EXPECT_EQ(packed->code(), ErrorCode::kUnsupported);
  EXPECT_EQ(packed->tensor(), "w");
  EXPECT_EQ(refused(Value::dict({{"__metadata__", value}}))->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(Value::dict({{"\xff", value}}))->code(), ErrorCode::kInvalidArgument);
  const auto clash = refused(
      Value::dict({{"a.b", value}, {"a", Value::dict({{"b", Value::tensor(numbered_tensor({1}, DType::uint8))}})}}));
  EXPECT_EQ(clash->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(clash->message(), HasSubstr("'a.b'"));
}

TEST(SafetensorsWrite, RefusesSharedMemoryNamingBoth) {
  const Tensor base = numbered_tensor({4, 4}, DType::float32);
  const auto shared = [](const Tensor& a, const Tensor& b) {
    return error_of([&] { written(dict_of({{"first", a}, {"second", b}})); });
  };
  const auto error = shared(base, base);
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error->message(), HasSubstr("'first' and 'second'"));
  EXPECT_EQ(shared(base, base[3])->code(), ErrorCode::kUnsupported);
  EXPECT_EQ(shared(base[0], base.slice(0, 0, 2))->code(), ErrorCode::kUnsupported);
  EXPECT_EQ(shared(base.select(1, 0), base.select(1, 1))->code(), ErrorCode::kUnsupported) << "interleaved";
  // One around two others, which are apart from each other.
  const auto around = error_of([&] {
    written(dict_of({{"all", base}, {"front", base[0].clone()}, {"one", base[1]}, {"two", base[3]}}));
  });
  EXPECT_THAT(around->message(), HasSubstr("'all'"));
  written(dict_of({{"first", base[0]}, {"second", base[1]}}));
  written(dict_of({{"first", base.slice(0, 0, 0)}, {"second", base}}));
}

TEST(SafetensorsCorpus, FilesOfOthers) {
  const auto corpus = test::corpus();
  if (!corpus) GTEST_SKIP() << "the folder of files by others is not here";
  const auto load = [&](const char* path) {
    return kSafetensorsFormat.read_index(open_source((*corpus / path).string()), {});
  };
  const Index model = load("safetensors-cpp/model.safetensors");
  EXPECT_FALSE(model.entries.empty());
  EXPECT_EQ(code_of([&] { load("safetensors-cpp/safetensors_abuse_attempt_1.safetensors"); }), ErrorCode::kTruncated);
  EXPECT_FALSE(load("burn/mnist.safetensors").entries.empty());
  EXPECT_FALSE(load("burn/models/multi_layer.safetensors").entries.empty());
}

}  // namespace
}  // namespace penstock::format
