// What programs write, with warnings of every conversion: the templates of the headers must stand them, and calls that
// more than one function could mean must be told apart.

#include <penstock/penstock.h>

#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;

static_assert(std::ranges::input_range<ps::Value> && std::ranges::input_range<ps::Value::Items>);
static_assert(std::ranges::input_range<ps::Dataset> && std::ranges::input_range<ps::Archive>);
static_assert(std::ranges::input_range<ps::SampleStream> && std::ranges::input_range<ps::DataLoader>);
static_assert(!std::ranges::sized_range<ps::DataLoader>);
// What a call gives is taken by adaptors: value.items() | std::views::filter(...).
static_assert(std::ranges::viewable_range<ps::Dataset> && std::ranges::viewable_range<ps::Archive>);
static_assert(std::ranges::viewable_range<decltype(ps::Value().items())>);
static_assert(std::ranges::viewable_range<decltype(ps::Value()[0])>);
static_assert(PENSTOCK_VERSION >= 100 && sizeof(PENSTOCK_VERSION_STRING) > 1);

void tensors(ps::Tensor t) {
  const auto elements = t.values<float>();
  t.at<float>(0, 1U) = static_cast<float>(t.item<int>());
  t = ps::cat({t, ps::stack({t, t}, 0), ps::Tensor::of({1, 2}), ps::Tensor::view(elements, {2, 3})});
  t = ps::sum(t, {0, 1}, true) + ps::mean(t, {0}) + ps::sum(t, 0) + 1;
  t = t.permute({1, 0}).transpose(-1, -2).slice(-1, 0, t.size(-1)).select(0, 0);
  t = ps::Tensor::adopt(std::vector<double>{1, 2}, {2, 1}).to(ps::DType::of<float>());
  t[0].copy_from(t[1]);
}

void values(ps::Value v) {
  for (const ps::Value& item : v) static_cast<void>(item.get<unsigned char>());
  for (const auto& [key, item] : v.items()) v = v.with(key.as_string(), item.get<std::vector<float>>().size());
  v = v[0U][1][2L].with(0, "x").with("a", std::vector<std::string>{"a"});
  v = ps::Value(std::map<std::string, int>{{"a", v.value_or("a", 3)}}).with("b", v.value_or("b", "none"));
  if (v == ps::Value{{"a", 1}} && v.contains("a")) v = {};
}

void datasets(const ps::Dataset& d, ps::Archive a, ps::DataLoader loader) {
  static_cast<void>(ps::files({"a", "b"}).cast(ps::DType::float32, true));
  static_cast<void>(ps::with_labels(d, {{"a", "x"}}));
  static_cast<void>(ps::zip({{"a", d}, {"b", ps::zip({d, d})}, {"c", ps::zip(d, d)}}));
  static_cast<void>(ps::packed("a", true).map([](ps::Tensor t) { return t; }));
  static_cast<void>(ps::rows("a", "w", std::optional<bool>()).filter([](const ps::Value&) { return true; }));
  static_cast<void>(d.map([kept = std::make_unique<int>(1)](const ps::Tensor& t) { return t + *kept; }));
  static_cast<void>(
      d.map([kept = std::make_unique<int>(1)](auto sample, auto&) { return *kept > 0 ? sample : ps::Value(); }));
  static_cast<void>(d.map([](const auto& sample) { return sample; }).filter([](auto&&) { return true; }));
  static_cast<void>(ps::dataset(3, [kept = std::make_unique<int>(1)](auto index) { return ps::Value(index + *kept); }));
  static_cast<void>(ps::stream(d).filter([kept = std::make_unique<int>(1)](const auto&) { return *kept > 0; }));
  static_cast<void>(ps::collate::function([kept = std::make_unique<int>(1)](const auto& all) { return all[0]; }));
  static_cast<void>(ps::collate::function([](const std::vector<ps::Value>& all) { return all[0].as_tensor(); }));
  for (const ps::LazyTensor& lazy : a) lazy.slice(-1, 0, 1).load_into(lazy.load());
  for (ps::Batch& batch : loader) batch[0].copy_from(batch[std::size_t{1}]);
}
