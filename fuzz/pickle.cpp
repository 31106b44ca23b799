// Pickles alone, so that the fuzzer need not find its way through a container: any storage exists, with the size that
// is declared for it, up to a limit.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "format/check_index.h"
#include "format/pt/pickle/read_pickle.h"
#include "penstock/error.h"

namespace penstock {
namespace {

constexpr std::uint64_t kLargestStorage = std::uint64_t{1} << 40;

class AnyStorage final : public format::pickle::Outside {
 public:
  explicit AnyStorage(format::Index& index) : index_(index) {}
  std::uint32_t storage(std::string_view key, std::uint64_t nbytes, std::uint64_t itemsize) override {
    if (itemsize == 0 || nbytes % itemsize != 0) std::abort();
    if (nbytes > kLargestStorage) throw Error(ErrorCode::kCorrupt, "no such storage");
    index_.storages.push_back({.name = std::string(key), .stored_bytes = nbytes, .nbytes = nbytes, .resident = {}});
    return static_cast<std::uint32_t>(index_.storages.size() - 1);
  }

 private:
  format::Index& index_;
};

/// Claims to have all bytes; never read.
class EndlessSource final : public ByteSource {
 public:
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return kLargestStorage; }
  void read(std::uint64_t /*offset*/, std::span<std::byte> /*into*/) const override { std::abort(); }

 private:
  std::string name_ = "<fuzz>";
};

void check(std::span<const std::byte> bytes) {
  format::Index index;
  AnyStorage storages(index);
  const std::size_t taken = format::pickle::read_pickle(bytes, 0, index, storages, {.whole = false});
  if (taken == 0 || taken > bytes.size()) std::abort();
  index.sources.push_back(std::make_shared<const EndlessSource>());
  format::check_index(index);
  for (const TensorEntry& entry : index.entries) {
    if (entry.name.empty()) std::abort();
  }
  if (index.structure.to_string().size() > 100'000) std::abort();
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    penstock::check(std::as_bytes(std::span(data, size)));
  } catch (const penstock::Error& error) {
    if (error.message().empty()) std::abort();
  }
  return 0;
}
