#include "data/sample/host.h"

#include <utility>

namespace penstock::data {
namespace {

thread_local Host* current_host = nullptr;
thread_local HostTurn* current_turn = nullptr;

}  // namespace

HostTurn::HostTurn(Host* host) : host_(host), before_(std::exchange(current_turn, this)) {
  if (host_ != nullptr && host_->trial() != nullptr) way_ = host_->trial()->way();
}

HostTurn::~HostTurn() { current_turn = before_; }

bool HostTurn::calls_here() noexcept { return current_turn != nullptr && current_turn->way_ == CallWay::kHere; }

void HostTurn::end(double seconds, std::size_t samples) {
  HostTrial* const trial = host_ == nullptr ? nullptr : host_->trial();
  if (trial == nullptr) return;
  if (asked_ && trial->clock() == HostTrial::Clock::kBatches) trial->note(way_, seconds, samples);
  if (trial->lets_go()) host_->let_go();
}

HostScope::HostScope(Host* host) noexcept : before_(std::exchange(current_host, host)) {}
HostScope::~HostScope() { current_host = before_; }

Host* HostScope::current() noexcept {
  if (current_turn == nullptr || current_host == nullptr) return current_host;
  current_turn->asked_ = true;
  return current_turn->way_ == CallWay::kHost ? current_host : nullptr;
}

}  // namespace penstock::data
