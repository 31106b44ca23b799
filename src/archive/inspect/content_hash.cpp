// Each piece of a tensor is hashed by itself, so that all processors share a large one; the tensor's hash is that of
// its type, its shape and the hashes of its pieces. The content's hash is that of all names with their hashes, in the
// order of the hashes, since the order of keys has no meaning.

#include "archive/inspect/content_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <string_view>
#include <utility>

#include "archive/inspect/elements.h"
#include "archive/inspect/leaves.h"
#include "archive/inspect/parts.h"
#include "core/format.h"

namespace penstock::archive {
namespace {

Digest hash_of(const void* data, std::size_t bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, bytes));
  Digest out;
  std::memcpy(out.bytes.data(), canonical.digest, out.bytes.size());
  return out;
}

Digest hash_of(std::string_view text) { return hash_of(text.data(), text.size()); }

/// Any byte but 0 is true, and true is 1.
Digest hash_of_bools(std::span<const std::byte> piece) {
  std::vector<std::byte> values(piece.size());
  std::transform(piece.begin(), piece.end(), values.begin(),
                 [](std::byte value) { return std::byte{value != std::byte{0}}; });
  return hash_of(values.data(), values.size());
}

void append(std::string& text, const Digest& digest) {
  text.append(reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size());
}

Digest tensor_hash(const TensorEntry& entry, const std::vector<Digest>& pieces) {
  std::string text = core::format("{} {}\n", entry.dtype.name(), fmt::join(entry.shape, ","));
  for (const Digest& piece : pieces) append(text, piece);
  return hash_of(text);
}

class ContentText {
 public:
  void add(std::string_view name, const Digest& digest) { items_.emplace_back(hash_of(name), digest); }

  Digest hash() {
    std::sort(items_.begin(), items_.end());
    std::string text;
    for (const auto& [name, digest] : items_) {
      append(text, name);
      append(text, digest);
    }
    return hash_of(text);
  }

 private:
  std::vector<std::pair<Digest, Digest>> items_;
};

}  // namespace

std::string Digest::hex() const {
  std::string out;
  for (const std::uint8_t byte : bytes) core::append(out, "{:02x}", byte);
  return out;
}

ContentHashes hash_content(const Archive& archive, const std::function<void(std::uint64_t bytes)>& seen,
                           const std::function<bool(const TensorEntry&)>& wanted) {
  const ElementFiles files(archive);
  std::deque<Elements> elements;
  std::vector<Job> jobs;
  std::vector<std::size_t> hashed;  // the entry of each job
  std::vector<std::vector<Digest>> pieces;
  for (std::size_t i = 0; i < archive.entries().size(); ++i) {
    if (wanted && !wanted(archive.entries()[i])) continue;
    hashed.push_back(i);
    const Elements& of = elements.emplace_back(files, i, ElementOrder::kC);
    jobs.push_back({&of});
    pieces.emplace_back(of.count() > 0 ? static_cast<std::size_t>((of.count() - 1) / jobs.back().piece() + 1) : 0);
  }
  for_each_part(
      jobs,
      [&](const ElementPart& part) {
        const Job& job = jobs[part.job];
        part.go_through([&](std::int64_t first, std::span<const std::byte> piece, auto) {
          if (piece.empty()) return;
          const auto number = static_cast<std::size_t>(first / job.piece());
          pieces[part.job][number] =
              job.a->dtype() == DType::boolean ? hash_of_bools(piece) : hash_of(piece.data(), piece.size());
        });
      },
      seen);
  files.require_unchanged();
  ContentHashes out{.tensors = std::vector<Digest>(archive.entries().size()), .content = {}};
  ContentText content;
  const bool is_bare = archive.structure().is(Value::Kind::kTensor);
  for (std::size_t job = 0; job < pieces.size(); ++job) {
    const TensorEntry& entry = archive.entries()[hashed[job]];
    const Digest& digest = out.tensors[hashed[job]] = tensor_hash(entry, pieces[job]);
    content.add(is_bare ? std::string_view() : entry.name, digest);
  }
  if (!wanted) {
    for (const Leaf& leaf : leaves_of(archive)) content.add(leaf.path, hash_of(canonical(leaf.value)));
  }
  out.content = content.hash();
  return out;
}

}  // namespace penstock::archive
