#pragma once

#include <sys/resource.h>

#include <cstdint>

#include "device/host_memory.h"

namespace penstock::test {

/// This process may have so many more bytes of addresses, as long as it lives.
class LimitedAddresses {
 public:
  explicit LimitedAddresses(std::uint64_t more) {
    ::getrlimit(RLIMIT_AS, &before_);
    set(kPlenty);  // so that address_space() says what is in use
    set(kPlenty - device::address_space()->free_bytes + more);
  }
  ~LimitedAddresses() { ::setrlimit(RLIMIT_AS, &before_); }
  LimitedAddresses(const LimitedAddresses&) = delete;
  LimitedAddresses& operator=(const LimitedAddresses&) = delete;

 private:
  static constexpr std::uint64_t kPlenty = std::uint64_t{1} << 50;

  void set(std::uint64_t bytes) const {
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_AS, &limit);
  }

  rlimit before_{};
};

}  // namespace penstock::test
