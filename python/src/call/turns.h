#pragma once

// Threads that use one loader or iterator take turns. A function of the program that is called within a turn may ask
// in it, because its thread would wait for itself otherwise; but not for what is being made.

#include <mutex>

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::python {

struct Turns {
  std::recursive_mutex mutex;
  bool is_making = false;  ///< under the mutex: what a function sees that is called to make the next item

  /// kInvalidArgument within a Making. `what`: "loader".
  void require_at_rest(const char* what) const {
    if (!is_making) return;
    throw Error(ErrorCode::kInvalidArgument,
                core::format("a function that the {0} calls to make its next item asks it for another, or moves it; take "
                             "another {0} there",
                             what));
  }
};

/// The making of an item, while it lives. The mutex must be held.
class Making {
 public:
  Making(Turns& turns, const char* what) : turns_(turns) {
    turns.require_at_rest(what);
    turns.is_making = true;
  }
  ~Making() { turns_.is_making = false; }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

 private:
  Turns& turns_;
};

}  // namespace penstock::python
