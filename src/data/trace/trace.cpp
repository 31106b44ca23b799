// Each thread writes its events into blocks of its own lane, so that threads do not wait for each other's lock. The
// events become JSON only when the trace is written. A lane that still grows is written as it was at one moment.

#include "data/trace/trace.h"

#include <unistd.h>

#include <memory>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/format.h"
#include "io/file/output.h"
#include "io/locations.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

constexpr std::array<std::string_view, 12> kNames = {
    "open", "read",  "decode",          "function",      "collate",        "copy",
    "send", "batch", "wait for memory", "wait for work", "wait for batch", "caller"};

}  // namespace

/// A lane as it was at one moment. The events do not change any more.
struct Trace::View {
  std::string_view name;
  std::vector<std::shared_ptr<Lane::Block>> blocks;
  std::size_t filled = 0;
  std::uint64_t dropped = 0;

  template <class Use>
  void for_each(Use use) const {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const std::size_t count = b + 1 == blocks.size() ? filled : Lane::kBlock;
      for (std::size_t i = 0; i < count; ++i) use((*blocks[b])[i]);
    }
  }
};

Trace::Trace(const std::string& path) : path_(io::absolute_or_same(path)) {
  const std::unique_ptr<io::Output> probe = io::open_output(path_, {.sync = false});
}

Trace::~Trace() {
  if (!changed_) return;
  try {
    write();
  } catch (const std::exception&) {
    // `write` tells, to whoever calls it.
  }
}

Trace::Lane& Trace::lane(std::string name) {
  const std::scoped_lock lock(mutex_);
  return lanes_.emplace_back(*this, std::move(name));
}

void Trace::Lane::add(What what, Clock::time_point begin, Clock::time_point end, std::int64_t number) noexcept {
  const std::scoped_lock lock(mutex_);
  if ((blocks_.empty() || filled_ == kBlock) && !add_block()) {
    ++dropped_;
    return;
  }
  (*blocks_.back())[filled_++] = {begin, end, number, what};
  trace_.changed_.store(true, std::memory_order_relaxed);
}

bool Trace::Lane::add_block() noexcept {
  if (!trace_.take_block()) return false;
  try {
    blocks_.push_back(std::make_shared<Block>());
  } catch (const std::bad_alloc&) {
    return false;
  }
  filled_ = 0;
  return true;
}

std::vector<Trace::View> Trace::views() const {
  const std::scoped_lock lock(mutex_);
  std::vector<View> out;
  for (const Lane& lane : lanes_) {
    const std::scoped_lock lane_lock(lane.mutex_);
    out.push_back({lane.name_, lane.blocks_, lane.filled_, lane.dropped_});
  }
  return out;
}

/// Events as text, some at a time.
class Trace::Writer {
 public:
  Writer(io::Output& file, Clock::time_point start) : file_(file), start_(start) {
    put(R"({{"displayTimeUnit":"ms","traceEvents":[
{{"name":"process_name","ph":"M","pid":{},"args":{{"name":"penstock DataLoader"}}}})",
        process_);
  }

  void lane(std::size_t thread, const View& lane) {
    put(",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":\"{}\"}}}}", process_,
        thread, lane.name);
    lane.for_each([&](const Lane::Event& event) {
      put(",\n{{\"name\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}",
          kNames[static_cast<std::size_t>(event.what)], process_, thread, microseconds(event.begin - start_),
          microseconds(event.end - event.begin));
      if (event.number >= 0) {
        put(R"(,"args":{{"{}":{}}})", event.what < What::kBatch ? "sample" : "batch", event.number);
      }
      put("}}");
      if (text_.size() > kFlush) flush();
    });
  }

  void finish(std::uint64_t dropped) {
    put("\n],\"otherData\":{{\"dropped_events\":{}}}}}\n", dropped);
    flush();
  }

 private:
  static constexpr std::size_t kFlush = std::size_t{64} << 10;

  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    core::append(text_, format, std::forward<Args>(args)...);
  }
  void flush() {
    file_.write_text(text_);
    text_.clear();
  }
  static double microseconds(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

  io::Output& file_;
  const Clock::time_point start_;
  const int process_ = ::getpid();
  std::string text_;
};

void Trace::write() {
  changed_ = false;
  try {
    write_events();
  } catch (...) {
    changed_ = true;
    throw;
  }
}

void Trace::write_events() const {
  const std::vector<View> lanes = views();
  const std::unique_ptr<io::Output> file = io::open_output(path_, {.sync = false});
  Writer writer(*file, start_);
  std::uint64_t dropped = 0;
  for (std::size_t thread = 0; thread < lanes.size(); ++thread) {
    writer.lane(thread, lanes[thread]);
    dropped += lanes[thread].dropped;
  }
  writer.finish(dropped);
  file->commit();
}

}  // namespace penstock::data
