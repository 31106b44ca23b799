// Rows are read one after the other and added to the sums of the blocks that they cross, so that memory is that of the
// picture and of a piece of a row, however large the tensor is. One element that is not finite marks its block: a
// single NaN among millions is what a person looks for.

#include "cli/show/picture.h"

#include <algorithm>
#include <cmath>

namespace penstock::cli {
namespace {

/// Elements of a row that are looked at together.
constexpr std::int64_t kRun = 8192;

/// Where block `index` of `blocks` over `elements` begins.
std::int64_t begin_of(std::size_t index, std::size_t blocks, std::int64_t elements) {
  const auto n = static_cast<std::int64_t>(blocks);
  const auto i = static_cast<std::int64_t>(index);
  // elements * i / n, rounded up, without the product.
  return elements / n * i + (elements % n * i + n - 1) / n;
}

class Blocks {
 public:
  Blocks(NumberSource& source, const Reading& reading, Picture& picture, Seen& seen)
      : source_(source), picture_(picture), seen_(seen), counts_(picture.means.size()) {
    for (std::size_t x = 0; x <= picture.width; ++x) begins_.push_back(begin_of(x, picture.width, reading.width));
  }

  /// Adds the next row, of `channels` numbers for each pixel, to row `y` of the picture's channels from `channel` on.
  void add_row(std::size_t y, std::size_t channel, std::size_t channels) {
    for (std::size_t x = 0; x < picture_.width; ++x) {
      const std::size_t pixel = y * picture_.width + x;
      std::int64_t left = begins_[x + 1] - begins_[x];
      while (left > 0) {
        const std::int64_t now = std::min(left, kRun);
        numbers_.resize(static_cast<std::size_t>(now) * channels);
        source_.read(numbers_);
        for (std::size_t i = 0; i < numbers_.size(); i += channels) {
          for (std::size_t c = 0; c < channels; ++c) add(pixel, channel + c, numbers_[i + c]);
        }
        left -= now;
      }
    }
  }

  void finish() {
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] > 1) picture_.means[i] /= static_cast<double>(counts_[i]);
    }
  }

 private:
  void add(std::size_t pixel, std::size_t channel, double number) {
    seen_.add(number);
    if (std::isfinite(number)) {
      const std::size_t at = pixel * picture_.channels + channel;
      picture_.means[at] += number;
      ++counts_[at];
    } else {
      const auto mark = std::isnan(number) ? Picture::Mark::kNaN : Picture::Mark::kInfinite;
      picture_.marks[pixel] = std::max(picture_.marks[pixel], mark);
    }
  }

  NumberSource& source_;
  Picture& picture_;
  Seen& seen_;
  std::vector<std::int64_t> begins_;
  std::vector<std::int64_t> counts_;
  std::vector<double> numbers_;
};

}  // namespace

void Seen::add(double number) noexcept {
  if (std::isfinite(number)) {
    least = std::min(least, number);
    greatest = std::max(greatest, number);
  } else if (std::isnan(number)) {
    ++nans;
  } else {
    ++(number > 0 ? positive_infinities : negative_infinities);
  }
}

Picture read_picture(NumberSource& source, const Reading& reading, std::size_t width, std::size_t height, Seen& seen) {
  Picture out;
  out.width = width;
  out.height = height;
  out.channels = static_cast<std::size_t>(reading.channels);
  out.means.resize(width * height * out.channels);
  out.marks.resize(width * height);
  Blocks blocks(source, reading, out, seen);
  const bool is_planar = reading.layout == Layout::kCHW;
  const std::size_t planes = is_planar ? out.channels : 1;
  for (std::size_t plane = 0; plane < planes; ++plane) {
    for (std::size_t y = 0; y < height; ++y) {
      const std::int64_t end = begin_of(y + 1, height, reading.height);
      for (std::int64_t row = begin_of(y, height, reading.height); row < end; ++row) {
        blocks.add_row(y, plane, is_planar ? 1 : out.channels);
      }
    }
  }
  blocks.finish();
  return out;
}

}  // namespace penstock::cli
