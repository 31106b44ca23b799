// A trace may have a million events of a hundred bytes. The parser gives each as it comes and forgets it, so that no
// more than the events' numbers are held.

#include "cli/report/trace_report.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <unordered_map>

#include "cli/json/json.h"
#include "core/format.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

constexpr std::size_t kHead = 4096;

std::int64_t whole(const Json& object, const char* key, std::int64_t otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : otherwise;
}

double time_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

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

class TraceReport::Reader {
 public:
  explicit Reader(TraceReport& report) : report_(report) {}

  void take(const Json& event) {
    const std::string kind = text_of(event, "ph");
    const std::string name = text_of(event, "name");
    const auto lane = std::pair(whole(event, "pid", 0), whole(event, "tid", 0));
    const auto args = event.find("args");
    if (kind == "M" && name == "thread_name" && args != event.end()) {
      report_.lanes_[lane].name = text_of(*args, "name");
      return;
    }
    const double begin = time_of(event, "ts");
    const double duration = time_of(event, "dur");
    if (kind != "X" || !std::isfinite(begin) || !std::isfinite(duration) || duration < 0) return;
    std::int64_t number = -1;
    if (args != event.end()) number = whole(*args, "sample", whole(*args, "batch", -1));
    report_.lanes_[lane].events.push_back({number_of(name), begin, duration, number});
  }

 private:
  std::uint32_t number_of(const std::string& name) {
    const auto [found, is_new] = numbers_.try_emplace(name, static_cast<std::uint32_t>(report_.names_.size()));
    if (is_new) report_.names_.push_back(name);
    return found->second;
  }

  TraceReport& report_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

TraceReport::TraceReport(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::kIo, "the trace cannot be opened", {.path = path});
  Reader reader(*this);
  // The document, its "traceEvents", and an event in it.
  constexpr int kEventDepth = 2;
  const auto forget_events = [&reader](int depth, Json::parse_event_t event, Json& parsed) {
    if (event != Json::parse_event_t::object_end || depth != kEventDepth) return true;
    reader.take(parsed);
    return false;
  };
  try {
    const Json rest = Json::parse(file, forget_events);
    const auto other = rest.find("otherData");
    if (other != rest.end()) dropped_ = static_cast<std::uint64_t>(whole(*other, "dropped_events", 0));
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kCorrupt, core::format("this is not a trace: {}", error.what()), {.path = path});
  }
}

void TraceReport::write(JsonWriter& out) const {
  write_members(out, Json{{"dropped", dropped_}, {"names", names_}});
  out.key("lanes");
  out.begin_array();
  for (const auto& [thread, lane] : lanes_) {
    out.begin_object();
    write_members(out, Json{{"name", lane.name.empty() ? core::format("thread {}", thread.second) : lane.name}});
    out.key("events");
    out.begin_array();
    for (const Event& event : lane.events) {
      out.raw(core::format("{},{:.1f},{:.1f},{}", event.name, event.begin, event.duration, event.number));
    }
    out.end();
    out.end();
  }
  out.end();
}

}  // namespace penstock::cli
