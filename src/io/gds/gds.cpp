// Finds cuFile, NVIDIA's library for reads from the disk to a device. It is loaded at run time (dlopen), because
// Penstock has to run without it. cuFile works in two modes: direct, by the kernel module nvidia-fs or by the kernel
// itself, or in compatibility mode, in which the processor copies as elsewhere. Only the first is worth asking for, so
// the properties of the driver are read to tell the two apart.

#include "io/gds/gds.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/environment.h"
#include "core/format.h"
#include "core/symbols.h"
#include "device/backend.h"

namespace penstock::io::gds {
namespace {

// There while nvidia-fs is loaded, as its troubleshooting guide says.
constexpr const char* kKernelPart = "/proc/driver/nvidia-fs/version";

struct Library {
  std::string name;
  void* handle = nullptr;
  bool chosen = false;  ///< by PENSTOCK_LIBCUFILE
};

Library open_library() {
  const char* const chosen = core::environment("PENSTOCK_LIBCUFILE");
  Library out{chosen != nullptr ? chosen : "libcufile.so.0", nullptr, chosen != nullptr};
  if (!out.name.empty()) out.handle = ::dlopen(out.name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (out.handle == nullptr) out.name.clear();
  return out;
}

const Library& library() {
  // Never destroyed: handles may be given back after all statics.
  static const Library& found = *new Library(open_library());
  return found;
}

bool find_all(void* library, Api& api) {
  core::Symbols symbols(library);
  symbols.required("cuFileDriverOpen", api.driver_open);
  symbols.required("cuFileDriverGetProperties", api.driver_properties);
  symbols.required("cuFileHandleRegister", api.handle_register);
  symbols.required("cuFileHandleDeregister", api.handle_deregister);
  symbols.required("cuFileRead", api.read);
  return symbols.missing() == nullptr;
}

bool is_direct(const Properties& properties) {
  const bool posix = (properties.control & 1U << kPosixMode) != 0;
  const bool kernel = properties.major != 0 || properties.minor != 0;
  const bool peer = (properties.features & 1U << kPeerToPeer) != 0 && properties.supported != 0;
  return !posix && (kernel || peer);
}

struct OpenedDriver {
  Driver driver;
  std::string why_not;
};

OpenedDriver open_driver() {
  OpenedDriver found;
  Driver& driver = found.driver;
  if (!find_all(library().handle, driver.api)) {
    found.why_not = core::format("{} lacks entry points that cuFile has", library().name);
    return found;
  }
  const Result result = driver.api.driver_open();
  // Another library of the process may have opened it.
  if (result.error != kSuccess && result.error != kDriverAlreadyOpen) {
    found.why_not = core::format("cuFile does not start: cuFileDriverOpen gives {}", describe(result.error));
    return found;
  }
  if (driver.api.driver_properties(&driver.properties).error != kSuccess) driver.properties = {};
  driver.direct = is_direct(driver.properties);
  const bool kernel = driver.properties.major != 0 || driver.properties.minor != 0;
  driver.how = !driver.direct ? "in compatibility mode"
               : kernel ? core::format("direct, nvidia-fs {}.{}", driver.properties.major, driver.properties.minor)
                        : "direct, from disk to device by the kernel";
  return found;
}

const OpenedDriver& driver() {
  static const OpenedDriver& found = *new OpenedDriver(open_driver());
  return found;
}

bool kernel_part_missing() { return !library().chosen && ::access(kKernelPart, F_OK) != 0; }

}  // namespace

const std::string& library_name() { return library().name; }

const Driver* find_driver(bool asked, std::string& why_not) {
  if (library().handle == nullptr) {
    why_not = "there is no cuFile library (libcufile.so.0)";
  } else if (!asked && kernel_part_missing()) {
    why_not = "the kernel has no nvidia-fs, without which cuFile copies by the processor too";
  } else {
    why_not = driver().why_not;
  }
  return why_not.empty() ? &driver().driver : nullptr;
}

std::string describe(int error) {
  static constexpr std::array<std::pair<int, std::string_view>, 19> kTexts = {{
      {kDriverNotInitialized, "nvidia-fs is not loaded, and compatibility mode is not allowed"},
      {kDriverVersionMismatch, "nvidia-fs has another version"},
      {kPlatformNotSupported, "the platform is not supported"},
      {kIoNotSupported, "the file system is not supported"},
      {kDeviceNotSupported, "the device is not supported"},
      {kNvfsDriverError, "nvidia-fs failed"},
      {kCudaDriverError, "the CUDA driver failed"},
      {kCudaPointerInvalid, "it does not take the device memory"},
      {kCudaMemoryTypeInvalid, "it does not take memory of this kind"},
      {kCudaPointerRange, "beyond the end of the memory"},
      {kCudaContextMismatch, "another context"},
      {kInvalidFileType, "not a file it can read"},
      {kInvalidOpenFlag, "the file is opened in a way it does not take"},
      {kDirectNotSet, "the file is not open for direct reads"},
      {kPermissionDenied, "no permission"},
      {kInternalError, "an internal error"},
      {kNvfsSetupError, "nvidia-fs does not start"},
      {kIoDisabled, "switched off for the file by cufile.json"},
      {kPinningFailed, "memory of the device cannot be pinned"},
  }};
  const auto* const text =
      std::find_if(kTexts.begin(), kTexts.end(), [error](auto& row) { return row.first == error; });
  return text == kTexts.end() ? core::format("error {}, which cufile.log explains", error)
                              : core::format("error {} ({})", error, text->second);
}

std::string state() {
  if (library_name().empty()) return {};
  if (kernel_part_missing()) return library_name() + ": in compatibility mode, the kernel has no nvidia-fs";
  const device::Backend* const backend = device::pinning_backend();
  if (backend == nullptr) return library_name() + ": not asked, there is no device";
  std::string text;
  backend->in_context(backend->current_device(), [&text] {
    std::string why_not;
    const Driver* const found = find_driver(false, why_not);
    text = library_name() + ": " + (found != nullptr ? found->how : why_not);
  });
  return text;
}

}  // namespace penstock::io::gds
