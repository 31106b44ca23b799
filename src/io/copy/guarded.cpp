// Reading a mapping of a file raises SIGBUS when another program has shortened the file, and SIGBUS ends the process.
// While a guarded read runs, our handler of SIGBUS knows which memory is being read: a fault there jumps back to the
// reader (siglongjmp), which reports it. Every other fault is passed on to the handler that was installed before ours,
// or after. A handler may run at any instruction, so all that it uses is thread-local or atomic and is never freed.

#include "io/copy/guarded.h"

#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <forward_list>
#include <mutex>
#include <string>

#include "io/copy/scatter.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

using Action = struct sigaction;

// The kernel's signal sets are this long, whatever the C library reserves.
constexpr std::size_t kSignalSetBytes = 8;

struct Frame {
  sigjmp_buf resume;
  const GuardedMemory* memory;
  sigset_t mask;  // at the fault
};

// initial-exec, because thread-local storage of the other models may be allocated at its first use, and a signal
// handler may not allocate.
#define PENSTOCK_HANDLER_LOCAL thread_local constinit __attribute__((tls_model("initial-exec")))
PENSTOCK_HANDLER_LOCAL Frame* t_frame = nullptr;
PENSTOCK_HANDLER_LOCAL volatile std::sig_atomic_t t_passing = 0;
PENSTOCK_HANDLER_LOCAL bool t_unblocked = false;
#undef PENSTOCK_HANDLER_LOCAL

/// The handlers that ours replaced. What a handler reads of it is published by the pointers and never freed.
struct Replaced {
  std::mutex mutex{};
  std::forward_list<Action> kept{};
  std::atomic<const Action*> first{nullptr};   ///< before Penstock came
  std::atomic<const Action*> latest{nullptr};  ///< put in our place since, if any; else the first
};

Replaced& replaced() {
  // Never destroyed: a fault may come after static destructors.
  static Replaced& instance = *new Replaced;
  return instance;
}
std::atomic<Replaced*> g_replaced{nullptr};

bool is_plain(const Action& action, void (*handler)(int)) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == handler;
}

/// Lets the signal do what it does to a process without handlers.
void die_of(int signal, bool fault) {
  Action action{};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
  // A fault comes again when the handler returns, from where it really happened: the best core dump.
  if (!fault) ::raise(signal);
}

void call(const Action& action, int signal, siginfo_t* info, void* context) {
  sigset_t mask = action.sa_mask;
  if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&mask, signal);
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &mask, &before);
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
  } else {
    action.sa_handler(signal);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// A handler for one time: from now on the signal has its default effect.
void forget(Replaced& state, const Action* action) {
  static constexpr Action kDefault{};
  const Action* expected = action;
  state.first.compare_exchange_strong(expected, &kDefault);
  expected = action;
  state.latest.compare_exchange_strong(expected, &kDefault);
}

void pass_on(int signal, siginfo_t* info, void* context) {
  Replaced& state = *g_replaced.load(std::memory_order_acquire);
  // A handler that came after ours may pass the signal back to us, who were there before it.
  const bool passed_back = t_passing > 0;
  const Action* action = (passed_back ? state.first : state.latest).load(std::memory_order_acquire);
  const bool fault = info->si_code > 0;
  if (is_plain(*action, SIG_IGN) && !fault) return;
  if (is_plain(*action, SIG_IGN) || is_plain(*action, SIG_DFL)) return die_of(signal, fault);
  if ((action->sa_flags & static_cast<int>(SA_RESETHAND)) != 0) forget(state, action);
  t_passing = t_passing + 1;
  call(*action, signal, info, context);
  t_passing = t_passing - 1;
}

void on_sigbus(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  Frame* const frame = t_frame;
  const bool lost_page = info->si_code == BUS_ADRERR || info->si_code == BUS_MCEERR_AR;
  if (lost_page && frame && frame->memory->contains(static_cast<const std::byte*>(info->si_addr))) {
    std::memcpy(&frame->mask, &static_cast<const ucontext_t*>(context)->uc_sigmask, kSignalSetBytes);
    siglongjmp(frame->resume, 1);
  }
  pass_on(signal, info, context);
  errno = saved;
}

bool is_ours(const Action& action) { return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_sigbus; }

/// `action` in a place where it stays; one that came before keeps the place it had.
const Action* keep(std::forward_list<Action>& kept, const Action& action) {
  for (const Action& known : kept) {
    const bool same = known.sa_flags == action.sa_flags && known.sa_sigaction == action.sa_sigaction &&
                      std::memcmp(&known.sa_mask, &action.sa_mask, sizeof(sigset_t)) == 0;
    if (same) return &known;
  }
  return &kept.emplace_front(action);
}

void install(const Action& found) {
  Replaced& state = replaced();
  const std::scoped_lock lock(state.mutex);
  const Action* previous = keep(state.kept, found);
  if (state.first.load() == nullptr) state.first = previous;
  state.latest = previous;
  g_replaced.store(&state, std::memory_order_release);

  Action action{};
  action.sa_sigaction = on_sigbus;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  Action now{};
  ::sigaction(SIGBUS, &action, &now);
  if (!is_ours(now)) state.latest = keep(state.kept, now);
}

/// Makes ours the handler that the kernel calls first. A handler that was installed after ours (Python's faulthandler,
/// for example) would end the process when a file was cut; it is given all faults that are not ours.
void require_handler() {
  Action found{};
  ::sigaction(SIGBUS, nullptr, &found);
  if (!is_ours(found)) install(found);
  if (!t_unblocked) {
    // A fault whose signal is blocked kills the process whatever its handlers are.
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGBUS);
    ::pthread_sigmask(SIG_UNBLOCK, &mask, nullptr);
    t_unblocked = true;
  }
  t_passing = 0;
}

/// One run of memory, copied to several places.
class GuardedRun final : public GuardedMemory {
 public:
  GuardedRun(const std::byte* from, std::span<const Scatter> parts)
      : from_(from), parts_(parts), bytes_(static_cast<std::size_t>(bytes_in(parts))) {}
  std::size_t bytes() const noexcept { return bytes_; }
  bool contains(const std::byte* address) const noexcept override {
    return address >= from_ && address < from_ + bytes_;
  }
  void read() const noexcept override { fill_parts(parts_, from_); }

 private:
  const std::byte* from_;
  std::span<const Scatter> parts_;
  std::size_t bytes_;
};

}  // namespace

bool read_guarded(const GuardedMemory& memory) {
  require_handler();
  Frame frame;
  frame.memory = &memory;
  sigemptyset(&frame.mask);
  // Saving the mask here would cost a system call. Something between the kernel and our handler, such as
  // ThreadSanitizer, may have blocked signals while the handler runs, so a fault restores the mask.
  if (sigsetjmp(frame.resume, 0) != 0) {
    t_frame = nullptr;
    ::pthread_sigmask(SIG_SETMASK, &frame.mask, nullptr);
    return false;
  }
  t_frame = &frame;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  memory.read();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_frame = nullptr;
  return true;
}

void throw_vanished(std::string_view path) {
  throw Error(
      ErrorCode::kTruncated,
      "mapped bytes of the file are no longer there: it was cut, or its storage failed, while it was in use; open "
      "it again when it is whole",
      {.path = std::string(path)});
}

void guarded_scatter(const std::byte* from, std::span<const Scatter> parts, std::string_view path) {
  const GuardedRun run(from, parts);
  if (run.bytes() > 0 && !read_guarded(run)) throw_vanished(path);
}

void guarded_copy(std::byte* to, const std::byte* from, std::size_t bytes, std::string_view path) {
  const Scatter part{to, bytes};
  guarded_scatter(from, {&part, 1}, path);
}

}  // namespace penstock::io
