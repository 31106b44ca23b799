// Writes a tensor as NumPy does: brackets for dimensions, elements of equal width. Two walks over the same elements:
// the first makes their texts, because the widest decides how far all are indented, the second writes them. Of a large
// tensor only the ends of each dimension are touched, so that it costs the same for a tensor of any size.

#include <algorithm>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "core/text.h"
#include "ops/elements.h"
#include "penstock/tensor.h"

namespace penstock {
namespace {

constexpr std::int64_t kMostElements = 1000;
constexpr std::int64_t kMostAtEnds = 3;

/// Which indices of a dimension are shown: all, or the first and the last.
struct Ends {
  std::int64_t head = 0;
  std::int64_t tail = 0;  ///< 0 where all are shown

  static Ends of(std::int64_t size, std::optional<std::int64_t> at_ends) {
    if (!at_ends || size <= 2 * *at_ends) return {size, 0};
    return *at_ends == 0 ? Ends{1, 0} : Ends{*at_ends, *at_ends};
  }
  std::int64_t count() const noexcept { return head + tail; }
};

class Printer {
 public:
  explicit Printer(const Tensor& tensor) : tensor_(tensor), at_ends_(choose_ends(tensor.shape())) {
    collect(tensor);
    for (const std::string& text : texts_) width_ = std::max(width_, text.size());
  }

  void print(std::ostream& out) {
    out_ = &out;
    write(tensor_, 1);
  }

 private:
  /// As many as make less than a screen of it. A tensor of many dimensions of two shows the first of each.
  static std::optional<std::int64_t> choose_ends(const Shape& shape) {
    const auto shown = [&](std::optional<std::int64_t> at_ends) {
      std::int64_t count = 1;
      for (const std::int64_t size : shape) {
        count *= std::max<std::int64_t>(Ends::of(size, at_ends).count(), 1);
        if (count > kMostElements) break;
      }
      return count;
    };
    if (shown(std::nullopt) <= kMostElements) return std::nullopt;
    std::int64_t at_ends = kMostAtEnds;
    while (at_ends > 0 && shown(at_ends) > kMostElements) --at_ends;
    return at_ends;
  }

  template <class Each>
  void for_each_shown(const Tensor& tensor, const Each& each) const {
    const std::int64_t size = tensor.shape()[0];
    const Ends ends = Ends::of(size, at_ends_);
    for (std::int64_t i = 0; i < ends.head; ++i) each(tensor.select(0, i));
    for (std::int64_t i = size - ends.tail; i < size; ++i) each(tensor.select(0, i));
  }

  void collect(const Tensor& tensor) {
    if (tensor.rank() > 1) return for_each_shown(tensor, [&](const Tensor& part) { collect(part); });
    if (tensor.rank() == 0) return add(tensor);
    const std::int64_t size = tensor.shape()[0];
    const Ends ends = Ends::of(size, at_ends_);
    add(tensor.slice(0, 0, ends.head));
    add(tensor.slice(0, size - ends.tail, size));
  }

  void add(const Tensor& tensor) {
    ops::ElementPrinter elements(tensor.to(Device{}));
    const bool is_text = elements.kind() == ops::ElementClass::kText;
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.numel()); ++i) {
      texts_.push_back(is_text ? core::quoted(elements.text(i)) : elements.text(i));
    }
  }

  void write(const Tensor& tensor, std::size_t depth) {
    if (tensor.rank() == 0) return write_element();
    *out_ << '[';
    bool is_first = true;
    const auto separate = [&] {
      if (!is_first) write_separator(tensor.rank(), depth);
      is_first = false;
    };
    const std::int64_t size = tensor.shape()[0];
    const Ends ends = Ends::of(size, at_ends_);
    for (std::int64_t i = 0; i < ends.count(); ++i) {
      separate();
      if (i == ends.head) write_gap(tensor.rank(), depth);
      write(tensor.select(0, i < ends.head ? i : size - ends.count() + i), depth + 1);
    }
    if (ends.count() < size && ends.tail == 0) {
      separate();
      *out_ << "...";
    }
    *out_ << ']';
  }

  void write_gap(std::size_t rank, std::size_t depth) {
    *out_ << "...";
    write_separator(rank, depth);
  }

  void write_separator(std::size_t rank, std::size_t depth) {
    if (rank == 1) {
      *out_ << ", ";
    } else {
      *out_ << ',' << std::string(rank - 1, '\n') << std::string(depth, ' ');
    }
  }

  void write_element() {
    const std::string& text = texts_[next_++];
    *out_ << std::string(width_ - text.size(), ' ') << text;
  }

  const Tensor& tensor_;
  std::optional<std::int64_t> at_ends_;
  std::vector<std::string> texts_;
  std::size_t next_ = 0;
  std::size_t width_ = 0;
  std::ostream* out_ = nullptr;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.defined()) return out << "Tensor()";
  Printer(tensor).print(out);
  out << ' ' << tensor.dtype().name() << tensor.shape().to_string();
  if (tensor.device() != Device{}) out << " on " << tensor.device().to_string();
  return out;
}

}  // namespace penstock
