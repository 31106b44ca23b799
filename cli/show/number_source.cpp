// A whole tensor is read as statistics read it. A slice is cut along its outermost dimensions into pieces of a bounded
// size, each of which is loaded as `cat --slice` loads one.

#include "cli/show/number_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "archive/inspect/numbers.h"
#include "ops/elements.h"

namespace penstock::cli {
namespace {

constexpr std::int64_t kPiece = 256 * 1024;

template <class T>
T first_of(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/// What `first` is too large for a double to tell it from its neighbours.
long double base_of(long double first) { return std::fabs(first) > 0x1p52L ? first : 0; }

template <class T>
void subtract(std::span<const std::byte> bytes, long double base, std::vector<double>& out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<double>(static_cast<long double>(first_of<T>(bytes.subspan(i * sizeof(T)))) - base);
  }
}

}  // namespace

NumberSource::NumberSource(const Archive& archive, std::size_t entry, const LazyTensor& lazy)
    : dtype_(lazy.dtype()), count_(lazy.shape().numel()) {
  if (lazy.shape() == archive.entries()[entry].shape) {
    files_.emplace(archive);
    elements_.emplace(*files_, entry, archive::ElementOrder::kC);
    elements_->prepare();
    cursor_.emplace(*elements_, scratch_);
  } else if (lazy.entry().encoding.deflated) {
    loaded_ = lazy.load();
  } else {
    slice_ = lazy;
  }
}

std::span<const std::byte> NumberSource::next_bytes() {
  if (cursor_) return cursor_->read(next_, std::min(kPiece, count_ - next_));
  std::int64_t first = next_;  // the first of its piece, since pieces follow each other
  piece_ = (slice_ ? ops::piece_around(*slice_, first, kPiece).load() : ops::piece_around(loaded_, first, kPiece))
               .contiguous();
  return {piece_.data(), static_cast<std::size_t>(piece_.nbytes())};
}

void NumberSource::convert(std::span<const std::byte> bytes) {
  if (dtype_ == DType::int64) {
    if (next_ == 0) base_ = base_of(static_cast<long double>(first_of<std::int64_t>(bytes)));
    subtract<std::int64_t>(bytes, base_, numbers_);
  } else if (dtype_ == DType::uint64) {
    if (next_ == 0) base_ = base_of(static_cast<long double>(first_of<std::uint64_t>(bytes)));
    subtract<std::uint64_t>(bytes, base_, numbers_);
  } else if (dtype_.is_complex()) {
    std::vector<double> imaginary(numbers_.size());
    archive::to_complex(dtype_, bytes.data(), numbers_.data(), imaginary.data(), numbers_.size());
    for (std::size_t i = 0; i < numbers_.size(); ++i) numbers_[i] = std::hypot(numbers_[i], imaginary[i]);
  } else {
    archive::to_doubles(dtype_, bytes.data(), numbers_.data(), numbers_.size());
  }
}

void NumberSource::refill() {
  const std::span<const std::byte> bytes = next_bytes();
  numbers_.resize(bytes.size() / dtype_.itemsize());
  convert(bytes);
  next_ += static_cast<std::int64_t>(numbers_.size());
  used_ = 0;
}

void NumberSource::read(std::span<double> out) {
  while (!out.empty()) {
    if (used_ == numbers_.size()) refill();
    const std::size_t now = std::min(out.size(), numbers_.size() - used_);
    std::copy_n(numbers_.begin() + static_cast<std::ptrdiff_t>(used_), now, out.begin());
    used_ += now;
    out = out.subspan(now);
  }
}

void NumberSource::finish() const {
  if (!elements_ || next_ != count_) return;
  elements_->finish();
  files_->require_unchanged();
}

}  // namespace penstock::cli
