// Turns cells into Values. It walks the cells once, without recursion, since they may nest deep and hold themselves. On
// its way it gives each tensor a name, which is the keys that lead to it joined with dots, and makes it an entry of the
// index.

#include "format/pt/pickle/structure.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/text.h"
#include "penstock/error.h"
#include "value/graph.h"

namespace penstock::format::pickle {

namespace {

using Kind = Value::Kind;
using Node = ValueGraph::Node;

/// What the items of composite tensors are called.
constexpr std::string_view kQuantizedParts[] = {"values", "scheme", "scales", "zero_points", "axis", "size"};
constexpr std::string_view kCooParts[] = {"indices", "values", "size", "is_coalesced"};
constexpr std::string_view kRowParts[] = {"crow_indices", "col_indices", "values", "size"};
constexpr std::string_view kColumnParts[] = {"ccol_indices", "row_indices", "values", "size"};
constexpr std::string_view kNestedParts[] = {"buffer", "sizes", "strides", "offsets"};

std::span<const std::string_view> part_names(std::string_view type_name) {
  if (type_name == "torch.quantized") return kQuantizedParts;
  if (type_name == "torch.sparse_coo_tensor") return kCooParts;
  if (type_name == "torch.sparse_csr_tensor" || type_name == "torch.sparse_bsr_tensor") return kRowParts;
  if (type_name == "torch.sparse_csc_tensor" || type_name == "torch.sparse_bsc_tensor") return kColumnParts;
  if (type_name == "torch.nested_tensor") return kNestedParts;
  return {};
}

bool is_scalar(const Cell& cell) { return cell.items.empty() && cell.state == nullptr; }

/// A key of a dict as part of a name.
std::string key_text(const Cell& key, bool inside_tuple = false) {
  switch (key.kind) {
    case Kind::kString:
    case Kind::kBigInt:
      return std::string(key.text);
    case Kind::kBytes:
      return core::escaped(key.text);
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return key.boolean ? "True" : "False";
    case Kind::kInt:
      return core::format("{}", key.integer);
    case Kind::kFloat:
      return core::format("{}", key.real);
    case Kind::kTuple: {
      if (inside_tuple || key.items.size() > 16) return "(...)";
      std::string text = "(";
      for (const Cell* item : key.items) text += (text.size() > 1 ? ", " : "") + key_text(*item, true);
      return text + ")";
    }
    default:
      return std::string(key.type_name);
  }
}

/// Compares keys so that those that are one to a dict are equal. Numbers of different kinds that are equal count as
/// different, and so do tuples of equal tuples: no writer does that.
std::strong_ordering compare_keys(const Cell& a, const Cell& b, bool inside_tuple = false) {
  if (&a == &b) return std::strong_ordering::equal;
  if (a.kind != b.kind) return a.kind <=> b.kind;
  switch (a.kind) {
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kBigInt:
      return a.text <=> b.text;
    case Kind::kInt:
      return a.integer <=> b.integer;
    case Kind::kBool:
      return a.boolean <=> b.boolean;
    case Kind::kFloat:
      if (a.real < b.real) return std::strong_ordering::less;
      if (a.real > b.real) return std::strong_ordering::greater;
      if (a.real == b.real) return std::strong_ordering::equal;
      // NaN is behind all others, and no NaN is another.
      if (std::isnan(a.real) != std::isnan(b.real)) return std::isnan(a.real) <=> std::isnan(b.real);
      break;
    case Kind::kTuple:
      if (inside_tuple) break;
      if (a.items.size() != b.items.size()) return a.items.size() <=> b.items.size();
      for (std::size_t i = 0; i < a.items.size(); ++i) {
        if (const auto order = compare_keys(*a.items[i], *b.items[i], true); order != 0) return order;
      }
      return std::strong_ordering::equal;
    default:
      break;
  }
  return std::compare_three_way()(&a, &b);
}

/// Readers that took the first or the last of two equal keys would disagree about what the file holds.
void require_unique_keys(const Cell& dict) {
  std::vector<const Cell*> keys;
  keys.reserve(dict.items.size() / 2);
  for (std::size_t i = 0; i < dict.items.size(); i += 2) keys.push_back(dict.items[i]);
  std::sort(keys.begin(), keys.end(), [](const Cell* a, const Cell* b) { return compare_keys(*a, *b) < 0; });
  const auto twin = std::adjacent_find(keys.begin(), keys.end(),
                                       [](const Cell* a, const Cell* b) { return compare_keys(*a, *b) == 0; });
  if (twin == keys.end()) return;
  throw Error(ErrorCode::kCorrupt, core::format("a dict has the key {} twice", core::quoted(key_text(**twin))));
}

[[noreturn]] void throw_too_deep() {
  throw Error(ErrorCode::kLimit,
              core::format("the content is nested more than {} levels deep, which Penstock refuses", kMaxDepth));
}

class Builder {
 public:
  Builder(World& world, const Decode& decode)
      : world_(world), index_(world.index()), decode_(decode), names_left_(world.arena().text_left() / 2) {}

  void build(Cell* root);

 private:
  /// A cell whose children are being visited; its name is the first `name_length` characters of name_.
  struct Frame {
    Cell* cell;
    Node* node;
    std::size_t next = 0;
    std::size_t name_length = 0;
  };

  void visit_next();
  void enter(Cell* cell, std::size_t name_length);
  void decode(Cell* cell);
  void append_name(const Frame& frame, std::size_t child);
  void append_part(std::string_view part);
  void fill(Node* node, const Cell& cell);
  void add_entry(Cell* cell);
  void add_alias(const Cell& cell);
  std::string affordable_name();
  void name_apart();

  World& world_;
  Index& index_;
  const Decode& decode_;
  ValueGraph graph_;
  std::vector<Frame> frames_;
  std::string name_;
  std::size_t names_left_;  ///< bytes of long names that may still be made
};

void Builder::build(Cell* root) {
  name_.clear();
  enter(root, 0);
  while (!frames_.empty()) visit_next();
  if (root->is(Kind::kTensor)) index_.entries.front().name = "tensor";
  name_apart();
  index_.structure = graph_.seal(root->node);
  index_.unknown_globals.assign(world_.unknown().begin(), world_.unknown().end());
}

void Builder::visit_next() {
  Frame& frame = frames_.back();
  Cell* const cell = frame.cell;
  const std::size_t children = cell->items.size() + (cell->state != nullptr ? 1 : 0);
  if (frame.next == children) {
    if (++cell->height > kMaxDepth) throw_too_deep();
    const std::uint32_t height = cell->height;
    frames_.pop_back();
    if (!frames_.empty()) frames_.back().cell->height = std::max(frames_.back().cell->height, height);
    return;
  }
  const std::size_t position = frame.next++;
  const bool is_state = position == cell->items.size();
  Cell* const child = is_state ? cell->state : cell->items[position];
  Node* const node = frame.node;
  const bool named = child->role == Role::kTensor || child->role == Role::kStorage || !is_scalar(*child);
  if (named) append_name(frame, position);
  if (child->node == nullptr) {
    enter(child, name_.size());  // `frame` may have moved
  } else {
    if (child->is(Kind::kTensor)) add_alias(*child);
    cell->height = std::max(cell->height, child->height);
  }
  if (is_state) {
    node->state = std::make_unique<Value>(ValueGraph::child(child->node));
  } else {
    node->items.push_back(ValueGraph::child(child->node));
  }
}

void Builder::enter(Cell* cell, std::size_t name_length) {
  if (cell->role == Role::kStorage) {
    const StorageView view = world_.views()[cell->ref];
    const auto itemsize = static_cast<std::int64_t>(DType(view.dtype).itemsize());
    const Shape shape{static_cast<std::int64_t>(view.nbytes) / itemsize};
    const Cell* made = world_.make_tensor({.dtype = DType(view.dtype),
                                           .shape = shape,
                                           .strides = Strides{1},
                                           .storage = view.storage,
                                           .byte_offset = view.offset});
    cell->kind = Kind::kTensor;
    cell->role = Role::kTensor;
    cell->ref = made->ref;
    cell->type_name = kStorageName;
  }
  decode(cell);
  Node* const node = graph_.add(cell->kind);
  cell->node = node;
  if (cell->is(Kind::kTensor)) {
    add_entry(cell);
    node->scalar = Node::Entry{index_.entries.size() - 1};
    if (!cell->type_name.empty()) node->type_name = cell->type_name;
  } else {
    fill(node, *cell);
  }
  if (is_scalar(*cell)) return;
  if (cell->is(Kind::kDict)) {
    for (std::size_t i = 0; i < cell->items.size(); i += 2) decode(cell->items[i]);
    require_unique_keys(*cell);
  }
  if (frames_.size() >= kMaxDepth) throw_too_deep();
  node->items.reserve(cell->items.size());
  frames_.push_back({cell, node, 0, name_length});
}

void Builder::decode(Cell* cell) {
  if (!cell->byte_string || !decode_) return;
  cell->byte_string = false;
  const auto text = decode_(cell->text);
  cell->kind = text ? Kind::kString : Kind::kBytes;
  if (text) cell->text = world_.arena().keep(*text);
}

void Builder::append_part(std::string_view part) {
  world_.arena().charge_text(part.size());
  if (!name_.empty()) name_ += '.';
  name_ += part;
}

void Builder::append_name(const Frame& frame, std::size_t child) {
  const Cell& cell = *frame.cell;
  name_.resize(frame.name_length);
  if (child == cell.items.size()) {
    if (!cell.state->is(Kind::kDict) || cell.is(Kind::kTensor)) append_part("state");
    return;  // attributes are named like items
  }
  const Cell& item = *cell.items[child];
  if (cell.is(Kind::kDict)) {
    if (child % 2 == 1) return append_part(key_text(*cell.items[child - 1]));
    append_part("keys");
    return append_part(std::to_string(child / 2));
  }
  if (item.role == Role::kListItems || item.role == Role::kDictItems) return;
  if (cell.type_name == kParameterName || cell.type_name == kSubclassName) return;  // what it is made of has its name
  const auto names = part_names(cell.type_name);
  if (child < names.size()) return append_part(names[child]);
  append_part(std::to_string(child));
}

void Builder::fill(Node* node, const Cell& cell) {
  switch (cell.kind) {
    case Kind::kBool:
      node->scalar = cell.boolean;
      break;
    case Kind::kInt:
      node->scalar = cell.integer;
      break;
    case Kind::kFloat:
      node->scalar = cell.real;
      break;
    case Kind::kComplex:
      node->scalar = std::complex<double>(cell.parts[0], cell.parts[1]);
      break;
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kBigInt:
      world_.arena().charge_text(cell.text.size());
      node->scalar = std::string(cell.text);
      break;
    case Kind::kDType:
      node->scalar = dtype_of(cell);
      break;
    default:
      break;
  }
  if (!cell.type_name.empty()) {
    world_.arena().charge_text(cell.type_name.size());
    node->type_name = cell.type_name;
  }
}

void Builder::add_entry(Cell* cell) {
  index_.entries.push_back(world_.tensor_of(*cell));
  index_.entries.back().name = affordable_name();
}

/// Takes no more than the two bytes that lead there are worth: a list of one tensor a million times is no attack.
void Builder::add_alias(const Cell& cell) {
  world_.arena().charge(1);
  index_.entries.push_back(world_.tensor_of(cell));
  index_.entries.back().name = affordable_name();
}

/// The name, or its end where names come to far more text than the file has: many tensors below keys of thousands of
/// characters, which a file holds once.
std::string Builder::affordable_name() {
  constexpr std::size_t kEnd = 150;
  if (name_.size() <= kEnd) return name_;
  if (name_.size() <= names_left_) {
    names_left_ -= name_.size();
    return name_;
  }
  std::size_t begin = name_.size() - kEnd;
  while (begin < name_.size() && (static_cast<unsigned char>(name_[begin]) & 0xC0U) == 0x80U) ++begin;
  return "..." + name_.substr(begin);
}

/// Keys may hold dots, so that two ways can give one name: the later ones get "#2", "#3" ...
void Builder::name_apart() {
  auto& entries = index_.entries;
  if (entries.size() < 2) return;
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto before = [&entries](std::size_t a, std::size_t b) {
    const int compared = entries[a].name.compare(entries[b].name);
    return compared != 0 ? compared < 0 : a < b;
  };
  std::sort(order.begin(), order.end(), before);
  std::vector<std::pair<std::size_t, std::string>> renamed;
  const auto is_taken = [&](const std::string& name) {
    const auto at =
        std::lower_bound(order.begin(), order.end(), name,
                         [&entries](std::size_t i, const std::string& wanted) { return entries[i].name < wanted; });
    return at != order.end() && entries[*at].name == name;
  };
  std::size_t number = 1;
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::string& name = entries[order[i]].name;
    if (name != entries[order[i - 1]].name) {
      number = 1;
      continue;
    }
    std::string other;
    do {
      other = core::format("{}#{}", name, ++number);
    } while (is_taken(other));
    renamed.emplace_back(order[i], std::move(other));
  }
  for (auto& [entry, name] : renamed) entries[entry].name = std::move(name);
}

}  // namespace

void build_structure(Cell* root, World& world, const Decode& decode) { Builder(world, decode).build(root); }

}  // namespace penstock::format::pickle
