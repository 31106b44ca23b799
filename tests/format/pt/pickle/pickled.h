#pragma once

// Reading pickles without a file around them.

#include <map>
#include <string>
#include <string_view>

#include "format/check_index.h"
#include "format/pt/pickle/read_pickle.h"
#include "support/bytes.h"
#include "support/pickles.h"

namespace penstock::test {

/// Storages that are there by size alone: "0" has 64 bytes, "1" has 16, "e" has none.
class MadeStorages final : public format::pickle::Outside {
 public:
  explicit MadeStorages(format::Index& index) : index_(index) {}

  std::uint32_t storage(std::string_view key, std::uint64_t nbytes, std::uint64_t /*itemsize*/) override {
    const auto size = sizes_.find(key);
    if (size == sizes_.end() || size->second != nbytes) throw Error(ErrorCode::kCorrupt, "no such storage");
    const auto [known, fresh] = positions_.try_emplace(std::string(key), index_.storages.size());
    if (fresh) index_.storages.push_back({.name = std::string(key), .nbytes = nbytes, .resident = {}});
    return static_cast<std::uint32_t>(known->second);
  }

 private:
  format::Index& index_;
  std::map<std::string, std::uint64_t, std::less<>> sizes_{{"0", 64}, {"1", 16}, {"e", 0}};
  std::map<std::string, std::size_t, std::less<>> positions_;
};

/// The index of a whole pickle, opcodes from PROTO or the first to STOP.
inline format::Index read_whole(const std::string& pickle, bool swapped = false) {
  format::Index index;
  MadeStorages storages(index);
  format::pickle::read_pickle(bytes_of(pickle), 1000, index, storages, {.swapped = swapped});
  format::write_encodings(index);
  return index;
}
/// The value of the opcodes of one object.
inline Value read_object(const std::string& object) { return read_whole(pickled::whole(object)).structure; }
inline format::Index index_of(const std::string& object) { return read_whole(pickled::whole(object)); }

}  // namespace penstock::test
