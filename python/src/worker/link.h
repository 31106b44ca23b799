#pragma once

// The socket between this process and a worker: heads of messages, whose content lies in shared memory, and the
// descriptors of that memory.

#include <cstdint>
#include <optional>

#include "worker/message.h"

namespace penstock::python {

enum class MessageKind : std::uint32_t {
  kDefine,  ///< functions, by number
  kCall,
  kAnswer,
  kMemory,  ///< the descriptor of the memory of batches; it has no answer
};

/// How many calls of one message are the same function's, and how.
enum class CallForm : std::uint64_t {
  kRun,      ///< functions of samples or batches, one behind the other
  kIndices,  ///< a function that gives samples
  kList,     ///< one call with a list of samples
};

/// How a function of a run is called.
enum class StepForm : std::uint64_t {
  kPlain,
  kSeeded,  ///< with random numbers
  kTells,   ///< what it gives is true or not
  kKeeps,   ///< what it gives is whether the sample is kept, which is what comes of the run
};

/// What an answer begins with for each call.
enum class CallOutcome : std::uint64_t {
  kMade,     ///< its value follows
  kRaised,   ///< its error, and at which sample it was
  kLeftOut,  ///< nothing: a filter keeps its sample not
};

struct MessageHead {
  MessageKind kind = MessageKind::kCall;
  std::uint32_t keeps = 0;     ///< of an answer: the program still has memory of the call, which is not used again
  std::uint64_t sequence = 0;  ///< of the call
  std::uint64_t block = 0;     ///< where the content lies; 0 of an answer: in the block of the call
  std::uint64_t capacity = 0;  ///< of a new block, whose descriptor comes along; else 0
  MessageExtent extent = {};
  std::uint64_t granted = 0;        ///< a block that the answer may lie in; what an answer does not use is gone
  std::uint64_t forgotten[4] = {};  ///< blocks of answers that are gone
  std::int64_t begin = 0;           ///< of an answer: when the calls began and ended, by the clock that both have
  std::int64_t end = 0;             ///< (std::chrono::steady_clock)
};

struct Received {
  MessageHead head;
  int descriptor = -1;
  bool is_cut = false;  ///< one was sent, for which this process had no room
};

/// False where the other process is gone.
bool send_head(int socket, const MessageHead& head, int descriptor);
/// Nothing where the other process is gone, or, unless it `waits`, where nothing has come.
std::optional<Received> receive_head(int socket, bool waits);

}  // namespace penstock::python
