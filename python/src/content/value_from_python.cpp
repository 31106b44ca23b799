// Makes a Value of Python's objects by a list of visits in place of recursion, so that no nesting overflows the stack.
// One object becomes one node, which keeps sharing and cycles. A visit knows its parent, so that an error says where
// the object lies.

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "arrays/foreign.h"
#include "arrays/shared_memory.h"
#include "content/archive.h"
#include "content/value.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "penstock/error.h"
#include "penstock/load.h"
#include "value/graph.h"

namespace penstock::python {
namespace {

using Kind = Value::Kind;
using Node = detail::ValueNode;

/// An object on its way into the graph, and where it lies: under `key` of a dict, or as item `index`, of its parent.
struct Visit {
  nb::object object;
  Node* node;
  std::size_t parent;
  nb::object key;
  std::size_t index;
};

std::string utf8_of(nb::handle text) {
  Py_ssize_t size = 0;
  if (const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) return {utf8, static_cast<std::size_t>(size)};
  PyErr_Clear();
  const nb::object bytes = checked(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

/// Python writes no more than some thousand digits, and no format reads as many.
std::string decimal_of(nb::handle integer) {
  const nb::object text = nb::steal(PyNumber_ToBase(integer.ptr(), 10));
  if (text.is_valid()) return nb::str(text).c_str();
  PyErr_Clear();
  throw Error(ErrorCode::kLimit, core::format("found an integer of {} bits, expected fewer",
                                              nb::str(integer.attr("bit_length")()).c_str()));
}

void set_integer(Node& node, nb::handle object) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  if (overflow == 0) {
    node.kind = Kind::kInt;
    node.scalar = static_cast<std::int64_t>(value);
    return;
  }
  node.kind = Kind::kBigInt;
  node.scalar = decimal_of(object);
}

/// None, numbers and strings; false for other objects.
bool set_plain(Node& node, nb::handle object) {
  PyObject* pointer = object.ptr();
  if (object.is_none()) {
    node.kind = Kind::kNone;
  } else if (PyBool_Check(pointer)) {
    node.kind = Kind::kBool;
    node.scalar = object.is(Py_True);
  } else if (PyLong_Check(pointer)) {
    set_integer(node, object);
  } else if (PyFloat_Check(pointer)) {
    node.kind = Kind::kFloat;
    node.scalar = PyFloat_AS_DOUBLE(pointer);
  } else if (PyComplex_Check(pointer)) {
    node.kind = Kind::kComplex;
    node.scalar = std::complex<double>(PyComplex_RealAsDouble(pointer), PyComplex_ImagAsDouble(pointer));
  } else if (PyUnicode_Check(pointer)) {
    node.kind = Kind::kString;
    node.scalar = utf8_of(object);
  } else if (PyBytes_Check(pointer)) {
    node.kind = Kind::kBytes;
    node.scalar = std::string(PyBytes_AS_STRING(pointer), static_cast<std::size_t>(PyBytes_GET_SIZE(pointer)));
  } else if (PyByteArray_Check(pointer)) {
    const nb::ft_object_guard alone(object);  // other threads may change its size
    node.kind = Kind::kBytes;
    node.type_name = "bytearray";
    node.scalar = std::string(PyByteArray_AS_STRING(pointer), static_cast<std::size_t>(PyByteArray_GET_SIZE(pointer)));
  } else {
    return false;
  }
  return true;
}

/// The pairs of a dict or mapping in its own order.
nb::list pairs_of(nb::handle object) {
  return PyDict_CheckExact(object.ptr()) ? nb::steal<nb::list>(PyDict_Items(object.ptr()))
                                         : nb::list(object.attr("items")());
}

bool is_mapping(nb::handle object) {
  if (PyDict_Check(object.ptr())) return true;
  // Arrays have items, but no keys; to ask them for an attribute that they lack takes long.
  if (PyMapping_Check(object.ptr()) == 0 || PyObject_CheckBuffer(object.ptr()) != 0) return false;
  return has_attribute(object, "keys") && has_attribute(object, "items");
}

class Collector {
 public:
  explicit Collector(nb::handle describe) : describe_(describe) {}

  Value run(nb::handle root) {
    Node* node = add(root, 0, {}, 0);
    for (std::size_t next = 0; next < visits_.size(); ++next) take(next);
    share_memory(tensors_);
    for (auto& [tensor_node, tensor] : tensors_)
      tensor_node->scalar = std::make_shared<const Tensor>(std::move(tensor));
    return graph_.seal(node);
  }

 private:
  /// The node an object becomes: a plain one at once, others are queued; the same object is the same node.
  Node* add(nb::handle object, std::size_t parent, nb::object key, std::size_t index) {
    if (PyLong_CheckExact(object.ptr())) return add_integer(object);
    if (const auto known = known_.find(object.ptr()); known != known_.end()) return known->second;
    Node* node = graph_.add(Kind::kNone);
    if (set_plain(*node, object)) return node;
    if (nb::isinstance<PyArchive>(object)) return add_archive(object, parent, std::move(key), index);
    known_.emplace(object.ptr(), node);
    visits_.push_back({nb::borrow(object), node, parent, std::move(key), index});
    return node;
  }

  /// An archive stands for all that its file holds. As a mapping it has the tensors alone, by flat names: without
  /// nesting and numbers.
  Node* add_archive(nb::handle archive, std::size_t parent, nb::object key, std::size_t index) {
    loaded_.push_back(nb::borrow(archive));  // known_ names it by its address
    loaded_.push_back(archive.attr("load")());
    Node* node = add(loaded_.back(), parent, std::move(key), index);
    known_.emplace(archive.ptr(), node);
    return node;
  }

  /// Lists of labels and of tokens are millions of small integers: each is one node however often it comes.
  Node* add_integer(nb::handle object) {
    constexpr std::size_t kAtFirst = 256;
    constexpr std::size_t kShared = 65536;
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
    if (overflow != 0 || value < 0 || value >= static_cast<long long>(kShared)) {
      Node* node = graph_.add(Kind::kInt);
      set_integer(*node, object);
      return node;
    }
    const auto place = static_cast<std::size_t>(value);
    if (place >= integers_.size()) integers_.resize(place < kAtFirst ? kAtFirst : kShared);
    Node*& node = integers_[place];
    if (node == nullptr) {
      node = graph_.add(Kind::kInt);
      node->scalar = static_cast<std::int64_t>(value);
    }
    return node;
  }

  void add_item(Node& node, nb::handle item, std::size_t parent, nb::object key = {}) {
    node.items.push_back(ValueGraph::child(add(item, parent, std::move(key), node.items.size())));
  }

  void take(std::size_t position) {
    const nb::object object = visits_[position].object;
    Node& node = *visits_[position].node;
    if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()) || PyAnySet_Check(object.ptr())) {
      take_sequence(node, object, position);
    } else if (is_mapping(object)) {
      take_mapping(node, object, position);
    } else if (object_type(object) == "penstock.Opaque") {
      take_opaque(node, object, position);
    } else if (take_described(node, object, position)) {
      return;
    } else if (!take_dtype(node, object)) {
      take_tensor(node, object, position);
    }
  }

  void take_sequence(Node& node, nb::handle object, std::size_t position) {
    node.kind = PyList_Check(object.ptr()) ? Kind::kList : PyTuple_Check(object.ptr()) ? Kind::kTuple : Kind::kSet;
    if (PyFrozenSet_Check(object.ptr())) node.type_name = "frozenset";
    // The name of a type is text that takes longer to make than most lists and tuples to write.
    const bool is_plain = PyList_CheckExact(object.ptr()) || PyTuple_CheckExact(object.ptr());
    if (!is_plain && object_type(object) == "torch.Size") node.type_name = "torch.Size";
    // A copy first: reading an item may run Python code, which could change the sequence.
    const nb::list items(nb::borrow(object));
    node.items.reserve(items.size());
    for (const nb::handle item : items) add_item(node, item, position);
  }

  void take_mapping(Node& node, nb::handle object, std::size_t position) {
    node.kind = Kind::kDict;
    if (PyODict_Check(object.ptr())) node.type_name = "collections.OrderedDict";
    if (!PyDict_CheckExact(object.ptr()) && object_type(object) == "collections.Counter")
      node.type_name = "collections.Counter";
    for (const nb::handle pair : pairs_of(object)) {
      const nb::object key = pair[0];
      add_item(node, key, position, key);
      add_item(node, nb::object(pair[1]), position, key);
    }
    if (PyODict_Check(object.ptr())) set_state(node, attribute_or(object, "__dict__"), position);
  }

  /// Attributes, if there are any.
  void set_state(Node& node, nb::handle state, std::size_t position) {
    if (state.is_none() || (PyDict_Check(state.ptr()) && PyDict_Size(state.ptr()) == 0)) return;
    node.state = std::make_unique<Value>(ValueGraph::child(add(state, position, nb::str("state"), 0)));
  }

  void take_opaque(Node& node, nb::handle object, std::size_t position) {
    node.type_name = utf8_of(nb::object(object.attr("type_name")));
    const nb::object args = object.attr("args");
    node.kind = args.is_none() ? Kind::kGlobal : Kind::kObject;
    if (args.is_none()) return;
    for (const nb::handle item : nb::tuple(args)) add_item(node, item, position);
    set_state(node, nb::object(object.attr("state")), position);
  }

  /// What `describe_` says of it.
  bool take_described(Node& node, nb::handle object, std::size_t position) {
    if (!describe_.is_valid()) return false;
    nb::object described = describe_(object);
    if (described.is_none()) return false;
    described_.push_back(described);
    if (PyUnicode_Check(described.ptr())) throw Error(ErrorCode::kUnsupported, place_of(position) + utf8_of(described));
    if (!PyTuple_Check(described.ptr())) {
      take_opaque(node, described, position);
      return true;
    }
    take_tensor(node, nb::object(described[0]), position);
    node.type_name = utf8_of(nb::object(described[1]));
    Tensor& tensor = tensors_.back().second;
    if (const nb::object layout = described[3]; !layout.is_none()) tensor = laid_out(tensor, layout);
    tensor = tensor.with_requires_grad(nb::cast<bool>(described[2]));
    set_state(node, nb::object(described[4]), position);
    return true;
  }

  /// The tensor as (dtype, strides): what DLPack has no name for, or does not keep.
  static Tensor laid_out(const Tensor& tensor, nb::handle layout) {
    const nb::object dtype = layout[0];
    const auto strides = nb::cast<std::vector<std::int64_t>>(layout[1]);
    return {tensor.buffer(), dtype.is_none() ? tensor.dtype() : dtype_from(dtype), tensor.shape(), Strides(strides),
            tensor.byte_offset()};
  }

  static bool take_dtype(Node& node, nb::handle object) {
    if (!nb::isinstance<DType>(object) && object_type(object) != "torch.dtype") return false;
    node.kind = Kind::kDType;
    node.scalar = dtype_from(object);
    return true;
  }

  void take_tensor(Node& node, nb::handle object, std::size_t position) {
    std::optional<Tensor> tensor;
    try {
      tensor = array_given(object);
    } catch (const Error& error) {
      throw error.prefixed(place_of(position));
    }
    if (!tensor) {
      throw Error(
          ErrorCode::kDTypeMismatch,
          core::format("{}found an object of type {}, expected tensors, arrays, numbers, strings, or dicts, lists, "
                       "tuples and sets of them",
                       place_of(position), object_type(object)));
    }
    node.kind = Kind::kTensor;
    tensors_.emplace_back(&node, *tensor);
  }

  /// "at ['a'][3]: ", or nothing for the whole.
  std::string place_of(std::size_t position) const {
    std::string out;
    for (; position != 0; position = visits_[position].parent) {
      const Visit& visit = visits_[position];
      const std::string key = visit.key.is_valid() ? nb::repr(visit.key).c_str() : std::to_string(visit.index);
      out = core::format("[{}]{}", key, out);
    }
    return out.empty() ? out : "at " + out + ": ";
  }

  nb::handle describe_;                ///< or null
  std::vector<nb::object> described_;  ///< known_ goes by addresses
  std::vector<nb::object> loaded_;     ///< archives and what they hold
  ValueGraph graph_;
  std::vector<Visit> visits_;
  std::vector<Node*> integers_;                 ///< of each small one its node, or null
  std::unordered_map<PyObject*, Node*> known_;  // visits_ keeps the objects, so that no other takes their address
  std::vector<std::pair<Node*, Tensor>> tensors_;
};

}  // namespace

Value from_python(nb::handle object, nb::handle describe) {
  // As most functions of samples give.
  if (!describe.is_valid() && nb::isinstance<Tensor>(object)) return Value::tensor(nb::cast<Tensor>(object));
  return Collector(describe).run(object);
}

}  // namespace penstock::python
