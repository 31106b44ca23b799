// Walks the structure of an archive for what is not a tensor. Names are made as those of tensors in a `.pt`
// (format/pt/pickle/structure.cpp), so that a flat format with dotted names has the same paths as a nested one.

#include "archive/inspect/leaves.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "core/format.h"
#include "core/shared_walk.h"
#include "core/text.h"

namespace penstock::archive {
namespace {

using Kind = Value::Kind;

bool is_container(const Value& value) {
  const Kind kind = value.kind();
  return kind == Kind::kList || kind == Kind::kTuple || kind == Kind::kDict || kind == Kind::kObject;
}

/// What is compared of it. The versions of modules that torch hangs on a state dict are no value of it.
std::optional<Value> state_of(const Value& value) { return value.is(Kind::kObject) ? value.state() : std::nullopt; }

std::string key_text(const Value& key, bool inside_tuple = false) {
  switch (key.kind()) {
    case Kind::kString:
    case Kind::kBigInt:
      return key.as_string();
    case Kind::kBytes:
      return core::escaped(key.as_string());
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return key.as_bool() ? "True" : "False";
    case Kind::kInt:
      return core::format("{}", key.as_int());
    case Kind::kFloat:
      return core::format("{}", key.as_float());
    case Kind::kTuple: {
      if (inside_tuple || key.size() > 16) return "(...)";
      std::string text = "(";
      for (std::size_t i = 0; i < key.size(); ++i) text += (i > 0 ? ", " : "") + key_text(key[i], true);
      return text + ")";
    }
    default:
      return key.type_name();
  }
}

std::string number_bytes(double value) {
  if (std::isnan(value)) return "nan";
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return core::format("{:016x}", bits);
}

std::string below(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

/// Whether key_text tells it from every other key of its kind.
bool is_told_whole(const Value& key) {
  if (!key.is(Kind::kTuple)) return !is_container(key) && !key.is(Kind::kSet);
  bool is_flat = key.size() <= 16;
  for (std::size_t i = 0; is_flat && i < key.size(); ++i) is_flat = !key[i].is(Kind::kTuple) && is_told_whole(key[i]);
  return is_flat;
}

class Walk {
 public:
  explicit Walk(bool with_tensors) : with_tensors_(with_tensors) {}

  std::vector<Leaf> take(const Value& root, const std::string& path) {
    go(root, path);
    return std::move(leaves_);
  }

 private:
  void go(const Value& value, const std::string& path) {
    if (value.is(Kind::kTensor)) {
      if (with_tensors_) add(value, path);
      if (const auto attributes = value.state(); attributes && !with_tensors_) go(*attributes, below(path, "state"));
      return;
    }
    if (!is_container(value)) return add(value, path);
    if (value.is(Kind::kObject)) {
      add(value, path);
    } else if (value.size() == 0) {
      return add(value, path);
    }
    if (!above_.insert(value.node_id()).second) return;
    walk_.visit(value.node_id(), value.size(), value.size() * path.size());
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value.is(Kind::kDict)) {
        const auto [key, item] = value.item(i);
        const std::string place = path_below(path, key);
        if (!with_tensors_ && !is_told_whole(key)) add(Value::set({key}), place);
        go(item, place);
      } else {
        go(value[i], below(path, core::format("{}", i)));
      }
    }
    if (const auto state = state_of(value)) go(*state, below(path, "state"));
    above_.erase(value.node_id());
  }

  void add(const Value& value, const std::string& path) { leaves_.push_back({path, value}); }

  bool with_tensors_;
  std::vector<Leaf> leaves_;
  std::unordered_set<const void*> above_;
  core::SharedWalk walk_{"each way to a value is compared by itself; load the parts that matter"};
};

/// Texts of what lies in sets: parts and all that they hold.
class WholeText {
 public:
  std::string of(const Value& value) {
    if (!is_container(value) && !value.is(Kind::kSet)) return canonical(value);
    if (!above_.insert(value.node_id()).second) return "again:";
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < value.size(); ++i) {
      parts.push_back(value.is(Kind::kDict) ? pair_text(value.item(i)) : of(value[i]));
    }
    if (value.is(Kind::kSet) || value.is(Kind::kDict)) std::sort(parts.begin(), parts.end());
    if (const auto state = state_of(value)) parts.push_back(of(*state));
    above_.erase(value.node_id());
    std::string out = head(value);
    for (const std::string& part : parts) core::append(out, "{},{}", part.size(), part);
    walk_.visit(value.node_id(), value.size(), out.size());
    return out;
  }

 private:
  static std::string head(const Value& value) { return value.is(Kind::kSet) ? "set:" : canonical(value); }
  std::string pair_text(const Value::Item& item) {
    const std::string key = of(item.first);
    return core::format("{},{}{}", key.size(), key, of(item.second));
  }

  std::unordered_set<const void*> above_;
  core::SharedWalk walk_{"a set of them is compared as a whole; load the parts that matter"};
};

}  // namespace

std::vector<Leaf> leaves_of(const Archive& archive) { return Walk(false).take(archive.structure(), {}); }

std::vector<std::string> paths_in(const Value& part, const std::string& path) {
  std::vector<std::string> out;
  for (Leaf& leaf : Walk(true).take(part, path)) out.push_back(std::move(leaf.path));
  return out;
}

std::string path_below(const std::string& path, const Value& key) { return below(path, key_text(key)); }

std::string canonical(const Value& value) {
  switch (value.kind()) {
    case Kind::kNone:
      return "none:";
    case Kind::kBool:
      return value.as_bool() ? "bool:1" : "bool:0";
    case Kind::kInt:
      return core::format("int:{}", value.as_int());
    case Kind::kBigInt:
      return "int:" + value.as_string();
    case Kind::kFloat:
      return "float:" + number_bytes(value.as_float());
    case Kind::kComplex:
      return core::format("complex:{},{}", number_bytes(value.as_complex().real()),
                          number_bytes(value.as_complex().imag()));
    case Kind::kString:
      return "str:" + value.as_string();
    case Kind::kBytes:
      return "bytes:" + value.as_string();
    case Kind::kDType:
      return "dtype:" + value.as_dtype().name();
    case Kind::kGlobal:
      return "global:" + value.type_name();
    case Kind::kObject:
      return "object:" + value.type_name();
    case Kind::kSet:
      return WholeText().of(value);
    case Kind::kTuple:
      return "tuple:";
    case Kind::kList:
      return "list:";
    case Kind::kDict:
      return "dict:";
    case Kind::kTensor:
      break;
  }
  return "tensor:";
}

}  // namespace penstock::archive
