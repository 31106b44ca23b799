#include "penstock/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <ranges>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "penstock/error.h"
#include "support/errors.h"
#include "value/graph.h"

namespace penstock {
namespace {

using Kind = Value::Kind;
using test::error_of;
using testing::HasSubstr;

Value numbers(std::int64_t count) {
  std::vector<Value> items;
  for (std::int64_t i = 0; i < count; ++i) items.push_back(Value::integer(i));
  return Value::list(std::move(items));
}

Value state_dict() {
  return Value::dict(
      {{"encoder.weight", Value::entry(0)}, {"encoder.bias", Value::entry(1)}, {"step", Value::integer(7)}},
      "OrderedDict");
}

TEST(Value, ScalarsComeBack) {
  EXPECT_TRUE(Value().is(Kind::kNone));
  EXPECT_EQ(Value::boolean(true).as_bool(), true);
  EXPECT_EQ(Value::integer(-5).as_int(), -5);
  EXPECT_EQ(Value::integer(3).as_float(), 3.0);
  EXPECT_EQ(Value::real(2.5).as_float(), 2.5);
  EXPECT_EQ(Value::complex({1, 2}).as_complex(), std::complex<double>(1, 2));
  EXPECT_EQ(Value::string("text").as_string(), "text");
  EXPECT_EQ(Value::bytes(std::string("a\0b", 3)).as_string().size(), 3U);
  EXPECT_EQ(Value::big_integer("123456789012345678901").as_string(), "123456789012345678901");
  EXPECT_EQ(Value::dtype(DType::bfloat16).as_dtype(), DType::bfloat16);
  EXPECT_EQ(Value::tensor(Tensor::of({1, 2})).as_tensor().numel(), 2);
  EXPECT_EQ(Value::global("torch.nn.Linear").type_name(), "torch.nn.Linear");
}

TEST(Value, AnotherKindIsAMismatchThatNamesBoth) {
  const auto error = error_of([] { (void)numbers(1).as_int(); });
  EXPECT_EQ(error->code(), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(error->message(), "the value is a list, where an int was expected");
  EXPECT_EQ(error_of([] { (void)Value().as_string(); })->code(), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(error_of([] { (void)Value::boolean(true).as_int(); })->code(), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(error_of([] { (void)Value::string("1").as_float(); })->code(), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(error_of([] { (void)Value::integer(1).as_tensor(); })->code(), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(error_of([] { (void)Value::integer(1)[0]; })->code(), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(error_of([] { (void)Value()["a"]; })->code(), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(error_of([] { (void)state_dict()[0]; })->code(), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(error_of([] { (void)numbers(2).item(0); })->code(), ErrorCode::kDTypeMismatch);
}

TEST(Value, AnEntryIsATensorThatIsNotLoaded) {
  const Value entry = Value::entry(4);
  EXPECT_TRUE(entry.is(Kind::kTensor));
  EXPECT_EQ(entry.entry_index(), 4U);
  EXPECT_EQ(error_of([&] { (void)entry.as_tensor(); })->code(), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(Value::tensor(Tensor::of({1})).entry_index());
  EXPECT_FALSE(Value().entry_index());
}

TEST(Value, ContainersAreIndexed) {
  const Value list = numbers(3);
  EXPECT_EQ(list.size(), 3U);
  EXPECT_EQ(list[2].as_int(), 2);
  EXPECT_EQ(error_of([&] { (void)list[3]; })->code(), ErrorCode::kIndexOutOfRange);
  EXPECT_THAT(error_of([&] { (void)list[-1]; })->message(), HasSubstr("index -1"));
  const Value size = Value::tuple({Value::integer(2)}, "torch.Size");
  EXPECT_EQ(size.type_name(), "torch.Size");
  EXPECT_EQ(size[0].as_int(), 2);
  const Value object = Value::object("mypkg.Config", {Value::integer(1)}, Value::string("state"));
  EXPECT_EQ(object.size(), 1U);
  EXPECT_EQ(object.state()->as_string(), "state");
  EXPECT_FALSE(list.state());
}

TEST(Value, DictsAreLookedUpByKey) {
  const Value dict = state_dict();
  EXPECT_EQ(dict.size(), 3U);
  EXPECT_EQ(dict["step"].as_int(), 7);
  EXPECT_EQ(dict.item(1).first.as_string(), "encoder.bias");
  EXPECT_FALSE(dict.find("stop"));
  EXPECT_EQ(error_of([&] { (void)dict.item(3); })->code(), ErrorCode::kIndexOutOfRange);
  const auto error = error_of([&] { (void)dict["encoder.wieght"]; });
  EXPECT_EQ(error->code(), ErrorCode::kKeyNotFound);
  EXPECT_THAT(error->message(), HasSubstr("did you mean 'encoder.weight'"));
}

TEST(Value, DictKeysMayBeAnything) {
  const Value dict = Value::dict({{Value::integer(0), Value::string("zero")}, {Value(), Value::string("none")}});
  EXPECT_EQ(dict.item(0).first.as_int(), 0);
  EXPECT_TRUE(dict.item(1).first.is(Kind::kNone));
  EXPECT_FALSE(dict.find("0"));
}

TEST(Value, OfARepeatedKeyTheLastCounts) {
  const Value dict = Value::dict({{"a", Value::integer(1)}, {"a", Value::integer(2)}});
  EXPECT_EQ(dict["a"].as_int(), 2);
}

TEST(Value, HandlesAreNodes) {
  const Value list = numbers(1);
  const Value copy = list;
  EXPECT_TRUE(copy.same_node(list));
  EXPECT_TRUE(list[0].same_node(list[0]));
  EXPECT_FALSE(numbers(1).same_node(list));
  EXPECT_TRUE(Value().same_node(Value()));
}

TEST(Value, ChildrenKeepTheirGraphAlive) {
  Value child;
  {
    ValueGraph graph;
    auto* leaf = graph.add(Kind::kString);
    leaf->scalar = std::string(100, 'x');
    auto* inner = graph.add(Kind::kList);
    inner->items.push_back(ValueGraph::child(leaf));
    auto* root = graph.add(Kind::kList);
    root->items.push_back(ValueGraph::child(inner));
    child = graph.seal(root)[0];
  }
  EXPECT_EQ(child[0].as_string(), std::string(100, 'x'));
}

TEST(Value, DeepNestingIsDestroyedAndWrittenFlat) {
  Value list = Value::list({});
  Value object;
  for (int i = 0; i < 300'000; ++i) {
    list = Value::list({std::move(list)});
    object = Value::object("f", {}, std::move(object));
  }
  EXPECT_LT(list.to_string().size(), 500U);
  EXPECT_LT(object.to_string().size(), 500U);
}

/// a = [a, entry 1, b], b = {"shared": s, "again": s}, s = (entry 0,)
Value tangled() {
  ValueGraph graph;
  const auto text = [&graph](const char* content) {
    auto* node = graph.add(Kind::kString);
    node->scalar = std::string(content);
    return ValueGraph::child(node);
  };
  const auto entry = [&graph](std::size_t index) {
    auto* node = graph.add(Kind::kTensor);
    node->scalar = ValueGraph::Node::Entry{index};
    return ValueGraph::child(node);
  };
  auto* shared = graph.add(Kind::kTuple);
  shared->items.push_back(entry(0));
  auto* b = graph.add(Kind::kDict);
  b->items = {text("shared"), ValueGraph::child(shared), text("again"), ValueGraph::child(shared)};
  auto* a = graph.add(Kind::kList);
  a->items = {ValueGraph::child(a), entry(1), ValueGraph::child(b)};
  a->state = std::make_unique<Value>(ValueGraph::child(b));
  EXPECT_EQ(graph.size(), 7U);
  return graph.seal(a);
}

TEST(ValueGraph, CyclesAndSharingAreLegal) {
  const Value a = tangled();
  EXPECT_TRUE(a[0].same_node(a));
  EXPECT_TRUE(a[0][0][0].same_node(a));
  EXPECT_TRUE(a[2]["shared"].same_node(a[2]["again"]));
  EXPECT_EQ(a.to_string(), "[..., Tensor(entry 1), {'shared': (Tensor(entry 0),), 'again': (Tensor(entry 0),)}]");
}

TEST(WithTensors, ReplacesEntriesAndKeepsTheShape) {
  const std::vector<Tensor> tensors = {Tensor::of({1.0F}), Tensor::of({2, 3})};
  Value loaded;
  {
    const Value a = tangled();
    loaded = with_tensors(a, tensors);
    EXPECT_EQ(a[1].entry_index(), 1U) << "the original is as it was";
  }
  EXPECT_TRUE(loaded[0].same_node(loaded));
  EXPECT_EQ(loaded[1].as_tensor().numel(), 2);
  EXPECT_TRUE(loaded[2]["shared"].same_node(loaded[2]["again"]));
  EXPECT_TRUE(loaded.state()->same_node(loaded[2]));
  EXPECT_EQ(loaded[2]["shared"][0].as_tensor().dtype(), DType::float32);
}

TEST(WithTensors, KeepsEveryKind) {
  const Value value = Value::list(
      {Value(), Value::boolean(true), Value::integer(1), Value::big_integer("9"), Value::real(0.5),
       Value::complex({0, 1}), Value::string("s"), Value::bytes("b"), Value::tensor(Tensor::of({1})),
       Value::dtype(DType::int8), Value::tuple({}, "torch.Size"), Value::set({Value::integer(1)}, "frozenset"),
       state_dict(), Value::object("f", {Value::integer(1)}, Value::integer(2)), Value::global("g")});
  const std::vector<Tensor> tensors = {Tensor::of({1}), Tensor::of({2})};
  const Value copy = with_tensors(value, tensors);
  ASSERT_EQ(copy.size(), value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    EXPECT_EQ(copy[i].kind(), value[i].kind());
    EXPECT_EQ(copy[i].type_name(), value[i].type_name());
  }
  EXPECT_EQ(copy[12]["encoder.bias"].as_tensor()[0].item<int>(), 2);
  EXPECT_TRUE(with_tensors(Value(), tensors).is(Kind::kNone));
}

TEST(WithTensors, WorksAtAnyDepth) {
  Value value = Value::entry(0);
  for (int i = 0; i < 300'000; ++i) value = Value::list({std::move(value)});
  const std::vector<Tensor> tensors = {Tensor::of({1})};
  Value copy = with_tensors(value, tensors);
  while (copy.is(Kind::kList)) copy = copy[0];
  EXPECT_EQ(copy.as_tensor().numel(), 1);
}

TEST(WithTensors, AMissingTensorIsRefused) {
  EXPECT_EQ(error_of([] { with_tensors(Value::entry(1), std::vector<Tensor>{Tensor::of({1})}); })->code(),
            ErrorCode::kInvalidArgument);
}

TEST(ValueText, ReadsAsInPython) {
  EXPECT_EQ(Value().to_string(), "None");
  EXPECT_EQ(Value::boolean(false).to_string(), "False");
  EXPECT_EQ(Value::integer(-3).to_string(), "-3");
  EXPECT_EQ(Value::real(1).to_string(), "1.0");
  EXPECT_EQ(Value::real(0.1).to_string(), "0.1");
  EXPECT_EQ(Value::real(1e30).to_string(), "1e+30");
  EXPECT_EQ(Value::real(-std::numeric_limits<double>::infinity()).to_string(), "-inf");
  EXPECT_EQ(Value::complex({1, -2}).to_string(), "(1-2j)");
  EXPECT_EQ(Value::string("a\nb").to_string(), "'a\\nb'");
  EXPECT_EQ(Value::bytes("a\x80").to_string(), "b'a\\x80'");
  EXPECT_EQ(Value::dtype(DType::float16).to_string(), "float16");
  EXPECT_EQ(Value::tensor(Tensor::empty({2, 3})).to_string(), "Tensor(float32, (2, 3), cpu)");
  EXPECT_EQ(numbers(3).to_string(), "[0, 1, 2]");
  EXPECT_EQ(Value::tuple({Value::integer(1)}).to_string(), "(1,)");
  EXPECT_EQ(Value::tuple({Value::integer(1)}, "torch.Size").to_string(), "torch.Size((1,))");
  EXPECT_EQ(Value::set({}).to_string(), "set()");
  EXPECT_EQ(Value::set({}, "frozenset").to_string(), "frozenset()");
  EXPECT_EQ(Value::set({Value::integer(1)}).to_string(), "{1}");
  EXPECT_EQ(state_dict().to_string(),
            "OrderedDict({'encoder.weight': Tensor(entry 0), 'encoder.bias': Tensor(entry 1), 'step': 7})");
  EXPECT_EQ(Value::object("mypkg.Config", {Value::integer(1)}, Value::integer(2)).to_string(),
            "mypkg.Config(1) with state 2");
  EXPECT_EQ(Value::global("torch.nn.Linear").to_string(), "torch.nn.Linear");
}

TEST(ValueText, IsBounded) {
  EXPECT_LE(numbers(100'000).to_string().size(), 400U);
  EXPECT_THAT(numbers(100'000).to_string(), testing::EndsWith("..."));
  EXPECT_LE(Value::string(std::string(1'000'000, 'x')).to_string().size(), 400U);
  EXPECT_LE(Value::bytes(std::string(1'000'000, '\0')).to_string().size(), 400U);
  EXPECT_LE(Value::big_integer(std::string(1'000'000, '9')).to_string().size(), 400U);
  EXPECT_LE(Value::global(std::string(1'000'000, 'g')).to_string().size(), 400U);
  // Shared nodes make a tree of 2^60 leaves out of sixty nodes.
  Value value = Value::list({});
  for (int i = 0; i < 60; ++i) value = Value::list({value, value});
  EXPECT_LE(value.to_string().size(), 400U);
}

TEST(ValueFromCpp, ContentIsWrittenAsItLooks) {
  const Tensor tensor = Tensor::of({1, 2});
  const Value value = {{"w", tensor}, {"n", 3}, {"inner", {{"rate", 0.5}, {"name", "adam"}, {"on", true}}}};
  EXPECT_TRUE(value.is(Kind::kDict));
  EXPECT_TRUE(Tensor::identical(value["w"].as_tensor(), tensor));
  EXPECT_EQ(value["n"].as_int(), 3);
  EXPECT_EQ(value["inner"]["rate"].as_float(), 0.5);
  EXPECT_EQ(value["inner"]["name"].as_string(), "adam");
  EXPECT_TRUE(value["inner"]["on"].as_bool());
  EXPECT_EQ(Value({{"only", "one"}})["only"].as_string(), "one");
  EXPECT_EQ(Value::dict({{"a", 1}}).item(0).second.as_int(), 1);
  EXPECT_EQ(Value::list({1, "x", 2.5, tensor}).size(), 4U);
}

TEST(ValueFromCpp, EachTypeHasItsKind) {
  EXPECT_EQ(Value(true).kind(), Kind::kBool);
  EXPECT_EQ(Value('\x7F' + 0).kind(), Kind::kInt);
  EXPECT_EQ(Value(std::uint8_t{255}).as_int(), 255);
  EXPECT_EQ(Value(std::numeric_limits<std::int64_t>::min()).as_int(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(Value(std::numeric_limits<std::uint64_t>::max()).kind(), Kind::kBigInt);
  EXPECT_EQ(Value(std::numeric_limits<std::uint64_t>::max()).as_string(), "18446744073709551615");
  EXPECT_EQ(Value(0.1F).as_float(), static_cast<double>(0.1F));
  EXPECT_EQ(Value(std::complex<double>(1, 2)).as_complex(), std::complex<double>(1, 2));
  EXPECT_EQ(Value(std::string("x")).kind(), Kind::kString);
  EXPECT_EQ(Value(std::string_view("x")).kind(), Kind::kString);
  EXPECT_EQ(error_of([] { const Value value = Tensor(); })->code(), ErrorCode::kInvalidArgument);
}

TEST(ValueIteration, WalksOverElementsAndPairs) {
  std::int64_t expected = 0;
  for (const Value& item : numbers(5)) EXPECT_EQ(item.as_int(), expected++);
  EXPECT_EQ(expected, 5);
  std::string keys;
  for (const auto& [key, item] : state_dict().items()) keys += key.as_string() + " ";
  EXPECT_EQ(keys, "encoder.weight encoder.bias step ");
  EXPECT_EQ(state_dict().items().size(), 3U);
  for (const Value& item : Value::tuple({})) ADD_FAILURE() << item.to_string();
}

TEST(ValueIteration, OtherKindsSaySo) {
  EXPECT_THAT(error_of([] { state_dict().begin(); })->message(), HasSubstr("items()"));
  EXPECT_EQ(error_of([] { Value(3).begin(); })->code(), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(error_of([] { Value().begin(); })->code(), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(error_of([] { numbers(1).items(); })->code(), ErrorCode::kDTypeMismatch);
}

TEST(ValueWith, GivesAnotherValueAndKeepsThisOne) {
  const Value dict = {{"a", 1}, {"b", 2}};
  const Value other = dict.with("a", "x").with("c", 3);
  EXPECT_EQ(other.to_string(), "{'a': 'x', 'b': 2, 'c': 3}");
  EXPECT_EQ(dict["a"].as_int(), 1);
  EXPECT_EQ(Value::tuple({1, 2}).with(1, 5).to_string(), Value::tuple({1, 5}).to_string());
  EXPECT_EQ(Value::tuple({1}, "torch.Size").with(0u, 2).type_name(), "torch.Size");
  EXPECT_EQ(error_of([&] { (void)Value::list({1}).with(1, 5); })->code(), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(error_of([&] { (void)Value::list({1}).with(-1, 5); })->code(), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(error_of([&] { (void)Value::list({1}).with("a", 5); })->code(), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(error_of([&] { (void)dict.with(0, 5); })->code(), ErrorCode::kDTypeMismatch);
}

TEST(ValueWith, OfAnOrderedDictKeepsItsNameAndState) {
  ValueGraph graph;
  ValueGraph::Node* root = graph.add(Kind::kDict);
  ValueGraph::Node* item = graph.add(Kind::kInt);
  item->scalar = std::int64_t{1};
  root->type_name = "OrderedDict";
  root->state = std::make_unique<Value>(Value{{"_metadata", 7}});
  root->items = {Value("w"), ValueGraph::child(item)};
  Value changed;
  {
    const Value value = graph.seal(root);
    changed = value.with("v", 2);
  }
  EXPECT_EQ(changed.type_name(), "OrderedDict");
  EXPECT_EQ((*changed.state())["_metadata"].as_int(), 7);
  EXPECT_EQ(changed["w"].as_int(), 1);  // what belonged to the graph is kept
}

TEST(ValueGet, GivesCppTypes) {
  const Value value = {{"epoch", 4}, {"lr", 0.5}, {"name", "x"}, {"on", true}, {"sizes", Value::list({1, 2, 300})}};
  EXPECT_EQ(value["epoch"].get<int>(), 4);
  EXPECT_EQ(value["epoch"].get<double>(), 4.0);
  EXPECT_EQ(value["lr"].get<float>(), 0.5F);
  EXPECT_EQ(value["name"].get<std::string>(), "x");
  EXPECT_TRUE(value["on"].get<bool>());
  EXPECT_EQ(value["sizes"].get<std::vector<int>>(), (std::vector<int>{1, 2, 300}));
  const auto bytes = [&] { (void)value["sizes"].get<std::vector<std::uint8_t>>(); };
  EXPECT_EQ(error_of(bytes)->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([&] { (void)value["lr"].get<int>(); })->code(), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(error_of([&] { (void)value["on"].get<int>(); })->code(), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(error_of([&] { (void)Value(-1).get<unsigned>(); })->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([&] { (void)Value(1e300).get<float>(); })->code(), ErrorCode::kInvalidArgument);
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(Value(kMost).get<std::uint64_t>(), kMost);
  EXPECT_EQ(error_of([&] { (void)Value(kMost).get<std::int64_t>(); })->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(value.value_or("epoch", 0), 4);
  EXPECT_EQ(value.value_or("step", 7L), 7);
  EXPECT_EQ(value.value_or("name", "none"), "x");
  EXPECT_EQ(value.value_or("title", "none"), "none");
  EXPECT_EQ(error_of([&] { (void)value.value_or("name", 3); })->code(), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(error_of([&] { (void)Value(3).value_or("name", 3); })->code(), ErrorCode::kDTypeMismatch);
  EXPECT_TRUE(value.contains("epoch"));
  EXPECT_FALSE(value.contains("step"));
}

TEST(ValueEquality, IsThatOfContents) {
  const auto make = [] { return Value{{"a", 1}, {"b", Value::list({1.5, "x", Value()})}, {"t", Tensor::of({1, 2})}}; };
  EXPECT_EQ(make(), make());
  EXPECT_NE(make(), make().with("a", 2));
  EXPECT_NE(make(), make().with("t", Tensor::of({1, 3})));
  EXPECT_EQ((Value{{"a", 1}, {"b", 2}}), (Value{{"b", 2}, {"a", 1}}));
  EXPECT_NE((Value{{"a", 1}}), (Value{{"a", 1}, {"b", 2}}));
  EXPECT_NE(Value::list({1}), Value::tuple({1}));
  EXPECT_NE(Value(1), Value(1.0));
  EXPECT_NE(Value(), Value(0));
  EXPECT_EQ(Value(), Value());
  EXPECT_EQ(Value::set({1, 2, "x"}), Value::set({"x", 2, 1}));
  EXPECT_NE(Value::set({1, 2}), Value::set({1, 3}));
  EXPECT_NE(Value::set({1, 1, 2}), Value::set({1, 2, 2}));
  EXPECT_NE(Value::set({1}), Value::set({"1"}));
  EXPECT_EQ(Value::set({1.5, Value::tuple({1}), "x", 2}), Value::set({2, Value::tuple({1}), "x", 1.5}));
  std::vector<Value> up, down;
  std::vector<Value::Item> pairs_up, pairs_down;
  for (int i = 0; i < 200'000; ++i) {  // each with each would be 4e10
    up.emplace_back(i);
    down.emplace_back(199'999 - i);
    pairs_up.emplace_back(i, 2 * i);
    pairs_down.emplace_back(199'999 - i, 2 * (199'999 - i));
  }
  EXPECT_EQ(Value::set(up), Value::set(down));
  EXPECT_EQ(Value::dict(pairs_up), Value::dict(pairs_down));
  pairs_down.back().second = 1;
  EXPECT_NE(Value::dict(pairs_up), Value::dict(pairs_down));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(Value(nan), Value(nan));
  EXPECT_EQ(Value::dict(std::vector<Value::Item>{{1, "x"}, {Value::tuple({1, 2}), "y"}}),
            Value::dict(std::vector<Value::Item>{{Value::tuple({1, 2}), "y"}, {1, "x"}}));
}

TEST(ValueEquality, EndsInCyclesAndAtAnyDepth) {
  const auto cycle = [] {
    ValueGraph graph;
    ValueGraph::Node* node = graph.add(Kind::kList);
    node->items = {ValueGraph::child(node), Value(1)};
    return graph.seal(node);
  };
  EXPECT_EQ(cycle(), cycle());
  const auto deep = [](int inner) {
    Value out(inner);
    for (int i = 0; i < 100'000; ++i) out = Value::list({std::move(out)});
    return out;
  };
  EXPECT_EQ(deep(1), deep(1));
  EXPECT_NE(deep(1), deep(2));
}

TEST(ValueFromCpp, VectorsAreListsAndMapsAreDicts) {
  EXPECT_EQ(Value(std::vector<std::string>{"a", "b"}), Value::list({"a", "b"}));
  EXPECT_EQ(Value(std::vector<Value>{1, "b"}), Value::list({1, "b"}));
  EXPECT_EQ(Value(std::map<std::string, double>{{"b", 2}, {"a", 1}}), (Value{{"a", 1.0}, {"b", 2.0}}));
  EXPECT_EQ(Value(std::map<std::string, Tensor>{{"a", Tensor::of({1})}})["a"].as_tensor().at<int>(0), 1);
}

TEST(ValueIteration, IsARange) {
  static_assert(std::ranges::input_range<const Value> && std::ranges::input_range<Value::Items>);
  const Value value = Value::list({3, 4});
  std::int64_t sum = 0;
  std::ranges::for_each(
      value, [&sum](std::int64_t item) { sum += item; }, &Value::get<std::int64_t>);
  EXPECT_EQ(sum, 7);
  EXPECT_EQ(value[1u].as_int(), 4);
  EXPECT_EQ(value[std::int64_t{1}].as_int(), 4);
  EXPECT_EQ(error_of([&] { (void)value[std::int8_t{-1}]; })->code(), ErrorCode::kIndexOutOfRange);
}

TEST(Value, ANullPointerIsNoText) {
  const char* const unset = nullptr;
  EXPECT_EQ(error_of([&] { Value{unset}; })->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Value(std::complex<float>(1, 2)), Value(std::complex<double>(1, 2)));
}

TEST(Value, IsMadeOfOptionsAndPrinted) {
  const Integer count = 3;
  const Flag flag = true;
  const Value settings = {{"count", count}, {"flag", flag}};
  EXPECT_EQ(settings, (Value{{"count", 3}, {"flag", true}}));
  std::ostringstream out;
  out << settings << ' ' << count << ' ' << flag;
  EXPECT_EQ(out.str(), settings.to_string() + " 3 1");
}

}  // namespace
}  // namespace penstock
