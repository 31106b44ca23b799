#include "support/input.h"

#include <cstring>

namespace penstock::fuzz {

std::uint8_t Choices::byte() noexcept {
  if (bytes_.empty()) return 0;
  const auto out = std::to_integer<std::uint8_t>(bytes_.front());
  bytes_ = bytes_.subspan(1);
  return out;
}

std::uint16_t Choices::word() noexcept {
  const std::uint16_t low = byte();
  return static_cast<std::uint16_t>(low | byte() << 8);
}

Input split_input(std::span<const std::byte> bytes) noexcept {
  const std::size_t tail = kChoicesMark.size() + 1;
  if (bytes.size() < tail) return {bytes, {}};
  const auto mark = bytes.last(kChoicesMark.size());
  if (std::memcmp(mark.data(), kChoicesMark.data(), mark.size()) != 0) return {bytes, {}};
  const std::size_t rest = bytes.size() - tail;
  const auto count = std::to_integer<std::size_t>(bytes[rest]);
  if (count > rest) return {bytes, {}};
  return {bytes.first(rest - count), bytes.subspan(rest - count, count)};
}

}  // namespace penstock::fuzz
