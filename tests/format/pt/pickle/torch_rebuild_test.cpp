// Dense and composite tensors, and every way to lie about them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "format/pt/pickle/pickled.h"
#include "format/pt/pickle/world.h"
#include "support/errors.h"

namespace penstock::format::pickle {
namespace {

using namespace std::string_literals;
using namespace test::pickled;
using test::code_of;
using test::error_of;
using test::index_of;
using test::read_object;
using testing::HasSubstr;
using Kind = Value::Kind;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
const std::string kTrue = "\x88";
const std::string kFalse = "\x89";
const std::string kNone = "N";

std::string utils(std::string_view name) { return global("torch._utils", name); }
std::string dtype(std::string_view name) { return global("torch", name); }
/// Sixteen floats.
std::string floats() { return storage("FloatStorage", "0", 16); }
std::string matrix() { return tensor(floats(), 0, {2, 3}, {3, 1}); }
std::string ints(const std::vector<std::int64_t>& shape) {
  return tensor(storage("LongStorage", "0", 8), 0, shape, std::vector<std::int64_t>(shape.size(), 1));
}

TensorEntry only_entry(const std::string& object, bool swapped = false) {
  const Index index = test::read_whole(whole(object), swapped);
  EXPECT_EQ(index.entries.size(), 1U);
  return index.entries.at(0);
}

TEST(Rebuild, TensorV2) {
  const TensorEntry entry = only_entry(tensor(floats(), 4, {2, 3}, {1, 2}, kTrue));
  EXPECT_EQ(entry.dtype, DType::float32);
  EXPECT_EQ(entry.shape, (Shape{2, 3}));
  EXPECT_EQ(entry.strides, (Strides{1, 2}));
  EXPECT_EQ(entry.byte_offset, 16U);
  EXPECT_TRUE(entry.requires_grad);
  EXPECT_FALSE(entry.encoding.conjugate || entry.encoding.negative || entry.encoding.swapped);
}

TEST(Rebuild, ConjugateAndNegativeBits) {
  const auto with = [](const std::string& type, std::int64_t numel, const std::string& metadata) {
    return call(utils("_rebuild_tensor_v2"), {storage(type, "1", numel), integer(0), integers({1}), integers({1}),
                                              kFalse, ordered_dict(), metadata});
  };
  const TensorEntry both = only_entry(with("ComplexFloatStorage", 2, dict({text("conj"), kTrue, text("neg"), kTrue})));
  EXPECT_TRUE(both.encoding.conjugate && both.encoding.negative);
  EXPECT_TRUE(only_entry(with("FloatStorage", 4, dict({text("neg"), kTrue, text("other"), kNone}))).encoding.negative);
  EXPECT_FALSE(only_entry(with("FloatStorage", 4, kNone)).encoding.negative);
  EXPECT_EQ(code_of([&] { index_of(with("FloatStorage", 4, dict({text("conj"), kTrue}))); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([&] { index_of(with("FloatStorage", 4, dict({text("neg"), text("x")}))); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([&] { index_of(with("FloatStorage", 4, "]")); }), ErrorCode::kCorrupt);
}

TEST(Rebuild, TensorV3HasItsOwnDType) {
  for (const char* name :
       {"float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e8m0fnu", "bits8", "bits16",
        "complex32", "uint16", "uint32", "uint64", "float4_e2m1fn_x2", "bfloat16", "int4", "uint7", "bits2x4"}) {
    const TensorEntry entry =
        only_entry(call(utils("_rebuild_tensor_v3"), {storage("UntypedStorage", "1", 16), integer(1), integers({1}),
                                                      integers({1}), kFalse, ordered_dict(), dtype(name)}));
    EXPECT_EQ(entry.dtype.name(), name);
    EXPECT_EQ(entry.byte_offset, entry.dtype.itemsize());
  }
}

TEST(Rebuild, OldTensorsAndParameters) {
  EXPECT_EQ(only_entry(call(utils("_rebuild_tensor"), {floats(), integer(0), integers({4}), integers({1})})).shape,
            Shape{4});
  EXPECT_TRUE(only_entry(call(utils("_rebuild_parameter"), {matrix(), kTrue, ordered_dict()})).requires_grad);
  const Value state = read_object(
      call(utils("_rebuild_parameter_with_state"), {matrix(), kFalse, ordered_dict(), dict({text("a"), "K\x01"})}));
  ASSERT_TRUE(state.is(Kind::kTensor));
  EXPECT_EQ(state.type_name(), kParameterName);
  EXPECT_EQ((*state.state())["a"].as_int(), 1);
  EXPECT_TRUE(only_entry(call(global("torch.nn.parameter", "Parameter"), {matrix()})).requires_grad);
  EXPECT_FALSE(only_entry(call(global("torch.nn.parameter", "Parameter"), {matrix(), kFalse})).requires_grad);
  // torch 0.3: the mark comes with the state.
  EXPECT_FALSE(only_entry(call(global("torch.nn.parameter", "Parameter"), {matrix()}) +
                          tuple({kFalse, kFalse, ordered_dict()}) + "b")
                   .requires_grad);
  EXPECT_EQ(only_entry(global("torch", "FloatTensor") + ")\x81" +
                       tuple({floats(), integer(1), integers({2}), integers({3})}) + "b")
                .byte_offset,
            4U);
}

TEST(Rebuild, FromType) {
  const std::string arguments = tuple({floats(), integer(0), integers({4}), integers({1}), kFalse, ordered_dict()});
  for (const char* module : {"torch._tensor", "torch.tensor"}) {
    const Value value = read_object(
        call(global(module, "_rebuild_from_type_v2"), {utils("_rebuild_tensor_v2"), global("my", "Tensor"), arguments,
                                                       tuple({dict({text("tag"), text("x")}), dict({})})}));
    ASSERT_TRUE(value.is(Kind::kTensor));
    EXPECT_EQ(value.type_name(), "my.Tensor");
    EXPECT_EQ((*value.state())[0]["tag"].as_string(), "x");
  }
  // An unknown function gives an object around a tensor that still loads.
  EXPECT_EQ(index_of(call(global("torch._tensor", "_rebuild_from_type_v2"),
                          {global("my", "rebuild"), global("my", "T"), tuple({matrix()}), kNone}))
                .entries.size(),
            1U);
}

TEST(Rebuild, CallsDoNotNest) {
  // Each _rebuild_from_type_v2 would call the next: a way to any depth of the stack.
  std::string nested = tuple({});
  for (int i = 0; i < 3; ++i) {
    nested = tuple({global("torch._tensor", "_rebuild_from_type_v2"), global("m", "T"), nested, kNone});
  }
  EXPECT_EQ(code_of([&] { read_object(global("torch._tensor", "_rebuild_from_type_v2") + nested + "R"); }),
            ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([&] {
              read_object(call(global("copyreg", "__newobj__"), {global("copyreg", "__newobj__"), global("m", "T")}));
            }),
            ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([&] {
              read_object(call(global("torch._tensor", "_rebuild_from_type_v2"),
                               {global("copy_reg", "__newobj__"), global("m", "T"), tuple({global("m", "T")}), kNone}));
            }),
            ErrorCode::kCorrupt);
}

TEST(Rebuild, DeviceTensors) {
  for (const char* name :
       {"_rebuild_device_tensor_from_cpu_tensor", "_rebuild_device_tensor_from_numpy", "_rebuild_xla_tensor"}) {
    EXPECT_TRUE(only_entry(call(utils(name), {matrix(), dtype("float32"), text("xla:0"), kTrue})).requires_grad);
    const Index other = index_of(call(utils(name), {matrix(), dtype("bfloat16"), text("xla:0"), kTrue}));
    EXPECT_TRUE(other.structure.is(Kind::kObject));
    EXPECT_EQ(other.entries.size(), 1U);
  }
}

TEST(Rebuild, ByteOrderIsTheTensors) {
  EXPECT_TRUE(only_entry(tensor(floats(), 0, {1}, {1}), true).encoding.swapped);
  EXPECT_FALSE(only_entry(tensor(storage("ByteStorage", "0", 64), 0, {1}, {1}), true).encoding.swapped);
  EXPECT_TRUE(
      only_entry(call(utils("_rebuild_tensor_v3"), {storage("UntypedStorage", "1", 16), integer(0), integers({1}),
                                                    integers({1}), kFalse, ordered_dict(), dtype("uint16")}),
                 true)
          .encoding.swapped);
}

TEST(Rebuild, EveryStorageClass) {
  const std::vector<std::pair<std::string, std::string>> classes = {{"DoubleStorage", "float64"},
                                                                    {"FloatStorage", "float32"},
                                                                    {"HalfStorage", "float16"},
                                                                    {"LongStorage", "int64"},
                                                                    {"IntStorage", "int32"},
                                                                    {"ShortStorage", "int16"},
                                                                    {"CharStorage", "int8"},
                                                                    {"ByteStorage", "uint8"},
                                                                    {"BoolStorage", "bool"},
                                                                    {"BFloat16Storage", "bfloat16"},
                                                                    {"ComplexDoubleStorage", "complex128"},
                                                                    {"ComplexFloatStorage", "complex64"},
                                                                    {"ComplexHalfStorage", "complex32"}};
  for (const auto& [name, type] : classes) {
    const DType expected = *DType::from_name(type);
    const auto numel = static_cast<std::int64_t>(64 / expected.itemsize());
    EXPECT_EQ(only_entry(tensor(storage(name, "0", numel), 0, {1}, {1})).dtype, expected) << name;
    const std::string cuda =
        tuple({text("storage"), global("torch.cuda", name), text("0"), text("cuda:0"), integer(numel)}) + "Q";
    EXPECT_EQ(only_entry(tensor(cuda, 0, {1}, {1})).dtype, expected) << name;
  }
  EXPECT_FALSE(storage_type("torch.EvilStorage"));
  EXPECT_FALSE(storage_type("os.FloatStorage"));
}

TEST(Rebuild, StorageIdsOfPython2AreBytes) {
  const std::string id = tuple({"U\x07storage", global("torch", "FloatStorage"),
                                "U\x01"
                                "0",
                                "U\x03"
                                "cpu",
                                integer(16)}) +
                         "Q";
  EXPECT_EQ(only_entry(tensor(id, 0, {1}, {1})).dtype, DType::float32);
}

struct Lie {
  std::string name;
  std::string object;
};

class EveryLie : public testing::TestWithParam<Lie> {};

TEST_P(EveryLie, IsRefused) {
  const auto error = error_of([&] { index_of(GetParam().object); });
  ASSERT_TRUE(error);
  EXPECT_TRUE(error->code() == ErrorCode::kCorrupt || error->code() == ErrorCode::kLimit) << error->what();
  EXPECT_TRUE(error->offset()) << error->what();
}

std::string qtensor(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides,
                    std::int64_t offset, const std::string& parameters, const std::string& type = "QInt8Storage",
                    std::int64_t numel = 16) {
  return call(utils("_rebuild_qtensor"), {storage(type, "1", numel), integer(offset), integers(shape),
                                          integers(strides), parameters, kFalse, ordered_dict()});
}
std::string per_tensor() { return tuple({global("torch", "per_tensor_affine"), "G?\xf0\0\0\0\0\0\0"s, integer(0)}); }
std::string per_channel(const std::string& scales, const std::string& zeros, const std::string& axis) {
  return tuple({global("torch", "per_channel_affine"), scales, zeros, axis});
}
std::string numbers(int count) {
  std::string out = "](";
  for (int i = 0; i < count; ++i) out += integer(i);
  return out + "e";
}
std::string sparse(const std::string& layout, std::initializer_list<std::string> data) {
  return call(utils("_rebuild_sparse_tensor"),
              {call(global("torch.serialization", "_get_layout"), {text("torch." + layout)}), tuple(data)});
}

std::string from_type(const std::string& type) {
  return call(global("torch._tensor", "_rebuild_from_type_v2"),
              {utils("_rebuild_tensor"), type, tuple({floats(), integer(0), integers({1}), integers({1})}), kNone});
}

std::vector<Lie> lies() {
  const auto view = [](std::int64_t offset, const std::vector<std::int64_t>& shape,
                       const std::vector<std::int64_t>& strides) { return tensor(floats(), offset, shape, strides); };
  return {
      {"one_element_too_many", view(0, {17}, {1})},
      {"offset_beyond", view(16, {1}, {1})},
      {"offset_negative", view(-1, {1}, {1})},
      {"offset_huge", view(kHuge, {1}, {1})},
      {"stride_too_wide", view(0, {2}, {16})},
      {"stride_negative", view(8, {2}, {-1})},
      {"stride_huge", view(0, {2}, {kHuge})},
      {"size_negative", view(0, {-1}, {1})},
      {"size_wraps", view(0, {kHuge, kHuge}, {0, 0})},
      {"numel_wraps_to_zero", view(0, {std::int64_t{1} << 32, std::int64_t{1} << 32}, {0, 0})},
      {"bytes_wrap", view(0, {std::int64_t{1} << 62}, {0})},
      {"sum_of_strides_wraps", view(0, {3, 3}, {kHuge / 2, kHuge / 2})},
      {"offset_plus_extent_wraps", view(kHuge - 1, {4}, {1})},
      {"ranks_differ", view(0, {1, 1}, {1})},
      {"rank_65", view(0, std::vector<std::int64_t>(65, 1), std::vector<std::int64_t>(65, 1))},
      {"size_of_bools", call(utils("_rebuild_tensor"), {floats(), integer(0), tuple({kTrue}), integers({1})})},
      {"size_of_floats", call(utils("_rebuild_tensor"), {floats(), integer(0), tuple({"F1\n"}), integers({1})})},
      {"size_no_tuple", call(utils("_rebuild_tensor"), {floats(), integer(0), text("x"), integers({1})})},
      {"offset_no_int", call(utils("_rebuild_tensor"), {floats(), kNone, integers({1}), integers({1})})},
      {"offset_big_int",
       call(utils("_rebuild_tensor"), {floats(), "L99999999999999999999L\n", integers({1}), integers({1})})},
      {"storage_no_storage", call(utils("_rebuild_tensor"), {matrix(), integer(0), integers({1}), integers({1})})},
      {"too_few_arguments", call(utils("_rebuild_tensor_v2"), {floats(), integer(0), integers({1}), integers({1})})},
      {"too_many_arguments",
       call(utils("_rebuild_tensor"), {floats(), integer(0), integers({1}), integers({1}), kNone})},
      {"requires_grad_text", tensor(floats(), 0, {1}, {1}, text("yes"))},
      {"hooks_text",
       call(utils("_rebuild_tensor_v2"), {floats(), integer(0), integers({1}), integers({1}), kFalse, text("x")})},
      {"v3_dtype_text", call(utils("_rebuild_tensor_v3"), {floats(), integer(0), integers({1}), integers({1}), kFalse,
                                                           ordered_dict(), text("float32")})},
      {"v3_wider_dtype",
       call(utils("_rebuild_tensor_v3"), {storage("UntypedStorage", "1", 16), integer(0), integers({3}), integers({1}),
                                          kFalse, ordered_dict(), dtype("float64")})},
      {"parameter_of_list", call(utils("_rebuild_parameter"), {"]", kTrue, ordered_dict()})},
      {"from_type_of_list", call(global("torch._tensor", "_rebuild_from_type_v2"),
                                 {global("builtins", "list"), global("m", "T"), tuple({}), kNone})},
      {"from_type_of_storage", from_type(global("torch.storage", "TypedStorage"))},
      {"from_type_of_size", from_type(global("torch", "Size"))},
      {"from_type_of_numpys_array", from_type(global("numpy", "ndarray"))},
      {"from_type_in_numpys_order", from_type(global("numpy.core.numeric", "_frombuffer"))},
      {"storage_missing", tensor(storage("FloatStorage", "9", 16), 0, {1}, {1})},
      {"storage_of_other_size", tensor(storage("FloatStorage", "0", 17), 0, {1}, {1})},
      {"storage_numel_wraps", tensor(storage("FloatStorage", "0", (std::int64_t{1} << 62) + 16), 0, {1}, {1})},
      {"storage_negative", tensor(storage("FloatStorage", "0", -16), 0, {1}, {1})},
      {"storage_id_short", tuple({text("storage"), global("torch", "FloatStorage"), text("0")}) + "Q"},
      {"storage_key_none",
       tuple({text("storage"), global("torch", "FloatStorage"), "N", text("cpu"), integer(16)}) + "Q"},
      {"storage_location_int",
       tuple({text("storage"), global("torch", "FloatStorage"), text("0"), integer(0), integer(16)}) + "Q"},
      {"storage_view_beyond", tuple({text("storage"), global("torch", "FloatStorage"), text("0"), text("cpu"),
                                     integer(16), tuple({text("v"), integer(10), integer(7)})}) +
                                  "Q"},
      {"storage_view_wraps", tuple({text("storage"), global("torch", "FloatStorage"), text("0"), text("cpu"),
                                    integer(16), tuple({text("v"), integer(kHuge), integer(kHuge)})}) +
                                 "Q"},
      {"tensor_build_short", global("torch", "FloatTensor") + ")\x81" + tuple({floats(), integer(0)}) + "b"},
      {"tensor_build_beyond",
       global("torch", "FloatTensor") + ")\x81" + tuple({floats(), integer(0), integers({17}), integers({1})}) + "b"},
      {"tensor_build_of_other_dtype",
       global("torch", "LongTensor") + ")\x81" + tuple({floats(), integer(0), integers({1}), integers({1})}) + "b"},
      {"tensor_build_again", matrix() + tuple({floats(), integer(0), integers({1}), integers({1})}) + "b"},
      {"quantized_without_scale", tensor(storage("QInt8Storage", "1", 16), 0, {1}, {1})},
      {"v3_quantized_without_scale",
       call(utils("_rebuild_tensor_v3"), {storage("UntypedStorage", "1", 16), integer(0), integers({1}), integers({1}),
                                          kFalse, ordered_dict(), dtype("quint8")})},
      {"setitem_on_tensor", matrix() + "K\x01K\x02s"},
      {"setitem_on_storage", floats() + "K\x01K\x02s"},
      {"setitem_on_size", call(global("torch", "Size"), {tuple({})}) + "K\x01K\x02s"},
      {"setitem_on_device", call(global("torch", "device"), {text("cpu")}) + "K\x01K\x02s"},
      {"build_on_storage", floats() + "}b"},
      {"size_of_text", call(global("torch", "Size"), {tuple({text("x")})})},
      {"device_of_int", call(global("torch", "device"), {integer(1)})},
      {"layout_of_function", call(global("torch.serialization", "_get_layout"), {text("os.system")})},
      // pytorch #184652: the quantized path had no extent check.
      {"quantized_stride_beyond", qtensor({2, 2}, {1000, 1}, 0, per_tensor())},
      {"quantized_offset_beyond", qtensor({1}, {1}, 16, per_tensor())},
      {"quantized_wraps", qtensor({2}, {kHuge}, 0, per_tensor())},
      {"quantized_axis_beyond", qtensor({2, 3}, {3, 1}, 0, per_channel(numbers(2), numbers(2), integer(2)))},
      {"quantized_axis_negative", qtensor({2, 3}, {3, 1}, 0, per_channel(numbers(2), numbers(2), integer(-1)))},
      {"quantized_axis_text", qtensor({2, 3}, {3, 1}, 0, per_channel(numbers(2), numbers(2), text("0")))},
      {"quantized_scales_short", qtensor({2, 3}, {3, 1}, 0, per_channel(numbers(1), numbers(2), integer(0)))},
      {"quantized_zeros_long", qtensor({2, 3}, {3, 1}, 0, per_channel(numbers(2), numbers(3), integer(0)))},
      {"quantized_scales_text", qtensor({2, 3}, {3, 1}, 0, per_channel(text("xx"), numbers(2), integer(0)))},
      {"quantized_scale_text",
       qtensor({2}, {1}, 0, tuple({global("torch", "per_tensor_affine"), text("1"), integer(0)}))},
      {"quantized_scheme_unknown", qtensor({2}, {1}, 0, tuple({global("os", "system"), integer(1), integer(0)}))},
      {"quantized_scheme_that_torch_has_not",
       qtensor({2}, {1}, 0, tuple({global("torch", "per_tensor_other"), integer(1), integer(0)}))},
      {"quantized_no_scheme", qtensor({2}, {1}, 0, tuple({}))},
      {"packed_beyond", qtensor({33}, {1}, 0, per_tensor(), "QUInt4x2Storage")},
      {"sparse_indices_flat", sparse("sparse_coo", {ints({2}), matrix(), integers({4, 4})})},
      {"sparse_lengths_differ", sparse("sparse_coo", {ints({2, 3}), matrix(), integers({4, 4})})},
      {"sparse_dimensions_differ", sparse("sparse_coo", {ints({1, 2}), matrix(), integers({4})})},
      {"sparse_size_text", sparse("sparse_coo", {ints({1, 2}), matrix(), text("x")})},
      {"sparse_values_list", sparse("sparse_coo", {ints({1, 2}), "]", integers({4, 3})})},
      {"sparse_strided", sparse("strided", {matrix()})},
      {"compressed_lengths_differ", sparse("sparse_csr", {ints({3}), ints({3}), matrix(), integers({2, 2})})},
      {"compressed_empty", sparse("sparse_csr", {ints({0}), ints({2}), ints({2}), integers({2, 2})})},
      {"sparse_layout_cut",
       call(utils("_rebuild_sparse_tensor"),
            {global("torch", "sparse_c"), tuple({ints({3}), ints({2}), ints({2}), integers({2, 2})})})},
      {"nested_sizes_differ",
       call(utils("_rebuild_nested_tensor"), {ints({4}), ints({2, 1}), ints({1, 1}), ints({2})})},
      {"nested_buffer_2d",
       call(utils("_rebuild_nested_tensor"), {ints({2, 1}), ints({2, 1}), ints({2, 1}), ints({2})})},
      {"meta_ranks_differ",
       call(utils("_rebuild_meta_tensor_no_storage"), {dtype("float32"), integers({1}), tuple({}), kFalse})},
  };
}
INSTANTIATE_TEST_SUITE_P(Rebuild, EveryLie, testing::ValuesIn(lies()), [](const auto& one) { return one.param.name; });

TEST(Rebuild, StoragesAreWhereTheyWereFirstSaidToBe) {
  const auto at = [](const char* location) {
    return tuple({text("storage"), global("torch", "FloatStorage"), text("0"), text(location), integer(16)}) + "Q";
  };
  const auto location_of = [&](const char* first, const char* second) {
    return index_of(list({at(first), at(second)})).storages.at(0).location;
  };
  EXPECT_EQ(location_of("cuda:1", "cpu"), "cuda:1");
  EXPECT_EQ(location_of("cpu", "cuda:1"), index_of(at("cpu")).storages.at(0).location);
}

TEST(Rebuild, EmptyTensorsMayBeAnywhere) {
  // As torch: of a tensor without elements neither offset nor strides matter.
  const TensorEntry entry = only_entry(tensor(storage("FloatStorage", "e", 0), 5, {0, 3}, {1000, 1}));
  EXPECT_EQ(entry.byte_offset, 0U);
  EXPECT_EQ(entry.shape, (Shape{0, 3}));
  EXPECT_EQ(only_entry(tensor(floats(), 16, {0}, {1})).byte_offset, 64U);
  EXPECT_EQ(only_entry(tensor(floats(), 17, {0}, {1})).byte_offset, 0U);
  EXPECT_EQ(only_entry(tensor(floats(), std::int64_t{1} << 62, {0}, {1})).byte_offset, 0U);
}

TEST(Rebuild, ExpandedTensorsTakeNoMoreThanTheyDo) {
  EXPECT_EQ(only_entry(tensor(floats(), 15, {1000, 1000}, {0, 0})).strides, (Strides{0, 0}));
}

TEST(Composites, Quantized) {
  const Index index = index_of(qtensor({2, 3}, {3, 1}, 1, per_tensor()));
  const Value& value = index.structure;
  ASSERT_EQ(value.type_name(), "torch.quantized");
  ASSERT_EQ(value.size(), 6U);
  EXPECT_EQ(index.entries[*value[0].entry_index()].dtype.name(), "qint8");
  EXPECT_EQ(index.entries[0].byte_offset, 1U);
  EXPECT_EQ(value[1].as_string(), "per_tensor_affine");
  EXPECT_EQ(value[2].as_float(), 1.0);
  EXPECT_EQ(value[3].as_int(), 0);
  EXPECT_TRUE(value[4].is(Kind::kNone));
}

TEST(Composites, ListsDoNotGrowOnceTheyWereChecked) {
  const std::string size = list({integer(2), integer(3)}) + "q\x07";
  const std::string scales = numbers(3) + "q\x08";
  const std::string object =
      call(utils("_rebuild_qtensor"), {storage("QInt8Storage", "1", 16), integer(0), size, integers({3, 1}),
                                       per_channel(scales, numbers(3), integer(1)), kFalse, ordered_dict()});
  const Value value = read_object(object + "h\x07" + integer(1000) + "a0h\x08" + integer(1) + "a0");
  EXPECT_EQ(value[2].size(), 3U);
  EXPECT_EQ(value[5].size(), 2U);
}

TEST(Composites, QuantizedPerChannel) {
  const Value lists = read_object(qtensor({2, 3}, {3, 1}, 0, per_channel(numbers(3), numbers(3), integer(1))));
  EXPECT_EQ(lists[1].as_string(), "per_channel_affine");
  EXPECT_EQ(lists[4].as_int(), 1);
  const std::string zeros = tensor(floats(), 0, {2}, {1});
  const Index index = index_of(dict({text("q"), qtensor({2, 3}, {3, 1}, 0, per_channel(zeros, zeros, integer(0)))}));
  EXPECT_EQ(index.structure["q"][1].as_string(), "per_channel_affine_float_qparams");
  ASSERT_EQ(index.entries.size(), 3U);
  EXPECT_EQ(index.entries[0].name, "q.values");
  EXPECT_EQ(index.entries[1].name, "q.scales");
  EXPECT_EQ(index.entries[2].name, "q.zero_points");
}

TEST(Composites, PackedQuantizedTensorsAreTheirBytes) {
  // Rows of three values in two bytes each.
  const TensorEntry entry = only_entry(qtensor({3, 3}, {3, 1}, 0, per_tensor(), "QUInt4x2Storage"));
  EXPECT_EQ(entry.shape, Shape{6});
  EXPECT_EQ(entry.dtype.name(), "quint4x2");
  EXPECT_EQ(code_of([&] {
              index_of(qtensor({3, 3}, {1, 3}, 0, per_tensor(), "QUInt4x2Storage"));
            }),
            ErrorCode::kUnsupported);
}

TEST(Composites, Sparse) {
  const Index coo =
      index_of(dict({text("s"), sparse("sparse_coo", {ints({1, 2}), matrix(), integers({4, 3}), kTrue})}));
  EXPECT_EQ(coo.structure["s"].type_name(), "torch.sparse_coo_tensor");
  EXPECT_EQ(coo.entries[0].name, "s.indices");
  EXPECT_EQ(coo.entries[1].name, "s.values");
  for (const char* layout : {"sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"}) {
    const Index index = index_of(sparse(layout, {ints({3}), ints({2}), matrix(), integers({2, 2})}));
    EXPECT_EQ(index.structure.type_name(), "torch." + std::string(layout) + "_tensor");
    EXPECT_EQ(index.entries.size(), 3U);
  }
}

TEST(Composites, NestedMetaAndWrappers) {
  const Value nested =
      read_object(call(utils("_rebuild_nested_tensor"), {ints({4}), ints({2, 1}), ints({2, 1}), ints({2})}));
  EXPECT_EQ(nested.type_name(), "torch.nested_tensor");
  const Index meta = index_of(
      call(utils("_rebuild_meta_tensor_no_storage"), {dtype("float16"), integers({2, 3}), integers({3, 1}), kFalse}));
  EXPECT_EQ(meta.structure.type_name(), "torch.meta_tensor");
  EXPECT_EQ(meta.structure[0].as_dtype(), DType::float16);
  EXPECT_TRUE(meta.entries.empty());
  const Value wrapper = read_object(
      call(utils("_rebuild_wrapper_subclass"), {global("my", "T"), dtype("float32"), integers({2}), integers({1}),
                                                integer(0), global("torch", "strided"), text("cpu"), kFalse}));
  EXPECT_EQ(wrapper.type_name(), "torch.wrapper_subclass");
}

TEST(Composites, KeepTheirClass) {
  const std::string meta = tuple({dtype("float16"), integers({2}), integers({1}), kFalse});
  const auto of_type = [&](const std::string& function, const std::string& type, const std::string& arguments) {
    return index_of(call(global("torch._tensor", "_rebuild_from_type_v2"),
                         {function, type, arguments, tuple({kNone, dict({text("elem"), matrix()})})}));
  };
  const Index sub = of_type(utils("_rebuild_meta_tensor_no_storage"), global("my", "Sub"), meta);
  EXPECT_EQ(sub.structure.type_name(), "torch.tensor_subclass");
  EXPECT_EQ(sub.structure[0].type_name(), "torch.meta_tensor");
  EXPECT_EQ(sub.structure[1].type_name(), "my.Sub");
  ASSERT_TRUE(sub.structure.state());
  EXPECT_EQ(sub.entries.size(), 1U);
  EXPECT_EQ(sub.unknown_globals, std::vector<std::string>{"my.Sub"});
  const Index plain = of_type(utils("_rebuild_meta_tensor_no_storage"), global("torch", "Tensor"), meta);
  EXPECT_EQ(plain.structure.type_name(), "torch.meta_tensor");
  const std::string wrapper = tuple({global("my", "T"), dtype("float32"), integers({2}), integers({1}), integer(0),
                                     global("torch", "strided"), text("cpu"), kFalse});
  const std::string function = utils("_rebuild_wrapper_subclass");
  EXPECT_EQ(of_type(function, global("my", "T"), wrapper).structure.type_name(), "torch.wrapper_subclass");
  EXPECT_EQ(of_type(function, global("my", "U"), wrapper).structure.type_name(), "torch.tensor_subclass");
  EXPECT_THROW(of_type(utils("_rebuild_meta_tensor_no_storage"), global("builtins", "dict"), meta), Error);
}

TEST(Composites, CallsThatAFileNamesLikeThemAreNone) {
  for (const char* name : {"quantized", "sparse_coo_tensor", "sparse_bsc_tensor", "nested_tensor", "meta_tensor",
                           "marked_tensor", "wrapper_subclass", "tensor_subclass"}) {
    const std::string callable = global("torch", name);
    const std::string other = "torch." + std::string(name) + "()";
    const Index index = index_of(call(callable, {matrix()}));
    EXPECT_EQ(index.structure.type_name(), other);
    EXPECT_EQ(index.unknown_globals, std::vector<std::string>{"torch." + std::string(name)});
    EXPECT_EQ(read_object(callable + tuple({matrix()}) + dict({text("a"), kNone}) + "\x92").type_name(), other);
    EXPECT_EQ(
        read_object(call(global("copyreg", "_reconstructor"), {callable, global("builtins", "list"), "]"})).type_name(),
        other);
  }
  EXPECT_EQ(
      read_object(global("torch.nn", "Parameter") + tuple({matrix()}) + dict({text("a"), kNone}) + "\x92").type_name(),
      "torch.nn.Parameter");
  EXPECT_EQ(
      read_object(global("torch.nn.parameter", "Parameter") + tuple({matrix()}) + dict({text("a"), kNone}) + "\x92")
          .type_name(),
      "torch.nn.parameter.Parameter()");
}

TEST(Types, SizeDeviceDTypeLayout) {
  const Value size = read_object(call(global("torch", "Size"), {integers({2, 3})}));
  EXPECT_TRUE(size.is(Kind::kTuple));
  EXPECT_EQ(size.type_name(), "torch.Size");
  EXPECT_EQ(size[1].as_int(), 3);
  EXPECT_EQ(read_object(call(global("torch", "device"), {text("cuda"), integer(1)})).type_name(), "torch.device");
  EXPECT_EQ(read_object(dtype("bfloat16")).as_dtype(), DType::bfloat16);
  EXPECT_EQ(read_object(dtype("int4")).as_dtype().name(), "int4");
  // Names that only look like dtypes.
  EXPECT_TRUE(read_object(dtype("f4")).is(Kind::kGlobal));
  EXPECT_EQ(read_object(global("torch", "channels_last")).type_name(), "torch.channels_last");
}

}  // namespace
}  // namespace penstock::format::pickle
