#include <algorithm>
#include <array>
#include <utility>

#include "device/queue.h"
#include "ops/launcher.h"
#include "penstock/stream.h"

namespace penstock::ops {
namespace {

constexpr std::uint64_t kThreads = 256;
/// Enough to fill the largest devices several times; threads take further indices one after the other.
constexpr std::uint64_t kMaxBlocks = 4096;

class QueueLauncher final : public Launcher {
 public:
  explicit QueueLauncher(Stream stream) : stream_(std::move(stream)) {}

  void launch(std::string_view kernel, const void* parameters, std::uint64_t count, std::span<const Tensor> reads,
              std::span<const Tensor> writes) override {
    order(reads, writes);
    const std::array<const void*, 1> arguments = {parameters};
    device::Launch launch{.kernel = kernel};
    launch.grid[0] = static_cast<unsigned>(std::min((count + kThreads - 1) / kThreads, kMaxBlocks));
    launch.block[0] = kThreads;
    launch.arguments = arguments;
    StreamAccess::queue(stream_)->launch(launch);
    record(reads, writes);
  }

  bool multiplies(DType::Code type) override { return StreamAccess::queue(stream_)->multiplies(type); }

  bool multiply(std::span<const device::MatrixProduct> products, std::span<const Tensor> reads,
                std::span<const Tensor> writes) override {
    order(reads, writes);
    const device::QueuePtr& queue = StreamAccess::queue(stream_);
    const bool done = std::all_of(products.begin(), products.end(),
                                  [&](const device::MatrixProduct& product) { return queue->multiply(product); });
    // Those before one that is refused have been started.
    record(reads, writes);
    return done;
  }

 private:
  void order(std::span<const Tensor> reads, std::span<const Tensor> writes) const {
    for (const Tensor& tensor : reads) tensor.buffer().order_after_writes(stream_);
    for (const Tensor& tensor : writes) tensor.buffer().order_after_uses(stream_);
  }
  void record(std::span<const Tensor> reads, std::span<const Tensor> writes) const {
    for (const Tensor& tensor : reads) tensor.buffer().record_use(stream_, Buffer::Access::kRead);
    for (const Tensor& tensor : writes) tensor.buffer().record_use(stream_, Buffer::Access::kWrite);
  }

  Stream stream_;
};

}  // namespace

std::unique_ptr<Launcher> launcher_for(Device device) {
  return std::make_unique<QueueLauncher>(Stream::current(device));
}

}  // namespace penstock::ops
