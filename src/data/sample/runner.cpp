#include "data/sample/runner.h"

#include <utility>

namespace penstock::data {
namespace {

thread_local Runner* current_runner = nullptr;
thread_local RunnerTurn* current_turn = nullptr;

}  // namespace

RunnerTurn::RunnerTurn(Runner* runner) : runner_(runner), before_(std::exchange(current_turn, this)) {
  if (runner_ != nullptr && runner_->trial() != nullptr) way_ = runner_->trial()->way();
}

RunnerTurn::~RunnerTurn() { current_turn = before_; }

bool RunnerTurn::calls_here() noexcept { return current_turn != nullptr && current_turn->way_ == CallWay::kHere; }

void RunnerTurn::end(double seconds, std::size_t samples) {
  RunnerTrial* const trial = runner_ == nullptr ? nullptr : runner_->trial();
  if (trial == nullptr) return;
  if (asked_ && trial->clock() == RunnerTrial::Clock::kBatches) trial->note(way_, seconds, samples);
  if (trial->lets_go()) runner_->let_go();
}

RunnerScope::RunnerScope(Runner* runner) noexcept : before_(std::exchange(current_runner, runner)) {}
RunnerScope::~RunnerScope() { current_runner = before_; }

Runner* RunnerScope::current() noexcept {
  if (current_turn == nullptr || current_runner == nullptr) return current_runner;
  current_turn->asked_ = true;
  return current_turn->way_ == CallWay::kElsewhere ? current_runner : nullptr;
}

}  // namespace penstock::data
