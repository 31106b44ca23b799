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

StopScope::~StopScope() { current = before_; }

bool StopScope::stop_requested() noexcept {
  if (current == nullptr) return false;
  return current->token_ != nullptr ? current->token_->stop_requested() : current->flag_->load();
}

}  // namespace penstock::core
