// `.npz` and `.safetensors` hold one flat list of named tensors. A nested dict is flattened by joining the keys that
// lead to a tensor with dots, as torch names the tensors of a module.

#include "format/flat_tensors.h"

#include <array>
#include <unordered_set>
#include <utility>

#include "core/checked.h"
#include "core/format.h"
#include "core/shared_walk.h"
#include "core/text.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

constexpr std::size_t kMaxDepth = 64;
/// Limits the text of all joined names, because each repeats the keys above it: one long key above many tensors would
/// take any amount of memory. No header of a `.safetensors` holds more.
constexpr std::size_t kMaxJoinedText = 100'000'000;

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
  explicit Flattener(std::string_view format)
      : format_(format),
        walk_(core::format("{} names a tensor for each of them: save as .pt, which keeps what is shared", format)) {}

  void add_dict(const Value& dict, const std::string& prefix, std::size_t depth) {
    if (depth > kMaxDepth) {
      throw Error(ErrorCode::kLimit,
                  core::format("the dicts are nested deeper than {} levels, or one holds itself", kMaxDepth),
                  {{}, {}, prefix});
    }
    visit(dict, prefix);
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
    if (value.is(Value::Kind::kDict) && value.size() == 0) {
      throw Error(ErrorCode::kUnsupported,
                  core::format("{} is an empty dict, which has no name in {}: leave it out, or save as .pt",
                               core::quoted(name), format_));
    }
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
    tensors.emplace_back(std::move(name), value);
  }

  std::vector<std::pair<std::string, Value>> tensors;

 private:
  /// Before the names of its items are made.
  void visit(const Value& dict, const std::string& prefix) {
    const std::uint64_t text = core::checked_mul<std::uint64_t>(dict.size(), prefix.size(), "the names of tensors");
    try {
      walk_.visit(dict.node_id(), dict.size(), text);
    } catch (const Error& error) {
      throw error.within({.tensor = prefix});
    }
    joined_text_ += text;
    if (joined_text_ > kMaxJoinedText) {
      throw Error(ErrorCode::kLimit,
                  core::format("the keys above the tensors come to more than {} bytes, as {} repeats them in the name "
                               "of each: shorten the keys, or save as .pt",
                               kMaxJoinedText, format_),
                  {.tensor = prefix});
    }
  }

  std::string_view format_;
  core::SharedWalk walk_;
  std::uint64_t joined_text_ = 0;
  std::unordered_set<std::string> names_;
};

}  // namespace

std::vector<std::pair<std::string, Value>> flat_values(const Value& value, std::string_view format,
                                                       std::string_view bare_name) {
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

std::vector<NamedTensor> flat_tensors(const Value& value, std::string_view format, std::string_view bare_name) {
  std::vector<NamedTensor> out;
  for (auto& [name, tensor] : flat_values(value, format, bare_name))
    out.push_back({std::move(name), tensor.as_tensor()});
  return out;
}

Value dict_of_entries(const std::vector<TensorEntry>& entries) {
  std::vector<std::pair<std::string, Value>> items;
  items.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) items.emplace_back(entries[i].name, Value::entry(i));
  return Value::dict(std::move(items));
}

}  // namespace penstock::format
