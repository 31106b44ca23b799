#include "penstock/device.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <ostream>

#include "core/text.h"
#include "device/backend.h"
#include "penstock/error.h"

namespace penstock {
namespace {

struct Row {
  DeviceType type;
  std::string_view name;
};

constexpr std::array kTypes = std::to_array<Row>({{DeviceType::kCpu, "cpu"}, {DeviceType::kCuda, "cuda"}});

[[noreturn]] void throw_malformed(std::string_view text) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("device {} is not one of \"cpu\", \"cuda\" or \"cuda:N\" with N from 0", core::quoted(text)));
}

int parse_index(std::string_view digits, std::string_view text) {
  int index = -1;
  const char* const last = digits.data() + digits.size();
  const auto [end, failed] = std::from_chars(digits.data(), last, index);
  if (failed != std::errc{} || end != last || index < 0) throw_malformed(text);
  return index;
}

int current_index(DeviceType type) {
  for (const device::Backend* backend : device::backends()) {
    if (backend->type() == type) return backend->current_device();
  }
  return 0;
}

}  // namespace

Device::Device(std::string_view text) {
  const std::size_t colon = text.find(':');
  for (const Row& row : kTypes) {
    if (row.name != text.substr(0, colon)) continue;
    type = row.type;
    index = colon == std::string_view::npos ? current_index(type) : parse_index(text.substr(colon + 1), text);
    if (type == DeviceType::kCpu && index != 0) throw_malformed(text);
    return;
  }
  throw_malformed(text);
}

std::string Device::to_string() const {
  const std::string_view name = kTypes[static_cast<std::size_t>(type)].name;
  return type == DeviceType::kCpu ? std::string(name) : fmt::format("{}:{}", name, index);
}

std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.to_string(); }

}  // namespace penstock
