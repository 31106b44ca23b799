// Devices, their memory figures, streams and events for Python. The `with` blocks of streams stand in a list for each
// thread, because the current stream is a thread's own and blocks have to end in reverse order.

#include <nanobind/stl/optional.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "bindings.h"
#include "call/arguments.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "penstock/device.h"
#include "penstock/error.h"
#include "penstock/stream.h"

namespace penstock::python {
namespace {

using Released = nb::call_guard<ReleasedGil>;

/// None stands for the current device.
Device device_or_current(nb::handle device) {
  return device.is_none() ? current_device() : numbered_device_from(device);
}

nb::dict stats_of(nb::handle device) {
  const MemoryStats stats = memory_stats(device_or_current(device));
  nb::dict out;
  out["in_use_bytes"] = stats.in_use_bytes;
  out["peak_bytes"] = stats.peak_bytes;
  out["reserved_bytes"] = stats.reserved_bytes;
  out["allocations"] = stats.allocations;
  out["free_bytes"] = stats.free_bytes;
  out["total_bytes"] = stats.total_bytes;
  out["cap_bytes"] = stats.cap_bytes ? nb::object(nb::int_(*stats.cap_bytes)) : nb::none();
  return out;
}

nb::dict properties_of(nb::handle device) {
  const DeviceProperties properties = device_properties(device_or_current(device));
  nb::dict out;
  out["name"] = text_from(properties.name);
  out["total_bytes"] = properties.total_bytes;
  out["numa_node"] = properties.numa_node;
  out["unified_memory"] = properties.unified_memory;
  out["driver_version"] = properties.driver_version;
  out["capability"] = nb::make_tuple(properties.major, properties.minor);
  out["multiprocessors"] = properties.multiprocessors;
  return out;
}

void bind_functions(nb::module_& module) {
  module.def("is_available", [] { return is_available(); });
  module.def("device_count", [] { return device_count(); });
  module.def("current_device", [] { return current_device(); });
  module.def(
      "set_current_device", [](nb::handle device) { set_current_device(numbered_device_from(device)); },
      nb::arg("device"));
  module.def("device_properties", properties_of, nb::arg("device").none());
  module.def("memory_stats", stats_of, nb::arg("device").none());
  module.def(
      "set_memory_cap",
      [](nb::handle device, nb::handle bytes) {
        set_memory_cap(device_or_current(device),
                       bytes.is_none() ? std::nullopt : std::optional(count_argument(bytes, "bytes")));
      },
      nb::arg("device").none(), nb::arg("bytes").none());
  module.def(
      "empty_cache",
      [](nb::handle device) {
        const Device which = device_or_current(device);
        const ReleasedGil released;
        empty_cache(which);
      },
      nb::arg("device").none());
  module.def(
      "synchronize",
      [](nb::handle device) {
        const Device which = device_or_current(device);
        const ReleasedGil released;
        synchronize(which);
      },
      nb::arg("device").none());
}

struct PyStream {
  Stream stream;
};

/// The `with` block of a stream.
struct Block {
  Stream stream;
  std::unique_ptr<StreamGuard> guard;
};

/// Those that this thread is in.
std::vector<Block>& blocks() {
  thread_local std::vector<Block> blocks;
  return blocks;
}

void enter(const Stream& stream) {
  // First, so that the thread's list of queues is there for as long as its blocks.
  auto guard = std::make_unique<StreamGuard>(stream);
  blocks().push_back({stream, std::move(guard)});
}

void leave(const Stream& stream) {
  if (blocks().empty() || !(blocks().back().stream == stream)) {
    throw Error(ErrorCode::kInvalidArgument,
                "this thread's innermost block is not the stream's: blocks end in the thread and in the reverse order "
                "they began in");
  }
  blocks().pop_back();
}

PyStream wrapped(nb::handle device, std::uintptr_t pointer) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): Python knows streams as numbers
  return {Stream::wrap(device_or_current(device), reinterpret_cast<void*>(pointer))};
}

void bind_stream(nb::module_& module) {
  nb::class_<Event>(module, "Event", nb::sig("class Event(EventMethods)"), "Event()\n--\n\n")
      .def("_done", &Event::done)
      .def("_synchronize", &Event::synchronize, Released());
  nb::class_<PyStream>(module, "Stream", nb::sig("class Stream(StreamMethods)"),
                       "Stream(device=None, priority=0)\n--\n\n")
      .def(
          "__init__",
          [](PyStream* self, nb::handle device, int priority) {
            new (self) PyStream{Stream(device_or_current(device), priority)};
          },
          nb::arg("device") = nb::none(), nb::arg("priority") = 0)
      .def_static(
          "_current", [](nb::handle device) { return PyStream{Stream::current(device_or_current(device))}; },
          nb::arg("device").none())
      .def_static("_wrap", wrapped, nb::arg("device").none(), nb::arg("pointer"))
      .def_prop_ro("device", [](const PyStream& s) { return s.stream.device(); })
      .def_prop_ro("pointer", [](const PyStream& s) { return reinterpret_cast<std::uintptr_t>(s.stream.native()); })
      .def("_record", [](const PyStream& s) { return s.stream.record(); })
      .def(
          "_wait", [](const PyStream& s, const Event& event) { s.stream.wait(event); }, nb::arg("event"))
      .def(
          "_wait", [](const PyStream& s, const PyStream& other) { s.stream.wait(other.stream); }, nb::arg("stream"))
      .def("_done", [](const PyStream& s) { return s.stream.done(); })
      .def(
          "_synchronize", [](const PyStream& s) { s.stream.synchronize(); }, Released())
      .def(
          "__enter__",
          [](PyStream& s) -> PyStream& {
            enter(s.stream);
            return s;
          },
          nb::rv_policy::reference)
      .def("__exit__", [](const PyStream& s, const nb::args&) { leave(s.stream); })
      .def(
          "__eq__",
          [](const PyStream& a, nb::handle b) {
            return nb::isinstance<PyStream>(b) && a.stream == nb::cast<const PyStream&>(b).stream;
          },
          nb::arg("other").none())
      .def("__hash__", [](const PyStream& s) {
        return std::hash<void*>()(s.stream.native()) ^ static_cast<std::size_t>(s.stream.device().index);
      });
}

}  // namespace

void bind_devices(nb::module_& module) {
  bind_functions(module);
  bind_stream(module);
}

}  // namespace penstock::python
