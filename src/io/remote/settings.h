#pragma once

// The variables of the environment that tune reading by URL.

#include <chrono>
#include <cstddef>
#include <string>

namespace penstock::io::remote {

/// What the environment, or options in its place (values.h), say of URLs (docs/design/remote.md). Read anew each time,
/// so that a program may set it late.
struct Settings {
  std::size_t requests = 64;                     ///< most in flight
  std::chrono::milliseconds timeout{30'000};     ///< a request fails when no byte has come for so long
  std::chrono::milliseconds retry_time{60'000};  ///< for how long a request is tried again
  double hedges = 0.05;                          ///< second requests for late answers, as a share of all answers
  std::string ca_file = {};                      ///< certificates to trust; empty: libcurl's own
  std::string ca_folder = {};                    ///< the same as a folder
};
/// kInvalidArgument for a variable that is no number.
Settings settings();

/// Requests of all reads of the process that may be in flight, whatever the options of a location. kInvalidArgument.
std::size_t process_requests();

/// The variable as a number from `least` to `most`, or `otherwise` where it is not set. kInvalidArgument.
double number(const char* name, double least, double most, double otherwise);
/// The variable's value, or that of an option in its place (values.h); empty where it is not set.
std::string variable(const char* name);
/// The same for the path of a file or folder, where "~/" is the folder HOME, as shells have it.
std::string path_variable(const char* name);
std::string with_home(std::string path);

}  // namespace penstock::io::remote
