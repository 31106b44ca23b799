// The shortest opcode for each object, and a place in the memo for all that Python's own pickler puts there, so that
// equal content gives the bytes that Python gives.

#include "format/pt/pickle/pickle_stream.h"

#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::format::pickle {
namespace {

/// Longer text is not looked for among what was written.
constexpr std::size_t kSharedText = 256;

/// As few bytes as say the value and its sign.
std::string twos_complement(std::int64_t value) {
  std::string out;
  do {
    out += static_cast<char>(value & 0xFF);
    value >>= 8;
  } while (value != (static_cast<signed char>(out.back()) < 0 ? -1 : 0));
  return out;
}

}  // namespace

std::string PickleStream::take() {
  op('.');
  return std::move(out_);
}

template <class T>
void PickleStream::little_endian(T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out_.append(bytes, sizeof value);
}

void PickleStream::put() { at_memo('q', 'r', next_memo_++); }

void PickleStream::get(std::uint32_t index) { at_memo('h', 'j', index); }

void PickleStream::at_memo(char narrow, char wide, std::uint32_t index) {
  if (index < 256) {
    op(narrow);
    op(static_cast<char>(index));
  } else {
    op(wide);
    little_endian(index);
  }
}

void PickleStream::push_integer(std::int64_t value) {
  if (value >= 0 && value <= 0xFF) {
    op('K');
    op(static_cast<char>(value));
  } else if (value >= 0 && value <= 0xFFFF) {
    op('M');
    little_endian(static_cast<std::uint16_t>(value));
  } else if (value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max()) {
    op('J');
    little_endian(static_cast<std::int32_t>(value));
  } else {
    push_long_integer(twos_complement(value));
  }
}

void PickleStream::push_long_integer(std::string_view bytes) {
  op('\x8a');
  op(static_cast<char>(bytes.size()));
  out_ += bytes;
}

void PickleStream::push_real(double value) {
  op('G');
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 56; shift >= 0; shift -= 8) op(static_cast<char>((bits >> shift) & 0xFF));
}

void PickleStream::push_text(std::string_view utf8) {
  if (utf8.size() <= kSharedText) {
    const auto [known, fresh] = texts_.try_emplace(std::string(utf8), next_memo_);
    if (!fresh) return get(known->second);
  }
  if (utf8.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorCode::kUnsupported, "a text of 4 GiB or more has no form in a pickle that torch reads");
  }
  op('X');
  little_endian(static_cast<std::uint32_t>(utf8.size()));
  out_ += utf8;
  put();
}

void PickleStream::push_global(std::string_view module, std::string_view name) {
  const std::string both = core::format("c{}\n{}\n", module, name);
  const auto [known, fresh] = names_.try_emplace(both, next_memo_);
  if (!fresh) return get(known->second);
  out_ += both;
  put();
}

void PickleStream::push_empty_list() {
  op(']');
  put();
}

void PickleStream::push_empty_dict() {
  op('}');
  put();
}

void PickleStream::push_tuple(std::size_t count) {
  if (count == 0) return op(')');
  op(count == 1 ? '\x85' : count == 2 ? '\x86' : count == 3 ? '\x87' : 't');
  put();
}

void PickleStream::push_integers(std::span<const std::int64_t> values) {
  if (values.size() > 3) mark();
  for (const std::int64_t value : values) push_integer(value);
  push_tuple(values.size());
}

void PickleStream::reduce() {
  op('R');
  put();
}

void PickleStream::make_object() {
  op(')');
  op('\x81');
  put();
}

}  // namespace penstock::format::pickle
