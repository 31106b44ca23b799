#pragma once

#include <cstddef>
#include <cstdint>

#include "penstock/buffer.h"

namespace penstock::python {

/// What a worker process does: makes the calls that come by the socket, until its other end is closed. The calling
/// thread has the GIL.
void serve_calls(int socket);
/// In a function that the calling thread's process is asked for: it is at that sample of several, counted from 1; 0: at
/// none of them. Nothing elsewhere.
void note_part(std::uint32_t part) noexcept;
/// There too: memory of the answer, so that a result which is made in it is not copied; none where there is none.
Buffer answer_memory(std::size_t bytes);

}  // namespace penstock::python
