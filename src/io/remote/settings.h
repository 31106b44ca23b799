#pragma once

// The variables of the environment that tune reading by URL.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

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
/// The same of a whole number.
std::uint64_t whole_number(const char* name, std::uint64_t least, std::uint64_t most, std::uint64_t otherwise);
/// Whether the variable is "1", "true", "yes" or "on"; not for "0", "false", "no", "off" and where it is not set.
/// kInvalidArgument for other values: each would be taken for what its user did not mean.
bool is_on(const char* name);
/// The same of a value that `name` has in another place, as a file.
bool is_on(std::string_view name, const std::string& text);
/// The variable's value, or that of an option in its place (values.h); empty where it is not set.
std::string variable(const char* name);
/// The same for the path of a file or folder, where "~/" is the folder HOME, as shells have it. kInvalidArgument for
/// what would become a folder of that name here: a URL, "~user/", "$HOME/".
std::string path_variable(const char* name);
/// The value of the first of these that is set.
std::string first_variable(std::initializer_list<const char*> names);
/// `otherwise` in place of an empty value.
std::string or_else(std::string value, std::string_view otherwise);
/// Empty where HOME is not set: a folder called "~" in the current one is somebody else's.
std::string with_home(std::string path);
/// kInvalidArgument for a text with a line break in it: in a request it would begin another header. `name`: what it is.
void require_line(std::string_view text, std::string_view name);

}  // namespace penstock::io::remote
