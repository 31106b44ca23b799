#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "format/directory_cache.h"
#include "format/format.h"
#include "penstock/entry.h"

namespace penstock::format {

/// The index of a `.pt` (zip or legacy) whose bytes all lie in memory; reads nothing else. `path` is for errors. The
/// result's `sources` is empty: source 0 is `file`. Nothing in the result refers to `file`'s memory.
Index read_pt_index(std::span<const std::byte> file, std::string_view path, const OpenOptions& options = {});

/// The index of a zipped `.pt` is that of an earlier one when their `data.pkl` and the names, sizes and order of their
/// records are the same. Then nothing is parsed but the zip directory, which is checked as strictly as ever, and
/// nothing is allocated. Keeps some thousands of layouts.
class PtLayouts final : public DirectoryCache {
 public:
  PtLayouts();
  ~PtLayouts() override;

  std::shared_ptr<const Index> locate(std::span<const std::byte> file, std::string_view path,
                                      const OpenOptions& options, std::vector<StorageLocation>& locations) override;
  std::shared_ptr<const Index> find(std::span<const std::byte> file, std::string_view path, bool verify,
                                    std::vector<StorageLocation>& locations) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::format
