// MD5 as RFC 1321 has it: four rounds of sixteen steps over each 64 bytes, of words in little-endian order.

#include "io/remote/md5.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace penstock::io::remote {
namespace {

constexpr std::size_t kMd5Block = 64;
using Md5State = std::array<std::uint32_t, 4>;

/// floor(2^32 * |sin(i + 1)|)
constexpr std::array<std::uint32_t, 64> kSines = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

constexpr std::array<std::array<int, 4>, 4> kTurns = {
    {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};

/// The steps of round `Round`; each round mixes by another function and takes the words in another order.
template <std::size_t Round>
void round_of(Md5State& s, const std::array<std::uint32_t, 16>& words) noexcept {
  for (std::size_t i = 0; i < 16; ++i) {
    const auto [a, b, c, d] = s;
    std::uint32_t mixed = 0;
    std::size_t word = 0;
    if constexpr (Round == 0) {
      mixed = (b & c) | (~b & d);
      word = i;
    } else if constexpr (Round == 1) {
      mixed = (d & b) | (~d & c);
      word = (5 * i + 1) % 16;
    } else if constexpr (Round == 2) {
      mixed = b ^ c ^ d;
      word = (3 * i + 5) % 16;
    } else {
      mixed = c ^ (b | ~d);
      word = (7 * i) % 16;
    }
    const std::uint32_t sum = a + mixed + kSines[16 * Round + i] + words[word];
    s = {d, b + std::rotl(sum, kTurns[Round][i % 4]), b, c};
  }
}

void add_block(Md5State& state, const std::byte* block) noexcept {
  std::array<std::uint32_t, 16> words;
  std::memcpy(words.data(), block, kMd5Block);
  Md5State s = state;
  round_of<0>(s, words);
  round_of<1>(s, words);
  round_of<2>(s, words);
  round_of<3>(s, words);
  for (std::size_t i = 0; i < s.size(); ++i) state[i] += s[i];
}

}  // namespace

std::array<std::uint8_t, 16> md5(std::span<const std::byte> bytes) noexcept {
  Md5State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (; bytes.size() >= kMd5Block; bytes = bytes.subspan(kMd5Block)) add_block(state, bytes.data());
  // A one, zeros, and the number of bits at the end of a block.
  std::array<std::byte, 2 * kMd5Block> last{};
  std::copy(bytes.begin(), bytes.end(), last.begin());
  last[bytes.size()] = std::byte{0x80};
  const std::size_t size = bytes.size() + 1 + sizeof(bits) <= kMd5Block ? kMd5Block : 2 * kMd5Block;
  std::memcpy(last.data() + size - sizeof(bits), &bits, sizeof(bits));
  for (std::size_t at = 0; at < size; at += kMd5Block) add_block(state, last.data() + at);
  return std::bit_cast<std::array<std::uint8_t, 16>>(state);
}

}  // namespace penstock::io::remote
