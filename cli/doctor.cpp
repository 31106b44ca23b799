#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cli/command.h"
#include "cli/json/json.h"
#include "cli/option.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/text.h"
#include "doctor/diagnosis.h"

namespace penstock::cli {
namespace {

using doctor::Fact;
using doctor::Section;

struct DoctorOptions {
  std::string path;
  bool json = false;
};

Json json_of(std::monostate) { return {}; }
template <class Known>
Json json_of(const Known& known) {
  return Json(known);
}

std::string_view name_of(Fact::Weight weight) { return weight == Fact::Weight::kProblem ? "problem" : "note"; }

/// {"limits": {"open_files": 1024, ...}, ..., "advice": [{"about": "limits.open_files", "weight": "note", "text":
/// ...}]}
Json to_json(const std::vector<Section>& sections) {
  Json out = Json::object();
  Json advice = Json::array();
  for (const Section& section : sections) {
    Json facts = Json::object();
    for (const Fact& fact : section.facts) {
      facts[fact.name] = std::visit([](const auto& value) { return json_of(value); }, fact.value);
      if (fact.weight == Fact::Weight::kFine) continue;
      advice.push_back(
          {{"about", section.name + "." + fact.name}, {"weight", name_of(fact.weight)}, {"text", fact.advice}});
    }
    out[section.name] = std::move(facts);
  }
  out["advice"] = std::move(advice);
  return out;
}

std::string number(double value, Fact::Unit unit) {
  if (unit == Fact::Unit::kNone) return core::format("{:.4g}", value);
  return core::format_bytes(static_cast<std::uint64_t>(value)) + (unit == Fact::Unit::kBytesPerSecond ? "/s" : "");
}

std::string shown(const Fact& fact) {
  if (const auto* const text = std::get_if<std::string>(&fact.value)) return printable(*text);
  if (const auto* const yes = std::get_if<bool>(&fact.value)) return *yes ? "yes" : "no";
  if (const auto* const real = std::get_if<double>(&fact.value)) return number(*real, fact.unit);
  const auto* const count = std::get_if<std::uint64_t>(&fact.value);
  if (count == nullptr) return "-";
  return fact.unit == Fact::Unit::kNone ? human_count(*count) : number(static_cast<double>(*count), fact.unit);
}

std::string spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

void print_section(const Section& section) {
  core::print("{}\n", paint(stdout, "1", section.name));
  for (const Fact& fact : section.facts) core::print("  {:<22} {}\n", spaced(fact.name), shown(fact));
}

void print_advice(const std::vector<Section>& sections, Fact::Weight weight, std::string_view title,
                  std::string_view style) {
  bool first = true;
  for (const Section& section : sections) {
    for (const Fact& fact : section.facts) {
      if (fact.weight != weight) continue;
      if (first) core::print("{}\n", paint(stdout, style, title));
      first = false;
      core::print("  {}, {}: {}\n", section.name, spaced(fact.name), printable(fact.advice));
    }
  }
}

int run(const DoctorOptions& options) {
  const std::vector<Section> sections = doctor::diagnose({.path = options.path});
  if (options.json) {
    print_json(to_json(sections));
    return 0;
  }
  for (const Section& section : sections) print_section(section);
  print_advice(sections, Fact::Weight::kNote, "notes", "1");
  print_advice(sections, Fact::Weight::kProblem, "problems", "31;1");
  return 0;
}

std::function<int()> attach_doctor(Arguments& arguments) {
  auto options = std::make_shared<DoctorOptions>();
  arguments
      .add("PATH", &options->path,
           "A file to read, or a folder to make one in for a moment (default: the folder for temporary files)")
      .takes("PATH");
  arguments.add("--json", &options->json, "Print JSON");
  return [options] { return run(*options); };
}

}  // namespace

const Command kDoctor{"doctor",
                      "Measure this machine and say what slows loading down",
                      "Devices and copy speeds to them, reading of a file, memory, limits of the process and what the "
                      "kernel offers; notes and problems say what each means and how to change it. Takes a few seconds "
                      "and 128 MiB of disk, which it gives back.",
                      {"penstock doctor", "penstock doctor model.pt", "penstock doctor --json"},
                      attach_doctor};

}  // namespace penstock::cli
