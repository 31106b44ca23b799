#include "format/flat_tensors.h"

#include <array>
#include <unordered_set>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

constexpr std::size_t kMaxDepth = 64;

std::string describe(const Value& value) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"None", "a boolean", "an integer", "an integer", "a float", "a complex number", "a string", "bytes", "a tensor",
       "a dtype", "a list", "a tuple", "a dict", "a set", "an object", "a name"});
  std::string out(kNames.at(static_cast<std::size_t>(value.kind())));
  if (!value.type_name().empty()) out += core::format(" ({})", core::escaped(value.type_name()));
  return out;
}

class Flattener {
 public:
  explicit Flattener(std::string_view format) : format_(format) {}

  void add_dict(const Value& dict, const std::string& prefix, std::size_t depth) {
    if (depth > kMaxDepth) {
      throw Error(ErrorCode::kLimit,
                  core::format("the dicts are nested deeper than {} levels, or one holds itself", kMaxDepth),
                  {{}, {}, prefix});
    }
    for (std::size_t i = 0; i < dict.size(); ++i) {
      const auto [key, item] = dict.item(i);
      if (!key.is(Value::Kind::kString)) {
        throw Error(ErrorCode::kUnsupported,
                    core::format("a key of {} is {}; {} names tensors by strings: rename it, or save as .pt",
                                 prefix.empty() ? "the dict" : core::quoted(prefix), describe(key), format_));
      }
      add(item, prefix.empty() ? key.as_string() : core::format("{}.{}", prefix, key.as_string()), depth);
    }
  }

  void add(const Value& value, std::string name, std::size_t depth) {
    if (value.is(Value::Kind::kDict)) return add_dict(value, name, depth + 1);
    if (!value.is(Value::Kind::kTensor)) {
      throw Error(ErrorCode::kUnsupported, core::format("{} is {}; {} holds only tensors: leave it out, or save as .pt",
                                                        core::quoted(name), describe(value), format_));
    }
    if (!names_.insert(name).second) {
      throw Error(ErrorCode::kUnsupported,
                  core::format("two tensors would be called {}, since nested names are joined with '.': rename one",
                               core::quoted(name)));
    }
    tensors.push_back({std::move(name), value.as_tensor()});
  }

  std::vector<NamedTensor> tensors;

 private:
  std::string_view format_;
  std::unordered_set<std::string> names_;
};

}  // namespace

std::vector<NamedTensor> flat_tensors(const Value& value, std::string_view format, std::string_view bare_name) {
  Flattener flattener(format);
  if (value.is(Value::Kind::kDict)) {
    flattener.add_dict(value, {}, 1);
  } else if (value.is(Value::Kind::kTensor)) {
    flattener.add(value, std::string(bare_name), 1);
  } else {
    throw Error(ErrorCode::kUnsupported,
                core::format("the value is {}; {} holds a dict of tensors: put it into one, or save as .pt",
                             describe(value), format));
  }
  return std::move(flattener.tensors);
}

Value dict_of_entries(const std::vector<TensorEntry>& entries) {
  std::vector<std::pair<std::string, Value>> items;
  items.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) items.emplace_back(entries[i].name, Value::entry(i));
  return Value::dict(std::move(items));
}

}  // namespace penstock::format
