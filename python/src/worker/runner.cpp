#include "worker/runner.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "core/forks.h"
#include "core/format.h"
#include "core/stop_scope.h"
#include "data/sample/user_call.h"
#include "interpreter/convert.h"
#include "penstock/error.h"
#include "value/graph.h"
#include "worker/errors.h"

namespace penstock::python {

/// A process for one thread, which goes back when this goes, or is let go of when it has ended.
class WorkerRunner::Lease {
 public:
  /// Unless it `waits`, there may be none.
  explicit Lease(WorkerRunner& runner, bool waits = true) : runner_(runner) {
    std::unique_lock lock(runner_.mutex_);
    while (runner_.idle_.empty()) {
      if (runner_.closed_) throw Error(ErrorCode::kCancelled, "the loader was stopped");
      if (runner_.workers_.size() + runner_.starting_ < runner_.most_) {
        start(lock);
        return;
      }
      if (!waits) return;
      runner_.idle_again_.wait_for(lock, core::kStopLook);
      if (core::StopScope::stop_requested()) throw Error(ErrorCode::kCancelled, "the loader was stopped");
    }
    worker_ = std::move(runner_.idle_.back());
    runner_.idle_.pop_back();
  }
  ~Lease() {
    if (worker_ == nullptr) return;
    {
      const std::scoped_lock lock(runner_.mutex_);
      runner_.idle_.push_back(std::move(worker_));
    }
    runner_.idle_again_.notify_one();
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  WorkerProcess& operator*() const noexcept { return *worker_; }
  explicit operator bool() const noexcept { return worker_ != nullptr; }
  /// It is no more: another one may be started in its place.
  void let_go() {
    const std::scoped_lock lock(runner_.mutex_);
    std::erase(runner_.workers_, worker_);
    worker_.reset();
  }

 private:
  void start(std::unique_lock<std::mutex>& lock) {
    ++runner_.starting_;
    lock.unlock();
    try {
      const Value made = runner_.start_(Value());
      worker_ =
          std::make_shared<WorkerProcess>(static_cast<int>(made[0].as_int()), static_cast<pid_t>(made[1].as_int()));
    } catch (...) {
      lock.lock();
      --runner_.starting_;
      throw;
    }
    lock.lock();
    --runner_.starting_;
    ++runner_.figures_.started;
    runner_.workers_.push_back(worker_);
    if (runner_.closed_) worker_->shut_down();
  }

  WorkerRunner& runner_;
  std::shared_ptr<WorkerProcess> worker_;
};

/// Calls that one process makes, and whose answer has not come.
struct WorkerRunner::UnderWay {
  UnderWay(WorkerRunner& runner, std::size_t begin, std::size_t end, bool waits)
      : first(begin), last(end), worker(runner, waits) {}
  ~UnderWay() {
    if (is_sent && worker) (*worker).give_up();
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  std::size_t first;
  std::size_t last;
  Lease worker;
  Buffer block = {};  ///< to which results are written
  bool is_sent = false;
};

WorkerRunner::WorkerRunner(Launch launch, std::size_t most, std::unique_ptr<data::RunnerTrial> trial)
    : start_(std::move(launch.start)),
      reap_(std::move(launch.reap)),
      pickle_(std::move(launch.pickle)),
      most_(std::max<std::size_t>(most, 1)),
      trial_(std::move(trial)),
      forks_(core::forks()) {}

WorkerRunner::~WorkerRunner() { close(); }

void WorkerRunner::close() noexcept {
  closed_ = true;
  if (core::forks() != forks_) return;  // a forked child has the parent's sockets
  const std::scoped_lock lock(mutex_);
  for (const auto& worker : workers_) worker->shut_down();
}

void WorkerRunner::let_go() noexcept {
  std::vector<std::shared_ptr<WorkerProcess>> ended;
  {
    const std::scoped_lock lock(mutex_);
    ended.swap(idle_);
    for (const auto& worker : ended) std::erase(workers_, worker);
  }
  for (const auto& worker : ended) worker->shut_down();
  for (const auto& worker : ended) {
    try {
      static_cast<void>(reap_(static_cast<std::int64_t>(worker->pid())));
    } catch (const Error&) {
      return;  // Python is ending, and so are they
    }
  }
}

std::uint64_t WorkerRunner::bytes() const noexcept {
  const std::scoped_lock lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& worker : workers_) bytes += worker->bytes();
  return bytes;
}

void WorkerRunner::trace_to(data::Trace* trace) noexcept {
  const std::scoped_lock lock(mutex_);
  trace_ = trace;
  for (const auto& worker : workers_) worker->lane = nullptr;
}

WorkerRunner::Figures WorkerRunner::figures() const {
  const std::scoped_lock lock(mutex_);
  Figures out = figures_;
  out.processes = workers_.size();
  out.seconds = std::chrono::duration<double>(in_functions_).count();
  return out;
}

void WorkerRunner::note(WorkerProcess& worker, const Answer& answer, std::size_t calls, std::int64_t index) {
  const std::scoped_lock lock(mutex_);
  figures_.calls += calls;
  in_functions_ += answer.end - answer.begin;
  if (trace_ == nullptr) return;
  if (worker.lane == nullptr) worker.lane = &trace_->lane(core::format("process {}", worker.pid()));
  worker.lane->add(data::Trace::What::kFunction, answer.begin, answer.end, index);
}

bool WorkerRunner::gets_there(std::span<const HeldFunction* const> functions) {
  if (trial_ == nullptr) return true;
  if (trial_->is_decided()) return trial_->way() == data::CallWay::kElsewhere;
  try {
    std::vector<std::uint64_t> numbers;
    for (const HeldFunction* const function : functions) numbers.push_back(number_of(*function));
    Lease worker(*this);
    define(worker, numbers);
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) throw;
    trial_->refuse(error.what());
    return false;
  }
}

std::vector<std::int64_t> WorkerRunner::pids() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::int64_t> out;
  for (const auto& worker : workers_) out.push_back(worker->pid());
  return out;
}

bool WorkerRunner::takes(const data::UserFunction& function) const noexcept {
  return function.target<SampleFunction>() != nullptr;
}

bool WorkerRunner::takes(const data::IndexFunction& function) const noexcept {
  return function.target<SampleMaker>() != nullptr;
}

namespace {

StepForm form_of(const data::Runner::Step& step) {
  const auto& function = *step.function->target<SampleFunction>();
  if (step.keeps) return StepForm::kKeeps;
  if (function.tells) return StepForm::kTells;
  return function.seeded ? StepForm::kSeeded : StepForm::kPlain;
}

/// What a runner gives that turns out not to have the functions: what they give here.
template <class Call>
std::vector<data::Called> each_called(std::size_t count, Call call) {
  std::vector<data::Called> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    try {
      std::optional<Value> made = call(i);
      out[i].left_out = !made;
      if (made) out[i].value = std::move(*made);
    } catch (const Error& error) {
      out[i].error = error;
    }
  }
  return out;
}

std::vector<data::Called> called_here(std::span<const data::Runner::Step> run, std::span<const Value> samples,
                                      std::span<const std::int64_t> indices, const data::EpochSeed& seed) {
  const data::RunnerScope none(nullptr);
  return each_called(samples.size(), [&](std::size_t i) -> std::optional<Value> {
    Value sample = samples[i];
    for (const data::Runner::Step& step : run) {
      const Value given = without_sharing(std::move(sample));
      const data::RandomKey key{.seed = seed.seed, .epoch = seed.epoch, .index = indices[i], .stage = step.stage};
      const char* const who = step.keeps ? "the function of filter" : "the function of map";
      Value made = data::call_user(who, [&] { return (*step.function)(given, key); });
      if (step.keeps && !made.as_bool()) return std::nullopt;
      sample = step.keeps ? given : std::move(made);
    }
    return sample;
  });
}

std::vector<data::Called> called_here(const HeldFunction& get, std::span<const std::int64_t> indices) {
  return each_called(indices.size(), [&](std::size_t i) {
    return data::call_user("the dataset's function", [&] { return get(indices[i]); });
  });
}

}  // namespace

std::vector<const HeldFunction*> WorkerRunner::functions_of(std::span<const Step> run) {
  std::vector<const HeldFunction*> out;
  for (const Step& step : run) out.push_back(&step.function->target<SampleFunction>()->function);
  return out;
}

std::vector<data::Called> WorkerRunner::call(std::span<const Step> run, std::span<const Value> samples,
                                             std::span<const std::int64_t> indices, const data::EpochSeed& seed,
                                             const data::ExpectedSlots& slots) {
  if (!gets_there(functions_of(run))) return called_here(run, samples, indices, seed);
  if (!run.back().keeps) makes_samples_ = true;
  return call_there(run, samples, indices, seed, slots);
}

Buffer WorkerRunner::batch_memory(std::size_t bytes) { return makes_samples_ ? batches_->take(bytes) : Buffer(); }

std::vector<data::Called> WorkerRunner::call_there(std::span<const Step> run, std::span<const Value> samples,
                                                   std::span<const std::int64_t> indices, const data::EpochSeed& seed,
                                                   const data::ExpectedSlots& slots) {
  const std::vector<const HeldFunction*> functions = functions_of(run);
  std::vector<std::uint64_t> numbers;
  for (const HeldFunction* const function : functions) numbers.push_back(number_of(*function));
  // What a filter of a stream is asked comes from the one thread that reads, while the others wait for it.
  const Spread spread = run.back().keeps ? Spread::kAllProcesses : Spread::kOneProcess;
  return made(functions, samples.size(), indices, slots, spread,
              [&](MessageWriter& message, std::size_t first, std::size_t last) {
                message.write_number(static_cast<std::uint64_t>(CallForm::kRun));
                message.write_number(run.size());
                for (std::size_t i = 0; i < run.size(); ++i) {
                  message.write_number(numbers[i]);
                  message.write_number(static_cast<std::uint64_t>(form_of(run[i])));
                  message.write_number(run[i].stage);
                }
                message.write_number(seed.seed);
                message.write_number(seed.epoch);
                message.write_number(last - first);
                for (std::size_t i = first; i < last; ++i) {
                  message.write_number(static_cast<std::uint64_t>(indices[i]));
                  message.write_value(samples[i]);
                }
              });
}

std::vector<data::Called> WorkerRunner::call(const data::IndexFunction& get, std::span<const std::int64_t> indices,
                                             const data::ExpectedSlots& slots) {
  const HeldFunction* const function = &get.target<SampleMaker>()->function;
  if (!gets_there({&function, 1})) return called_here(*function, indices);
  makes_samples_ = true;
  const std::uint64_t number = number_of(*function);
  return made({&function, 1}, indices.size(), indices, slots, Spread::kOneProcess,
              [&](MessageWriter& message, std::size_t first, std::size_t last) {
                message.write_number(static_cast<std::uint64_t>(CallForm::kIndices));
                message.write_number(number);
                message.write_number(last - first);
                for (std::size_t i = first; i < last; ++i) message.write_number(static_cast<std::uint64_t>(indices[i]));
              });
}

Value WorkerRunner::call(const HeldFunction& function, const std::vector<Value>& samples) {
  const HeldFunction* const only = &function;
  if (!gets_there({&only, 1})) return function(samples);
  const std::uint64_t number = number_of(function);
  std::vector<data::Called> out =
      made({&only, 1}, 1, {}, {}, Spread::kOneProcess, [&](MessageWriter& message, std::size_t, std::size_t) {
        message.write_number(static_cast<std::uint64_t>(CallForm::kList));
        message.write_number(number);
        message.write_number(samples.size());
        for (const Value& sample : samples) message.write_value(sample);
      });
  if (out[0].error) throw *out[0].error;
  return std::move(out[0].value);
}

bool WorkerRunner::name_slots(MessageWriter& message, WorkerProcess& worker, const data::ExpectedSlots& slots,
                              std::size_t first) const {
  const std::optional<BatchMemory::Place> place =
      slots.block == nullptr ? std::nullopt : batches_->find(slots.block->data());
  const bool has = place && worker.give_memory(batches_->descriptor());
  message.write_number(has ? 1 : 0);
  if (!has) return false;
  message.write_number(slots.tensor);
  message.write_number(slots.bytes);
  message.write_number(place->begin);
  message.write_number(place->bytes);
  message.write_number(place->offset + static_cast<std::uint64_t>(slots.slot(first) - slots.block->data()));
  return true;
}

std::vector<data::Called> WorkerRunner::made(std::span<const HeldFunction* const> functions, std::size_t count,
                                             std::span<const std::int64_t> indices, const data::ExpectedSlots& slots,
                                             Spread spread, const Write& write) {
  std::vector<data::Called> out(count);
  std::vector<std::uint64_t> numbers;
  for (const HeldFunction* const function : functions) numbers.push_back(number_of(*function));
  Ranges ranges;
  const std::size_t parts = spread == Spread::kOneProcess ? 1 : std::clamp<std::size_t>(count, 1, most_);
  for (std::size_t part = parts; part > 0; --part) {
    ranges.emplace_back(count * (part - 1) / parts, count * part / parts);
  }
  while (!ranges.empty()) {
    std::deque<UnderWay> under_way;
    while (!ranges.empty() && under_way.size() < parts) {
      const auto [first, last] = ranges.back();
      UnderWay& calls = under_way.emplace_back(*this, first, last, under_way.empty());
      if (!calls.worker) break;  // all others are busy, perhaps with calls of this thread
      ranges.pop_back();
      define(calls.worker, numbers);
      MessageWriter message;
      calls.block = name_slots(message, *calls.worker, slots, first) ? *slots.block : Buffer();
      write(message, first, last);
      calls.is_sent = (*calls.worker).send(MessageKind::kCall, message, calls.block);
    }
    for (UnderWay& calls : under_way) {
      if (calls.worker) take(calls, indices, slots, ranges, out);
    }
  }
  return out;
}

void WorkerRunner::take(UnderWay& calls, std::span<const std::int64_t> indices, const data::ExpectedSlots& slots,
                        Ranges& ranges, std::vector<data::Called>& out) {
  const auto [first, last] = std::pair(calls.first, calls.last);
  WorkerProcess& worker = *calls.worker;
  const std::optional<Answer> answer = calls.is_sent ? worker.receive(closed_) : std::nullopt;
  calls.is_sent = false;
  if (!answer) {
    // The calls before the one that ended it are made again, by another process.
    const std::size_t finished = worker.finished_calls();
    const std::optional<std::size_t> at_sample = worker.sample_at_hand();
    std::string how = ended(calls.worker);
    if (finished >= last - first && last - first > 1) {  // which one kept the answer from coming is found one by one
      for (std::size_t i = last; i > first; --i) ranges.emplace_back(i - 1, i);
      return;
    }
    const std::size_t bad = first + std::min(finished, last - first - 1);
    out[bad].at_sample = at_sample;
    out[bad].error = Error(ErrorCode::kUserCode, std::move(how));
    if (bad + 1 < last) ranges.emplace_back(bad + 1, last);
    if (first < bad) ranges.emplace_back(first, bad);
    return;
  }
  MessageReader reader = answer->reader();
  if (reader.number() != 0) throw error_with_cause(reader.error());
  note(worker, *answer, last - first, first < indices.size() ? indices[first] : -1);
  for (std::size_t i = first; i < last; ++i) {
    switch (static_cast<CallOutcome>(reader.number())) {
      case CallOutcome::kMade:
        out[i].value = calls.block ? reader.value(slots.buffer(i)) : reader.value();
        break;
      case CallOutcome::kRaised:
        out[i].error = error_with_cause(reader.error());
        if (const std::uint64_t part = reader.number()) out[i].at_sample = static_cast<std::size_t>(part - 1);
        break;
      case CallOutcome::kLeftOut:
        out[i].left_out = true;
    }
  }
}

std::uint64_t WorkerRunner::number_of(const HeldFunction& function) {
  const auto find = [&]() -> std::uint64_t {
    const std::scoped_lock lock(mutex_);
    const auto found = known_.find(function.id());
    return found == known_.end() || found->second.function.expired() ? 0 : found->second.number;
  };
  if (const std::uint64_t number = find()) return number;
  auto pickled = std::make_shared<const std::string>(function.pickled(pickle_, trial_ == nullptr));
  if (const std::uint64_t number = find()) return number;  // another thread was sooner
  const std::scoped_lock lock(mutex_);
  known_.insert_or_assign(function.id(), Known{++numbers_, function.watched(), std::move(pickled)});
  return numbers_;
}

void WorkerRunner::define(Lease& lease, std::span<const std::uint64_t> numbers) {
  WorkerProcess& worker = *lease;
  MessageWriter message;
  std::vector<std::uint64_t> added;
  std::vector<std::uint64_t> gone;
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(known_, [](const auto& each) { return each.second.function.expired(); });
    std::vector<const Known*> missing;
    std::set<std::uint64_t> alive;
    for (const auto& [id, known] : known_) {
      alive.insert(known.number);
      const bool is_wanted = std::find(numbers.begin(), numbers.end(), known.number) != numbers.end();
      if (is_wanted && !worker.functions().contains(known.number)) missing.push_back(&known);
    }
    if (missing.empty()) return;
    for (const std::uint64_t number : worker.functions()) {
      if (!alive.contains(number)) gone.push_back(number);
    }
    message.write_number(missing.size());
    for (const Known* const known : missing) {
      message.write_number(known->number);
      message.write_text(*known->pickled);
      added.push_back(known->number);
    }
    message.write_number(gone.size());
    for (const std::uint64_t number : gone) message.write_number(number);
  }
  const bool is_sent = worker.send(MessageKind::kDefine, message);
  const std::optional<Answer> answer = is_sent ? worker.receive(closed_) : std::nullopt;
  if (!answer) {
    throw Error(ErrorCode::kUserCode,
                core::format("{}, while it read the functions that it was to call", ended(lease)));
  }
  MessageReader reader = answer->reader();
  if (reader.number() != 0) throw error_with_cause(reader.error());
  worker.functions().insert(added.begin(), added.end());
  for (const std::uint64_t number : gone) worker.functions().erase(number);
}

std::string WorkerRunner::ended(Lease& worker) {
  const auto pid = static_cast<std::int64_t>((*worker).pid());
  worker.let_go();
  if (closed_) throw Error(ErrorCode::kCancelled, "the loader was stopped");
  return reap_(pid).as_string();
}

}  // namespace penstock::python
