#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <string_view>

#include "device/host_memory.h"

namespace penstock::test {

/// This process may have so many more bytes of addresses, as long as it lives.
class LimitedAddresses {
 public:
  explicit LimitedAddresses(std::uint64_t more) : LimitedAddresses() {
    set(kPlenty - device::address_space()->free_bytes + more);
  }
  ~LimitedAddresses() { ::setrlimit(RLIMIT_AS, &before_); }
  LimitedAddresses(const LimitedAddresses&) = delete;
  LimitedAddresses& operator=(const LimitedAddresses&) = delete;

  /// Why there can be no such limit here; empty where there can. QEMU's processes take none.
  static std::string_view why_not() {
    if (device::address_space()) return "limited already";
    const LimitedAddresses tried;
    return device::address_space() ? "" : "a limit of addresses has no effect here";
  }

 private:
  static constexpr std::uint64_t kPlenty = std::uint64_t{1} << 50;

  /// With plenty, so that address_space() says what is in use.
  LimitedAddresses() {
    ::getrlimit(RLIMIT_AS, &before_);
    set(kPlenty);
  }

  void set(std::uint64_t bytes) const {
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_AS, &limit);
  }

  rlimit before_{};
};

}  // namespace penstock::test
