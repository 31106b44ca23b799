// The worker's side: a message comes, its functions are called one by one, and all results go back in one answer.

#include "worker/serve.h"

#include <malloc.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "content/functions.h"
#include "core/format.h"
#include "core/round.h"
#include "data/sample/user_call.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "penstock/error.h"
#include "value/graph.h"
#include "worker/block.h"
#include "worker/errors.h"
#include "worker/link.h"
#include "worker/message.h"

namespace penstock::python {
namespace {

/// How long a call that is under way may go on when the parent is gone.
constexpr std::chrono::seconds kPatience{1};

/// A thread that knows nothing of Python ends the process when nobody waits for it any more, whatever it is in.
void end_with_parent(int socket) {
  std::thread([socket] {
    pollfd watched{socket, POLLRDHUP, 0};
    while (::poll(&watched, 1, -1) <= 0) {
    }
    std::this_thread::sleep_for(kPatience);
    ::_exit(1);
  }).detach();
}

/// Has the memory of one batch serve the next: to give it back and have it zeroed again takes longer than to fill it.
void keep_freed_memory() {
#ifdef M_MMAP_THRESHOLD
  constexpr int kMostOfGlibc = 32 << 20;
  constexpr int kKept = 64 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kMostOfGlibc);
  ::mallopt(M_TRIM_THRESHOLD, kKept);
#endif
}

/// That of the call which this thread makes, or null.
thread_local CallProgress* current_progress = nullptr;

class ProgressScope {
 public:
  explicit ProgressScope(CallProgress& progress) { current_progress = &progress; }
  ~ProgressScope() { current_progress = nullptr; }
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;
};

std::int64_t now() noexcept { return std::chrono::steady_clock::now().time_since_epoch().count(); }

class Worker {
 public:
  explicit Worker(int socket) : socket_(socket) {}

  /// False when there is nobody to answer any more.
  bool serve(const Received& received);
  /// Memory of the answer at hand, for a result that is made there; none where there is none.
  Buffer answer_memory(std::size_t bytes);

 private:
  /// The block of the answer at hand, while results are made in it. Whoever has memory of it has `token` too.
  struct Draft {
    static constexpr std::size_t kBegin = std::size_t{16} << 10;  ///< behind room for the structure

    std::shared_ptr<SharedBlock> block;
    std::shared_ptr<const void> token;
    std::size_t used = 0;

    std::span<std::byte> placed() const { return block->bytes().subspan(kBegin, used); }
  };

  struct Step {
    const HeldFunction* function;
    StepForm form;
    std::uint32_t stage;
  };

  /// Where the batch has a call's results expected.
  struct Slots {
    std::uint32_t tensor;
    std::size_t bytes;
    std::span<std::byte> all;
  };

  std::shared_ptr<SharedBlock> request_of(const Received& received);
  std::optional<Slots> slots_in(MessageReader& reader);
  std::shared_ptr<SharedBlock> batch_at(std::uint64_t begin, std::uint64_t bytes);
  MessageWriter answer_to(MessageKind kind, MessageReader& reader);
  void define(MessageReader& reader);
  void call(MessageReader& reader, MessageWriter& answer);
  void call_run(MessageReader& reader, MessageWriter& answer);
  void call_indices(MessageReader& reader, MessageWriter& answer);
  void call_list(MessageReader& reader, MessageWriter& answer);
  static const char* name_of(StepForm form) noexcept;
  static Value result_of(const Step& step, const Value& given, const data::RandomKey& key);
  /// The result of one call, if it has one, or its error.
  template <class Call>
  void add(MessageWriter& answer, Call call);
  const HeldFunction& function(std::uint64_t number) const;
  /// The block that now holds the answer, and where.
  std::pair<std::shared_ptr<SharedBlock>, MessageExtent> put(const MessageWriter& answer, std::uint64_t granted);
  void begin_draft(std::uint64_t granted);

  int socket_;
  std::map<std::uint64_t, HeldFunction> functions_;
  std::shared_ptr<SharedBlock> request_;  ///< where the parent puts calls
  std::map<std::uint64_t, std::shared_ptr<SharedBlock>> answers_;
  std::uint64_t blocks_ = 0;
  int batches_ = -1;                                 ///< the memory of batches (BatchMemory)
  std::deque<std::shared_ptr<SharedBlock>> mapped_;  ///< parts of it, the last one used in front
  std::optional<Slots> slots_;
  std::size_t made_ = 0;  ///< results of the call at hand
  Draft draft_;
  std::size_t usual_ = 0;  ///< bytes of results of the last answer that was made in its block
};

/// That of this process, in the thread that makes its calls; else null.
thread_local Worker* current_worker = nullptr;

std::shared_ptr<SharedBlock> Worker::request_of(const Received& received) {
  const MessageHead& head = received.head;
  if (received.descriptor >= 0) {
    request_ = SharedBlock::received(head.block, received.descriptor, static_cast<std::size_t>(head.capacity));
  }
  if (request_ == nullptr || request_->id() != head.block) {
    throw Error(ErrorCode::kCorrupt, "a call lies in memory that this worker process does not know");
  }
  return request_;
}

bool Worker::serve(const Received& received) {
  const MessageHead& head = received.head;
  if (head.kind == MessageKind::kMemory) {
    batches_ = received.descriptor;
    return true;
  }
  for (const std::uint64_t id : head.forgotten) answers_.erase(id);
  const std::shared_ptr<SharedBlock> request = request_of(received);
  MessageHead to{.kind = MessageKind::kAnswer, .sequence = head.sequence, .granted = head.granted};
  std::shared_ptr<SharedBlock> block;
  {
    MessageReader reader(request->bytes(), head.extent, request);
    begin_draft(head.granted);
    to.begin = now();
    const MessageWriter answer = answer_to(head.kind, reader);
    to.end = now();
    try {
      std::tie(block, to.extent) = put(answer, head.granted);
    } catch (const Error& error) {  // no memory or descriptor for a block: the call's own holds a text
      MessageWriter refusal;
      refusal.write_number(1);
      refusal.write_error(error, {});
      to.extent = refusal.extent();
      refusal.put(request->bytes(), to.extent);
    }
  }
  if (block != nullptr) {
    to.block = block->id();
    if (block->descriptor() >= 0) to.capacity = block->bytes().size();
  }
  if (head.granted != 0 && head.granted != to.block) answers_.erase(head.granted);
  // Results may have lain in the memory of the call. They are copied, so what has it now is the program.
  constexpr long kOurs = 2;  // `request` and `request_`
  if (request.use_count() > kOurs) {
    to.keeps = 1;
    request_.reset();
  }
  const bool is_sent = send_head(socket_, to, block == nullptr ? -1 : block->descriptor());
  if (block != nullptr) block->close_descriptor();
  return is_sent;
}

MessageWriter Worker::answer_to(MessageKind kind, MessageReader& reader) {
  MessageWriter answer;
  try {
    answer.write_number(0);
    if (kind == MessageKind::kDefine) {
      define(reader);
    } else {
      call(reader, answer);
    }
  } catch (const Error& error) {
    answer = {};
    answer.write_number(1);
    answer.write_error(error, pickled_cause(error));
  }
  calls_of_python([] { nb::module_::import_("penstock._processes._worker").attr("flush")(); });
  return answer;
}

/// Memory of the block that the answer will probably lie in.
void Worker::begin_draft(std::uint64_t granted) {
  draft_ = {};
  const auto found = answers_.find(granted);
  if (found != answers_.end()) draft_.block = found->second;
}

Buffer Worker::answer_memory(std::size_t bytes) {
  constexpr std::size_t kEach = 64;
  if (bytes == 0 || made_ != 1) return {};  // results of later calls go behind that of the first
  if (draft_.block == nullptr) {
    // No block was granted: one for what the last answer took.
    const std::size_t size = Draft::kBegin + std::max(usual_, bytes + kEach);
    draft_.block = SharedBlock::create(++blocks_, size);
    answers_.emplace(draft_.block->id(), draft_.block);
  }
  if (draft_.token == nullptr) draft_.token = std::make_shared<std::shared_ptr<SharedBlock>>(draft_.block);
  const std::size_t all = draft_.block->bytes().size();
  if (all < Draft::kBegin || bytes > all - Draft::kBegin || draft_.used > all - Draft::kBegin - bytes) return {};
  std::byte* const data = draft_.block->bytes().data() + Draft::kBegin + draft_.used;
  draft_.used = std::min(core::round_up(draft_.used + bytes, kEach), all - Draft::kBegin);
  return Buffer::wrap(data, bytes, draft_.token);
}

std::pair<std::shared_ptr<SharedBlock>, MessageExtent> Worker::put(const MessageWriter& answer, std::uint64_t granted) {
  const Draft draft = std::exchange(draft_, {});
  // What the program keeps a part of is not written to again: the answer goes elsewhere.
  const bool is_kept = draft.token != nullptr && draft.token.use_count() > 1;
  if (!answer.placed().empty() && !is_kept) {
    const MessageExtent extent = answer.extent(Draft::kBegin);
    if (extent.payload_at == Draft::kBegin && end_of(extent) <= draft.block->bytes().size()) {
      usual_ = static_cast<std::size_t>(extent.payload);
      answer.put(draft.block->bytes(), extent);
      return {draft.block, extent};
    }
  }
  const MessageExtent extent = answer.extent();
  std::shared_ptr<SharedBlock> block;
  const auto found = answers_.find(granted);
  const bool fits = found != answers_.end() && found->second->bytes().size() >= end_of(extent);
  if (fits && found->second != draft.block) block = found->second;
  if (fits && found->second == draft.block && draft.used == 0) block = found->second;
  if (draft.block != nullptr && draft.block != block) answers_.erase(draft.block->id());
  if (block == nullptr) {
    block = SharedBlock::create(++blocks_, end_of(extent));
    answers_.emplace(block->id(), block);
  }
  answer.put(block->bytes(), extent);
  return {block, extent};
}

const HeldFunction& Worker::function(std::uint64_t number) const {
  const auto found = functions_.find(number);
  if (found != functions_.end()) return found->second;
  throw Error(ErrorCode::kCorrupt, "a call is of a function that this worker process does not know");
}

void Worker::define(MessageReader& reader) {
  const std::uint64_t count = reader.number();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = reader.number();
    const std::string_view pickled = reader.text();
    // It is there already where nobody waited for the answer to an earlier message.
    if (!functions_.contains(number)) functions_.emplace(number, HeldFunction::unpickled(pickled));
  }
  const std::uint64_t gone = reader.number();
  calls_of_python([&] {  // objects of Python go with them
    for (std::uint64_t i = 0; i < gone; ++i) functions_.erase(reader.number());
  });
}

std::shared_ptr<SharedBlock> Worker::batch_at(std::uint64_t begin, std::uint64_t bytes) {
  constexpr std::size_t kMostMapped = 16;
  const auto found =
      std::find_if(mapped_.begin(), mapped_.end(), [&](const auto& each) { return each->id() == begin; });
  if (found != mapped_.end()) {
    std::rotate(mapped_.begin(), found, found + 1);
  } else {
    mapped_.push_front(SharedBlock::part(batches_, begin, static_cast<std::size_t>(bytes)));
    if (mapped_.size() > kMostMapped) mapped_.pop_back();
  }
  return mapped_.front();
}

std::optional<Worker::Slots> Worker::slots_in(MessageReader& reader) {
  if (reader.number() == 0) return std::nullopt;
  const auto tensor = static_cast<std::uint32_t>(reader.number());
  const auto each = static_cast<std::size_t>(reader.number());
  const std::uint64_t begin = reader.number();
  const std::uint64_t bytes = reader.number();
  const auto offset = static_cast<std::size_t>(reader.number());
  try {
    return Slots{tensor, each, batch_at(begin, bytes)->bytes().subspan(offset)};
  } catch (const Error&) {  // no address for it: results go with the answer
    return std::nullopt;
  }
}

void Worker::call(MessageReader& reader, MessageWriter& answer) {
  slots_ = slots_in(reader);
  made_ = 0;
  switch (static_cast<CallForm>(reader.number())) {
    case CallForm::kRun:
      return call_run(reader, answer);
    case CallForm::kIndices:
      return call_indices(reader, answer);
    case CallForm::kList:
      return call_list(reader, answer);
  }
}

template <class Call>
void Worker::add(MessageWriter& answer, Call call) {
  // A function may fork and return in both processes. The copy has no part in what follows.
  const auto end_copy = [process = getpid()] {
    if (getpid() != process) _exit(0);
  };
  const MessageWriter::Mark before = answer.mark();
  const std::size_t at = made_++;
  const ProgressScope scope(progress_of(request_->bytes()));
  try {
    const std::optional<Value> made = call();
    end_copy();
    answer.write_number(static_cast<std::uint64_t>(made ? CallOutcome::kMade : CallOutcome::kLeftOut));
    if (at == 0 && draft_.used > 0) answer.place_in(draft_.placed());
    if (made && slots_) {
      answer.write_value(*made, slots_->tensor, slots_->all.subspan(at * slots_->bytes, slots_->bytes));
    } else if (made) {
      answer.write_value(*made);
    }
  } catch (const Error& error) {
    end_copy();
    answer.take_back(before);
    if (at == 0) answer.place_in({});
    answer.write_number(static_cast<std::uint64_t>(CallOutcome::kRaised));
    answer.write_error(error, pickled_cause(error));
    answer.write_number(progress_of(request_->bytes()).part.load(std::memory_order_relaxed));
  }
  CallProgress& progress = progress_of(request_->bytes());
  progress.part.store(0, std::memory_order_relaxed);
  progress.finished.fetch_add(1, std::memory_order_release);
}

const char* Worker::name_of(StepForm form) noexcept {
  return form == StepForm::kTells || form == StepForm::kKeeps ? "the function of filter" : "the function of map";
}

Value Worker::result_of(const Step& step, const Value& given, const data::RandomKey& key) {
  switch (step.form) {
    case StepForm::kPlain:
      return (*step.function)(given);
    case StepForm::kSeeded:
      return (*step.function)(given, key);
    case StepForm::kTells:
    case StepForm::kKeeps:
      break;
  }
  return Value::boolean(step.function->is_true(given));
}

void Worker::call_run(MessageReader& reader, MessageWriter& answer) {
  std::vector<Step> run;
  const std::uint64_t steps = reader.number();
  for (std::uint64_t i = 0; i < steps; ++i) {
    const HeldFunction& step = function(reader.number());
    const auto form = static_cast<StepForm>(reader.number());
    run.push_back({&step, form, static_cast<std::uint32_t>(reader.number())});
  }
  data::RandomKey key;
  key.seed = reader.number();
  key.epoch = reader.number();
  const std::uint64_t calls = reader.number();
  for (std::uint64_t i = 0; i < calls; ++i) {
    key.index = static_cast<std::int64_t>(reader.number());
    Value sample = reader.value();
    add(answer, [&]() -> std::optional<Value> {
      for (std::size_t at = 0; at < run.size(); ++at) {
        const Step& step = run[at];
        key.stage = step.stage;
        // What the function before it keeps, this one must not change. Nobody keeps what came in the call.
        const Value given = at == 0 ? std::move(sample) : without_sharing(std::move(sample));
        Value made = data::call_user(name_of(step.form), [&] { return result_of(step, given, key); });
        const bool keeps = step.form == StepForm::kKeeps;
        if (keeps && !made.as_bool()) return std::nullopt;
        sample = keeps ? given : std::move(made);
      }
      return std::move(sample);
    });
  }
}

void Worker::call_indices(MessageReader& reader, MessageWriter& answer) {
  const HeldFunction& get = function(reader.number());
  const std::uint64_t calls = reader.number();
  for (std::uint64_t i = 0; i < calls; ++i) {
    const auto index = static_cast<std::int64_t>(reader.number());
    add(answer, [&] { return data::call_user("the dataset's function", [&] { return get(index); }); });
  }
}

void Worker::call_list(MessageReader& reader, MessageWriter& answer) {
  const HeldFunction& collate = function(reader.number());
  std::vector<Value> samples;
  const std::uint64_t count = reader.number();
  for (std::uint64_t i = 0; i < count; ++i) samples.push_back(reader.value());
  add(answer, [&] {
    Value out = collate(samples);
    samples.clear();
    return out;
  });
}

}  // namespace

void note_part(std::uint32_t part) noexcept {
  if (current_progress != nullptr) current_progress->part.store(part, std::memory_order_release);
}

Buffer answer_memory(std::size_t bytes) {
  return current_worker == nullptr ? Buffer() : current_worker->answer_memory(bytes);
}

void serve_calls(int socket) {
  const ReleasedGil released;
  keep_freed_memory();
  end_with_parent(socket);
  // What Python the worker's functions hold goes with the process.
  auto* const worker = new Worker(socket);
  current_worker = worker;
  while (const std::optional<Received> received = receive_head(socket, true)) {
    if (!worker->serve(*received)) break;
  }
}

}  // namespace penstock::python
