#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "core/format.h"
#include "penstock/error.h"
#include "penstock/loader.h"

namespace penstock {

namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(std::string message) { throw Error(ErrorCode::kInvalidArgument, std::move(message)); }

template <class T>
void read_field(const Json& json, const char* name, T& out) {
  const auto field = json.find(name);
  if (field == json.end()) refuse(core::format("the loader's state lacks the field '{}'", name));
  const bool fits = field->is_number_unsigned()
                        ? field->get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())
                        : field->is_number_integer() && std::is_signed_v<T>;
  if (!fits) refuse(core::format("the field '{}' of the loader's state is {}, not a count", name, field->dump()));
  out = field->get<T>();
}

void read_text(const Json& json, const char* name, std::string& out) {
  const Json& field = json[name];
  if (!field.is_string())
    refuse(core::format("the field '{}' of the loader's state is {}, not text", name, field.dump()));
  out = field.get<std::string>();
}

}  // namespace

std::string LoaderPosition::to_json() const {
  return Json{{"seed", seed},       {"epoch", epoch},           {"batch", batch},
              {"samples", samples}, {"batch_size", batch_size}, {"num_replicas", num_replicas},
              {"batches", batches}, {"order", order},           {"read", read}}
      .dump();
}

LoaderPosition LoaderPosition::from_json(std::string_view json) {
  const Json parsed = Json::parse(json, nullptr, false);
  if (!parsed.is_object()) refuse("the loader's state is not a JSON object with seed, epoch, batch and samples");
  LoaderPosition out;
  read_field(parsed, "seed", out.seed);
  read_field(parsed, "epoch", out.epoch);
  read_field(parsed, "batch", out.batch);
  read_field(parsed, "samples", out.samples);
  if (parsed.contains("batch_size")) read_field(parsed, "batch_size", out.batch_size);
  if (parsed.contains("num_replicas")) read_field(parsed, "num_replicas", out.num_replicas);
  if (parsed.contains("batches")) read_field(parsed, "batches", out.batches);
  if (parsed.contains("order")) read_text(parsed, "order", out.order);
  if (parsed.contains("read")) read_field(parsed, "read", out.read);
  if (out.batch < 0) refuse(core::format("the field 'batch' of the loader's state is {}, not a count", out.batch));
  if (out.samples < 0)
    refuse(core::format("the field 'samples' of the loader's state is {}, not a count", out.samples));
  if (out.num_replicas < 1) {
    refuse(core::format("the field 'num_replicas' of the loader's state is {}, expected 1 or more", out.num_replicas));
  }
  return out;
}

}  // namespace penstock
