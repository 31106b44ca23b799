#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__SANITIZE_THREAD__)
#define PENSTOCK_SIM_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PENSTOCK_SIM_TSAN 1
#endif
#endif

#if defined(PENSTOCK_SIM_TSAN)
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace penstock::simulator {

/// A stretch in which ThreadSanitizer sees neither the simulator's accesses nor the order its locks make: that order is
/// the simulator's alone, a device gives no such promise, and it would hide the races which are looked for.
class Unseen {
 public:
#if defined(PENSTOCK_SIM_TSAN)
  Unseen() {
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Unseen() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  }
#else
  Unseen() noexcept {}
  ~Unseen() {}
#endif
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
};

/// The order that the driver does promise: what came before happens_before(x) is seen after happens_after(x).
inline void happens_before([[maybe_unused]] void* x) noexcept {
#if defined(PENSTOCK_SIM_TSAN)
  __tsan_release(x);
#endif
}
inline void happens_after([[maybe_unused]] void* x) noexcept {
#if defined(PENSTOCK_SIM_TSAN)
  __tsan_acquire(x);
#endif
}

}  // namespace penstock::simulator
