#pragma once

// How pickles write integers and text.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "format/text/utf8.h"

namespace penstock::format::pickle {

/// Longest LONG in bytes, and its number of decimal digits: conversion takes quadratic time.
inline constexpr std::size_t kMaxLongBytes = 1024;
inline constexpr std::size_t kMaxLongDigits = 2467;

/// The integer that `text` writes in decimal, if it is one that fits in 64 bits.
std::optional<std::int64_t> parse_int64(std::string_view text) noexcept;
/// `text` without leading zeros and "+", if it is an optional sign and digits; "-0" is "0".
std::optional<std::string> normal_decimal(std::string_view text);
/// The decimal text of a little-endian two's complement number of at most kMaxLongBytes bytes.
std::string decimal_of_bytes(std::span<const std::byte> little_endian);
/// The shortest little-endian two's complement of a normal decimal, as LONG1 and LONG4 carry it.
std::string bytes_of_decimal(std::string_view decimal);

/// The content of a Python 2 string literal ('...' or "...", with escapes), or nothing.
std::optional<std::string> unquote(std::string_view literal);
/// Python's raw-unicode-escape to UTF-8 (lone surrogates as if they were characters), or nothing when it is malformed.
std::optional<std::string> from_raw_unicode_escape(std::string_view text);

}  // namespace penstock::format::pickle
