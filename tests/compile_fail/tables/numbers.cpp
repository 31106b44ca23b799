// What is no integer becomes none: sum(t, true) must not mean dimension 1, and 0 not a null pointer. Any integer is
// one.
#include <cstddef>

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
REFUSES((Dataset d), d[true], d[1]);
REFUSES((Value v), v[true], v[1]);
REFUSES((Value v), v[1.5], v[1]);
REFUSES((Value v), v['x'], v["x"]);
REFUSES((Batch b), b[true], b[1]);
REFUSES((Value v), Value('x'), Value("x"));
REFUSES((Value v), Value(L'x'), Value("x"));
REFUSES((Value v), Value(u8'x'), Value("x"));

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
  static_cast<void>(sum(t, {0}));
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
