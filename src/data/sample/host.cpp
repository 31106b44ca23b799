#include "data/sample/host.h"

#include <utility>

namespace penstock::data {
namespace {

thread_local Host* current_host = nullptr;

}  // namespace

HostScope::HostScope(Host* host) noexcept : before_(std::exchange(current_host, host)) {}
HostScope::~HostScope() { current_host = before_; }
Host* HostScope::current() noexcept { return current_host; }

}  // namespace penstock::data
