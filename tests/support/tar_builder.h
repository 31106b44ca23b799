#pragma once

// Tar archives, block by block, with headers as any program may write them.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace penstock::test {

inline constexpr std::size_t kTarBlock = 512;

inline std::string octal(std::uint64_t number, std::size_t digits) {
  char text[32];
  std::snprintf(text, sizeof(text), "%0*llo", static_cast<int>(digits), static_cast<unsigned long long>(number));
  return text;
}

inline void put(std::string& block, std::size_t at, std::string_view text) { block.replace(at, text.size(), text); }

/// The checksum, as six digits, NUL and blank: of unsigned bytes, or of signed ones.
inline std::string with_checksum(std::string block, bool is_signed = false) {
  put(block, 148, "        ");
  std::int64_t sum = 0;
  for (const char c : block) sum += is_signed ? static_cast<signed char>(c) : static_cast<unsigned char>(c);
  put(block, 148, octal(static_cast<std::uint64_t>(sum), 6) + std::string("\0 ", 2));
  return block;
}

/// A POSIX header; `edit` changes it before its checksum is taken.
inline std::string tar_header(std::string_view name, std::uint64_t size, char type = '0',
                              const std::function<void(std::string&)>& edit = {}) {
  std::string block(kTarBlock, '\0');
  put(block, 0, name.substr(0, 100));
  put(block, 100, "0000644");
  put(block, 108, "0001750");
  put(block, 116, "0001750");
  put(block, 124, octal(size, 11));
  put(block, 136, "14722166000");
  block[156] = type;
  put(block, 257,
      std::string_view("ustar\0"
                       "00",
                       8));
  if (edit) edit(block);
  return with_checksum(std::move(block));
}

inline std::string padded(std::string content) {
  content.resize((content.size() + kTarBlock - 1) / kTarBlock * kTarBlock, '\0');
  return content;
}

inline std::string tar_member(std::string_view name, const std::string& content, char type = '0',
                              const std::function<void(std::string&)>& edit = {}) {
  return tar_header(name, content.size(), type, edit) + padded(content);
}

inline std::string pax_record(std::string_view key, std::string_view value) {
  const std::string rest = " " + std::string(key) + "=" + std::string(value) + "\n";
  std::size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

inline std::string pax_header(const std::string& records, char type = 'x') {
  return tar_member("PaxHeaders/x", records, type);
}

/// GNU's header for a name of any length.
inline std::string gnu_long_name(std::string_view name, char type = 'L') {
  return tar_member("././@LongLink", std::string(name) + '\0', type,
                    [](std::string& block) { put(block, 257, std::string_view("ustar  \0", 8)); });
}

inline std::string tar_end() { return std::string(2 * kTarBlock, '\0'); }

}  // namespace penstock::test
