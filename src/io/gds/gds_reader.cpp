// Reads a file into device memory by cuFile. A file is registered with the library once and read by any thread. After
// the first read that does not give what was asked, no other read of that file is tried: the ring reads the rest, and
// its errors are the ones that users see.

#include "io/gds/gds_reader.h"

#include <atomic>
#include <cerrno>
#include <functional>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "device/backend.h"
#include "io/gds/gds.h"
#include "io/gds/gds_file_system.h"
#include "io/read/direct_file.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

void in_context(Device device, const std::function<void()>& action) {
  device::backend_for(device.type).in_context(device.index, action);
}

/// Says what a result of cuFileRead means that is not `wanted`.
std::string text_of(ssize_t result, int error, std::size_t wanted, std::uint64_t offset) {
  if (result >= 0)
    return core::format("cuFileRead gave {} of {} at offset {}", result, core::counted(wanted, "byte"), offset);
  const std::string reason =
      result < -gds::kErrorBase ? gds::describe(static_cast<int>(-result)) : std::generic_category().message(error);
  return core::format("cuFileRead of {} at offset {} gives {}", core::counted(wanted, "byte"), offset, reason);
}

class GdsFile final : public DeviceFile {
 public:
  GdsFile(const ByteSource& source, const gds::Driver& driver, std::unique_ptr<DirectFile> file, std::string how)
      : source_(source), driver_(driver), file_(std::move(file)), how_(std::move(how)) {}
  GdsFile(const GdsFile&) = delete;
  GdsFile& operator=(const GdsFile&) = delete;
  ~GdsFile() override {
    if (handle_ != nullptr) driver_.api.handle_deregister(handle_);
  }

  /// cuFile's error.
  int enter() {
    gds::Description description;
    description.file.fd = file_->descriptor();
    const int error = driver_.api.handle_register(&handle_, &description).error;
    if (error != gds::kSuccess) handle_ = nullptr;
    return error;
  }

  bool read(std::uint64_t offset, const Buffer& into, std::size_t at, std::size_t bytes) override {
    // A read beyond the end is refused, because pread has the better error.
    if (refused_ || !core::range_fits(offset, bytes, source_.size())) return false;
    ssize_t got = 0;
    int error = 0;
    try {
      in_context(into.device(), [&] {
        errno = 0;
        got = driver_.api.read(handle_, into.data(), bytes, static_cast<off_t>(offset), static_cast<off_t>(at));
        error = errno;
      });
    } catch (const Error& failed) {
      throw failed.within({.path = source_.name(), .offset = offset});
    }
    if (got >= 0 && static_cast<std::size_t>(got) == bytes) return true;
    const std::scoped_lock lock(mutex_);
    if (!refused_.exchange(true)) refusal_ = text_of(got, error, bytes, offset);
    return false;
  }

  std::string refusal() const override {
    const std::scoped_lock lock(mutex_);
    return refusal_;
  }
  std::string_view how() const noexcept override { return how_; }

 private:
  const ByteSource& source_;
  const gds::Driver& driver_;
  std::unique_ptr<DirectFile> file_;
  std::string how_;
  gds::Handle handle_ = nullptr;
  std::atomic<bool> refused_{false};
  mutable std::mutex mutex_;
  std::string refusal_;
};

struct Way {
  bool direct;
  std::string how;
};

/// cuFile accepts files that it cannot read directly and does not say so, so the file system is asked.
Way way_of(const gds::Driver& driver, int fd, bool anywhere) {
  if (!driver.direct || anywhere) return {driver.direct, driver.how};
  const std::string why_not = gds::why_not_direct(gds::file_system_of(fd), driver.properties);
  return why_not.empty() ? Way{true, driver.how} : Way{false, "in compatibility mode, as " + why_not};
}

std::unique_ptr<DeviceFile> open(const ByteSource& source, Device device, bool asked, bool anywhere,
                                 std::string& why_not) {
  auto file = DirectFile::open(source, why_not);
  if (!file) return nullptr;
  std::unique_ptr<GdsFile> out;
  in_context(device, [&] {
    const gds::Driver* const driver = gds::find_driver(asked, why_not);
    if (driver == nullptr) return;
    Way way = way_of(*driver, file->descriptor(), anywhere);
    if (!asked && !way.direct) {
      why_not = "cuFile is " + way.how;
      return;
    }
    out = std::make_unique<GdsFile>(source, *driver, std::move(file), std::move(way.how));
    const int error = out->enter();
    if (error == gds::kSuccess) return;
    why_not = "cuFileHandleRegister gives " + gds::describe(error);
    out.reset();
  });
  return out;
}

}  // namespace

std::unique_ptr<DeviceFile> open_gds(const ByteSource& source, Device device, bool asked, std::string& why_not) {
  return open(source, device, asked, false, why_not);
}

std::unique_ptr<DeviceFile> open_gds_anywhere(const ByteSource& source, Device device, bool asked,
                                              std::string& why_not) {
  return open(source, device, asked, true, why_not);
}

}  // namespace penstock::io
