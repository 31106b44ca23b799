#pragma once

// One worker process as its parent sees it: a call goes there and its answer comes back. One thread at a time.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "worker_block.h"
#include "worker_link.h"
#include "worker_message.h"

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

 private:
  void take_back(std::uint64_t id) noexcept;

  static constexpr std::size_t kMostIdle = 4;
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<SharedBlock>> blocks_;
  std::vector<std::uint64_t> idle_;
  std::vector<std::uint64_t> forgotten_;
};

struct Answer {
  std::shared_ptr<SharedBlock> block;
  MessageExtent extent;
  std::shared_ptr<const void> owner;

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

  /// Sends a message and waits for its answer; nothing where the process has ended. kCancelled where the calling thread
  /// is to stop, or `closed` is set: the answer is dropped when it comes.
  std::optional<Answer> exchange(MessageKind kind, const MessageWriter& message, const std::atomic<bool>& closed);
  /// How many calls of the last message it had finished.
  std::size_t finished_calls() const noexcept;
  /// Has it end, from any thread.
  void shut_down() noexcept;

 private:
  std::optional<Received> wait(const std::atomic<bool>& closed);
  /// The answer to the last message; nothing where it is one to an earlier message.
  std::optional<Answer> taken(const Received& received);

  int socket_;
  pid_t pid_;
  int pid_descriptor_;
  std::uint64_t sequence_ = 0;
  std::uint64_t blocks_ = 0;
  std::shared_ptr<SharedBlock> request_;
  std::shared_ptr<AnswerBlocks> answers_ = std::make_shared<AnswerBlocks>();
  std::set<std::uint64_t> functions_;
};

}  // namespace penstock::python
