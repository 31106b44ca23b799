// Makes Python's objects of a Value with a stack of frames in place of recursion. Dicts and sets whose keys are more
// than plain values are filled when all else is complete, because such a key has to be hashed and may lead back to its
// own dict.

#include <complex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "content/value.h"
#include "core/format.h"
#include "format/pt/pickle/structure.h"
#include "format/pt/pickle/world.h"
#include "interpreter/convert.h"
#include "penstock/error.h"
#include "value/graph.h"

namespace penstock::python {
namespace {

using Kind = Value::Kind;
using Node = detail::ValueNode;

constexpr std::string_view kByteArray = "bytearray";
constexpr std::string_view kDefaultDict = "collections.defaultdict";

/// Lone surrogates, which pickles may hold, stay.
nb::object string_of(const std::string& utf8) {
  return checked(PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "surrogatepass"));
}

nb::object bytes_of(const Node& node) {
  const auto& raw = std::get<std::string>(node.scalar);
  const auto size = static_cast<Py_ssize_t>(raw.size());
  if (node.type_name == "str") return string_of(raw);
  if (node.type_name == kByteArray) return checked(PyByteArray_FromStringAndSize(raw.data(), size));
  return checked(PyBytes_FromStringAndSize(raw.data(), size));
}

bool is_leaf(Kind kind) {
  return kind != Kind::kList && kind != Kind::kTuple && kind != Kind::kDict && kind != Kind::kSet &&
         kind != Kind::kObject;
}

nb::object opaque(nb::handle type_name, nb::handle args) {
  return nb::module_::import_("penstock._objects.opaque").attr("Opaque")(type_name, args);
}

/// The object of a node without parts; its tensor must be loaded.
nb::object leaf_of(const Node& node) {
  switch (node.kind) {
    case Kind::kBool:
      return nb::bool_(std::get<bool>(node.scalar));
    case Kind::kInt:
      return checked(PyLong_FromLongLong(std::get<std::int64_t>(node.scalar)));
    case Kind::kBigInt:
      return checked(PyLong_FromString(std::get<std::string>(node.scalar).c_str(), nullptr, 10));
    case Kind::kFloat:
      return checked(PyFloat_FromDouble(std::get<double>(node.scalar)));
    case Kind::kComplex: {
      const auto& value = std::get<std::complex<double>>(node.scalar);
      return checked(PyComplex_FromDoubles(value.real(), value.imag()));
    }
    case Kind::kString:
      return string_of(std::get<std::string>(node.scalar));
    case Kind::kBytes:
      return bytes_of(node);
    case Kind::kDType:
      return nb::cast(std::get<DType>(node.scalar));
    case Kind::kGlobal:
      return opaque(string_of(node.type_name), nb::none());
    case Kind::kTensor:
      return nb::cast(*std::get<Node::TensorPtr>(node.scalar));
    default:
      return nb::none();
  }
}

/// An object of a node that has parts, and what is still to be put into it.
struct Frame {
  const Node* node;
  nb::object object;              ///< null for a frozenset, which is made of its elements
  nb::object slots;               ///< the list or tuple that takes the items one by one, or null
  std::vector<nb::object> parts;  ///< items of dicts and sets, which are hashed at the end
  nb::object state;
  std::size_t next = 0;

  std::size_t child_count() const noexcept { return node->items.size() + (node->state ? 1 : 0); }
  const Node* child() const {
    return ValueGraph::node_of(next < node->items.size() ? node->items[next] : *node->state);
  }
};

nb::object new_dict(const std::string& type_name) {
  if (type_name == "collections.OrderedDict") return checked(PyODict_New());
  if (type_name == "collections.Counter") return nb::module_::import_("collections").attr("Counter")();
  if (type_name == kDefaultDict) return nb::module_::import_("collections").attr("defaultdict")();
  return checked(PyDict_New());
}

Frame new_frame(const Node& node) {
  const auto size = static_cast<Py_ssize_t>(node.items.size());
  Frame frame{&node, {}, {}, {}, {}, 0};
  switch (node.kind) {
    case Kind::kList:
      frame.object = frame.slots = checked(PyList_New(size));
      break;
    case Kind::kTuple:
      frame.object = frame.slots = checked(PyTuple_New(size));
      break;
    case Kind::kObject:
      frame.slots = checked(PyTuple_New(size));
      frame.object = opaque(string_of(node.type_name), frame.slots);
      break;
    case Kind::kSet:
      if (node.type_name != "frozenset") frame.object = checked(PySet_New(nullptr));
      break;
    default:
      frame.object = new_dict(node.type_name);
  }
  return frame;
}

struct Made {
  nb::object object;
  std::size_t frame = 0;  ///< in `open_`, while it is there
  bool begun = false;     ///< by `named_`, which has yet to see the state
  bool complete = false;
};
using MadeObjects = std::unordered_map<const Node*, Made>;

[[noreturn]] void throw_unhashable() {
  throw Error(ErrorCode::kUnsupported, "found a key of a dict or an element of a set that Python cannot hash");
}

/// What putting a key into a dict or set gave: TypeErrors are those of keys that only Python knows to have no hash,
/// such as arrays.
void require_hashed(int status) {
  if (status == 0) return;
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) nb::raise_python_error();
  PyErr_Clear();
  throw_unhashable();
}

/// Python hashes tuples by recursion and anew at each use: keys that would overflow the stack or take for ever are
/// refused, and so are those that cannot be hashed or contain themselves.
class KeyCheck {
 public:
  explicit KeyCheck(const MadeObjects& made) : made_(made) {}

  void operator()(const Node* key) {
    parts_ = 0;
    visit(key, 0);
  }

 private:
  static constexpr int kDeepest = format::pickle::kMaxKeyDepth;
  static constexpr int kMostParts = format::pickle::kMaxKeyParts;

  void visit(const Node* key, int depth) {
    if (key == nullptr || is_leaf(key->kind) || key->kind == Kind::kObject) return;
    const bool hashable = key->kind == Kind::kTuple || (key->kind == Kind::kSet && key->type_name == "frozenset");
    if (!hashable || !made_.at(key).complete) {
      throw_unhashable();
    }
    if (depth == kDeepest || ++parts_ > kMostParts) {
      throw Error(ErrorCode::kLimit, core::format("found a key of a dict that nests deeper than {} or has more than {} "
                                                  "parts, expected a plain one",
                                                  kDeepest, kMostParts));
    }
    for (const Value& item : key->items) visit(ValueGraph::node_of(item), depth + 1);
  }

  const MadeObjects& made_;
  int parts_ = 0;
};

class Converter {
 public:
  Converter(const EntryLeaf& entry, const NamedLeaf& named) : entry_(entry), named_(named), check_key_(made_) {}

  nb::object run(const Value& root) {
    std::optional<nb::object> done = enter(ValueGraph::node_of(root));
    while (!open_.empty()) {
      if (open_.back().next < open_.back().child_count()) {
        if (const auto child = enter(open_.back().child())) place(open_.back(), *child);
        continue;
      }
      done = leave(std::move(open_.back()));
      open_.pop_back();
      if (!open_.empty()) place(open_.back(), *done);
    }
    for (const Frame& frame : unfilled_) fill(frame);
    return *done;
  }

 private:
  /// The object of a node, or nothing while its frame on top of `open_` has yet to be worked off.
  std::optional<nb::object> enter(const Node* node) {
    if (node == nullptr) return nb::none();
    if (is_leaf(node->kind) && node->kind != Kind::kTensor) return is_large(*node) ? shared(*node) : scalar_of(*node);
    if (const auto found = made_.find(node); found != made_.end()) return within_itself(found->second);
    const bool bare = node->kind == Kind::kTensor && (!named_ || !is_named(*node));
    if (bare) return made_[node].object = tensor_of(*node);
    open_.push_back(named_ && is_named(*node) ? named_frame(*node) : new_frame(*node));
    Made& made = made_[node];
    made.object = open_.back().object;
    made.frame = open_.size() - 1;
    return std::nullopt;
  }

  /// What is being made may be part of its own state, as its arguments are there; of its arguments it cannot.
  nb::object within_itself(Made& made) {
    if (made.object.is_valid()) return made.object;
    const Frame& frame = open_[made.frame];
    const bool has_arguments = frame.slots.is_valid() && frame.next == frame.node->items.size() && frame.node->state;
    if (named_ && has_arguments) made.object = named_(frame.node->type_name, frame.slots, nb::ellipsis(), nb::none());
    made.begun = made.object.is_valid() && !made.object.is_none();
    if (made.begun) return made.object;
    throw Error(ErrorCode::kUnsupported, "found an object that contains itself where it cannot be made without");
  }

  /// Whether `named_` decides what becomes of it, once its parts are there.
  static bool is_named(const Node& node) {
    if (node.kind == Kind::kTensor) return !node.type_name.empty() || node.state;
    if (node.kind == Kind::kList) return node.type_name == format::pickle::kObjectsName;
    return node.kind == Kind::kObject || (node.kind == Kind::kTuple && node.type_name == "torch.Size");
  }

  /// What a few bytes of the file could otherwise ask for again and again, and bytearrays, which are one object.
  static bool is_large(const Node& node) {
    constexpr std::size_t kSmall = 32;
    const auto* text = std::get_if<std::string>(&node.scalar);
    return node.type_name.size() > kSmall || (text != nullptr && text->size() > kSmall) || node.type_name == kByteArray;
  }

  nb::object shared(const Node& node) {
    Made& made = made_[&node];
    if (!made.object.is_valid()) made.object = scalar_of(node);
    return made.object;
  }

  /// NumPy's scalars have a name.
  nb::object scalar_of(const Node& node) const {
    if (named_ && (node.kind == Kind::kGlobal || node.kind == Kind::kDType)) return named_leaf(node);
    if (!named_ || !node.type_name.starts_with("numpy.")) return leaf_of(node);
    return named_(node.type_name, nb::make_tuple(leaf_of(node)), nb::none(), nb::none());
  }

  nb::object named_leaf(const Node& node) const {
    if (node.kind == Kind::kGlobal) return named_(node.type_name, nb::none(), nb::none(), nb::none());
    const nb::object name = string_of(std::get<DType>(node.scalar).name());
    return named_("torch.dtype", nb::make_tuple(name), nb::none(), nb::none());
  }

  Frame named_frame(const Node& node) const {
    if (node.kind == Kind::kTensor) return {&node, {}, nb::make_tuple(tensor_of(node)), {}, {}, 0};
    return {&node, {}, checked(PyTuple_New(static_cast<Py_ssize_t>(node.items.size()))), {}, {}, 0};
  }

  nb::object named(const Frame& frame, const Made& made) const {
    const nb::object state = frame.state.is_valid() ? frame.state : nb::object(nb::none());
    return named_(frame.node->type_name, frame.slots, state, made.begun ? made.object : nb::object(nb::none()));
  }

  nb::object tensor_of(const Node& node) const {
    if (const auto* entry = std::get_if<Node::Entry>(&node.scalar)) return entry_(entry->index);
    return leaf_of(node);
  }

  static void place(Frame& frame, nb::object child) {
    const std::size_t index = frame.next++;
    if (index == frame.node->items.size()) {
      frame.state = std::move(child);
    } else if (!frame.slots.is_valid()) {
      frame.parts.push_back(std::move(child));
    } else if (PyList_Check(frame.slots.ptr())) {
      PyList_SET_ITEM(frame.slots.ptr(), static_cast<Py_ssize_t>(index), child.release().ptr());
    } else {
      PyTuple_SET_ITEM(frame.slots.ptr(), static_cast<Py_ssize_t>(index), child.release().ptr());
    }
  }

  nb::object leave(Frame frame) {
    Made& made = made_.at(frame.node);
    const bool is_set = frame.node->kind == Kind::kSet;
    if (!made.object.is_valid() || made.begun) made.object = is_set ? frozen(frame) : named(frame, made);
    made.complete = true;
    // What a pickle put into an object of an unknown class is told apart from the arguments of a call.
    const bool is_put = named_ && !is_set && frame.node->type_name == format::pickle::kItemsName;
    if (is_put) made.object = named_(frame.node->type_name, nb::make_tuple(made.object), nb::none(), nb::none());
    if (frame.node->kind == Kind::kObject && frame.object.is_valid() && frame.state.is_valid())
      frame.object.attr("state") = frame.state;
    const bool hashed = frame.node->kind == Kind::kDict || (frame.node->kind == Kind::kSet && frame.object.is_valid());
    if (!hashed) return made.object;
    if (has_plain_keys(*frame.node)) {
      fill(frame);
    } else {
      unfilled_.push_back(std::move(frame));
    }
    return made.object;
  }

  nb::object frozen(const Frame& frame) {
    nb::list elements;
    for (std::size_t i = 0; i < frame.parts.size(); ++i) {
      check_key_(ValueGraph::node_of(frame.node->items[i]));
      elements.append(frame.parts[i]);
    }
    PyObject* made = PyFrozenSet_New(elements.ptr());
    require_hashed(made == nullptr ? -1 : 0);
    return nb::steal(made);
  }

  static bool has_plain_keys(const Node& node) {
    const std::size_t step = node.kind == Kind::kDict ? 2 : 1;
    for (std::size_t i = 0; i < node.items.size(); i += step) {
      const Node* key = ValueGraph::node_of(node.items[i]);
      if (key != nullptr && !is_leaf(key->kind)) return false;
    }
    return true;
  }

  // Other than plain keys, when everything else is complete: they may be tuples that lead back to the dict.
  void fill(const Frame& frame) {
    const std::size_t step = frame.node->kind == Kind::kDict ? 2 : 1;
    for (std::size_t i = 0; i < frame.parts.size(); i += step) {
      check_key_(ValueGraph::node_of(frame.node->items[i]));
      const nb::object& key = frame.parts[i];
      if (step == 1) {
        require_hashed(PySet_Add(frame.object.ptr(), key.ptr()));
      } else if (PyDict_CheckExact(frame.object.ptr())) {
        require_hashed(PyDict_SetItem(frame.object.ptr(), key.ptr(), frame.parts[i + 1].ptr()));
      } else {
        require_hashed(PyObject_SetItem(frame.object.ptr(), key.ptr(), frame.parts[i + 1].ptr()));
      }
    }
    if (!frame.state.is_valid()) return;
    if (frame.node->type_name == kDefaultDict) {
      if (PyCallable_Check(frame.state.ptr()) != 0) frame.object.attr("default_factory") = frame.state;
    } else {
      set_attributes(frame.object, frame.state);
    }
  }

  // `_metadata`, torch's versions of modules, and others that hide none of the dict's own.
  static void set_attributes(const nb::object& dict, const nb::object& state) {
    if (!PyDict_Check(state.ptr()) || PyDict_CheckExact(dict.ptr())) return;
    for (const auto& [name, value] : nb::borrow<nb::dict>(state)) {
      if (PyUnicode_Check(name.ptr()) && !nb::hasattr(dict.type(), name)) nb::setattr(dict, name, value);
    }
  }

  const EntryLeaf& entry_;
  const NamedLeaf& named_;
  MadeObjects made_;
  KeyCheck check_key_;
  std::vector<Frame> open_;
  std::vector<Frame> unfilled_;
};

}  // namespace

nb::object to_python(const Value& value, const EntryLeaf& entry, const NamedLeaf& named) {
  const Node* node = ValueGraph::node_of(value);
  if (node == nullptr) return nb::none();
  const bool loaded_tensor = node->kind == Kind::kTensor && std::holds_alternative<Node::TensorPtr>(node->scalar);
  if (loaded_tensor) return leaf_of(*node);
  return Converter(entry, named).run(value);
}

}  // namespace penstock::python
