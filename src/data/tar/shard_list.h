#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::data {

/// The shards that somebody named, in order.
struct ShardList {
  std::vector<std::string> paths;
  /// How many samples each is said to have; empty where nobody says it.
  std::vector<std::optional<std::int64_t>> samples;
};

/// `text` with each "{000..146}" and "{a,b}" written out, in order: all of the last brace first. Braces with nothing of
/// the two in them stay as they are. kInvalidArgument for a range that is none, kLimit for more than a million texts.
std::vector<std::string> expand_braces(std::string_view text);

/// What these stand for: lists of shards joined by "::", braces, patterns with `*`, folders (for the .tar files in
/// them), and WebDataset's lists (.json). kNotFound where there is none; kUnsafe for a list that names a file outside
/// of its own folder, and for a "pipe:", which would run a program.
ShardList list_shards(std::span<const std::string> given);

/// Whether a shard comes from front to back alone and once: "-", the standard input, or a FIFO, such as a shell's
/// <(...).
bool is_pipe(const std::string& path) noexcept;

/// kCorrupt where the list tells another number of samples of this shard than it has.
void require_told(const ShardList& list, std::size_t shard, std::int64_t samples);

}  // namespace penstock::data
