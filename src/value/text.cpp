// A value as Python would write it. A file decides what is in it, so the text is bounded: 400 characters, 16 levels,
// and "..." for a cycle.

#include "core/text.h"

#include <algorithm>
#include <vector>

#include "core/format.h"
#include "value/graph.h"

namespace penstock {
namespace {

using Kind = Value::Kind;
using Node = ValueGraph::Node;

constexpr std::size_t kMaxText = 400;
constexpr std::size_t kMaxTextDepth = 16;
constexpr std::size_t kMaxBytesShown = 32;

std::string format_real(double value) {
  std::string text = core::format("{}", value);
  // As Python writes it: a whole number keeps its point.
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::string format_bytes_literal(std::string_view raw) {
  std::string out = "b'";
  for (const char c : raw.substr(0, kMaxBytesShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '\'' && c != '\\') {
      out += c;
    } else {
      core::append(out, "\\x{:02x}", byte);
    }
  }
  return out + (raw.size() > kMaxBytesShown ? "...'" : "'");
}

/// Writes a value as Python would, no further than kMaxText characters, kMaxTextDepth levels or a cycle.
class TextWriter {
 public:
  std::string take() {
    if (out_.size() <= kMaxText) return std::move(out_);
    std::size_t cut = kMaxText - 3;
    while (cut > 0 && (static_cast<unsigned char>(out_[cut]) & 0xC0U) == 0x80U) --cut;
    return out_.substr(0, cut) + "...";
  }

  void write(const Node* node) {
    if (full()) return;
    if (node == nullptr) {
      out_ += "None";
      return;
    }
    const bool is_cycle = std::find(path_.begin(), path_.end(), node) != path_.end();
    if (is_cycle || path_.size() == kMaxTextDepth) {
      out_ += "...";
      return;
    }
    path_.push_back(node);
    write_node(*node);
    path_.pop_back();
  }

 private:
  bool full() const { return out_.size() > kMaxText; }

  void write_node(const Node& node) {
    switch (node.kind) {
      case Kind::kList:
        return write_items(node, "[", "]");
      case Kind::kTuple:
        return write_named(node, "(", node.items.size() == 1 ? ",)" : ")");
      case Kind::kDict:
      case Kind::kSet:
        return write_named(node, "{", "}");
      case Kind::kObject:
        return write_object(node);
      case Kind::kGlobal:
        out_ += core::escaped(node.type_name);
        return;
      default:
        out_ += scalar_text(node);
        return;
    }
  }

  static std::string scalar_text(const Node& node) {
    switch (node.kind) {
      case Kind::kBool:
        return std::get<bool>(node.scalar) ? "True" : "False";
      case Kind::kInt:
        return core::format("{}", std::get<std::int64_t>(node.scalar));
      case Kind::kBigInt:
        return core::escaped(std::get<std::string>(node.scalar).substr(0, kMaxText));
      case Kind::kFloat:
        return format_real(std::get<double>(node.scalar));
      case Kind::kComplex: {
        const auto& value = std::get<std::complex<double>>(node.scalar);
        return core::format("({}{:+}j)", value.real(), value.imag());
      }
      case Kind::kString:
        return core::quoted(std::get<std::string>(node.scalar));
      case Kind::kBytes:
        return format_bytes_literal(std::get<std::string>(node.scalar));
      case Kind::kDType:
        return std::get<DType>(node.scalar).name();
      case Kind::kTensor:
        return tensor_text(node);
      default:
        return "None";
    }
  }

  static std::string tensor_text(const Node& node) {
    if (const auto* entry = std::get_if<Node::Entry>(&node.scalar))
      return core::format("Tensor(entry {})", entry->index);
    return core::escaped(std::get<Node::TensorPtr>(node.scalar)->to_string());
  }

  void write_items(const Node& node, std::string_view open, std::string_view close) {
    const bool is_dict = node.kind == Kind::kDict;
    out_ += open;
    for (std::size_t i = 0; i < node.items.size() && !full(); ++i) {
      if (i != 0) out_ += is_dict && i % 2 == 1 ? ": " : ", ";
      write(ValueGraph::node_of(node.items[i]));
    }
    out_ += close;
  }

  /// `OrderedDict({...})`, or the plain brackets without a type name.
  void write_named(const Node& node, std::string_view open, std::string_view close) {
    const bool is_empty_set = node.kind == Kind::kSet && node.items.empty();
    if (node.type_name.empty() && !is_empty_set) return write_items(node, open, close);
    out_ += core::escaped(node.type_name.empty() ? "set" : node.type_name) + "(";
    if (!is_empty_set) write_items(node, open, close);
    out_ += ")";
  }

  void write_object(const Node& node) {
    out_ += core::escaped(node.type_name);
    write_items(node, "(", ")");
    if (!node.state || full()) return;
    out_ += " with state ";
    write(ValueGraph::node_of(*node.state));
  }

  std::string out_;
  std::vector<const Node*> path_;
};

}  // namespace

std::string Value::to_string() const {
  TextWriter writer;
  writer.write(node_.get());
  return writer.take();
}

}  // namespace penstock
