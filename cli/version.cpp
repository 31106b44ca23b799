#include "penstock/version.h"

#include <memory>

#include "cli/command.h"
#include "cli/json/json.h"
#include "cli/option.h"
#include "core/format.h"

namespace penstock::cli {
namespace {

std::function<int()> attach_version(Arguments& arguments) {
  auto as_json = std::make_shared<bool>(false);
  arguments.add("--json", as_json.get(), "Print JSON");
  return [as_json] {
    if (*as_json) {
      print_json(Json{{"name", "penstock"}, {"version", PENSTOCK_VERSION_STRING}});
    } else {
      core::print("penstock {}\n", PENSTOCK_VERSION_STRING);
    }
    return 0;
  };
}

}  // namespace

const Command kVersion{
    "version", "Print the version", "", {"penstock version", "penstock --version", "penstock -V"}, attach_version};

}  // namespace penstock::cli
