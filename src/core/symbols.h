#pragma once

// How entry points of a library that was opened at run time (libcurl, libzstd, NVIDIA's) are found.

#include <dlfcn.h>

namespace penstock::core {

/// Looks up entry points of an opened library and remembers the first that is missing.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <class F>
  void optional(const char* name, F*& function) {
    function = reinterpret_cast<F*>(::dlsym(library_, name));
  }
  template <class F>
  void required(const char* name, F*& function) {
    optional(name, function);
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }
  const char* missing() const noexcept { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

}  // namespace penstock::core
