// Texts of tensors. NumPy's text has a fixed number of characters of four bytes each, filled up with zeros; its bytes
// are the same with one byte each. Outside of tensors, text is UTF-8.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/checked.h"
#include "core/format.h"
#include "core/utf8.h"
#include "ops/elements.h"
#include "penstock/error.h"
#include "penstock/tensor.h"

namespace penstock {
namespace {

std::u32string characters_of(std::string_view utf8, std::size_t number) {
  std::u32string out;
  while (!utf8.empty()) {
    const auto character = core::take_code_point(utf8);
    if (!character) {
      throw Error(ErrorCode::kInvalidArgument, core::format("text {} is not UTF-8", number));
    }
    out.push_back(*character);
  }
  return out;
}

}  // namespace

const std::vector<std::string> Tensor::strings() const {
  if (dtype_.code() != DType::Code::kText && dtype_.code() != DType::Code::kBytes) {
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("found {}, expected a tensor of texts or bytes", dtype_.name()));
  }
  ops::ElementPrinter elements(to(Device{}));
  std::vector<std::string> out;
  out.reserve(static_cast<std::size_t>(numel_));
  for (std::size_t i = 0; i < static_cast<std::size_t>(numel_); ++i) out.push_back(elements.text(i));
  return out;
}

Tensor Tensor::of_texts(std::span<const TextView> utf8) {
  std::vector<std::u32string> texts;
  std::size_t widest = 1;  // NumPy has no text of no characters
  for (const std::string_view text : utf8) {
    texts.push_back(characters_of(text, texts.size()));
    widest = std::max(widest, texts.back().size());
  }
  const std::size_t bytes = widest * sizeof(char32_t);
  const auto type = DType::with_descr(DType::Code::kText, bytes, core::format("<U{}", widest));
  const Tensor out = zeros(Shape{static_cast<std::int64_t>(texts.size())}, type);
  std::byte* place = out.data();
  for (const std::u32string& text : texts) {
    std::memcpy(place, text.data(), text.size() * sizeof(char32_t));
    place += bytes;
  }
  return out;
}

}  // namespace penstock
