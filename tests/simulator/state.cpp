#include "simulator/state.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace penstock::simulator {
namespace {

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

int mode() {
  const char* const text = std::getenv("PENSTOCK_SIM_MODE");
  const std::string_view name = text == nullptr ? "eager" : text;
  constexpr std::array<std::string_view, 4> kNames = {"eager", "lazy", "delay", "reorder"};
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? int{kPenstockSimEager} : static_cast<int>(found - kNames.begin());
}

void read_fault(State& s, std::string_view text) {
  const std::size_t first = text.find(':');
  const std::size_t second = text.find(':', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return;
  const std::string nth(text.substr(first + 1, second - first - 1));
  const std::string code(text.substr(second + 1));
  s.faults[std::string(text.substr(0, first))] = {nth == "*" ? 0 : std::strtoull(nth.c_str(), nullptr, 10),
                                                  std::atoi(code.c_str())};
}

void read_faults(State& s) {
  const char* const text = std::getenv("PENSTOCK_SIM_FAULTS");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    read_fault(s, rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

State* make_state() {
  // A driver does not know of its caller's order.
  const Unseen unseen;
  auto* const s = new State;
  s->settings.mode = mode();
  s->settings.random.seed(number("PENSTOCK_SIM_SEED", 1));
  s->settings.devices = static_cast<int>(std::min<std::uint64_t>(number("PENSTOCK_SIM_DEVICES", 1), kMaxDevices));
  s->settings.memory = number("PENSTOCK_SIM_MEMORY", s->settings.memory);
  s->settings.version = static_cast<int>(number("PENSTOCK_SIM_DRIVER", 13000));
  s->settings.stub = number("PENSTOCK_SIM_STUB", 0) != 0;
  s->settings.jit = number("PENSTOCK_SIM_JIT", 1) != 0;
  s->settings.audit = number("PENSTOCK_SIM_AUDIT", 0) != 0;
  s->settings.speed = number("PENSTOCK_SIM_BYTES_PER_SECOND", 0);
  s->settings.numa_node = static_cast<int>(number("PENSTOCK_SIM_NUMA", UINT64_MAX));
  s->settings.copies = number("PENSTOCK_SIM_COPIES", 1) != 0;
  read_faults(*s);
  ::pthread_atfork(nullptr, nullptr, [] { state().forked.store(state().initialised.load()); });
  return s;
}

}  // namespace

State& state() {
  static State* const kState = make_state();
  return *kState;
}

}  // namespace penstock::simulator
