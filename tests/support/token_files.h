#pragma once

// Files of tokens, made from the pages that describe their bytes.

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace penstock::test {

/// A file of llm.c's with these first numbers.
template <class Token>
std::string llmc(std::int32_t magic, std::int32_t version, std::int32_t count, const std::vector<Token>& tokens) {
  std::array<std::int32_t, 256> header{magic, version, count};
  std::string out(sizeof header + tokens.size() * sizeof(Token), '\0');
  std::memcpy(out.data(), header.data(), sizeof header);
  if (!tokens.empty()) std::memcpy(out.data() + sizeof header, tokens.data(), tokens.size() * sizeof(Token));
  return out;
}

template <class Number>
void append_bytes(std::string& out, const Number& number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// NAME.idx as docs/formats/megatron.md has it: what it says may be so or not.
struct MegatronIdx {
  std::uint64_t version = 1;
  std::uint8_t code = 8;
  std::vector<std::int32_t> lengths = {3, 0, 2, 1};
  std::vector<std::int64_t> offsets = {0, 6, 6, 10};
  std::vector<std::int64_t> documents = {0, 2, 2, 3, 4};
  std::uint64_t sequences_more = 0;  ///< than there are, as the header says
  std::uint64_t documents_more = 0;
  std::string behind = {};

  std::string bytes() const {
    std::string out("MMIDIDX\0\0", 9);
    append_bytes(out, version);
    append_bytes(out, code);
    append_bytes(out, lengths.size() + sequences_more);
    append_bytes(out, documents.size() + documents_more);
    for (const std::int32_t length : lengths) append_bytes(out, length);
    for (const std::int64_t offset : offsets) append_bytes(out, offset);
    for (const std::int64_t bound : documents) append_bytes(out, bound);
    return out + behind;
  }
};

}  // namespace penstock::test
