#pragma once

// The cache on disk of what was read by URL (docs/design/remote.md, "The cache"). Its files lie in
// FOLDER/penstock-blocks-1:
//
// - `ab/KEY.object`: the first block of an object. Its text is the object's ETag, size and URL.
// - `ab/KEY.VERSION.7`: a later block, of one version.
// - `bytes`, `writing`: about how many bytes all of them have, and a lock (ledger.h).
//
// KEY is a hash of where the object is, VERSION one of its ETag and size. Whatever is wrong with a file makes it one
// that is not there, and whatever cannot be written is left out: no read fails by the cache.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "io/copy/scatter.h"
#include "io/remote/location.h"
#include "penstock/buffer.h"

namespace penstock::io::remote {

/// What the environment says of the cache.
struct CacheSettings {
  static constexpr std::uint64_t kDefaultBytes = 50'000'000'000;

  std::string folder = {};              ///< PENSTOCK_CACHE; empty: no cache
  std::uint64_t limit = kDefaultBytes;  ///< PENSTOCK_CACHE_BYTES
  std::chrono::seconds trust{0};        ///< PENSTOCK_CACHE_TRUST_SECONDS

  friend bool operator==(const CacheSettings&, const CacheSettings&) = default;
};
/// kInvalidArgument for a variable that is no size or number.
CacheSettings cache_settings();

/// One version of an object.
struct CachedObject {
  std::string key = {};   ///< of where it is
  std::string etag = {};  ///< as the server gave it
  std::string url = {};   ///< as errors show it
  std::uint64_t size = 0;
};

/// An object of which the cache has the beginning.
struct KeptObject {
  CachedObject object = {};
  Buffer head = {};       ///< its first bytes
  bool is_fresh = false;  ///< it was compared with the server's within the time for which that is trusted
};

/// Thread-safe, and shared with other processes that use the folder.
class BlockCache {
 public:
  static constexpr std::size_t kBlock = std::size_t{1} << 20;

  /// That of the settings; null where they name none. What failed before fails no second time.
  static std::shared_ptr<const BlockCache> of(const CacheSettings& settings);
  explicit BlockCache(CacheSettings settings);

  /// What the object at `location` is called; it tells nothing of a secret in the URL.
  static std::string key_of(const Location& location);

  /// The object of that name, with all its bytes where it has up to `small`, else with the first `head` of them.
  /// Nothing where it is not there or damaged.
  std::optional<KeptObject> find(const std::string& key, std::size_t head, std::size_t small) const;
  /// The server has said that the object of that name is still the one that is kept.
  void confirm(const std::string& key) const noexcept;

  /// Fills the parts from the bytes of block `number` from `offset` on. False where it is not there or damaged; the
  /// parts then hold anything.
  bool read(const CachedObject& object, std::uint64_t number, std::uint64_t offset,
            std::span<const Scatter> parts) const;
  /// Keeps a whole block. The first failure of a write warns on stderr, and nothing is written from then on.
  void keep(const CachedObject& object, std::uint64_t number, std::span<const std::byte> bytes) const noexcept;
  /// Whether a version can be told from the next: by an ETag that stands for all of its bytes.
  static bool may_keep(const CachedObject& object) noexcept;

  static std::uint64_t block_bytes(const CachedObject& object, std::uint64_t number) noexcept;

 private:
  std::string path_of(const CachedObject& object, std::uint64_t number) const;
  void write(const std::string& path, std::span<const std::byte> bytes, std::string_view ending) const;
  void give_up(std::string_view why) const noexcept;

  const CacheSettings settings_;
  const std::string root_;
  mutable std::atomic<bool> writes_{true};
};

}  // namespace penstock::io::remote
