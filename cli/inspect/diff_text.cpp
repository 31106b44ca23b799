#include "cli/inspect/diff_text.h"

#include <cfloat>
#include <cstring>
#include <string_view>
#include <vector>

#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "ops/elements.h"

namespace penstock::cli {
namespace {

using archive::Difference;
using archive::Mismatch;

struct Side {
  const Archive& archive;
  const std::optional<std::size_t>& tensor;
  const std::optional<Value>& leaf;

  const TensorEntry& entry() const { return archive.entries()[*tensor]; }
};

Side side_a(const Compared& compared, const Mismatch& place) { return {compared.a, place.a, place.a_leaf}; }
Side side_b(const Compared& compared, const Mismatch& place) { return {compared.b, place.b, place.b_leaf}; }

/// "float32 (3, 4)", or the value itself.
std::string text_of(const Side& side) {
  if (!side.tensor) return side.leaf->to_string();
  return core::format("{} {}", side.entry().dtype.name(), side.entry().shape.to_string());
}

bool is_whole(const DType& dtype) { return dtype.is_integer() || dtype == DType::boolean; }

/// Every digit, for JSON; or few.
std::string number_text(long double value, bool whole, bool exact) {
  if (whole) return core::format("{:.0f}", value);
  if (value > DBL_MAX) return core::format("{:.6g}", value);
  return exact ? core::format("{}", static_cast<double>(value)) : core::format("{:.6g}", static_cast<double>(value));
}

/// The indices of an element by its number in C order.
std::vector<std::int64_t> indices_of(std::int64_t number, const Shape& shape) {
  std::vector<std::int64_t> out(shape.rank());
  for (std::size_t d = shape.rank(); d-- > 0;) {
    out[d] = number % shape[d];
    number /= shape[d];
  }
  return out;
}

std::string element_text(const DType& dtype, const std::string& bytes) {
  Buffer memory = Buffer::allocate(bytes.size());
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  return ops::ElementPrinter(Tensor(memory, dtype, Shape{})).text(0);
}

/// What an array of Python objects is compared as has no indices and no dtype of its own.
bool is_pickled(const Side& side) { return side.entry().pickled; }

std::string first_text(const Side& a, const Side& b, const Difference& values) {
  if (is_pickled(a)) return core::format("byte {} of the pickle", values.first());
  return core::format("[{}]: {} in A, {} in B", fmt::join(indices_of(values.first(), a.entry().shape), ", "),
                      printable(element_text(a.entry().dtype, values.first_of_a())),
                      printable(element_text(b.entry().dtype, values.first_of_b())));
}

void print_values(const Side& a, const Side& b, const Difference& values) {
  if (values.different() == 0) return core::print("    all values are equal\n");
  core::print("    {} of {} differ{}, the first at {}\n", human_count(static_cast<std::uint64_t>(values.different())),
              counted(static_cast<std::uint64_t>(values.count()), is_pickled(a) ? "byte" : "element"),
              values.count() == 1 ? "s" : "", first_text(a, b, values));
  if (!values.is_numeric() || is_pickled(a)) return;
  const bool whole = is_whole(a.entry().dtype) && is_whole(b.entry().dtype);
  core::print("    absolute difference: max {}, mean {}; relative: max {}, mean {}\n",
              number_text(values.max_absolute(), whole, false), number_text(values.mean_absolute(), false, false),
              number_text(values.max_relative(), false, false), number_text(values.mean_relative(), false, false));
  if (values.not_finite() == 0) return;
  core::print("    {} of them with a NaN or an infinity, which the line above leaves out\n",
              human_count(static_cast<std::uint64_t>(values.not_finite())));
}

void print_place(const Compared& compared, const Mismatch& place) {
  const Side a = side_a(compared, place);
  const Side b = side_b(compared, place);
  const std::string name = place.path.empty() ? "(the whole content)" : printable(place.path);
  const auto line = [&](std::string_view colour, std::string_view label, const std::string& text) {
    core::print("{} {}  {}\n", paint(stdout, colour, label), name, printable(text));
  };
  switch (place.kind) {
    case Mismatch::Kind::kOnlyInA:
      return line("31", "only in A:", text_of(a));
    case Mismatch::Kind::kOnlyInB:
      return line("32", "only in B:", text_of(b));
    case Mismatch::Kind::kValues:
      line("33", "differs:", text_of(a));
      break;
    default:
      line("33", "differs:", core::format("{} in A, {} in B", text_of(a), text_of(b)));
  }
  if (place.values) print_values(a, b, *place.values);
}

Json side_json(const Side& side) {
  if (!side.tensor) return Json{{"value", side.leaf->to_string()}};
  const Shape& shape = side.entry().shape;
  return Json{{"dtype", side.entry().dtype.name()}, {"shape", std::vector(shape.begin(), shape.end())}};
}

/// As a number where JSON and double have it, else as text.
Json number_json(long double value, bool whole) {
  if (whole && value <= 18446744073709551615.0L) return static_cast<std::uint64_t>(value);
  if (value <= DBL_MAX) return static_cast<double>(value);
  return number_text(value, false, true);
}

std::string_view word_of(Mismatch::Kind kind) {
  switch (kind) {
    case Mismatch::Kind::kOnlyInA:
      return "only_in_a";
    case Mismatch::Kind::kOnlyInB:
      return "only_in_b";
    case Mismatch::Kind::kShape:
      return "shape";
    case Mismatch::Kind::kDType:
      return "dtype";
    case Mismatch::Kind::kValues:
      return "values";
    case Mismatch::Kind::kLeaf:
      break;
  }
  return "value";
}

}  // namespace

void print_places(const Compared& compared) {
  for (const Mismatch& place : compared.comparison.places) print_place(compared, place);
}

Json to_json(const Compared& compared, const Mismatch& place) {
  const Side a = side_a(compared, place);
  const Side b = side_b(compared, place);
  Json out{{"name", place.path}, {"difference", word_of(place.kind)}};
  if (place.kind != Mismatch::Kind::kOnlyInB) out["a"] = side_json(a);
  if (place.kind != Mismatch::Kind::kOnlyInA) out["b"] = side_json(b);
  if (!place.values) return out;
  const Difference& values = *place.values;
  out["elements"] = values.count();
  out["different"] = values.different();
  if (values.different() > 0 && !is_pickled(a)) {
    out["first"] = indices_of(values.first(), a.entry().shape);
    out["first_a"] = element_text(a.entry().dtype, values.first_of_a());
    out["first_b"] = element_text(b.entry().dtype, values.first_of_b());
  }
  if (!values.is_numeric() || is_pickled(a)) return out;
  const bool whole = is_whole(a.entry().dtype) && is_whole(b.entry().dtype);
  out["max_absolute"] = number_json(values.max_absolute(), whole);
  out["mean_absolute"] = number_json(values.mean_absolute(), false);
  out["max_relative"] = number_json(values.max_relative(), false);
  out["mean_relative"] = number_json(values.mean_relative(), false);
  out["not_finite"] = values.not_finite();
  return out;
}

}  // namespace penstock::cli
