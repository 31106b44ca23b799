#include "core/stop_scope.h"

namespace penstock::core {
namespace {

thread_local const StopScope* current = nullptr;

}  // namespace

StopScope::StopScope(const std::stop_token& stop) noexcept : before_(current), token_(&stop) {
  if (stop.stop_possible()) current = this;
}

StopScope::StopScope(const std::atomic<bool>* stopped) noexcept : before_(current), flag_(stopped) {
  if (stopped != nullptr) current = this;
}

StopScope::StopScope(bool (*asked)() noexcept) noexcept : before_(current), asked_(asked) {
  if (asked != nullptr) current = this;
}

StopScope::~StopScope() { current = before_; }

bool StopScope::stop_requested() noexcept {
  for (const StopScope* scope = current; scope != nullptr; scope = scope->before_) {
    if (scope->token_ != nullptr && scope->token_->stop_requested()) return true;
    if (scope->flag_ != nullptr && scope->flag_->load()) return true;
    if (scope->asked_ != nullptr && scope->asked_()) return true;
  }
  return false;
}

}  // namespace penstock::core
