#pragma once

// Reading, converting and writing with no library in between: each thread takes 256 samples (rows) or 32 (files) at a
// time and writes their floats into memory of its own that it uses again.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/processor.h"

namespace penstock::bench {

inline constexpr std::array kMean = {0.485, 0.456, 0.406};
inline constexpr std::array kStd = {0.229, 0.224, 0.225};

/// (x / 255 - mean) / std of one image of three channels, in the order of operations that torch has.
[[gnu::always_inline]] inline void normalize_row(const std::uint8_t* __restrict from, float* __restrict to,
                                                 std::size_t pixels) {
  constexpr float kScale = static_cast<float>(1 / 255.0);
  for (std::size_t c = 0; c < kMean.size(); ++c) {
    const auto mean = static_cast<float>(kMean[c]);
    const auto std = static_cast<float>(kStd[c]);
    for (std::size_t i = c * pixels; i < (c + 1) * pixels; ++i) {
      to[i] = (static_cast<float>(from[i]) * kScale - mean) / std;
    }
  }
}
PENSTOCK_TARGET_AVX2 inline void normalize_row_avx2(const std::uint8_t* from, float* to, std::size_t pixels) {
  normalize_row(from, to, pixels);
}
inline void normalize_row_plain(const std::uint8_t* from, float* to, std::size_t pixels) {
  normalize_row(from, to, pixels);
}

[[gnu::always_inline]] inline void narrow(const double* __restrict from, float* __restrict to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}
PENSTOCK_TARGET_AVX2 inline void narrow_avx2(const double* from, float* to, std::size_t count) {
  narrow(from, to, count);
}
inline void narrow_plain(const double* from, float* to, std::size_t count) { narrow(from, to, count); }

[[gnu::always_inline]] inline void widen(const std::uint16_t* __restrict from, std::int64_t* __restrict to,
                                         std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
}
PENSTOCK_TARGET_AVX2 inline void widen_avx2(const std::uint16_t* from, std::int64_t* to, std::size_t count) {
  widen(from, to, count);
}
inline void widen_plain(const std::uint16_t* from, std::int64_t* to, std::size_t count) { widen(from, to, count); }

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Floats = std::unique_ptr<float[], Free>;

/// The memory of one thread's batch, on huge pages as the loader's blocks.
inline Floats batch_memory(std::size_t count) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t bytes = (count * sizeof(float) + kHugePage - 1) / kHugePage * kHugePage;
  void* const memory = std::aligned_alloc(kHugePage, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  return Floats(static_cast<float*>(memory));
}

/// Runs body(first, last, thread) over blocks of `block` of [0, count).
template <class Body>
void in_blocks(std::size_t count, std::size_t block, std::size_t threads, const Body& body) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> workers;
  for (std::size_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (std::size_t first = next.fetch_add(block); first < count; first = next.fetch_add(block)) {
        body(first, std::min(first + block, count), t);
      }
    });
  }
}

/// Rows of 3 x `pixels` bytes from `images`, in `order`; one buffer of 256 rows for each thread.
inline void normalize_rows(const std::uint8_t* images, std::size_t pixels, const std::vector<std::int64_t>& order,
                           const std::vector<Floats>& buffers) {
  const auto normalize = core::has_avx2() ? normalize_row_avx2 : normalize_row_plain;
  const std::size_t row = kMean.size() * pixels;
  in_blocks(order.size(), 256, buffers.size(), [&](std::size_t first, std::size_t last, std::size_t t) {
    for (std::size_t i = first; i < last; ++i) {
      normalize(images + static_cast<std::size_t>(order[i]) * row, buffers[t].get() + (i - first) * row, pixels);
    }
  });
}

/// Windows of `length` tokens, which begin at `order` times the length, and the same one token further on, both
/// widened: 64 at a time, into memory of each thread of 4 * 64 * `length` floats.
inline void widen_windows(const std::uint16_t* tokens, std::size_t length, const std::vector<std::int64_t>& order,
                          const std::vector<Floats>& buffers) {
  const auto convert = core::has_avx2() ? widen_avx2 : widen_plain;
  in_blocks(order.size(), 64, buffers.size(), [&](std::size_t first, std::size_t last, std::size_t t) {
    auto* const x = reinterpret_cast<std::int64_t*>(buffers[t].get());
    std::int64_t* const y = x + 64 * length;
    for (std::size_t i = first; i < last; ++i) {
      const std::uint16_t* const from = tokens + static_cast<std::size_t>(order[i]) * length;
      convert(from, x + (i - first) * length, length);
      convert(from + 1, y + (i - first) * length, length);
    }
  });
}

/// Each of `paths` once: open, fstat, read, close; its doubles behind the first `header` bytes become floats.
inline void narrow_files(const std::vector<std::string>& paths, std::size_t header, std::size_t threads) {
  constexpr std::size_t kFiles = 32;
  constexpr std::size_t kMost = std::size_t{1} << 20;  // bytes of a file
  const auto convert = core::has_avx2() ? narrow_avx2 : narrow_plain;
  std::vector<Floats> batches;
  std::vector<std::vector<double>> scratch(threads, std::vector<double>(kMost / sizeof(double)));
  for (std::size_t t = 0; t < threads; ++t) batches.push_back(batch_memory(kFiles * kMost / sizeof(double)));
  in_blocks(paths.size(), kFiles, threads, [&](std::size_t first, std::size_t last, std::size_t t) {
    float* to = batches[t].get();
    for (std::size_t i = first; i < last; ++i) {
      const int fd = ::open(paths[i].c_str(), O_RDONLY | O_CLOEXEC);
      struct stat facts {};
      if (fd < 0 || ::fstat(fd, &facts) != 0) throw std::runtime_error("cannot open " + paths[i]);
      const ssize_t got = ::read(fd, scratch[t].data(), std::min(kMost, static_cast<std::size_t>(facts.st_size)));
      ::close(fd);
      if (got < static_cast<ssize_t>(header)) throw std::runtime_error("cannot read " + paths[i]);
      const std::size_t count = (static_cast<std::size_t>(got) - header) / sizeof(double);
      convert(scratch[t].data() + header / sizeof(double), to, count);
      to += count;
    }
  });
}

}  // namespace penstock::bench
