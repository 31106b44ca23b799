#pragma once

#include <cstddef>
#include <functional>

namespace penstock::data {

class Scratch;
struct Figures;

/// Threads that help each other with the samples of one batch that lie in large files. A task is all of one sample.
class Crew {
 public:
  /// Does one task; any thread may be asked, with what is its own.
  using Task = std::function<void(std::size_t number, Scratch& scratch, Figures& figures)>;

  virtual ~Crew() = default;
  /// Does the tasks [0, tasks), in this thread and in those that are free meanwhile. Throws what the first of them by
  /// number throws; tasks behind that one may be left out.
  virtual void share(std::size_t tasks, Scratch& scratch, Figures& figures, const Task& task) = 0;
};

}  // namespace penstock::data
