// What is no integer becomes none: sum(t, true) must not mean dimension 1, and 0 not a null pointer. Any integer is
// one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tables.h"

namespace ps = penstock;

// A bool, a character and a fraction are no dimension and no index.
REFUSES((Tensor t), t[true], t[1]);
REFUSES((Tensor t), t[1.5], t[1]);
REFUSES((Tensor t), t['x'], t[1]);
REFUSES((Tensor t), t.template at<float>(1.7), t.template at<float>(1));
REFUSES((Tensor t), t.shape()[true], t.shape()[1]);
REFUSES((Tensor t), sum(t, true), sum(t, 1, true));
REFUSES((Tensor t), mean(t, true), mean(t, 1, true));
REFUSES((Tensor t), max(t, true), max(t, 1, true));
REFUSES((Tensor t), min(t, true), min(t, 1, true));
REFUSES((Tensor t), argmax(t, true), argmax(t, 1, true));
REFUSES((Tensor t), t + 'x', t + 1);
REFUSES((Tensor t), t.size(1.5), t.size(-1));
REFUSES((Tensor t), t.select(0, 1.5), t.select(0, 1));
REFUSES((Tensor t), t.select(true, 1), t.select(1, 1));
REFUSES((Tensor t), t.slice(0, 0, true), t.slice(0, 0, 1));
REFUSES((Tensor t), t.slice(0, 0, 1.5), t.slice(0, 0, 1, 2));
REFUSES((Tensor t), t.transpose(0, true), t.transpose(0, 1));
REFUSES((Tensor t), t.permute({0, true}), t.permute({0, 1}));
REFUSES((Tensor t), t.cuda(true), t.cuda(1));
REFUSES((Tensor t), sum(t, 1.5), sum(t, 1));
REFUSES((Tensor t), sum(t, {0, true}), sum(t, {0, 1}, true));
REFUSES((Tensor t), ps::cat({t, t}, true), ps::cat({t, t}, 1));
REFUSES((Tensor t), ps::stack({t, t}, 0.5), ps::stack({t, t}, 1));
REFUSES((Tensor t), index_select(t, true, t), index_select(t, 1, t));
REFUSES((Tensor t), t.shape().prepend(1.5), t.shape().prepend(1));
REFUSES((LazyTensor t), t.size(1.5), t.size(-1));
REFUSES((LazyTensor t), t.select(0, 1.5), t.select(0, 1));
REFUSES((LazyTensor t), t.slice(0, 0, true), t.slice(0, 0, 1));
REFUSES((Dataset d), d.get(1.5), d.get(1));
REFUSES((Dataset d), d.describe(true), d.describe(1));
REFUSES((Dataset d), d.one_hot(true), d.one_hot(10));
REFUSES((Dataset d), d.normalize({0}, {1}, 0.5), d.normalize({0}, {1}, -1));
REFUSES((Dataset d), take(d, 0.5), take(d, 5));
REFUSES((Dataset d), skip(d, 'x'), skip(d, 5));
REFUSES((Dataset d), repeat(d, true), repeat(d, 5));
REFUSES((Dataset d), windows(d, 1.5), windows(d, 8));
REFUSES((Dataset d), random_windows(d, 8, true), random_windows(d, 8, 5));
REFUSES((Dataset d), pack_sequences(d, 1e3), pack_sequences(d, 1000));
REFUSES((SampleStream s), s.take(0.5), s.take(5));
REFUSES((SampleStream s), s.skip(true), s.skip(5));
REFUSES((SampleStream s), s.repeat(true), s.repeat(5));
REFUSES((SampleStream s), s.repeat(2.5), s.repeat());
REFUSES((SampleStream s), s.shuffle(1e3), s.shuffle(1000));
REFUSES((Archive a), a.entry(1.5), a.entry(1));
REFUSES((WritableArchive a), a.entry(true), a.entry(1));
REFUSES((Value v), v.item(1.5), v.item(1));
REFUSES((Dataset d), d[true], d[1]);
REFUSES((Value v), v[true], v[1]);
REFUSES((Value v), v[1.5], v[1]);
REFUSES((Value v), v['x'], v["x"]);
REFUSES((Batch b), b[true], b[1]);
REFUSES((Value v), Value('x'), Value("x"));
REFUSES((Value v), Value(L'x'), Value("x"));
REFUSES((Value v), Value(u8'x'), Value("x"));

// Options that are a count or a dimension take no bool and no fraction either, by assignment too.
#define TAKES_INTEGERS_ALONE(OPTIONS, FIELD)                                        \
  static_assert(std::is_assignable_v<decltype(ps::OPTIONS::FIELD)&, std::size_t> && \
                std::is_assignable_v<decltype(ps::OPTIONS::FIELD)&, int> &&         \
                !std::is_assignable_v<decltype(ps::OPTIONS::FIELD)&, bool> &&       \
                !std::is_assignable_v<decltype(ps::OPTIONS::FIELD)&, double> &&     \
                !std::is_assignable_v<decltype(ps::OPTIONS::FIELD)&, char>)
TAKES_INTEGERS_ALONE(DistributedOptions, num_replicas);
TAKES_INTEGERS_ALONE(DistributedOptions, rank);
TAKES_INTEGERS_ALONE(FilterOptions, num_workers);
TAKES_INTEGERS_ALONE(LengthBucketOptions, batch_size);
TAKES_INTEGERS_ALONE(LengthBucketOptions, max_tokens);
TAKES_INTEGERS_ALONE(LengthBucketOptions, num_replicas);
TAKES_INTEGERS_ALONE(LengthBucketOptions, rank);
TAKES_INTEGERS_ALONE(LengthsOptions, dim);
TAKES_INTEGERS_ALONE(LengthsOptions, num_workers);
TAKES_INTEGERS_ALONE(LoaderOptions, batch_size);
TAKES_INTEGERS_ALONE(LoaderOptions, num_workers);
TAKES_INTEGERS_ALONE(LoaderOptions, prefetch_factor);
TAKES_INTEGERS_ALONE(MixOptions, size);
TAKES_INTEGERS_ALONE(NodeLocalOptions, nodes);
TAKES_INTEGERS_ALONE(NodeLocalOptions, ranks_per_node);
TAKES_INTEGERS_ALONE(PackOptions, num_workers);
TAKES_INTEGERS_ALONE(PackSequencesOptions, num_workers);
TAKES_INTEGERS_ALONE(PadOptions, dim);
TAKES_INTEGERS_ALONE(PromoteOptions, num_workers);
TAKES_INTEGERS_ALONE(RandomOptions, num_samples);
TAKES_INTEGERS_ALONE(RemoteOptions, requests);
TAKES_INTEGERS_ALONE(WindowOptions, memory);
TAKES_INTEGERS_ALONE(WindowsOptions, shift);
TAKES_INTEGERS_ALONE(WindowsOptions, stride);

// `{}` is no number, though an Integer is made of nothing for those who read one from a stream.
static_assert(std::is_default_constructible_v<ps::Integer>);
REFUSES((Tensor t), t.select(0, {}), t.select(0, 0));
REFUSES((Tensor t), t[{}], t[0]);
static_assert(FITS((Tensor t), sum(t, {})) && FITS((SampleStream s), s.repeat({})));

// An option counts as a number does, and is read as one: by streams, by containers, by what saves it.
static_assert([] {
  ps::Integer n = 5;
  n += 4;
  n %= 7;
  n *= 6;
  --n;
  n++;
  n /= 4;
  n -= 1;
  return n-- == 2 && ++n == 2 && n % 2 == 0 && 5 > n && +n - 1 == 1 && std::min(+n, std::int64_t{9}) == 2;
}());
static_assert(std::is_same_v<decltype(+ps::Integer()), std::int64_t>);
template <class By>
concept MultipliesAnOption = requires(ps::LoaderOptions& options, By by) {
  options.batch_size *= by;
};
static_assert(MultipliesAnOption<int> && MultipliesAnOption<std::size_t> && !MultipliesAnOption<double>);
[[maybe_unused]] void options_are_content(const ps::LoaderOptions& o, ps::Value v) {
  v = {{"batch_size", o.batch_size}, {"shuffle", o.shuffle}, {"workers", +o.num_workers}};
  v = v.with("seed", o.seed).with("batch_size", o.batch_size);
  v = o.drop_last;
}

// 0 is a null pointer too, which is no text.
REFUSES((Value v), v.find(0), v.find("0"));
REFUSES((Value v), v.contains(0), v.contains("0"));
REFUSES((Tensor t), t.to(0), t.to("cuda:0"));
REFUSES((Tensor t), t.to(nullptr), t.to("cuda:0"));
REFUSES((Archive a), a[nullptr], a["w"]);
REFUSES((WritableArchive a), a[nullptr], a["w"]);
static_assert(!std::is_constructible_v<ps::Device, int> && !std::is_constructible_v<ps::Device, std::nullptr_t>);
static_assert(!std::is_assignable_v<ps::Device&, int> && std::is_assignable_v<ps::Device&, const char*>);

// Integers of every width, in braces too.
enum Column { kFirst, kSecond };
[[maybe_unused]] void any_integer(const ps::Tensor& t, const ps::Dataset& d, const ps::Value& v, const ps::Batch& b,
                                  const ps::Archive& a, std::size_t n, int i, unsigned u, short s) {
  static_cast<void>(ps::Shape{n, 3, i, u, s, -1});
  static_cast<void>(ps::Shape({n, n}));
  static_cast<void>(ps::Tensor::zeros({n, 3}).reshape({n, i}));
  static_cast<void>(t[n][u][s][kSecond]);
  static_cast<void>(t.at<float>(n, i, u, kFirst));
  static_cast<void>(t.shape()[n] + t.shape()[i]);
  static_cast<void>(t.size(u) + t.select(i, n).size(n));
  static_cast<void>(t.slice(kFirst, s, n).transpose(n, u).permute({n, u}));
  static_cast<void>(sum(t, n));
  static_cast<void>(sum(t, {0}));
  static_cast<void>(take(d, n));
  static_cast<void>(d.get(u));
  static_cast<void>(d[n]);
  static_cast<void>(v[n][i][kFirst]);
  static_cast<void>(b[n]);
  static_cast<void>(a[n]);
  static_cast<void>(a[0]);
}

// Lists in braces, of one and of several.
[[maybe_unused]] void in_braces(const ps::Dataset& d) {
  static_cast<void>(ps::shards({"a.tar"}));
  static_cast<void>(ps::shards({"a.tar", "b.tar"}));
  static_cast<void>(ps::documents({"a.bin"}));
  static_cast<void>(ps::documents({"a.bin", "b.bin"}));
  static_cast<void>(ps::dataset({"a", "b"}));
  static_cast<void>(ps::dataset({1}));
  static_cast<void>(ps::concat({d, d}));
  static_cast<void>(ps::concat(d, d));
  static_cast<void>(ps::concat(d, d, d));
  static_cast<void>(ps::Order({2, 0, 1}));
}
