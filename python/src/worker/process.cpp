#include "worker/process.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "core/stop_scope.h"
#include "penstock/error.h"

namespace penstock::python {

void AnswerBlocks::add(std::shared_ptr<SharedBlock> block) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t id = block->id();
  bytes_ += block->bytes().size();
  blocks_.emplace(id, std::move(block));
}

std::uint64_t AnswerBlocks::grant() {
  const std::scoped_lock lock(mutex_);
  if (idle_.empty()) return 0;
  const std::uint64_t id = idle_.back();
  idle_.pop_back();
  return id;
}

std::shared_ptr<SharedBlock> AnswerBlocks::taken_out(std::uint64_t id) noexcept {
  const auto found = blocks_.find(id);
  if (found == blocks_.end()) return nullptr;
  std::shared_ptr<SharedBlock> block = std::move(found->second);
  blocks_.erase(found);
  bytes_ -= block->bytes().size();
  return block;
}

void AnswerBlocks::drop(std::uint64_t id) {
  std::shared_ptr<SharedBlock> gone;  // unmapped behind the lock
  const std::scoped_lock lock(mutex_);
  gone = taken_out(id);
}

std::vector<std::uint64_t> AnswerBlocks::forgotten(std::size_t most) {
  const std::scoped_lock lock(mutex_);
  const std::size_t count = std::min(most, forgotten_.size());
  std::vector<std::uint64_t> out(forgotten_.end() - static_cast<std::ptrdiff_t>(count), forgotten_.end());
  forgotten_.resize(forgotten_.size() - count);
  return out;
}

std::shared_ptr<SharedBlock> AnswerBlocks::find(std::uint64_t id) {
  const std::scoped_lock lock(mutex_);
  const auto found = blocks_.find(id);
  return found == blocks_.end() ? nullptr : found->second;
}

std::shared_ptr<const void> AnswerBlocks::lend(const std::shared_ptr<SharedBlock>& block) {
  {
    const std::scoped_lock lock(mutex_);
    lent_ += block->bytes().size();
  }
  return {block->bytes().data(), [held = shared_from_this(), id = block->id()](const void*) { held->take_back(id); }};
}

void AnswerBlocks::take_back(std::uint64_t id) noexcept {
  if (core::forks() != forks_) return;  // a child has no worker, and may have inherited the lock of another thread
  std::shared_ptr<SharedBlock> gone;    // unmapped behind the lock
  const std::scoped_lock lock(mutex_);
  if (const auto found = blocks_.find(id); found != blocks_.end()) lent_ -= found->second->bytes().size();
  if (idle_.size() < kMostIdle) {
    idle_.push_back(id);
    return;
  }
  gone = taken_out(id);
  if (gone != nullptr) forgotten_.push_back(id);
}

std::uint64_t AnswerBlocks::bytes() const noexcept {
  const std::scoped_lock lock(mutex_);
  return bytes_ - lent_;
}

namespace {

/// -1 where the kernel has no such thing (before 5.3); then the socket's end tells.
int descriptor_of(pid_t pid) {
#ifdef SYS_pidfd_open
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
#else
  static_cast<void>(pid);
  return -1;
#endif
}

}  // namespace

WorkerProcess::WorkerProcess(int socket, pid_t pid) : socket_(socket), pid_(pid), pid_descriptor_(descriptor_of(pid)) {}

WorkerProcess::~WorkerProcess() {
  ::close(socket_);
  if (pid_descriptor_ >= 0) ::close(pid_descriptor_);
}

void WorkerProcess::drop_request() noexcept {
  request_.reset();
  request_bytes_ = 0;
}

bool WorkerProcess::give_memory(int descriptor) {
  if (!has_memory_) has_memory_ = send_head(socket_, {.kind = MessageKind::kMemory}, descriptor);
  return has_memory_;
}

void WorkerProcess::shut_down() noexcept { ::shutdown(socket_, SHUT_RDWR); }

std::size_t WorkerProcess::finished_calls() const noexcept {
  if (request_ == nullptr) return 0;
  return progress_of(request_->bytes()).finished.load(std::memory_order_acquire);
}

std::optional<std::size_t> WorkerProcess::sample_at_hand() const noexcept {
  if (request_ == nullptr) return std::nullopt;
  const std::uint32_t part = progress_of(request_->bytes()).part.load(std::memory_order_acquire);
  return part == 0 ? std::nullopt : std::optional<std::size_t>(part - 1);
}

void WorkerProcess::give_up() noexcept { drop_request(); }  // the worker still reads it

bool WorkerProcess::send(MessageKind kind, const MessageWriter& message, const Buffer& writes_to) {
  const MessageExtent extent = message.extent();
  const std::size_t bytes = end_of(extent);
  const bool is_new = request_ == nullptr || request_->bytes().size() < bytes;
  if (is_new) {
    request_ = SharedBlock::create(++blocks_, bytes);
    request_bytes_ = request_->bytes().size();
  }
  message.put(request_->bytes(), extent);
  MessageHead head{.kind = kind, .sequence = ++sequence_, .block = request_->id(), .extent = extent};
  if (is_new) head.capacity = request_->bytes().size();
  head.granted = answers_->grant();
  const std::vector<std::uint64_t> forgotten = answers_->forgotten(std::size(head.forgotten));
  std::copy(forgotten.begin(), forgotten.end(), head.forgotten);
  // Calls that were given up may be under way still, and write to what they were given.
  if (writes_to) written_.push_back({sequence_, writes_to});
  const bool is_sent = send_head(socket_, head, request_->descriptor());
  request_->close_descriptor();
  return is_sent;
}

std::optional<Answer> WorkerProcess::receive(const std::atomic<bool>& closed) {
  for (;;) {
    std::optional<Received> received;
    try {
      received = wait(closed);
    } catch (...) {
      give_up();
      throw;
    }
    if (!received) return std::nullopt;
    if (std::optional<Answer> answer = taken(*received)) return answer;
  }
}

std::optional<Received> WorkerProcess::wait(const std::atomic<bool>& closed) {
  for (;;) {
    pollfd watched[2] = {{socket_, POLLIN, 0}, {pid_descriptor_, POLLIN, 0}};
    const int ready = ::poll(watched, pid_descriptor_ >= 0 ? 2 : 1, static_cast<int>(core::kStopLook.count()));
    if (ready > 0 && watched[0].revents != 0) return receive_head(socket_, false);
    if (ready > 0) return receive_head(socket_, false);  // its last word, if any
    if (core::StopScope::stop_requested() || closed.load()) {
      throw Error(ErrorCode::kCancelled, "the loader was stopped");
    }
  }
}

std::optional<Answer> WorkerProcess::taken(const Received& received) {
  const MessageHead& head = received.head;
  std::erase_if(written_, [&](const auto& each) { return each.first <= head.sequence; });
  if (received.is_cut) {
    throw Error(ErrorCode::kIo, "too many open files to take what a worker process answers; raise ulimit -n",
                {.system_error = EMFILE});
  }
  if (received.descriptor >= 0) {
    answers_->add(SharedBlock::received(head.block, received.descriptor, static_cast<std::size_t>(head.capacity)));
  }
  if (head.granted != 0 && head.granted != head.block) answers_->drop(head.granted);
  const bool is_own = head.block != 0;
  std::shared_ptr<SharedBlock> block = is_own ? answers_->find(head.block) : request_;
  if (is_own && block == nullptr) {
    throw Error(ErrorCode::kCorrupt, "a worker process answers in memory that nobody knows");
  }
  std::shared_ptr<const void> owner = is_own ? answers_->lend(block) : block;
  if (head.sequence != sequence_) return std::nullopt;
  if (head.keeps != 0 || !is_own) drop_request();
  using Time = std::chrono::steady_clock::time_point;
  return Answer{std::move(block), head.extent, std::move(owner), Time(Time::duration(head.begin)),
                Time(Time::duration(head.end))};
}

}  // namespace penstock::python
