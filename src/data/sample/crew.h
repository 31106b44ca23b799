#pragma once

#include <cstddef>
#include <functional>

namespace penstock::data {

class Scratch;

/// Threads that help each other with the samples of one batch that lie in large files. A task is all of one sample.
class Crew {
 public:
  /// Does one task; any thread may be asked, with its own scratch.
  using Work = std::function<void(std::size_t task, Scratch& scratch)>;

  virtual ~Crew() = default;
  /// Does the tasks [0, tasks), in this thread and in those that are free meanwhile. Throws what the first of them by
  /// number throws; tasks behind that one may be left out.
  virtual void share(std::size_t tasks, Scratch& own, const Work& work) = 0;
};

}  // namespace penstock::data
