#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/json/json_writer.h"

namespace penstock::cli {

/// Whether a file looks like a Chrome trace (the JSON that `bench --trace` and a loader's `trace` write).
bool is_trace(const std::string& path);

/// What the page of a trace shows: what each thread did and when.
class TraceReport {
 public:
  /// kNotFound, kIo; kCorrupt where it is no trace.
  explicit TraceReport(const std::string& path);

  /// The members of the object that is open.
  void write(JsonWriter& out) const;

 private:
  struct Event {
    std::uint32_t name;
    double begin;  ///< microseconds
    double duration;
    std::int64_t number;  ///< of the sample or batch, or -1
  };
  struct Lane {
    std::string name;
    std::vector<Event> events;
  };
  class Reader;

  std::vector<std::string> names_;
  std::map<std::pair<std::int64_t, std::int64_t>, Lane> lanes_;  ///< by process and thread
  std::uint64_t dropped_ = 0;
};

}  // namespace penstock::cli
