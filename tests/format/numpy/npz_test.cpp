#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/numpy/npy_header.h"
#include "format/numpy/npy_support.h"
#include "format/rows.h"
#include "penstock/load.h"
#include "support/deflated.h"
#include "support/errors.h"
#include "support/tensors.h"
#include "support/zip_builder.h"

namespace penstock::format {
namespace {

using test::build_zip;
using test::deflated;
using test::load_entry;
using test::numbered;
using test::source_of;
using test::written;
using ::testing::HasSubstr;
using Items = std::vector<std::pair<std::string, Value>>;

Index npz_index(const std::string& file) { return kNpzFormat.read_index(source_of(file, "x.npz"), {}); }

std::string npy_of(const Tensor& tensor) { return written(kNpyFormat, Value::tensor(tensor)); }

std::vector<std::string> names_of(const Index& index) {
  std::vector<std::string> out;
  for (const TensorEntry& entry : index.entries) out.push_back(entry.name);
  return out;
}

TEST(Npz, GivesBackWhatWasWritten) {
  for (const bool compress : {false, true}) {
    std::vector<Tensor> tensors;
    Items items;
    for (const DType& dtype : test::numpy_dtypes()) {
      for (const Shape& shape : {Shape(), Shape{0}, Shape{3, 4}, Shape{200, 50}}) {
        tensors.push_back(numbered(dtype, shape));
        items.emplace_back("key " + std::to_string(items.size()), Value::tensor(tensors.back()));
      }
    }
    const Index index = npz_index(written(kNpzFormat, Value::dict(items), {.compress = compress}));
    ASSERT_EQ(index.entries.size(), tensors.size());
    EXPECT_EQ(index.structure.size(), tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ(index.entries[i].name, items[i].first);
      EXPECT_EQ(index.structure[items[i].first].entry_index(), i);
      EXPECT_TRUE(Tensor::identical(load_entry(index, i), tensors[i])) << tensors[i].dtype() << tensors[i].shape();
    }
  }
}

TEST(Npz, StoragesAreWholeMembers) {
  const Tensor tensor = numbered(DType::int32, Shape{3, 4});
  const std::string npy = npy_of(tensor);
  const Index index = npz_index(build_zip({{.name = "w.npy", .data = npy}}));
  const StorageEntry& storage = index.storages.at(0);
  EXPECT_EQ(storage.name, "w.npy");
  EXPECT_EQ(storage.offset, 35u);
  EXPECT_EQ(storage.nbytes, npy.size());
  EXPECT_EQ(storage.stored_bytes, npy.size());
  EXPECT_EQ(storage.crc32, test::crc_of(npy));
  EXPECT_EQ(storage.compression, Compression::kNone);
  EXPECT_EQ(index.entries[0].byte_offset, npy.size() - tensor.nbytes());
}

TEST(Npz, EmptyArchiveIsAnEmptyDict) {
  const std::string file = written(kNpzFormat, Value::dict(Items{}));
  EXPECT_EQ(file.substr(0, 4), "PK\5\6");
  const Index index = npz_index(file);
  EXPECT_TRUE(index.entries.empty());
  EXPECT_TRUE(index.structure.is(Value::Kind::kDict));
  const Source source = source_of(file);
  EXPECT_EQ(detect(*source).name, "npz");
}

TEST(Npz, KeysLoseTheirSuffixOnce) {
  const std::string npy = npy_of(numbered(DType::int8, Shape{2}));
  EXPECT_EQ(names_of(npz_index(build_zip({{.name = "a.npy", .data = npy},
                                          {.name = "b", .data = npy},
                                          {.name = "c.npy.npy", .data = npy},
                                          {.name = "d/e.npy", .data = npy}}))),
            (std::vector<std::string>{"a", "b", "c.npy", "d/e"}));
  const auto error = test::error_of([&] {
    npz_index(build_zip({{.name = "a.npy", .data = npy}, {.name = "b", .data = npy}, {.name = "a", .data = npy}}));
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(error->tensor(), "a");
}

TEST(Npz, OtherMembersAreRawBytes) {
  const std::string long_text(3000, 'x');
  const Index index =
      npz_index(build_zip({{.name = "readme.txt", .data = "hello"},
                           {.name = "empty", .data = ""},
                           {.name = "long", .data = long_text, .method = 8, .stored = deflated(long_text)},
                           {.name = "folder/", .data = ""}}));
  EXPECT_EQ(names_of(index), (std::vector<std::string>{"readme.txt", "empty", "long"}));
  const Tensor text = load_entry(index, 0);
  EXPECT_EQ(text.dtype(), DType::uint8);
  EXPECT_THAT(test::values_of<std::uint8_t>(text), testing::ElementsAre('h', 'e', 'l', 'l', 'o'));
  EXPECT_EQ(load_entry(index, 1).shape(), Shape{0});
  EXPECT_EQ(load_entry(index, 2).shape(), Shape{3000});
}

TEST(Npz, ObjectArraysThatCannotBeReadAreListedButMarked) {
  std::string objects = make_npy_header(DType::int32, Shape{4}, false) + "\x80\4.";
  objects.replace(objects.find("'<i4'"), 5, "'|O' ");
  const Tensor plain = numbered(DType::int8, Shape{2});
  const Index index =
      npz_index(build_zip({{.name = "bad.npy", .data = objects}, {.name = "good.npy", .data = npy_of(plain)}}));
  ASSERT_EQ(index.entries.size(), 2u);
  EXPECT_TRUE(index.entries[0].pickled);
  EXPECT_EQ(index.entries[0].dtype.name(), "object");
  EXPECT_EQ(index.entries[0].shape, Shape{4});
  EXPECT_FALSE(index.entries[1].pickled);
  EXPECT_TRUE(Tensor::identical(load_entry(index, 1), plain));
}

TEST(Npz, ReadsHeadersOnly) {
  Items items;
  for (int i = 0; i < 20; ++i)
    items.emplace_back(std::to_string(i), Value::tensor(numbered(DType::int32, Shape{50'000})));
  for (const bool compress : {false, true}) {
    auto source =
        std::make_shared<test::CountingSource>(written(kNpzFormat, Value::dict(items), {.compress = compress}));
    EXPECT_EQ(kNpzFormat.read_index(source, {}).entries.size(), 20u);
    EXPECT_LT(source->bytes_read, source->size() / 8);
  }
}

TEST(Npz, RefusesArraysLongerThanTheirMember) {
  const std::string npy = npy_of(numbered(DType::int32, Shape{100}));
  for (const std::size_t length : {std::size_t{7}, std::size_t{9}, std::size_t{100}, npy.size() - 1}) {
    const std::string cut = npy.substr(0, length);
    for (const bool compress : {false, true}) {
      const std::uint16_t method = compress ? 8 : 0;
      const std::string file =
          build_zip({{.name = "a.npy", .data = cut, .method = method, .stored = compress ? deflated(cut) : cut}});
      const auto error = test::error_of([&] { npz_index(file); });
      ASSERT_TRUE(error) << length;
      EXPECT_EQ(error->code(), ErrorCode::kTruncated);
      EXPECT_EQ(error->path(), "x.npz");
      EXPECT_EQ(error->tensor(), "a.npy");
      EXPECT_LE(*error->offset(), file.size());
    }
  }
}

TEST(Npz, RefusesDamagedStreams) {
  const std::string npy = npy_of(numbered(DType::int32, Shape{100}));
  const std::string file = build_zip({{.name = "a.npy", .data = npy, .method = 8, .stored = std::string(300, '\xFF')}});
  EXPECT_EQ(test::code_of([&] { npz_index(file); }), ErrorCode::kCorrupt);
}

TEST(Npz, ArraysReadAloneAreCheckedAsTheyAreTogether) {
  const Tensor plain = numbered(DType::int32, Shape{40, 50});
  for (const Tensor& tensor : {plain, plain.transpose(0, 1), numbered(DType::uint8, Shape{3})}) {
    const std::string good = written(kNpzFormat, Value::dict({{"x", Value::tensor(tensor)}}));
    const auto outcome = [&](const std::string& file, const std::function<void(const Archive&)>& read) {
      try {
        read(open(source_of(file, "x.npz")));
        return std::string("read");
      } catch (const Error& error) {
        return std::string(error.what());
      }
    };
    const auto all = [](const Archive& archive) { archive.load(); };
    const auto alone = [](const Archive& archive) { archive["x"].load(); };
    const auto into = [&](const Archive& archive) {
      const Placement place{0, Tensor::empty(tensor.shape(), tensor.dtype())};
      archive.load_into({&place, 1});
    };
    EXPECT_EQ(outcome(good, all), "read");
    EXPECT_EQ(outcome(good, alone), "read");
    EXPECT_EQ(outcome(good, into), "read");
    const Index index = npz_index(good);
    const std::size_t array = index.storages[0].offset + index.entries[0].byte_offset;
    // A bit of the first and last element, and a blank that fills up the header: it has its part in the CRC.
    for (const std::size_t at : {array, array + tensor.nbytes() - 1, array - 2}) {
      std::string bad = good;
      bad[at] = static_cast<char>(at == array - 2 ? '\t' : bad[at] ^ 1);
      const std::string expected = outcome(bad, all);
      EXPECT_THAT(expected, HasSubstr("CRC-32"));
      const auto numbers_of = [](const std::string& text) { return text.substr(text.find("CRC-32")); };
      EXPECT_EQ(numbers_of(outcome(bad, alone)), numbers_of(expected)) << at;
      EXPECT_EQ(numbers_of(outcome(bad, into)), numbers_of(expected)) << at;
      EXPECT_EQ(outcome(bad, [](const Archive& archive) { archive["x"].slice(0, 1, 2).load(); }), "read");
      EXPECT_EQ(outcome(bad, [](const Archive& archive) { archive["x"].load({.verify = false}); }), "read");
    }
  }
}

TEST(Npz, AHeaderThatClaimsFewerElementsIsChecked) {
  const std::string whole = npy_of(numbered(DType::int32, Shape{3, 4}));
  const std::uint32_t crc = test::crc_of(whole);
  for (const std::string_view shape : {"(0, 4)", "(3, 1)"})
    for (const bool compress : {false, true}) {
      std::string npy = whole;
      npy.replace(npy.find("(3, 4)"), 6, shape);
      test::ZipMember member{.name = "a.npy", .data = npy, .local_crc = crc, .crc = crc};
      if (compress) {
        member.method = 8;
        member.stored = deflated(npy);
      }
      const Source source = source_of(build_zip({member}), "x.npz");
      EXPECT_EQ(test::code_of([&] { kNpzFormat.read_index(source, {}); }), ErrorCode::kChecksum);
      EXPECT_EQ(kNpzFormat.read_index(source, {.verify = false}).entries.size(), 1u);
    }
}

TEST(Npz, RefusesEveryTruncation) {
  const std::string file =
      written(kNpzFormat, Value::dict(Items{{"a", Value::tensor(numbered(DType::int8, Shape{5}))}}));
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_EQ(test::code_of([&] { npz_index(file.substr(0, length)); }), ErrorCode::kTruncated) << length;
  }
}

TEST(Npz, SurvivesEveryChangedByte) {
  for (const bool compress : {false, true}) {
    const std::string file = written(
        kNpzFormat, Value::dict(Items{{"a", Value::tensor(numbered(DType::int8, Shape{5}))}}), {.compress = compress});
    for (std::size_t at = 0; at < file.size(); ++at) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ 0x41);
      try {
        EXPECT_LE(npz_index(changed).entries.size(), 1u);
      } catch (const Error& error) {
        EXPECT_EQ(error.path(), "x.npz");
      }
    }
  }
}

TEST(Npz, ABareTensorIsTheFirstArray) {
  const Tensor tensor = numbered(DType::int8, Shape{2});
  EXPECT_EQ(names_of(npz_index(written(kNpzFormat, Value::tensor(tensor)))), std::vector<std::string>{"arr_0"});
}

TEST(Npz, KeepsFortranOrder) {
  const Tensor tensor = numbered(DType::int16, Shape{4, 3}).transpose(0, 1);
  const std::string file = written(kNpzFormat, Value::tensor(tensor));
  EXPECT_THAT(file, HasSubstr("'fortran_order': True"));
  EXPECT_TRUE(Tensor::identical(load_entry(npz_index(file), 0), tensor));
}

TEST(Npz, HoldsAFlatDictOfTensors) {
  const Value tensor = Value::tensor(numbered(DType::int8, Shape{1}));
  const Value half = Value::tensor(numbered(DType::complex32, Shape{1}));
  struct Case {
    Value value;
    ErrorCode code;
    const char* message;
  };
  for (const Case& bad : {
           Case{Value::integer(1), ErrorCode::kUnsupported, "dict of tensors"},
           Case{Value::list({tensor}), ErrorCode::kUnsupported, "dict of tensors"},
           Case{Value::dict(Items{{"a", Value::integer(1)}}), ErrorCode::kUnsupported, "'a'"},
           Case{Value::dict(Items{{"a", Value::dict(Items{{"b", tensor}})}}), ErrorCode::kUnsupported, "flat dict"},
           Case{Value::dict(Items{{std::string("a\0b", 3), tensor}}), ErrorCode::kInvalidArgument, "zero byte"},
           Case{Value::dict(Items{{std::string(65535, 'n'), tensor}}), ErrorCode::kInvalidArgument, "65535"},
           Case{Value::dict(Items{{"h", half}}), ErrorCode::kUnsupported, "complex32"},
       }) {
    test::StringSink sink;
    const auto error = test::error_of([&] { kNpzFormat.write(bad.value, sink, {}, "out.npz"); });
    ASSERT_TRUE(error) << bad.message;
    EXPECT_EQ(error->code(), bad.code) << error->what();
    EXPECT_THAT(error->message(), HasSubstr(bad.message));
    EXPECT_EQ(error->path(), "out.npz");
  }
}

TEST(Npz, KeysAreLabels) {
  Items items;
  for (const char* key : {"../a", "/group/data", "..", "a\\b", "C:\\x", "a/../b", "", "a//b", "x.npy", "x"}) {
    items.emplace_back(key, Value::tensor(numbered(DType::int8, Shape{2})));
  }
  const Index index = npz_index(written(kNpzFormat, Value::dict(items)));
  ASSERT_EQ(index.entries.size(), items.size());
  for (std::size_t i = 0; i < items.size(); ++i) EXPECT_EQ(index.entries[i].name, items[i].first);
}

TEST(Npz, TellsNumpysReaderOfFoldersAndPython2) {
  std::string old = npy_of(numbered(DType::int8, Shape{2}));
  old.replace(old.find("(2,)"), 5, "(2L,)");
  const Index index = npz_index(build_zip({{.name = "d/", .data = ""},
                                           {.name = "a.npy", .data = npy_of(numbered(DType::int8, Shape{2}))},
                                           {.name = "d/e/", .data = ""},
                                           {.name = "b.npy", .data = old}}));
  EXPECT_EQ(names_of(index), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(index.numpy.folders, (std::vector<std::pair<std::size_t, std::string>>{{0, "d/"}, {1, "d/e/"}}));
  EXPECT_EQ(index.numpy.python2_headers, std::vector<std::size_t>{1});
}

TEST(Npz, IsAnyZipWithoutAPickle) {
  const Source npz = source_of(build_zip({{.name = "a.npy"}}));
  EXPECT_EQ(detect(*npz).name, "npz");
  const Source torch = source_of(build_zip({{.name = "m/data.pkl"}}));
  EXPECT_FALSE(kNpzFormat.sniff(test::bytes_of("PK\3\4"), *torch));
}

TEST(NpzCorpus, IsRead) {
  const auto folder = test::corpus();
  if (!folder) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS, or put it at ../shared/corpus";
  for (const char* name : {"py2-objarr.npz", "py3-objarr.npz"}) {
    const Index index = kNpzFormat.read_index(open_source((*folder / "numpy" / name).string()), {});
    EXPECT_TRUE(index.structure["x"].is(Value::Kind::kList)) << name;
  }
  const Index index = kNpzFormat.read_index(open_source((*folder / "candle/test.npz").string()), {});
  ASSERT_EQ(names_of(index), (std::vector<std::string>{"x", "x_plus_one"}));
  const Tensor x = load_entry(index, 0);
  const Tensor next = load_entry(index, 1);
  EXPECT_THAT(test::values_of<std::int64_t>(x), testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(test::values_of<std::int64_t>(next), testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
}

}  // namespace
}  // namespace penstock::format
