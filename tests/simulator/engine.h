#pragma once

#include "simulator/state.h"

namespace penstock::simulator {

/// Appends to the stream, for the mode to execute; where that is now, it is done on return. An operation that fails
/// leaves its result in the context, whose later operations are not executed. Call without the lock.
Place submit(const StreamPtr& stream, const OperationPtr& operation);
/// Lets everything up to `place` run. Needs the lock.
void demand(const Place& place);
/// Needs the lock.
bool is_done(const Place& place);
/// Waits until `place` is done, and gives the context's sticky error. Call without the lock.
CUresult wait_for(const Place& place);
/// kSuccess, kNotReady or the sticky error; what is not done is let run, so that those who poll see the end.
CUresult query(const Place& place);
/// Waits for all streams of the context, those that were destroyed with work pending among them.
CUresult wait_for_all(const Context& context);
/// Ends the stream once its operations are done, which nobody needs to wait for. Needs the lock.
void close(const StreamPtr& stream);
/// Waits for the work of destroyed streams. Call without the lock.
void wait_for_closed();

/// The stream of a handle; that of the current context for null and the two numbers. Null for any other. Needs the
/// lock.
StreamPtr find_stream(CUstream handle);
/// As find_stream, but kInvalidHandle where the stream is of another context than the current one. Takes the lock.
CUresult stream_here(CUstream handle, StreamPtr& stream);

}  // namespace penstock::simulator
