#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::data {

/// FilesOptions::exclude: which folders and files a listing leaves out.
class Exclusion {
 public:
  Exclusion() = default;
  /// kInvalidArgument for an empty one.
  explicit Exclusion(const std::vector<std::string>& patterns);

  bool empty() const noexcept { return patterns_.empty(); }
  /// Whether `name` in `folder` ("" is the working folder) is left out.
  bool leaves_out(const std::string& folder, std::string_view name) const;

 private:
  struct Pattern {
    std::vector<std::string> components;
    bool whole = false;  ///< begins at the root
  };
  std::vector<Pattern> patterns_;
};

}  // namespace penstock::data
