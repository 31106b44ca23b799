// Streams, events, host functions.

#include <utility>

#include "simulator/call.h"
#include "simulator/engine.h"

namespace penstock::simulator {
namespace {

CUresult find_place(CUstream handle, Place& place) {
  const Lock lock;
  const StreamPtr stream = find_stream(handle);
  if (stream == nullptr) return kInvalidHandle;
  place = {stream, stream->submitted};
  return kSuccess;
}

CUresult find_event(CUevent handle, EventPtr& event) {
  const Lock lock;
  event = find(state().events, handle);
  return event == nullptr ? kInvalidHandle : kSuccess;
}

// As find_event; `place` is what was recorded last.
CUresult find_record(CUevent handle, Place& place) {
  const Lock lock;
  const EventPtr event = find(state().events, handle);
  if (event == nullptr) return kInvalidHandle;
  place = event->recorded;
  return kSuccess;
}

}  // namespace

PENSTOCK_SIM_API CUresult cuStreamCreateWithPriority(CUstream* handle, unsigned flags, int priority) {
  const Call call("cuStreamCreateWithPriority", Need::kContext);
  if (call.refused()) return call.result();
  if (handle == nullptr || (flags & ~kStreamNonBlocking) != 0) return kInvalidValue;
  const Lock lock;
  *handle = new_handle<CUstream>();
  auto stream = std::make_shared<Stream>(Stream{.handle = *handle, .context = current_context(), .flags = flags});
  stream->priority = priority;
  state().streams.emplace(*handle, std::move(stream));
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuStreamCreate(CUstream* handle, unsigned flags) {
  return cuStreamCreateWithPriority(handle, flags, 0);
}

PENSTOCK_SIM_API CUresult cuStreamDestroy_v2(CUstream handle) {
  const Call call("cuStreamDestroy_v2", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  const StreamPtr stream = find(state().streams, handle);
  if (stream == nullptr) {
    violation("cuStreamDestroy_v2: there is no such stream");
    return kInvalidHandle;
  }
  state().streams.erase(handle);
  close(stream);
  return failure_of(*stream->context);
}

PENSTOCK_SIM_API CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  const Call call("cuStreamGetCtx", Need::kContext);
  if (call.refused()) return call.result();
  const Lock lock;
  const StreamPtr stream = find_stream(handle);
  if (context == nullptr) return kInvalidValue;
  if (stream == nullptr) return kInvalidHandle;
  *context = stream->context->handle;
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuStreamSynchronize(CUstream handle) {
  const Call call("cuStreamSynchronize", Need::kContext);
  if (call.refused()) return call.result();
  Place place{};
  const CUresult found = find_place(handle, place);
  return found != kSuccess ? found : wait_for(place);
}

PENSTOCK_SIM_API CUresult cuThreadExchangeStreamCaptureMode(int* mode) {
  const Call call("cuThreadExchangeStreamCaptureMode", Need::kNothing);
  if (call.refused()) return call.result();
  std::swap(*mode, capture_mode());
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuStreamQuery(CUstream handle) {
  const Call call("cuStreamQuery", Need::kContext);
  if (call.refused()) return call.result();
  Place place{};
  const CUresult found = find_place(handle, place);
  return found != kSuccess ? found : query(place);
}

PENSTOCK_SIM_API CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags) {
  const Call call("cuStreamWaitEvent", Need::kContext);
  if (call.refused()) return call.result();
  if (flags > 1) return kInvalidValue;
  StreamPtr stream;
  if (const CUresult result = stream_here(handle, stream); result != kSuccess) return result;
  Place place{};
  if (const CUresult result = find_record(event, place); result != kSuccess) return result;
  if (place.stream == nullptr) return kSuccess;
  auto operation = std::make_shared<Operation>();
  operation->name = "cuStreamWaitEvent";
  operation->after.push_back(place);
  operation->run = [] { return CUresult{kSuccess}; };
  submit(stream, operation);
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuEventCreate(CUevent* handle, unsigned flags) {
  const Call call("cuEventCreate", Need::kContext);
  if (call.refused()) return call.result();
  const bool shared_with_time = (flags & kEventInterprocess) != 0 && (flags & kEventDisableTiming) == 0;
  if (handle == nullptr || flags > 7 || shared_with_time) return kInvalidValue;
  const Lock lock;
  *handle = new_handle<CUevent>();
  auto event = std::make_shared<Event>(Event{.context = current_context(), .flags = flags});
  state().events.emplace(*handle, std::move(event));
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuEventDestroy_v2(CUevent handle) {
  const Call call("cuEventDestroy_v2", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  const EventPtr event = find(state().events, handle);
  if (event == nullptr) {
    violation("cuEventDestroy_v2: there is no such event");
    return kInvalidHandle;
  }
  state().events.erase(handle);
  return failure_of(*event->context);
}

PENSTOCK_SIM_API CUresult cuEventRecord(CUevent handle, CUstream stream_handle) {
  const Call call("cuEventRecord", Need::kContext);
  if (call.refused()) return call.result();
  StreamPtr stream;
  if (const CUresult result = stream_here(stream_handle, stream); result != kSuccess) return result;
  EventPtr event;
  if (const CUresult result = find_event(handle, event); result != kSuccess) return result;
  if (event->context != stream->context) return kInvalidHandle;
  auto operation = std::make_shared<Operation>();
  operation->name = "cuEventRecord";
  operation->run = [when = event->when]() -> CUresult {
    const Lock lock;
    *when = std::chrono::steady_clock::now();
    return kSuccess;
  };
  const Place place = submit(stream, operation);
  const Lock lock;
  event->recorded = place;
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuEventQuery(CUevent handle) {
  const Call call("cuEventQuery", Need::kStart);
  if (call.refused()) return call.result();
  Place place{};
  const CUresult found = find_record(handle, place);
  return found != kSuccess ? found : query(place);
}

PENSTOCK_SIM_API CUresult cuEventSynchronize(CUevent handle) {
  const Call call("cuEventSynchronize", Need::kStart);
  if (call.refused()) return call.result();
  Place place{};
  const CUresult found = find_record(handle, place);
  return found != kSuccess ? found : wait_for(place);
}

PENSTOCK_SIM_API CUresult cuEventElapsedTime(float* milliseconds, CUevent first, CUevent second) {
  const Call call("cuEventElapsedTime", Need::kContext);
  if (call.refused()) return call.result();
  if (milliseconds == nullptr) return kInvalidValue;
  const Lock lock;
  const EventPtr begin = find(state().events, first);
  const EventPtr end = find(state().events, second);
  if (begin == nullptr || end == nullptr || begin->recorded.stream == nullptr || end->recorded.stream == nullptr ||
      ((begin->flags | end->flags) & kEventDisableTiming) != 0) {
    return kInvalidHandle;
  }
  if (!is_done(begin->recorded) || !is_done(end->recorded)) return kNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(*end->when - *begin->when).count();
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  const Call call("cuLaunchHostFunc", Need::kContext);
  if (call.refused()) return call.result();
  if (function == nullptr) return kInvalidValue;
  StreamPtr stream;
  if (const CUresult result = stream_here(handle, stream); result != kSuccess) return result;
  auto operation = std::make_shared<Operation>();
  operation->name = "cuLaunchHostFunc";
  operation->host_function = true;
  operation->run = [function, data]() -> CUresult {
    in_host_function() = true;
    function(data);
    in_host_function() = false;
    return kSuccess;
  };
  submit(stream, operation);
  return kSuccess;
}

}  // namespace penstock::simulator
