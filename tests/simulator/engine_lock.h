#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__SANITIZE_THREAD__)
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
#if defined(__SANITIZE_THREAD__)
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
#if defined(__SANITIZE_THREAD__)
  __tsan_release(x);
#endif
}
inline void happens_after([[maybe_unused]] void* x) noexcept {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(x);
#endif
}

}  // namespace penstock::simulator
