#pragma once

// Folders of small files for the tests of what pairs files.

#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "data/support.h"
#include "penstock/dataset.h"
#include "penstock/ops.h"

namespace penstock::test {

/// A folder whose files hold the number that their name has in it, so that a sample tells its file.
class NamedFiles {
 public:
  void add(const std::string& path, std::int64_t value) const {
    std::filesystem::create_directories(std::filesystem::path(at(path)).parent_path());
    save(full({1}, static_cast<double>(value), DType::int64), at(path), {.sync = false});
  }
  /// "images/7.npy" with 7 in it for each number.
  void add(const std::string& folder, std::initializer_list<int> numbers, const std::string& behind = "") const {
    for (const int number : numbers) add(folder + "/" + std::to_string(number) + behind + ".npy", number);
  }
  std::string at(const std::string& path) const { return folder_ / path; }
  Dataset files(const std::string& pattern) const { return penstock::files(at(pattern)); }

 private:
  TemporaryFolder folder_;
};

/// Of tuples or dicts of such files, the number of each part: "7|7 8|8".
inline std::string numbers_of(const Dataset& dataset) {
  std::string out;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const Value sample = dataset.get(i);
    out += out.empty() ? "" : " ";
    for (std::size_t p = 0; p < sample.size(); ++p) {
      const Value part = sample.is(Value::Kind::kDict) ? sample.item(p).second : sample[p];
      out += (p == 0 ? "" : "|") + std::to_string(part.as_tensor()[0].item<std::int64_t>());
    }
  }
  return out;
}

}  // namespace penstock::test
