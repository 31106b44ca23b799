#include "format/dcp/write.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>
#include <variant>

#include "core/format.h"
#include "core/shared_walk.h"
#include "core/text.h"
#include "format/dcp/metadata_pickle.h"
#include "format/pt/content.h"
#include "format/pt/stream.h"
#include "format/pt/write.h"
#include "format/text/utf8.h"
#include "penstock/error.h"
#include "value/nodes.h"

namespace penstock::format::dcp {
namespace {

using Kind = Value::Kind;

constexpr std::size_t kMaxDepth = 64;

std::string text_of(const Value& step) {
  return step.is(Kind::kInt) ? std::to_string(step.as_int()) : step.as_string();
}

/// Whether a list is taken apart: in it, or in lists in it, there is a tensor or a dict. Looks at each list once,
/// however often it is held.
bool is_taken_apart(const Value& list) {
  std::unordered_set<const void*> seen{list.node_id()};
  std::vector<Value> open{list};
  while (!open.empty()) {
    const Value next = std::move(open.back());
    open.pop_back();
    for (const Value& item : next) {
      if (item.is(Kind::kTensor) || item.is(Kind::kDict)) return true;
      if (item.is(Kind::kList) && seen.insert(item.node_id()).second) open.push_back(item);
    }
  }
  return false;
}

class Flattener {
 public:
  std::vector<Leaf> leaves;

  void add(const Value& value) {
    if (path_.size() > kMaxDepth) {
      throw Error(ErrorCode::kLimit,
                  core::format("dicts and lists nest deeper than {} levels, or one holds itself", kMaxDepth),
                  {.tensor = name_});
    }
    if (value.is(Kind::kDict) && (value.size() != 0 || path_.empty())) return add_dict(value);
    if (value.is(Kind::kList) && is_taken_apart(value)) return add_list(value);
    if (!names_.insert(name_).second) {
      throw Error(ErrorCode::kUnsupported,
                  core::format("two items would be called {}, since the keys that lead to one are joined with '.': "
                               "rename one",
                               core::quoted(name_)));
    }
    leaves.push_back({name_, Value::tuple(path_), value});
  }

 private:
  std::string owner() const { return name_.empty() ? "the dict" : core::quoted(name_); }

  void add_dict(const Value& dict) {
    walk_.visit(dict.node_id(), dict.size(), dict.size() * name_.size());
    std::unordered_set<std::string> steps;
    for (std::size_t i = 0; i < dict.size(); ++i) {
      const auto [key, item] = dict.item(i);
      if (!key.is(Kind::kString) && !key.is(Kind::kInt)) {
        throw Error(ErrorCode::kUnsupported,
                    core::format("a key of {} is neither text nor an integer, and the items of a checkpoint are named "
                                 "by their keys: rename it",
                                 owner()));
      }
      const std::string step = text_of(key);
      // Different names can lead through them, as "1.a" and "1.0", and what they lead to would become one container.
      if (!steps.insert(step).second) {
        throw Error(ErrorCode::kUnsupported,
                    core::format("two keys of {} are {} in a checkpoint, whose keys are text: rename one", owner(),
                                 core::quoted(step)));
      }
      below(Value::string(step), item);
    }
  }

  void add_list(const Value& list) {
    walk_.visit(list.node_id(), list.size(), list.size() * name_.size());
    for (std::size_t i = 0; i < list.size(); ++i) below(Value::integer(static_cast<std::int64_t>(i)), list[i]);
  }

  void below(Value step, const Value& item) {
    const std::size_t length = name_.size();
    name_ += core::format("{}{}", path_.empty() ? "" : ".", text_of(step));
    if (!is_utf8(name_)) throw Error(ErrorCode::kUnsupported, "a key is not UTF-8; rename it", {.tensor = name_});
    path_.push_back(std::move(step));
    add(item);
    path_.pop_back();
    name_.resize(length);
  }

  std::vector<Value> path_;
  std::string name_;
  std::unordered_set<std::string> names_;
  core::SharedWalk walk_{"a checkpoint has an item for each of them: save as .pt, which keeps what is shared"};
};

void write_elements(const Value& tensor, const Unloaded& content, io::ByteSink& sink) {
  if (const auto number = tensor.entry_index()) return content.payload(content.entries[*number].storage, sink);
  const Tensor bytes = tensor.as_tensor().to(Device{}).contiguous();
  sink.write({bytes.data(), bytes.nbytes()});
}

/// Collects the elements of a tensor that is part of an object.
class MemorySink final : public io::ByteSink {
 public:
  explicit MemorySink(const Buffer& to) : to_(to) {}
  void write(std::span<const std::byte> bytes) override {
    std::copy(bytes.begin(), bytes.end(), to_.data() + position_);
    position_ += bytes.size();
  }
  std::uint64_t position() const noexcept override { return position_; }

 private:
  Buffer to_;
  std::size_t position_ = 0;
};

/// The object with the tensors in it loaded, such as those of a tuple, which is not taken apart.
Value loaded(const Value& object, const Unloaded& content) {
  if (content.entries.empty()) return object;
  std::vector<Tensor> tensors(content.entries.size());
  for_each_node(object, [&](const ValueGraph::Node& node) {
    const auto* const number = std::get_if<ValueGraph::Node::Entry>(&node.scalar);
    if (number == nullptr) return;
    const TensorEntry& entry = content.entries[number->index];
    Buffer bytes = Buffer::allocate(static_cast<std::size_t>(entry.nbytes()));
    MemorySink sink(bytes);
    content.payload(entry.storage, sink);
    tensors[number->index] = Tensor(bytes, entry.dtype, entry.shape, entry.shape.contiguous_strides(), 0);
  });
  return with_tensors(object, tensors);
}

void pad(io::ByteSink& sink) {
  constexpr std::array<std::byte, kPtAlignment> kZeros{};
  sink.write(std::span(kZeros).first((kPtAlignment - sink.position() % kPtAlignment) % kPtAlignment));
}

}  // namespace

std::vector<Leaf> flat_leaves(const Value& root) {
  Flattener flattener;
  if (root.is(Kind::kTensor)) return {{"tensor", Value::tuple({Value::string("tensor")}), root}};
  if (!root.is(Kind::kDict)) {
    throw Error(ErrorCode::kUnsupported,
                "a checkpoint holds a dict, and this is none: put it into one, or save as .pt");
  }
  flattener.add(root);
  return std::move(flattener.leaves);
}

std::uint64_t tensor_bytes(std::span<const Leaf> leaves, std::span<const TensorEntry> entries) {
  std::uint64_t total = 0;
  for (const Leaf& leaf : leaves) {
    if (leaf.value.is(Kind::kTensor)) total += facts_of(leaf.value, entries).nbytes;
  }
  return total;
}

std::string write_leaves(std::span<const Leaf> leaves, const Unloaded& content, io::ByteSink& sink,
                         std::string_view file) {
  std::vector<WrittenItem> items;
  for (const Leaf& leaf : leaves) {
    if (!leaf.value.is(Kind::kTensor)) continue;
    try {
      require_torch_dtype(facts_of(leaf.value, content.entries).dtype);
    } catch (const Error& error) {
      throw error.within({.tensor = leaf.name});
    }
  }
  for (const Leaf& leaf : leaves) {
    try {
      pad(sink);
      WrittenItem item;
      item.name = leaf.name;
      item.path = leaf.path;
      item.offset = sink.position();
      if (leaf.value.is(Kind::kTensor)) {
        const TensorFacts facts = facts_of(leaf.value, content.entries);
        item.is_tensor = true;
        item.dtype = facts.dtype;
        item.shape = facts.shape;
        write_pt_tensor(facts.dtype, facts.shape, sink,
                        [&](io::ByteSink& member) { write_elements(leaf.value, content, member); });
      } else {
        write_pt(loaded(leaf.value, content), sink, {}, "archive");
      }
      item.length = sink.position() - item.offset;
      items.push_back(std::move(item));
    } catch (const Error& error) {
      if (leaf.value.is(Kind::kTensor) || !error.tensor().empty()) throw error.within({.tensor = leaf.name});
      throw error.prefixed(core::format("in {}: ", core::quoted(leaf.name)));
    }
  }
  return metadata_pickle(items, file);
}

}  // namespace penstock::format::dcp
