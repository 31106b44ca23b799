#include "simulator/engine.h"

#include <algorithm>
#include <thread>

#include "simulator/call.h"

namespace penstock::simulator {
namespace {

// Callers may wait for a host function by their own means, so a device gets to it sooner or later.
constexpr std::chrono::milliseconds kUntilHostFunctions{5};
constexpr std::uint64_t kLongestDelay = 2000;  // microseconds
// Most work is done at once, so that what comes late comes late among much else and programs still end soon.
constexpr std::uint64_t kDelayedOneIn = 8;

bool is_eager() { return state().settings.mode == kPenstockSimEager; }

bool draw_held() {
  Settings& settings = state().settings;
  if (settings.mode == kPenstockSimLazy) return true;
  return settings.mode == kPenstockSimReorder && settings.random() % 2 == 0;
}

void use(const Operation& operation, unsigned change) {
  for (const AllocationPtr& memory : operation.memory) memory->in_flight += change;
  for (const PinnedPtr& pinned : operation.pinned) pinned->in_flight += change;
}

void order_with_legacy(const StreamPtr& stream, Operation& operation) {
  State& s = state();
  const StreamPtr& legacy = s.legacy_streams.at(static_cast<std::size_t>(stream->context->device));
  if (legacy == nullptr || (stream->flags & kStreamNonBlocking) != 0) return;
  if (stream != legacy) return operation.after.push_back({legacy, legacy->submitted});
  for (const auto& [handle, other] : s.streams) {
    const bool blocking = other->context == stream->context && (other->flags & kStreamNonBlocking) == 0;
    if (blocking) operation.after.push_back({other, other->submitted});
  }
}

bool may_run(const Stream& stream) {
  if (stream.queue.empty() || stream.running) return false;
  const Operation& next = *stream.queue.front();
  if (next.held && next.number > stream.demanded) return false;
  bool ready = true;
  for (const Place& place : next.after) {
    if (is_done(place)) continue;
    ready = false;
    demand(place);
  }
  return ready;
}

void pause(const Operation& operation) {
  std::uint64_t microseconds = 0;
  {
    const Lock lock;
    Settings& settings = state().settings;
    const bool late = settings.mode == kPenstockSimDelay && operation.name != nullptr;
    if (late && settings.random() % kDelayedOneIn == 0) microseconds = settings.random() % kLongestDelay;
  }
  if (microseconds > 0) std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

CUresult start(const Context& context, const Operation& operation) {
  const Lock lock;
  if (const CUresult failed = failure_of(context); failed != kSuccess) return failed;
  return due_fault(std::string("execution of ") + operation.name);
}

// The first operation of the stream, which is marked as running.
void execute_first(const StreamPtr& stream, const OperationPtr& operation) {
  pause(*operation);
  happens_after(operation.get());
  for (const Place& place : operation->after) happens_after(place.stream.get());
  CUresult result = start(*stream->context, *operation);
  if (result == kSuccess) result = operation->run();
  happens_before(stream.get());
  const Lock lock;
  if (result != kSuccess && stream->context->error == kSuccess) stream->context->error = result;
  use(*operation, ~0U);
  operation->run = nullptr;
  operation->memory.clear();
  operation->pinned.clear();
  operation->after.clear();
  stream->queue.pop_front();
  stream->running = false;
  stream->done = operation->number;
  state().changed.notify_all();
}

bool has_host_function(const Stream& stream) {
  return std::any_of(stream.queue.begin(), stream.queue.end(), [](const auto& o) { return o->host_function; });
}

// The next operation, marked as running; null when the stream has ended.
OperationPtr next_operation(const StreamPtr& stream) {
  Lock lock;
  while (true) {
    const bool hurried = has_host_function(*stream);
    const auto changed = [&] {
      return may_run(*stream) || (stream->closed && stream->queue.empty()) || has_host_function(*stream) != hurried;
    };
    if (!hurried) {
      lock.wait(changed);
    } else if (!lock.wait_for(kUntilHostFunctions, changed)) {
      demand({stream, stream->submitted});
    }
    if (stream->closed && stream->queue.empty()) {
      std::erase(state().closing, stream);
      state().changed.notify_all();
      return nullptr;
    }
    if (!may_run(*stream)) continue;
    stream->running = true;
    return stream->queue.front();
  }
}

void work(const StreamPtr& stream) {
  while (const OperationPtr operation = next_operation(stream)) execute_first(stream, operation);
}

void start_worker(const StreamPtr& stream) {
  if (stream->working) return;
  stream->working = true;
  std::thread([stream] { work(stream); }).detach();
}

}  // namespace

Place submit(const StreamPtr& stream, const OperationPtr& operation) {
  happens_before(operation.get());
  bool now = false;
  {
    const Lock lock;
    order_with_legacy(stream, *operation);
    operation->number = ++stream->submitted;
    // A device that was lost meanwhile does not keep it for later.
    operation->held = draw_held() && failure_of(*stream->context) == kSuccess;
    use(*operation, 1);
    stream->queue.push_back(operation);
    now = is_eager() && !operation->host_function && may_run(*stream) && stream->queue.size() == 1;
    if (now) {
      stream->running = true;
    } else {
      start_worker(stream);
    }
    state().changed.notify_all();
  }
  const Place place{stream, operation->number};
  if (now) execute_first(stream, operation);
  return place;
}

void demand(const Place& place) {
  if (place.stream == nullptr || place.stream->demanded >= place.number) return;
  place.stream->demanded = place.number;
  state().changed.notify_all();
}

bool is_done(const Place& place) { return place.stream == nullptr || place.stream->done >= place.number; }

CUresult wait_for(const Place& place) {
  if (place.stream == nullptr) return kSuccess;
  CUresult result = kSuccess;
  {
    Lock lock;
    demand(place);
    lock.wait([&] { return is_done(place); });
    result = failure_of(*place.stream->context);
  }
  happens_after(place.stream.get());
  return result;
}

CUresult query(const Place& place) {
  if (place.stream == nullptr) return kSuccess;
  CUresult result = kNotReady;
  {
    const Lock lock;
    const CUresult failed = failure_of(*place.stream->context);
    if (failed != kSuccess) return failed;
    if (is_done(place)) result = kSuccess;
    demand(place);
  }
  if (result == kSuccess) happens_after(place.stream.get());
  return result;
}

CUresult wait_for_all(const Context& context) {
  std::vector<Place> places;
  {
    const Lock lock;
    const StreamPtr& legacy = state().legacy_streams.at(static_cast<std::size_t>(context.device));
    if (legacy != nullptr) places.push_back({legacy, legacy->submitted});
    for (const auto& [handle, stream] : state().streams) {
      if (stream->context.get() == &context) places.push_back({stream, stream->submitted});
    }
    for (const StreamPtr& stream : state().closing) {
      if (stream->context.get() == &context) places.push_back({stream, stream->submitted});
    }
  }
  for (const Place& place : places) wait_for(place);
  const Lock lock;
  return failure_of(context);
}

void close(const StreamPtr& stream) {
  demand({stream, stream->submitted});
  stream->closed = true;
  if (!stream->queue.empty()) state().closing.push_back(stream);
  state().changed.notify_all();
}

void wait_for_closed() {
  Lock lock;
  lock.wait([] { return state().closing.empty(); });
}

StreamPtr find_stream(CUstream handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number > kPerThreadStream) return find(state().streams, handle);
  const ContextPtr context = current_context();
  if (context == nullptr) return nullptr;
  StreamPtr& legacy = state().legacy_streams.at(static_cast<std::size_t>(context->device));
  if (legacy == nullptr) legacy = std::make_shared<Stream>(Stream{.handle = nullptr, .context = context, .flags = 0});
  return legacy;
}

CUresult stream_here(CUstream handle, StreamPtr& stream) {
  const Lock lock;
  stream = find_stream(handle);
  return stream != nullptr && stream->context == current_context() ? kSuccess : kInvalidHandle;
}

}  // namespace penstock::simulator
