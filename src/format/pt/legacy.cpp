// A `.pt` of before torch 1.6: five pickles (magic number, protocol version, facts of the system, the content, the keys
// of the storages), then each storage as its number of elements and its bytes. Where the storages lie is known only
// when the pickles have been read.

#include "format/pt/legacy.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "core/text.h"
#include "format/pt/pickle/read_pickle.h"
#include "format/pt/pickle_window.h"
#include "penstock/error.h"

namespace penstock::format {

namespace {

/// Pickles of this size are read at once.
constexpr std::uint64_t kFirstWindow = std::uint64_t{256} << 10;
constexpr std::uint64_t kCountBytes = sizeof(std::int64_t);

constexpr std::string_view kMagicBytes("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12);
constexpr std::string_view kMagicText = "L119547037146038801333356L\n.";
constexpr std::string_view kMagicDecimal = "119547037146038801333356";
constexpr std::int64_t kProtocolVersion = 1001;

using core::corrupt;

/// Storages that the pickle declares; where they lie follows behind it.
class DeclaredStorages final : public pickle::Outside {
 public:
  struct Declared {
    std::uint32_t position = 0;  ///< in Index::storages
    std::uint64_t itemsize = 0;
    bool located = false;
  };

  explicit DeclaredStorages(Index& index) : index_(index) {}

  std::uint32_t storage(std::string_view key, std::uint64_t nbytes, std::uint64_t itemsize) override {
    const auto known = by_key_.find(key);
    if (known != by_key_.end()) {
      const StorageEntry& storage = index_.storages[known->second.position];
      if (storage.nbytes != nbytes || known->second.itemsize != itemsize) {
        throw Error(ErrorCode::kCorrupt,
                    core::format("the storage {} is declared twice, with {} and with {}", core::quoted(key),
                                 storage.nbytes, core::counted(nbytes, "byte")));
      }
      return known->second.position;
    }
    const auto position = static_cast<std::uint32_t>(index_.storages.size());
    by_key_.emplace(std::string(key), Declared{position, itemsize});
    index_.storages.push_back({.name = std::string(key), .stored_bytes = nbytes, .nbytes = nbytes, .resident = {}});
    return position;
  }

  Declared* find(std::string_view key) {
    const auto found = by_key_.find(key);
    return found == by_key_.end() ? nullptr : &found->second;
  }
  std::size_t size() const noexcept { return by_key_.size(); }

 private:
  Index& index_;
  std::map<std::string, Declared, std::less<>> by_key_;
};

struct Header {
  Index index;
  DeclaredStorages storages{index};
  Value keys;
  std::uint64_t end = 0;  ///< where the storages begin
};

Value read_plain(std::span<const std::byte> bytes, std::size_t& at) {
  Index index;
  pickle::NoStorages none;
  at += pickle::read_pickle(bytes.subspan(at), at, index, none, {.whole = false});
  return index.structure;
}

/// The five pickles.
std::unique_ptr<Header> read_header(std::span<const std::byte> bytes, const OpenOptions& options) {
  auto header = std::make_unique<Header>();
  std::size_t at = 0;
  const Value magic = read_plain(bytes, at);
  if (!magic.is(Value::Kind::kBigInt) || magic.as_string() != kMagicDecimal) corrupt("the magic number is another", 0);
  const std::size_t second = at;
  const Value version = read_plain(bytes, at);
  if (!version.is(Value::Kind::kInt) || version.as_int() != kProtocolVersion) {
    throw Error(ErrorCode::kUnsupported,
                core::format("the file's layout is version {}, where 1001 was expected", version.to_string()),
                {.offset = second});
  }
  const std::size_t third = at;
  if (!read_plain(bytes, at).is(Value::Kind::kDict)) corrupt("the machine's description is not a dict", third);
  at += pickle::read_pickle(bytes.subspan(at), at, header->index, header->storages,
                            {.whole = false, .decode = options.decode});
  const std::size_t fifth = at;
  header->keys = read_plain(bytes, at);
  if (!header->keys.is(Value::Kind::kList)) corrupt("the list of storages is not a list", fifth);
  header->end = at;
  return header;
}

std::unique_ptr<Header> read_header(const FileBytes& file, const OpenOptions& options) {
  return with_window(file, 0, file.size(), kFirstWindow,
                     [&options](std::span<const std::byte> bytes) { return read_header(bytes, options); });
}

/// The storage of a key, which the oldest files have as a number.
DeclaredStorages::Declared* find_declared(DeclaredStorages& storages, const Value& key) {
  if (key.is(Value::Kind::kInt)) return storages.find(std::to_string(key.as_int()));
  const bool text = key.is(Value::Kind::kString) || key.is(Value::Kind::kBytes);
  return text ? storages.find(key.as_string()) : nullptr;
}

/// Behind the pickles, for each key: the number of elements, then the bytes. Where they end.
std::uint64_t locate_storages(const FileBytes& file, Header& header) {
  std::uint64_t at = header.end;
  std::vector<std::byte> store;
  for (std::size_t i = 0; i < header.keys.size(); ++i) {
    const Value key = header.keys[i];
    auto* declared = find_declared(header.storages, key);
    if (declared == nullptr || declared->located) {
      corrupt(core::format("the list of storages has {}, which {}", key.to_string(),
                           declared == nullptr ? "no tensor uses" : "it has already"),
              at);
    }
    StorageEntry& storage = header.index.storages[declared->position];
    std::int64_t count = 0;
    std::memcpy(&count, file.at(at, kCountBytes, store).data(), kCountBytes);
    at += kCountBytes;
    if (count < 0 || static_cast<std::uint64_t>(count) != storage.nbytes / declared->itemsize) {
      corrupt(core::format("the storage {} has {} elements, but the pickle declares {}", core::quoted(storage.name),
                           count, storage.nbytes / declared->itemsize),
              at - kCountBytes);
    }
    if (!core::range_fits(at, storage.nbytes, file.size())) {
      throw Error(ErrorCode::kTruncated,
                  core::format("the storage has {}, but the file ends at byte {}; fetch or write it again",
                               core::counted(storage.nbytes, "byte"), file.size()),
                  {.offset = at, .tensor = core::escaped(storage.name)});
    }
    storage.offset = at;
    at += storage.nbytes;
    declared->located = true;
  }
  if (header.keys.size() != header.storages.size()) {
    corrupt(core::format("the pickle uses {}, but {} are listed", core::counted(header.storages.size(), "storage"),
                         header.keys.size()),
            header.end);
  }
  return at;
}

}  // namespace

bool is_pt_legacy(std::span<const std::byte> head) noexcept {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.starts_with('\x80')) text.remove_prefix(std::min<std::size_t>(2, text.size()));
  if (text.starts_with('\x95')) text.remove_prefix(std::min<std::size_t>(9, text.size()));
  return text.starts_with(kMagicBytes) || text.starts_with(kMagicText);
}

std::uint64_t pt_legacy_end(const FileBytes& file) {
  try {
    return locate_storages(file, *read_header(file, {}));
  } catch (const Error& error) {
    throw error.within({.path = file.path()});
  }
}

Index read_pt_legacy(const FileBytes& file, const OpenOptions& options) {
  try {
    const auto header = read_header(file, options);
    const std::uint64_t end = locate_storages(file, *header);
    if (end != file.size())
      corrupt(core::format("{} the last storage", core::counted(file.size() - end, "byte follows", "bytes follow")),
              end);
    header->index.metadata.emplace("version", "legacy");
    return std::move(header->index);
  } catch (const Error& error) {
    throw error.within({.path = file.path()});
  }
}

}  // namespace penstock::format
