#pragma once

// Options of one location: they stand in place of variables of the environment, which `variable` (settings.h) reads. So
// each setting is decided in one place, wherever it comes from.

#include <map>
#include <memory>
#include <string>

namespace penstock::io::remote {

/// By the name of the variable. An empty value stands for one that is not set.
struct Values {
  std::map<std::string, std::string, std::less<>> of = {};
};
using ValuesPtr = std::shared_ptr<const Values>;

/// While it lives, the calling thread has these values; null: the environment alone. A location keeps those of the
/// thread that it is parsed in, and its requests are made with them.
class ValuesScope {
 public:
  explicit ValuesScope(ValuesPtr values) noexcept;
  ~ValuesScope();
  ValuesScope(const ValuesScope&) = delete;
  ValuesScope& operator=(const ValuesScope&) = delete;

  static const ValuesPtr& current() noexcept;

 private:
  ValuesPtr before_;
};

}  // namespace penstock::io::remote
