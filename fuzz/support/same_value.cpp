#include "support/same_value.h"

#include <bit>
#include <complex>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/format.h"
#include "penstock/tensor.h"

namespace penstock::fuzz {

namespace {

using Kind = Value::Kind;

bool same_double(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

bool same_scalar(const Value& a, const Value& b) {
  switch (a.kind()) {
    case Kind::kBool:
      return a.as_bool() == b.as_bool();
    case Kind::kInt:
      return a.as_int() == b.as_int();
    case Kind::kFloat:
      return same_double(a.as_float(), b.as_float());
    case Kind::kComplex:
      return same_double(a.as_complex().real(), b.as_complex().real()) &&
             same_double(a.as_complex().imag(), b.as_complex().imag());
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kBigInt:
      return a.as_string() == b.as_string();
    case Kind::kDType:
      return a.as_dtype() == b.as_dtype();
    default:
      return true;
  }
}

class Comparison {
 public:
  explicit Comparison(const SameOptions& options) : options_(options) {}

  std::string run(const Value& a, const Value& b) {
    open_.emplace_back(a, b);
    while (!open_.empty()) {
      const auto [left, right] = std::move(open_.back());
      open_.pop_back();
      const bool known = left.node_id() != nullptr && !seen_.insert({left.node_id(), right.node_id()}).second;
      if (known) continue;
      if (std::string found = at(left, right); !found.empty()) return found;
    }
    return {};
  }

 private:
  /// Text with lone surrogates is read as bytes that are called text.
  static bool is_text_as_bytes(const Value& a, const Value& b) {
    return a.is(Kind::kString) && b.is(Kind::kBytes) && b.type_name() == "str" && a.as_string() == b.as_string();
  }

  /// One of the two is the plain tensor or list that an array of NumPy's becomes.
  bool is_array_as_plain(const Value& a, const Value& b) const {
    if (options_.arrays || a.kind() != b.kind() || a.type_name().empty() == b.type_name().empty()) return false;
    const std::string& name = a.type_name().empty() ? b.type_name() : a.type_name();
    return a.is(Kind::kTensor) ? name.starts_with("numpy.") : a.is(Kind::kList) && name == "numpy.objects";
  }

  std::string at(const Value& a, const Value& b) {
    if (is_text_as_bytes(a, b)) return {};
    const bool as_plain = is_array_as_plain(a, b);
    const bool states = options_.states && !(as_plain && a.is(Kind::kList));  // which is the array's shape
    const bool same_type = as_plain || a.type_name() == b.type_name() || (a.is(Kind::kTensor) && !options_.marks);
    const bool alike = a.kind() == b.kind() && same_type && a.size() == b.size() && same_scalar(a, b) &&
                       (!states || a.state().has_value() == b.state().has_value());
    if (!alike) {
      return core::format("{} '{}' of kind {} and {} '{}' of kind {}", a.to_string(), a.type_name(),
                          static_cast<int>(a.kind()), b.to_string(), b.type_name(), static_cast<int>(b.kind()));
    }
    if (a.is(Kind::kTensor)) {
      if (std::string found = difference_of(a.as_tensor(), b.as_tensor(), options_); !found.empty()) return found;
    }
    if (states && a.state()) open_.emplace_back(*a.state(), *b.state());
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a.is(Kind::kDict)) {
        Value::Item left = a.item(i);
        Value::Item right = b.item(i);
        open_.emplace_back(std::move(left.first), std::move(right.first));
        open_.emplace_back(std::move(left.second), std::move(right.second));
      } else {
        open_.emplace_back(a[i], b[i]);
      }
    }
    return {};
  }

  const SameOptions& options_;
  std::vector<std::pair<Value, Value>> open_;
  std::set<std::pair<const void*, const void*>> seen_;
};

}  // namespace

std::string difference_of(const Tensor& a, const Tensor& b, const SameOptions& options) {
  if (!Tensor::identical(a, b)) return core::format("elements of {} and {}", a.to_string(), b.to_string());
  const bool marked = options.marks && (a.dtype().is_floating() || a.dtype().is_complex());
  if (!marked || a.requires_grad() == b.requires_grad()) return {};
  return core::format("requires_grad of {}", a.to_string());
}

std::string difference_of(const Value& a, const Value& b, const SameOptions& options) {
  return Comparison(options).run(a, b);
}

}  // namespace penstock::fuzz
