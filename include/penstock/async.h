#pragma once

/// Loads and saves that run beside the program: each on a thread of its own, with a std::future for the result.

#include <future>

#include "penstock/flag.h"
#include "penstock/load.h"
#include "penstock/save.h"
#include "penstock/text_view.h"
#include "penstock/value.h"

namespace penstock {

/// What `load` gives, by a future; so do its errors. The path is taken as it leads now, wherever the process goes
/// meanwhile. The destructor of the future waits for the load; `options.stop` ends it with kCancelled. `options.report`
/// must live until then.
std::future<Value> load_async(TextView path, const LoadOptions& options = {});

struct AsyncSaveOptions {
  SaveOptions save = {};
  /// Copy the tensors to host memory before the call returns, so that the program may go on changing them. False: the
  /// file holds them as they are when it is written, so they must not change until the future is ready.
  Flag copy = true;
};

/// `save`, by a future; so do its errors, but kOutOfMemory of the copy is thrown at once. Saves to one path follow each
/// other in the order of calls, so that the file of the last one stays. The destructor of the future waits for the
/// save; `options.save.stop` ends it with kCancelled, and then no file appears.
std::future<void> save_async(const Value& value, TextView path, const AsyncSaveOptions& options = {});

}  // namespace penstock
