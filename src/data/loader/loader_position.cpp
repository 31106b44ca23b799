#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "core/format.h"
#include "data/loader/position_fields.h"
#include "penstock/error.h"
#include "penstock/loader.h"

namespace penstock {

namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(std::string message) { throw Error(ErrorCode::kInvalidArgument, std::move(message)); }

template <class T>
void read_field(const Json& field, const char* name, T& out) {
  const bool fits = field.is_number_unsigned()
                        ? field.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())
                        : field.is_number_integer() && std::is_signed_v<T>;
  if (!fits) refuse(core::format("the field '{}' of the loader's state is {}, not a count", name, field.dump()));
  out = field.get<T>();
}

void read_field(const Json& field, const char* name, std::string& out) {
  if (!field.is_string()) {
    refuse(core::format("the field '{}' of the loader's state is {}, not text", name, field.dump()));
  }
  out = field.get<std::string>();
}

}  // namespace

std::string LoaderPosition::to_json() const {
  Json out;
  data::for_each_field(*this, [&](const char* name, const auto& value, bool) { out[name] = value; });
  return out.dump();
}

LoaderPosition LoaderPosition::from_json(std::string_view json) {
  const Json parsed = Json::parse(json, nullptr, false);
  if (!parsed.is_object()) refuse("the loader's state is not a JSON object with seed, epoch, batch and samples");
  LoaderPosition out;
  data::for_each_field(out, [&](const char* name, auto& value, bool is_required) {
    const auto field = parsed.find(name);
    if (field != parsed.end()) return read_field(*field, name, value);
    if (is_required) refuse(core::format("the loader's state lacks the field '{}'", name));
  });
  if (out.batch < 0) refuse(core::format("the field 'batch' of the loader's state is {}, not a count", out.batch));
  if (out.samples < 0)
    refuse(core::format("the field 'samples' of the loader's state is {}, not a count", out.samples));
  if (out.num_replicas < 1) {
    refuse(core::format("the field 'num_replicas' of the loader's state is {}, expected 1 or more", out.num_replicas));
  }
  return out;
}

}  // namespace penstock
