// Elements go in by their CRC-32, which costs little beside writing them; all else as text.

#include "data/pack/packing_sum.h"

#include <cstddef>
#include <span>

#include "archive/inspect/leaves.h"
#include "core/fnv1a.h"
#include "core/format.h"
#include "io/copy/crc32.h"
#include "penstock/tensor.h"

namespace penstock::data {
namespace {

std::string text_of(const Tensor& tensor) {
  const Tensor whole = tensor.contiguous();
  const auto bytes = std::span<const std::byte>(whole.data(), whole.nbytes());
  return core::format("{}{} {:08x}", whole.dtype().name(), whole.shape().to_string(), io::crc32(0, bytes));
}

}  // namespace

void PackingSum::add_text(std::string_view text) {
  sum_ = core::fnv1a(core::format("{}:{};", text.size(), text), sum_);
}

void PackingSum::add(const Value& value) {
  if (value.is(Value::Kind::kTensor)) return add_text(text_of(value.as_tensor()));
  const bool is_dict = value.is(Value::Kind::kDict);
  if (!is_dict && !value.is(Value::Kind::kList) && !value.is(Value::Kind::kTuple)) {
    return add_text(archive::canonical(value));
  }
  add_text(core::format("{} parts", value.size()));
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (is_dict) add_text(archive::canonical(value.item(i).first));
    add(is_dict ? value.item(i).second : value[i]);
  }
}

std::string PackingSum::text() const { return core::format("{:016x}", sum_); }

}  // namespace penstock::data
