#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/format.h"
#include "core/json_reader.h"
#include "core/refuse.h"
#include "data/loader/position_fields.h"
#include "penstock/error.h"
#include "penstock/loader.h"

namespace penstock {
namespace {

using core::refuse;

/// What the text says of each field; names that no version knows are stepped over.
class FieldsReader final : public core::JsonReader {
 public:
  explicit FieldsReader(std::string_view json) : core::JsonReader(json, {}, std::nullopt) {
    data::for_each_field(std::as_const(defaults_), [&](const char* name, const auto&, bool) { known_.insert(name); });
  }

  struct Field {
    std::string_view kind = {};  ///< "a string"
    std::optional<std::uint64_t> number = {};
    std::string text = {};
  };
  const Field* find(std::string_view name) const {
    const auto found = fields_.find(name);
    return found == fields_.end() ? nullptr : &found->second;
  }

 private:
  void on_object() override {
    if (std::exchange(is_open_, true)) {
      current_->kind = "an object";
      skip_object();
    }
  }
  void on_array() override {
    current_->kind = "a list";
    skip_array();
  }
  void on_key(std::string& name) override {
    if (!known_.contains(name)) return skip_value();
    const auto [at, added] = fields_.try_emplace(name);
    if (!added) fail(core::format("the field '{}' is there twice", name));
    current_ = &at->second;
  }
  void on_string(std::string& value) override { *current_ = {"a string", {}, std::move(value)}; }
  void on_unsigned(std::uint64_t value) override { *current_ = {"a number", value, {}}; }
  void on_other(std::string_view kind) override { current_->kind = kind; }
  [[noreturn]] void unexpected(std::string_view kind) override { fail(core::format("there is {} in it", kind)); }

  LoaderPosition defaults_;
  std::set<std::string, std::less<>> known_;
  std::map<std::string, Field, std::less<>> fields_;
  Field* current_ = nullptr;
  bool is_open_ = false;
};

template <class T>
void read_field(const FieldsReader::Field& field, const char* name, T& out) {
  if (!field.number || *field.number > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) {
    const std::string found = field.number ? std::to_string(*field.number) : std::string(field.kind);
    refuse(core::format("the field '{}' of the loader's state is {}, not a count", name, found));
  }
  out = static_cast<T>(*field.number);
}

void read_field(const FieldsReader::Field& field, const char* name, std::string& out) {
  if (field.kind != "a string") {
    refuse(core::format("the field '{}' of the loader's state is {}, not text", name, field.kind));
  }
  out = field.text;
}

}  // namespace

void data::require_whole(const LoaderPosition& position, bool has_read) {
  if (has_read || position.samples != 0 || position.batch == 0) return;
  refuse(
      "the position stands inside of an epoch of a stream, but lacks the field 'read', how many samples were read by "
      "then; go on from a whole position, or from the beginning of an epoch");
}

std::string LoaderPosition::to_json() const {
  nlohmann::json out;
  data::for_each_field(*this, [&](const char* name, const auto& value, bool) { out[name] = value; });
  try {
    return out.dump();
  } catch (const nlohmann::json::exception& error) {
    refuse(core::format("a field of the position is text that is not UTF-8, which JSON cannot hold: {}", error.what()));
  }
}

LoaderPosition LoaderPosition::from_json(TextView json) {
  FieldsReader fields(json);
  try {
    fields.read();
  } catch (const Error& error) {
    refuse(core::format("the loader's state is not a JSON object with seed, epoch, batch and samples: {}",
                        error.message()));
  }
  LoaderPosition out;
  data::for_each_field(out, [&](const char* name, auto& value, bool is_required) {
    const FieldsReader::Field* const field = fields.find(name);
    if (field != nullptr) return read_field(*field, name, value);
    if (is_required) refuse(core::format("the loader's state lacks the field '{}'", name));
  });
  data::require_whole(out, fields.find("read") != nullptr);
  if (out.num_replicas < 1) {
    refuse(core::format("the field 'num_replicas' of the loader's state is {}, expected 1 or more", out.num_replicas));
  }
  return out;
}

}  // namespace penstock
