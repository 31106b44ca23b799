// A tensor as text, as PyTorch prints it: one notation for all numbers, long dimensions shortened in the middle. Only
// the elements that are shown are converted, so that a large tensor, or one on a device, costs little.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "arrays/elements.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

constexpr std::int64_t kWholeUpTo = 1000;  // elements; longer tensors are shortened
constexpr std::int64_t kEdge = 3;          // elements shown at each end of a shortened dimension
constexpr std::size_t kMostShown = 5000;
constexpr int kDigits = 4;

/// The indices shown of a dimension; -1 stands for the gap.
std::vector<std::int64_t> shown_indices(std::int64_t size, bool shorten) {
  std::vector<std::int64_t> out;
  if (!shorten || size <= 2 * kEdge) {
    for (std::int64_t i = 0; i < size; ++i) out.push_back(i);
    return out;
  }
  for (std::int64_t i = 0; i < kEdge; ++i) out.push_back(i);
  out.push_back(-1);
  for (std::int64_t i = size - kEdge; i < size; ++i) out.push_back(i);
  return out;
}

/// One notation for all numbers of a tensor, chosen as PyTorch does.
class FloatNotation {
 public:
  explicit FloatNotation(const std::vector<double>& values) {
    double largest = 0;
    double smallest = std::numeric_limits<double>::infinity();
    for (const double value : values) {
      if (!std::isfinite(value) || value == 0) continue;
      largest = std::max(largest, std::fabs(value));
      smallest = std::min(smallest, std::fabs(value));
      if (value != std::nearbyint(value)) whole_ = false;
    }
    if (largest == 0) return;
    scientific_ = whole_ ? largest / smallest > 1000 && largest > 1e8
                         : largest / smallest > 1000 || largest > 1e8 || smallest < 1e-4;
  }

  std::string operator()(double value) const {
    if (std::isnan(value)) return "nan";  // of either sign, as others show it
    if (!std::isfinite(value)) return core::format("{}", value);
    if (scientific_) return core::format("{:.{}e}", value, kDigits);
    if (whole_) return core::format("{:.0f}.", value);
    return core::format("{:.{}f}", value, kDigits);
  }

 private:
  bool whole_ = true;
  bool scientific_ = false;
};

/// Texts of the elements shown, in order.
class Elements {
 public:
  Elements(const Tensor& tensor, bool shorten) : tensor_(tensor), shorten_(shorten) {
    collect(0, tensor_.byte_offset());
    if (!numbers_.empty()) format_numbers();
    for (const std::string& text : texts_) width_ = std::max(width_, text.size());
  }

  std::string take() { return core::format("{:>{}}", texts_[next_++], tensor_.rank() == 0 ? 0 : width_); }
  std::size_t width() const noexcept { return width_; }

 private:
  // Element by element, so that of a large tensor only what is shown is converted and, on another device, copied.
  void collect(std::size_t dim, std::size_t offset) {
    if (dim == tensor_.rank()) return add_one(Tensor(tensor_.buffer(), tensor_.dtype(), Shape{}, Strides{}, offset));
    const std::int64_t step = tensor_.strides()[dim] * static_cast<std::int64_t>(tensor_.dtype().itemsize());
    for (const std::int64_t i : shown_indices(tensor_.shape()[dim], shorten_)) {
      if (i >= 0) collect(dim + 1, offset + static_cast<std::size_t>(i * step));
    }
  }

  void add_one(const Tensor& element) {
    try {
      add(to_item(element));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCorrupt) throw;
      texts_.emplace_back("<no text>");
    }
  }

  void add(const nb::object& element) {
    if (PyFloat_Check(element.ptr())) {
      numbers_.push_back(PyFloat_AS_DOUBLE(element.ptr()));
    } else if (PyComplex_Check(element.ptr())) {
      numbers_.push_back(PyComplex_RealAsDouble(element.ptr()));
      numbers_.push_back(PyComplex_ImagAsDouble(element.ptr()));
    } else {
      texts_.emplace_back(nb::repr(element).c_str());
    }
  }

  void format_numbers() {
    const FloatNotation notation(numbers_);
    if (!tensor_.dtype().is_complex()) {
      for (const double value : numbers_) texts_.push_back(notation(value));
      return;
    }
    for (std::size_t i = 0; i < numbers_.size(); i += 2) {
      const std::string imaginary = notation(numbers_[i + 1]);
      texts_.push_back(
          core::format("{}{}{}j", notation(numbers_[i]), imaginary.starts_with('-') ? "" : "+", imaginary));
    }
  }

  const Tensor& tensor_;
  bool shorten_;
  std::vector<double> numbers_;
  std::vector<std::string> texts_;
  std::size_t width_ = 0;
  std::size_t next_ = 0;
};

constexpr std::size_t kLineWidth = 100;

void write_row(std::string& out, const std::vector<std::int64_t>& indices, Elements& elements, std::size_t indent) {
  std::size_t column = indent;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    const std::string text = indices[k] < 0 ? "..." : elements.take();
    if (k > 0) {
      const bool wrap = column + text.size() + 2 > kLineWidth;
      out += wrap ? ",\n" + std::string(indent, ' ') : ", ";
      column = wrap ? indent : column + 2;
    }
    out += text;
    column += text.size();
  }
}

void write(std::string& out, const Tensor& tensor, bool shorten, std::size_t dim, std::size_t indent,
           Elements& elements) {
  if (dim == tensor.rank()) {
    out += elements.take();
    return;
  }
  const std::vector<std::int64_t> indices = shown_indices(tensor.shape()[dim], shorten);
  out += '[';
  if (dim + 1 == tensor.rank()) {
    write_row(out, indices, elements, indent + 1);
  } else {
    const std::string gap = ',' + std::string(tensor.rank() - dim - 1, '\n') + std::string(indent + 1, ' ');
    for (std::size_t k = 0; k < indices.size(); ++k) {
      if (k > 0) out += gap;
      if (indices[k] < 0) {
        out += "...";
      } else {
        write(out, tensor, shorten, dim + 1, indent + 1, elements);
      }
    }
  }
  out += ']';
}

std::string values_text(const Tensor& tensor, std::size_t indent) {
  const bool shorten = tensor.numel() > kWholeUpTo;
  Elements elements(tensor, shorten);
  std::string out;
  write(out, tensor, shorten, 0, indent, elements);
  return out;
}

/// A tensor of many dimensions has too many edges.
bool is_showable(const Tensor& tensor) {
  if (!has_elements(tensor.dtype()) || tensor.numel() == 0) return false;
  if (tensor.numel() <= kWholeUpTo) return true;
  std::size_t count = 1;
  for (const std::int64_t size : tensor.shape()) {
    count *= shown_indices(std::min(size, 2 * kEdge + 1), true).size();
    if (count > kMostShown) return false;
  }
  return true;
}

}  // namespace

std::string to_repr(const Tensor& tensor) {
  constexpr std::string_view kName = "penstock.Tensor(";
  if (!tensor.defined()) return "penstock.Tensor()";
  std::string out(kName);
  const bool values = is_showable(tensor);
  if (values) out += values_text(tensor, kName.size()) + ", ";
  if (!values) out += core::format("{}shape={}, ", tensor.numel() == 0 ? "[], " : "", tensor.shape().to_string());
  out += "dtype=" + tensor.dtype().name();
  if (tensor.device() != Device{}) out += core::format(", device='{}'", tensor.device().to_string());
  if (tensor.requires_grad()) out += ", requires_grad=True";
  return out + ")";
}

}  // namespace penstock::python
