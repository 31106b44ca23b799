// A tar archive: as a file of tensors; as members, which must be the same however the bytes come; and as a shard, whose
// every sample must be readable or refused, and the same from the dataset and the stream.

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/utf8.h"
#include "data/dataset_impl.h"
#include "format/tar/feed.h"
#include "format/tar/header.h"
#include "format/tar/members.h"
#include "format/tar/sample_name.h"
#include "penstock/error.h"
#include "penstock/sample_stream.h"
#include "penstock/shards.h"
#include "support/fuzz_format.h"
#include "support/input_file.h"
#include "support/mutator.h"
#include "support/require.h"
#include "support/same_value.h"

namespace {

using namespace penstock;

constexpr std::size_t kMostBytes = 1 << 20;
constexpr std::int64_t kSamples = 100;
using Bytes = std::span<const std::byte>;

/// All that a walk gives, as text.
std::string walked(format::TarBytes& bytes, std::size_t size) {
  std::string out;
  format::TarWalk walk(bytes, "fuzz.tar");
  try {
    std::uint64_t last = 0;
    while (const auto member = walk.next()) {
      fuzz::require(member->begin >= last && member->data > member->begin && member->end >= member->data,
                    "a member lies before the one before it");
      fuzz::require(member->data <= size, "a header lies behind the end");
      fuzz::require(member->end - member->data >= member->size, "a member ends within itself");
      last = member->end;
      out += member->name + "\n" + std::to_string(member->begin) + " " + std::to_string(member->data) + " " +
             std::to_string(member->size) + " " + std::to_string(static_cast<int>(member->kind));
      const auto name = format::sample_name(*member);
      if (!name) continue;
      fuzz::require(core::is_utf8(name->key) && core::is_utf8(name->field), "a name is not UTF-8");
      out += name->key + "." + name->field;
    }
  } catch (const Error& error) {
    fuzz::require(!error.message().empty(), "an error says nothing");
    out += error.what();
  }
  return out;
}

void walk_all_ways(Bytes bytes) {
  format::TarMemory memory(bytes);
  const std::string expected = walked(memory, bytes.size());
  std::size_t at = 0;
  const auto read = [&](std::span<std::byte> into) {
    const std::size_t count = std::min({into.size(), bytes.size() - at, std::size_t{1000}});
    if (count > 0) std::memcpy(into.data(), bytes.data() + at, count);
    at += count;
    return count;
  };
  format::TarFeed feed(read, "fuzz.tar", 4096);
  fuzz::require(walked(feed, bytes.size()) == expected, "a feed gives other members than memory");
}

std::optional<Value> sample_of(const Dataset& dataset, std::int64_t index) {
  try {
    return dataset.get(index);
  } catch (const Error& error) {
    fuzz::require(!error.message().empty(), "an error says nothing");
    return std::nullopt;
  }
}

/// The samples from the dataset, nothing for one that cannot be read; nothing at all where they cannot be counted.
std::optional<std::vector<std::optional<Value>>> by_index(const Dataset& dataset) {
  try {
    std::vector<std::optional<Value>> out(static_cast<std::size_t>(std::min(dataset.size(), kSamples)));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      fuzz::require(dataset.impl().read_bytes(index) <= kMostBytes, "a sample has more bytes than the file");
      out[i] = sample_of(dataset, index);
    }
    return out;
  } catch (const Error& error) {
    fuzz::require(!error.message().empty(), "an error says nothing");
    return std::nullopt;
  }
}

/// Up to the first sample that cannot be read.
std::vector<Value> in_order(const Dataset& dataset, bool& is_whole) {
  std::vector<Value> out;
  try {
    for (const Value& sample : stream(dataset)) {
      out.push_back(sample);
      if (out.size() == static_cast<std::size_t>(kSamples)) break;
    }
    is_whole = true;
  } catch (const Error& error) {
    fuzz::require(!error.message().empty(), "an error says nothing");
    is_whole = false;
  }
  return out;
}

void read_samples(const std::string& path, bool raw) {
  const auto silent = [](const std::string& warning) { fuzz::require(!warning.empty(), "a warning says nothing"); };
  const Dataset dataset = shards(path, {.raw = raw, .index = false, .warn = silent});
  const auto indexed = by_index(dataset);
  bool is_whole = false;
  const std::vector<Value> streamed = in_order(dataset, is_whole);
  if (!indexed) return;  // damaged behind some samples, or compressed: then the stream alone has any
  const auto bad = std::find(indexed->begin(), indexed->end(), std::nullopt);
  const auto good = static_cast<std::size_t>(bad - indexed->begin());
  fuzz::require(streamed.size() == good, "the stream has other samples than the dataset");
  fuzz::require(is_whole == (bad == indexed->end()), "the stream and the dataset do not fail alike");
  for (std::size_t i = 0; i < good; ++i) {
    const std::string difference = fuzz::difference_of(*(*indexed)[i], streamed[i], fuzz::kValuesAlone);
    if (!difference.empty()) fuzz::fail("a sample of the stream is another: " + difference);
  }
}

}  // namespace

PENSTOCK_FUZZ_MUTATOR(mutate_tar_file)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kMostBytes) return 0;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  walk_all_ways(bytes);
  const fuzz::InputFile file(bytes);
  try {
    // Raw bytes are half of the way that values take: every second input is read so.
    read_samples(file.path(), bytes.size() / format::kTarBlock % 2 == 0);
  } catch (const Error& error) {
    fuzz::require(!error.message().empty(), "an error says nothing");
  }
  return fuzz::fuzz_format(format::kTarFormat, data, size);
}
