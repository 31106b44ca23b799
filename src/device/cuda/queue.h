#pragma once

// CUDA's half of device/queue.h: a queue is a stream of the driver's, a mark one of its events.

#include "device/cuda/context.h"
#include "device/queue.h"

namespace penstock::device::cuda {

/// An event of one context. Returned to its context's store when nobody holds it.
class CudaMark final : public Mark {
 public:
  /// Callers have the context current.
  CudaMark(ContextPtr context, CUstream stream);
  ~CudaMark() override;
  CudaMark(const CudaMark&) = delete;
  CudaMark& operator=(const CudaMark&) = delete;

  bool done() const override;
  void synchronize() const override;
  CUevent event() const noexcept { return event_; }

 private:
  ContextPtr context_;
  CUevent event_ = nullptr;
};

/// A stream of the driver's.
class CudaQueue final : public Queue {
 public:
  enum class Kind : std::uint8_t { kOwned, kDefault, kForeign };

  CudaQueue(ContextPtr context, CUstream stream, Kind kind) noexcept;
  ~CudaQueue() override;
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  /// A new stream, which does not wait for the default one.
  static QueuePtr make(const ContextPtr& context, int priority);
  /// Somebody else's, which must outlive it. kInvalidArgument for one of another device.
  static QueuePtr wrap(const ContextPtr& context, CUstream stream);

  Device device() const noexcept override { return context_->device(); }
  void* native() const noexcept override { return stream_; }
  bool is_foreign() const noexcept override { return kind_ == Kind::kForeign; }
  void copy(std::span<const CopyRange> ranges, Direction direction) override;
  void fill(std::byte* to, std::byte value, std::size_t bytes) override;
  void launch(const Launch& launch) override;
  bool multiplies(DType::Code type) override;
  bool multiply(const MatrixProduct& product) override;
  void on_complete(std::function<void()> action) override;
  MarkPtr record() override;
  void wait(const Mark& mark) override;
  bool done() override;
  void synchronize() override;

 private:
  void copy_one(const CopyRange& range, Direction direction);

  ContextPtr context_;
  CUstream stream_;
  Kind kind_;
};

}  // namespace penstock::device::cuda
