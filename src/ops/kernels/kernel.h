#pragma once

// How kernels are written: once, for devices and for hosts that play one. A kernel is what happens to index i below its
// parameters' count; threads share the indices among them, and none waits for another.
//
//   PENSTOCK_KERNEL(name, Parameters) { ... p.field, i ... }
//
// On a device that is an entry point `name`. On the host it is a function name(p, thread, threads), which does the
// share of one thread of so many.

#include <cstdint>

#if defined(__CUDA__)

#define PENSTOCK_DEVICE __attribute__((device, always_inline))
#define PENSTOCK_UNROLL _Pragma("unroll")
#define PENSTOCK_KERNEL(name, Parameters)                                                             \
  PENSTOCK_DEVICE inline void name##_index(const Parameters& p, std::uint64_t i);                     \
  extern "C" __attribute__((global)) void name(const Parameters p) {                                  \
    const std::uint64_t width = __nvvm_read_ptx_sreg_ntid_x();                                        \
    const std::uint64_t threads = width * static_cast<unsigned>(__nvvm_read_ptx_sreg_nctaid_x());     \
    std::uint64_t i = width * static_cast<unsigned>(__nvvm_read_ptx_sreg_ctaid_x());                  \
    for (i += static_cast<unsigned>(__nvvm_read_ptx_sreg_tid_x()); i < kernel_count(p); i += threads) \
      name##_index(p, i);                                                                             \
  }                                                                                                   \
  PENSTOCK_DEVICE inline void name##_index(const Parameters& p, std::uint64_t i)

#else

#define PENSTOCK_DEVICE [[gnu::always_inline]]
#define PENSTOCK_UNROLL
#define PENSTOCK_KERNEL(name, Parameters)                                                 \
  inline void name##_index(const Parameters& p, std::uint64_t i);                         \
  inline void name(const Parameters& p, std::uint64_t thread, std::uint64_t threads) {    \
    for (std::uint64_t i = thread; i < kernel_count(p); i += threads) name##_index(p, i); \
  }                                                                                       \
  inline void name##_index(const Parameters& p, std::uint64_t i)

#endif

namespace penstock::ops {

template <class Parameters>
constexpr std::uint64_t kernel_count(const Parameters& p) noexcept {
  if constexpr (requires { p.shape; }) {
    return p.shape.count;
  } else {
    return p.count;
  }
}

}  // namespace penstock::ops
