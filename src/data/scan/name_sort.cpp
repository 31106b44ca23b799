#include "data/scan/name_sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace penstock::data {

namespace {

/// Fewer are sorted faster by comparing.
constexpr std::size_t kFewNames = 256;

/// How many bytes `text` begins with as `first` does, of `most`; both end in NUL.
std::size_t common_prefix(const char* text, const char* end, const char* first, std::size_t most) {
  if (most <= static_cast<std::size_t>(end - text) && std::memcmp(text, first, most) == 0) return most;
  std::size_t same = 0;
  while (same < most && text[same] == first[same]) ++same;
  return same;
}

/// The first eight bytes of `text` as a number that orders as they do; zeros from the NUL on.
std::uint64_t key_of(const char* text, const char* end) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t out = 0;
  const auto left = static_cast<std::size_t>(end - text);
  std::memcpy(&out, text, left < sizeof(out) ? left : sizeof(out));
  // The lowest set bit is that of the first byte that is zero ("Bit Twiddling Hacks": a zero byte in a word).
  const std::uint64_t zeros = (out - 0x0101010101010101) & ~out & 0x8080808080808080;
  if (zeros != 0) out &= (zeros & -zeros) - 1;
  return __builtin_bswap64(out);
}

}  // namespace

std::string NameSorter::sorted(std::string_view names) {
  split(names);
  sort_by_key();
  settle_ties();
  std::string out(names.size(), '\0');
  char* to = out.data();
  for (const Name& name : order_) to = ::stpcpy(to, name.text) + 1;
  out.resize(static_cast<std::size_t>(to - out.data()));
  return out;
}

void NameSorter::split(std::string_view names) {
  order_.clear();
  const char* const end = names.data() + names.size();
  std::size_t common = names.empty() ? 0 : std::strlen(names.data());
  for (std::size_t at = 0; at < names.size(); at = names.find('\0', at) + 1) {
    order_.push_back({0, &names[at]});
    common = common_prefix(&names[at], end, names.data(), common);
  }
  for (Name& name : order_) name.key = key_of(name.text + common, end);
}

void NameSorter::sort_by_key() {
  if (order_.size() < kFewNames) {
    return std::sort(order_.begin(), order_.end(), [](const Name& a, const Name& b) { return a.key < b.key; });
  }
  std::uint64_t varying = 0;
  for (const Name& name : order_) varying |= name.key ^ order_.front().key;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    if ((varying >> shift & 0xFF) != 0) sort_by_byte(shift);
  }
}

/// Stable, so that the bytes before it stay in order among names that have it in common.
void NameSorter::sort_by_byte(unsigned shift) {
  std::array<std::size_t, 257> begins{};
  for (const Name& name : order_) ++begins[(name.key >> shift & 0xFF) + 1];
  for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
  other_.resize(order_.size());
  for (const Name& name : order_) other_[begins[name.key >> shift & 0xFF]++] = name;
  order_.swap(other_);
}

/// Orders names of one key by what follows it, and drops repeats.
void NameSorter::settle_ties() {
  const auto before = [](const Name& a, const Name& b) { return std::strcmp(a.text, b.text) < 0; };
  for (auto at = order_.begin(); at != order_.end();) {
    const auto next = std::find_if(at + 1, order_.end(), [&](const Name& name) { return name.key != at->key; });
    if (next - at > 1) std::sort(at, next, before);
    at = next;
  }
  const auto same = [](const Name& a, const Name& b) { return a.key == b.key && std::strcmp(a.text, b.text) == 0; };
  order_.erase(std::unique(order_.begin(), order_.end(), same), order_.end());
}

}  // namespace penstock::data
