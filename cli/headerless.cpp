#include "cli/headerless.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "archive/raw.h"
#include "cli/option.h"
#include "cli/standard_input.h"
#include "core/parse_number.h"
#include "core/text.h"
#include "format/format.h"

namespace penstock::cli {

namespace {

/// "-1,1024"; brackets and blanks, as Python prints a shape, are taken too.
std::optional<Shape> shape_from(std::string_view text) {
  text = core::trimmed(text);
  const bool in_brackets =
      (text.starts_with('(') && text.ends_with(')')) || (text.starts_with('[') && text.ends_with(']'));
  if (in_brackets) text = core::trimmed(text.substr(1, text.size() - 2));
  if (text.ends_with(',')) text.remove_suffix(1);
  std::vector<std::int64_t> sizes;
  for (std::size_t end = 0; end != text.npos;) {
    end = text.find(',');
    const auto size = core::parse_number<std::int64_t>(core::trimmed(text.substr(0, end)));
    if (!size || *size < -1) return std::nullopt;
    sizes.push_back(*size);
    if (end != text.npos) text.remove_prefix(end + 1);
  }
  if (sizes.size() > Shape::kMaxRank) return std::nullopt;
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
  if (!files.refused.empty()) throw files.refused.front();
  if (files.is_single) return rows(headerless.open(files.paths.front()).entry(0));
  return dataset(std::ssize(files.paths), [paths = files.paths, headerless](std::int64_t i) {
    return headerless.open(paths[static_cast<std::size_t>(i)]).load();
  });
}

}  // namespace penstock::cli
