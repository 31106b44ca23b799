#pragma once

// One worker process as its parent sees it: a call goes there and its answer comes back. One thread at a time.

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/forks.h"
#include "data/trace/trace.h"
#include "penstock/buffer.h"
#include "worker/block.h"
#include "worker/link.h"
#include "worker/message.h"

namespace penstock::python {

/// The memory of a worker's answers. A block is lent to whoever reads an answer, and comes back with the last tensor in
/// it, from any thread, also when the worker is gone.
class AnswerBlocks : public std::enable_shared_from_this<AnswerBlocks> {
 public:
  void add(std::shared_ptr<SharedBlock> block);
  /// One that nobody reads, for the next answer; 0 without any.
  std::uint64_t grant();
  /// One that was granted and not used.
  void drop(std::uint64_t id);
  /// Blocks that the worker may give up.
  std::vector<std::uint64_t> forgotten(std::size_t most);
  /// The block, and who keeps it lent. Null for one that is not there.
  std::shared_ptr<SharedBlock> find(std::uint64_t id);
  std::shared_ptr<const void> lend(const std::shared_ptr<SharedBlock>& block);
  /// Of blocks that are not lent.
  std::uint64_t bytes() const noexcept;

 private:
  void take_back(std::uint64_t id) noexcept;
  /// The block, which is one no more. Call it with mutex_ locked, and let go of the block without.
  std::shared_ptr<SharedBlock> taken_out(std::uint64_t id) noexcept;

  static constexpr std::size_t kMostIdle = 4;
  const std::uint64_t forks_ = core::forks();
  mutable std::mutex mutex_;
  std::uint64_t lent_ = 0;   ///< bytes
  std::uint64_t bytes_ = 0;  ///< of all blocks
  std::map<std::uint64_t, std::shared_ptr<SharedBlock>> blocks_;
  std::vector<std::uint64_t> idle_;
  std::vector<std::uint64_t> forgotten_;
};

struct Answer {
  std::shared_ptr<SharedBlock> block;
  MessageExtent extent;
  std::shared_ptr<const void> owner;
  std::chrono::steady_clock::time_point begin;  ///< of the calls, in the worker
  std::chrono::steady_clock::time_point end;

  MessageReader reader() const { return {block->bytes(), extent, owner}; }
};

class WorkerProcess {
 public:
  /// Takes the socket over.
  WorkerProcess(int socket, pid_t pid);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  pid_t pid() const noexcept { return pid_; }
  /// Numbers of the functions that it has.
  std::set<std::uint64_t>& functions() noexcept { return functions_; }

  /// Sends a message, whose answer is to be received before the next one. False where the process has ended.
  /// `writes_to`: what the calls write their results to, which is kept until the process does so no more.
  bool send(MessageKind kind, const MessageWriter& message, const Buffer& writes_to = {});
  /// Waits for the answer; nothing where the process has ended. kCancelled where the calling thread is to stop, or
  /// `closed` is set: it is given up.
  std::optional<Answer> receive(const std::atomic<bool>& closed);
  /// Nobody waits for the answer any more, which is dropped when it comes.
  void give_up() noexcept;
  /// Has it have the memory of batches, by its descriptor. False where the process has ended.
  bool give_memory(int descriptor);
  /// How many calls of the last message it had finished, and which sample of several the one behind them was at.
  std::size_t finished_calls() const noexcept;
  std::optional<std::size_t> sample_at_hand() const noexcept;
  /// Has it end, from any thread.
  void shut_down() noexcept;
  /// Shared memory for calls and answers, without answers that somebody has. Any thread.
  std::uint64_t bytes() const noexcept { return request_bytes_ + answers_->bytes(); }
  /// Where a trace shows what it does, or null; for whoever has it at the moment.
  data::Trace::Lane* lane = nullptr;

 private:
  void drop_request() noexcept;
  std::optional<Received> wait(const std::atomic<bool>& closed);
  /// The answer to the last message; nothing where it is one to an earlier message.
  std::optional<Answer> taken(const Received& received);

  int socket_;
  pid_t pid_;
  int pid_descriptor_;
  std::uint64_t sequence_ = 0;
  std::uint64_t blocks_ = 0;
  std::shared_ptr<SharedBlock> request_;
  std::atomic<std::uint64_t> request_bytes_ = 0;
  std::shared_ptr<AnswerBlocks> answers_ = std::make_shared<AnswerBlocks>();
  std::set<std::uint64_t> functions_;
  bool has_memory_ = false;
  /// What calls without an answer yet write to, by their number.
  std::vector<std::pair<std::uint64_t, Buffer>> written_;
};

}  // namespace penstock::python
