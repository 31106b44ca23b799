#pragma once

// Shards for tests, made of headers that the library does not write.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/support.h"
#include "penstock/ops.h"
#include "penstock/sample_stream.h"
#include "penstock/shards.h"
#include "support/tar_builder.h"

namespace penstock::test {

/// The bytes of a file with this tensor.
inline std::string file_bytes(const Tensor& tensor, const std::string& extension) {
  const TemporaryFolder folder(quick_folder());
  const std::string path = folder / ("x" + extension);
  save(tensor, path, {.sync = false});
  return read_file(path);
}

inline std::string number_text(std::int64_t number, std::size_t digits = 4) {
  const std::string text = std::to_string(number);
  return std::string(digits > text.size() ? digits - text.size() : 0, '0') + text;
}

/// Samples first, first + 1, ... of so many: an .npy of four float32 of the number, a .cls, a .json, a .txt.
inline std::string numbered_shard(std::int64_t first, std::int64_t count) {
  std::string out;
  for (std::int64_t i = first; i < first + count; ++i) {
    const std::string key = "s/" + number_text(i);
    out += tar_member(key + ".npy", file_bytes(full({4}, static_cast<double>(i), DType::float32), ".npy"));
    out += tar_member(key + ".cls", std::to_string(i) + "\n");
    out += tar_member(key + ".meta.json", "{\"n\": [" + std::to_string(i) + "]}");
    out += tar_member(key + ".txt", "text " + std::to_string(i % 10));
  }
  return out + tar_end();
}

/// Writes shards "000.tar", ... of so many samples each, numbered through; the pattern that names them.
inline std::string write_shards(const TemporaryFolder& folder, const std::vector<std::int64_t>& counts) {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    write_file(folder / (number_text(static_cast<std::int64_t>(i), 3) + ".tar"), numbered_shard(first, counts[i]));
    first += counts[i];
  }
  return folder / "*.tar";
}

/// A dataset of one shard with this content.
inline Dataset shard_of(const TemporaryFolder& folder, const std::string& content, ShardsOptions options = {}) {
  write_file(folder / "a.tar", content);
  options.index = false;
  return shards(folder / "a.tar", options);
}

inline std::string key_of(const Value& sample) { return sample["__key__"].as_string(); }

/// The numbers of the samples of a stream, by their .cls.
inline std::vector<std::int64_t> classes_of(const SampleStream& stream) {
  std::vector<std::int64_t> out;
  for (const Value& sample : stream) out.push_back(sample["cls"].as_int());
  return out;
}

}  // namespace penstock::test
