#include "io/remote/values.h"

#include <utility>

namespace penstock::io::remote {
namespace {

ValuesPtr& values_of_thread() noexcept {
  thread_local ValuesPtr values;
  return values;
}

}  // namespace

ValuesScope::ValuesScope(ValuesPtr values) noexcept : before_(std::exchange(values_of_thread(), std::move(values))) {}
ValuesScope::~ValuesScope() { values_of_thread() = std::move(before_); }
const ValuesPtr& ValuesScope::current() noexcept { return values_of_thread(); }

}  // namespace penstock::io::remote
