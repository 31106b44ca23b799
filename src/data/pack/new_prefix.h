#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/pack/new_place.h"
#include "io/file/output.h"

namespace penstock::data {

/// kInvalidArgument where there are objects below the prefix, which ends with a slash.
void require_new_prefix(const std::string& url);

/// Objects of a bucket below one prefix. A store has no way to show several at once: they are all uploaded before the
/// first of them appears, so that what can fail late is one short request for each. When one fails the others go, but
/// not where the last one may be there all the same: then all are.
class NewPrefix final : public NewPlace {
 public:
  /// kInvalidArgument where there are objects already.
  explicit NewPrefix(const std::string& url);

  std::uint64_t save(const Value& value, const std::string& name, const SaveOptions& options) override;
  /// kInvalidArgument where somebody wrote such an object meanwhile.
  void commit() override;

 private:
  struct Object {
    std::string url;
    std::unique_ptr<io::Output> output;
  };

  std::string url_;  // with a slash at its end
  std::vector<Object> objects_;
};

}  // namespace penstock::data
