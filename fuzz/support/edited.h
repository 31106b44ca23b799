#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "support/input.h"

namespace penstock::fuzz {

/// A likeness of a file: a few bytes of it changed, its end missing or something behind it, or the checksums of an
/// archive mended, as the choices say; without any, the same file.
std::vector<std::byte> edited(std::span<const std::byte> file, Choices& choices);

}  // namespace penstock::fuzz
