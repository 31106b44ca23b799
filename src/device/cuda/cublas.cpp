#include "device/cuda/cublas.h"

#include <dlfcn.h>

#include <array>

#include "core/environment.h"
#include "core/format.h"
#include "core/symbols.h"
#include "device/cuda/driver.h"

namespace penstock::device::cuda {
namespace {

struct Version {
  int major;
  const char* name;
};
constexpr std::array kVersions = {Version{13, "libcublas.so.13"}, Version{12, "libcublas.so.12"},
                                  Version{11, "libcublas.so.11"}};

/// A major version works with drivers of its own and later ones.
bool is_for_driver(const Version& version) {
  const Driver* const d = find_driver();
  return d != nullptr && version.major <= d->version / 1000;
}

void* open_any(int flags) {
  for (const Version& version : kVersions) {
    void* const library = is_for_driver(version) ? ::dlopen(version.name, flags) : nullptr;
    if (library != nullptr) return library;
  }
  return nullptr;
}

const char* variable(const char* name) {
  const char* const value = core::environment(name);
  return value != nullptr ? value : "";
}

void* open_library(std::string& why_not) {
  if (const char* const chosen = core::environment("PENSTOCK_LIBCUBLAS")) {
    if (*chosen == '\0') {
      why_not = "PENSTOCK_LIBCUBLAS is empty, which asks for none";
      return nullptr;
    }
    void* const library = ::dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    const char* const reason = library == nullptr ? ::dlerror() : nullptr;
    if (library == nullptr) why_not = reason != nullptr ? reason : chosen;
    return library;
  }
  // cuBLAS finds the system's driver by itself, which would not know the memory of another one.
  if (*variable("PENSTOCK_LIBCUDA") != '\0') {
    why_not = "PENSTOCK_LIBCUDA names a driver, and PENSTOCK_LIBCUBLAS no cuBLAS that belongs to it";
    return nullptr;
  }
  void* library = open_any(RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) library = open_any(RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) why_not = "no libcublas.so.13, .12 or .11 that this driver can work with is found";
  return library;
}

struct FoundCublas {
  Cublas cublas;
  std::string why_not;
};

std::string path_of(const void* function) {
  Dl_info info{};
  return ::dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "libcublas";
}

FoundCublas open_cublas() {
  FoundCublas found;
  void* const library = open_library(found.why_not);
  if (library == nullptr) return found;
  Cublas& c = found.cublas;
  core::Symbols symbols(library);
  symbols.required("cublasCreate_v2", c.create);
  symbols.required("cublasDestroy_v2", c.destroy);
  symbols.required("cublasSetStream_v2", c.set_stream);
  symbols.required("cublasSetMathMode", c.set_math_mode);
  symbols.required("cublasGemmStridedBatchedEx", c.multiply);
  symbols.optional("cublasGetProperty", c.property);
  symbols.optional("cublasGetStatusName", c.status_name);
  if (symbols.missing() != nullptr) {
    found.why_not = core::format("the library found has no {}", symbols.missing());
  } else {
    c.path = path_of(reinterpret_cast<const void*>(c.create));
  }
  return found;
}

const FoundCublas& found_cublas() {
  // Never destroyed: products may be asked for by what outlives all statics.
  static const FoundCublas& found = *new FoundCublas(open_cublas());
  return found;
}

}  // namespace

std::string Cublas::description() const {
  int major = 0;
  int minor = 0;
  int patch = 0;
  const bool known = property != nullptr && property(kBlasMajor, &major) == kBlasSuccess &&
                     property(kBlasMinor, &minor) == kBlasSuccess && property(kBlasPatch, &patch) == kBlasSuccess;
  return known ? core::format("cuBLAS {}.{}.{} ({})", major, minor, patch, path) : core::format("cuBLAS ({})", path);
}

std::string Cublas::describe(cublasStatus_t status) const {
  const char* const name = status_name != nullptr ? status_name(status) : nullptr;
  return name != nullptr ? core::format("{} ({})", status, name) : core::format("{}", status);
}

const Cublas* find_cublas() noexcept {
  const FoundCublas& found = found_cublas();
  return found.why_not.empty() ? &found.cublas : nullptr;
}

std::string why_no_cublas() { return found_cublas().why_not; }

}  // namespace penstock::device::cuda
