#include "cli/headerless.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "archive/raw.h"
#include "cli/option.h"
#include "cli/standard_input.h"
#include "format/format.h"

namespace penstock::cli {

namespace {

/// "-1,1024"; brackets and blanks, as Python prints a shape, are taken too.
std::optional<Shape> shape_from(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '(' || c == ')' || c == '[' || c == ']'; });
  if (text.ends_with(',')) text.pop_back();
  std::vector<std::int64_t> sizes;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::int64_t size = 0;
    const auto [at, error] = std::from_chars(text.data() + begin, text.data() + end, size);
    if (error != std::errc{} || at != text.data() + end || size < -1 || end + 1 == text.size()) return std::nullopt;
    sizes.push_back(size);
    begin = end + 1;
  }
  if (sizes.empty() || sizes.size() > Shape::kMaxRank) return std::nullopt;
  return Shape(sizes);
}

}  // namespace

void Headerless::take(Arguments& arguments, const std::string* own_dtype) {
  own_type_ = own_dtype;
  if (own_dtype == nullptr) {
    arguments.add("--dtype", &type_, "The file has no header, and its elements are these: uint16, >u2")
        .takes_checked("TYPE", [](const std::string& text) {
          return archive::stored_type(text) ? std::string() : "a type such as uint16, bfloat16 or >u2";
        });
  }
  arguments
      .add(
          "--shape", [this](const std::string& text) { shape_ = shape_from(text); },
          "The file has no header, and holds an array of these sizes, of --dtype; one may be -1")
      .takes_checked("N,N", [](const std::string& text) {
        return shape_from(text) ? std::string() : "sizes of 0 or more between commas, and one of -1 at most: -1,1024";
      });
  arguments.add("--offset", &offset_, "Where that array begins, in bytes").takes_number(0);
  arguments.add("--order", &order_, "F: the first dimension is the one whose elements lie together")
      .takes_word({"C", "F"});
  auto before = std::exchange(arguments.refuse, {});
  arguments.refuse = [this, before = std::move(before)](const Arguments& given) {
    if (before) before(given);
    if (!is_said() || !(own_type_ == nullptr ? type_ : *own_type_).empty()) return;
    throw WrongUsage("--dtype: is missing, and files without a header do not say what their elements are");
  };
}

bool Headerless::is_said() const noexcept { return shape_ || offset_ || order_ || !type_.empty(); }

RawLayout Headerless::layout() const {
  const auto type = archive::stored_type(own_type_ == nullptr ? type_ : *own_type_);
  RawLayout out{.dtype = type->dtype, .byte_order = type->byte_order};
  if (shape_) out.shape = *shape_;
  out.offset = static_cast<std::uint64_t>(offset_.value_or(0));
  out.fortran_order = order_ == "F";
  return out;
}

Archive Headerless::open(const std::string& word) const { return open(input_source(word)); }

Archive Headerless::open_either(const std::string& word) const {
  const Source source = input_source(word);
  return format::find_format(*source) == nullptr ? open(source) : penstock::open(source);
}

Archive Headerless::open(Source source) const {
  return is_said() ? archive::headerless_archive(std::move(source), layout()) : penstock::open(source);
}

Dataset headerless_samples(const TensorFiles& files, const Headerless& headerless) {
  if (files.is_single) return rows(headerless.open(files.paths.front()).entry(0));
  return dataset(std::ssize(files.paths), [paths = files.paths, headerless](std::int64_t i) {
    return headerless.open(paths[static_cast<std::size_t>(i)]).load();
  });
}

}  // namespace penstock::cli
