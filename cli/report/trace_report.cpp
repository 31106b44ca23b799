// A trace may have a million events of a hundred bytes, and anybody may have made it. It is read as a stream of events
// of JSON, so that no more is held than the text and the events' numbers.

#include "cli/report/trace_report.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>

#include "cli/json/json.h"
#include "core/format.h"
#include "core/json_reader.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::cli {
namespace {

constexpr std::size_t kHead = 4096;

}  // namespace

bool is_trace(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string head(kHead, '\0');
  file.read(head.data(), kHead);
  head.resize(static_cast<std::size_t>(file.gcount()));
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string::npos && head[first] == '{' && head.find("\"traceEvents\"") != std::string::npos;
}

/// The document, its "traceEvents", an event in it, and the event's "args"; and "otherData" of the document.
class TraceReport::Reader final : public core::JsonReader {
 public:
  Reader(std::string_view text, const std::string& path, TraceReport& report)
      : core::JsonReader(text, path, 0), report_(report) {}

 private:
  enum class State : std::uint8_t { kStart, kTop, kEvents, kEvent, kArgs, kOther };

  /// What is used of an event.
  struct Fields {
    std::string kind = {};
    std::string name = {};
    std::int64_t process = 0;
    std::int64_t thread = 0;
    double begin = std::nan("");
    double duration = std::nan("");
    std::string own_name = {};  ///< of the arguments, as are the next
    std::int64_t sample = -1;
    std::int64_t batch = -1;
  };

  void on_object() override {
    if (state_ == State::kStart) {
      state_ = State::kTop;
    } else if (state_ == State::kTop && key_ == "otherData") {
      state_ = State::kOther;
    } else if (state_ == State::kEvents) {
      state_ = State::kEvent;
      event_ = {};
    } else if (state_ == State::kEvent && key_ == "args") {
      state_ = State::kArgs;
    } else {
      skip_object();
    }
  }
  void on_object_end() override {
    if (state_ == State::kEvent) take();
    state_ = state_ == State::kArgs ? State::kEvent : state_ == State::kEvent ? State::kEvents : State::kTop;
  }
  void on_array() override {
    if (state_ != State::kTop || key_ != "traceEvents") return skip_array();
    state_ = State::kEvents;
  }
  void on_array_end() override { state_ = State::kTop; }
  void on_key(std::string& name) override { key_ = std::move(name); }

  void on_string(std::string& text) override {
    if (state_ == State::kEvent && key_ == "ph") event_.kind = std::move(text);
    if (state_ == State::kEvent && key_ == "name") event_.name = std::move(text);
    if (state_ == State::kArgs && key_ == "name") event_.own_name = std::move(text);
  }
  void on_unsigned(std::uint64_t value) override {
    on_real(static_cast<double>(value));
    if (state_ == State::kOther && key_ == "dropped_events") report_.dropped_ = value;
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      on_whole(static_cast<std::int64_t>(value));
    }
  }
  void on_negative(std::int64_t value) override {
    on_real(static_cast<double>(value));
    on_whole(value);
  }
  void on_fraction(double value, const std::string&) override { on_real(value); }
  void on_real(double value) {
    if (state_ == State::kEvent && key_ == "ts") event_.begin = value;
    if (state_ == State::kEvent && key_ == "dur") event_.duration = value;
  }
  void on_whole(std::int64_t value) {
    if (state_ == State::kEvent && key_ == "pid") event_.process = value;
    if (state_ == State::kEvent && key_ == "tid") event_.thread = value;
    if (state_ == State::kArgs && key_ == "sample") event_.sample = value;
    if (state_ == State::kArgs && key_ == "batch") event_.batch = value;
  }
  void on_other(std::string_view) override {}
  [[noreturn]] void unexpected(std::string_view kind) override { fail(core::format("there is {} in it", kind)); }

  void take() {
    const auto lane = std::pair(event_.process, event_.thread);
    if (event_.kind == "M" && event_.name == "thread_name") {
      report_.lanes_[lane].name = std::move(event_.own_name);
      return;
    }
    const bool timed = std::isfinite(event_.begin) && std::isfinite(event_.duration) && event_.duration >= 0;
    if (event_.kind != "X" || !timed) return;
    const std::int64_t number = event_.sample >= 0 ? event_.sample : event_.batch;
    report_.lanes_[lane].events.push_back({number_of(event_.name), event_.begin, event_.duration, number});
  }

  std::uint32_t number_of(const std::string& name) {
    const auto [found, is_new] = numbers_.try_emplace(name, static_cast<std::uint32_t>(report_.names_.size()));
    if (is_new) report_.names_.push_back(name);
    return found->second;
  }

  TraceReport& report_;
  State state_ = State::kStart;
  std::string key_;
  Fields event_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

TraceReport::TraceReport(const std::string& path) {
  const Source source = open_source(path);
  std::string text(static_cast<std::size_t>(source.size()), '\0');
  source.read(0, std::as_writable_bytes(std::span(text)));
  try {
    Reader(text, path, *this).read();
  } catch (const Error& error) {
    throw Error(error.code(), core::format("this is not a trace: {}", error.message()), {path, error.offset()});
  }
}

void TraceReport::write(JsonWriter& out) const {
  write_members(out, Json{{"dropped", dropped_}, {"names", names_}});
  out.write_key("lanes");
  out.begin_array();
  for (const auto& [thread, lane] : lanes_) {
    out.begin_object();
    write_members(out, Json{{"name", lane.name.empty() ? core::format("thread {}", thread.second) : lane.name}});
    out.write_key("events");
    out.begin_array();
    for (const Event& event : lane.events) {
      out.write_raw(core::format("{},{:.1f},{:.1f},{}", event.name, event.begin, event.duration, event.number));
    }
    out.end();
    out.end();
  }
  out.end();
}

}  // namespace penstock::cli
